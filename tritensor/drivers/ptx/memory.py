"""Global and local memory of compiled kernels, and what is checked at each access.

Addresses are those of host memory. An access to global memory has to lie within one buffer.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from .parse import Kernel
from .state import Machine, Mask, wide_as
from .values import common_shape

#: What an access of so many bytes is read as; a quarter of a warp's vector loads has complex numbers for elements.
WORDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
FIRST = 1 << 16  # nothing is mapped below


@lru_cache(maxsize=1)
def views() -> dict[int, np.ndarray]:
    """The address space as one array for each size of access. Making them touches nothing."""
    everything = (ctypes.c_uint8 * ((1 << 47) - FIRST)).from_address(FIRST)
    flat = np.frombuffer(memoryview(everything), np.uint8)
    return {size: flat.view(dtype) for size, dtype in WORDS.items()}


class Memory:
    """Global memory: the buffers that a kernel may access.

    Args:
        spans: (address, bytes, label) of each buffer, by address.
    """

    def __init__(self, spans: Sequence[tuple[int, int, str]]) -> None:
        self.spans = list(spans)
        self._index()

    def _index(self) -> None:
        self.low = np.array([address for address, _, _ in self.spans], np.uint64)
        self.high = np.array([address + nbytes for address, nbytes, _ in self.spans], np.uint64)

    def add(self, address: int, nbytes: int, label: str) -> None:
        """Let kernels access another buffer."""
        self.spans = sorted([*self.spans, (address, nbytes, label)])
        self._index()

    def check(self, m: Machine, addresses: np.ndarray, nbytes: int, mask: Mask, writing: bool) -> None:
        """Raise an error if an access of so many bytes is misaligned or not within one buffer."""
        least, most = int(addresses.min()), int(addresses.max())
        if int(np.bitwise_or.reduce(addresses, axis=None)) & (nbytes - 1):
            wrong = (addresses & np.uint64(nbytes - 1)) != 0
            m.fail(f"misaligned address of {nbytes} bytes", _lanes(m, wrong, mask), memory=True)
        at = bisect_right(self.spans, least, key=itemgetter(0)) - 1
        if at >= 0 and most + nbytes <= self.spans[at][0] + self.spans[at][1]:
            return
        place = np.searchsorted(self.low, addresses, "right") - 1
        outside = place < 0
        if len(self.high):
            outside |= addresses + np.uint64(nbytes) > self.high[place]
        if outside.any():
            address = int(addresses[outside].flat[0])
            verb = "write" if writing else "read"
            text = f"an illegal memory access was encountered: a {verb} of {nbytes} bytes at {address:#x}"
            text += f"{self._near(address)},"
            m.fail(text, _lanes(m, outside, mask), memory=True)

    def _near(self, address: int) -> str:
        at = int(np.searchsorted(self.low, address, "right")) - 1
        if at < 0:
            return ", before every buffer"
        low, nbytes, label = self.spans[at]
        return f", {address - low} bytes into {label or 'a buffer'} of {nbytes}"

    def load(self, m: Machine, addresses: np.ndarray, nbytes: int, mask: Mask) -> np.ndarray:
        """The words at addresses, for the lanes of a mask; elsewhere zeros. Shaped as addresses and mask broadcast."""
        where = addresses
        if mask is not None:
            shape = common_shape(addresses, mask)
            active = wide_as(mask, shape)
            where = wide_as(addresses, shape)[active]
        self.check(m, where, nbytes, mask, False)
        if m.counters is not None:
            m.counters.global_access(m, "load", addresses, nbytes, mask)
        found = views()[nbytes].take(index_of(where, nbytes))
        if m.alone and m.order:  # of blocks that do not run: they have arrived, however many are waited for
            found[...] = (1 << (8 * nbytes - 1)) - 1
        if mask is None:
            return found
        result = np.zeros(shape, found.dtype)
        result[active] = found
        return result

    def store(self, m: Machine, addresses: np.ndarray, words: np.ndarray, mask: Mask) -> None:
        """Write words to addresses, in the order of lanes."""
        nbytes = words.dtype.itemsize
        shape = common_shape(addresses, words, *([] if mask is None else [mask]))
        addresses, words = wide_as(addresses, shape), wide_as(words, shape)
        if m.counters is not None:
            m.counters.global_access(m, "store", addresses, nbytes, mask)
        if mask is not None:
            active = wide_as(mask, shape)
            addresses, words = addresses[active], words[active]
        self.check(m, addresses, nbytes, mask, True)
        views()[nbytes][index_of(addresses, nbytes)] = words
        m.wrote = True

    def cells(
        self, m: Machine, addresses: np.ndarray, nbytes: int, active: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """All words of a size as one array, and the index in it of each active lane's address, for atomics."""
        where = wide_as(addresses, active.shape)[active]
        self.check(m, where, nbytes, active, True)
        if m.counters is not None:
            m.counters.global_access(m, "atomic", addresses, nbytes, active)
        return views()[nbytes], index_of(where, nbytes)

    def ranges(self, m: Machine, ends: np.ndarray) -> None:
        """Check ranges, (ranges, first and last address), each to lie within one buffer."""
        if not ends.size:
            return
        self.check(m, ends.reshape(-1), 1, None, True)
        at = np.searchsorted(self.low, ends, "right")
        if (apart := at[:, 0] != at[:, 1]).any():
            first, last = ends[apart][0].tolist()
            text = (
                f"an illegal memory access was encountered: {last + 1 - first} bytes at {first:#x} of several buffers,"
            )
            m.fail(text, None, True)

    def view(self, m: Machine, address: int, nbytes: int) -> np.ndarray:
        """The bytes of a checked range."""
        self.ranges(m, np.array([[address, address + nbytes - 1]], np.uint64))
        return views()[1][address - FIRST : address - FIRST + nbytes]


