"""Views, casts, and changes of memory inside of a compiled function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import ref

import numpy as np

from ...autograd.mode import no_grad, recording
from ...autograd.tape import Gradient, Node, Slot, record
from ...drivers import streams
from ...ground.locks import lock
from ...memory import buffer
from ...memory.deferred import Deferred, Form
from ...memory.lifted import open_levels
from ...tensors import Tensor, wrap
from ...types import devices, layout
from .noting import UNNOTED
from .region import Function, Known, Memory, Region, Step, current

_getrefcount, _counting = sys.getrefcount, lock()


def view(array: Deferred, kind: Any, arguments: tuple[Any, ...]) -> Any:
    """A view of a deferred array."""
    region = current.region
    array.shared = True
    if region is None or (array.value is None and array.region is not region):
        array.computed()
    if region is None or array.value is not None:
        found = kind.of_array(array.value, arguments)
        if region is None:
            return found
        if region.trace is not None:
            region.trace.function(Function(kind.name, kind.take, arguments), [array.value], found)
        holder = wrap(found)
        region.enter(holder)
        if holder._data.__class__ is Deferred:
            holder._data.shared = True
        return holder._data
    model = buffer.empty(array.shape, array.dtype, devices.meta, array.strides)
    seen = kind.of_array(model, arguments)
    found = _function(region, array, kind.name, kind.take, arguments, (seen.shape, seen.strides, seen.dtype))
    found.shared = True
    return found


def examine(array: Deferred, check: Callable[[Any], Any]) -> None:
    """Check the elements of a deferred array by a function of the array that raises; each replay checks them again."""
    check(array.computed())
    if current.region is not None and current.region.trace is not None:
        current.region.trace.function(Function("check", check, (), "check"), [array.value])


def through(name: str, function: Callable[..., Any], tensors: Sequence[Tensor], *arguments: Any) -> Tensor | None:
    """What a function makes of tensors' arrays, of which some are deferred; None where it is for those of NumPy."""
    arrays = [x._data.computed() if x._data.__class__ is Deferred else x._data for x in tensors]
    if any(array.__class__ is not np.ndarray for array in arrays):
        return None
    found = function(*arrays, *arguments)
    if current.region is not None and current.region.trace is not None:
        current.region.trace.function(Function(name, function, arguments, "other"), arrays, found)
    return entered(wrap(found))


def cast(array: Deferred, kind: np.dtype[Any], function: Callable[[Any], Any]) -> Any:
    """A contiguous copy of a deferred array in another dtype, which `function` makes of an array."""
    region = current.region
    if (
        region is None
        or array.value is not None
        or array.region is not region
        or kind in UNNOTED
        or array.dtype in UNNOTED
    ):
        found = function(array.computed())
        if region is not None and region.trace is not None:
            region.trace.function(Function("cast", function, (), "cast"), [array.value], found)
        return found
    form = array.shape, layout.contiguous_strides(array.shape), kind
    return _function(region, array, "cast", function, (), form, kind)


def _function(
    region: Region,
    array: Deferred,
    name: str,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    form: tuple[Any, Any, Any],
    kind: np.dtype[Any] | None = None,
) -> Any:
    key = name, array.index, kind, _hashable(arguments)
    known = region.node.next.get(key)
    if known is None:
        made = Function(name, function, arguments, "view" if kind is None else "cast")
        step = Step(made, (array.index,), {}, len(region.values), None, [Form.of(*form, array.device)])
        known = region.node.next[key] = Known(region.node, step)
        region.memory.count += 1
    return region.add(known, (), ())[0]._data


def _hashable(value: object) -> object:
    if value.__class__ is slice:
        return "slice", value.start, value.stop, value.step
    return tuple(map(_hashable, value)) if isinstance(value, (tuple, list)) else value


def keep(x: Tensor) -> Tensor:
    """The tensor, which holds what was noted: give it the array when the run ends."""
    region = current.region
    if region is not None and x._data.__class__ is Deferred:
        region.made.append(ref(x))
    return x


def entered(x: Tensor) -> Tensor:
    """A tensor that was computed inside of a compiled function: what is computed from it is noted again."""
    if current.region is not None:
        current.region.enter(x)
    return keep(x)


def before_change(x: Tensor, stays: bool = False) -> None:
    """Compute what reads memory that is going to be changed.

    Args:
        stays: the change is noted, too, where that is possible; otherwise the tensor gets its array.
    """
    region = current.region
    if region is None or (stays and x._data.__class__ is Deferred and x._data.value is None):
        return
    if not stays:
        _not_repeated(region, "memory is changed in place")
    region.run()
    if not stays:
        settle(x)


def settle(*tensors: Tensor) -> None:
    """Give tensors the arrays of what was noted."""
    for x in tensors:
        if x._data.__class__ is Deferred:
            x._data = x._data.settled()


