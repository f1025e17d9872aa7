"""Random numbers on the CPU by native code: words, uniform numbers and dropout, with the bits of `reference.py`.

What is made of words by functions of mathematics stays with NumPy, so that numbers do not change once code is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime.launch import kernel, launch
from ...runtime.native_entry import Launch
from ...runtime.native_rows import BLOCK, Rows, Template
from ...types import dtypes
from . import reference
from .philox import in_order, philox_words, uniform

if TYPE_CHECKING:
    import triton.language as tl

ndarray = np.ndarray


@kernel
def words_kernel(even, odd, state, count, first, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    """What `reference.philox` computes.

    Args:
        even, odd: 64 bits for each word; words 2 and 3 begin STRIDE elements behind words 0 and 1.
        state: in memory the seed, the number of the call, and the first counter.
        count: of counters. `first` is not used.
    """
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    word0, word1, word2, word3 = philox_words(tl.load(state + 2) + index, tl.load(state), tl.load(state + 1))
    mask = index < count
    tl.store(even + index, word0.to(tl.uint64), mask=mask)
    tl.store(even + STRIDE + index, word2.to(tl.uint64), mask=mask)
    tl.store(odd + index, word1.to(tl.uint64), mask=mask)
    tl.store(odd + STRIDE + index, word3.to(tl.uint64), mask=mask)


@kernel
def uniform_kernel(
    out, state, count, first, BODY: tl.constexpr, KIND: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr
):
    """What `random_kernel` computes, with `state` as above."""
    counters: tl.constexpr = BLOCK // (2 if WIDE else 4)
    start = tl.program_id(0).to(tl.int64)
    index = tl.load(state + 2) + start * counters + tl.arange(0, counters)
    word0, word1, word2, word3 = philox_words(index, tl.load(state), tl.load(state + 1))
    place = start * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + place, BODY(word0, word1, word2, word3, KIND, WIDE).to(KIND), mask=place < count)


@kernel
def drop_kernel(out, x, state, scale, count, first, KIND: tl.constexpr, COMPUTE: tl.constexpr, BLOCK: tl.constexpr):
    """What `dropout_kernel` computes; behind the `state` as above stands the threshold."""
    counters: tl.constexpr = BLOCK // 8
    start = tl.program_id(0).to(tl.int64)
    index = tl.load(state + 2) + start * counters + tl.arange(0, counters)
    word0, word1, word2, word3 = philox_words(index, tl.load(state), tl.load(state + 1))
    word = in_order(word0, word1, word2, word3)
    half = tl.interleave(word & 0xFFFF, word >> 16).to(tl.int32)
    factor = tl.where(half >= tl.load(state + 3).to(tl.int32), tl.load(scale), 0.0).to(COMPUTE)
    place = start * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < count).to(COMPUTE)
    tl.store(out + place, (value * factor).to(KIND), mask=place < count)


class _Drawing:
    """A kernel for arrays of any size, of which plans are kept by size.

    Args:
        kernel, kinds, constants: the kernel, the dtypes of its arrays, and its constants.
        check: called with a function that runs it; says whether its results are NumPy's.
    """

    def __init__(
        self,
        kernel: Any,
        kinds: Sequence[np.dtype[Any]],
        constants: dict[str, Any],
        check: Callable[[Callable[..., None]], bool],
    ) -> None:
        self.plans: dict[Any, Rows] = {}
        name = kernel.__name__

        def start(given: Sequence[Any], size: int, first: int) -> None:
            launch(kernel, (1,), (*given, size, first), {**constants, "BLOCK": BLOCK}, given[0].device, name=name)

        def checked(made: Launch) -> str | None:
            right = check(lambda *given, **options: self.run(made, *given, **options))
            return None if right else "it has other bits"

        self.template = Template(name, kinds, start, checked)

    def run(self, made: Launch, rows: Sequence[ndarray], shared: Sequence[ndarray], size: int) -> None:
        """Run it on arrays that need no check."""
        plan = self.plans.get(size)
        if plan is None:
            if len(self.plans) >= _MOST_PLANS:
                self.plans.clear()
            plan = self.plans[size] = Rows([[each] for each in rows], shared, [made], sizes=[size])
        plan.run((*rows, *shared))


_MOST_PLANS = 64
_STATE = np.dtype(np.int64)
_drawings: dict[Any, _Drawing] = {}


def _run(key: Any, make: Callable[[], _Drawing], rows: Sequence[ndarray], shared: Sequence[ndarray], size: int) -> bool:
    drawing = _drawings.get(key)
    if drawing is None:
        drawing = _drawings[key] = make()
    made = drawing.template.get(rows[0].nbytes)
    if made is None:
        return False
    drawing.run(made, rows, shared, size)
    return True


def _state(*values: int) -> ndarray:
    return np.array(values, np.uint64).view(_STATE)


_SEED, _OFFSET = 0x9E3779B97F4A7C15, (5 << 32) + 7


def draw_words(even: ndarray, odd: ndarray, first: int, count: int, seed: int, offset: int) -> bool:
    """`reference.philox` into two arrays; False where NumPy has to compute it."""

    def make() -> _Drawing:
        def check(run: Callable[..., None]) -> bool:
            found, count = np.zeros((2, *even.shape), np.uint64), 600
            run(found, (_state(_SEED, _OFFSET, 3),), count)
            wanted = reference.by_numpy(3, count, _SEED, _OFFSET)
            return all(np.array_equal(x[:, :count], y) for x, y in zip(found, wanted, strict=True))

        return _Drawing(words_kernel, (even.dtype, odd.dtype, _STATE), {"STRIDE": even.shape[1]}, check)

    return _run(even.shape[1], make, (even, odd), (_state(seed, offset, first),), count)


def draw_uniform(count: int, seed: int, offset: int, kind: np.dtype[Any]) -> ndarray | None:
    """`reference.draw_uniform`."""
    own = dtypes.of(kind)

    def make() -> _Drawing:
        constants = {"BODY": uniform.device_body(), "KIND": own, "WIDE": own is dtypes.float64}

        def check(run: Callable[..., None]) -> bool:
            found = np.empty(700, kind)
            run((found,), (_state(_SEED, _OFFSET, 0),), found.size)
            wanted = uniform.reference(shape=found.shape, seed=_SEED, offset=_OFFSET, dtype=own)
            return np.array_equal(found, wanted)

        return _Drawing(uniform_kernel, (kind, _STATE), constants, check)

    out = np.empty(count, kind)
    return out if _run(kind, make, (out,), (_state(seed, offset, 0),), count) else None


def draw_dropout(
    x: ndarray, seed: int, offset: int, threshold: int, scale: float, kind: np.dtype[Any], first: int
) -> ndarray | None:
    """`reference.draw_dropout`, of a contiguous array."""

    def make() -> _Drawing:
        constants = {"KIND": dtypes.of(x.dtype), "COMPUTE": dtypes.of(kind)}

        def check(run: Callable[..., None]) -> bool:
            given = np.linspace(-1, 1, 700).astype(x.dtype)
            found = np.empty_like(given)
            run((found, given), (_state(_SEED, _OFFSET, 0, 20000), np.array(1.44, kind)), given.size)
            return np.array_equal(found, reference.draw_dropout(given, _SEED, _OFFSET, 20000, 1.44, kind))

        return _Drawing(drop_kernel, (x.dtype, x.dtype, _STATE, kind), constants, check)

    out = np.empty(x.shape, x.dtype)
    shared = _state(seed, offset, first, threshold), np.array(scale, kind)
    return out if _run((x.dtype, kind), make, (out, x), shared, x.size) else None
