"""The step of an optimizer and clipping on the CPU as native code: a kernel on all tensors, in one pass over memory.

A step's results have the bits of the passes by NumPy (`steps.py`): each operation is rounded on its own. NumPy answers
until the code is made, and where arrays are not contiguous, overlap, or are not of one shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime.call import Call
from ...runtime.launch import DeviceFunction, device_function, kernel, launch
from ...runtime.native_entry import Launch
from ...runtime.native_rows import BLOCK, Rows, Template
from ...tensors import Tensor, wrap
from ...types import devices, dtypes
from .clipping import ORDERS, added
from .multi_tensor import count_changes, update_block

if TYPE_CHECKING:
    import triton.language as tl

    from .rules import Update

ndarray = np.ndarray
#: numbers that decide what is computed: they are constants of the code, as of the passes
_PLAIN = frozenset((0.0, 1.0, -1.0))
_WIDE = (dtypes.float32.numpy, dtypes.float64.numpy)
_KINDS = frozenset((*_WIDE, dtypes.bfloat16.numpy, dtypes.float16.numpy))


@kernel
def update_kernel(
    places: tl.tuple,
    numbers: tl.tensor,
    count: tl.tensor,
    first: tl.tensor,
    BODY: tl.constexpr,
    KINDS: tl.constexpr,
    COMPUTE: tl.constexpr,
    FIXED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """`param, *state = BODY(param, grad, *state, *numbers)` for every element.

    Args:
        places: pointers to param, grad and state.
        numbers: pointer to what BODY takes after them.
        first: is not used.
        FIXED: for each of the numbers None, or its value. The rest is as for `multi_tensor_kernel`.
    """
    found = ()
    for position in tl.static_range(len(FIXED)):
        if FIXED[position] is None:
            found = found + (tl.load(numbers + position).to(COMPUTE),)  # type: ignore[assignment]  # noqa: RUF005
        else:
            found = found + (FIXED[position],)  # type: ignore[assignment]  # noqa: RUF005
    start = tl.program_id(0).to(tl.int64) * BLOCK
    index = start + tl.arange(0, BLOCK)
    # two forms: a mask for every block would make SGD take 1.5, and Adam 1.2 times as long
    if start + BLOCK <= count:
        update_block(places, found, index, None, BODY, KINDS, COMPUTE)
    else:
        update_block(places, found, index, index < count, BODY, KINDS, COMPUTE)


class Plans:
    """The plans of an optimizer, by a tag for each."""

    def __init__(self) -> None:
        self.known: dict[object, tuple[Any, Rows | None]] = {}

    def step(self, tag: object, operator: Update, numbers: Sequence[float], columns: Sequence[Sequence[Any]]) -> bool:
        """Change parameters and state; False if native code is not there, or not for such arrays.

        Args:
            tag: tells this call apart from the optimizer's other ones.
            operator, numbers: what is computed.
            columns: the arrays of all parameters, of all gradients, of each state.
        """
        fixed = tuple([value if value in _PLAIN else None for value in numbers])
        wide = np.array(numbers)
        shared = wide.astype(np.float32), wide
        arrays = (*chain.from_iterable(columns), *shared)
        before, rows = self.known.get(tag, (None, None))
        if before is None:  # what is done once needs no native code
            self.known[tag] = fixed, None
            return False
        if rows is None or before != fixed or not rows.fit(arrays):
            launches = _launches(operator, tuple(numbers), fixed, columns)
            if launches is None:
                return False
            rows = Rows(columns, shared, launches, reads=1)
            self.known[tag] = fixed, rows
            if not rows.fit(arrays):
                return False
        rows.run(arrays)
        return True


def _launches(
    operator: Update, numbers: tuple[float, ...], fixed: tuple[Any, ...], columns: Sequence[Sequence[Any]]
) -> list[Any] | None:
    """The launch for each row; None where an array is none that native code takes, or code is not there yet."""
    found = []
    for row in zip(*columns, strict=True):
        for each in row:
            if each.__class__ is not ndarray or each.dtype not in _KINDS or each.shape != row[0].shape:
                return None
            if not each.flags.c_contiguous or not (each.flags.writeable or each is row[1]):
                return None
        key = operator, tuple([each.dtype for each in row]), fixed
        if key not in _templates:
            _templates[key] = _template(operator, key[1], fixed, numbers)
        found.append(_templates[key].get(sum(each.nbytes for each in columns[0])))
    return None if None in found else found


_templates: dict[Any, Template] = {}


def _template(operator: Update, kinds: tuple[Any, ...], fixed: tuple[Any, ...], numbers: Sequence[float]) -> Template:
    if not isinstance(operator.body, DeviceFunction):
        operator.body = device_function(operator.body, name=operator.name)
    named = dict(zip(operator.metadata, numbers, strict=True))
    random = np.random.default_rng(0)
    arrays = [random.uniform(0.1, 1, 3 * BLOCK // 2).astype(kind) for kind in kinds]
    call = Call(operator, tuple([wrap(each) for each in arrays]), named)
    call.compute, call.results = operator.resolve_dtypes(call)

    def start(given: Sequence[Any], size: int, first: int) -> None:
        constants = {
            "BODY": operator.body,
            "KINDS": tuple([dtypes.of(kind) for kind in kinds]),
            "COMPUTE": call.compute,
            "FIXED": fixed,
            "BLOCK": BLOCK,
        }
        given, shared = given[: len(kinds)], given[len(kinds) :]
        memory = shared[call.compute is dtypes.float64]
        launch(update_kernel, (1,), (tuple(given), memory, size, first), constants, memory.device, name=operator.name)

    def check(made: Launch) -> str | None:
        with np.errstate(all="ignore"):
            expected = operator.on_host(call)(*arrays)
        columns, wide = [[each.copy()] for each in arrays], np.array(numbers)
        shared = wide.astype(np.float32), wide
        rows = Rows(columns, shared, [made], reads=1)
        if not rows.fit(given := (*chain.from_iterable(columns), *shared)):
            return "arrays are not read"
        rows.run(given)
        for name, [found], wanted in zip(operator.outputs, [columns[0], *columns[2:]], expected, strict=True):
            if not np.array_equal(found, wanted, equal_nan=True):
                return f"{name} has other bits"
        return None

    return Template(operator.name, (*kinds, *_WIDE), start, check)


# ---- clipping ---------------------------------------------------------------------------------------------------


@kernel
def part_kernel(
    place: tl.tensor,
    parts: tl.tensor,
    count: tl.tensor,
    first: tl.tensor,
    KIND: tl.constexpr,
    ORDER: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """parts[first + program]: the contribution of a block to a norm, which is that of `norm_kernel`."""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    index = start + tl.arange(0, BLOCK)
    if start + BLOCK <= count:
        x = tl.load(place + index).to(KIND)
    else:
        x = tl.load(place + index, mask=index < count, other=0).to(KIND)
    total = added(tl.zeros((BLOCK,), KIND), x, ORDER)
    if ORDER == "largest":
        found = tl.max(tl.where(total == total, total, 0.0), 0)
        found = tl.where(tl.sum((total != total).to(tl.int32), 0) > 0, float("nan"), found)
    else:
        found = tl.sum(total, 0)
    tl.store(parts + first + tl.program_id(0), found)


@kernel
def multiply_kernel(
    place: tl.tensor,
    factor: tl.tensor,
    count: tl.tensor,
    first: tl.tensor,
    KIND: tl.constexpr,
    COMPUTE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Multiply every element by the number at `factor`; `first` is not used."""
    by = tl.load(factor)
    start = tl.program_id(0).to(tl.int64) * BLOCK
    index = start + tl.arange(0, BLOCK)
    if start + BLOCK <= count:
        tl.store(place + index, (tl.load(place + index).to(COMPUTE) * by).to(KIND))
    else:
        x = tl.load(place + index, mask=index < count).to(COMPUTE)
        tl.store(place + index, (x * by).to(KIND), mask=index < count)


