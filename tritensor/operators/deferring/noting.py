"""Noting a call: in place of its results' elements their forms are found, once for all calls alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autograd.mode import recording
from ...autograd.precision import state
from ...memory import buffer
from ...memory.array import DeviceArray
from ...memory.deferred import Deferred, Form
from ...memory.lifted import open_levels
from ...runtime.call import Call, refuse_complex
from ...runtime.reference import metadata_of, numbers_of
from ...runtime.replay import Replay
from ...tensors import Tensor
from ...types import devices, dtypes, layout
from ..float8 import FLOAT8
from ..operator import Operator, registry
from .region import MOST_STEPS, Known, Number, Region, Step, current

ndarray = np.ndarray
DRAWN = frozenset(("offset", "seed"))  # metadata of random numbers, which differs in each call
_HUGE = 1 << 63
_PLAIN = frozenset((bool, int, float, str, type(None), dtypes.dtype))
#: dtypes of arrays that have no part in what is noted
UNNOTED = frozenset(each.numpy for each in FLOAT8)


def apply(operator: Operator, inputs: tuple[Any, ...], metadata: dict[str, Any]) -> Any:
    """An operator's results on tensors of which at least one is deferred: noted, or computed where that cannot be."""
    if operator.name == "pow" and _is_short_power(inputs):
        return _as_product(operator, inputs)
    region = current.region
    noted = operator.deferrable and (operator.repeatable is True or getattr(operator, "draws", False))
    if region is None or open_levels.stack or not noted:
        return eagerly(operator, inputs, metadata)
    if region.steps >= MOST_STEPS:
        region.run()
    described = _described(region, operator, inputs, metadata)
    if described is None:
        return eagerly(operator, inputs, metadata)
    key, places, named, fresh, numbers = described
    node, stretch = region.node, region.stretch
    known = node.next.get(key, _MISSING)
    if known is _MISSING:
        known = _learn(region, operator, inputs, metadata, places, named, len(region.values) + len(fresh))
        if region.stretch != stretch:  # the check of the arguments has read elements
            return eagerly(operator, inputs, metadata)
        node.next[key] = known
        region.memory.count += 1
    if known is None:
        return eagerly(operator, inputs, metadata)
    if numbers:
        numbers = [x if check is None else check(x) for x, check in zip(numbers, known.checks, strict=True)]
    outputs = tuple(region.add(known, fresh, numbers))
    if recording.enabled and any(isinstance(x, Tensor) and x._needs for x in inputs):
        replay = known.replay
        operator.record(outputs, inputs + replay.missing, replay.tape(metadata), replay.alike)
    return outputs if len(outputs) > 1 else outputs[0]


def _is_short_power(inputs: tuple[Any, ...]) -> bool:
    """Whether a power is a product: a power of any other number takes 10 times as long in a kernel."""
    x, y = inputs if len(inputs) == 2 else (None, None)
    return isinstance(x, Tensor) and x.is_floating_point() and y.__class__ in (int, float) and y in (1, 2)


def _as_product(operator: Operator, inputs: tuple[Any, ...]) -> Any:
    x, y = inputs
    before, recording.enabled = recording.enabled, False
    try:
        found = apply(registry["mul"], (x, x if y == 2 else 1), {})
    finally:
        recording.enabled = before
    if recording.enabled and x._needs:
        operator.record((found,), inputs, {}, True)
    return found


Described = tuple[tuple[Any, ...], tuple[Any, ...], dict[str, Any], list[Any], list[Any]]


