"""Products of Hopper's warpgroups (`wgmma`), and the groups of asynchronous work that threads wait for.

On a simulated device asynchronous products and copies are done when they are issued; in late mode they are done by the
wait that a program has to make for them, so that a wait that is missing gives wrong values every time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from . import races
from .matrices import fragment, rows_of, sized, slots_of, spread, sums_of
from .parse import Immediate, Instruction, Kernel, Operand, Vector
from .shared import Pattern
from .state import Machine, Mask
from .table import Step, instruction, source
from .values import TYPES, Type

Array = np.ndarray
_GROUP = 128  # threads of a warpgroup
_ONES = np.full((1, 1), 0xFFFFFFFF, np.uint32)  # NaN as a float


def number_of(operand: Operand) -> int:
    """The value of an operand that has to be a constant."""
    assert isinstance(operand, Immediate)
    return operand.bits


class Groups:
    """Asynchronous work by the groups that threads, or warpgroups, commit it in.

    Attributes:
        committed: how many groups each has committed.
        queue: in late mode the work that is not done: a function of a mask, whom it is left to do for, and its group.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.committed = np.zeros(shape, np.int64)
        self.queue: list[tuple[Callable[[Array], None], Array, Array]] = []

    @staticmethod
    def of(m: Machine, kind: str, width: int) -> Groups:
        """Lanes grouped by warp or warpgroup."""
        if kind not in m.async_state:
            m.async_state[kind] = Groups((m.blocks, m.threads // width))
        groups: Groups = m.async_state[kind]
        return groups

    def add(self, m: Machine, active: Array, work: Callable[[Array], None]) -> None:
        """Do work, or leave it for a wait."""
        if m.late:
            self.queue.append((work, active.copy(), self.committed.copy()))
        else:
            work(active)

    def wait(self, active: Array, but: int) -> None:
        """Do what all but the newest groups have left, in order."""
        for work, left, group in self.queue:
            now = left & active & (group < self.committed - but)
            if now.any():
                work(now)
                left &= ~now
        self.queue = [each for each in self.queue if each[1].any()]


# ---- products of warpgroups -----------------------------------------------------------------------------------------


def swizzled(chunks: Array, width: int) -> Array:
    """Numbers of 16-byte chunks of shared memory, exchanged as a swizzle of 128, 64 or 32 bytes exchanges them."""
    return chunks ^ (chunks >> 3 & (width // 16 - 1))


@lru_cache(maxsize=256)
def offsets(lines: int, depth: int, size: int, width: int, turned: bool, leading: int, stride: int) -> Array:
    """The offsets of an operand's chunks, in chunks from its start and before they are exchanged.

    Args:
        lines: rows of a left operand, columns of a right one, each of `depth` elements of `size` bytes.
        width: bytes that lie side by side: 128, 64 or 32 with a swizzle, else 16.
        turned: they are of one place of the depth, not of one line.
        leading, stride: the two distances of the descriptor, in chunks.

    Returns:
        (lines, chunks of a line), or if turned (depth, chunks of a place).
    """
    row, chunk = np.ogrid[: depth if turned else lines, : (lines if turned else depth) * size // 16]
    wide = width // 16
    across, down = (stride, leading) if turned and width == 16 else (leading, stride)
    return row // 8 * down + row % 8 * wide + chunk // wide * across + chunk % wide


class _Tiles:
    """An operand in shared memory, by a descriptor in each lane."""

    def __init__(self, operand: Operand, lines: int, depth: int, kind: Type, turned: bool) -> None:
        self.descriptor = source(operand, TYPES["b64"])
        self.lines, self.depth, self.kind, self.turned = lines, depth, kind, turned

    def chunks(self, m: Machine, words: Array, now: Array) -> Array:
        """The 16-byte chunks of the operand of each of the warpgroups that a mask picks."""
        word, starts = int(words[now][0]), (words[now] & np.uint64(0x3FFF)).astype(np.int64)
        if (words[now] >> np.uint64(16) != word >> 16).any() or word >> 49 & 7:
            m.fail("descriptors of shared memory that differ or have a base offset are not simulated:")
        width = (16, 128, 64, 32)[word >> 62]
        layout = (self.lines, self.depth, self.kind.size, width, self.turned, word >> 16 & 0x3FFF, word >> 32 & 0x3FFF)
        chunks = swizzled(starts[:, None, None] + offsets(*layout), width)
        if int(chunks.max()) * 16 >= m.shared.size:
            m.fail("an operand of a product lies beyond shared memory,", m.full(None))
        return chunks

    def numbers(self, chunks: Array) -> Array:
        """Chunks, (…, rows, chunks of a row), as (…, lines, depth)."""
        numbers = self.kind.read(np.ascontiguousarray(chunks).view(self.kind.bits))
        return numbers.swapaxes(-1, -2) if self.turned else numbers

    def pattern(self, m: Machine) -> Pattern | None:
        """Where all warpgroups of each block read, if blocks do not differ."""
        row = m.shared.row(self.descriptor(m))
        if row is None:
            return None

        def make() -> tuple[Array, Array, Array, int]:
            words = np.broadcast_to(row, (1, m.threads))[:, ::_GROUP]
            chunks = self.chunks(m, words, np.ones(words.shape, np.bool_))
            first = np.repeat(np.arange(len(chunks)) * _GROUP, chunks[0].size)
            return first, first, chunks.reshape(-1) * 16, 16

        return m.shared.pattern((self, row.tobytes()), make)

    def together(self, m: Machine, patterns: Sequence[Pattern]) -> Array:
        """The numbers of several operands side by side, (blocks, warpgroups or 1, lines, depths)."""
        groups, key = m.threads // _GROUP, ("products", *patterns)
        if key not in m.shared.known.places:
            rows = self.depth if self.turned else self.lines
            each = [pattern.where.reshape(groups, rows, -1) // 16 for pattern in patterns]
            places = np.concatenate(each, 1 if self.turned else 2)
            m.shared.known.places[key] = places[:1] if (places == places[:1]).all() else places
        return self.numbers(m.shared.rows[16].take(m.shared.known.places[key], axis=1))

    def begin(self, m: Machine) -> Callable[[Array], Array]:
        """Makes the reader of the operand's numbers, (warpgroups, lines, depth), for the warpgroups of a mask."""
        words = np.broadcast_to(self.descriptor(m), (m.blocks, m.threads))[:, ::_GROUP]

        def load(now: Array) -> Array:
            chunks = self.chunks(m, words, now)
            blocks, groups = np.nonzero(now)
            size = chunks[0].size
            which, first = np.repeat(blocks, size), np.repeat(groups * _GROUP, size)
            m.shared.differ()
            if races.watched(m):
                races.published(m, which, first, chunks.reshape(-1) * 16)
            m.shared.note("read", m.shared.each(which, first, chunks.reshape(-1) * 16, 16))
            return self.numbers(m.shared.bytes.view(np.complex128)[blocks[:, None, None], chunks])

        return load


class _Held:
    """A left operand in registers."""

    def __init__(self, operand: Operand, depth: int, kind: Type) -> None:
        self.read, self.depth, self.kind = fragment(operand, kind), depth, kind

    def numbers(self, m: Machine, bits: Array) -> Array:
        """Registers, of several operands side by side, as (blocks, warpgroups, 64, depths)."""
        return rows_of(bits, 2, self.kind).reshape(m.blocks, m.threads // _GROUP, 64, -1)

    def begin(self, m: Machine) -> Callable[[Array], Array]:
        """As of tiles."""
        matrices = self.numbers(m, self.read(m))
        return lambda now: matrices[now]


class _Sums:
    """The sums of products in flight, which their registers do not hold, as (blocks, warpgroups, 64, columns).

    Attributes:
        live: the warpgroups that have products in flight; `last` is the newest group that one is in.
        steps: products of all warpgroups that are issued and not done: they are one product of a greater depth.
        empty: the sums are zero. `flying`: products of all warpgroups are in flight.
        bits: the registers that the sums were written to, from which they need not be read again.
    """

    def __init__(self, m: Machine, columns: int, kind: Type) -> None:
        self.matrices = np.empty((m.blocks, m.threads // _GROUP, 64, columns), kind.number)
        self.live, self.last = np.zeros((2, m.blocks, m.threads // _GROUP), np.int64)
        self.kind = kind
        self.steps: list[tuple[int, _Held | _Tiles, _Tiles, Any, Pattern]] = []
        self.empty = self.flying = False
        self.bits: list[Array] = []
        self.alike: object = None  # what products have in common that are done as one

    def multiply(self, m: Machine) -> None:
        """Do the products that are left."""
        if self.steps:
            sign, left, right = self.steps[0][:3]
            lefts, rights = [step[3] for step in self.steps], [step[4] for step in self.steps]
            self.steps = []
            a = left.numbers(m, np.concatenate(lefts)) if isinstance(left, _Held) else left.together(m, lefts)
            b = right.together(m, rights).swapaxes(2, 3)
            if b.shape[1] == 1:  # one product of all warpgroups' rows
                depth = a.shape[3]
                a = np.broadcast_to(a, (*self.matrices.shape[:3], depth)).reshape(m.blocks, 1, -1, depth)
            found = (a @ b).reshape(self.matrices.shape)
            if sign < 0:
                np.negative(found, out=found)
            if not self.empty:
                found += self.matrices
            self.matrices = found
        elif self.empty:
            self.matrices = np.zeros_like(self.matrices)
        self.empty = False

    def land(self, m: Machine, slots: tuple[int, ...], group: Array, now: Array) -> None:
        """Write the registers of warpgroups that have no products in groups after this one."""
        done = now & (self.last == group)
        if not done.any():
            return
        self.multiply(m)
        warps = self.matrices.reshape(m.blocks, -1, 16, self.matrices.shape[3])
        mask = None if done.all() else np.repeat(done, _GROUP, 1)
        self.bits = list(spread(warps, 2, self.kind)) if mask is None else []
        for slot, bits in zip(slots, self.bits or spread(warps, 2, self.kind), strict=True):
            if mask is None:
                m.registers[slot] = bits
            else:
                m.put(slot, bits, mask)
        if races.watched(m):
            races.land(m, slots)
        self.live[done], self.flying = 0, False


def _warpgroups(m: Machine, mask: Mask) -> tuple[Array, Groups]:
    """The warpgroups, (blocks, warpgroups), that execute an instruction, and what they have in flight."""
    if mask is None:
        return m.warps[:, ::4], Groups.of(m, "products", _GROUP)
    warps = m.whole_warps(mask).reshape(m.blocks, -1, 4)
    whole = warps[:, :, 0]
    if (warps != whole[:, :, None]).any():
        m.fail("warps of a warpgroup do not reach it together", warps != whole[:, :, None])
    return whole, Groups.of(m, "products", _GROUP)


@instruction("wgmma.mma_async")
def _multiply(i: Instruction, kernel: Kernel) -> Step:
    """`d = a @ b + d`, or `a @ b` where scale-d is 0; b lies in shared memory, a there or in registers."""
    _, columns, depth, (to, left, right) = sized(i, kernel, -3)
    d, a, b, keep, *flags = i.operands
    sign = math.prod(number_of(flag) for flag in flags[:2])  # 1 or -1 for each operand; integers have none
    turned = [bool(number_of(flag)) for flag in flags[2:]] or [False]
    held = isinstance(a, Vector)
    rows = _Held(a, depth, left) if held else _Tiles(a, 64, depth, left, turned[0])
    tile, kept = _Tiles(b, columns, depth, right, turned[-1]), source(keep, TYPES["pred"])
    slots, before = tuple(slots_of(d)), fragment(d, to)
    alike = sign, depth, left, right, held, *turned
    used = slots + (tuple(slots_of(a)) if held else ())

    def run(m: Machine, mask: Mask) -> None:
        active, groups = _warpgroups(m, mask)
        if races.watched(m):
            races.fenced(m, used, np.repeat(active, _GROUP, 1))
        flights = m.async_state.setdefault("sums", {})
        if slots not in flights:
            flights[slots] = _Sums(m, columns, to)
        sums: _Sums = flights[slots]
        keeping = kept(m)
        if mask is None and not m.late and keeping.size == 1 and m.shared.alike and _step(m, sums, bool(keeping)):
            if not sums.flying:
                sums.live[:], sums.last[:], sums.flying = 1, groups.committed, True
            return
        sums.multiply(m)
        sums.flying, sums.bits = False, []
        keeps = np.broadcast_to(keeping, (m.blocks, m.threads))[:, ::_GROUP]
        fresh = active & keeps & (sums.live == 0)
        if fresh.any():
            sums.matrices[fresh] = sums_of(before(m), 2, to).reshape(sums.matrices.shape)[fresh]
        load_rows, load_tile = rows.begin(m), tile.begin(m)

        def add(now: Array) -> None:
            old = sums.matrices[now]
            old = old if keeps[now].all() else np.where(keeps[now][:, None, None], old, 0)
            sums.matrices[now] = old + sign * (load_rows(now) @ load_tile(now).swapaxes(1, 2))

        sums.live[active], sums.last[active] = 1, groups.committed[active]
        groups.add(m, active, add)
        if m.late:  # of no value before they are waited for
            lanes = None if active.all() else np.repeat(active, _GROUP, 1)
            for slot in slots:
                m.put(slot, _ONES, lanes)
            if races.watched(m):
                races.fly(m, slots, lanes is None)

    def _step(m: Machine, sums: _Sums, keeping: bool) -> bool:
        """Leave a product that all warpgroups of all blocks do alike for the group's end; False if they do not."""
        found = [each.pattern(m) for each in (rows, tile) if isinstance(each, _Tiles)]
        patterns = [each for each in found if each is not None]
        if len(patterns) < len(found) or not (sums.flying or not sums.live.any()):
            return False
        if sums.steps and sums.alike != alike:
            sums.multiply(m)
        if not keeping:
            sums.steps, sums.empty = [], True
        elif not sums.flying and not (sums.bits and all(m.registers[s] is b for s, b in zip(slots, sums.bits))):
            sums.matrices = sums_of(before(m), 2, to).reshape(sums.matrices.shape)
        for pattern in patterns:
            m.shared.note("read", pattern)
        sums.alike = alike
        sums.steps.append((sign, rows, tile, rows.read(m) if isinstance(rows, _Held) else patterns[0], patterns[-1]))
        return True

    return run


@instruction("wgmma.commit_group")
def _commit(i: Instruction, kernel: Kernel) -> Step:
    def run(m: Machine, mask: Mask) -> None:
        active, groups = _warpgroups(m, mask)
        for slots, sums in m.async_state.get("sums", {}).items():
            live = active & (sums.live == 1) & (sums.last == groups.committed)
            if live.any():
                groups.add(m, live, partial(sums.land, m, slots, groups.committed.copy()))
        groups.committed += active

    return run


@instruction("wgmma.wait_group")
def _wait(i: Instruction, kernel: Kernel) -> Step:
    but = number_of(i.operands[0])

    def run(m: Machine, mask: Mask) -> None:
        active, groups = _warpgroups(m, mask)
        groups.wait(active, but)

    return run


@instruction("setmaxnreg")
def _nothing(i: Instruction, kernel: Kernel) -> Step:
    return lambda m, mask: None
