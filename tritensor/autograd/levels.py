"""The ways into a level of a transformation and out of it. Each has a gradient, which is the way back.

The gradient of a dual number of which the value has the gradient g and the tangent the gradient h is the dual number
(h, g): then the gradient functions of the tape, run on dual numbers, give the derivatives of both.

Arrays of several levels have the latest on top, always: a backward pass may enter a level again that is long over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import ref

from ..errors import ShapeError
from ..memory.deferred import Deferred
from ..memory.lifted import Batched, Dual, Level, Lifted, open_levels
from ..memory.pending import PendingArray
from ..types import dtypes
from . import leaves
from .mode import no_grad, recording
from .tape import Gradient, Node, record, views_on

Tensor = Any
_LATER = (PendingArray, Deferred)


class Crossing(Gradient):
    """Sends a gradient along a way to each source."""

    __slots__ = ("name", "ways")

    def __init__(self, name: str, ways: Sequence[Callable[[Any], Any]]) -> None:
        self.name, self.ways = name, ways

    def run(self, node: Node, gradient: Any) -> list[Any]:
        """The gradients of the sources."""
        return [way(gradient) for way in self.ways]


def crossed(data: Any, *ways: tuple[Tensor, Callable[[Tensor], Any]], name: str = "CrossingBackward0") -> Tensor:
    """A tensor over `data`; each source with the way of its gradient, which a node of this name goes."""
    result = leaves.wrap(data)
    ways = tuple([each for each in ways if each[0]._needs]) if recording.enabled else ()
    if ways and result.dtype.category >= dtypes.FLOATING:
        result._node = record(Crossing(name, [way for _, way in ways]), tuple([x._edge() for x, _ in ways]))
        result._needs = True
    return result


def _array(x: Tensor) -> Any:
    return x._host_array() if x._data.__class__ in _LATER else x._data


def alias(x: Tensor) -> Tensor:
    """`x` as a tensor to differentiate with respect to: a leaf, or a node of its own on the way to what `x` is of.

    It is in all levels that are open, so that it has a gradient for each sample.
    """
    x = in_all(x, open_levels.stack)
    made = x._without_node()
    if not x._needs or not recording.enabled:
        return made.requires_grad_()
    counter, made = made._counter, crossed(_array(x), (x, lambda grad: grad))
    made._counter = counter
    return made


def innermost(values: Sequence[Any]) -> Level:
    """The level of the transformation that is furthest in, of those that the tensors among `values` are in."""
    arrays = [getattr(value, "_data", None) for value in values]
    levels = [array.level for array in arrays if isinstance(array, Lifted) and array.level is not None]
    return max(levels, key=lambda level: level.number)


def at(level: Level, x: Tensor) -> bool:
    """True if `level` is the innermost one of a tensor."""
    return isinstance(x._data, Lifted) and x._data.level is level


def lifted_to(level: Level, x: Tensor) -> Tensor:
    """`x` as a tensor of the level: the same for all samples, or a constant."""
    if at(level, x):
        return x
    return enter(x, level, False) if level.size is not None else enter_dual(x, None, level)


def _levels(array: Any) -> set[Level]:
    """All levels that an array is in."""
    if not isinstance(array, Lifted) or array.level is None:
        return set()
    return {array.level}.union(*[_levels(part) for part in array.parts()])


def levels_of(values: Sequence[Any]) -> set[Level]:
    """All levels that any of the tensors among `values` is in."""
    return set().union(*[_levels(getattr(value, "_data", None)) for value in values])


def in_all(x: Tensor, levels: Iterable[Level]) -> Tensor:
    """`x` in all of these levels."""
    own = _levels(x._data)
    for level in sorted(levels, key=lambda each: each.number):
        if level not in own:
            x = enter(x, level, False) if level.size is not None else enter_dual(x, None, level)
    return x


def aligned(values: Sequence[Any]) -> list[Any]:
    """The inputs of a call, each tensor that requires grad in all levels that any is in.

    So the gradient that it gets is in the same levels, and is summed over a batch where the tensor is not of one.
    """
    needing = [recording.enabled and getattr(value, "_needs", False) for value in values]
    if True not in needing:
        return list(values)
    every = levels_of(values)
    return [in_all(value, every) if need else value for value, need in zip(values, needing, strict=True)]


def followed(*values: Any) -> bool:
    """True if what is computed of some of the values is recorded, or is inside of a transformation."""
    tensors = [value for value in values if hasattr(value, "_needs")]
    return any((x._needs and recording.enabled) or isinstance(x._data, Lifted) for x in tensors)


def below(x: object) -> Any:
    """The tensor below one of a level, without history; anything else as it is."""
    return leaves.wrap(x._data.array) if hasattr(x, "_data") else x


def _over(array: Any, level: Level) -> bool:
    """True if an array is of a later level."""
    return isinstance(array, Lifted) and array.level.number > level.number


def _moved(array: Any, source: int, target: int) -> Any:
    with no_grad():
        return leaves.wrap(array).movedim(source, target)._data


def _zeros(array: Any) -> Any:
    with no_grad():
        return leaves.wrap(array).new_zeros(array.shape)._data


# ---- batches --------------------------------------------------------------------------------------------------------


def enter(x: Tensor, level: Level, whole: bool = True) -> Tensor:
    """The samples of `x` along its first dimension; or, unless `whole`, `x` for each sample."""

    def back(grad: Tensor) -> Tensor:
        found = leave(grad, level)
        return found if whole else found.sum(0)

    return crossed(_entered(_array(x), level, whole), (x, back))


def _entered(array: Any, level: Level, whole: bool) -> Any:
    if not _over(array, level):
        return Batched(array, level, whole)
    if whole and isinstance(array, Batched) and array.whole:
        return Batched(_entered(_moved(array.array, 1, 0), level, True), array.level)
    return array.mapped(lambda each: _entered(each, level, whole))


def leave(x: Tensor, level: Level) -> Tensor:
    """All samples, along a new first dimension."""
    inside = level in _levels(_array(x))
    return crossed(_left(_array(x), level), (x, lambda grad: enter(grad, level) if inside else grad.sum(0)))


def _left(array: Any, level: Level) -> Any:
    if isinstance(array, Batched) and array.level is level:
        if array.whole:
            return array.array
        array = array.array
    elif _over(array, level):
        if isinstance(array, Batched) and array.whole:
            return Batched(_moved(_left(array.array, level), 0, 1), array.level)
        return array.mapped(lambda each: _left(each, level))
    with no_grad():
        return leaves.wrap(array).expand(level.size, *array.shape)._data


# ---- dual numbers ---------------------------------------------------------------------------------------------------


def enter_dual(x: Tensor, tangent: Tensor | None, level: Level) -> Tensor:
    """The dual number of a value and its tangent; None for a constant."""
    if tangent is not None:
        x, tangent = aligned((x, tangent))
    ways = [(x, lambda grad: tangent_of(grad, level))]
    if tangent is not None:
        ways.append((tangent, lambda grad: primal_of(grad, level)))
    result = crossed(_dual(_array(x), None if tangent is None else _array(tangent), level), *ways)
    level.members.append(ref(result))
    return result


def _dual(array: Any, tangent: Any, level: Level) -> Any:
    above = [each.level for each in (array, tangent) if _over(each, level)]
    if not above:
        return Dual(array, tangent, level)
    top = max(above, key=lambda each: each.number)
    if top.size is not None:
        pair = [each if each is None else _left(each, top) for each in (array, tangent)]
        return Batched(_dual(pair[0], pair[1], level), top)
    value, moving = (_part(array, top, False), _part(array, top, True))
    if tangent is None:
        return Dual(_dual(value, None, level), None if moving is None else _dual(moving, None, level), top)
    pair = [_part(tangent, top, False), _part(tangent, top, True)]
    if moving is None and pair[1] is not None:
        moving = _zeros(value)
    return Dual(_dual(value, pair[0], level), None if moving is None else _dual(moving, pair[1], level), top)


def _part(array: Batched | Dual, level: Level, tangent: bool) -> Any:
    """The value, or the tangent, in an array; the tangent of a constant is None."""
    if isinstance(array, Dual) and array.level is level:
        return array.tangent if tangent else array.array
    if not _over(array, level):
        return None if tangent else array
    if isinstance(array, Batched):
        found = _part(array.array, level, tangent)
        return None if found is None else Batched(found, array.level, array.whole)
    value, moving = (each if each is None else _part(each, level, tangent) for each in (array.array, array.tangent))
    if value is None and moving is None:
        return None
    return Dual(_zeros(moving) if value is None else value, moving, array.level)


def primal_of(x: Tensor, level: Level) -> Tensor:
    """The value."""
    inside = level in _levels(_array(x))

    def back(grad: Tensor) -> Tensor:
        if not inside:  # `x` is no dual number, so its gradient is none
            return grad
        return enter_dual(leaves.wrap(_zeros(_array(grad))), grad, level)

    return crossed(_beside(x, _part(_array(x), level, False), level), (x, back))


def tangent_of(x: Tensor, level: Level, zeros: bool = False) -> Tensor | None:
    """The tangent, None of a constant; or zeros (`zeros`) of one that requires grad, which is the tangent's part of it.

    A backward pass inside of the level has the gradient of the value there.
    """
    found = _part(_array(x), level, True)
    if found is None:
        if not (zeros and x._needs and recording.enabled):
            return None
        found = _zeros(_part(_array(x), level, False))
    return crossed(_beside(x, found, level), (x, lambda grad: enter_dual(grad, None, level)))


def _beside(x: Tensor, part: Any, level: Level) -> Any:
    """A part of `x` in all levels that `x` is in but this one, so that its gradient is one of each sample, too."""
    if not (x._needs and recording.enabled):
        return part
    return in_all(leaves.wrap(part), _levels(_array(x)) - {level})._data


# ---- changes in place -----------------------------------------------------------------------------------------------


def write(x: Tensor, result: Tensor) -> None:
    """Write the elements of `result` over those of `x`, which has its shape and dtype.

    Raises:
        ShapeError: `x` is the same for all samples, and `result` is not.
    """
    source = _array(result)
    if _with_room(_array(x), source) is not _array(x):  # a new array, for all that view the old one
        root = x._root()
        root._data = _with_room(_array(root), source)
        for each in (root, *views_on(x._counter or [])):
            data = root._data
            for view, arguments in each._chain():
                data = view.of_array(data, arguments)
            each._data = data
            if isinstance(data, Dual):
                data.level.members.append(ref(each))
    _copied(_array(x), source)


def _with_room(array: Any, source: Any, moving: bool = False) -> Any:
    """`array` with the tangents and the batches that `source` has; tangents alone are given batches (`moving`)."""
    if not isinstance(array, Lifted) and not isinstance(source, Lifted):
        return array
    level = innermost([leaves.wrap(each) for each in (array, source)])
    own, given = (isinstance(each, Lifted) and each.level is level for each in (array, source))
    value, other = array.array if own else array, source.array if given else source
    if level.size is not None:
        whole = own and array.whole
        if given and source.whole and not whole:
            if not moving:
                raise ShapeError(
                    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor "
                    "`other` in extra_args that has more elements than `self`. This happened due to `other` being "
                    "vmapped over but `self` not being vmapped over in a vmap.",
                    remedy="use the operator that is not in place, or make `self` with x.new_zeros(...)",
                )
            with no_grad():
                value, own, whole = leaves.wrap(_left(array, level)).clone()._data, True, True
        room = _with_room(value, other, moving)
        return array if room is getattr(array, "array", None) else Batched(room, level, whole) if own else room
    tangent, change = array.tangent if own else None, source.tangent if given else None
    room = _with_room(value, other, moving)
    if change is not None:
        tangent = _with_room(_zeros(room) if tangent is None else tangent, change, True)
    if own and room is value and tangent is array.tangent:
        return array
    return Dual(room, tangent, level) if own or tangent is not None else room


def _copied(array: Any, source: Any) -> None:
    """Write the elements of `source` over those of `array`, which has room for them."""
    if not isinstance(array, Lifted) and not isinstance(source, Lifted):
        with no_grad():
            leaves.wrap(array).copy_(leaves.wrap(source))
        return
    level = innermost([leaves.wrap(each) for each in (array, source)])
    if not at(level, leaves.wrap(array)):
        _copied(array, source.array)
    elif isinstance(array, Batched):
        own = lifted_to(level, leaves.wrap(source))._data
        _copied(array.array, own.array if own.whole == array.whole else _left(own, level))
    else:
        _copied(array.array, _part(source, level, False))
        if array.tangent is not None:
            change = _part(source, level, True)
            _copied(array.tangent, _zeros(array.tangent) if change is None else change)
