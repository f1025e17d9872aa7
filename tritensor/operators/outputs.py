"""`out=`: results written into tensors that the caller passes, with PyTorch's rules, in one place for all functions.

The function runs as it does without `out`, and its result is copied. An `Into` says what a function accepts: PyTorch's
functions differ in that. `takes_out` gives a function the parameter. Those for which the call that it adds would cost
more than 3 %, and those that warn about the line of their caller, have the parameter themselves and call `into`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..autograd.gradients import is_written
from ..autograd.mode import recording
from ..autograd.precision import casts, state, without_casts
from ..errors import ArgumentError, AutogradError, DeviceMismatchError, DtypeError, ShapeError, describe_tensor, warn
from ..ground.arguments import UNEXPECTED, recovered, shown_options
from ..ground.composing import shown_as
from ..ground.public import method
from ..memory import buffer
from ..memory.array import DeviceArray
from ..tensors import Tensor
from ..types import dtypes, formats, layout
from .copying import copy_into
from .determinism import determinism, fill_new
from .inplace import check_writable, write, write_natively

Made = TypeVar("Made")
_RESIZED = (
    "An output with one or more elements was resized since it had shape {had}, which does not match the required "
    "output shape {needed}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized "
    "unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
    "elements with t.resize_(0)."
)


class Into(NamedTuple):
    """The forms of the argument `out` that a function accepts.

    Attributes:
        dtype: "same" as the result's ("object": with another error); "cast": any that the result's can be promoted to
            ("joined": with another error); "any"; "truth": bool or uint8; "boolean"; "computed": it computes in that
            dtype, which it gets as its argument `dtype`; "made": likewise, and it makes the result on that device.
        apart: "wholly" if `out` may share no memory with an input, "partly" if it may be the input itself, "sources" if
            it may be the first one itself.
        warning: given when a tensor with elements is resized.
        flat: a tensor of another shape with as many elements keeps its shape.
        words: the error for another dtype than "same".
    """

    dtype: str = "same"
    apart: str = ""
    warning: str = _RESIZED
    flat: bool = False
    words: str = "Expected out tensor to have dtype {kind.cpp}, but got {wanted.cpp} instead"


SAME = Into()
ELEMENTWISE = Into("cast", "partly")
SELECTED = Into("same", "wholly")
SCATTERED = Into("same", "sources")
JOINED = Into("joined", "wholly")
COMPUTED = Into("computed")
MADE = Into("made", warning="")


_OUT = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Tensor | None")
_SEVERAL = _OUT.replace(annotation="Any")  # of functions that may have several results


def takes_out(rule: Into | Callable[..., Into] = SAME) -> Callable[[Any], Any]:
    """A decorator that gives a function the parameter `out`; its attribute `plain` is the function without it.

    Args:
        rule: what it accepts; the result's own dtype only unless given. A function of the call's arguments where it
            depends on those.
    """

    def declare(function: Callable[..., Any]) -> Any:
        def call(*args: Any, out: Any = None, **named: Any) -> Any:
            try:
                if out is None:
                    return function(*args, **named) if named else function(*args)
                return into(function, rule, out, args, named)
            except UNEXPECTED as error:
                return recovered(function, call, args, named, error, out=out)

        return with_out(call, function)

    return declare


def with_out(call: Any, function: Any) -> Any:
    """The form of a function that takes `out`, with its name, and the signature that it shows."""
    shown = shown_options(inspect.signature(function))
    parameters = list(shown.parameters.values())
    place = len(parameters) - (parameters[-1].kind is inspect.Parameter.VAR_KEYWORD)
    parameters.insert(place, _OUT if shown.return_annotation == "Tensor" else _SEVERAL)
    call.plain = function
    shown = shown.replace(parameters=parameters)
    return shown_as(call, function.__name__, function.__doc__, shown, function.__module__)


def into(
    function: Callable[..., Made],
    rule: Into | Callable[..., Into],
    out: Any,
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> Made:
    """Call a function and write its results into `out`, a tensor, or a tuple of them for several results.

    Raises:
        ArgumentError: `out` is something else. AutogradError: an argument requires a gradient. DtypeError,
        DeviceMismatchError: a result does not fit. ShapeError: memory is shared. Nothing has changed then.
    """
    if casts.on and state.types:
        return without_casts(into, function, rule, out, args, named)
    name = function.__name__
    if not isinstance(rule, Into):
        rule = rule(*args, **named)
    targets: Sequence[Tensor] = out if isinstance(out, (tuple, list)) else (out,)
    for target in targets:
        if not isinstance(target, Tensor):
            raise ArgumentError(f"{name}(): argument 'out' must be Tensor, not {type(target).__name__}")
        if target._needs and recording.enabled:
            raise _no_gradient(name, target)
        check_writable(target)
    if len(targets) == 1 and write_natively(targets[0], getattr(function, "operator", function), args, named):
        return targets[0]  # type: ignore[return-value]
    requires_grad = bool(rule.dtype == "made" and named.pop("requires_grad", False))
    if rule.dtype in ("made", "computed"):
        named = {**named, **_asked_for(targets[0], rule, named)}
    result = function(*args, **named)
    results = result if isinstance(result, tuple) else (result,)
    if isinstance(result, tuple) != isinstance(out, (tuple, list)):
        wanted = "tuple of Tensors" if isinstance(result, tuple) else "Tensor"
        raise ArgumentError(f"{name}(): argument 'out' must be {wanted}, not {type(out).__name__}")
    if len(results) != len(targets):
        raise ArgumentError(f"expected tuple of {len(results)} elements but got {len(targets)}")
    for target, value in zip(targets, results, strict=True):
        if value._needs and not is_written(value):
            raise _no_gradient(name, value)
        _check(rule if value is results[0] else SAME, target, value, name)
        for position, source in enumerate(_tensors((*args, *named.values())) if rule.apart else ()):
            wholly = rule.apart == "wholly" or (rule.apart == "sources" and position > 0)
            _check_apart(target, source, wholly)
    for target, value in zip(targets, results, strict=True):
        _store(rule, target, value)
    if requires_grad:
        out.requires_grad_()
    made: Any = (
        type(result)(*targets) if hasattr(result, "_fields") else tuple(targets) if len(targets) > 1 else targets[0]
    )
    return made


def _no_gradient(name: str, tensor: Tensor) -> AutogradError:
    return AutogradError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad.",
        describe_tensor(tensor, "it"),
        remedy="leave out=, or call it under no_grad()",
    )


def _asked_for(target: Tensor, rule: Into, named: dict[str, Any]) -> dict[str, Any]:
    """The dtype (and device) of `out`, as arguments of the function."""
    kind = dtypes.of_argument(named.get("dtype"))
    if kind is not None and kind is not target.dtype:
        if rule.dtype == "computed":
            raise DtypeError(rule.words.format(kind=kind, wanted=target.dtype))
        raise DtypeError(f"dtype {kind.legacy} does not match dtype of out parameter ({target.dtype.legacy})")
    if rule.dtype == "computed":
        return {"dtype": target.dtype}
    if named.get("device") is not None and Tensor.new_empty(target, 0, device=named["device"]).device != target.device:
        raise DeviceMismatchError(
            f"device type {named['device']} does not match device type of out parameter ({target.device})"
        )
    return {"dtype": target.dtype, "device": target.device}


def _check(rule: Into, target: Tensor, value: Tensor, name: str) -> None:
    """Raise unless a result's dtype and device fit."""
    kind, wanted = value.dtype, target.dtype
    if value.device != target.device:
        raise DeviceMismatchError(
            f"Expected all tensors to be on the same device, but found at least two devices, {value.device} and "
            f"{target.device}!",
            describe_tensor(target, "out"),
            remedy=f"pass a tensor on {value.device} as out",
        )
    if rule.dtype == "joined" and kind.category > wanted.category:
        raise ArgumentError(
            f"torch.cat(): input types ({kind.legacy}) can't be cast to the desired output type {wanted.legacy}"
        )
    if rule.dtype == "cast" and kind.category > wanted.category:
        raise DtypeError(f"result type {kind.legacy} can't be cast to the desired output type {wanted.legacy}")
    if rule.dtype == "boolean" and wanted is not dtypes.bool_:
        raise DtypeError(f"{name} does not support non-boolean outputs.", f"the dtype of out is {wanted}")
    if rule.dtype == "object" and kind is not wanted:
        words = f"Expected object of scalar type {kind.legacy} but got scalar type {wanted.legacy}"
        raise DtypeError(f"{words} for argument 'out'")
    same = rule.dtype == "same" or (rule.dtype == "truth" and wanted is not dtypes.uint8)
    if same and kind is not wanted:
        raise DtypeError(rule.words.format(kind=kind, wanted=wanted))


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)


