"""Launches convolutions: chooses kernel, tiles and grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import copy_into
from ...runtime import choices
from ...runtime.launch import launch
from ...types import dtypes, layout
from ...types.layout import NotViewable
from ..addressing import unit_of
from ..blocks import block_size, forced_block, is_processor, power_of_two
from ..matmul.blocks import Blocks, Problem, choose_among, choose_interpreted
from ..matmul.launch import arithmetic, finish, launch_product
from ..matmul.precision import product_for
from ..rowwise.kernel import contiguous
from .convolution_copies import LEAST_DEPTH, Fold, packed, three
from .convolution_kernel import correlation_kernel, weight_kernel
from .depthwise_kernel import depthwise_kernel, depthwise_weight_kernel, strip_kernel
from .geometry import UNROLLED, Line, last

# Tiles of (results, rows, depth), which compile for sm_90 without spilled registers
# (`tests/runtime/test_convolution_compile.py`).
TILES = {
    "half": (Blocks(128, 128, 64, 8, 3), Blocks(128, 64, 64, 4, 4), Blocks(64, 64, 64, 4, 4)),
    "tf32": (Blocks(128, 128, 32, 8, 3), Blocks(128, 64, 32, 4, 3), Blocks(64, 64, 32, 4, 3)),
    "tf32x3": (Blocks(128, 64, 32, 8, 3), Blocks(64, 64, 32, 4, 3)),
    "ieee": (Blocks(128, 64, 32, 8, 3), Blocks(64, 64, 32, 4, 3)),
    "double": (Blocks(64, 64, 16, 4, 2), Blocks(32, 32, 16, 2, 2)),
    "sum": (Blocks(16, 16, 16, 4, 1),),
}
# Also used where channels are side by side and multiples of a step, by the major compute capability too: addresses and
# masks of a tile take registers, and where matrix instructions take sums from registers the first of them spills.
LARGE = {
    ("half", 9): (Blocks(256, 128, 64, 8, 3), Blocks(256, 64, 64, 8, 3), Blocks(64, 256, 64, 8, 3)),
    ("half", 10): (Blocks(256, 128, 64, 8, 3), Blocks(256, 64, 64, 8, 3)),
    ("tf32", 9): (Blocks(256, 128, 32, 8, 3),),
}
# The cost of a row or column of a tile, in products: a multiprocessor of an H200 reads 37 bytes a clock out of the
# level-2 cache and multiplies 2048 halves, so that the 2 bytes of each step take as long as 110 products.
_EDGE = 110
# Results for each row up to which one channel's products are summed without a matrix instruction.
_FEW = 4
# Elements in a depthwise program, on a processor as well, and the most channels of them.
_ELEMENTS, _ELEMENTS_OF_PROCESSOR, _CHANNELS = 1024, 1 << 14, 64
# Of a depthwise program: results of a strip, the most taps along it, and those of which one program sums the gradients.
_STRIP, _STRIP_TAPS, _LINE = 4, 11, 7
# Places of an image up to which their numbers are divided in float32, see `convolution_kernel._divided`.
_SMALL = 1 << 20
# How taps follow each other where all of a line can be read at once: `reach` to `skip` of their line.
_NEIGHBOURS = Line(0, 0, 0)[4:]
# Products with each element of an input for which it pays to copy it so that channels are side by side.
_COPIED = 512
# Results from which it is worth a copy of the weights to have their channels side by side.
_PACKED = 1024


class _Space(NamedTuple):
    """The common part of the kernels: a correlation with three dimensions of space."""

    results: int
    rows: int
    channels: int
    groups: int
    places: tuple[int, ...]
    sizes: tuple[int, ...]
    taps: tuple[int, ...]
    start: tuple[int, ...]
    step: tuple[int, ...]
    reach: tuple[int, ...]
    x_strides: tuple[int, ...]
    #: of the results, or of their gradient
    y_strides: tuple[int, ...]
    #: channels are innermost; offsets need 64 bits
    last: bool
    wide: bool

    @property
    def geometry(self) -> tuple[Any, ...]:
        return self.places, self.sizes, self.taps, self.start, self.step, self.reach

    @property
    def depth(self) -> int:
        return self.channels * prod(self.taps)


def _space(x: DeviceArray, y: DeviceArray, lines: Sequence[Line]) -> _Space:
    """The correlation of arrays of (images, groups, channels or rows, *sizes)."""
    groups, rows = y.shape[1:3]
    x_strides, y_strides = ((*each.strides[:3], *three(each.strides[3:], 0)) for each in (x, y))
    # the steps from the first element to the farthest window, which may lie outside
    far = [max(map(abs, (*line.within(0, 1), *line.within(line.places - 1, line.places)))) for line in lines]
    reach = sum(abs(step) * each for step, each in zip(x.strides[3:], far, strict=True))
    ends = [layout.span(each.shape, each.strides, 0)[1] for each in (x, y)]
    return _Space(
        y.shape[0] * prod(y.shape[3:]),
        rows,
        x.shape[2],
        groups,
        three(y.shape[3:], 1),
        three(x.shape[3:], 1),
        three([line.taps for line in lines], 1),
        three([line.start for line in lines], 0),
        three([line.step for line in lines], 1),
        three([line.reach for line in lines], 1),
        x_strides,
        y_strides,
        _innermost(y if rows * groups > 1 else x),
        max(ends[0] + reach, ends[1]) >= 1 << 31,
    )


def _innermost(array: DeviceArray) -> bool:
    """True if channels are side by side, and places are not."""
    channel = array.strides[2] if array.shape[2] > 1 else array.strides[1]
    return channel == 1 and array.shape[1] * array.shape[2] > 1 and all(step != 1 for step in array.strides[3:])


def _tiles(
    x: DeviceArray,
    space: _Space,
    sizes: tuple[int, int, int],
    again: Callable[[], None],
    large: bool,
    split: bool = False,
) -> tuple[Blocks, dict[str, Any]]:
    """The tile of a product, and the constants of its arithmetic.

    Args:
        sizes: rows, columns and depth of the product. again: launches it once more, see `choices.of`.
        large: of the large ones as well. split: the sum can be in parts.
    """
    (rows, cols, depth), batches = sizes, space.groups
    driver = x.buffer.driver
    device = driver.properties(x.device.index or 0)
    table, total, product = arithmetic(dtypes.of(x.dtype), product_for(driver.capability(x.device.index or 0)))
    problem = Problem(table, max(rows, 16), cols, depth, batches, x.dtype.itemsize)
    if forced_block():
        return choose_interpreted(problem, device), {"TOTAL": total, "PRODUCT": product}

    def cost(blocks: Blocks) -> float:
        height, width = min(blocks.rows, power_of_two(problem.rows)), min(blocks.cols, power_of_two(cols))
        tiles = -(-rows // height) * -(-cols // width) * batches
        waves = -(-tiles // device.multi_processor_count)
        if split and tiles <= device.multi_processor_count:
            waves = 1 / (device.multi_processor_count // tiles)
        products = waves * height * width
        return max(products, tiles / device.multi_processor_count * _EDGE * (height + width))

    tiles = (*TILES[table], *(LARGE.get((table, device.major), ()) if large else ()))
    tiles = tuple([each for each in tiles if split or each.rows >= each.cols])  # a wide one spills a result's addresses

    def fitted(blocks: Blocks) -> Blocks:
        return choose_among((blocks,), problem, device)

    def tuned() -> Blocks:
        facts, kind = (problem, space.geometry, space.last), "convolution_weight" if split else "convolution"
        usual, tried = lambda: fitted(min(tiles, key=cost)), lambda: [*map(fitted, tiles)]
        return choices.of(kind, facts, device, tried, usual, again)

    return driver.pick(tuned, lambda: choose_interpreted(problem, device))(), {"TOTAL": total, "PRODUCT": product}


def _share(x: DeviceArray, count: int, results: int, last: bool) -> tuple[int, int]:
    """The numbers of results and of channels in a depthwise program."""
    wanted = _ELEMENTS_OF_PROCESSOR if last and is_processor(x) else _ELEMENTS
    elements = block_size(x, wanted, interpreted=1 << 16)
    across = min(power_of_two(count), _CHANNELS if last else x.buffer.driver.pick(1, _CHANNELS), max(elements // 4, 1))
    return min(max(elements // across, 1), power_of_two(results)), across


def _is_turned(x: DeviceArray, products: int) -> bool:
    """True if a copy with channels side by side pays for so many products."""
    return x.shape[2] % LEAST_DEPTH == 0 and x.strides[2] != 1 and products >= _COPIED * x.size


def _is_thin(x: DeviceArray, several: Sequence[Sequence[Line]]) -> bool:
    """True for few channels and neighbouring taps, as in a model's first layer, see `Fold`."""
    matrix = arithmetic(dtypes.of(x.dtype), "ieee")[0] in ("half", "ieee")
    single = all(len(lines) == 1 for lines in several)
    return matrix and single and x.shape[1] == 1 and x.shape[2] < LEAST_DEPTH and several[-1][0][4:] == _NEIGHBOURS


