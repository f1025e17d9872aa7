"""Chooses the tiles of a matrix product, and the kernel that computes them.

The tables hold tiles that compile for sm_90 without spilled registers and within its shared memory
(`tests/runtime/test_matmul_compile.py`); `choose` selects from them. No choice has been timed on a GPU yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...drivers import DeviceProperties
from ..blocks import forced_block, power_of_two


class Blocks(NamedTuple):
    """The tiling of a product: the tile of the result, the step along the summed dimension, warps and stages."""

    rows: int
    cols: int
    depth: int
    warps: int
    stages: int
    #: "pointers" (`kernel.py`), "descriptors" (`descriptors.py`), "parts" (`parts.py`) or "streamed" (`matvec.py`)
    kernel: str = "pointers"
    #: slices of the summed dimension, each computed by separate programs
    split: int = 1
    #: the number of pieces in which the kernel on descriptors stores a tile
    pieces: int = 1


class Problem(NamedTuple):
    """The facts that the choice of blocks depends on, besides the device."""

    #: "half", "eighth", "fast_eighth" (summed in fewer bits), "tf32", "tf32x3", "ieee" (float32 as it is), "double", or
    #: "sum" for dtypes without a matrix instruction
    product: str
    rows: int
    cols: int
    depth: int
    batches: int = 1
    #: bytes of an operand's element
    itemsize: int = 2
    #: descriptors can be made of both operands and the result
    describable: bool = False
    #: a bias or an activation is fused
    epilogue: bool = False
    #: the second operand is contiguous along the summed dimension
    along: bool = False
    #: there is memory for the parts of float32 operands
    room: bool = True

    @property
    def streamed(self) -> bool:
        """True if `matvec_kernel` computes it."""
        return is_streamed(self.rows) and "eighth" not in self.product


def is_streamed(rows: int) -> bool:
    """True if there are few enough rows for `matvec_kernel`, whose threads multiply each row with all that they load.
    From 5 to 16 rows tensor cores are used, which also read the other operand once: with 8 rows a thread's sums spill,
    and converting half precision takes longer than reading it.
    """
    return rows <= _STREAMED_ROWS


# For the kernel on descriptors, by what is multiplied. Blocks of 128 bytes along the summed dimension, the width of a
# swizzled line of shared memory.
DESCRIBED = {
    "half": (
        Blocks(128, 256, 64, 8, 3, "descriptors"),
        Blocks(256, 128, 64, 8, 3, "descriptors"),
        Blocks(128, 128, 64, 8, 4, "descriptors"),
        Blocks(64, 256, 64, 4, 4, "descriptors"),
        Blocks(64, 128, 64, 4, 5, "descriptors"),
        Blocks(64, 64, 64, 4, 5, "descriptors"),
    ),
    # a whole tile of 128x256 float32 beside three stages would be 275 KB
    "tf32": (
        Blocks(128, 256, 32, 8, 3, "descriptors", pieces=2),
        Blocks(128, 128, 32, 8, 3, "descriptors"),
        Blocks(64, 128, 32, 4, 3, "descriptors"),
    ),
    # 128x128 with 4 warps spills
    "tf32x3": (Blocks(128, 128, 32, 8, 3, "descriptors"), Blocks(64, 128, 32, 4, 3, "descriptors")),
    "eighth": (Blocks(128, 128, 128, 8, 3, "descriptors"), Blocks(64, 128, 128, 4, 4, "descriptors")),
}
DESCRIBED["fast_eighth"] = (Blocks(128, 256, 128, 8, 3, "descriptors", pieces=2), *DESCRIBED["eighth"])
# Used instead of these where the summed dimension is long enough to fill a deeper pipeline: four stages of 128x256 have
# 144 KB on the way, three have 96, which by published rates is what tensor cores consume in 1.1 us. On an H200 4096 and
# 8192 cubed took as long as cuBLAS with four (0.98, 1.02), and 2048 more with three (0.88); with four it is not timed.
LONG = {
    DESCRIBED["half"][0]: Blocks(128, 256, 64, 8, 4, "descriptors", pieces=2),
    DESCRIBED["half"][2]: Blocks(128, 128, 128, 8, 3, "descriptors"),
}
_LONG_DEPTH = 2048
# For float32 in parts of bfloat16. Each group of products ends before the next begins, so steps are long: 64 is as far
# as two stages of 128x128 go. 128x128 reads 0.86 of what the level-2 cache gives while tensor cores multiply.
PARTS = (Blocks(128, 128, 64, 8, 2, "parts"), Blocks(64, 128, 64, 4, 3, "parts"))

# For the kernel on pointers.
POINTERS = {
    "half": (
        Blocks(128, 256, 64, 8, 3),
        Blocks(128, 128, 64, 8, 4),
        Blocks(64, 128, 64, 4, 4),
        Blocks(64, 64, 64, 4, 4),
    ),
    "tf32": (Blocks(128, 128, 32, 8, 3), Blocks(64, 128, 32, 4, 3), Blocks(64, 64, 32, 4, 3)),
    "tf32x3": (Blocks(128, 128, 32, 8, 3), Blocks(64, 128, 32, 4, 3), Blocks(64, 64, 32, 4, 3)),
    "ieee": (Blocks(128, 128, 32, 8, 3), Blocks(64, 128, 32, 4, 3), Blocks(64, 64, 32, 4, 3)),
    "double": (Blocks(64, 64, 16, 4, 2), Blocks(32, 32, 16, 2, 2)),
    "sum": (Blocks(16, 16, 16, 4, 1),),
    "eighth": (Blocks(128, 128, 128, 8, 3), Blocks(64, 128, 128, 4, 3), Blocks(64, 64, 128, 4, 3)),
}
POINTERS["fast_eighth"] = POINTERS["eighth"]
# In place of these where matrix instructions take their operands and sums from registers: 128x128 in tf32x3 spills 448
# bytes a thread on sm_80 and sm_120, 64x128 with 4 warps 192; halves in steps of 64 by 128x256 spill up to 56.
_FROM_REGISTERS = {
    "half": (Blocks(128, 256, 32, 8, 4), *POINTERS["half"][1:]),
    "tf32x3": (Blocks(64, 128, 32, 8, 3), Blocks(64, 64, 32, 4, 3)),
}

# Where kernels are interpreted.
_INTERPRETED = Blocks(256, 256, 256, 4, 1)
_INTERPRETED_SUM = Blocks(32, 32, 32, 4, 1)
_INTERPRETED_STREAMED = 1 << 18

# The cost of loading a row or column of a tile, in products: a tile of 64x64 then takes 1.4 times the time per product
# of one of 128x256.
_EDGE = 32
# The least products per program for which descriptors are used: 9 us at an H200's peak. Making them takes about 1 us.
_DESCRIBED_PRODUCTS = 1 << 25
# The fewest products, and rows and columns, for which float32 operands are split. Reckoned, not timed: 2^30 products in
# tf32x3 are a 512th of 8192 cubed, which took 30.5 ms on an H200, so 60 us; in parts 13 are predicted, and with an edge
# of 256 about 20 more for the two passes.
_PARTED_PRODUCTS, _PARTED_EDGE = 1 << 30, 256
# A part of a split product has at least so many steps, because parts are summed by a second kernel; and a product of
# fewer than the second number is over before that kernel would start.
_STEPS_PER_PART = 4
_STEPS_TO_SPLIT = 16
# By an H200's rates, in products of bfloat16 of a multiprocessor, 3.7 a picosecond: a byte that it reads from the
# level-2 cache (68 a nanosecond), one that all read from device memory (4.8 a picosecond), the kernel that adds parts,
# and its writing and reading of an element of one. Parts save a tenth.
_BYTE, _FAR_BYTE, _FINISH, _ADDED, _GAIN = 55, 0.77, 9 << 20, 6, 0.9
# How many times as long a product of other numbers takes.
_SLOWER = {"half": 1, "tf32": 2, "tf32x3": 6, "eighth": 0.5, "fast_eighth": 0.5}
# Warps of a streamed product, how many 16-byte vectors each of their threads loads at once, and the bytes of registers
# for the sums of a thread.
_WARPS = 4
_VECTORS = 4
_SUMS = 256
_STREAMED_ROWS = 4


def choose(problem: Problem, device: DeviceProperties) -> Blocks:
    """The blocks, and the kernel, for a product on a device.

    Few rows: the other operand is streamed. Otherwise the tiles are those that take the least time, by `_time` or by
    `_cost`: large ones where they fill the multiprocessors, smaller ones where they would leave some idle. Descriptors
    are used on Hopper and its successors where the layout of the operands allows it and each program has enough to do.
    Where there are few tiles the summed dimension is split.

    >>> from tritensor.drivers import DeviceProperties
    >>> h200, a100 = DeviceProperties("H200", 9, 0, 0, 132), DeviceProperties("A100", 8, 0, 0, 108, 32, 2048, 166912)
    >>> choose(Problem("half", 8192, 8192, 8192, describable=True), h200)
    Blocks(rows=128, cols=256, depth=64, warps=8, stages=4, kernel='descriptors', split=1, pieces=2)
    >>> choose(Problem("tf32x3", 4096, 4096, 4096, itemsize=4, describable=True), h200)
    Blocks(rows=128, cols=128, depth=64, warps=8, stages=2, kernel='parts', split=1, pieces=1)
    >>> choose(Problem("half", 1024, 1024, 1024, describable=True), h200)  # 2 us of work
    Blocks(rows=64, cols=128, depth=64, warps=4, stages=4, kernel='pointers', split=1, pieces=1)
    >>> choose(Problem("half", 8192, 8192, 8192, describable=True), a100)
    Blocks(rows=128, cols=256, depth=32, warps=8, stages=4, kernel='pointers', split=1, pieces=1)
    >>> choose(Problem("half", 768, 768, 8192, describable=True), h200)  # 18 tiles
    Blocks(rows=128, cols=256, depth=64, warps=8, stages=3, kernel='descriptors', split=7, pieces=2)
    >>> choose(Problem("half", 16, 512, 8192), h200)
    Blocks(rows=16, cols=64, depth=64, warps=4, stages=4, kernel='pointers', split=16, pieces=1)
    >>> choose(Problem("half", 1, 4096, 4096, along=True), h200)
    Blocks(rows=1, cols=16, depth=256, warps=4, stages=1, kernel='streamed', split=1, pieces=1)
    """
    if forced_block():
        return _forced(problem, device)
    processors = device.multi_processor_count
    if problem.streamed:
        return _streamed(problem, processors)
    if _is_parted(problem, device):
        blocks = min(PARTS, key=lambda blocks: _time(blocks, problem, processors))
        return _cut(PARTS, blocks, problem, processors) or blocks
    if _is_described(problem, device):
        # tf32 with a fused activation spills in a tile of 128x256, which on sm_100 takes 272 KB of shared memory anyway
        spared = problem.product == "tf32" and (problem.epilogue or device.major > 9)
        table = DESCRIBED[problem.product][spared:]
        blocks = min(table, key=lambda blocks: _time(blocks, problem, processors))
        shared = -(-_tiles(blocks, problem) // processors)  # tiles that one program computes
        if shared * blocks.rows * blocks.cols * problem.depth >= _DESCRIBED_PRODUCTS:
            if (cut := _cut(table, blocks, problem, processors)) is not None:
                return cut
            if problem.depth >= _LONG_DEPTH:
                blocks = LONG.get(blocks, blocks)
            # GELU on all of a 128x256 tile at once spills 184 bytes a thread
            return blocks._replace(pieces=2) if problem.epilogue else blocks
    table = POINTERS[problem.product]
    if device.major not in (9, 10):
        table = _FROM_REGISTERS.get(problem.product, table)
    return choose_among(table, problem, device)


def choose_among(table: Sequence[Blocks], problem: Problem, device: DeviceProperties) -> Blocks:
    """The blocks of a table that take the least time, no larger than the problem, and split if they are few."""
    processors = device.multi_processor_count
    blocks = min(table, key=lambda blocks: _cost(blocks, problem, processors))
    return _split(_fitted(_clamped(blocks, problem), problem, device), problem, processors)


def candidates(problem: Problem, device: DeviceProperties) -> list[Blocks]:
    """All blocks that `cuda.tune` tries for a problem: what compiles without spilled registers, in parts of the depth.

    >>> from tritensor.drivers import DeviceProperties
    >>> found = candidates(Problem("half", 1024, 1024, 1024, describable=True), DeviceProperties("H200", 9, 0, 0, 132))
    >>> len(found), {each.kernel for each in found} == {"descriptors", "pointers"}
    (35, True)
    """
    if problem.streamed:
        return [_streamed(problem, device.multi_processor_count)]
    found: list[Blocks] = []
    if _is_described(problem, device):
        spared = problem.product == "tf32" and (problem.epilogue or device.major > 9)
        found += DESCRIBED[problem.product][spared:]
        found += [LONG[each] for each in found if each in LONG]
        found = [each._replace(pieces=2) if problem.epilogue else each for each in found]
        found += PARTS if _is_parted(problem, device) else ()
    table = POINTERS[problem.product]
    if device.major not in (9, 10):
        table = _FROM_REGISTERS.get(problem.product, table)
    found += [_fitted(_clamped(each, problem), problem, device) for each in table]
    splits = (1,) if problem.product == "sum" else (1, 2, 4, 8, 16)
    return [
        each._replace(split=split)
        for each in dict.fromkeys(found)
        for split in splits
        if split == 1 or problem.depth >= split * _STEPS_PER_PART * each.depth
    ]


def choose_interpreted(problem: Problem, device: DeviceProperties) -> Blocks:
    """The same for the interpreter, where a step takes about the same time at any size: few large tiles."""
    if forced_block():
        return _forced(problem, device)
    if problem.streamed:
        rows, depth = power_of_two(problem.rows), min(power_of_two(problem.depth), 1024)
        return Blocks(
            rows, min(power_of_two(problem.cols), _INTERPRETED_STREAMED // (rows * depth)), depth, 4, 1, "streamed"
        )
    blocks = _clamped(_INTERPRETED_SUM if problem.product == "sum" else _INTERPRETED, problem)
    return blocks._replace(kernel=_by_copies(problem, device)) if _is_described(problem, device) else blocks


def _is_described(problem: Problem, device: DeviceProperties) -> bool:
    return problem.describable and problem.product in DESCRIBED and device.major in (9, 10)


def _is_parted(problem: Problem, device: DeviceProperties) -> bool:
    """True if float32 operands are split: on Hopper, and where each element is in enough products."""
    rows, cols = problem.rows, problem.cols
    return (
        (problem.product, device.major, problem.describable, problem.room) == ("tf32x3", 9, True, True)
        and min(rows, cols) >= _PARTED_EDGE
        and rows * cols * problem.depth * problem.batches >= _PARTED_PRODUCTS
    )


def _by_copies(problem: Problem, device: DeviceProperties) -> str:
    return "parts" if _is_parted(problem, device) else "descriptors"


def group_of(blocks: Blocks, processors: int) -> int:
    """The number of tiles that programs go down before the next column: so that those that run at once share operands.

    They read `group` tiles of rows and `processors / group` of columns, the fewest lines where both sides are as long:
    132 tiles of 128x256 read 4,160 lines by groups of 16, 5,248 by 8.

    >>> group_of(DESCRIBED["half"][0], 132), group_of(DESCRIBED["half"][1], 132)
    (16, 8)
    """
    return min((1, 2, 4, 8, 16, 32), key=lambda group: group * blocks.rows + processors / group * blocks.cols)


def _forced(problem: Problem, device: DeviceProperties) -> Blocks:
    """Tiles of `settings.block`, with every kind of split, so that small arrays run all of the kernels' code."""
    edge = max(power_of_two(forced_block()), 16)
    if problem.streamed:
        split = 3 if problem.depth > 4 * edge else 1
        return Blocks(power_of_two(problem.rows), edge, edge, 4, 1, "streamed", split=split)
    split = 3 if problem.depth > 4 * edge and problem.product != "sum" else 1
    if _is_described(problem, device):
        split = 1 if problem.cols % 4 or "eighth" in problem.product else split
        return Blocks(edge, edge, edge, 4, 1, _by_copies(problem, device), split, pieces=2)
    return Blocks(edge, edge, edge, 4, 1, split=split)


