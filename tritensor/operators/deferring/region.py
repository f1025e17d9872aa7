"""Regions: what a run of a compiled function has noted, and the tree of the calls that it knows."""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import ref

import numpy as np

from ...autograd.mode import recording
from ...autograd.precision import state
from ...autograd.tape import inside_package
from ...memory.array import DeviceArray
from ...memory.deferred import Deferred, Form
from ...runtime.call import Call, Operator
from ...runtime.replay import table
from ...tensors import Tensor, wrap

ndarray = np.ndarray
Array = np.ndarray | DeviceArray
_getrefcount = sys.getrefcount


class Number(int):
    """Where a step's number stands among those of its stretch."""

    __slots__ = ()


class Function:
    """A function of arrays that is no operator: of `kind` "view", "cast", "check", or another one."""

    __slots__ = ("arguments", "function", "kind", "name")

    def __init__(self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...], kind: str = "view") -> None:
        self.name, self.function, self.arguments, self.kind = name, function, arguments, kind

    def __call__(self, *arrays: Array) -> Array:
        """What it makes of arrays."""
        return self.function(*arrays, *self.arguments)


class Step:
    """One noted call.

    Attributes:
        operator: an `Operator`, or `Function`.
        inputs: for each input its place among the values, a `Number`, or a constant in a tuple.
        metadata: the keyword arguments; a `Number` in place of each that is one of the call's own.
        outputs: the places of the results.
        call: with checked arguments and dtypes, without arrays.
        forms: of the results.
        line: of the program: where such a call was first noted, as finding it for each takes as long as noting it.
    """

    __slots__ = ("call", "forms", "inputs", "line", "metadata", "operator", "outputs")

    def __init__(
        self,
        operator: Operator | Function,
        inputs: tuple[Any, ...],
        metadata: dict[str, Any],
        first: int,
        call: Call | None,
        forms: Sequence[Form],
    ) -> None:
        self.operator: Any = operator
        self.call: Any = call
        self.inputs, self.metadata, self.forms = inputs, metadata, tuple(forms)
        self.outputs = range(first, first + len(forms))
        self.line, _ = _users_line()

    def compute(self, values: Sequence[Any], numbers: Sequence[Any]) -> Sequence[Any]:
        """The results' arrays."""
        if self.operator.__class__ is Function:
            return (self.operator(*[values[x] for x in self.inputs]),)[: len(self.outputs)]  # a check has no result
        inputs = [
            numbers[x] if x.__class__ is Number else wrap(values[x]) if x.__class__ is int else x[0]
            for x in self.inputs
        ]
        metadata = {
            name: numbers[value] if value.__class__ is Number else value for name, value in self.metadata.items()
        }
        found = self.operator(*inputs, **metadata)
        return [each._data for each in found] if found.__class__ is tuple else [found._data]

    def laid(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """The results' arrays with the strides that were noted: views that are noted, and programs, count on these."""
        if self.call is None:
            return arrays
        return [x if _as_noted(x, form) else _restrided(x, form) for x, form in zip(arrays, self.forms, strict=True)]


def _as_noted(array: Array, form: Form) -> bool:
    """Whether an array has the strides that were noted; those of one element do not count."""
    steps = array.strides
    if array.__class__ is ndarray:
        size = array.itemsize
        return all(n < 2 or step == size * own for n, step, own in zip(form.shape, steps, form.strides, strict=True))
    return all(n < 2 or step == own for n, step, own in zip(form.shape, steps, form.strides, strict=True))


def _restrided(array: Array, form: Form) -> Any:
    """A copy of an array with the strides that were noted."""
    if not form.size:
        return array
    made = wrap(array).new_empty_strided(form.shape, form.strides)
    made.copy_(wrap(array))
    return made._data


class Known:
    """A call that was noted before, after the same calls.

    Attributes:
        next: the calls that were noted after it, by key; None for one that cannot be noted.
        step: what it was; None of the root.
        replay: what the tape needs, see `Replay`.
        checks: for each of the call's numbers the function that checks it, or None.
        plans: how all that was noted up to here is computed, by the places of the results that are wanted.
    """

    __slots__ = ("before", "checks", "next", "plans", "replay", "step")

    def __init__(self, before: Known | None = None, step: Step | None = None) -> None:
        self.before, self.step = before, step
        self.next: dict[Any, Known | None] = {}
        self.plans: dict[tuple[int, ...], Plan] = {}
        self.checks: list[Any] = []
        self.replay: Any = None

    def steps(self) -> list[Step]:
        """All calls up to this one."""
        found, node = list[Step](), self
        while node.step is not None and node.before is not None:
            found.append(node.step)
            node = node.before
        return found[::-1]


class Plan(Protocol):
    """How some noted calls are computed.

    Attributes:
        gain: the microseconds that noting them spares, about.
        steps: the calls that are needed.
    """

    gain: float
    steps: list[Step]

    def run(self, values: list[Any], numbers: Sequence[Any]) -> None:
        """Put the results that are wanted in their places among the values."""


class Memory:
    """What a compiled function knows of its runs: the tree of its calls.

    Args:
        whole: elements must not be read inside of the function, see `Deferred.host`.
        plan: makes the plan of some steps: `(steps, places of wanted results, forms of arrays that were there)`.
    """

    def __init__(
        self, plan: Callable[[list[Step], tuple[int, ...], dict[int, Any]], Plan], whole: bool = False
    ) -> None:
        self.plan, self.whole = plan, whole
        self.roots: dict[Any, Any] = table()  # which is emptied where a setting changes
        self.count = 0
        self.backward: Memory | None = None
        #: by the forms of its arguments, the microseconds that noting its calls spares
        self.gains: dict[Any, Any] = table()

    def of_backward(self) -> Memory:
        """That of the backward passes through what the function has recorded."""
        if self.backward is None:
            self.backward = Memory(self.plan)
        return self.backward

    def root(self, key: object = None) -> Known:
        """Where a run begins; `key` has the forms of the arrays that are there."""
        if self.count > _MOST_KNOWN:
            self.roots.clear()
            self.count = 0
        found: Any = self.roots.get(key)
        if found is None:
            self.roots[key] = found = Known()
            self.count += 1
        return found


#: of the calls of one compiled function; a number that changes with each run would fill the memory
_MOST_KNOWN = 20_000
#: noted calls after which they are computed, so that a long function's first results do not wait for its last plan
MOST_STEPS = 512


class _Current(threading.local):
    region: Region | None = None


current = _Current()


class Region:
    """One run of a compiled function.

    Attributes:
        whole: elements must not be read while it runs.
        passes: of a region that a backward pass began, the form of the gradient.
        cuts: where it had to compute before its end, if that is noted.
        stretch: how often it has computed what was noted; gain: the microseconds that this spared, about.
        values: since then, in the order of their places: arrays that were there, and what was noted.
        places: of arrays that were there, by id.
        tensors: by place, the tensors that were made with what was noted.
        made: references to other tensors that hold such arrays, and to those whose arrays are computed.
        trace: what is written down of the run, so that it can be repeated without Python; or None.
    """

    def __init__(self, memory: Memory, tensors: Sequence[Tensor] = (), key: object = None) -> None:
        self.memory, self.stretch = memory, 0
        self.made: list[Any] = []
        self.trace: Any = None
        self.gain = 0.0
        self.whole = memory.whole
        self.passes: Any = None
        self.cuts: list[str] | None = None
        self._begin(None)
        values, places, strides = self.values, self.places, list[Any]()
        for x in tensors:  # of which the root has the forms, so they need not be looked at when they are first used
            data = x._data
            if id(data) not in places and (data.__class__ is ndarray or data.__class__ is DeviceArray):
                strides.append(data.strides)
                places[id(data)] = len(values)
                values.append(data)
            else:
                strides.append(places.get(id(data)))
            self.enter(x)
        self.node = memory.root((key, *strides))

    def _begin(self, key: object = None) -> None:
        self.stretch += 1
        self.node = self.memory.root(key)
        self.values: list[Any] = []
        self.tensors: dict[int, Tensor] = {}
        self.places: dict[int, int] = {}
        self.numbers: list[Any] = []
        self.steps = 0

    def enter(self, x: Tensor) -> None:
        """Let a tensor of an array be one whose calls are noted."""
        data = x._data
        if data.__class__ is not ndarray and data.__class__ is not DeviceArray:
            return
        x._data = Deferred(self, -1, Form.of_array(data), data)
        self.made.append(ref(x))

    def add(self, node: Known, fresh: Sequence[Any], numbers: Sequence[Any]) -> list[Tensor]:
        """Note a call; nothing may fail from here on."""
        values = self.values
        for data in fresh:
            self.places[id(data)] = len(values)
            values.append(data)
        self.numbers += numbers
        self.node = node
        self.steps += 1
        tensors = []
        assert node.step is not None
        for form in node.step.forms:
            made = Deferred(self, len(values), form)
            values.append(made)
            tensor = wrap(made)
            self.tensors[made.index] = tensor
            tensors.append(tensor)
        return tensors

    def place(self, data: Array, fresh: list[Any], key: list[Any]) -> int:
        """The place of an array that is there, which goes into a call's key."""
        found = self.places.get(id(data))
        if found is None:
            for position, each in enumerate(fresh):
                if each is data:
                    key.append(~position)
                    return len(self.values) + position
            found = len(self.values) + len(fresh)
            fresh.append(data)
            key.append(data.form if data.__class__ is DeviceArray else (data.dtype, data.shape, data.strides))
        else:
            key.append(found)
        return found

    def run(self) -> None:
        """Compute what was noted and is still referenced."""
        if not self.steps:
            return
        region = current.region
        if self.cuts is not None:
            self.cuts.append(described_line())
        node, values, numbers, tensors = self.node, self.values, self.numbers, self.tensors
        self._begin()
        wanted = _wanted(values, tensors)
        deferred = [values[i] for i in wanted]
        self.made += [ref(tensors[i]) for i in wanted]
        tensors.clear()
        leaves = None if self.trace is None else {i: x for i, x in enumerate(values) if x.__class__ is not Deferred}
        current.region, types, state.types = None, state.types, frozenset()
        before, recording.enabled = recording.enabled, False
        watch, state.watch = state.watch, None
        try:
            plan = node.plans.get(wanted)
            if plan is None:
                plan = node.plans[wanted] = self._plan(node, wanted, values)
            self.gain += plan.gain
            plan.run(values, numbers)
        except BaseException as error:
            for each in deferred:
                each.region = _Failed(error)
            raise
        finally:
            current.region, state.types, recording.enabled, state.watch = region, types, before, watch
        if leaves is not None:
            self.trace.stretch(node.steps(), leaves, numbers, {place: values[place] for place in wanted})
        for each, place in zip(deferred, wanted, strict=True):
            each.value = values[place]

    def _plan(self, node: Known, wanted: tuple[int, ...], values: list[Any]) -> Plan:
        forms = {place: Form.of_array(x) for place, x in enumerate(values) if x.__class__ is not Deferred}
        return self.memory.plan(node.steps(), wanted, forms)

    def close(self) -> None:
        """Compute all that is referenced, and give the tensors that hold it plain arrays."""
        self.cuts = None
        self.run()
        self.settle()

    def settle(self) -> None:
        """Give tensors whose arrays are computed these arrays."""
        for each in self.made:
            x = each()
            if x is not None and x._data.__class__ is Deferred and x._data.value is not None:
                x._data = x._data.value
        self.made = []


def described_line() -> str:
    """The line of the program that is not of this package, and the function that it calls."""
    (path, line, _), called = _users_line()
    return f"{path}:{line}: {linecache.getline(path, line).strip()} ({called})"


def _users_line() -> tuple[tuple[str, int, str], str]:
    """The same as file, number and function; and the function that is called."""
    frame, called = sys._getframe(1), ""
    while frame.f_back is not None and inside_package(frame.f_code.co_filename):
        frame, called = frame.f_back, frame.f_code.co_name
    return (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name), called


class _Failed:
    """What stands in for the region of arrays that could not be computed."""

    trace = None

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def run(self) -> None:
        """Raise."""
        raise self.error


def _wanted(values: list[Any], tensors: dict[int, Tensor]) -> tuple[int, ...]:
    """The places of what something beside the region references: the array, or the tensor that was made with it."""
    count, found = _getrefcount, []
    for place in tensors:  # `items` would hold a reference of its own
        tensor = tensors[place]
        # of the array: the list, the argument, and the tensor; of the tensor: the dict, the name, the argument
        held = 3 if tensor._data is values[place] else 2
        if count(values[place]) > held or (held == 3 and count(tensor) > 3):
            found.append(place)
    return tuple(found)
