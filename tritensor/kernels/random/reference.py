"""Random numbers from a counter on the CPU: Philox4x32-10 of many counters at once, in blocks, on all threads.

A counter gives the same words wherever it is computed, so the numbers do not depend on the number of threads.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from math import tau
from typing import Any

import numpy as np

from ...host.threads import in_pieces
from ...runtime.choice import allowed

ndarray = np.ndarray
Body = Callable[[ndarray, ndarray, ndarray], None]

_WORD = 0xFFFFFFFF
_FACTOR0, _FACTOR1 = 0xD2511F53, 0xCD9E8D57
_STEP0, _STEP1 = 0x9E3779B9, 0xBB67AE85
_LOW, _HALF = np.uint64(_WORD), np.uint64(32)
_FACTORS = np.array([[_FACTOR0], [_FACTOR1]], np.uint64)
# Counters at a time: three arrays of two words each, 3 MB. rand of 4 M takes 45, 27, 19, 16 and 14 ms on two threads
# for 2^13 to 2^17, since they take the interpreter's lock from each other between two passes; 24 to 28 on one.
_BLOCK = 1 << 16


class _Scratch(threading.local):
    """Memory for the words of a block, for each thread, made when first needed."""

    words: ndarray | None = None

    def blocks(self) -> tuple[ndarray, ndarray, ndarray]:
        if self.words is None:
            self.words = np.empty((3, 2, _BLOCK), np.uint64)
        return self.words[0], self.words[1], self.words[2]


_scratch = _Scratch()


@functools.cache
def _order() -> ndarray:
    return np.arange(_BLOCK, dtype=np.uint64)


@functools.lru_cache(maxsize=64)
def _keys(seed: int) -> tuple[list[tuple[int, int]], list[ndarray]]:
    """The keys of all rounds, as numbers and as columns."""
    keys = [((seed + step * _STEP0) & _WORD, ((seed >> 32) + step * _STEP1) & _WORD) for step in range(10)]
    return keys, [np.array([[key0], [key1]], np.uint64) for key0, key1 in keys]


def philox(first: int, count: int, seed: int, offset: int) -> tuple[ndarray, ndarray]:
    """Words 0 and 2, and words 1 and 3, of up to `_BLOCK` counters from `first` on, in 64 bits each.

    A round takes both halves of products of 32 bits. Two words at a time make five passes for each round; in the first
    two rounds three of the words are numbers, because only the lower half of a counter changes in a block. The results
    are the thread's scratch memory.
    """
    if count > 1 and allowed("random_words"):
        from . import natively

        even, odd, _ = _scratch.blocks()
        if natively.draw_words(even, odd, first, count, seed, offset, by_numpy):
            return even[:, :count], odd[:, :count]
    return by_numpy(first, count, seed, offset)


def by_numpy(first: int, count: int, seed: int, offset: int) -> tuple[ndarray, ndarray]:
    """`philox` by NumPy."""
    keys, columns = _keys(seed)
    even, odd, products = (block[:, :count] for block in _scratch.blocks())
    if count == 1:  # as Python's numbers: a tenth of the time of the passes below, 16 us in place of 176
        even[0, 0], odd[0, 0], even[1, 0], odd[1, 0] = _of_one(first, offset, keys)
        return even, odd
    # round 0: words 0 and 1 become numbers, words 2 and 3 arrays
    product = (offset & _WORD) * _FACTOR1
    word0, word1 = product >> 32 ^ first >> 32 ^ keys[0][0], product & _WORD
    spare, word2, word3 = products[0], even[1], odd[1]
    np.add(_order()[:count], np.uint64(first & _WORD), out=spare)
    np.multiply(spare, _FACTORS[0], out=spare)
    np.right_shift(spare, _HALF, out=word2)
    np.bitwise_xor(word2, np.uint64(offset >> 32 & _WORD ^ keys[0][1]), out=word2)
    np.bitwise_and(spare, _LOW, out=word3)
    # round 1: word 3 becomes a number
    product = word0 * _FACTOR0
    np.multiply(word2, _FACTORS[1], out=spare)
    np.bitwise_xor(word3, np.uint64(product >> 32 ^ keys[1][1]), out=word2)
    word3.fill(product & _WORD)
    np.right_shift(spare, _HALF, out=even[0])
    np.bitwise_xor(even[0], np.uint64(word1 ^ keys[1][0]), out=even[0])
    np.bitwise_and(spare, _LOW, out=odd[0])
    for column in columns[2:]:
        np.multiply(even, _FACTORS, out=products[::-1])
        np.right_shift(products, _HALF, out=even)
        np.bitwise_xor(even, odd, out=even)
        np.bitwise_xor(even, column, out=even)
        np.bitwise_and(products, _LOW, out=products)
        odd, products = products, odd
    return even, odd


def _of_one(first: int, offset: int, keys: list[tuple[int, int]]) -> tuple[int, int, int, int]:
    """The four words of one counter."""
    word0, word1, word2, word3 = first & _WORD, first >> 32, offset & _WORD, offset >> 32 & _WORD
    for key0, key1 in keys:
        low, high = word0 * _FACTOR0, word2 * _FACTOR1
        word0, word1, word2, word3 = high >> 32 ^ word1 ^ key0, high & _WORD, low >> 32 ^ word3 ^ key1, low & _WORD
    return word0, word1, word2, word3


def _draw(
    count: int, seed: int, offset: int, per: int, kind: Any, body: Body, factor: ndarray | None = None, first: int = 0
) -> ndarray:
    """`count` numbers, `per` of them from each counter: `body(even, odd, out)` computes them from a block's words.

    The first of them are from counter `first`.

    Where there is a `factor`, they are multiplied by its elements, in their dtype, and the result has its dtype.
    """
    result = np.empty(count, kind if factor is None else factor.dtype)
    groups = -(-count // per)

    def run(start: int, stop: int) -> None:
        part = result[start * per : stop * per]
        direct = factor is None and part.size == (stop - start) * per
        numbers = part if direct else np.empty((stop - start) * per, kind)
        body(*philox(first + start, stop - start, seed, offset), numbers)
        if factor is not None:
            by = factor[start * per : stop * per].astype(kind, copy=False)
            part[...] = np.multiply(numbers[: part.size], by, out=numbers[: part.size])
        elif not direct:
            part[...] = numbers[: part.size]

    if groups > _BLOCK:
        in_pieces(run, groups, _BLOCK)
    elif groups:
        run(0, groups)
    return result


def _interleave(even: ndarray, odd: ndarray, out: ndarray) -> None:
    """The words of all counters, one counter after the other."""
    columns = out.reshape(-1, 4).T
    columns[0], columns[1], columns[2], columns[3] = even[0], odd[0], even[1], odd[1]


def _join(even: ndarray, odd: ndarray) -> ndarray:
    """Two words as one of 64 bits, the earlier one as the lower half."""
    np.left_shift(odd, _HALF, out=odd)
    return np.bitwise_or(even, odd, out=even)


def words(count: int, seed: int, offset: int) -> ndarray:
    """The first `count` random words of call `offset` of the generator with this seed."""
    return _draw(count, seed, offset, 4, np.uint32, _interleave)


def draw_uniform(count: int, seed: int, offset: int, bits: int, kind: np.dtype) -> ndarray:
    """Numbers in [0, 1) of so many bits."""
    if count > 1 and allowed("uniform"):
        from . import natively

        found = natively.draw_uniform(count, seed, offset, bits, kind, _uniform_by_numpy)
        if found is not None:
            return found
    return _uniform_by_numpy(count, seed, offset, bits, kind)


def _uniform_by_numpy(count: int, seed: int, offset: int, bits: int, kind: np.dtype) -> ndarray:
    def wide(even: ndarray, odd: ndarray, out: ndarray) -> None:
        whole = np.right_shift(_join(even, odd), np.uint64(64 - bits), out=even).view(np.int64)
        for column, row in zip(out.reshape(-1, 2).T, whole, strict=True):
            np.multiply(row, 2.0**-bits, out=column)

    def narrow(even: ndarray, odd: ndarray, out: ndarray) -> None:
        whole = np.empty(out.size, np.uint32)
        _interleave(even, odd, whole)
        np.right_shift(whole, np.uint32(32 - bits), out=whole)
        numbers = out if kind == np.float32 else np.empty(out.size, np.float32)
        numbers[...] = whole.view(np.int32)
        np.multiply(numbers, np.float32(2.0**-bits), out=numbers)
        if numbers is not out:
            out[...] = numbers

    return _draw(count, seed, offset, *((2, kind, wide) if bits > 32 else (4, kind, narrow)))


def draw_normal(count: int, seed: int, offset: int, kind: np.dtype) -> ndarray:
    """Normal numbers, two from two uniform ones by Box and Muller's formula."""

    def rotate(first: ndarray, angle: ndarray, out: tuple[np.ndarray, ...] | np.ndarray) -> None:
        radius = np.log(first, out=first)
        np.multiply(radius, -2, out=radius)
        np.sqrt(radius, out=radius)
        np.multiply(radius, np.cos(angle), out=out[0])
        np.multiply(radius, np.sin(angle, out=angle), out=out[1])

    def wide(even: ndarray, odd: ndarray, out: ndarray) -> None:
        whole = np.right_shift(_join(even, odd), np.uint64(11), out=even)
        whole[0] += np.uint64(1)
        rotate(whole[0] * 2.0**-53, whole[1] * (2.0**-53 * tau), out.reshape(-1, 2).T)

    def narrow(even: ndarray, odd: ndarray, out: ndarray) -> None:
        first, angle = (part.astype(np.uint32).astype(np.float32) for part in (even, odd))
        np.multiply(first, np.float32(2.0**-32), out=first)
        np.add(first, np.float32(2.0**-33), out=first)
        np.multiply(angle, np.float32(2.0**-32 * tau), out=angle)
        columns = out.reshape(-1, 4).T
        rotate(first, angle, (columns[::2], columns[1::2]))

    return _draw(count, seed, offset, *((2, kind, wide) if kind == np.float64 else (4, kind, narrow)))