def _streamed(problem: Problem, processors: int) -> Blocks:
    """Up to four 16-byte vectors for each of 128 threads at a time."""
    rows, vector = power_of_two(problem.rows), 16 // problem.itemsize
    # bytes have the most sums: 4 vectors of them spill with Triton 3.6, and 2 with 3.9
    most = _VECTORS if problem.itemsize > 1 else 1
    vectors = min(most, 2 * _VECTORS // rows, _SUMS // (rows * vector * max(problem.itemsize, 4)))
    # the threads of a warp go along the contiguous side, the vectors of a thread along the other
    depth, cols = (32 * vector, _WARPS * vectors) if problem.along else (_WARPS * vectors, 32 * vector)
    elements = depth * cols
    if problem.along and (problem.depth < depth or problem.cols < cols):
        # one side is short: more of the tile along the other, and half as much of it, or bfloat16 spills
        depth = min(depth, max(power_of_two(problem.depth), vector))
        cols = min(elements // 2 // depth, power_of_two(problem.cols))
        depth = elements // 2 // cols
    elif problem.cols < cols:
        cols = max(power_of_two(problem.cols), vector)
        depth = elements // 2 // cols
    blocks = Blocks(rows, cols, depth, _WARPS, 1, "streamed")
    return _split(blocks, problem, processors)


def _split(blocks: Blocks, problem: Problem, processors: int) -> Blocks:
    """The number of parts of the summed dimension: as many as fill the multiprocessors and are worth a second
    kernel."""
    steps = -(-problem.depth // blocks.depth)
    if steps < _STEPS_TO_SPLIT or (problem.product == "sum" and blocks.kernel == "pointers"):
        return blocks
    tiles = -(-problem.rows // blocks.rows) * -(-problem.cols // blocks.cols) * problem.batches
    return blocks._replace(split=max(min(processors // tiles, steps // _STEPS_PER_PART), 1))


def _cut(table: Sequence[Blocks], whole: Blocks, problem: Problem, processors: int) -> Blocks | None:
    """Blocks that cut the summed dimension for the kernels on descriptors; None where that is not much faster.

    Large tiles of parts read less than small ones of whole sums: for 1024x1024x8192 in bfloat16 32 of 128x256 in four
    parts are predicted to take 0.66 of the time of 128 of 64x128.
    """
    if problem.cols % 4 or "eighth" in problem.product:  # lines of parts begin at multiples of 16 bytes
        return None
    cuts = []
    for blocks in table:
        for waves in (1, 2):
            split = min(waves * processors // _tiles(blocks, problem), problem.depth // blocks.depth // _STEPS_PER_PART)
            if split > 1:
                cuts.append(blocks._replace(pieces=2, split=split))
    best = min(cuts, key=lambda blocks: _time(blocks, problem, processors), default=whole)
    return best if _time(best, problem, processors) < _GAIN * _time(whole, problem, processors) else None


def _time(blocks: Blocks, problem: Problem, processors: int) -> float:
    """The time of a product on descriptors, in the unit of `_BYTE`: that of what is read, or multiplied, of which an
    eighth does not overlap."""
    waves = -(-_tiles(blocks, problem) * blocks.split // processors)
    depth = waves * blocks.depth * -(-problem.depth // (blocks.depth * blocks.split))
    multiplied = depth * blocks.rows * blocks.cols * _SLOWER[problem.product]
    # splitting a line in every tile takes as long as reading 20 bytes of it
    line = 6 if blocks.kernel == "parts" else 20 if problem.product == "tf32x3" else problem.itemsize
    read = depth * (blocks.rows + blocks.cols) * line
    far = (problem.rows + problem.cols) * problem.batches * problem.depth * problem.itemsize
    added = problem.rows * problem.cols * problem.batches * blocks.split
    finish = _FINISH + _ADDED * added if blocks.split > 1 else 0
    return max(multiplied, _BYTE * read, _FAR_BYTE * far) + multiplied / 8 + finish


def _tiles(blocks: Blocks, problem: Problem) -> int:
    return -(-problem.rows // blocks.rows) * -(-problem.cols // blocks.cols) * problem.batches


def _cost(blocks: Blocks, problem: Problem, processors: int) -> int:
    """The relative time of a product in these tiles: waves of tiles, times the cost of a tile."""
    tile = blocks.rows * blocks.cols + _EDGE * (blocks.rows + blocks.cols)
    return -(-_tiles(blocks, problem) // processors) * tile


def _fitted(blocks: Blocks, problem: Problem, device: DeviceProperties) -> Blocks:
    """The number of stages: as many as the device's shared memory holds (227 KB on sm_90, 163 on sm_80, 99 on sm_86 and
    sm_89)."""
    stage = (blocks.rows + blocks.cols) * blocks.depth * problem.itemsize
    return blocks._replace(stages=max(min(blocks.stages, device.shared_memory_per_block_optin // stage), 1))


def _clamped(blocks: Blocks, problem: Problem) -> Blocks:
    """Blocks no larger than the problem, but at least 16, the minimum of a tensor core."""
    return blocks._replace(
        rows=min(blocks.rows, max(power_of_two(problem.rows), 16)),
        cols=min(blocks.cols, max(power_of_two(problem.cols), 16)),
        depth=min(blocks.depth, max(power_of_two(problem.depth), 16)),
    )
