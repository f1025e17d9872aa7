"""Hopper's copies of tiles (TMA), and the barriers in shared memory that they signal (`mbarrier`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import TritensorError
from . import races
from .hopper import Groups, number_of, swizzled
from .memory import FIRST, views
from .parse import Address, Immediate, Instruction, Kernel, Name, Vector
from .state import Machine, Mask
from .table import Step, instruction, place, source, target, unknown
from .values import TYPES

Array = np.ndarray
# ---- barriers in shared memory --------------------------------------------------------------------------------------


class _Barrier:
    """An mbarrier: its phase ends when so many threads have arrived, and all bytes that it expects.

    Attributes:
        landing: in late mode, the copies that signal it and are not done.
    """

    def __init__(self, count: int) -> None:
        self.count = self.pending = count
        self.phase = self.bytes = 0
        self.landing: list[Callable[[], None]] = []

    def signal(self, arrivals: int, nbytes: int) -> None:
        """Note arrivals, and bytes that are expected, or negative ones that have come."""
        self.pending -= arrivals
        self.bytes += nbytes
        if not self.pending and not self.bytes:
            self.phase, self.pending = self.phase ^ 1, self.count

    def passed(self, parity: int) -> bool:
        """True if the phase of a parity has ended; does the copies that it waits for."""
        while self.phase == parity and self.landing:
            self.landing.pop(0)()
        return self.phase != parity


def _one(m: Machine, block: int, thread: int) -> Array:
    lanes = np.zeros((m.blocks, m.threads), np.bool_)
    lanes[block, thread] = True
    return lanes


def _lanes(m: Machine, mask: Mask, *values: Array) -> Iterator[tuple[int, ...]]:
    """Block, thread, and the values of each active lane; one of a block as a rule."""
    blocks, threads = np.nonzero(m.full(mask))
    columns = [np.broadcast_to(value, (m.blocks, m.threads))[blocks, threads].tolist() for value in values]
    return zip(blocks.tolist(), threads.tolist(), *columns, strict=True)


def _barrier(m: Machine, block: int, thread: int, address: int) -> _Barrier:
    found: _Barrier | None = m.async_state.get("barriers", {}).get((block, address))
    if found is None:
        m.fail(f"an mbarrier at {address} of shared memory that was not initialised,", _one(m, block, thread))
    return found


@instruction("mbarrier.init", "mbarrier.inval")
def _begin(i: Instruction, kernel: Kernel) -> Step:
    address, begins = place(i.operands[0], 32), i.parts[1] == "init"
    count = source(i.operands[1], TYPES["b32"]) if begins else lambda m: m.uniform(0)

    def run(m: Machine, mask: Mask) -> None:
        barriers = m.async_state.setdefault("barriers", {})
        for block, thread, at, number in _lanes(m, mask, address(m), count(m)):
            if at % 8:
                m.fail(f"an mbarrier at {at} of shared memory, which is no multiple of 8,", _one(m, block, thread))
            if begins:
                barriers[block, at] = _Barrier(number)
            else:
                _barrier(m, block, thread, at)
                del barriers[block, at]

    return run


@instruction("mbarrier.arrive", "mbarrier.expect_tx")
def _arrive(i: Instruction, kernel: Kernel) -> Step:
    arrives, expects = i.parts[1] == "arrive", "expect_tx" in i.parts
    if (arrives and i.operands[0] != Name("_")) or "noComplete" in i.parts:
        raise unknown(i, kernel)  # the state of a barrier as a number
    where, *count = i.operands[arrives:]
    address, number = place(where, 32), source(count[0] if count else Immediate(1, "1"), TYPES["b32"])

    def run(m: Machine, mask: Mask) -> None:
        for block, thread, at, value in _lanes(m, mask, address(m), number(m)):
            barrier, arrivals = _barrier(m, block, thread, at), (1 if expects else value) if arrives else 0
            if arrivals > barrier.pending:
                m.fail("more threads arrive at an mbarrier than it waits for", _one(m, block, thread))
            barrier.signal(arrivals, value if expects else 0)

    return run


@instruction("mbarrier.try_wait.parity", "mbarrier.test_wait.parity")
def _try(i: Instruction, kernel: Kernel) -> Step:
    put, address = target(i.operands[0], TYPES["pred"]), place(i.operands[1], 32)
    parity = source(i.operands[2], TYPES["b32"])

    def run(m: Machine, mask: Mask) -> None:
        at, phase = np.broadcast_arrays(address(m), parity(m))
        active = m.full(mask) if at.shape[1] > 1 else m.full(mask).any(1, keepdims=True)
        at, phase = np.broadcast_to(at, active.shape), np.broadcast_to(phase, active.shape)
        passed = np.zeros(active.shape, np.bool_)
        for block, thread in np.argwhere(active).tolist():
            barrier = _barrier(m, block, thread, int(at[block, thread]))
            passed[block, thread] = barrier.passed(int(phase[block, thread]) & 1)
        put(m, passed, mask)
        if not passed[active].all():
            m.stall(m.full(mask) & ~passed)

    return run


@instruction("elect.sync")
def _elect(i: Instruction, kernel: Kernel) -> Step:
    """One lane of each warp: the first."""
    assert isinstance(i.operands[0], Vector)
    if i.operands[1] != Immediate(-1, "-1"):
        raise unknown(i, kernel)
    which, chosen = i.operands[0].parts
    number, elected = target(which, TYPES["b32"]), target(chosen, TYPES["pred"])

    def run(m: Machine, mask: Mask) -> None:
        m.whole_warps(mask)
        number(m, m.uniform(0), mask)
        elected(m, m.tid[0] % 32 == 0, mask)

    return run


# ---- copies of tiles ------------------------------------------------------------------------------------------------

#: What is known of an array that tiles are copied of. A card's own arrangement of the 128 bytes is not published.
MAP = np.dtype(
    [("global_address", "u8"), ("global_stride", "u8", 4)]
    + [(name, "u4", 5) for name in ("global_dim", "box_dim", "element_stride")]
    + [(name, "u4") for name in ("rank", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode")]
    + [("unused", "u8")]
)
_SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4)  # by type of element, in the order of `tensormap.replace`
_WIDTHS = (16, 32, 64, 128)  # by swizzle mode


def encoded(
    address: int, sizes: Sequence[int], steps: Sequence[int], box: Sequence[int], kind: int, swizzle: int, ones: bool
) -> bytes:
    """A tensor map that the host makes: sizes and a box in elements and steps in bytes, the outermost dimension first.

    Args:
        kind: the type of the elements, a number of `_SIZES`.
        swizzle: the mode, a number of `_WIDTHS`.
        ones: what is outside of the array is read as NaN; else it is 0.
    """
    made, rank = np.zeros(1, MAP), len(sizes)
    made["global_address"], made["rank"], made["elemtype"] = address, rank - 1, kind
    made["global_dim"][0, :rank], made["box_dim"][0, :rank] = sizes[::-1], box[::-1]
    made["global_stride"][0, : rank - 1] = steps[-2::-1]
    made["element_stride"] = 1
    made["swizzle_mode"], made["fill_mode"] = swizzle, ones
    return made.tobytes()


@instruction("tensormap.replace.tile")
def _replace(i: Instruction, kernel: Kernel) -> Step:
    kind, fields = TYPES[i.parts[-1]], MAP.fields
    *ordinal, value = i.operands[1:]
    if fields is None or i.parts[3] not in fields:
        raise unknown(i, kernel)
    step = np.uint32(fields[i.parts[3]][1] + sum(map(number_of, ordinal)) * kind.size)
    address, number = place(i.operands[0], 32), source(value, kind)
    return lambda m, mask: m.shared.store(m, address(m) + step, number(m), mask)


@instruction("tensormap.cp_fenceproxy")
def _publish(i: Instruction, kernel: Kernel) -> Step:
    """A tensor map is copied from shared to global memory, by a warp together."""
    to, by = place(i.operands[0]), place(i.operands[1], 32)

    def run(m: Machine, mask: Mask) -> None:
        m.whole_warps(mask)
        lanes = m.full(mask) & (m.tid[0] % 32 == 0)
        for step in range(0, MAP.itemsize, 16):
            words = m.shared.load(m, by(m) + np.uint32(step), 16, lanes)
            m.memory.store(m, to(m) + np.uint64(step), words, lanes)
        m.async_state.setdefault("unseen", set()).update(at for _, _, at in _lanes(m, lanes, to(m)))

    return run


@instruction("fence.proxy.tensormap::generic.acquire")
def _acquire(i: Instruction, kernel: Kernel) -> Step:
    address = place(i.operands[0])

    def run(m: Machine, mask: Mask) -> None:
        at = np.broadcast_to(address(m), (m.blocks, m.threads))[m.full(mask)]
        m.async_state.setdefault("unseen", set()).difference_update(at.tolist())

    return run


class _Boxes:
    """Tiles of an array in global memory, one of each block, by a tensor map and the coordinates of their beginnings.

    Attributes:
        chunks: the 16-byte chunks of shared memory that each takes.
        places: its parts in global memory as elements of `memory.views()[self.part]`, (blocks, …, the innermost last);
            `valid` are those that lie within the array, None for all.
    """

    def __init__(self, m: Machine, lanes: Array, at: Array, first: Array, start: int) -> None:
        known = m.memory.view(m, int(at[0]), MAP.itemsize).view(MAP)[0]
        if (at != at[0]).any():  # each block's own, of the same array
            m.memory.ranges(m, np.stack([at, at + np.uint64(MAP.itemsize - 1)], 1))
            maps = views()[1].take((at.astype(np.int64) - FIRST)[:, None] + np.arange(MAP.itemsize))
            if (maps != maps[0]).any():
                m.fail("tensor maps that differ are used", lanes)
        rank, address = first.shape[1], int(known["global_address"])
        size, width = _SIZES[int(known["elemtype"])], _WIDTHS[int(known["swizzle_mode"])]
        box, dim = known["box_dim"][:rank].astype(np.int64), known["global_dim"][:rank].astype(np.int64)
        strides = np.array([size, *known["global_stride"][: rank - 1].tolist()])
        self.nbytes, unseen = int(box.prod()) * size, m.async_state.get("unseen", frozenset())
        wrong = {
            "that fence.proxy.tensormap has not acquired": not unseen.isdisjoint(at.tolist()),
            f"of {known['rank'] + 1} dimensions for {rank} coordinates": known["rank"] + 1 != rank,
            "of an address or strides that 16 does not divide": address % 16 or (strides[1:] % 16).any(),
            f"of boxes of {box.tolist()} elements": not all(0 < x <= 256 for x in box) or box[0] * size % 16,
            "of boxes wider than their swizzle": 16 < width < box[0] * size,
            "with steps or interleaved": (known["element_stride"][:rank] != 1).any() or known["interleave_layout"],
            f"of boxes that do not fit at {start} of shared memory": start % 128 or start + self.nbytes > m.shared.size,
        }
        for what, found in wrong.items():
            if found:
                m.fail(f"a tensor map {what} is used", lanes)
        self.start, self.width, self.fill = start, width, 0xFF * bool(known["fill_mode"])
        self.chunks = swizzled(start // 16 + np.arange(self.nbytes // 16), width)
        low = np.clip(-first, 0, box)
        high = np.maximum(np.minimum(box, dim - first), low)
        begin = address + ((first + low) * strides).sum(1)
        end = begin + ((high - low - 1) * strides).sum(1) + size - 1
        some = (high > low).all(1)
        m.memory.ranges(m, np.stack([begin, end], 1)[some].astype(np.uint64))
        whole = bool((low == 0).all() and (high == box).all())
        # as large as lets all of a part lie within the array or outside
        unit = 16 | size * int(np.bitwise_or.reduce(first[:, 0]) | (0 if whole else dim[0]))
        self.part = unit & -unit
        self.places = (address + (first * strides).sum(1)).reshape(-1, *[1] * rank)
        self.valid: Any = None if whole else np.array(True)
        for axis in range(rank):
            each = np.arange(0, box[axis], 1 if axis else self.part // size)
            self.places = self.places + each.reshape(-1, *[1] * axis) * strides[axis]
            if not whole:
                there = each + first[:, axis, None]
                there = (there >= 0) & (there < dim[axis])
                self.valid = self.valid & there.reshape(len(first), *[1] * (rank - 1 - axis), -1, *[1] * axis)
        self.places = (self.places - FIRST) // self.part

    def rows(self) -> tuple[Array, Array]:
        """The addresses of the tiles' parts, (rows, parts), and which of them lie within the array."""
        valid = np.array(True) if self.valid is None else self.valid
        count = self.places.shape[-1]
        rows = self.places.reshape(-1, count) * self.part + FIRST
        return rows, np.broadcast_to(valid, self.places.shape).reshape(-1, count)

    def read(self) -> Array:
        """The tiles as (blocks, chunks); what lies outside of the array is filled."""
        memory = views()[self.part]
        if self.valid is None:
            found = memory.take(self.places)
        else:
            *outer, count = self.places.shape
            found = np.full((*outer, count * self.part), self.fill, np.uint8).view(memory.dtype)
            found[self.valid] = memory[self.places[self.valid]]
        return found.reshape(len(found), -1).view(np.complex128)

    def write(self, tiles: Array) -> None:
        """Write tiles, (blocks, chunks); what lies outside of the array is dropped."""
        memory = views()[self.part]
        parts = np.ascontiguousarray(tiles).view(memory.dtype).reshape(self.places.shape)
        if self.valid is None:
            memory[self.places] = parts
        else:
            memory[self.places[self.valid]] = parts[self.valid]


