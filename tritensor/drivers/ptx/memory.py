"""Global, shared and local memory of compiled kernels, and what is checked at each access.

Addresses are those of host memory. Of global memory an access has to lie within one buffer; of shared memory the last
reader and writer of each word are known, so that a missing barrier is an error and not a matter of luck.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .parse import Kernel
from .state import Machine, Mask
from .values import TYPES

#: What an access of so many bytes is read as; a quarter of a warp's vector loads has complex numbers for elements.
WORDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
_FIRST = 1 << 16  # nothing is mapped below


@lru_cache(maxsize=1)
def _views() -> dict[int, np.ndarray]:
    """The address space as one array for each size of access. Making them touches nothing."""
    everything = (ctypes.c_uint8 * ((1 << 47) - _FIRST)).from_address(_FIRST)
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
        at = int(np.searchsorted(self.low, least, "right")) - 1
        if at >= 0 and most + nbytes <= int(self.high[at]):
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
        where = addresses if mask is None else _picked(addresses, mask)
        self.check(m, where, nbytes, mask, False)
        if m.counters is not None:
            m.counters.global_access(m, "load", addresses, nbytes, mask)
        found = _views()[nbytes].take(_index_of(where, nbytes))
        if mask is None:
            return found
        result = np.zeros(np.broadcast_shapes(addresses.shape, mask.shape), found.dtype)
        result[np.broadcast_to(mask, result.shape)] = found
        return result

    def store(self, m: Machine, addresses: np.ndarray, words: np.ndarray, mask: Mask) -> None:
        """Write words to addresses, in the order of lanes."""
        nbytes = words.dtype.itemsize
        shape = np.broadcast_shapes(addresses.shape, words.shape, () if mask is None else mask.shape)
        addresses, words = np.broadcast_to(addresses, shape), np.broadcast_to(words, shape)
        if m.counters is not None:
            m.counters.global_access(m, "store", addresses, nbytes, mask)
        if mask is not None:
            active = np.broadcast_to(mask, shape)
            addresses, words = addresses[active], words[active]
        self.check(m, addresses, nbytes, mask, True)
        _views()[nbytes][_index_of(addresses, nbytes)] = words

    def cells(
        self, m: Machine, addresses: np.ndarray, nbytes: int, active: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """All words of a size as one array, and the index in it of each active lane's address, for atomics."""
        where = _picked(addresses, active)
        self.check(m, where, nbytes, active, True)
        if m.counters is not None:
            m.counters.global_access(m, "atomic", addresses, nbytes, active)
        return _views()[nbytes], _index_of(where, nbytes)

    def view(self, m: Machine, address: int, nbytes: int) -> np.ndarray:
        """The bytes of a checked range."""
        ends = np.array([address, address + nbytes - 1], np.uint64)
        self.check(m, ends, 1, None, True)
        if np.ptp(np.searchsorted(self.low, ends, "right")):
            m.fail(
                f"an illegal memory access was encountered: {nbytes} bytes at {address:#x} of several buffers,",
                None,
                True,
            )
        return _views()[1][address - _FIRST : address - _FIRST + nbytes]


def _index_of(addresses: np.ndarray, nbytes: int) -> np.ndarray:
    return (addresses.astype(np.int64) - _FIRST) >> (nbytes.bit_length() - 1)


