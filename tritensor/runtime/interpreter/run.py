"""Runs a kernel on simulated devices: the grid as a loop, Triton's language as NumPy. Imports Triton.

Triton's interpreter replaces the functions of `triton.language` by ones that compute. Here they are replaced for one
launch only, under a lock, so that the same process can compile kernels too. The list of replacements is made once, and
swapping takes 0.1 ms.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice, product
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import cuda as for_cuda
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction, KernelInterface

from ... import settings
from ...drivers.lines import arranged
from ...drivers.shadow import Shadow
from ...errors import DeviceError, KernelError, KernelMemoryError, TritensorError
from ...types import dtypes
from ..needs_triton import language
from ..source import NUMBER_TYPES, NUMPY, Address, Descriptor, DeviceFunction, Kernel, reinterpret
from . import builder, libdevice
from . import folds as reduction
from .builder import Guard, Span, TensorHandle, numpy_dtype, semantic
from .turns import Turns
from .watching import raised_at


@dataclass(frozen=True, slots=True)
class _Pointer:
    """An array among a launch's arguments, reduced to its address, so that it keeps no memory alive."""

    address: int
    type: str  # Triton's name of its elements' type
    span: int | None  # which of the launch's spans it may touch; None: any memory that is in use


def prepare(
    kernel: Kernel,
    grid: tuple[int, int, int],
    arguments: tuple,
    constants: dict[str, Any],
    name: str,
    allocations: Callable[[], list[tuple[int, int, str]]],
    memory: Callable[[int, int], object],
    reaches: Any = None,
) -> Callable[..., None]:
    """Capture a launch with its current addresses and settings; returns a function that runs it later.

    The function takes the number of the program to begin with, where others have run otherwise.

    The programs run one after another, in the order of `settings.grid_order`; those of a cooperative launch by turns.
    With `settings.sanitize`, the function
    raises KernelMemoryError when a program accesses memory outside of its arguments, or when the memory of an argument
    has been freed in the meantime. It raises KernelError when the kernel fails in another way.

    Args:
        allocations: called for the live memory of the device when a pointer's origin is not known.
        memory: called with an address and a number of bytes; raises DeviceError when that memory has been freed.
        reaches: see `launch`.

    Raises:
        KernelError: the kernel takes another number of arguments.
    """
    if len(arguments) != len(kernel.arguments):
        raise KernelError(
            f"{name}: kernel {kernel.__name__} takes {len(kernel.arguments)} arguments, got {len(arguments)}",
            f"they are {', '.join(kernel.arguments)}",
        )
    spans: list[Span] = []
    operands = {
        label: _operand(value, f"argument {position} ({label}", spans, kernel.elements)
        for position, (label, value) in enumerate(zip(kernel.arguments, arguments))
    }
    order, together = settings.grid_order.value, kernel.cooperative
    guard = None
    if settings.sanitize.value:
        first_reached = len(spans)
        for number, row in enumerate(reaches[1] if reaches else ()):
            for label, value in zip(reaches[0], row, strict=True):
                spans.append(_span(value, f"{label}[{number}]"))
        guard = Guard(name, spans, allocations, first_reached)

    def run(first: int = 0) -> None:
        if guard is not None:
            _check_memory(name, spans, memory)
        with language, _interpreted_language(), np.errstate(all="ignore"):
            values = {label: _typed_argument(value) for label, value in operands.items()}
            fixed = {key: value for key, value in kernel.defaults.items() if key in kernel.constants}
            values.update((key, _resolve(value)) for key, value in {**fixed, **constants}.items())
            function = _interpreted(kernel)
            working = semantic.builder
            working.guard, working.name, working.shadow = guard, name, Shadow.watching
            working.set_grid_dim(*grid)
            # a new iterator: a captured launch runs more than once
            programs = islice(_programs(grid, order), 0 if together else first, None)
            try:
                if together:
                    if guard is not None:
                        live = allocations()  # whose lock this thread holds
                        guard.allocations = lambda: live
                    working.turns = Turns(working)
                    working.turns.run([*programs], lambda: function(**values))
                for program in programs:
                    working.grid_idx = program
                    function(**values)
            except TritensorError:
                raise
            except NotImplementedError as error:
                raise KernelError(
                    f"{name}: kernel {kernel.__name__} uses what Triton's interpreter lacks",
                    f"program {working.grid_idx}: {error}",
                    remedy="run it as it is compiled: tritensor.cuda.simulate(compiled=True)",
                ) from error
            except Exception as error:
                raise KernelError(
                    f"{name}: kernel {kernel.__name__} failed in simulation",
                    f"at {raised_at(error)}, program {working.grid_idx}: {type(error).__name__}: {error}",
                ) from error
            finally:
                working.guard = working.shadow = working.turns = None

    return run


def _check_memory(name: str, spans: list[Span], memory: Callable[[int, int], object]) -> None:
    for span in spans:
        if span.high > span.low:
            try:
                memory(span.low, span.high - span.low)
            except DeviceError as error:
                raise KernelMemoryError(
                    f"CUDA error: an illegal memory access was encountered in {name}",
                    f"the memory of {span.label} was given back before the kernel ran",
                    remedy="call Buffer.record_stream for memory that another stream's work uses",
                ) from error


