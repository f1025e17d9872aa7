"""Shared memory of compiled kernels: the last reader and writer of each word are known, so that a missing barrier is an
error and not a matter of luck."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from .memory import WORDS
from .parse import Kernel
from .state import Machine, Mask, wide_as
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


Array = np.ndarray
_AT_MOST = 1 << 20  # words of the accesses of a kernel that are remembered, and what states take


class Pattern:
    """Accesses to shared memory: of one block that stands for all of them, or of several.

    Attributes:
        chosen: of each access, which lane's it is among all.
        places: the accesses' elements in memory; a slice of them if they follow one another.
        words, blocks, lanes: of each word that is accessed, its number, block and thread; an access has `number` words.
        alone: no two accesses share a byte.
    """

    def __init__(self, chosen: Array, blocks: Array, lanes: Array, where: Array, nbytes: int, grain: int) -> None:
        self.chosen, self.nbytes, self.where = chosen, nbytes, where
        self.places: Any = where >> (nbytes.bit_length() - 1)
        self.alone = False
        self.number = max(nbytes // grain, 1)
        self.words, self.blocks, self.lanes = where // grain, blocks, lanes
        if self.number > 1:
            self.words = (self.words[:, None] + np.arange(self.number)).reshape(-1)
            self.blocks, self.lanes = np.repeat(blocks, self.number), np.repeat(lanes, self.number)

    def learn(self) -> Pattern:
        """Find out what helps if the pattern is used more than once."""
        order = np.sort(self.places)
        self.alone = not (order[1:] == order[:-1]).any()
        if len(order) and (np.diff(self.places) == 1).all():
            self.places = slice(int(order[0]), int(order[-1]) + 1)
        return self


class _Known:
    """What is known of a kernel's accesses to shared memory from chunks before.

    Attributes:
        patterns: by what makes them; `places`: of several of them, the elements of memory together.
        barriers: by which words have been written, the state behind a barrier. A state maps what may happen next, an
            access or a meeting of threads, to the state that follows if nothing is wrong with it.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.words = 0  # of all patterns
        self.patterns: dict[Any, Pattern] = {}
        self.places: dict[Any, Array] = {}
        self.barriers: dict[bytes, dict[Any, Any]] = {}


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
        self.rows = {size: self.bytes.view(dtype) for size, dtype in WORDS.items()}
        self._starts = {size: np.arange(m.blocks)[:, None] * (self.size // size) for size in WORDS}
        self.grain = _grain(m.kernel)
        self._words = count = self.size // self.grain
        # by word: when it was last written and read, by which thread and which warp (-1: several, or no thread)
        self.wrote, self.seen = np.zeros(count, np.int32), np.zeros(count, np.int32)
        self.writer, self.reader = np.zeros(count, np.int32), np.zeros(count, np.int32)
        self._barrier = np.zeros(1, np.int32)  # when each block last passed a barrier
        self._together = np.zeros((1, -(-m.threads // 32)), np.int32)  # when each warp last did
        self._met = self._last_write = self._last_read = 0  # when all blocks had passed a barrier; the last of each
        self._m = m
        self.known = _known(m.kernel, self.size)
        self._state: dict[Any, Any] | None = self.known.barriers.setdefault(b"", {})  # None: blocks differ
        self._apart = 0  # how often they did
        # what happened since the words were looked at: writes before the last barrier, and all behind it
        self._before: dict[Any, None] = {}
        self._since: list[Any] = []
        self._passed = False
        if watched:
            self.differ(True)

    # -- states

    @property
    def alike(self) -> bool:
        """True as long as all blocks have accessed the same."""
        return self._state is not None

    def row(self, value: Array) -> Array | None:
        """What is the same for all blocks, (1, threads); None if it is not."""
        if len(value) == 1:
            return value
        first = value[:1]
        return first if not value.strides[0] or (value == first).all() else None

    def _follow(self, event: tuple[Any, ...], key: Hashable) -> bool:
        """Go on to the state behind an event; False if it depends on the values that are written."""
        following = None if self._state is None else self._state.get(key)
        if following is None:
            self._look()
            if not self._touch(*event):
                return False
            if self._state is None:
                return True
            if self.known.words > _AT_MOST:  # as of addresses that data decides
                self.known.forget()
            self.known.words += 8
            self._state[key] = following = {}
        else:
            self._m.now += 1
            self._since.append(event)
        self._state = following
        return True

    def _look(self) -> None:
        """Bring what is known of each word up to date."""
        for _, pattern in self._before:
            self.wrote[pattern.words] = self._m.now
        if self._passed:
            self._barrier[:] = self._met = self._m.now
        events, self._since, self._before, self._passed = self._since, [], {}, False
        for event in events:
            self._touch(*event)

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
        if self._state is None:
            if self._apart > 8 or (written != written[:1]).any():
                return
            for name in ("wrote", "seen", "writer", "reader"):
                setattr(self, name, getattr(self, name)[: self._words].copy())
            self._barrier, self._together = self._barrier[:1].copy(), self._together[:1].copy()
        following = self.known.barriers.setdefault(written[0].tobytes(), {})
        if self._state is not None:
            self._state["barrier"] = following
        self._state = following

    def synchronized(self, blocks: Array | None) -> None:
        """Note that all threads of blocks have met."""
        if blocks is not None and not blocks.all():
            self.differ()
            self._barrier[blocks] = self._m.now
            self._met = int(self._barrier.min())
        elif self._state is not None and (following := self._state.get("barrier")) is not None:
            self._before.update((event, None) for event in self._since if event[0] not in ("read", "warps"))
            self._since, self._passed, self._state = [], True, following
        else:
            self._look()
            self._barrier[:] = self._met = self._m.now
            self._agree()

    def synchronized_warps(self, warps: Array) -> None:
        """Note that the threads of warps, (blocks, warps), have met."""
        row = self.row(warps) if self._state is not None else None
        if row is None:
            self.differ()
            self._touch("warps", warps)
        else:
            self._follow(("warps", row), ("warps", row.tobytes()))

    # -- accesses

    def each(self, blocks: Array, lanes: Array, where: Array, nbytes: int) -> Pattern:
        """The pattern of accesses where blocks differ, by block, thread and address."""
        return Pattern(blocks * self._m.threads + lanes, blocks, lanes, where + blocks * self.size, nbytes, self.grain)

    def pattern(self, key: Hashable, make: Callable[[], tuple[Array, Array, Array, int]]) -> Pattern:
        """The pattern that belongs to a key while blocks are alike: places among all lanes, threads, addresses, and
        bytes of each access."""
        found = self.known.patterns.get(key)
        if found is None:
            chosen, lanes, where, nbytes = make()
            found = Pattern(chosen, np.zeros_like(lanes), lanes, where, nbytes, self.grain).learn()
            self.known.patterns[key] = found
            self.known.words += len(found.words)
        return found

    def note(self, kind: str, pattern: Pattern, words: Array | None = None) -> bool:
        """Check and note accesses: "read", "write", "copy" (a write of the copy engine) or "atomic".

        Returns:
            False where it depends on the words written, which are not given, and nothing happened.
        """
        if self._state is None:
            return self._touch(kind, pattern, words)
        event = kind, pattern
        return self._follow(event, event)

    def _accesses(self, m: Machine, addresses: Array, nbytes: int, mask: Mask) -> Pattern:
        """Accesses to the addresses of each lane's block, checked to be within shared memory and aligned."""
        where, active = self.row(addresses), None if mask is None else self.row(mask)
        alike = self._state is not None and where is not None and (mask is None or active is not None)
        if not alike:
            self.differ()
            where, active = addresses, mask
        assert where is not None

        def make() -> tuple[Array, Array, Array, int]:
            shape = 1 if alike else m.blocks, m.threads
            wide, chosen = np.broadcast_to(where, shape).reshape(-1).astype(np.int64), np.arange(shape[0] * m.threads)
            if active is not None:
                chosen = np.broadcast_to(active, shape).reshape(-1).nonzero()[0]
            lanes, wide = chosen % m.threads, wide[chosen]
            wrong = (wide + nbytes > self.size) | (wide & (nbytes - 1) != 0)
            if wrong.any():
                why = "misaligned" if (wide & (nbytes - 1)).any() else f"beyond the {self.size} bytes there are"
                blocks = np.zeros_like(lanes) if alike else chosen // m.threads
                self.conflict(f"an access of {nbytes} bytes of shared memory is {why}", blocks, lanes, wrong)
            return chosen, lanes, wide, nbytes

        if alike:
            mark = None if active is None else (active.shape, active.tobytes())
            return self.pattern((nbytes, where.shape, where.tobytes(), mark), make)
        chosen, lanes, wide, _ = make()
        return self.each(chosen // m.threads, lanes, wide, nbytes)

    def _memory(self, nbytes: int) -> Array:
        """Words of a size, by what a pattern stands for: all blocks, or once."""
        rows = self.rows[nbytes]
        return rows if self._state is not None else rows.reshape(1, -1)

    def load(self, m: Machine, addresses: Array, nbytes: int, mask: Mask) -> Array:
        """The words at addresses of each lane's block, for the lanes of a mask; elsewhere zeros."""
        pattern = self._accesses(m, addresses, nbytes, mask)
        self.note("read", pattern)
        if m.counters is not None:
            m.counters.shared_access(m, "load", addresses, nbytes, mask)
        memory, places = self._memory(nbytes), pattern.places
        found = memory[:, places].copy() if isinstance(places, slice) else memory.take(places, axis=1)
        if mask is not None:
            result = np.zeros((len(found), m.blocks // len(found) * m.threads), found.dtype)
            result[:, pattern.chosen] = found
            found = result
        return found.reshape(m.blocks, m.threads)

    def store(self, m: Machine, addresses: Array, words: Array, mask: Mask) -> None:
        """Write words to addresses of each lane's block."""
        nbytes = words.dtype.itemsize
        pattern = self._accesses(m, addresses, nbytes, mask)
        wide = wide_as(words, (m.blocks, m.threads))
        memory = self._memory(nbytes)
        words = wide.reshape(len(memory), -1)
        words = words if mask is None else words[:, pattern.chosen]
        if not self.note("write", pattern, words):
            self.differ()
            self.store(m, addresses, wide, mask)
            return
        if m.counters is not None:
            m.counters.shared_access(m, "store", addresses, nbytes, mask)
        places = pattern.places
        if isinstance(places, slice):
            memory[:, places] = words
        else:  # `memory[:, places] = words` takes four times as long
            memory.reshape(-1)[places + self._starts[nbytes] if len(memory) > 1 else places] = words
        if pattern.alone or nbytes == 16:
            return
        kept = memory[:, pattern.places]
        left = kept != words
        if left.any():
            step = pattern.number
            of = pattern.blocks[::step] if len(memory) == 1 else np.arange(m.blocks)[:, None]
            blocks, lanes = np.broadcast_to(of, left.shape), np.broadcast_to(pattern.lanes[::step], left.shape)
            if _shuffles(m.kernel):  # sums of a warp that cancel may differ in all bits
                last = np.zeros(int(pattern.words.max()) + 1, np.int64)
                last[pattern.words] = pattern.lanes
                left &= last[pattern.words[::step]] // 32 != lanes // 32
            if left.any() and _apart(kept[left], words[left]):
                self.conflict("two threads write different values to the same shared address", blocks, lanes, left)

    def cells(self, m: Machine, addresses: Array, nbytes: int, active: Array) -> tuple[Array, Array]:
        """As of global memory. Threads may use one address at once; who reads it otherwise has to meet them first."""
        pattern = self._accesses(m, addresses, nbytes, active)
        self.note("atomic", pattern)
        places = np.arange(self.size * m.blocks // nbytes)[pattern.places]
        if self._state is not None:
            places = (places + self._starts[nbytes]).reshape(-1)
        return self.rows[nbytes].reshape(-1), places

    def _touch(self, kind: str, pattern: Pattern | Array, words: Array | None = None) -> bool:
        """Check accesses against those before, and note them, or that warps have met."""
        m = self._m
        m.now += 1
        if isinstance(pattern, np.ndarray):  # "warps"
            self._together[pattern] = m.now
            return True
        at, blocks, lanes = pattern.words, pattern.blocks, pattern.lanes
        warps = (lanes // 32).astype(np.int32)
        if kind == "atomic":
            self.wrote[at], self.writer[at] = m.now, -1
            return True
        # where all blocks have met since the last write, or read, nothing can conflict with it: half of the passes
        hazard = self._unordered(at, blocks, lanes, warps) if self._last_write > self._met else None
        elsewhere = None
        if self._last_read > self._met:
            elsewhere = (self.seen[at] > self._barrier[blocks]) & (self.reader[at] != warps)
        if kind == "read":
            if not self.wrote[at].all():
                text = "shared memory is read that nothing has written"
                self.conflict(text, blocks, lanes, self.wrote[at] == 0)
            if hazard is not None and hazard.any():
                text = "shared memory is read that another thread wrote, with no barrier between"
                self.conflict(text, blocks, lanes, hazard)
            who = warps if elsewhere is None else np.where(elsewhere, np.int32(-1), warps)
            self.seen[at], self.reader[at] = m.now, who
            self._last_read = m.now
            several = self.reader[at] != who
            if several.any():
                self.reader[at[several]] = -1
            return True
        if elsewhere is not None and elsewhere.any():
            text = "shared memory is written that another warp has read, with no barrier between"
            self.conflict(text, blocks, lanes, elsewhere)
        if kind == "write" and hazard is not None and hazard.any():
            if words is None or self._state is not None:
                return False
            # True if a thread writes another value than the one that a thread before it wrote
            differs = (self._memory(pattern.nbytes)[:, pattern.places] != words)[0]
            if (np.repeat(differs, pattern.number) & hazard).any():
                text = "shared memory is written that another thread wrote, with no barrier between"
                self.conflict(text, blocks, lanes, hazard)
        self.wrote[at], self.writer[at] = m.now, lanes if kind == "write" else -1
        self._last_write = m.now
        return True

    def _unordered(self, at: Array, blocks: Array, lanes: Array, warps: Array) -> Array:
        """Of which words another thread is the last writer, with no barrier since."""
        wrote, writer = self.wrote[at], self.writer[at]
        found = (wrote > self._barrier[blocks]) & (writer != lanes) & (writer >= 0)
        if found.any():  # threads of one warp may have met since
            found &= (writer // 32 != warps) | (wrote > self._together[blocks, warps])
        return found

    def conflict(self, text: str, blocks: Array, lanes: Array, wrong: Array) -> None:
        """Raise an error about those accesses, by block and thread, that are wrong."""
        found = np.zeros((self._m.blocks, self._m.threads), np.bool_)
        found[blocks[wrong], lanes[wrong]] = True
        self._m.fail(text, found)
