"""A device that the library takes for a real one: launches arrive as plain numbers, as at cuda-core, and are then run
in Triton's interpreter from these numbers alone. What the host path gets wrong gives wrong results."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tritensor import settings
from tritensor.drivers import selection
from tritensor.drivers.compiling import CompilingDriver
from tritensor.drivers.cuda_kernels import CudaKernels
from tritensor.drivers.loading import Loaded
from tritensor.drivers.simulator import Simulator
from tritensor.runtime import replay
from tritensor.runtime.source import Float64, Int64
from tritensor.types import dtypes


class Interpreted(CudaKernels, Simulator):
    """Host memory like a simulator's; kernels as on a GPU, but for what is done with their code."""

    is_simulated = predicts = False
    repeats_calls = True
    launch, pick = CompilingDriver.launch, CompilingDriver.pick

    def __init__(self, count: int = 1) -> None:
        super().__init__(count)
        self.launches: list[tuple[str, tuple[Any, ...]]] = []
        self.failure: Exception | None = None
        self.placed: list[int] = []
        self.scratch = 0  # bytes that a program of a kernel loaded from here on has for itself

    def build(self, index: int, source: Any) -> Loaded:
        """Keep the kernel itself in place of its code."""
        loaded = source.kernel, source.signature, source.constants, source.name or source.kernel.family, self.scratch
        place = (lambda: self.placed.append(index)) if self.device_count() > 1 else None
        return Loaded(loaded, self.launch_interpreted, lambda grid: grid, place, (self.scratch, 0))

    def launch_interpreted(self, queue: Any, grid: tuple[int, int, int], loaded: Any, *values: Any) -> None:
        """What cuda-core's `launch` does."""
        from tritensor.runtime.interpreter import run as interpreter

        if self.failure is not None:
            raise self.failure
        assert all(type(value) in (int, float) for value in values), values
        kernel, signature, constants, name, scratch = loaded
        self.launches.append((name, values))
        pending = iter(values[:-2])
        arguments = tuple(_argument(entry, pending) for entry in signature)
        assert next(pending, None) is None
        assert values[-1] == 0 and (values[-2] != 0) == bool(scratch)

        self._push(queue, interpreter.prepare(kernel, grid, arguments, dict(constants), name, list, self.memory))


class _Pointer:
    """What the interpreter needs to know of an array when nothing checks its addresses."""

    shape, strides, size = (1,), (1,), 1

    def __init__(self, address: int, dtype: Any) -> None:
        self.address, self.dtype, self.itemsize = address, dtype, dtype.itemsize

    def data_ptr(self) -> int:
        return self.address


_BY_TRITON = {entry.triton: entry.numpy for entry in dtypes.ALL if entry.triton}


def _argument(entry: Any, values: Iterator[Any]) -> Any:
    """An argument of a kernel from its type and the numbers of the launch."""
    if not entry or not isinstance(entry[0], str):
        return tuple(_argument(inner, values) for inner in entry)
    type, attribute = entry
    if type == "constexpr":
        return attribute
    if attribute == 1:
        return 1
    value = next(values)
    if type[0] == "*":
        assert attribute is None or value % attribute == 0
        return _Pointer(value, _BY_TRITON[type[1:]])
    if type == "fp32":
        return struct.unpack("<f", struct.pack("<i", value))[0]
    if type == "fp64":
        return Float64(value)
    return Int64(value) if type == "i64" else value


@contextmanager
def interpreted_device(count: int = 1) -> Iterator[Interpreted]:
    """The block's CUDA devices are interpreted ones that pass for real; nothing of them is remembered afterwards."""
    driver = Interpreted(count)
    replay.stop()
    # nothing is known of the arrays that kernels may touch
    with selection.use(driver), settings.sanitize(False):
        replay.begin()
        try:
            yield driver
            driver.synchronize_all()
        finally:
            replay.stop()
