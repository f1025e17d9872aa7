"""The Tensor methods of elementwise operators, with their quick paths.

On the CPU a quick path passes arrays of one dtype directly to the reference; on a device it repeats a traced launch
(`runtime/replay.py`). Both wrap the result and record the node themselves. All other calls go to `Operator.__call__`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import settings
from ...autograd.gradients import attach
from ...autograd.mode import recording
from ...autograd.precision import casts
from ...errors import ShapeError
from ...ground.arguments import older_order, wrong_type
from ...ground.composing import shown_as
from ...ground.public import method
from ...host.threads import quietly
from ...memory.array import DeviceArray
from ...memory.deferred import Deferred
from ...operators import Operator
from ...operators.deferring import repeated
from ...operators.inplace import check_writable, computed_there, in_place
from ...operators.outputs import into, takes_out
from ...runtime.choice import NEVER, allowed, available
from ...runtime.replay import INTO, Quick
from ...tensors import Tensor, wrap
from ...types import dtypes, layout
from .reference import LARGE, LARGE_DIRECT, evaluate_in_place

Elementwise = Any  # `family.Elementwise`, whose module imports this one

ndarray = np.ndarray
_new = object.__new__
_getframe = sys._getframe
asarray = np.asarray


def member(operator: Operator, function: Callable[..., Any], *names: str, functions: Sequence[str] = ()) -> None:
    """Make `function` a method of Tensor under `names`, documented as the operator; `functions` are such, too."""
    function.__doc__ = operator.__doc__
    function.__name__ = names[0]
    for name in names:
        method(name, function=name in functions)(function)


def function_of(operator: Elementwise, name: str) -> Callable[..., Tensor]:
    """The public function of an operator; one with parameter names of its own is called as it is."""
    rule = operator.into
    if operator.inputs not in (("x",), ("x", "y")) or operator.metadata:
        return takes_out(rule)(operator)
    call = operator.method
    made: Callable[..., Tensor]
    if len(operator.inputs) == 1:

        def made(input: Tensor, *, out: Tensor | None = None) -> Tensor:
            if out is not None:
                return into(made, rule, out, (input,), {})
            return call(input) if isinstance(input, Tensor) else _refuse(name, input)

    else:

        def made(input: object, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
            if out is not None:
                return into(made, rule, out, (input, other), {})
            return call(input, other) if isinstance(input, Tensor) else operator(input, other)

    made.operator = operator  # type: ignore[union-attr]
    return shown_as(made, name, operator.__doc__, module="tritensor.functional")


def _refuse(name: str, value: object) -> Any:
    raise wrong_type(name, "input", "Tensor", value, 1) from None


def plain(operator: Operator) -> Callable[..., Tensor]:
    """The method of an operator without a quick path."""

    def call(self: Tensor, *args: Any, **metadata: Any) -> Any:
        return operator(self, *args, **metadata)

    call.__wrapped__ = operator  # type: ignore[attr-defined]  # its signature is the operator's
    return call


def _usual(direct: frozenset[np.dtype]) -> np.dtype | None:
    """float32 where a quick path takes it: comparing by identity costs less than hashing, as much as reading a size."""
    kind = dtypes.float32.numpy
    return kind if kind in direct else None


def _large(operator: Elementwise) -> int:
    """Elements from which on the operator computes in blocks."""
    return LARGE_DIRECT if operator.ufunc else LARGE


def _bind_quick(operator: Elementwise, bind: Callable[[Callable[..., Any]], None]) -> None:
    """Where native code may win, let the quick path call a function that looks for it by the call's shapes, in place of
    the reference; not while native code is switched off, because the look costs a small call 5 to 10 %."""
    reference, count, native = operator.reference, len(operator.inputs), operator.native
    if native is None or native.float32 is NEVER or native.float32[0] >= LARGE_DIRECT:
        return
    if operator.metadata or not available():
        return
    known = Quick()

    def reference_of(*arrays: Any) -> tuple[Any]:
        return (reference(*arrays),)

    def of_one(x: ndarray) -> Any:
        key = x.dtype, x.shape
        return (known.get(key) or known.begin(key, operator, (x,), reference_of))(x)[0]

    def of_two(x: ndarray, y: object) -> Any:
        if y.__class__ is not ndarray:
            return reference(x, y)
        key = x.dtype, x.shape, y.shape
        return (known.get(key) or known.begin(key, operator, (x, y), reference_of))(x, y)[0]

    quick: Any = of_one if count == 1 else of_two

    def choose() -> None:
        bind(quick if allowed(operator.name) else reference)

    settings.watchers.append(choose)
    choose()


def unary(operator: Elementwise) -> Callable[..., Tensor]:
    """The method of a one-input operator, with the quick path: a CPU array of a direct dtype, or a known launch."""
    reference: Callable[..., Any] = operator.reference

    def bind(other: Callable[..., Any]) -> None:
        nonlocal reference
        reference = other

    _bind_quick(operator, bind)
    direct, fixed = operator.direct, operator.fixed
    usual, large = _usual(direct), _large(operator)
    replays, listed = operator.replays, operator.listed

    def call(self: Tensor) -> Tensor:
        try:
            x = self._data
        except AttributeError:
            return _refuse(operator.name, self)
        if type(x) is ndarray and (x.dtype is usual or x.dtype in direct) and x.size < large:
            try:
                out = reference(x)
            except (RuntimeWarning, FloatingPointError):
                return operator(self)
            if type(out) is not ndarray:
                out = asarray(out, x.dtype if fixed is None else fixed)
            result: Any = _new(Tensor)
            result._data = out
            result._counter = result._origin = result._node = None
            result._needs = False
        elif type(x) is Deferred:
            noted = None if listed and casts.on else repeated(operator, self)
            if noted is None:
                return operator(self)
            result = noted[0]
        else:
            known = replays.get((x.form,)) if type(x) is DeviceArray and not (listed and casts.on) else None
            result = None if known is None else known.run(x)
            if result is None:
                return operator(self)
        if self._needs and recording.enabled:
            backward = operator.backwards.get(_ONE) or operator.backward_for(_ONE)
            if backward is not None:
                attach(backward, result, (self,), _getframe(1))
        return result

    return call


_ONE, _FIRST, _SECOND, _BOTH = (True,), (True, False), (False, True), (True, True)


class _Unknown:
    """What is remembered of a call that was not made before: nothing that can be run again."""

    def run(self, *arrays: Any) -> None:
        """No result."""


_UNKNOWN: Any = _Unknown()


def binary(operator: Elementwise, syntax: bool = False) -> Callable[..., Tensor]:
    """The method of a two-input operator, with the quick path: CPU arrays of one direct dtype, or one and a number; or
    a known launch.

    With `syntax`, it returns NotImplemented for other operands, so that Python tries their reflected method.
    """
    reference: Callable[..., Any] = operator.reference

    def bind(other: Callable[..., Any]) -> None:
        nonlocal reference
        reference = other

    _bind_quick(operator, bind)
    direct, fixed = operator.direct, operator.fixed
    # numbers that the dtype has to hold are not passed directly
    floating = frozenset(d for d in direct if dtypes.of(d).category == dtypes.FLOATING and not operator.rule.held)
    usual, large = _usual(direct), _large(operator)
    plain = usual if usual in floating else None
    replays, listed = operator.replays, operator.listed

    def remembered(key: object) -> Any:
        return _UNKNOWN if listed and casts.on else replays.get(key, _UNKNOWN)

    def call(self: Tensor, other: Any) -> Tensor:
        x = self._data
        kind = type(other)
        known = None
        try:
            if kind is float or kind is int:
                number, needs = True, self._needs
                if type(x) is ndarray and (x.dtype is plain or x.dtype in floating) and x.size < large:
                    out = reference(x, other)
                elif type(x) is Deferred:
                    noted = None if listed and casts.on else repeated(operator, self, other)
                    if noted is None:
                        return operator(self, other)
                    result, known = noted[0], noted[1]
                else:
                    known = remembered((x.form, kind)) if type(x) is DeviceArray else _UNKNOWN
                    result = known.run(x, other)
                    if result is None:
                        return operator(self, other)
            else:
                y = other._data
                number, needs = False, self._needs or other._needs
                if type(x) is ndarray:
                    dtype = x.dtype
                    # if y is on another device, reading it as an array raises, and the except clause handles the call
                    if y.dtype is not dtype or (dtype is not usual and dtype not in direct) or x.size >= large:
                        return operator(self, other)
                    out = reference(x, y)
                elif type(x) is Deferred:
                    noted = None if listed and casts.on else repeated(operator, self, other)
                    if noted is None:
                        return operator(self, other)
                    result, known = noted[0], noted[1]
                else:
                    known = remembered((x.form, y.form))
                    result = known.run(x, y)
                    if result is None:
                        return operator(self, other)
        except (AttributeError, TypeError, ValueError, RuntimeWarning, FloatingPointError, OverflowError):
            return _otherwise(operator, syntax, self, other)
        if known is None:
            if type(out) is not ndarray:
                out = asarray(out, x.dtype if fixed is None else fixed)
            result = _new(Tensor)
            result._data = out
            result._counter = result._origin = result._node = None
            result._needs = False
        if needs and recording.enabled:
            mask = _FIRST if number or not other._needs else _BOTH if self._needs else _SECOND
            backward = operator.backwards.get(mask) or operator.backward_for(mask)
            if backward is not None:
                alike = known.alike if known is not None else number or x.shape == y.shape
                attach(backward, result, (self, other), _getframe(1), alike)
        return result

    return call


def _otherwise(operator: Elementwise, syntax: bool, x: Tensor, other: Tensor | complex) -> Any:
    """The result of operands that the quick path does not take; NotImplemented where Python's syntax has none."""
    if not syntax:
        return operator(x, other)
    return operator(*_as_numpy(operator, x, other)) if isinstance(other, OPERANDS) else NotImplemented