def _programs(grid: tuple[int, int, int], order: str) -> Iterator[tuple[int, int, int]] | list[tuple[int, ...]]:
    programs = product(*map(range, grid))
    return programs if order == "forward" else arranged(programs, order)  # type: ignore[return-value]


def _operand(value: Any, label: str, spans: list[Span], elements: Mapping[str, str]) -> Any:
    """An argument as a device receives it: numbers unchanged, arrays as addresses."""
    if isinstance(value, Descriptor):
        return Descriptor((_operand(value[0], label, spans, elements), *value[1:]))
    if isinstance(value, tuple):
        return tuple(_operand(entry, f"{label}[{index}]", spans, elements) for index, entry in enumerate(value))
    if isinstance(value, Address):
        return _Pointer(int(value), elements.get(value.dtype.name, value.dtype.triton), None)
    if value is None or isinstance(value, (bool, str, int, float)):  # those of a `number_type` among them
        return value
    spans.append(_span(value, f"{label})"))
    entry = dtypes.of(value.dtype)
    return _Pointer(spans[-1].base, elements.get(entry.name, entry.triton), len(spans) - 1)


def _span(value: Any, label: str) -> Span:
    """The memory of an array that a kernel may access."""
    address = value.data_ptr()
    reach = [(size - 1) * stride for size, stride in zip(value.shape, value.strides)]
    low = address + sum(step for step in reach if step < 0) * value.itemsize
    high = address + (sum(step for step in reach if step > 0) + 1) * value.itemsize if value.size else low
    text = f"{label}, {dtypes.of(value.dtype).name} of shape {tuple(value.shape)}"
    return Span(low, high, address, value.itemsize, text)


def _typed_argument(value: object) -> Any:
    """The value that the kernel receives: a pointer, a typed number, or a tuple of these."""
    if isinstance(value, Descriptor):
        base, shape, strides, block, padding = value
        wide = [builder.block(np.array(step, np.int64), tl.int64) for step in strides]
        sizes, base = [*map(semantic.to_tensor, shape)], _typed_argument(base)
        return semantic.make_tensor_descriptor(base, sizes, wide, [*map(tl.constexpr, block)], padding)
    if isinstance(value, tuple):
        return tuple(map(_typed_argument, value))
    if isinstance(value, _Pointer):
        type = tl.pointer_type(tl.str_to_ty(value.type, None))
        origin = {} if value.span is None else {"argument": value.span}
        return tl.tensor(TensorHandle(np.array([value.address], np.uint64), type, origin), type)
    if name := NUMBER_TYPES.get(value.__class__):
        return builder.block(np.array(value, NUMPY[name]), tl.str_to_ty(name, None))
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return semantic.to_tensor(value)
    return builder.block(np.array(value, np.float32), tl.float32)


def _dtype(entry: dtypes.dtype) -> Any:
    return tl.str_to_ty(entry.triton, None)


def _resolve(value: Any) -> Any:
    """The value of a global name or a constant in a kernel that is interpreted."""
    if isinstance(value, (DeviceFunction, Kernel)):
        return _interpreted(value)
    if isinstance(value, tl.constexpr):
        return value.value
    if isinstance(value, dtypes.dtype):
        return _dtype(value)
    if type(value) is tuple:
        return tuple(map(_resolve, value))
    if isinstance(value, KernelInterface):  # @triton.jit, Triton's own or a user's
        return _library_function(value)
    if getattr(value, "__module__", None) in _LIBDEVICE and callable(value):  # imported by its name
        return getattr(libdevice, value.__name__, _absent(value.__name__))
    if tl.core.is_builtin(value):  # likewise, of Triton's language
        return _computing(value, False)
    return value


# the functions stand in the first without a body, and in the second as the compiler takes them
_LIBDEVICE = ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice")


