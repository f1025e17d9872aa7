"""Random numbers from a counter: Philox4x32-10, the same on every device.

Philox turns a key and a counter into four random words of 32 bits (Salmon and others, "Parallel random numbers: as easy
as 1, 2, 3", 2011). The key is the generator's seed. The counter's lower half counts groups of four words within a call,
its upper half counts the generator's calls. So every word can be computed independently: uniform numbers and
integers agree in every bit between devices, and dropout's gradient computes the mask again from two integers.

Element order is the words' order: words 4i to 4i + 3 come from counter i.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.levels import lifted_to
from ...host.threads import quietly
from ...memory.array import DeviceArray
from ...memory.lifted import open_levels
from ...operators import Operator, Shapes
from ...operators.float8 import refuse_float8
from ...operators.lifting import batching
from ...operators.rules import FLOATING
from ...runtime.call import Call
from ...runtime.launch import DeviceFunction, Float64, Int64, device_function, kernel, launch
from ...tensors import Tensor, wrap
from ...types import dtypes
from ..addressing import collapse_dims, offset_of
from ..blocks import block_size
from .reference import draw_dropout, draw_integers, draw_normal, draw_uniform
from .words import in_order, long_word, philox_words

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

# ---- the family -----------------------------------------------------------------------------------------------


class Random(Operator):
    """An operator without inputs: a tensor of random numbers from a seed, the number of a call, a shape and a dtype.

    The body takes the four words of each counter, the result's dtype, whether elements are made of 64 bits, and the
    metadata after `dtype`; it returns the elements in order, four for each counter or two.
    """

    family = "random"
    about = "Philox, by position: the same numbers on every device."

    def __call__(
        self, *, shape: Sequence[int], seed: int, offset: int, dtype: dtypes.dtype, device: Any, **numbers: Any
    ) -> Tensor:
        """A new tensor of random numbers."""
        if dtype in dtypes.FLOAT8:
            refuse_float8(self.name, dtype)

        def draw(shape: tuple[int, ...]) -> Any:
            metadata = {"shape": shape, "seed": seed, "offset": offset, "dtype": dtype, **numbers}
            return self.execute(Call(self, (), metadata, device, dtype, (dtype,)))[0]

        levels = open_levels.stack
        return wrap(batching.random(levels, tuple(shape), draw) if levels else draw(tuple(shape)))

    def allocate(self, call: Call) -> Shapes:
        """One output of the shape `shape`."""
        return [(call.metadata["shape"], call.results[0].numpy)]

    def launch(self, call: Call) -> None:
        """Compute the words and store the results of the body, in one kernel."""
        out, count = call.outs[0], call.outs[0].size
        _, seed, offset, dtype, *numbers = call.metadata.values()
        wide = dtype is dtypes.float64 or call.metadata.get("span", 0) > NARROW
        groups = -(-count // (2 if wide else 4))
        block = _block_size(out, groups)
        launch(
            random_kernel,
            (-(-groups // block),),
            (out, _key(seed), _signed(offset), tuple(map(_signed, numbers)), count),
            {
                "BODY": self.device_body(),
                "OUT_DTYPE": dtype,
                "WIDE": wide,
                "INDEX64": count >= 1 << 30,
                "BLOCK": block,
                "IN_MEMORY": seed.__class__ is DeviceArray,
            },
            out.device,
            name=f"random_{self.name}",
        )

    def device_body(self) -> DeviceFunction:
        """The body as a function that kernels can call."""
        if not isinstance(self.body, DeviceFunction):
            self.body = device_function(self.body, name=self.name)
        return self.body


def _signed(value: int) -> Int64:
    """The signed number with the same 64 bits."""
    return Int64((value + (1 << 63)) % (1 << 64) - (1 << 63))


def _key(seed: Any) -> Any:
    """A seed as a kernel argument: a number, or the memory from which a graph's replays read it (`Generator.draw`)."""
    return seed if seed.__class__ is DeviceArray else _signed(seed)


def _block_size(out: DeviceArray, groups: int) -> int:
    """Counters per program: one for each of 128 threads."""
    return block_size(out, 128, interpreted=1 << 14, count=groups)


@device_function
def present(seed, offset, IN_MEMORY: tl.constexpr):
    """Seed and number of the call; where they lie in memory, `offset` counts from the number there."""
    if IN_MEMORY:
        return tl.load(seed), tl.load(seed + 1) + offset
    else:
        return seed, offset