def _as_numpy(operator: Elementwise, x: Tensor, other: Any) -> tuple[Tensor, Any]:
    """The operands of Python's syntax; beside an array of NumPy the tensor is cast to the dtype that NumPy promotes to.

    In PyTorch, NumPy computes `tensor + array`: the sum of float32 and int64 is float64.
    """
    if isinstance(other, ndarray) and operator.rule.result is None and x._data.__class__ is ndarray:
        try:
            kind = np.result_type(x._data.dtype, other.dtype)
        except TypeError:  # bfloat16 does not promote with every dtype
            return x, other
        if operator.rule.floating:
            kind = np.result_type(kind, np.float16)  # NumPy's quotient of int64 is float64
        return x.to(dtypes.of(kind)), other.astype(kind, copy=False)
    return x, other


_WRITTEN = (Tensor, bool, int, float, complex, np.generic)
OPERANDS = (*_WRITTEN, ndarray)


def reflected(operator: Elementwise) -> Callable[..., Any]:
    """The method for an operand on the left that is no tensor: `2 - x`. With a CPU array it calls the reference."""
    reference, direct, fixed = operator.reference, operator.direct, operator.fixed
    floating = frozenset(d for d in direct if dtypes.of(d).category == dtypes.FLOATING)
    large = _large(operator)
    replays = operator.replays

    def call(self: Tensor, other: complex | np.ndarray) -> Tensor:
        x = self._data
        kind = type(other)
        result: Any = None
        if kind is float or kind is int:
            if type(x) is ndarray and x.dtype in floating and x.size < large:
                try:
                    out = reference(other, x)
                except (ValueError, RuntimeWarning, FloatingPointError, OverflowError):
                    return operator(other, self)
                result = wrap(out if type(out) is ndarray else asarray(out, x.dtype if fixed is None else fixed))
            elif type(x) is DeviceArray:
                known = replays.get((kind, x.form))
                result = None if known is None else known.run(other, x)
        if result is None:
            if not isinstance(other, OPERANDS):
                return NotImplemented
            x, y = _as_numpy(operator, self, other)
            return operator(y, x)
        if self._needs and recording.enabled:
            backward = operator.backwards.get(_SECOND) or operator.backward_for(_SECOND)
            if backward is not None:
                attach(backward, result, (other, self), _getframe(1))
        return result

    return call


