"""Random numbers on the CPU by native code: words, uniform numbers and dropout, with the bits of `reference.py`.

What is made of words by functions of mathematics stays with NumPy, so that numbers do not change once code is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime.launch import Kernel, kernel, launch
from ...runtime.native_entry import Launch
from ...runtime.native_rows import BLOCK, Rows, Template
from ...types import dtypes
from .words import in_order, long_word, philox_words

if TYPE_CHECKING:
    import triton.language as tl

ndarray = np.ndarray
Run = Callable[[Sequence[ndarray], Sequence[ndarray], int], None]


@kernel
def words_kernel(
    even: tl.tensor,
    odd: tl.tensor,
    state: tl.tensor,
    count: tl.tensor,
    first: tl.tensor,
    STRIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
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
    out: tl.tensor,
    state: tl.tensor,
    count: tl.tensor,
    first: tl.tensor,
    BITS: tl.constexpr,
    SCALE: tl.constexpr,
    KIND: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """What `random_kernel` computes for uniform numbers of so many bits; `state` as above, SCALE is 2 ** -BITS."""
    start = tl.program_id(0).to(tl.int64)
    if BITS > 32:
        index = tl.load(state + 2) + start * (BLOCK // 2) + tl.arange(0, BLOCK // 2)
        word0, word1, word2, word3 = philox_words(index, tl.load(state), tl.load(state + 1))
        pair = tl.interleave(long_word(word0, word1), long_word(word2, word3))
        value = (pair >> (64 - BITS)).to(tl.float64) * SCALE
    else:
        index = tl.load(state + 2) + start * (BLOCK // 4) + tl.arange(0, BLOCK // 4)
        word0, word1, word2, word3 = philox_words(index, tl.load(state), tl.load(state + 1))
        value = (in_order(word0, word1, word2, word3) >> (32 - BITS)).to(tl.float32) * SCALE
    place = start * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + place, value.to(KIND), mask=place < count)


@kernel
def drop_kernel(
    out: tl.tensor,
    x: tl.tensor,
    state: tl.tensor,
    scale: tl.tensor,
    count: tl.tensor,
    first: tl.tensor,
    KIND: tl.constexpr,
    COMPUTE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """What `dropout_kernel` computes; behind the `state` as above stands the threshold."""
    start = tl.program_id(0).to(tl.int64)
    index = tl.load(state + 2) + start * (BLOCK // 8) + tl.arange(0, BLOCK // 8)
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
        body, kinds, constants: the kernel, the dtypes of its arrays, and its constants.
        check: called with a function that runs it; says whether its results are NumPy's.
    """

    def __init__(
        self,
        body: Kernel,
        kinds: Sequence[np.dtype[Any]],
        constants: dict[str, Any],
        check: Callable[[Run], bool],
    ) -> None:
        self.plans: dict[int, Rows] = {}
        name = body.__name__

        def start(given: Sequence[Any], size: int, first: int) -> None:
            launch(body, (1,), (*given, size, first), {**constants, "BLOCK": BLOCK}, given[0].device, name=name)

        def checked(made: Launch) -> str | None:
            right = check(lambda rows, shared, size: self.run(made, rows, shared, size))
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


def _run(
    key: tuple[Any, ...],
    make: Callable[[], _Drawing],
    rows: Sequence[ndarray],
    shared: Sequence[ndarray],
    size: int,
) -> bool:
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


# what is drawn to compare it with NumPy's
_SEED, _OFFSET, _COUNT = 0x9E3779B97F4A7C15, (5 << 32) + 7, 700


def draw_words(
    even: ndarray, odd: ndarray, first: int, count: int, seed: int, offset: int, by_numpy: Callable[..., Any]
) -> bool:
    """`reference.philox` into two arrays; False where NumPy has to compute it."""

    def make() -> _Drawing:
        def check(run: Run) -> bool:
            found = np.zeros((2, *even.shape), np.uint64)
            run([*found], (_state(_SEED, _OFFSET, 3),), _COUNT)
            wanted = by_numpy(3, _COUNT, _SEED, _OFFSET)
            return all(np.array_equal(x[:, :_COUNT], y) for x, y in zip(found, wanted, strict=True))

        return _Drawing(words_kernel, (even.dtype, odd.dtype, _STATE), {"STRIDE": even.shape[1]}, check)

    return _run(("words", even.shape), make, (even, odd), (_state(seed, offset, first),), count)


def draw_uniform(
    count: int, seed: int, offset: int, bits: int, kind: np.dtype[Any], by_numpy: Callable[..., ndarray]
) -> ndarray | None:
    """`reference.draw_uniform`, or None."""

    def make() -> _Drawing:
        constants = {"BITS": bits, "SCALE": 2.0**-bits, "KIND": dtypes.of(kind)}

        def check(run: Run) -> bool:
            found = np.empty(_COUNT, kind)
            run((found,), (_state(_SEED, _OFFSET, 0),), _COUNT)
            return np.array_equal(found, by_numpy(_COUNT, _SEED, _OFFSET, bits, kind))

        return _Drawing(uniform_kernel, (kind, _STATE), constants, check)

    out = np.empty(count, kind)
    return out if _run((bits, kind), make, (out,), (_state(seed, offset, 0),), count) else None


def draw_dropout(
    x: ndarray,
    seed: int,
    offset: int,
    threshold: int,
    scale: float,
    kind: np.dtype[Any],
    first: int,
    by_numpy: Callable[..., ndarray],
) -> ndarray | None:
    """`reference.draw_dropout`, of a contiguous array, or None."""

    def make() -> _Drawing:
        constants = {"KIND": dtypes.of(x.dtype), "COMPUTE": dtypes.of(kind)}

        def check(run: Run) -> bool:
            given = np.linspace(-1, 1, _COUNT).astype(x.dtype)
            found = np.empty_like(given)
            run((found, given), (_state(_SEED, _OFFSET, 3, 20000), np.array(1.44, kind)), _COUNT)
            return np.array_equal(found, by_numpy(given, _SEED, _OFFSET, 20000, 1.44, kind, 3))

        return _Drawing(drop_kernel, (x.dtype, x.dtype, _STATE, kind), constants, check)

    out = np.empty(x.shape, x.dtype)
    shared = _state(seed, offset, first, threshold), np.array(scale, kind)
    return out if _run((x.dtype, kind, "dropout"), make, (out, x), shared, x.size) else None