@kernel
def random_kernel(
    out_ptr,
    seed,
    offset,
    numbers,
    count,
    BODY: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    WIDE: tl.constexpr,
    INDEX64: tl.constexpr,
    BLOCK: tl.constexpr,
    IN_MEMORY: tl.constexpr = False,
):
    """Fill contiguous memory with the results of BODY for the words of counters 0, 1, 2, ...

    Args:
        out_ptr: count elements.
        seed, offset: the key, and the upper half of all counters, as signed 64-bit numbers; see `present`.
        numbers: a tuple of 64-bit numbers for BODY.
        BODY: device function, see `Random`.
        WIDE: two elements for each counter instead of four.
        INDEX64: whether positions need 64 bits.
        BLOCK: counters per program. The grid is (ceil(counters / BLOCK),).
    """
    start = tl.program_id(0)
    if INDEX64:
        start = start.to(tl.int64)
    key, call = present(seed, offset, IN_MEMORY)
    word0, word1, word2, word3 = philox_words(start * BLOCK + tl.arange(0, BLOCK), key, call)
    values = BODY(word0, word1, word2, word3, OUT_DTYPE, WIDE, *numbers)
    per: tl.constexpr = 2 if WIDE else 4
    index = start * (BLOCK * per) + tl.arange(0, BLOCK * per)
    tl.store(out_ptr + index, values.to(OUT_DTYPE), mask=index < count)


# ---- the declarations -----------------------------------------------------------------------------------------

# Integers below a span up to this are cut from 32 bits, which favours some by one part in 65,536; larger spans use 64.
NARROW = 1 << 16
_BITS = {dtypes.bfloat16: 8, dtypes.float16: 11, dtypes.float32: 24, dtypes.float64: 53}


def _random(reference: Callable[..., Any]) -> Random:
    return Random(reference.__name__, reference, FLOATING)


@_random
def uniform(*, shape: tuple[int, ...], seed, offset, dtype: dtypes.dtype):
    """Numbers evenly distributed in [0, 1): as many bits as the dtype's significand has, so that 1 does not occur."""
    return draw_uniform(math.prod(shape), seed, offset, _BITS[dtype], dtype.numpy).reshape(shape)


@uniform.kernel
def _(word0, word1, word2, word3, OUT_DTYPE: tl.constexpr, WIDE: tl.constexpr):
    if WIDE:
        pair = tl.interleave(long_word(word0, word1), long_word(word2, word3))
        return (pair >> 11).to(tl.float64) * 1.1102230246251565e-16
    else:
        word = in_order(word0, word1, word2, word3)
        if OUT_DTYPE == tl.bfloat16:  # noqa: SIM300 - a constant in the kernel only
            return (word >> 24).to(tl.float32) * 0.00390625
        elif OUT_DTYPE == tl.float16:  # noqa: SIM300
            return (word >> 21).to(tl.float32) * 0.00048828125
        else:
            return (word >> 8).to(tl.float32) * 5.9604644775390625e-08


@_random
def normal(*, shape: tuple[int, ...], seed, offset, dtype: dtypes.dtype):
    """Numbers of the standard normal distribution, two from two uniform ones by Box and Muller's formula."""
    return draw_normal(math.prod(shape), seed, offset, dtype.numpy).reshape(shape)


@device_function
def box_muller(first, angle):
    """Two independent normal numbers side by side, from a number in (0, 1] and an angle."""
    radius = libdevice.sqrt(-2.0 * libdevice.log(first))
    return tl.interleave(radius * libdevice.cos(angle), radius * libdevice.sin(angle))


@normal.kernel
def _(word0, word1, word2, word3, OUT_DTYPE: tl.constexpr, WIDE: tl.constexpr):
    if WIDE:
        first = ((long_word(word0, word1) >> 11) + 1).to(tl.float64) * 1.1102230246251565e-16
        return box_muller(first, (long_word(word2, word3) >> 11).to(tl.float64) * 6.975736996017264e-16)
    else:
        first = tl.interleave(word0, word2).to(tl.float32) * 2.3283064365386963e-10 + 1.1641532182693481e-10
        return box_muller(first, tl.interleave(word1, word3).to(tl.float32) * 1.4629180792671596e-09)


@_random
def integers(*, shape: tuple[int, ...], seed, offset, dtype: dtypes.dtype, low, span):
    """Integers evenly distributed from `low` on, `span` of them."""
    drawn = draw_integers(math.prod(shape), seed, offset, low, span, span <= NARROW, dtype.numpy)
    return drawn.reshape(shape)


@integers.kernel
def _(word0, word1, word2, word3, OUT_DTYPE: tl.constexpr, WIDE: tl.constexpr, low, span):
    if WIDE:
        picked = tl.interleave(long_word(word0, word1), long_word(word2, word3)) % span.to(tl.uint64)
    else:
        picked = in_order(word0, word1, word2, word3).to(tl.uint64) * span.to(tl.uint64) >> 32
    return picked.to(tl.int64) + low


# ---- dropout --------------------------------------------------------------------------------------------------