def _check_apart(target: Tensor, source: Tensor, wholly: bool) -> None:
    """Raise if both share memory, except where one is the other, unless they must be `wholly` apart."""
    if target.device != source.device or not target.numel() or not source.numel():
        return
    itself = target._data is source._data
    if not itself:
        for x in (target, source):
            if not formats.is_dense(tuple(x._data.shape), x.stride()):
                return  # to tell would take long; PyTorch does not either
        first, second = target.data_ptr(), source.data_ptr()
        if first >= second + source.nbytes or second >= first + target.nbytes:
            return
        itself = first == second and target.nbytes == source.nbytes and target.stride() == source.stride()
    if wholly or not itself:
        raise ShapeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def _store(rule: Into, target: Tensor, value: Tensor) -> None:
    """Write a result, into a tensor that is resized where it has another shape."""
    shape = tuple(value._data.shape)
    if rule.flat and value.numel() == target.numel():
        value = value.reshape(target.shape)
    elif shape != target._data.shape:
        if rule.warning and target.numel():
            had = list(target.shape)
            counts = {"count": target.numel(), "wanted": value.numel()}
            warn(rule.warning.format(had=had, needed=list(shape), **counts))
        target._data = _resized(target, shape, layout.contiguous_strides(shape))
    write(target, value.to(target.device, target.dtype))


