"""Launch a kernel on a device, simulated or real.

    launch(copy_kernel, (blocks,), (out, x, count), {"BLOCK": 1024}, device, name="copy")

A real device runs the kernel compiled for the dtypes and alignment of its arrays and a few properties of its integers
(`program.py`); a simulated one runs it in Triton's interpreter, in the order of the current stream (`interpreter/`).
The driver decides which of the two. Triton and cuda-core are imported by the first launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from .. import drivers
from ..drivers.loading import Target
from ..errors import ArgumentError, KernelError
from ..memory.array import DeviceArray
from ..types import devices
from . import program
from .needs_triton import needs_triton
from .program import Program, find, specialise
from .source import (
    NUMBER_TYPES,
    Address,
    Descriptor,
    DeviceFunction,
    Float64,
    Int64,
    Kernel,
    as_number,
    device_function,
    kernel,
)

__all__ = ["DeviceFunction", "Float64", "Int64", "Kernel", "as_number", "compile_ahead", "device_function", "kernel"]
__all__ += ["check_argument", "launch"]


# Names, and rows with one device array for each name.
Reaches = tuple[Sequence[str], Sequence[Sequence[Any]]]
_ARENA = attrgetter("buffer.arena")


def launch(
    kernel: Kernel,
    grid: Sequence[int],
    arguments: tuple,
    constants: Mapping[str, Any],
    device: Any,
    *,
    warps: int = 4,
    stages: int = 3,
    name: str | None = None,
    reaches: Reaches | None = None,
) -> None:
    """Run `kernel` over `grid` on `device`, in the order of the current stream.

    Args:
        grid: one to three sizes; if one of them is 0, nothing is launched; nor is it on `meta`.
        arguments: the run-time parameters, in the kernel's order. Each is a device array (a pointer to its first
            element), an int (int32, or int64 where it does not fit), `Int64`, a float (float32), `Float64`, or a tuple
            of these, which may be nested. A bool, a str or None is a constant of the compilation.
        constants: a value for each `tl.constexpr` parameter without a default: device functions, tritensor's dtypes,
            numbers, strings, None, and tuples of these.
        warps, stages: Triton's num_warps and num_stages.
        name: the operator, for messages and profilers (`elementwise_silu`); the bodies' names when left out.
        reaches: the arrays that the kernel accesses by addresses it reads from memory: names, and rows with one array
            for each name. In simulation each such address is checked against the array that begins there, like a
            pointer argument.

    Raises:
        ArgumentError: an argument is none of these: a NumPy scalar, for example.
        KernelError: the grid is too large, or the kernel does not compile, or fails in simulation.
        KernelMemoryError: in simulation, it touched memory outside of its arguments.
        DeviceError: there is no device, a package is missing, or the device has failed.
    """
    if device is devices.meta:
        return
    driver: Any = drivers.require() if device is not devices.cpu else _host()
    sizes = _three(grid, kernel, name)
    if 0 in sizes:
        return
    stream = driver.current_stream(device.index or 0)
    if reaches is not None:
        # in one pass in C: an optimizer's step reaches 1200 arrays, mostly of one arena
        if {*map(_ARENA, chain.from_iterable(reaches[1]))} != {stream.arena}:
            for array in chain.from_iterable(reaches[1]):
                if array.buffer.arena is not stream.arena:
                    array.buffer.record_stream(stream)
    driver.launch(stream, Request(kernel, sizes, arguments, constants, warps, stages, name, reaches))


def _host() -> Any:
    from ..drivers.native.host import host

    return host()


def _three(grid: Sequence[int], kernel: Kernel, name: str | None) -> tuple[int, int, int]:
    x, y, z = (*grid, 1, 1)[:3]
    if x >= 1 << 31 or y >= 1 << 16 or z >= 1 << 16:
        raise KernelError(
            f"{name or kernel.family}: CUDA error: invalid configuration argument",
            f"a grid of {x} x {y} x {z} programs; CUDA takes at most 2147483647 x 65535 x 65535",
            remedy="call it for parts of the tensors",
        )
    return x, y, z


def _arrays(arguments: tuple) -> Iterator[Any]:
    for value in arguments:
        if isinstance(value, tuple):
            yield from _arrays(value)
        elif not (value is None or isinstance(value, (int, float, str))):
            yield value


_NUMBERS = frozenset((int, float, bool, str, Address, type(None)))


def check_argument(name: str, label: str, value: object) -> None:
    """Refuse what has no type in a kernel. A subclass has none either: `numpy.float64` is one of float."""
    if value.__class__ is Descriptor:
        check_argument(name, label, value[0])
    elif value.__class__ is tuple:
        for index, inner in enumerate(value):
            check_argument(name, f"{label}[{index}]", inner)
    elif not (value.__class__ in _NUMBERS or value.__class__ in NUMBER_TYPES or isinstance(value, DeviceArray)):
        scalar = hasattr(value, "item")
        raise ArgumentError(
            f"{name}: a kernel takes int, float, tensors on its device, and tuples of these",
            f"argument {label} is a {type(value).__module__}.{type(value).__qualname__}",
            remedy=f"pass {label}.item(), or a tensor on the device" if scalar else f"pass {label} as one of them",
        )


class Request:
    """One launch, which the driver either compiles or interprets (`drivers.loading.LaunchRequest`)."""

    __slots__ = ("arguments", "constants", "grid", "kernel", "name", "reaches", "stages", "warps")

    def __init__(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        arguments: tuple,
        constants: Mapping[str, Any],
        warps: int,
        stages: int,
        name: str | None,
        reaches: Reaches | None = None,
    ) -> None:
        self.kernel, self.grid, self.arguments, self.constants = kernel, grid, arguments, constants
        self.warps, self.stages, self.name, self.reaches = warps, stages, name, reaches

    def compiled(self, driver: Any, stream: Any) -> tuple[Program, list[Any]]:
        """The program, compiled and loaded if the driver does not have it yet, and the values to launch it with."""
        values: list[Any] = []
        try:
            signature = specialise(self.arguments, values, stream)
        except AttributeError:  # of what is no array; looking for it first would cost every launch
            self._check()
            raise
        index = stream.arena.heap.index
        found = find(driver, self.kernel, signature, self.constants, index, self.warps, self.stages, self.name)
        if program.observer is not None and not driver.repeats_calls:
            program.observer.interpreted()
        elif program.observer is not None:
            program.observer.launched(found, self.grid, values, self.arguments)
        return found, values

    def _check(self) -> None:
        for label, value in zip(self.kernel.arguments, self.arguments):
            check_argument(self.name or self.kernel.__name__, label, value)

    def interpreted(
        self, stream: Any, spans: Callable[[], list[tuple[int, int, str]]], memory: Callable[[int, int], Any]
    ) -> Callable[..., None]:
        """The launch as a function on host memory; `spans` lists live buffers, `memory` returns bytes at an address."""
        interpreter = needs_triton("interpreter.run", self.name or self.kernel.__name__)
        self._check()
        for array in _arrays(self.arguments):
            array.buffer.record_stream(stream)
        if program.observer is not None:
            program.observer.interpreted()
        run: Callable[..., None] = interpreter.prepare(
            *(self.kernel, self.grid, self.arguments, dict(self.constants), self.name or self.kernel.family),
            spans,
            memory,
            self.reaches,
        )
        return run


def compile_ahead(
    kernel: Kernel,
    signature: Sequence[Any],
    constants: Mapping[str, Any],
    target: Target = ("cuda", 90),
    warps: int = 4,
    stages: int = 3,
    name: str | None = None,
) -> Any:
    """Compile a kernel for a target that need not be present; for tests and benchmarks.

    Args:
        signature: Triton's type of each run-time argument in order, nested tuples for tuple arguments. Add ":16" to
            a pointer that is aligned to 16 bytes or an integer that is divisible by 16, ":1" to an integer that is
            1: `(("*fp32:16",), "i32:16", "fp32")`. A constant in place of a number is True, False, None or
            "constexpr:text".
        constants: a value for each constexpr parameter.
        target: ("cuda", 80), ("cuda", 90), ("cuda", 100) or ("hip", "gfx942").

    Returns:
        CompiledFacts: name, asm (texts by stage), binary, shared, warps, registers, local_bytes.

    Raises:
        KernelError: Triton refuses the kernel.
        DeviceError: Triton is not installed.
    """
    compiler = needs_triton("compiler", name or kernel.__name__)
    return compiler.compile_ahead(kernel, signature, constants, target, warps, stages, name)