def launch_correlations(
    out: DeviceArray,
    x: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    several: Sequence[Sequence[Line]],
    body: Any,
) -> None:
    """`out = body(bias + the correlation of x with weight)`, with a choice of lines for each dimension.

    Args:
        out, x: (images, groups, rows or channels, *sizes). weight: (groups, rows, channels, *taps).
        bias: of all rows.
        body: the Triton body of an elementwise operator of one input, as a device function; or None.
    """
    if not out.size:
        return
    if bias is not None:
        bias = contiguous(bias)
    if _is_pointwise(out, x, weight, several) and _launched_product(out, x, weight, bias, body):
        return
    depthwise = weight.shape[2] == 1 and weight.shape[1] <= _FEW
    many = out.size >= _PACKED * out.shape[1] * out.shape[2]
    if many and not depthwise:
        if _is_thin(x, several):
            fold = Fold.of(x, [line for (line,) in several])
            x, weight, several = fold.spread(x), fold.packed(weight), [[line] for line in fold.folded]
        elif prod(weight.shape[3:]) > 1 and weight.strides[2] != 1:
            weight = packed(weight, (0, 1), (2,))
        if _is_turned(x, out.size * prod(weight.shape[2:])):
            x = packed(x, (0,), (1, 2))
    elif many and weight.strides[0] != 1 and _innermost(out) and not is_processor(x):
        weight = packed(weight, (2, 1), (0,))
    for lines in product(*several):
        here = out[last([line.results for line in lines])]
        taps_here = weight[last([line.weights for line in lines])]
        if here.size:
            _launch_correlation(here, x, taps_here, bias, lines, body, depthwise)