def draw_integers(count: int, seed: int, offset: int, low: int, span: int, narrow: bool, kind: np.dtype) -> ndarray:
    """Integers from `low` on, `span` of them: cut from 32 bits where `narrow`, else from 64."""
    width, start = np.uint64(span), np.int64(low)

    def from_words(even: ndarray, odd: ndarray, out: ndarray) -> None:
        columns = out.reshape(-1, 4).T
        for position, part in enumerate((even, odd)):
            np.multiply(part, width, out=part)
            np.right_shift(part, _HALF, out=part)
            whole = part.view(np.int64)
            if low:
                np.add(whole, start, out=whole)
            columns[position], columns[position + 2] = whole

    def from_pairs(even: ndarray, odd: ndarray, out: ndarray) -> None:
        whole = _join(even, odd)
        # the remainder, by NumPy's division by a number, which is faster than its remainder
        times = np.floor_divide(whole, width, out=odd)
        np.subtract(whole, np.multiply(times, width, out=times), out=whole)
        for column, row in zip(out.reshape(-1, 2).T, whole.view(np.int64), strict=True):
            column[...] = np.add(row, start, out=row)

    return _draw(count, seed, offset, *((4, kind, from_words) if narrow else (2, kind, from_pairs)))


def draw_dropout(
    x: ndarray, seed: int, offset: int, threshold: int, scale: float, kind: np.dtype, first: int = 0
) -> ndarray:
    """`x * scale`, or `x * 0` where an element's 16 random bits, from counter `first` on, are below `threshold`."""
    if x.size > 1 and x.flags.c_contiguous and allowed("dropout"):
        from . import natively

        found = natively.draw_dropout(x, seed, offset, threshold, scale, kind, first, _dropout_by_numpy)
        if found is not None:
            return found
    return _dropout_by_numpy(x, seed, offset, threshold, scale, kind, first)


def _dropout_by_numpy(
    x: ndarray, seed: int, offset: int, threshold: int, scale: float, kind: np.dtype, first: int
) -> ndarray:
    number = kind.type(scale)

    def body(even: ndarray, odd: ndarray, out: ndarray) -> None:
        whole = np.empty(out.size // 2, "<u4")
        _interleave(even, odd, whole)
        np.multiply(whole.view("<u2") >= threshold, number, out=out)

    return _draw(x.size, seed, offset, 8, kind, body, x.reshape(-1), first).reshape(x.shape)
