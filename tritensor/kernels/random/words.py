"""The words of Philox4x32-10 in kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.launch import device_function

if TYPE_CHECKING:
    import triton.language as tl


@device_function
def philox_words(index, seed, offset):
    """The four words of each counter `index` of call `offset`: Philox4x32-10."""
    wide = index.to(tl.uint64)
    word0 = wide.to(tl.uint32)
    word1 = (wide >> 32).to(tl.uint32)
    word2 = tl.zeros_like(word0) + offset.to(tl.uint64).to(tl.uint32)
    word3 = tl.zeros_like(word0) + (offset.to(tl.uint64) >> 32).to(tl.uint32)
    key0 = seed.to(tl.uint64).to(tl.uint32)
    key1 = (seed.to(tl.uint64) >> 32).to(tl.uint32)
    factor0 = tl.full(word0.shape, 0xD2511F53, tl.uint32)
    factor1 = tl.full(word0.shape, 0xCD9E8D57, tl.uint32)
    for _round in tl.static_range(10):
        high0 = tl.umulhi(word0, factor0)
        high1 = tl.umulhi(word2, factor1)
        low0 = word0 * factor0
        low1 = word2 * factor1
        word0 = high1 ^ word1 ^ key0
        word1 = low1
        word2 = high0 ^ word3 ^ key1
        word3 = low0
        key0 = (key0 + 0x9E3779B9).to(tl.uint32)
        key1 = (key1 + 0xBB67AE85).to(tl.uint32)
    return word0, word1, word2, word3


@device_function
def in_order(word0, word1, word2, word3):
    """The words of all counters, one counter after the other."""
    return tl.interleave(tl.interleave(word0, word2), tl.interleave(word1, word3))


@device_function
def long_word(low, high):
    """Two words as one of 64 bits."""
    return low.to(tl.uint64) | (high.to(tl.uint64) << 32)