def in_place_method(operator: Elementwise, syntax: bool = False) -> Callable[..., Tensor]:
    """The in-place method: a ufunc on CPU arrays, if nothing is recorded, writes directly into the memory.

    With `syntax`, it returns NotImplemented for what is no tensor and no number: Python adds an array out of place.
    """
    reference, direct, ufunc = operator.reference, operator.direct, operator.ufunc
    count = len(operator.inputs) - 1
    real = "" if operator.rule.held else "f"  # the kind of arrays that take a number as it is

    def call(self: Tensor, *args: Any, **metadata: Any) -> Tensor:
        if syntax and not isinstance(args[0], _WRITTEN):
            return NotImplemented
        x = self._data
        usual = ufunc and len(args) == count and not metadata
        if usual and x.__class__ is ndarray and x.dtype in direct and not (self._needs and recording.enabled):
            rest = [value._data if isinstance(value, Tensor) else value for value in args]
            plain = all(
                (value.__class__ is ndarray and value.dtype is x.dtype)
                or (value.__class__ is float and x.dtype.kind == real)
                for value in rest
            )
            wanted = any(isinstance(value, Tensor) and value._needs for value in args) and recording.enabled
            if plain and not wanted and _fits(x.shape, rest):
                check_writable(self)
                if x.size < LARGE_DIRECT or not evaluate_in_place(reference, x, rest):
                    quietly(reference, x, *rest, out=x)
                counter = self._counter = self._counter or [0]
                counter[0] += 1
                return self
        if len(args) > count and "value" in operator.metadata:
            args, factor = older_order(operator.name, {"value": metadata.get("value", 1)}, self, *args)
            args, metadata = args[1:], {**metadata, **factor}
        if x.__class__ is DeviceArray and _change_on_device(self, operator, args, metadata):
            return self
        return in_place(self, operator, *args, **metadata)

    call.__wrapped__ = operator  # type: ignore[attr-defined]
    return call