@instruction("cp.async.bulk.tensor")
def _copy_tile(i: Instruction, kernel: Kernel) -> Step:
    parts = [part.split("::")[0] for part in i.parts]
    loads = parts.index("shared") < parts.index("global")
    if {"im2col", "multicast"} & {*parts} or {"tile::gather4", "tile::scatter4"} & {*i.parts}:
        raise unknown(i, kernel)
    tile, other = (i.operands[1], i.operands[0]) if loads else i.operands[:2]
    assert isinstance(tile, Address) and isinstance(tile.rest[0], Vector)
    where, shared, signal = place(tile), place(other, 32), place(i.operands[2], 32) if loads else None
    coordinates = [source(part, TYPES["s32"]) for part in tile.rest[0].parts]

    def run(m: Machine, mask: Mask) -> None:
        blocks, threads = np.nonzero(m.full(mask))
        at, begins, signals, *first = (
            np.broadcast_to(value, (m.blocks, m.threads))[blocks, threads]
            for value in (where(m), shared(m), signal(m) if signal else where(m), *(read(m) for read in coordinates))
        )
        firsts = np.stack(first, 1).astype(np.int64)

        def boxes(which: slice) -> _Boxes:
            lanes = _one(m, int(blocks[which][0]), int(threads[which][0]))
            return _Boxes(m, lanes, at[which], firsts[which], int(begins[which][0]))

        each = len(blocks) // m.blocks  # lanes of a block
        alike = m.shared.alike and not m.late and m.counters is None and len(blocks) == each * m.blocks
        if alike and all(m.shared.row(value.reshape(m.blocks, each)) is not None for value in (threads, begins)):
            try:
                for n in range(each):
                    which = slice(n, None, each)
                    wanted = zip(blocks[which].tolist(), threads[which].tolist(), signals[which].tolist(), strict=True)
                    _together(m, boxes(which), int(threads[n]), [_barrier(m, *one) for one in wanted] if loads else [])
                return
            except TritensorError:  # whose it is, is found below
                pass
        for n, (block, thread, barrier) in enumerate(
            zip(blocks.tolist(), threads.tolist(), signals.tolist(), strict=True)
        ):
            box = boxes(slice(n, n + 1))
            if m.counters is not None:
                m.counters.bulk_access(m, "load" if loads else "store", block, *box.rows(), box.part)
            if loads:
                if races.watched(m):
                    m.memory.moved(m, block, *box.rows(), box.part)
                _fetch(m, block, thread, box, _barrier(m, block, thread, barrier))
            else:
                Groups.of(m, "copies", 1).add(m, _one(m, block, thread), _sending(m, block, thread, box))

    return run


