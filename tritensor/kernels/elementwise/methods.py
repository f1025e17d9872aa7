"""The Tensor methods of elementwise operators, with their quick paths.

On the CPU a quick path passes arrays of one dtype directly to the reference; on a device it repeats a traced launch
(`runtime/replay.py`). Both wrap the result and record the node themselves. All other calls go to `Operator.__call__`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes, layout, settings
from ...autograd.mode import recording
from ...autograd.tape import _INSIDE, Node, inside_package, next_age
from ...errors import ArgumentError, ShapeError
from ...inplace import check_writable, in_place
from ...memory.array import DeviceArray
from ...operator import Operator, OperatorGradient
from ...public import method
from ...runtime import replay
from ...tensor import Tensor, wrap

__all__ = ["attach", "binary", "function_of", "in_place_method", "plain", "record_simple", "reflected", "unary"]

Elementwise = Any  # `family.Elementwise`, whose module imports this one

ndarray = np.ndarray
_new = object.__new__
_getframe = sys._getframe
asarray = np.asarray


def attach(operator: Operator, function: Callable[..., Any], *names: str) -> None:
    """Make `function` a method of Tensor under `names`, documented as the operator."""
    function.__doc__ = operator.__doc__
    function.__name__ = names[0]
    method(*names)(function)


def function_of(operator: Elementwise, name: str) -> Any:
    """The public function of an operator; one with parameter names of its own is called as it is."""
    if operator.inputs not in (("x",), ("x", "y")) or operator.metadata:
        return operator
    call = operator.method
    made: Callable[..., Tensor]
    if len(operator.inputs) == 1:

        def made(input: Tensor) -> Tensor:
            return call(input) if isinstance(input, Tensor) else _refuse(name, input)  # type: ignore[no-any-return]

    else:

        def made(input: Any, other: Any) -> Tensor:
            return call(input, other) if isinstance(input, Tensor) else operator(input, other)  # type: ignore[no-any-return]

    made.__name__ = made.__qualname__ = name
    made.__module__ = "tritensor.functional"
    made.__doc__ = operator.__doc__
    return made


def _refuse(name: str, value: Any) -> Any:
    raise ArgumentError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}")


def plain(operator: Operator) -> Callable[..., Tensor]:
    """The method of an operator without a quick path."""

    def call(self: Tensor, *args: Any, **metadata: Any) -> Any:
        return operator(self, *args, **metadata)

    call.__wrapped__ = operator  # type: ignore[attr-defined]  # its signature is the operator's
    return call


def unary(operator: Elementwise) -> Callable[..., Tensor]:
    """The method of a one-input operator, with the quick path: a CPU array of a direct dtype."""
    reference, direct, fixed = operator.reference, operator.direct, operator.fixed
    replays = operator.replays

    def call(self: Tensor) -> Tensor:
        x = self._data
        if type(x) is not ndarray or x.dtype not in direct:
            known = replays.get((x.form,)) if type(x) is DeviceArray else None
            again = None if known is None else known.unary(x)
            if again is None:
                return operator(self)  # type: ignore[no-any-return]
            if self._needs and recording.enabled:
                backward = operator.backwards.get(_ONE) or operator.backward_for(_ONE)
                if backward is not None:
                    record_simple(backward, again, (self,), (self._edge(),), _getframe(1))
            return again
        try:
            out = reference(x)
        except (RuntimeWarning, FloatingPointError):
            return operator(self)  # type: ignore[no-any-return]
        if type(out) is not ndarray:
            out = asarray(out, x.dtype if fixed is None else fixed)
        result: Tensor = _new(Tensor)
        result._data = out
        result._counter = result._origin = None
        if self._needs and recording.enabled:
            backward = operator.backwards.get(_ONE) or operator.backward_for(_ONE)
            if backward is not None:
                record_simple(backward, result, (self,), (self._edge(),), _getframe(1))
                return result
        result._needs = False
        result._node = None
        return result

    return call


_ONE, _FIRST, _SECOND, _BOTH = (True,), (True, False), (False, True), (True, True)
_ZERO = (0,)
_BOTH_KEPT = (0, 1)


def record_simple(
    backward: OperatorGradient, result: Tensor, inputs: tuple[Any, ...], edges: tuple[Any, ...], frame: Any
) -> None:
    """Record a call without metadata, broadcasting or casts: what `Operator.record` does, for the quick paths."""
    result._node = node = Node()
    result._needs = True
    node.backward = backward
    node.next = edges
    node.age = next_age()
    node.reduce = node.hooks = None
    node.outputs = 1
    _save(node, backward, result, inputs)
    code = frame.f_code
    while _INSIDE.get(code.co_filename, True) and inside_package(code.co_filename):
        frame = frame.f_back
        code = frame.f_code
    node.code = code
    node.instruction = frame.f_lasti


def _save(node: Node, backward: OperatorGradient, result: Tensor, inputs: tuple[Any, ...]) -> None:
    """Set a node's saved values, and the versions of the tensors among them."""
    simple = backward.simple
    if simple is None:
        node.saved = saved = backward.keep(inputs, (result,), {})
    elif not simple:
        node.saved = ()
        node.versions = None
        return
    elif len(simple) == 1:
        value = inputs[simple[0]]
        node.saved = (value,)
        if isinstance(value, Tensor):
            counter = value._counter
            node.versions = _ZERO if counter is None else (counter[0],)
        else:
            node.versions = None
        return
    else:
        node.saved = saved = tuple([inputs[i] for i in simple])
    node.versions = tuple([value._version if isinstance(value, Tensor) else None for value in saved])


