"""Launch a kernel on a device, simulated or real.

    launch(copy_kernel, (blocks,), (out, x, count), {"BLOCK": 1024}, device, name="copy")

A real device runs the kernel compiled for the dtypes and alignment of its arrays and a few properties of its integers
(`plan.py`); a simulated one runs it in Triton's interpreter, in the order of the current stream (`interpreter.py`).
Triton and cuda-core are imported by the first launch.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from .. import drivers, settings
from ..errors import DeviceError, KernelError, explain
from . import program as plans
from .source import DeviceFunction, Float64, Int64, Kernel, device_function, kernel

__all__ = [
    "Bound",
    "DeviceFunction",
    "Float64",
    "Int64",
    "Kernel",
    "bind",
    "compile_ahead",
    "device_function",
    "kernel",
    "launch",
]


# Names, and rows of as many device arrays.
Reaches = tuple[Sequence[str], Sequence[Sequence[Any]]]


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
    """Run `kernel` over `grid` on `device`, after what the current stream holds already.

    Args:
        grid: one to three sizes; with a 0 among them nothing is launched.
        arguments: in the kernel's order, its run-time parameters alone. Each is a device array (a pointer to its first
            element), an int (int32, or int64 where it does not fit), `Int64`, a float (float32), `Float64`, or a tuple
            of these, nested at will. A bool, a str or None is a constant of the compilation.
        constants: a value for each `tl.constexpr` parameter without a default: device functions, our dtypes, numbers,
            strings, None, and tuples of these.
        warps, stages: Triton's num_warps and num_stages.
        name: the operator, for messages and profilers (`elementwise_silu`); the bodies' names when left out.
        reaches: what the kernel finds by addresses in memory: names, and rows of as many arrays. In simulation each
            address is held to the array that begins there, as if it were an argument.

    Raises:
        KernelError: the grid is too large, or the kernel does not compile, or fails in simulation.
        KernelMemoryError: in simulation, it touched memory outside of its arguments.
        DeviceError: there is no device, a package is missing, or the device has failed.
    """
    driver = drivers.require()
    sizes = _three(grid, kernel, name)
    if 0 in sizes:
        return
    stream = driver.current_stream(device.index)
    if reaches is not None:
        for row in reaches[1]:
            for array in row:
                if array.buffer.arena is not stream.arena:
                    array.buffer.record_stream(stream)
    if driver.is_simulated:
        _simulate(driver, stream, kernel, sizes, arguments, dict(constants), name, reaches)
        return
    values: list[Any] = []
    signature = plans.specialise(arguments, values, stream)
    plan = plans.find(driver, kernel, signature, constants, device.index, warps, stages, name)
    plan.launch(stream, sizes, values)


def _three(grid: Sequence[int], kernel: Kernel, name: str | None) -> tuple[int, int, int]:
    x, y, z = (*grid, 1, 1)[:3]
    if x >= 1 << 31 or y >= 1 << 16 or z >= 1 << 16:
        raise KernelError(
            explain(
                f"{name or kernel.family}: CUDA error: invalid configuration argument",
                f"a grid of {x} x {y} x {z} programs; CUDA takes at most 2147483647 x 65535 x 65535",
                remedy="call it for parts of the tensors",
            )
        )
    return x, y, z


class Bound:
    """A launch that is repeated with other arrays of the same dtypes, shapes and strides. Made by `bind`."""

    __slots__ = ("_arguments", "_options", "_plan", "_sizes", "_tail")

    def __init__(self, arguments: tuple, options: dict[str, Any], plan: Any, sizes: tuple, tail: tuple) -> None:
        self._arguments, self._options, self._plan, self._sizes, self._tail = arguments, options, plan, sizes, tail

    def __call__(self, *values: Any) -> None:
        """Launch with these arrays (and numbers) in place of the bound ones, counted through the arguments in order."""
        plan = self._plan
        if plan is not None:
            stream = plan.driver.current_stream(plan.device)
            taken: list[float] = []
            alignment = 0
            for value in values:
                kind = value.__class__
                if kind is float:
                    taken.append(plans.float_bits(value))
                elif kind is Int64:
                    taken.append(int(value))
                elif kind is Float64:
                    taken.append(float(value))
                else:
                    buffer = value.buffer
                    if buffer.arena is not stream.arena:
                        buffer.record_stream(stream)
                    address = buffer.address + value.offset * value.dtype.itemsize
                    alignment |= address
                    taken.append(address)
            if not alignment & 15:
                plan.launch(stream, self._sizes, (*taken, *self._tail))
                return
        kernel, grid, arguments, constants, device = self._arguments
        launch(kernel, grid, _fill(arguments, iter(values)), constants, device, **self._options)


def bind(
    kernel: Kernel,
    grid: Sequence[int],
    arguments: tuple,
    constants: Mapping[str, Any],
    device: Any,
    *,
    warps: int = 4,
    stages: int = 3,
    name: str | None = None,
    numbers: bool = False,
) -> Bound:
    """Prepare a launch that is repeated with other arrays; the parameters are `launch`'s. Runs nothing yet.

    On a real device a call of the result skips the specialisation: 1.3 us of Python in place of 3 to 7. It needs the
    arrays to come before all else in the kernel's arguments and to be aligned to 16 bytes; a call with other arrays
    takes the ordinary way. The result keeps no array alive.

    With `numbers`, arguments of the classes float, `Float64` and `Int64` are given anew with each call as well, in
    their place among the arrays. The kernel is never compiled for their values.
    """
    driver = drivers.require()
    sizes = _three(grid, kernel, name)
    plan, tail = None, ()
    if not driver.is_simulated and 0 not in sizes:
        stream = driver.current_stream(device.index)
        values: list[Any] = []
        signature = plans.specialise(arguments, values, stream)
        given = len(list(_arrays(arguments, numbers)))
        if plans.given_first(signature, given):
            plan = plans.find(driver, kernel, signature, constants, device.index, warps, stages, name)
            tail = tuple(values[given:])
    options = {"warps": warps, "stages": stages, "name": name}
    return Bound((kernel, grid, _emptied(arguments, numbers), constants, device), options, plan, sizes, tail)


_PLAIN = (int, float, str)
_NUMBERS = frozenset((float, Float64, Int64))


def _given(value: Any, numbers: bool) -> bool:
    """Whether a launch that is repeated takes another value in this one's place."""
    if value is None or isinstance(value, _PLAIN):
        return numbers and value.__class__ in _NUMBERS
    return True