class Dropout(Operator):
    """Dropout, whose mask is drawn from a seed and the number of a call and never stored.

    Each element takes 16 random bits, so the probability is rounded to a multiple of 1 / 65,536.
    """

    family = "dropout"
    about = "The mask is drawn anew in the backward pass instead of being kept."
    draws = True

    def call(self, key: object, values: list[Any], inputs: tuple[Any, ...], metadata: dict[str, Any]) -> Any:
        """See the base class; inside of `vmap` each sample has a mask of its own, or all have the same."""
        for level in open_levels.stack:
            if level.size is not None:
                inputs = (lifted_to(level, inputs[0]),)
        return super().call(key, values, inputs, metadata)

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference, which converts halves itself, a block at a time."""
        metadata, kind = call.metadata, call.compute.numpy
        return lambda x: (quietly(_drop, x, **metadata, kind=kind),)

    def launch(self, call: Call) -> None:
        """One program draws 8 elements' bits from each counter and multiplies their values."""
        out, x = call.outs[0], call.arrays[0]
        if not out.size:
            return
        sizes, (strides,) = collapse_dims(x.shape, [x.strides])
        groups = -(-out.size // 8)
        seed, offset, threshold, scale = dropout_numbers(**call.metadata, on_device=True)
        block = _block_size(out, groups)
        reach = sum((size - 1) * abs(step) for size, step in zip(sizes, strides, strict=True))
        launch(
            dropout_kernel,
            (-(-groups // block),),
            (
                out,
                x,
                strides,
                sizes,
                seed,
                offset,
                threshold,
                Float64(scale) if call.compute is dtypes.float64 else scale,
                out.size,
            ),
            {
                "OUT_DTYPE": dtypes.of(out.dtype),
                "COMPUTE": call.compute,
                "RANK": len(sizes),
                "INDEX64": max(reach, out.size) >= 1 << 30,
                "BLOCK": block,
                "IN_MEMORY": call.metadata["seed"].__class__ is DeviceArray,
            },
            out.device,
            name="dropout",
        )

    @staticmethod
    def batched(batch: batching.Batch) -> tuple[Any, ...]:
        """A mask for each sample, or one for all; the levels within are closed, so that the operator runs as it is."""
        same = batching.check_randomness(batch.level) == "same"
        opened, open_levels.stack = open_levels.stack, [x for x in open_levels.stack if x.number < batch.level.number]
        try:
            if same:
                return (batch(batch.x[0].new_ones(batch.x[0].shape[batch.whole[0] :]))[0] * batch.all_of(0),)
            return batch(batch.all_of(0))
        finally:
            open_levels.stack = opened


def _scale(p: float) -> float:
    return 0.0 if p == 1 else 1 / (1 - p)


def dropout_numbers(p: float, seed: Any, offset: int, on_device: bool = False) -> tuple[Any, Any, int, float]:
    """Seed, offset, the threshold that an element's bits have to reach, and its factor: for functions of `host`, or as
    arguments of a kernel."""
    key = (_key(seed), _signed(offset)) if on_device else (seed, offset)
    return *key, round(p * 65536), _scale(p)


def _dropout(x, *, p: float, seed: int, offset: int):
    """x with each element set to 0 with probability p, and divided by 1 - p elsewhere; NaN and infinities stay NaN."""
    return _drop(x, p, seed, offset, x.dtype)


def _drop(x: np.ndarray, p: float, seed: int, offset: int, kind: np.dtype) -> np.ndarray:
    return draw_dropout(x, *dropout_numbers(p, seed, offset), kind)


dropout = Dropout("dropout", _dropout, FLOATING)
dropout.node = "mul"
dropout.gradient(lambda grad, p, seed, offset: dropout(grad, p=p, seed=seed, offset=offset))


@kernel
def dropout_kernel(
    out_ptr,
    x_ptr,
    strides,
    shape,
    seed,
    offset,
    threshold,
    scale,
    count,
    OUT_DTYPE: tl.constexpr,
    COMPUTE: tl.constexpr,
    RANK: tl.constexpr,
    INDEX64: tl.constexpr,
    BLOCK: tl.constexpr,
    IN_MEMORY: tl.constexpr = False,
):
    """out = x * scale where an element's 16 random bits are at least `threshold`, and x * 0 elsewhere.

    Args:
        out_ptr: count elements, contiguous.
        x_ptr, strides, shape: the input's first element, its strides and sizes, collapsed.
        seed, offset: the key, and the upper half of all counters, as signed 64-bit numbers; see `present`.
        BLOCK: counters per program, of 8 elements each. The grid is (ceil(count / (8 * BLOCK)),).
    """
    start = tl.program_id(0)
    if INDEX64:
        start = start.to(tl.int64)
    key, call = present(seed, offset, IN_MEMORY)
    word0, word1, word2, word3 = philox_words(start * BLOCK + tl.arange(0, BLOCK), key, call)
    word = in_order(word0, word1, word2, word3)
    half = tl.interleave(word & 0xFFFF, word >> 16).to(tl.int32)
    index = start * (BLOCK * 8) + tl.arange(0, BLOCK * 8)
    inside = index < count
    x = tl.load(x_ptr + offset_of(index, strides, shape, RANK), mask=inside).to(COMPUTE)
    factor = tl.where(half >= threshold, scale, 0.0).to(COMPUTE)
    tl.store(out_ptr + index, (x * factor).to(OUT_DTYPE), mask=inside)