def index_of(addresses: np.ndarray, nbytes: int) -> np.ndarray:
    """Where addresses are in `views()` of so many bytes."""
    return (addresses.astype(np.int64) - FIRST) >> (nbytes.bit_length() - 1)


def _lanes(m: Machine, wrong: np.ndarray, mask: Mask) -> np.ndarray:
    """The lanes, by block and thread, of those picked by a mask that are wrong."""
    lanes = m.full(mask).copy()
    if wrong.ndim == 1 and mask is not None and wrong.size == lanes.sum():
        lanes[lanes] = wrong
    elif wrong.ndim == 2:
        lanes &= wrong
    return lanes


class Constants:
    """The initialised variables of a kernel, at addresses that it may read."""

    def __init__(self, kernel: Kernel, memory: Memory) -> None:
        self._kept: dict[str, np.ndarray] = {}
        #: of parameters that are tensor maps, the address that `cvta.param` makes of their place, a number of 32 bits
        self.parameters: dict[str, int] = {}
        self.generic = np.zeros(1, np.uint64)
        for name, (_, content) in kernel.constants.items():
            self.keep(name, content, memory)

    def keep(self, name: str, content: bytes, memory: Memory) -> None:
        """Give bytes, an address."""
        block = np.zeros(len(content) // 16 + 2, np.complex128).view(np.uint8)
        block[: len(content)] = np.frombuffer(content, np.uint8)
        self._kept[name] = block
        memory.add(block.ctypes.data, len(content), name)

    def pass_map(self, name: str, content: bytes, memory: Memory) -> None:
        """Give a parameter that is a tensor map a place among the parameters, and an address."""
        self.keep(name, content, memory)
        self.parameters[name] = len(self.parameters)
        self.generic = np.array([self.address(each) for each in self.parameters], np.uint64)

    def address(self, name: str) -> int:
        """The address of a variable."""
        return int(self._kept[name].ctypes.data)


class Local:
    """Memory of each lane's own."""

    def __init__(self, m: Machine, nbytes: int) -> None:
        self.size = -(-nbytes // 16) * 16
        self._flat = np.full(m.blocks * m.threads * self.size, 0xFF, np.uint8)
        self._start = np.arange(m.blocks * m.threads, dtype=np.int64).reshape(m.blocks, m.threads) * self.size

    def _places(self, m: Machine, addresses: np.ndarray, nbytes: int) -> np.ndarray:
        if int(addresses.max()) + nbytes > self.size or int(np.bitwise_or.reduce(addresses, axis=None)) & (nbytes - 1):
            m.fail(f"an access of {nbytes} bytes is misaligned, or beyond the {self.size} bytes of local memory,")
        places: np.ndarray = (self._start + addresses.astype(np.int64)) >> (nbytes.bit_length() - 1)
        return places

    def load(self, m: Machine, addresses: np.ndarray, nbytes: int, mask: Mask) -> np.ndarray:
        """The words at the lanes' addresses."""
        addresses = addresses if mask is None else np.where(mask, addresses, 0)
        found: np.ndarray = self._flat.view(WORDS[nbytes]).take(self._places(m, addresses, nbytes))
        return found

    def store(self, m: Machine, addresses: np.ndarray, words: np.ndarray, mask: Mask) -> None:
        """Write words to the lanes' addresses."""
        nbytes = words.dtype.itemsize
        active = m.full(mask)
        places = self._places(m, np.where(active, addresses, 0), nbytes)
        self._flat.view(WORDS[nbytes])[places[active]] = np.broadcast_to(words, active.shape)[active]