def _change_on_device(x: Tensor, operator: Elementwise, args: tuple[Any, ...], metadata: dict[str, Any]) -> bool:
    """Launch an operator with its first input as the result; False where that is not possible or must be recorded."""
    data = x._data
    if len(args) == 1 and not metadata and args[0].__class__ is Tensor and x._origin is None:
        y = args[0]  # another tensor, and a known launch: 2.5 us, in place of 5
        other = y._data
        if other.__class__ is DeviceArray and other.buffer is not data.buffer:
            known = operator.replays.get((INTO, data.form, data.form, other.form))
            recorded = (x._needs or y._needs) and recording.enabled
            if known is not None and not recorded and known.run(data, data, other) is not None:
                counter = x._counter = x._counter or [0]
                counter[0] += 1
                return True
    inputs = (x, *args)
    recorded = recording.enabled and any(isinstance(y, Tensor) and y._needs for y in inputs)
    if settings.check.value:
        return False
    for value in args:
        if isinstance(value, Tensor):
            other = value._data
            if other.__class__ is not DeviceArray:
                return False
            # an operand that shares x's memory must have x's layout: each element is read only where it is written
            if other.buffer is data.buffer and (other.form is not data.form or other.offset != data.offset):
                return False
    if recorded:
        return computed_there(x, operator, inputs, metadata)
    check_writable(x)
    if not operator.compute_in_place(inputs, metadata):
        return False
    counter = x._counter = x._counter or [0]
    counter[0] += 1
    return True


def _fits(shape: tuple[int, ...], operands: list[Any]) -> bool:
    """True if operands broadcast into a shape without enlarging it."""
    try:
        return layout.broadcast_shapes(shape, *[x.shape for x in operands if type(x) is ndarray]) == shape
    except ShapeError:
        return False