def _absent(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise KernelError(
            f"libdevice.{name} is not interpreted", remedy="run it compiled: tritensor.cuda.simulate(compiled=True)"
        )

    return refuse


def _typed(value: object) -> Any:
    if type(value) is tuple:
        return tuple(map(_typed, value))
    return value if isinstance(value, tl.core.tensor_descriptor_base) else semantic.to_tensor(value, False)


def _interpreted(function: DeviceFunction | Kernel) -> Any:
    if function.interpreted_form is None:
        names = {"tl": tl, "triton": triton, "libdevice": libdevice, "range": _counted}
        function.interpreted_form = reinterpret(function.function, names, _resolve, _MEANING)
    return function.interpreted_form


_stand_ins: dict[int, Any] = {}  # by id: Triton computes the hash of a JITFunction from what it calls, which is swapped


def _library_function(function: Any) -> Any:
    """An ordinary function in place of a JITFunction such as `tl.sum`; it is rewritten when first called."""
    if id(function) in _stand_ins:
        return _stand_ins[id(function)]
    made: list[Any] = []

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        if not made:
            made.append(reinterpret(function.fn, {"range": _counted}, _resolve, _MEANING))
        return made[0](*args, **kwargs)

    stand_in.fn, stand_in.original = stand_in, function  # type: ignore[attr-defined]
    _stand_ins[id(function)] = stand_in
    return stand_in


def _counted(*bounds: Any, **hints: Any) -> Iterator[Any]:
    """`range` and `tl.range` in a kernel: the counter is an int32 scalar, or int64 if one of the bounds is."""
    wide = any(isinstance(bound, tl.tensor) and bound.dtype.primitive_bitwidth == 64 for bound in bounds)
    kind = tl.int64 if wide else tl.int32
    for number in range(*map(_index, bounds)):
        yield builder.block(np.array(number, numpy_dtype(kind)), kind)


def _index(value: Any) -> int:
    # Triton 3.6 calls int() on an array of one element, which NumPy 2.4 refuses.
    return value.handle.data.item() if isinstance(value, tl.tensor) else value.__index__()


def _truth(value: Any) -> bool:
    # Triton's own code tests whether a block is present; a condition in kernel code has been through `_scalar`.
    data = value.handle.data
    return bool(data.item()) if data.size == 1 else True


def _scalar(value: object) -> Any:
    if isinstance(value, tl.tensor) and value.handle.data.size != 1:
        raise KernelError("a condition in a kernel must be one value, not a block: write tl.where in place of `if`")
    return value


def _logic(operator: str, *parts: Any) -> Any:
    """`and`, `or` and `not` as in the compiler: constants cut evaluation short, tensors are combined elementwise."""
    if operator == "not":
        return parts[0].__not__() if isinstance(parts[0], tl.tensor) else not parts[0]
    result: Any = None
    for part in parts:
        value = part()
        if isinstance(value, tl.tensor):
            if isinstance(result, tl.tensor):
                result = result.logical_and(value) if operator == "and" else result.logical_or(value)
            else:
                result = value
        elif bool(value) is (operator == "or"):
            return value
        elif result is None:
            result = value
    return result


_MEANING: dict[str, Any] = {"_typed": _typed, "_scalar": _scalar, "_logic": _logic}


@contextlib.contextmanager
def _interpreted_language() -> Iterator[None]:
    swaps = _swaps()
    for owner, name, new, _ in swaps:
        setattr(owner, name, new)
    try:
        yield
    finally:
        for owner, name, _, old in swaps:
            if old is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, old)


_ABSENT = object()


class _Swaps:
    """Collects the attributes to set on Triton's modules and classes; a later entry for one replaces an earlier one."""

    def __init__(self) -> None:
        self.entries: dict[tuple[int, str], tuple[Any, str, Any, Any]] = {}

    def set_attr(self, owner: Any, name: str, new: object) -> None:
        self.entries[id(owner), name] = (owner, name, new, vars(owner).get(name, _ABSENT))


@cache
def _swaps() -> list[tuple[Any, str, Any, Any]]:
    swaps = _Swaps()
    for owner in (tl, tl.core, tl.math, tl.standard, tl.random, tl.tensor, tl.core.tensor_descriptor_base):
        for name, member in inspect.getmembers(owner):
            if tl.core.is_builtin(member):
                swaps.set_attr(owner, name, _computing(member, isinstance(owner, type)))
            elif isinstance(member, KernelInterface):
                swaps.set_attr(owner, name, _library_function(member))
    interpreter._patch_lang_tensor(tl.tensor, swaps)
    for lang in (tl, tl.core):
        interpreter._patch_lang_core(lang, swaps)  # sets `reduce` and `associative_scan` in both of them
    for lang in (tl, tl.core):
        swaps.set_attr(lang, "range", _counted)
        swaps.set_attr(lang, "reduce", reduction.reduce)
        swaps.set_attr(lang, "associative_scan", reduction.associative_scan)
    for path in _LIBDEVICE:
        owner = importlib.import_module(path)
        for name in [name for name, member in vars(owner).items() if getattr(member, "__module__", None) == path]:
            swaps.set_attr(owner, name, getattr(libdevice, name, _absent(name)))
    for name, member in inspect.getmembers(for_cuda, tl.core.is_builtin):
        swaps.set_attr(for_cuda, name, _computing(member, False))
    # functions of `@triton.jit` that a kernel reaches as attributes of modules and classes
    swaps.set_attr(JITFunction, "__call__", lambda self, *args, **kwargs: _library_function(self)(*args, **kwargs))
    # a function may ask for the `value` of its parameter, which the compiler passes as a constexpr
    swaps.set_attr(tl.dtype, "value", property(lambda self: self))
    swaps.set_attr(tl.tensor, "__index__", _index)
    swaps.set_attr(tl.tensor, "__bool__", _truth)
    swaps.set_attr(interpreter, "_get_np_dtype", builder.numpy_dtype)
    return list(swaps.entries.values())


def _computing(member: Callable[..., Any], is_method: bool) -> Any:
    """A function of Triton's language that computes with `builder.Builder` when called outside of the compiler."""
    if not is_method:
        return partial(member, _semantic=semantic)

    def method(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = semantic
        return member(*args, **kwargs)

    return method