def _masks(x: DeviceArray, lines: Sequence[Line]) -> str:
    """How a kernel finds which elements lie outside of the input: none do, a bit for each tap, or comparisons."""
    spans = zip((line.within(0, line.places) for line in lines), x.shape[3:], strict=True)
    if all(low >= 0 and high <= size for (low, high), size in spans):
        return "none"
    return "bits" if sum(line.taps for line in lines) + 3 - len(lines) < 32 else "compared"


def _launch_correlation(
    out: DeviceArray,
    x: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None,
    lines: Sequence[Line],
    body: Any,
    depthwise: bool,
) -> None:
    space = _space(x, out, lines)
    strides = (space.y_strides, space.x_strides, (*weight.strides[:3], *three(weight.strides[3:], 0)))
    places, extents, taps, *steps = space.geometry
    biases = () if bias is None else (bias,)
    constants = {"EPILOGUE": body, "OUT_DTYPE": dtypes.of(out.dtype), "LAST": space.last, "WIDE": space.wide}
    title = f"_{body.__name__}" if body else ""
    if depthwise:
        count, native, line, masks = space.groups * space.rows, is_processor(x), lines[-1], _masks(x, lines)
        strip = space.last and not native and line.step <= line.taps <= _STRIP_TAPS and abs(line.reach) == 1
        along = _STRIP if strip and sum(taps) + (_STRIP - 1) * line.step < 32 else 1
        if places[2] % along:  # the last strip reads on
            masks = "bits"
        strips = (*places[:2], -(-places[2] // along))
        results = out.shape[0] * prod(strips)
        length, width = _share(x, count, results, space.last)
        constants |= {
            "TOTAL": arithmetic(dtypes.of(x.dtype), "ieee")[1],
            "TAPS": taps,
            "SMALL": not native and prod(strips) + length < _SMALL,
            "MASKS": "compared" if native else masks,
            "BLOCK_P": length,
            "BLOCK_R": width,
        }
        kernel, numbers = depthwise_kernel, [results, space.rows, count]
        if along > 1:
            del constants["LAST"]
            constants |= {"ALONG": along, "STEP": line.step, "REACH": line.reach}
            kernel, numbers = strip_kernel, [*numbers, places[2]]
        else:
            constants["UNROLL"] = (prod(taps) if prod(taps) <= UNROLLED else 1) if native else taps[2]
        grid = -(-results // length) * -(-count // width)
        arguments = (out, x, weight, biases, *numbers, (strips, extents, *steps), *strides)
        launch(kernel, (grid,), arguments, constants, out.device, name=f"convolution_depthwise{title}")
        return
    even = space.channels & -space.channels
    # in float32 a large tile spills with an activation
    large = x.strides[2] == 1 and even >= LEAST_DEPTH and (body is None or x.dtype.itemsize == 2)
    sizes = space.results, space.rows, space.depth
    blocks, arithmetics = _tiles(
        x, space, sizes, lambda: _launch_correlation(out, x, weight, bias, lines, body, depthwise), large
    )
    # a step of several taps holds the places of each in registers, which spill where it is longer
    depth = min(even, blocks.depth) if even >= LEAST_DEPTH else LEAST_DEPTH
    constants |= {
        **arithmetics,
        "TAPS": taps,
        "EVEN": even >= LEAST_DEPTH,
        "ONCE": x.strides[2] == weight.strides[2] == 1,
        "SMALL": prod(places) + blocks.rows < _SMALL,
        "MASKS": _masks(x, lines),
        # an activation of all of a large tile at once spills
        "PIECES": 2 if body is not None and blocks.rows >= 256 else 1,
        "UNIT": unit_of(space.x_strides[3:]),
        "BLOCK_P": blocks.rows,
        "BLOCK_R": blocks.cols,
        "BLOCK_K": depth,
        "GROUP": 8,
    }
    grid = -(-space.results // blocks.rows) * -(-space.rows // blocks.cols) * space.groups
    launch(
        correlation_kernel,
        (grid,),
        (out, x, weight, biases, space.results, space.rows, space.channels, (places, extents, *steps), *strides),
        constants,
        out.device,
        warps=blocks.warps,
        stages=blocks.stages,
        name=f"convolution{title}",
    )


def _is_pointwise(out: DeviceArray, x: DeviceArray, weight: DeviceArray, several: Sequence[Sequence[Line]]) -> bool:
    """True if each result is made of the elements of the input at its own place."""
    alone = weight.shape[0] == 1 and out.shape[3:] == x.shape[3:]
    return alone and all(len(lines) == 1 and lines[0][1:4] == (1, 0, 1) for lines in several)


def _launched_product(
    out: DeviceArray, x: DeviceArray, weight: DeviceArray, bias: DeviceArray | None, body: Callable[..., Any]
) -> bool:
    """Multiply matrices as they lie: False if the places of an image are no dimension."""
    try:
        results, columns = (each.reshape((*each.shape[:1], each.shape[2], -1)) for each in (out, x))
    except NotViewable:
        return False
    matrix = weight.reshape(weight.shape[1:3])
    if _innermost(out):
        results, columns = results.transpose((0, 2, 1)), columns.transpose((0, 2, 1))
        launch_product(results, columns, matrix.transpose((1, 0)), bias, body)
    else:
        launch_product(results, matrix, columns, None if bias is None else bias.reshape((-1, 1)), body)
    return True


def _box(sizes: Sequence[int], count: int, least: int) -> tuple[int, int, int]:
    """The box of so many places of images that takes the fewest of them to cover all, of some width where possible.

    >>> _box((64, 28, 28), 64, 1), _box((64, 28, 28), 32, 32)
    ((4, 4, 4), (1, 1, 32))
    """
    powers = [1 << n for n in range(count.bit_length())]
    boxes = [(count // (high * wide), high, wide) for wide in powers for high in powers if high * wide <= count]
    least = min(least, power_of_two(sizes[2]))

    def covered(box: tuple[int, int, int]) -> tuple[int, int]:
        return prod(-(-size // each) * each for size, each in zip(sizes, box, strict=True)), box[0]

    return min((box for box in boxes if box[2] >= least), key=covered)


def launch_weights(out: DeviceArray, x: DeviceArray, y: DeviceArray, lines: Sequence[Line]) -> None:
    """The gradient of a correlation's weights in `out`, row-major, from that of its results, y."""
    if not out.size:
        return
    depthwise = out.shape[2] == 1 and out.shape[1] <= _FEW
    if not depthwise and y.size >= _PACKED * y.shape[1] * y.shape[2]:
        products, halves = y.size * prod(out.shape[2:]) // 2, x.dtype.itemsize == 2
        if halves and _is_thin(x, [[line] for line in lines]):
            fold = Fold.of(x, list(lines))
            y = packed(y, (0,), (1, 2)) if _is_turned(y, _COPIED * y.size) else y
            made = buffer.empty((1, out.shape[1], fold.depth, *out.shape[3:-1], 1), out.dtype, out.device)
            launch_weights(made, fold.spread(x), y, fold.folded)
            steps = (*made.strides[:-1], fold.width * made.strides[2])
            copy_into(out, made.as_strided(out.shape, steps, made.offset))
            return
        if halves:
            x, y = (packed(each, (0,), (1, 2)) if _is_turned(each, products) else each for each in (x, y))
        elif _innermost(y) and products >= _COPIED * x.size:  # tensor cores read float32 along the sum, the places
            x, y = (packed(each, (0, 1, 2), ()) for each in (x, y))
    space = _space(x, y, lines)
    constants: dict[str, Any] = {"LAST": space.last, "WIDE": space.wide}
    options: dict[str, Any] = {}
    sizes: tuple[int, ...]
    if depthwise:
        count = space.groups * space.rows
        chunks = -(-space.taps[2] // _LINE)
        taps = -(-space.taps[2] // chunks)
        places, across = _share(x, count, space.results, space.last)
        tiles = -(-count // across) * prod(space.taps[:2]) * chunks
        device = x.buffer.driver.properties(x.device.index or 0)
        many = x.buffer.driver.pick(4 * device.multi_processor_count // tiles, 1)
        parts = 3 if forced_block() else max(min(many, space.results // (4 * places)), 1)
        box = _box((y.shape[0], *space.places[1:]), places, 1 if space.last else places)
        constants |= {"TOTAL": arithmetic(dtypes.of(x.dtype), "ieee")[1], "COUNT": taps, "BOX": box, "BLOCK_R": across}
        kernel, name = depthwise_weight_kernel, "convolution_weight_depthwise"
        sizes = (y.shape[0], space.rows, count)
    else:
        large = space.last and space.channels % LEAST_DEPTH == 0
        of_product = space.rows, space.depth, space.results
        blocks, arithmetics = _tiles(x, space, of_product, lambda: launch_weights(out, x, y, lines), large, True)
        tiles = -(-space.rows // blocks.rows) * -(-space.depth // blocks.cols) * space.groups
        parts = blocks.split
        depth, warps = blocks.depth, blocks.warps
        if not space.last:  # places of both operands are along the depth, and spill
            depth, warps = max(depth // 2, LEAST_DEPTH), min(2 * warps, 8)
        elif x.dtype.itemsize == 4 and arithmetics["PRODUCT"] != "tf32":  # so do both halves of float32
            depth = LEAST_DEPTH
        constants |= arithmetics
        box = _box((y.shape[0], *space.places[1:]), depth, 1 if space.last else depth)
        constants |= {"BLOCK_R": blocks.rows, "BLOCK_C": blocks.cols, "BOX": box, "GROUP": 8}
        # of single elements the addresses would take more registers than there are
        once = space.last and not (space.rows | space.channels) % LEAST_DEPTH and x.dtype.itemsize == 2
        constants |= {"UNIT": unit_of(space.x_strides[3:]), "ONCE": once}
        kernel, name = weight_kernel, "convolution_weight"
        sizes = (y.shape[0], space.rows, space.channels, space.groups)
        options = {"warps": warps, "stages": blocks.stages}
    into = out
    if parts > 1:
        into = buffer.empty((parts, *out.shape), constants["TOTAL"].numpy, out.device)
    constants["OUT_DTYPE"] = dtypes.of(into.dtype)
    arguments = (into, x, y, parts, *sizes, space.geometry, space.x_strides, space.y_strides)
    launch(kernel, (tiles * parts,), arguments, constants, out.device, name=name, **options)
    if parts > 1:
        finish(out, into, None, None)
