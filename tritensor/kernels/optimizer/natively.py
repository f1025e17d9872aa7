"""The step of an optimizer on the CPU as native code: a rule's kernel on all parameters, in one pass over memory.

Its results have the bits of the passes by NumPy (`steps.py`), which answer until it is made, and where arrays are not
contiguous, overlap, or are not of one shape: each operation is rounded on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime.call import Call
from ...runtime.launch import DeviceFunction, device_function, kernel, launch
from ...runtime.native_rows import BLOCK, Rows, Template
from ...tensors import wrap
from ...types import dtypes
from .multi_tensor import update_block

if TYPE_CHECKING:
    import triton.language as tl

ndarray = np.ndarray
#: numbers that decide what is computed: they are constants of the code, as of the passes
_PLAIN = frozenset((0.0, 1.0, -1.0))
_WIDE = (dtypes.float32.numpy, dtypes.float64.numpy)
_KINDS = frozenset((*_WIDE, dtypes.bfloat16.numpy, dtypes.float16.numpy))


@kernel
def update_kernel(
    places,
    numbers,
    count,
    first,
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
        self.known: dict[Any, tuple[Any, Rows | None]] = {}

    def step(self, tag: Any, operator: Any, numbers: Sequence[float], columns: Sequence[Sequence[Any]]) -> bool:
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
    operator: Any, numbers: tuple[float, ...], fixed: tuple[Any, ...], columns: Sequence[Sequence[Any]]
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
        found.append(_templates[key].get())
    return None if None in found else found


_templates: dict[Any, Template] = {}


def _template(operator: Any, kinds: tuple[Any, ...], fixed: tuple[Any, ...], numbers: Sequence[float]) -> Template:
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

    def check(template: Template) -> str | None:
        with np.errstate(all="ignore"):
            expected = operator.on_host(call)(*arrays)
        columns, wide = [[each.copy()] for each in arrays], np.array(numbers)
        shared = wide.astype(np.float32), wide
        assert template.made is not None
        rows = Rows(columns, shared, [template.made], reads=1)
        if not rows.fit(given := (*chain.from_iterable(columns), *shared)):
            return "arrays are not read"
        rows.run(given)
        for name, [found], wanted in zip(operator.outputs, [columns[0], *columns[2:]], expected, strict=True):
            if not np.array_equal(found, wanted, equal_nan=True):
                return f"{name} has other bits"
        return None

    return Template(operator.name, (*kinds, *_WIDE), len(kinds), start, check)