def _record_pair(operator: Operator, result: Tensor, x: Tensor, y: Any, number: bool, alike: bool, frame: Any) -> None:
    """Record a two-input call of a quick path; `y` is a tensor or a number, `alike` means that inputs and result have
    one shape and dtype. The body of `record_simple` is repeated here: 0.4 us for a sum, in place of 0.7."""
    if number or not y._needs:
        mask = _FIRST
        edges: tuple[Any, ...] = (x._node or x if x._origin is None else x._edge(),)
    elif x._needs:
        mask = _BOTH
        edges = (x._node or x if x._origin is None else x._edge(), y._node or y if y._origin is None else y._edge())
    else:
        mask = _SECOND
        edges = (y._node or y if y._origin is None else y._edge(),)
    backward = operator.backwards.get(mask) or operator.backward_for(mask)
    if not alike or backward is None or len(edges) != len(backward.positions):
        result._needs, result._node = False, None
        operator.record((result,), (x, y), {})
        return
    node = Node()
    node.backward = backward
    node.next = edges
    node.age = next_age()
    node.reduce = node.hooks = None
    node.outputs = 1
    kept = backward.simple
    if kept == ():
        node.saved = ()
        node.versions = None
    elif kept == _BOTH_KEPT and not number:
        node.saved = x, y
        first, second = x._counter, y._counter
        node.versions = (0 if first is None else first[0], 0 if second is None else second[0])
    else:
        _save(node, backward, result, (x, y))
    code = frame.f_code
    while _INSIDE.get(code.co_filename, True) and inside_package(code.co_filename):
        frame = frame.f_back
        code = frame.f_code
    node.code = code
    node.instruction = frame.f_lasti
    result._needs = True
    result._node = node


def binary(operator: Elementwise, syntax: bool = False) -> Callable[..., Tensor]:
    """The method of a two-input operator, with the quick path: CPU arrays of one direct dtype, or one and a number.

    With `syntax`, it returns NotImplemented for other operands, so that Python tries their reflected method.
    """
    reference, direct, fixed = operator.reference, operator.direct, operator.fixed
    floating = frozenset(d for d in direct if dtypes.of(d).category == dtypes.FLOATING)
    replays = operator.replays

    def call(self: Tensor, other: Any) -> Any:
        x = self._data
        kind = type(other)
        try:
            if kind is float or kind is int:
                if type(x) is not ndarray or x.dtype not in floating:
                    known = replays.get((x.form, kind)) if type(x) is DeviceArray else None
                    again = None if known is None else known.number(x, other)
                    if known is None or again is None:
                        return operator(self, other)
                    if self._needs and recording.enabled:
                        _record_pair(operator, again, self, other, True, known.alike, _getframe(1))
                    return again
                out = reference(x, other)
                number, needs = True, self._needs
            else:
                y = other._data
                dtype = x.dtype
                # if y is on another device, reading it as an array raises, and the except clause handles the call
                if type(x) is not ndarray or y.dtype is not dtype or dtype not in direct:
                    if type(x) is DeviceArray:
                        known = replays.get((x.form, y.form))
                        again = None if known is None else known.binary(x, y)
                        if known is not None and again is not None:
                            if (self._needs or other._needs) and recording.enabled:
                                _record_pair(operator, again, self, other, False, known.alike, _getframe(1))
                            return again
                    return operator(self, other)
                out = reference(x, y)
                number, needs = False, self._needs or other._needs
        except (AttributeError, TypeError, ValueError, RuntimeWarning, FloatingPointError, OverflowError):
            return operator(self, other) if not syntax or isinstance(other, _OPERANDS) else NotImplemented
        if type(out) is not ndarray:
            out = asarray(out, x.dtype if fixed is None else fixed)
        result: Tensor = _new(Tensor)
        result._data = out
        result._counter = result._origin = None
        if needs and recording.enabled:
            _record_pair(operator, result, self, other, number, number or x.shape == y.shape, _getframe(1))
        else:
            result._needs = False
            result._node = None
        return result

    return call


_OPERANDS = (Tensor, bool, int, float, complex, np.generic, ndarray)


