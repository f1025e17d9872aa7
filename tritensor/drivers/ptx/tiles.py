"""Hopper's copies of tiles (TMA), and the barriers in shared memory that they signal (`mbarrier`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from .hopper import Groups, number_of, swizzled
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
_SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4)  # by type of element
_WIDTHS = (16, 32, 64, 128)  # by swizzle mode


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


class _Box:
    """A tile of an array in global memory, from the tensor map at an address and the coordinates of its first element.

    Attributes:
        shape: its sizes from the outermost on; the last one in bytes.
        inside: the part of it that lies within the array.
        region: that part of the array, or None if there is none.
        chunks: the 16-byte chunks of shared memory that it takes from an address on.
    """

    def __init__(self, m: Machine, lanes: Array, at: int, first: list[int], start: int) -> None:
        known, rank = m.memory.view(m, at, MAP.itemsize).view(MAP)[0], len(first)
        self.fill, address = 0xFF * bool(known["fill_mode"]), int(known["global_address"])
        size, width = _SIZES[int(known["elemtype"])], _WIDTHS[int(known["swizzle_mode"])]
        box, dim = known["box_dim"][:rank].tolist(), known["global_dim"][:rank].tolist()
        strides = [size, *known["global_stride"][: rank - 1].tolist()]
        self.shape = (*box[:0:-1], box[0] * size)
        number = math.prod(self.shape) // 16
        wrong = {
            "that fence.proxy.tensormap has not acquired": at in m.async_state.get("unseen", ()),
            f"of {known['rank'] + 1} dimensions for {rank} coordinates": known["rank"] + 1 != rank,
            "of an address or strides that 16 does not divide": any(x % 16 for x in (address, *strides[1:])),
            f"of boxes of {box} elements": not all(0 < x <= 256 for x in box) or box[0] * size % 16,
            "of boxes wider than their swizzle": 16 < width < box[0] * size,
            "with steps or interleaved": (known["element_stride"][:rank] != 1).any() or known["interleave_layout"],
            f"of boxes that do not fit at {start} of shared memory": start % 128 or start + 16 * number > m.shared.size,
        }
        for what, found in wrong.items():
            if found:
                m.fail(f"a tensor map {what} is used", lanes)
        self.chunks = swizzled(start // 16 + np.arange(number), width)
        low = [min(max(0, -x), extent) for x, extent in zip(first, box, strict=True)]
        high = [max(min(extent, end - x), a) for x, extent, end, a in zip(first, box, dim, low, strict=True)]
        spans = [slice(low[0] * size, high[0] * size), *map(slice, low[1:], high[1:])]
        self.inside, self.region = tuple(reversed(spans)), None
        counts = [b - a for a, b in zip(low, high, strict=True)]
        if all(counts):
            begin = address + sum((x + a) * stride for x, a, stride in zip(first, low, strides, strict=True))
            extent = sum((count - 1) * stride for count, stride in zip(counts, strides, strict=True)) + size
            shape = (*counts[:0:-1], counts[0] * size)
            self.region = np.lib.stride_tricks.as_strided(m.memory.view(m, begin, extent), shape, (*strides[:0:-1], 1))


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
        barriers = signal(m) if signal else m.uniform(0)
        for block, thread, at, start, barrier, *first in _lanes(
            m, mask, where(m), shared(m), barriers, *(read(m) for read in coordinates)
        ):
            box = _Box(m, _one(m, block, thread), at, first, start)
            if m.counters is not None and box.region is not None:
                m.counters.bulk_access(m, "load" if loads else "store", block, box.region)
            if loads:
                _fetch(m, block, thread, box, _barrier(m, block, thread, barrier))
            else:
                groups = Groups.of(m, "copies", 1)
                groups.add(m, _one(m, block, thread), _sending(m, block, thread, box))

    return run


def _touch(m: Machine, block: int, thread: int, chunks: Array, words: Array | None = None) -> None:
    m.shared.differ(m.late)
    m.shared.touch(np.full(chunks.shape, block), np.full(chunks.shape, thread), chunks * 16, 16, words)


def _fetch(m: Machine, block: int, thread: int, box: _Box, barrier: _Barrier) -> None:
    """Copy a tile to shared memory; what lies outside of the array is filled."""
    known, words, chunks = m.shared, m.shared.bytes.view(np.complex128)[block], box.chunks
    _touch(m, block, thread, chunks, words[chunks])
    first = (block * known.size + int(chunks.min()) * 16) // known.grain
    written = slice(first, first + chunks.size * 16 // known.grain)

    def land() -> None:
        tile = np.full(box.shape, box.fill, np.uint8)
        if box.region is not None:
            tile[box.inside] = box.region
        words[chunks] = tile.reshape(-1).view(np.complex128)
        known.wrote[written], known.writer[written] = m.now, -1
        barrier.signal(0, -tile.size)

    if m.late:  # until then reading it is an error, as of memory that nothing has written
        known.wrote[written] = 0
        barrier.landing.append(land)
    else:
        land()


def _sending(m: Machine, block: int, thread: int, box: _Box) -> Callable[[Array], None]:
    """Makes the function that copies a tile to global memory; what lies outside of the array is dropped."""

    def send(now: Array) -> None:
        _touch(m, block, thread, box.chunks)
        if box.region is not None:
            tile = m.shared.bytes.view(np.complex128)[block][box.chunks].view(np.uint8)
            box.region[...] = tile.reshape(box.shape)[box.inside]

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