def _described(
    region: Region, operator: Operator, inputs: tuple[Any, ...], metadata: dict[str, Any]
) -> Described | None:
    """The key of a call, the places of its inputs, and its metadata, as a `Step` has them; arrays that are new, and
    numbers. None for a call that cannot be noted."""
    key: list[Any] = [operator]
    places: list[Any] = []
    fresh: list[Any] = []
    numbers: list[Any] = []
    first, takes = len(region.numbers), operator.takes_numbers
    for x in inputs:
        if isinstance(x, Tensor):
            data = x._data
            if data.__class__ is Deferred and data.value is None:
                if data.region is not region:
                    return None
                key.append(data.index)
                places.append(data.index)
                continue
            data = data.value if data.__class__ is Deferred else data
            if data.__class__ is not ndarray and data.__class__ is not DeviceArray:
                return None
            places.append(region.place(data, fresh, key))
        elif x is None or x.__class__ is bool:
            key.append((x.__class__, x))
            places.append((x,))
        elif not _is_number(x):
            return None
        elif takes:
            key.append(x.__class__)
            places.append(Number(first + len(numbers)))
            numbers.append(x)
        else:
            key.append((x.__class__, x or str(x)))
            places.append((x,))
    named: dict[str, Any] = {}
    for name, value in metadata.items():
        kind = value.__class__
        key += name, kind
        if _is_number(value) and (takes or name in DRAWN):
            named[name] = Number(first + len(numbers))
            numbers.append(value)
            continue
        if kind in _PLAIN and (kind is not int or _is_number(value)):
            key.append(value or str(value))
        elif (kind is tuple or kind is list) and _PLAIN.issuperset(map(type, value)):
            key += tuple(map(type, value)), tuple(value)
        else:
            return None
        named[name] = value
    return tuple(key), tuple(places), named, fresh, numbers


def _is_number(x: object) -> bool:
    """True of numbers that kernels take; operators refuse integers beyond 64 bits, each in its own words."""
    return x.__class__ is float or (x.__class__ is int and -_HUGE <= x < _HUGE)


_MISSING: Any = object()
_new = object.__new__


def repeated(operator: Operator, x: Tensor, y: Tensor | float = _MISSING) -> tuple[Any, Any] | None:
    """The result of an operator of one or two inputs, of which the first tensor is deferred, where it was noted before
    after the same calls; it is not recorded. None for other calls: `apply` takes four times as long.

    Args:
        x, y: tensors, of which `y` may be a float or an int.
    """
    region = current.region
    if region is None:
        return None
    places, data = region.places, x._data
    first = places.get(id(data.value)) if data.value is not None else data.index if data.region is region else None
    if y is _MISSING:
        key: tuple[Any, ...] = (operator, first)
    elif _is_number(y):
        if operator.name == "pow" and y in (1, 2):
            return None  # it is a product
        key = (operator, first, y.__class__)
    elif isinstance(y, int):
        return None
    else:
        data = y._data  # type: ignore[union-attr]
        if data.__class__ is not Deferred:
            second = places.get(id(data))
        elif data.value is not None:
            second = places.get(id(data.value))
        else:
            second = data.index if data.region is region else None
        key = (operator, first, second)
    known = region.node.next.get(key)
    if known is None or region.steps >= MOST_STEPS:
        return None
    if known.checks:
        check = known.checks[0]
        region.numbers.append(y if check is None else check(y))
    values = region.values
    made = _new(Deferred)
    made.region, made.index, made.value, made.shared = region, len(values), None, False
    made.form = known.step.forms[0]  # type: ignore[union-attr]
    values.append(made)
    region.node = known
    region.steps += 1
    result: Any = _new(Tensor)
    result._data = made
    result._counter = result._origin = result._node = None
    result._needs = False
    region.tensors[made.index] = result
    return result, known.replay