def reflected(operator: Elementwise) -> Callable[..., Any]:
    """The method for an operand on the left that is no tensor: `2 - x`. With a CPU array it calls the reference."""
    reference, direct, fixed = operator.reference, operator.direct, operator.fixed
    floating = frozenset(d for d in direct if dtypes.of(d).category == dtypes.FLOATING)

    replays = operator.replays

    def call(self: Tensor, other: Any) -> Any:
        x = self._data
        kind = type(other)
        if (kind is not float and kind is not int) or type(x) is not ndarray or x.dtype not in floating:
            known = replays.get((kind, x.form)) if type(x) is DeviceArray else None
            again = None if known is None else known.number(x, other)
            if again is not None:
                if self._needs and recording.enabled:
                    backward = operator.backwards.get(_SECOND) or operator.backward_for(_SECOND)
                    if backward is not None:
                        record_simple(backward, again, (other, self), (self._edge(),), _getframe(1))
                return again
            return operator(other, self) if isinstance(other, _OPERANDS) else NotImplemented
        try:
            out = reference(other, x)
        except (ValueError, RuntimeWarning, FloatingPointError, OverflowError):
            return operator(other, self)
        if type(out) is not ndarray:
            out = asarray(out, x.dtype if fixed is None else fixed)
        result = wrap(out)
        if self._needs and recording.enabled:
            backward = operator.backwards.get(_SECOND) or operator.backward_for(_SECOND)
            if backward is not None:
                record_simple(backward, result, (other, self), (self._edge(),), _getframe(1))
        return result

    return call


def in_place_method(operator: Elementwise) -> Callable[..., Tensor]:
    """The in-place method: a ufunc on CPU arrays, if nothing is recorded, writes directly into the memory."""
    reference, direct, ufunc = operator.reference, operator.direct, operator.ufunc

    def call(self: Tensor, *args: Any, **metadata: Any) -> Tensor:
        x = self._data
        if ufunc and x.__class__ is ndarray and x.dtype in direct and not (self._needs and recording.enabled):
            rest = [value._data if isinstance(value, Tensor) else value for value in args]
            plain = all(
                (value.__class__ is ndarray and value.dtype is x.dtype)
                or (value.__class__ is float and x.dtype.kind == "f")
                for value in rest
            )
            wanted = recording.enabled and any(isinstance(value, Tensor) and value._needs for value in args)
            if plain and not wanted and _fits(x.shape, rest):
                check_writable(self)
                with np.errstate(all="ignore"):
                    reference(x, *rest, out=x)
                counter = self._counter = self._counter or [0, 0]
                counter[0] += 1
                return self
        if x.__class__ is DeviceArray and _change_on_device(self, operator, args, metadata):
            return self
        return in_place(self, operator, *args, **metadata)

    call.__wrapped__ = operator  # type: ignore[attr-defined]
    return call


def _change_on_device(x: Tensor, operator: Elementwise, args: tuple[Any, ...], metadata: dict[str, Any]) -> bool:
    """Launch an operator with its first input as the result; False where that is not possible or must be recorded."""
    if len(args) == 1 and not metadata and args[0].__class__ is Tensor and x._origin is None:
        # the quick path with one other tensor and a known replay: 2.5 us, in place of 4.5
        y = args[0]
        data, other = x._data, y._data
        if other.__class__ is DeviceArray and not ((x._needs or y._needs) and recording.enabled):
            known = operator.replays_in_place.get((data.form, other.form)) if other.buffer is not data.buffer else None
            if known is not None and known.launch_in_place(data, other):
                counter = x._counter = x._counter or [0, 0]
                counter[0] += 1
                return True
    inputs = (x, *args)
    if settings.check.value or (recording.enabled and any(isinstance(y, Tensor) and y._needs for y in inputs)):
        return False
    data = x._data
    for value in args:
        if isinstance(value, Tensor):
            other = value._data
            if other.__class__ is not DeviceArray:
                return False
            # an operand that shares x's memory must have x's layout: each element is read only where it is written
            if other.buffer is data.buffer and (other.form is not data.form or other.offset != data.offset):
                return False
    key = replay.key_of(operator, inputs, metadata) if replay.active.on else None
    known = None if key is None else operator.replays_in_place.get(key)
    if x._origin is not None or known is None:
        check_writable(x)
    if known is None or known.run(inputs, metadata) is None:
        if not operator.launch_in_place(key, inputs, metadata):
            return False
    counter = x._counter = x._counter or [0, 0]
    counter[0] += 1
    return True


def _fits(shape: tuple[int, ...], operands: list[Any]) -> bool:
    """Whether operands broadcast into a shape without enlarging it."""
    try:
        return layout.broadcast_shapes(shape, *[x.shape for x in operands if type(x) is ndarray]) == shape
    except ShapeError:
        return False