def _arrays(arguments: tuple, numbers: bool = False) -> Iterator[Any]:
    for value in arguments:
        if isinstance(value, tuple):
            yield from _arrays(value, numbers)
        elif _given(value, numbers):
            yield value


_HOLE = object()  # stands for what is given with each call of a bound launch, which must not keep memory alive


def _emptied(arguments: tuple, numbers: bool) -> tuple:
    return tuple(
        _emptied(value, numbers) if isinstance(value, tuple) else _HOLE if _given(value, numbers) else value
        for value in arguments
    )


def _fill(arguments: tuple, arrays: Iterator[Any]) -> tuple:
    return tuple(
        _fill(value, arrays) if isinstance(value, tuple) else next(arrays) if value is _HOLE else value
        for value in arguments
    )


def _simulate(
    driver: Any,
    stream: Any,
    kernel: Kernel,
    sizes: tuple,
    arguments: tuple,
    constants: dict[str, Any],
    name: str | None,
    reaches: Reaches | None,
) -> None:
    interpreter = _needs_triton("interpreter.run", name or kernel.__name__)
    for array in _arrays(arguments):
        array.buffer.record_stream(stream)
    index = stream.device.index
    # Memory may be given back before a late kernel runs, behind it in the stream's order; a prompt one runs at once,
    # and one that is captured at each replay.
    late = settings.simulate_late.value and id(stream.handle) not in driver.captures
    live = driver.spans(index) if late else None
    name = name or kernel.family
    run = interpreter.prepare(
        *(kernel, sizes, arguments, constants, name),
        lambda: driver.spans(index) if live is None else live,
        driver.memory,
        reaches,
    )
    driver.submit(stream, run)


def compile_ahead(
    kernel: Kernel,
    signature: Sequence[Any],
    constants: Mapping[str, Any],
    target: tuple[str, int | str] = ("cuda", 90),
    warps: int = 4,
    stages: int = 3,
    name: str | None = None,
) -> Any:
    """Compile a kernel for a target that need not be present, and say what came out. For tests and benchmarks.

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
    compiler = _needs_triton("compiler", name or kernel.__name__)
    return compiler.compile_ahead(kernel, signature, constants, target, warps, stages, name)


def _needs_triton(module: str, name: str) -> ModuleType:
    """A module of this package that imports Triton."""
    try:
        return importlib.import_module(f".{module}", __package__)
    except ImportError as error:
        raise DeviceError(
            explain(
                f"{name}: running kernels needs Triton, which cannot be imported",
                str(error),
                remedy='pip install "tritensor[triton]" (Linux)',
            )
        ) from error