# ---- resizing -------------------------------------------------------------------------------------------------


@method()
def resize_(self: Tensor, *sizes: Any, size: Any = None, memory_format: Any = formats.contiguous_format) -> Tensor:
    """Give the tensor another size, in its memory where that is large enough, else in new memory.

    Elements are those in memory, in its order; new ones are uninitialised. Another tensor over the memory keeps its
    own, also where this tensor gets new memory.

    >>> import tritensor as torch
    >>> torch.arange(6).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])

    Raises:
        AutogradError: the tensor requires a gradient. ShapeError: a negative size.
    """
    shape = layout.check_shape("resize_", "size", sizes, size)
    if self._needs:
        raise AutogradError("cannot resize variables that require grad")
    if shape != self._data.shape or memory_format is not formats.contiguous_format:
        self._data = _resized(self, shape, formats.strides_of("resize_", memory_format, shape, self.stride()))
        counter = self._counter = self._counter or [0, 0]
        counter[0] += 1
    return self


def _resized(x: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """An array of another size that begins where the tensor's does."""
    data, count = x._data, prod(shape)
    if data.__class__ is DeviceArray:
        if (data.offset + count) * data.itemsize <= data.buffer.nbytes:
            return data.as_strided(shape, strides, data.offset)
        flat = buffer.empty((count,), data.dtype, data.device)
        kept = data.buffer.nbytes // data.itemsize - data.offset
        copy_into(flat[:kept], data.as_strided((kept,), (1,), data.offset))
        if determinism.fills:
            fill_new(flat[kept:])
        return flat.as_strided(shape, strides, 0)
    host = root = x._host_array()
    while isinstance(root.base, np.ndarray):
        root = root.base
    steps = tuple([step * host.itemsize for step in strides])
    offset = host.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    kept = max(0, root.nbytes - offset) // max(host.itemsize, 1) if root.flags.forc else 0
    if count <= kept:
        return np.ndarray(shape, host.dtype, root, offset, steps)
    memory = np.empty(count, host.dtype)
    memory[:kept] = np.ndarray((kept,), host.dtype, root, offset)
    if determinism.fills:
        fill_new(memory[kept:])
    return np.ndarray(shape, host.dtype, memory, 0, steps)
