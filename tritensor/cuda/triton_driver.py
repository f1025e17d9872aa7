"""A driver for Triton's own runtime: `kernel[grid](...)`, autotuners and `do_bench` find this package's devices.

Triton asks its active driver for the device, the stream and the target, has the kernel compiled, and passes the launch
to the driver's launcher. Here these are the devices that the thread uses, real or simulated. A simulated device that
interprets kernels compiles nothing: there a launch is taken over before Triton compiles (`user_kernel.py`).
"""

# ruff: noqa: D102  the methods are those of Triton's `DriverBase`

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numpy as np
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler import ASTSource
from triton.runtime.cache import get_cache_manager

from .. import drivers
from ..drivers import Stream
from ..drivers.loading import Compiled
from ..drivers.shadow import views_of
from ..errors import KernelError
from ..functional.creation.creation import empty
from ..memory.array import DeviceArray
from ..runtime.binary import usage
from ..runtime.program import Program, float_bits, specialise
from ..tensors import Tensor
from ..types import devices, dtypes

__all__ = ["TritonDriver", "do_bench_of"]

#: Shared memory of a block by compute capability (CUDA C++ Programming Guide, technical specifications), less 1 KB
_SHARED = {(7, 0): 95, (7, 5): 63, (8, 0): 163, (8, 7): 163, (9, 0): 227, (10, 0): 227, (10, 3): 227}
_MODES = "mean", "min", "max", "median", "all"


class Ordinal(int):
    """A device's ordinal that differs from that of another simulation, whose kernels are compiled for another target.

    Triton keeps compiled kernels by the device's number.
    """

    target: tuple[Any, ...]

    def __eq__(self, other: object) -> bool:
        return int(self) == other and getattr(other, "target", self.target) == self.target

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__


class TritonDriver(DriverBase):
    """What Triton asks of a driver."""

    def __init__(self) -> None:
        super().__init__()
        self.utils = _Utilities()
        self.launcher_cls = Launcher

    @classmethod
    def is_active(cls) -> bool:
        return drivers.count() > 0

    def get_current_device(self) -> Ordinal:
        driver = drivers.require()
        made = Ordinal(devices.current_index())
        made.target = self.get_device_capability(made), driver.kind
        return made

    def set_current_device(self, device: int) -> None:
        drivers.require().set_device(int(device))

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        found: tuple[int, int] = drivers.require().capability(
            devices.current_index() if device is None else int(device)
        )
        return found

    def get_current_stream(self, device: int | None = None) -> int:
        stream = drivers.require().current_stream(devices.current_index() if device is None else int(device))
        return int(stream.cuda_stream)

    def get_current_target(self) -> GPUTarget:
        major, minor = self.get_device_capability()
        return GPUTarget("cuda", major * 10 + minor, 32)

    def get_active_torch_device(self) -> devices.device:
        return devices.cuda(devices.current_index())

    def get_device_interface(self) -> Any:
        return sys.modules[__package__]

    def map_python_to_cpp_type(self, ty: str) -> str:
        from triton.backends.nvidia.driver import ty_to_cpp

        return str(ty_to_cpp(ty))

    def get_benchmarker(self) -> Callable[..., Any]:
        from triton import testing

        return getattr(testing.do_bench, "tune", testing.do_bench)

    def get_empty_cache_for_benchmark(self) -> Any:
        return empty(1 << 26, dtype=dtypes.int32, device="cuda")  # 256 MB, more than any level-2 cache

    def clear_cache(self, cache: Tensor) -> None:
        cache.zero_()


class _Utilities:
    """What Triton calls `driver.utils`."""

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """A module, a function, registers and spilled words of a thread, the largest number of threads of a block."""
        used = usage(kernel)
        return kernel, name, used.registers, used.local // 4, 1024

    def unload_module(self, module: object) -> None:
        """Programs stay loaded as long as their device."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        found = drivers.require().properties(int(device))
        return {
            "max_shared_mem": _SHARED.get((found.major, found.minor), 99) << 10,
            "max_num_regs": 65536,
            "multiprocessor_count": found.multi_processor_count,
            "warpSize": found.warp_size,
            "sm_clock_rate": found.clock_rate,
            "mem_clock_rate": found.memory_clock_rate,
            "mem_bus_width": found.memory_bus_width,
        }


class Launcher:
    """Launches a kernel that Triton compiled; called with grid, stream, function, hooks and the kernel's arguments."""

    def __init__(self, src: ASTSource, metadata: Any) -> None:
        group = get_cache_manager(metadata.hash).get_group(f"{src.name[:150]}.json") or {}
        texts = {Path(path).suffix: Path(path) for path in group.values()}
        if ".ptx" not in texts or ".cubin" not in texts:
            raise KernelError(
                f"{src.name}: Triton's cache lacks the kernel's code",
                "it was compiled with TRITON_STORE_BINARY_ONLY, or the cache was cleared",
                remedy="unset it, and delete Triton's cache",
            )
        self._name = str(metadata.name)
        self._types = tuple(src.signature.values())
        self._maps = list(getattr(metadata, "tensordesc_meta", None) or [])
        binary, together = texts[".cubin"].read_bytes(), bool(getattr(metadata, "launch_cooperative_grid", False))
        self._code = Compiled(
            binary,
            metadata.name,
            metadata.shared,
            metadata.num_warps,
            getattr(metadata, "global_scratch_size", 0) or 0,
            getattr(metadata, "profile_scratch_size", 0) or 0,
            texts[".ptx"].read_text(),
            getattr(metadata, "num_ctas", 1),
            together,
            True,
            registers=usage(binary).registers if together else 0,
        )
        self._key = "triton", metadata.hash

    def __call__(self, x: int, y: int, z: int, *more: Any) -> None:
        _, _, _, facts, enter, leave, *args = more  # a stream, a function and packed facts come first
        if not x * y * z:
            return
        driver = drivers.require()
        index = devices.current_index()
        current = driver.current_stream(index)
        values: list[Any] = []
        _flatten(self._types, args, iter(self._maps), current, values)
        if driver.shadow is not None:
            driver.shadow.views = views_of(args)
        if enter is not None:
            enter(facts)
        self._program(driver, index).launch(current, (x, y, z), values)
        if leave is not None:
            leave(facts)

    def _program(self, driver: Any, index: int) -> Program:
        key = (*self._key, index)
        found = driver.programs.get(key)
        if found is None:
            loaded = driver.load(index, self._code, self._name)
            found = driver.programs[key] = Program(driver, index, loaded, self._name, ())
        program: Program = found
        return program