def _picked(value: np.ndarray, mask: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(value.shape, mask.shape)
    picked: np.ndarray = np.broadcast_to(value, shape)[np.broadcast_to(mask, shape)]
    return picked


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


@lru_cache(maxsize=256)
def _grain(kernel: Kernel) -> int:
    """The bytes of the smallest access to shared memory: what is known, is known for so many bytes at a time."""
    sizes = [
        TYPES[i.parts[-1]].size * {"v2": 2, "v4": 4}.get(i.parts[-2], 1)
        for block in kernel.blocks
        for i in block.instructions
        if i.parts[0] in ("ld", "st", "atom", "red") and i.parts[1].startswith("shared")
    ]
    asynchronous = [4 for block in kernel.blocks for i in block.instructions if i.name.startswith("cp.async.c")]
    return min([16, *sizes, *asynchronous])


@lru_cache(maxsize=256)
def _shuffles(kernel: Kernel) -> bool:
    """True if lanes of a warp exchange values, as for a reduction, whose result all of them may write."""
    return any(i.parts[0] == "shfl" for block in kernel.blocks for i in block.instructions)


def _apart(kept: np.ndarray, words: np.ndarray) -> bool:
    """True if words that were written to one address differ by more than rounding.

    Triton lets all lanes of a warp write the result of a reduction, which each has added up in an order of its own:
    by fused products, or around the lane's own part, so that the last bits differ.
    """
    number = {2: np.float16, 4: np.float32, 8: np.float64}.get(kept.dtype.itemsize)
    if number is None:
        return True
    a, b = kept.view(number), words.view(number)
    near = np.abs(a - b) <= 2.0**-8 * np.maximum(np.abs(a), np.abs(b))
    # a card has one NaN, NumPy that of an operand
    return not (near | (np.isnan(a) & np.isnan(b))).all()


class Shared:
    """Shared memory of the blocks of a chunk.

    Attributes:
        bytes: (blocks, size), ones until they are written.
    """

    def __init__(self, m: Machine, nbytes: int) -> None:
        self.size = -(-nbytes // 16) * 16
        self.bytes = np.full((m.blocks, self.size), 0xFF, np.uint8)
        flat = self.bytes.reshape(-1)
        self._flat = {size: flat.view(dtype) for size, dtype in WORDS.items()}
        self.grain = _grain(m.kernel)
        self._words = self.size // self.grain
        count = m.blocks * self._words
        # by word: when it was last written and read, by which thread and which warp (-1: several, or no thread)
        self.wrote, self.seen = np.zeros(count, np.int32), np.zeros(count, np.int32)
        self.writer, self.reader = np.zeros(count, np.int32), np.zeros(count, np.int32)
        self._barrier = np.zeros(m.blocks, np.int32)  # when each block last passed a barrier
        self._together = np.zeros((m.blocks, -(-m.threads // 32)), np.int32)  # when each warp last did
        self._met = self._last_write = self._last_read = 0  # when all blocks had passed a barrier; the last of each
        self._everyone = np.divmod(np.arange(m.blocks * m.threads), m.threads)
        self._m = m

    def synchronized(self, blocks: np.ndarray | None) -> None:
        """Note that all threads of blocks have met."""
        self._barrier[slice(None) if blocks is None else blocks] = self._m.now
        self._met = int(self._barrier.min())

    def synchronized_warps(self, warps: np.ndarray) -> None:
        """Note that the threads of warps, (blocks, warps), have met."""
        self._m.now += 1
        self._together[warps] = self._m.now

    def load(self, m: Machine, addresses: np.ndarray, nbytes: int, mask: Mask) -> np.ndarray:
        """The words at addresses of each lane's block, for the lanes of a mask; elsewhere zeros."""
        blocks, lanes, where = self._accesses(m, addresses, nbytes, mask)
        self.touch(blocks, lanes, where, nbytes)
        if m.counters is not None:
            m.counters.shared_access(m, "load", addresses, nbytes, mask)
        found = self._flat[nbytes].take((blocks * self.size + where) >> (nbytes.bit_length() - 1))
        if mask is None:
            return found.reshape(m.blocks, m.threads)
        result = np.zeros((m.blocks, m.threads), found.dtype)
        result[m.full(mask)] = found
        return result

    def store(self, m: Machine, addresses: np.ndarray, words: np.ndarray, mask: Mask) -> None:
        """Write words to addresses of each lane's block."""
        nbytes = words.dtype.itemsize
        blocks, lanes, where = self._accesses(m, addresses, nbytes, mask)
        words = np.broadcast_to(words, (m.blocks, m.threads))
        words = words.reshape(-1) if mask is None else words[m.full(mask)]
        if m.counters is not None:
            m.counters.shared_access(m, "store", addresses, nbytes, mask)
        self.touch(blocks, lanes, where, nbytes, words)
        places = (blocks * self.size + where) >> (nbytes.bit_length() - 1)
        self._flat[nbytes][places] = words
        kept = self._flat[nbytes][places]
        left = kept != words
        if nbytes < 16 and left.any():
            if _shuffles(m.kernel):  # sums of a warp that cancel may differ in all bits
                left &= self.writer[blocks * self._words + where // self.grain] // 32 != lanes // 32
            if left.any() and _apart(kept[left], words[left]):
                self._conflict(m, "two threads write different values to the same shared address", blocks, lanes, left)

    def cells(
        self, m: Machine, addresses: np.ndarray, nbytes: int, active: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As of global memory. Threads may use one address at once; who reads it otherwise has to meet them first."""
        blocks, _, where = self._accesses(m, addresses, nbytes, active)
        m.now += 1
        at = blocks * self._words + where // self.grain
        self.wrote[at], self.writer[at] = m.now, -1
        return self._flat[nbytes], (blocks * self.size + where) >> (nbytes.bit_length() - 1)

    def _accesses(
        self, m: Machine, addresses: np.ndarray, nbytes: int, mask: Mask
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Block, thread and address of each access, checked to be within shared memory and aligned."""
        if mask is None:
            blocks, lanes = self._everyone
            where = np.broadcast_to(addresses, (m.blocks, m.threads)).reshape(-1).astype(np.int64)
        else:
            active = m.full(mask)
            blocks, lanes = np.nonzero(active)
            where = np.broadcast_to(addresses, active.shape)[active].astype(np.int64)
        wrong = (where + nbytes > self.size) | (where & (nbytes - 1) != 0)
        if wrong.any():
            why = "misaligned" if (where & (nbytes - 1)).any() else f"beyond the {self.size} bytes there are"
            self._conflict(m, f"an access of {nbytes} bytes of shared memory is {why}", blocks, lanes, wrong)
        return blocks, lanes, where

    def touch(
        self, blocks: np.ndarray, lanes: np.ndarray, where: np.ndarray, nbytes: int, words: np.ndarray | None = None
    ) -> None:
        """Check accesses, one for each element of the arrays, against those before, and note them.

        Args:
            words: what is written, or None when reading.
        """
        m = self._m
        m.now += 1
        number = max(nbytes // self.grain, 1)
        at = blocks * self._words + where // self.grain
        if number > 1:
            at = (at[:, None] + np.arange(number)).reshape(-1)
            blocks, lanes = np.repeat(blocks, number), np.repeat(lanes, number)
        warps = (lanes // 32).astype(np.int32)
        # where all blocks have met since the last write, or read, nothing can conflict with it: half of the passes
        hazard = self._unordered(at, blocks, lanes, warps) if self._last_write > self._met else None
        elsewhere = None
        if self._last_read > self._met:
            elsewhere = (self.seen[at] > self._barrier[blocks]) & (self.reader[at] != warps)
        if words is None:
            if not self.wrote[at].all():
                text = "shared memory is read that nothing has written"
                self._conflict(m, text, blocks, lanes, self.wrote[at] == 0)
            if hazard is not None and hazard.any():
                text = "shared memory is read that another thread wrote, with no barrier between"
                self._conflict(m, text, blocks, lanes, hazard)
            who = warps if elsewhere is None else np.where(elsewhere, np.int32(-1), warps)
            self.seen[at], self.reader[at] = m.now, who
            self._last_read = m.now
            several = self.reader[at] != who
            if several.any():
                self.reader[at[several]] = -1
            return
        if elsewhere is not None and elsewhere.any():
            text = "shared memory is written that another warp has read, with no barrier between"
            self._conflict(m, text, blocks, lanes, elsewhere)
        if hazard is not None and hazard.any() and self._differs(number, nbytes, where, blocks, words, hazard):
            text = "shared memory is written that another thread wrote, with no barrier between"
            self._conflict(m, text, blocks, lanes, hazard)
        self.wrote[at], self.writer[at] = m.now, lanes
        self._last_write = m.now

    def _unordered(self, at: np.ndarray, blocks: np.ndarray, lanes: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """Of which words another thread is the last writer, with no barrier since."""
        wrote, writer = self.wrote[at], self.writer[at]
        found = (wrote > self._barrier[blocks]) & (writer != lanes) & (writer >= 0)
        if found.any():  # threads of one warp may have met since
            found &= (writer // 32 != warps) | (wrote > self._together[blocks, warps])
        return found

    def _differs(
        self, number: int, nbytes: int, where: np.ndarray, blocks: np.ndarray, words: np.ndarray, hazard: np.ndarray
    ) -> bool:
        """True if a thread writes another value than the one that a thread before it wrote."""
        places = (blocks[::number] * self.size + where) >> (nbytes.bit_length() - 1)
        differs = self._flat[nbytes][places] != words
        return bool((np.repeat(differs, number) & hazard).any())

    def land(self, block: int, where: np.ndarray) -> None:
        """Note that an asynchronous copy has written bytes; who reads them has waited for it."""
        at = block * self._words + np.unique(where // self.grain)
        self.wrote[at], self.writer[at] = self._m.now, -1

    def _conflict(self, m: Machine, text: str, blocks: np.ndarray, lanes: np.ndarray, wrong: np.ndarray) -> None:
        found = np.zeros((m.blocks, m.threads), np.bool_)
        found[blocks[wrong], lanes[wrong]] = True
        m.fail(text, found)
