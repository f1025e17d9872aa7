"""Shared memory of compiled kernels: the last reader and writer of each word are known, so that a missing barrier is an
error and not a matter of luck."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .memory import WORDS
from .parse import Kernel
from .state import Machine, Mask
from .values import TYPES


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


class Apart(Exception):
    """What several instructions do has to be done one after the other; nothing has happened yet."""


class Pattern:
    """Where the lanes of a block access shared memory, if all blocks of a chunk do it alike.

    Attributes:
        lanes, where: thread and address of each access; `chosen` is its place among all lanes.
        places: the accesses' elements in memory; a slice of them if they follow one another.
        alone: no two accesses share a byte. `last`: the thread whose access to an address is the last.
    """

    def __init__(self, chosen: np.ndarray, lanes: np.ndarray, where: np.ndarray, nbytes: int, grain: int) -> None:
        self.chosen, self.lanes, self.where, self.nbytes = chosen, lanes, where, nbytes
        words = where // grain
        self.places: Any = where >> (nbytes.bit_length() - 1)
        self.alone = len(np.unique(self.places)) == len(where)
        if len(where) and (np.diff(self.places) == 1).all():
            self.places = slice(int(self.places[0]), int(self.places[-1]) + 1)
        last = np.zeros(int(words.max(initial=0)) + 1, np.int64)
        last[words] = lanes
        self.last = last[words]


class _Known:
    """What is known of a kernel's accesses to shared memory from chunks before.

    Attributes:
        patterns: by what makes them.
        barriers: by which words have been written, the state behind a barrier. A state maps what may happen next, an
            access or a meeting of threads, to the state that follows if nothing is wrong with it.
        places: of several patterns, the elements of memory together.
    """

    def __init__(self) -> None:
        self.patterns: dict[Any, Pattern] = {}
        self.barriers: dict[bytes, dict[Any, Any]] = {}
        self.places: dict[Any, np.ndarray] = {}


@lru_cache(maxsize=64)
def _known(kernel: Kernel, size: int) -> _Known:
    return _Known()


class Shared:
    """Shared memory of the blocks of a chunk, and who has accessed its words.

    As long as all blocks do the same, one row of words stands for all of them, and an access that was found right
    before in the same state is not looked at again: loops cost a look-up. Otherwise each block has its row.

    Attributes:
        bytes: (blocks, size), ones until they are written; `rows` are the same as words of each size.
    """

    def __init__(self, m: Machine, nbytes: int, watched: bool = False) -> None:
        self.size = -(-nbytes // 16) * 16
        self.bytes = np.full((m.blocks, self.size), 0xFF, np.uint8)
        self._flat = {size: self.bytes.reshape(-1).view(dtype) for size, dtype in WORDS.items()}
        self.rows = {size: flat.reshape(m.blocks, -1) for size, flat in self._flat.items()}
        self.grain = _grain(m.kernel)
        self._words = count = self.size // self.grain
        # by word: when it was last written and read, by which thread and which warp (-1: several, or no thread)
        self.wrote, self.seen = np.zeros(count, np.int32), np.zeros(count, np.int32)
        self.writer, self.reader = np.zeros(count, np.int32), np.zeros(count, np.int32)
        self._barrier = np.zeros(1, np.int32)  # when each block last passed a barrier
        self._together = np.zeros((1, -(-m.threads // 32)), np.int32)  # when each warp last did
        self._met = self._last_write = self._last_read = 0  # when all blocks had passed a barrier; the last of each
        self._everyone = np.divmod(np.arange(m.blocks * m.threads), m.threads)
        self._m = m
        self.known = _known(m.kernel, self.size)
        if len(self.known.patterns) > 4096:
            self.known.__init__()  # type: ignore[misc]
        self._state: dict[Any, Any] | None = self.known.barriers.setdefault(b"", {})  # None: blocks differ
        self._apart = 0  # how often they did
        # what happened since the words were looked at: writes before the last barrier, and all behind it
        self._before: dict[Any, None] = {}
        self._since: list[Any] = []
        self._passed = False
        if watched:
            self.differ(True)

    # -- while all blocks do the same

    @property
    def alike(self) -> bool:
        """True as long as all blocks have accessed the same."""
        return self._state is not None

    def row(self, value: np.ndarray) -> np.ndarray | None:
        """What is the same for all blocks, (1, …); None if it is not."""
        if value.shape[-2] == 1:
            return value
        first = value[..., :1, :]
        return first if value.strides[-2] == 0 or (value == first).all() else None

    def pattern(self, key: Any, make: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray, int]]) -> Pattern:
        """The pattern that belongs to a key: places among all lanes, threads, addresses, and bytes of each access."""
        found = self.known.patterns.get(key)
        if found is None:
            found = self.known.patterns[key] = Pattern(*make(), self.grain)
        return found

    def _pattern(self, m: Machine, addresses: np.ndarray, nbytes: int, mask: Mask) -> Pattern | None:
        where, active = self.row(addresses), None if mask is None else self.row(mask)
        if self._state is None or where is None or (mask is not None and active is None):
            return None

        def make() -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
            shape = np.broadcast_shapes((1, m.threads), where.shape, () if active is None else active.shape)
            wide, chosen = np.broadcast_to(where, shape).reshape(-1).astype(np.int64), np.arange(np.prod(shape))
            if active is not None:
                chosen = np.broadcast_to(active, shape).reshape(-1).nonzero()[0]
            lanes = chosen % m.threads
            self._confine(m, np.zeros_like(lanes), lanes, wide[chosen], nbytes)
            return chosen, lanes, wide[chosen], nbytes

        key = nbytes, where.shape, where.tobytes(), None if active is None else (active.shape, active.tobytes())
        return self.pattern(key, make)

    def note(self, kind: str, pattern: Pattern) -> bool:
        """Check and note what all blocks do: "read", "write", "copy" (a write of the copy engine) or "atomic".

        Returns:
            False where it depends on the values written.
        """
        assert self._state is not None
        event = kind, pattern
        following = self._state.get(event)
        if following is not None:
            self._m.now += 1
            self._since.append(event)
        else:
            self._look()
            if not self._apply(*event):
                return False
            following = self._state[event] = {}
        self._state = following
        return True

    def _apply(self, kind: str, pattern: Any) -> bool:
        if kind == "warps":
            self._m.now += 1
            self._together[:, pattern] = self._m.now
            return True
        nobody = np.zeros_like(pattern.lanes)
        if kind == "atomic":
            self._m.now += 1
        elif not self.touch(
            nobody, pattern.lanes, pattern.where, pattern.nbytes, {"write": True, "copy": False}.get(kind)
        ):
            return False
        if kind in ("copy", "atomic"):
            at = self._spanned(pattern.where // self.grain, max(pattern.nbytes // self.grain, 1))
            self.wrote[at], self.writer[at] = self._m.now, -1
        return True

    def _look(self) -> None:
        """Bring what is known of each word up to date."""
        for _, pattern in self._before:
            at = self._spanned(pattern.where // self.grain, max(pattern.nbytes // self.grain, 1))
            self.wrote[at] = self._m.now
        if self._passed:
            self._barrier[:] = self._met = self._m.now
        events, self._since, self._before, self._passed = self._since, [], {}, False
        for event in events:
            self._apply(*event)

    def differ(self, always: bool = False) -> None:
        """Give each block a row of its own, until all have met; with `always` for good."""
        self._apart += 1000 if always else 1
        if self._state is None:
            return
        self._look()
        self._state, blocks = None, self._m.blocks
        for name in ("wrote", "seen", "writer", "reader", "_barrier"):
            setattr(self, name, np.tile(getattr(self, name), blocks))
        self._together = np.tile(self._together, (blocks, 1))

    def _agree(self) -> None:
        """Behind a barrier of all: one row stands for all again if the same words have been written."""
        written = (self.wrote != 0).reshape(-1, self._words)
        if self._apart > 8 or (self._state is None and (written != written[:1]).any()):
            return
        following = self.known.barriers.setdefault(written[0].tobytes(), {})
        if self._state is None:
            for name in ("wrote", "seen", "writer", "reader"):
                setattr(self, name, getattr(self, name)[: self._words].copy())
            self._barrier, self._together = self._barrier[:1].copy(), self._together[:1].copy()
        else:
            self._state["barrier"] = following
        self._state = following

    def synchronized(self, blocks: np.ndarray | None) -> None:
        """Note that all threads of blocks have met."""
        if blocks is not None and not blocks.all():
            self.differ()
            self._barrier[blocks] = self._m.now
            self._met = int(self._barrier.min())
            return
        following = None if self._state is None else self._state.get("barrier")
        if following is not None:
            self._before.update((event, None) for event in self._since if event[0] not in ("read", "warps"))
            self._since, self._passed, self._state = [], True, following
            return
        if self._state is not None:
            self._look()
        self._barrier[:] = self._met = self._m.now
        self._agree()

    def synchronized_warps(self, warps: np.ndarray) -> None:
        """Note that the threads of warps, (blocks, warps), have met."""
        row = self.row(warps) if self._state is not None else None
        if row is None:
            self.differ()
            self._m.now += 1
            self._together[warps] = self._m.now
            return
        every = bool(row.all())
        event = "warps", slice(None) if every else tuple(row[0].nonzero()[0].tolist())
        known = self._state.get(key := ("warps", None if every else event[1]))  # type: ignore[union-attr]
        if known is None:
            self._look()
            self._apply(*event)
            known = self._state[key] = {}  # type: ignore[index]
        else:
            self._m.now += 1
            self._since.append(event)
        self._state = known

    # -- accesses

    def load(self, m: Machine, addresses: np.ndarray, nbytes: int, mask: Mask) -> np.ndarray:
        """The words at addresses of each lane's block, for the lanes of a mask; elsewhere zeros."""
        pattern = self._pattern(m, addresses, nbytes, mask)
        members = np.broadcast_shapes(addresses.shape, () if mask is None else mask.shape)[:-2]
        if pattern is None and members:
            raise Apart
        if pattern is not None:
            self.note("read", pattern)
            rows, places = self.rows[nbytes], pattern.places
            found = rows[:, places].copy() if isinstance(places, slice) else rows.take(places, axis=1)
        else:
            self.differ()
            blocks, lanes, where = self._accesses(m, addresses, nbytes, mask)
            self.touch(blocks, lanes, where, nbytes)
            found = self._flat[nbytes].take((blocks * self.size + where) >> (nbytes.bit_length() - 1))
        if m.counters is not None:
            m.counters.shared_access(m, "load", addresses, nbytes, mask)
        if mask is not None:
            result = np.zeros((m.blocks, math.prod(members) * m.threads), found.dtype)
            if pattern is not None:
                result[:, pattern.chosen] = found
            else:
                result[m.full(mask)] = found
            found = result
        return found.reshape(m.blocks, *members, m.threads).swapaxes(0, -2)

    def store(self, m: Machine, addresses: np.ndarray, words: np.ndarray, mask: Mask) -> None:
        """Write words to addresses of each lane's block."""
        nbytes = words.dtype.itemsize
        pattern = self._pattern(m, addresses, nbytes, mask)
        shape = np.broadcast_shapes(addresses.shape, words.shape, () if mask is None else mask.shape)
        members = shape[:-2]
        if members and (pattern is None or not pattern.alone or addresses.shape[:-2] != members):
            raise Apart
        if m.counters is not None:
            m.counters.shared_access(m, "store", addresses, nbytes, mask)
        if pattern is not None and self.note("write", pattern):
            rows = self.rows[nbytes]
            words = np.broadcast_to(words, (*members, m.blocks, m.threads)).swapaxes(0, -2).reshape(m.blocks, -1)
            words = words if mask is None else words[:, pattern.chosen]
            rows[:, pattern.places] = words
            if pattern.alone or nbytes == 16:
                return
            kept, left = rows[:, pattern.places], rows[:, pattern.places] != words
            blocks, lanes, last = (
                np.broadcast_to(each, left.shape)
                for each in (np.arange(m.blocks)[:, None], pattern.lanes, pattern.last)
            )
        elif members:
            raise Apart
        else:
            self.differ()
            blocks, lanes, where = self._accesses(m, addresses, nbytes, mask)
            words = np.broadcast_to(words, (m.blocks, m.threads))
            words = words.reshape(-1) if mask is None else words[m.full(mask)]
            self.touch(blocks, lanes, where, nbytes, words)
            places = (blocks * self.size + where) >> (nbytes.bit_length() - 1)
            self._flat[nbytes][places] = words
            kept = self._flat[nbytes][places]
            left, last = kept != words, self.writer[blocks * self._words + where // self.grain]
        if nbytes < 16 and left.any():
            if _shuffles(m.kernel):  # sums of a warp that cancel may differ in all bits
                left &= last // 32 != lanes // 32
            if left.any() and _apart(kept[left], words[left]):
                self._conflict(m, "two threads write different values to the same shared address", blocks, lanes, left)

    def cells(
        self, m: Machine, addresses: np.ndarray, nbytes: int, active: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As of global memory. Threads may use one address at once; who reads it otherwise has to meet them first."""
        pattern = self._pattern(m, addresses, nbytes, active)
        blocks, _, where = self._accesses(m, addresses, nbytes, active)
        if pattern is not None:
            self.note("atomic", pattern)
        else:
            self.differ()
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
        self._confine(m, blocks, lanes, where, nbytes)
        return blocks, lanes, where

    def _confine(self, m: Machine, blocks: np.ndarray, lanes: np.ndarray, where: np.ndarray, nbytes: int) -> None:
        wrong = (where + nbytes > self.size) | (where & (nbytes - 1) != 0)
        if wrong.any():
            why = "misaligned" if (where & (nbytes - 1)).any() else f"beyond the {self.size} bytes there are"
            self._conflict(m, f"an access of {nbytes} bytes of shared memory is {why}", blocks, lanes, wrong)

    @staticmethod
    def _spanned(words: np.ndarray, number: int) -> np.ndarray:
        return words if number == 1 else (words[:, None] + np.arange(number)).reshape(-1)

    def touch(
        self,
        blocks: np.ndarray,
        lanes: np.ndarray,
        where: np.ndarray,
        nbytes: int,
        words: np.ndarray | bool | None = None,
    ) -> bool:
        """Check accesses, one for each element of the arrays, against those before, and note them.

        Args:
            words: what is written, or None when reading; True for what is not known here, False for what is there.

        Returns:
            False if it depends on what is written, and that is not known.
        """
        m = self._m
        m.now += 1
        number = max(nbytes // self.grain, 1)
        at = blocks * self._words + where // self.grain
        if number > 1:
            at = self._spanned(at, number)
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
            return True
        if elsewhere is not None and elsewhere.any():
            text = "shared memory is written that another warp has read, with no barrier between"
            self._conflict(m, text, blocks, lanes, elsewhere)
        unclear = words is not False and hazard is not None and hazard.any()
        if unclear and words is True:
            return False
        if unclear and self._differs(number, nbytes, where, blocks, words, hazard):  # type: ignore[arg-type]
            text = "shared memory is written that another thread wrote, with no barrier between"
            self._conflict(m, text, blocks, lanes, hazard)
        self.wrote[at], self.writer[at] = m.now, lanes
        self._last_write = m.now
        return True

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

    def _conflict(self, m: Machine, text: str, blocks: np.ndarray, lanes: np.ndarray, wrong: np.ndarray) -> None:
        found = np.zeros((m.blocks, m.threads), np.bool_)
        found[blocks[wrong], lanes[wrong]] = True
        m.fail(text, found)