def _flatten(types: Sequence[Any], args: Sequence[Any], maps: Iterator[Any], stream: Stream, values: list[Any]) -> None:
    """The integers and floats of a launch; memory that another stream uses is noted."""
    for kind, value in zip(types, args):
        if isinstance(kind, tuple):
            _flatten(kind, value, maps, stream, values)
        elif kind == "constexpr":
            continue
        elif kind.startswith("tensordesc"):
            values.extend(_descriptor(value, next(maps, None), stream))
        elif kind[0] == "*":
            values.append(_address(value, stream))
        elif kind in ("fp32", "f32"):
            values.append(float_bits(float(value)))
        elif kind == "fp64":
            values.append(float(value))
        elif kind == "fp16":
            values.append(int(np.float16(value).view(np.uint16)))
        elif kind == "bf16":
            values.append(float_bits(float(value)) >> 16 & 0xFFFF)
        else:
            number = int(value)
            values.append(number - (1 << 64) if number >= 1 << 63 else number)


def _address(value: Any, stream: Stream) -> int:
    """The address of a tensor's first element, of None, or of what has a `data_ptr`."""
    data = getattr(value, "_data", None)
    found: list[int] = []
    if not isinstance(data, DeviceArray):
        return 0 if value is None else int(value.data_ptr())
    specialise((data,), found, stream)  # notes that the stream uses it
    return int(found[0])


def _descriptor(value: Any, layout: dict[str, Any] | None, stream: Stream) -> list[Any]:
    """A host's `TensorDescriptor`: address, sizes and steps, or a tensor map where the kernel copies by TMA."""
    driver: Any = drivers.require()
    sizes, steps = [*map(int, value.shape)], [*map(int, value.strides)]
    base = _address(value.base, stream)
    if layout is None:
        rounds = [value.round_f32_to_tf32] if hasattr(value, "round_f32_to_tf32") else []
        return [base, *sizes, *steps, int(value.padding == "nan"), *map(int, rounds), *sizes, *steps]
    if layout.get("is_im2col"):
        raise KernelError("a descriptor of windows (im2col) is passed", remedy="pass a TensorDescriptor of tiles")
    kind = 11 if getattr(value, "round_f32_to_tf32", False) else layout["elem_type"]
    bytes_of = [step * layout["elem_size"] for step in steps]
    shape = [*sizes[:-1], 2 * sizes[-1]] if layout.get("fp4_padded") else sizes
    made = driver.tensor_map(
        base, shape, bytes_of, layout["block_size"], kind, layout["swizzle"], value.padding == "nan"
    )
    return [made, *sizes, *steps]


# ---- times ----------------------------------------------------------------------------------------------------------


@cache
def _say_that_times_are_predicted() -> None:
    warnings.warn(
        "do_bench: the device is simulated, so the time is predicted from work that was counted; nothing was measured",
        UserWarning,
        stacklevel=3,
    )


def do_bench_of(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Triton's `do_bench`, which on a simulated device predicts times from counted work."""

    def tune(fn: Callable[[], object], *args: Any, **options: Any) -> Any:
        """For autotuners, which run the kernel once more when they have chosen: of a large grid some programs do."""
        driver = drivers.active()
        if driver is None:  # kernels on tensors of the CPU
            return _measured(fn, **options)
        return _predicted(fn, 16, **options) if driver.predicts else theirs(fn, *args, **options)

    @wraps(theirs)
    def do_bench(fn: Callable[[], object], *args: Any, **options: Any) -> Any:
        driver = drivers.active()
        if driver is None:
            return _measured(fn, **options)
        if driver.predicts:
            _say_that_times_are_predicted()
            return _predicted(fn, 0, **options)
        return theirs(fn, *args, **options)

    do_bench.tune = tune  # type: ignore[attr-defined]
    return do_bench


def _predicted(
    fn: Callable[[], object],
    sample: int,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **options: Any,
) -> Any:
    """Milliseconds of the kernels that a function launches, in the form that `do_bench` returns them."""
    from .profiling.recorder import count

    return _in_form(
        [1e3 * sum(launch.predicted.seconds for launch in count(fn, sample).launches)], quantiles, return_mode
    )


def _measured(
    fn: Callable[[], object],
    rep: float = 100,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **options: Any,
) -> Any:
    """Milliseconds of a function on the processor, where there is no device: called for `rep` ms, once at least."""
    fn()
    times, end = list[float](), time.perf_counter() + rep / 1e3
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        fn()
        times.append(1e3 * (time.perf_counter() - start))
    return _in_form(times, quantiles, return_mode)


def _in_form(times: list[float], quantiles: Sequence[float] | None, return_mode: str) -> Any:
    if return_mode not in _MODES:
        raise ValueError(f"do_bench: return_mode is one of {', '.join(_MODES)}, got {return_mode!r}")
    if quantiles:
        return [float(value) for value in np.quantile(times, quantiles)]
    return times if return_mode == "all" else float(getattr(np, return_mode)(times))