def rebind(x: Tensor, result: Tensor, replaced: bool) -> bool:
    """Let a change in place be another value of the tensor; False, with plain arrays, where memory has to change.

    Args:
        replaced: `result` may be a tensor of the program.
    """
    data, made = x._data, result._data
    if (
        data.__class__ is Deferred
        and data.value is None
        and not data.shared
        and made.__class__ is Deferred
        and made.value is None
        and made.region is data.region is current.region
        and not made.shared
        and (made.strides, made.device) == (data.strides, data.device)
        and x._origin is None
        and _getrefcount(data) <= _ALONE
    ):
        if replaced:
            with no_grad():
                made = result.clone()._data
        x._data = made
        made.region.made.append(ref(x))
        return True
    region = current.region
    if region is not None:
        region.run()
    old = [data.computed() if data.__class__ is Deferred else data for data in (x._data, result._data)]
    if region is not None and region.trace is not None:
        region.trace.changed(*old)
    x._data, result._data = old
    return False


_ALONE = 4  # the references of `rebind`'s arguments to an array that one tensor and one region hold


def settle_all(tensors: Iterable[Any] = ()) -> None:
    """Compute all that was noted, and give tensors plain arrays: before code that works on arrays."""
    region = current.region
    if region is not None:
        _not_repeated(region, "a call cannot be noted")
        region.run()
        region.settle()
    settle(*[x for x in tensors if isinstance(x, Tensor)])


def _not_repeated(region: Region, why: str) -> None:
    if region.trace is not None:
        region.trace.stop(why)


def enter(memory: Memory, tensors: Sequence[Tensor], key: object = None) -> tuple[Region, Region | None]:
    """Begin to note the calls of some tensors, of whose forms the key depends; returns what `leave` takes."""
    with _counting:
        Deferred.used += 1
        streams.noted.compute = _compute
    before = current.region
    try:
        current.region = region = Region(memory, tensors, key)
    except BaseException:
        _uncount()
        raise
    return region, before


def _compute() -> None:
    if current.region is not None:
        current.region.run()


def _uncount() -> None:
    with _counting:
        Deferred.used -= 1
        if not Deferred.used:
            streams.noted.compute = None


def leave(region: Region, before: Region | None) -> None:
    """End what `enter` has begun: all tensors get plain arrays, but for those that could not be computed."""
    current.region, region.trace = before, None
    region.settle()
    _uncount()


class _Passing(Gradient):
    """The way of a gradient into what a compiled function has recorded, whose backward pass is noted as well.

    Args:
        memory: of the calls of such passes.
    """

    name = "CompiledFunctionBackward"

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def run(self, node: Node, gradient: Tensor | list[Any]) -> tuple[Any]:
        """The gradient, as a tensor of which the calls are noted."""
        if recording.enabled or open_levels.stack or isinstance(gradient, list):
            return (gradient,)
        region, data = current.region, gradient._data
        if data.__class__ is Deferred or (region is not None and region.memory is not self.memory):
            return (gradient,)
        form = (data.dtype, data.shape, data.strides) if data.__class__ is np.ndarray else getattr(data, "form", None)
        gain = self.memory.gains.get(form)
        if gain is not None and gain < LEAST:
            return (gradient,)
        noted = wrap(data)
        if region is None:
            region, _ = enter(self.memory, (noted,), form)
            region.passes = form
        else:
            region.enter(noted)
        return (noted,)


def record_passing(x: Tensor, memory: Memory) -> None:
    """Let a backward pass that reaches a tensor be noted from there on."""
    if x._needs and x._node is not None and x._origin is None and not isinstance(x._node, Slot):
        x._node = record(_Passing(memory), (x._node,))


def end_pass(failed: bool = False) -> None:
    """Compute what a backward pass has noted, if it is one that began to note by itself, and has not failed."""
    region = current.region
    if region is not None and region.passes is not None:
        try:
            if not failed:
                region.close()
        finally:
            leave(region, None)
        region.memory.gains.setdefault(region.passes, region.gain)


#: microseconds that noting has to spare: entering a function and leaving it takes as long
LEAST = 15.0


@contextmanager
def running(memory: Memory, tensors: Sequence[Tensor]) -> Iterator[Region]:
    """A block in which the calls of some tensors are noted."""
    region, before = enter(memory, tensors, tuple([(x.dtype, tuple(x.shape), x.stride(), x.device) for x in tensors]))
    try:
        yield region
        region.close()
    finally:
        leave(region, before)


@contextmanager
def paused() -> Iterator[None]:
    """A block in which nothing is noted."""
    before, current.region = current.region, None
    try:
        yield
    finally:
        current.region = before