def _learn(
    region: Region,
    operator: Operator,
    inputs: tuple[Any, ...],
    metadata: dict[str, Any],
    places: tuple[Any, ...],
    named: dict[str, Any],
    first: int,
) -> Known | None:
    """A call as it is known from now on; None for one that cannot be noted.

    Raises:
        Exception: what the operator raises for its arguments.
    """
    call = operator.prepared(inputs, metadata)
    kinds = (call.compute, *call.results)
    if call.device is devices.meta or not FLOAT8.isdisjoint(kinds):
        return None
    call.arrays = [_model(x) if isinstance(x, Tensor) else x for x in call.inputs]
    if any(x.__class__ is DeviceArray and x.dtype in UNNOTED for x in call.arrays):
        return None
    if call.device is not devices.cpu and not operator.on_pairs:
        refuse_complex(operator.name, call.device, (*kinds, *call.arrays))
    if operator.rule.examines and call.device is devices.cpu:
        return None
    metadata_of(call)  # which checks numbers, as those of the inputs are
    for value, number in zip(call.arrays, numbers_of(call)):
        if number is not None:
            number(value)
    try:
        shapes = operator.allocate(call)
        forms = [_form(call, *each) for each in shapes]
    except Exception:
        return None
    if None in forms:
        return None
    node = Known(region.node, Step(operator, places, named, first, call, forms))
    own = [name for name, value in named.items() if value.__class__ is Number]
    alike = all(
        (x._data.shape, x._data.dtype) == (forms[0][0], forms[0][2]) for x in call.inputs if isinstance(x, Tensor)
    )
    node.replay = Replay(_nothing, call.metadata, own, len(call.inputs) - len(inputs), alike)
    names = operator.inputs
    node.checks = [operator.rule.number(names[i], call) for i, value in enumerate(places) if value.__class__ is Number]
    held = operator.rule.held
    node.checks += [operator.rule.number(name, call) if name in held else None for name in own]
    call.inputs = tuple([None if isinstance(x, Tensor) else x for x in call.inputs])
    return node


def _nothing(*_: Any) -> None:
    return None


def _model(x: Tensor) -> DeviceArray:
    """An array of a tensor's form without memory."""
    data = x._data
    return buffer.empty(tuple(data.shape), data.dtype, devices.meta, x.stride())


def _form(call: Call, shape: Sequence[int], kind: np.dtype[Any], *strides: Sequence[int]) -> Any:
    """Shape, strides, dtype and device of a result; None where they are not known before it is computed."""
    shape = tuple(shape)
    if strides and strides[0]:
        return Form.of(shape, tuple(strides[0]), kind, call.device)
    steps = layout.contiguous_strides(shape)
    family = getattr(call.operator, "family", "")
    if call.device is devices.cpu and family not in _ROW_MAJOR:
        laid = [x for x in call.arrays if x.__class__ is DeviceArray and not x.is_contiguous()]
        if laid and family == "elementwise" and not getattr(call.operator, "whole", False):
            steps = _numpys_strides(call.arrays, shape)
        elif laid:
            return None
    return Form.of(shape, steps, kind, call.device)


#: families of which NumPy lays results out in row-major order, whatever their inputs
_ROW_MAJOR = frozenset(("attention", "matmul"))


def _numpys_strides(arrays: Sequence[Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides that NumPy gives the result of arrays that broadcast: it keeps the order of their dimensions."""
    corners = []
    for array in arrays:
        if array.__class__ is DeviceArray:
            order = sorted({abs(step) for step in array.strides})
            sizes = [min(size, 2) for size in array.shape]
            steps = [0 if step == 0 else 2 ** order.index(abs(step)) for step in array.strides]
            corners.append(np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), sizes, steps))
    flags: Any = [*[["readonly"]] * len(corners), ["writeonly", "allocate"]]
    operands: Any = [*corners, None]
    small = np.nditer(operands, ["reduce_ok"], flags).operands[-1]
    turned = sorted(range(len(shape)), key=lambda dim: (-small.strides[dim], dim))
    steps, total = [0] * len(shape), 1
    for dim in reversed(turned):
        steps[dim] = total
        total *= max(1, shape[dim])
    return tuple(steps)


def eagerly(operator: Operator, inputs: tuple[Any, ...], metadata: dict[str, Any]) -> Any:
    """The results of a call that is not noted; what is computed from them is noted again."""
    region, held = current.region, []
    trace = None if region is None else region.trace
    for x in inputs:
        if isinstance(x, Tensor) and x._data.__class__ is Deferred:
            held.append((x, x._data))
            x._data = x._data.computed()
    found: Any
    watch, state.watch = state.watch, None if trace is not None else state.watch
    try:
        found = operator(*inputs, **metadata)
        if trace is not None:
            trace.call(operator, inputs, metadata, found if found.__class__ is tuple else (found,))
    finally:
        state.watch = watch
        if region is not None:
            for x, data in held:
                x._data = data
    if region is not None:
        for each in found if found.__class__ is tuple else (found,):
            if isinstance(each, Tensor):
                region.enter(each)
    return found