def _clipping(kind: np.dtype[Any], order: str = "") -> Template:
    """The norm of an order, or the multiplication."""
    own = dtypes.of(kind)
    compute = dtypes.float64 if own is dtypes.float64 else dtypes.float32
    body: Any = part_kernel if order else multiply_kernel
    constants: dict[str, Any] = {"ORDER": order, "KIND": compute} if order else {"KIND": own, "COMPUTE": compute}

    def start(given: Sequence[Any], size: int, first: int) -> None:
        launch(body, (1,), (*given, size, first), {**constants, "BLOCK": BLOCK}, given[0].device, name=body.__name__)

    def check(made: Launch) -> str | None:
        x = np.random.default_rng(0).uniform(0.1, 1, 3 * BLOCK // 2).astype(kind)
        shared = np.full(2 if order else (), 0.7, compute.numpy)
        expected = (
            [_NORMS[order](part.astype(compute.numpy)) for part in (x[:BLOCK], x[BLOCK:])] if order else x * shared
        )
        Rows([[x]], (shared,), [made]).run((x, shared))
        found, wanted = (shared if order else x).astype(np.float64), np.array(expected, np.float64)
        return None if np.allclose(found, wanted, 1e-5 if order else 1e-2) else f"{found}, not {wanted}"

    return Template("clipping", (kind, compute.numpy), start, check)


_NORMS: dict[str, Any] = {"squares": lambda x: np.square(x).sum(), "sum": lambda x: np.abs(x).sum(), "largest": np.max}


class Listed:
    """Contiguous tensors of one dtype on the CPU that lie apart; what `Gathered` is for those on a device."""

    def __init__(self, tensors: Sequence[Tensor], arrays: tuple[ndarray, ...], scaling: Rows) -> None:
        self.tensors, self.arrays, self.scaling = tensors, arrays, scaling
        self.device, self.dtype = devices.cpu, dtypes.of(arrays[0].dtype)
        self.compute = dtypes.float64 if self.dtype is dtypes.float64 else dtypes.float32

    def norm(self, order: float) -> Tensor:
        """The norm of all elements."""
        name = ORDERS[order]
        parts = np.empty(self.scaling.programs, self.compute.numpy)
        rows = _plan(self.arrays, parts, name)
        if rows is None:
            parts = np.array([float(tensor.norm(order)) for tensor in self.tensors])
            total = np.linalg.norm(parts, order)
        else:
            rows.run((*self.arrays, parts))
            total = parts.max(initial=0) if name == "largest" else parts.sum(dtype=np.float64)
            total = np.sqrt(total) if name == "squares" else total
        return wrap(np.array(total, self.dtype.numpy))

    def scale(self, factor: Tensor) -> None:
        """Multiply all of them in place by a number."""
        if (by := factor.numpy()) != 1:
            self.scaling.run((*self.arrays, by))
        count_changes(self.tensors)


def listed(tensors: Sequence[Tensor]) -> list[Listed] | None:
    """Tensors of the CPU by dtype; None where there is no native code for them (yet)."""
    groups: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(tensor._data.dtype, []).append(tensor)
    found = []
    for kind, group in groups.items():
        arrays, factor = tuple([tensor._data for tensor in group]), np.ones((), _computed(kind))
        scaling = _plan(arrays, factor, "")
        if scaling is None:
            return None
        found.append(Listed(group, arrays, scaling))
    return found


def _computed(kind: np.dtype[Any]) -> np.dtype[Any]:
    return _WIDE[kind is _WIDE[1]]


_plans: dict[Any, Rows | None] = {}
_MOST_PLANS = 64


def _plan(arrays: tuple[ndarray, ...], shared: ndarray, order: str) -> Rows | None:
    """The plan for a norm of an order, or for the multiplication; made for a list like the one of a call before."""
    kind = arrays[0].dtype
    key = kind, len(arrays), order, shared.shape
    if key not in _plans:  # what is done once needs no native code
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        _plans[key] = None
        return None
    rows = _plans[key]
    if rows is not None and rows.fit((*arrays, shared)):
        return rows
    if kind not in _KINDS:
        return None
    if not all(each.size and each.flags.c_contiguous and each.flags.writeable for each in arrays):
        return None
    if (kind, order) not in _templates:
        _templates[kind, order] = _clipping(kind, order)
    made = _templates[kind, order].get(sum(each.nbytes for each in arrays))
    if made is None:
        return None
    rows = _plans[key] = Rows([arrays], (shared,), [made] * len(arrays))
    return rows if rows.fit((*arrays, shared)) else None