def _together(m: Machine, boxes: _Boxes, thread: int, barriers: list[_Barrier]) -> None:
    """Copy the tiles of all blocks, to shared memory if there are barriers to signal."""
    line, rows = np.full(len(boxes.chunks), thread), m.shared.rows[16]
    key = "tile", boxes.start, boxes.nbytes, boxes.width, thread
    pattern = m.shared.pattern(key, lambda: (line, line, boxes.chunks * 16, 16))
    m.shared.note("copy" if barriers else "read", pattern)
    if not barriers:
        boxes.write(rows[:, boxes.chunks])
        return
    rows[:, boxes.chunks] = boxes.read()
    for barrier in barriers:
        barrier.signal(0, -boxes.nbytes)


def _note(m: Machine, kind: str, block: int, thread: int, chunks: Array) -> None:
    m.shared.differ(m.late)
    m.shared.note(kind, m.shared.each(np.full(chunks.shape, block), np.full(chunks.shape, thread), chunks * 16, 16))


def _fetch(m: Machine, block: int, thread: int, box: _Boxes, barrier: _Barrier) -> None:
    """Copy a tile to shared memory; what lies outside of the array is filled."""
    known, words, chunks = m.shared, m.shared.rows[16][block], box.chunks
    _note(m, "copy", block, thread, chunks)
    first = (block * known.size + int(chunks.min()) * 16) // known.grain
    written = slice(first, first + chunks.size * 16 // known.grain)

    def land() -> None:
        words[chunks] = box.read()[0]
        known.wrote[written], known.writer[written] = m.now, -1
        barrier.signal(0, -box.nbytes)

    if m.late:  # until then reading it is an error, as of memory that nothing has written
        known.wrote[written] = 0
        barrier.landing.append(land)
    else:
        land()


def _sending(m: Machine, block: int, thread: int, box: _Boxes) -> Callable[[Array], None]:
    """Makes the function that copies a tile to global memory; what lies outside of the array is dropped."""

    def send(now: Array) -> None:
        if races.watched(m):
            at = box.chunks * 16
            races.published(m, np.full(at.shape, block), np.full(at.shape, thread), at)
        _note(m, "read", block, thread, box.chunks)
        tile = m.shared.rows[16][block, None, box.chunks]
        if races.watched(m):
            m.memory.moved(m, block, *box.rows(), box.part, tile)
        box.write(tile)

    return send


@instruction("cp.async.bulk.commit_group")
def _commit_copies(i: Instruction, kernel: Kernel) -> Step:
    def run(m: Machine, mask: Mask) -> None:
        Groups.of(m, "copies", 1).committed += m.full(mask)

    return run


@instruction("cp.async.bulk.wait_group")
def _wait_for_copies(i: Instruction, kernel: Kernel) -> Step:
    but = number_of(i.operands[0])
    return lambda m, mask: Groups.of(m, "copies", 1).wait(m.full(mask), but)
