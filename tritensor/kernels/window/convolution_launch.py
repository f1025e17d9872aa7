"""Launches convolutions: chooses kernel, tiles and grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import copy_into
from ...runtime.launch import launch
from ...types import dtypes, layout
from ...types.layout import NotViewable
from ..blocks import block_size, forced_block, is_processor, power_of_two
from ..matmul.blocks import Blocks, Problem, choose_among, choose_interpreted
from ..matmul.launch import arithmetic, finish, launch_product
from ..matmul.precision import product_for
from ..rowwise.kernel import contiguous
from .convolution_kernel import correlation_kernel, depthwise_kernel, depthwise_weight_kernel, weight_kernel
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
# Results for each row up to which one channel's products are summed without a matrix instruction.
_FEW = 4
# Elements in a depthwise program, on a processor as well, and the most channels of them.
_ELEMENTS, _ELEMENTS_OF_PROCESSOR, _CHANNELS = 1024, 1 << 14, 64
# The least step of a matrix instruction along the depth.
_LEAST_DEPTH = 16
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


def _three(values: Sequence[int], missing: int) -> tuple[int, ...]:
    return (*[missing] * (3 - len(values)), *values)


def _space(x: DeviceArray, y: DeviceArray, lines: Sequence[Line]) -> _Space:
    """The correlation of arrays of (images, groups, channels or rows, *sizes)."""
    groups, rows = y.shape[1:3]
    x_strides, y_strides = ((*each.strides[:3], *_three(each.strides[3:], 0)) for each in (x, y))
    # the steps from the first element to the farthest window, which may lie outside
    far = [max(map(abs, (*line.within(0, 1), *line.within(line.places - 1, line.places)))) for line in lines]
    reach = sum(abs(step) * each for step, each in zip(x.strides[3:], far, strict=True))
    ends = [layout.span(each.shape, each.strides, 0)[1] for each in (x, y)]
    return _Space(
        y.shape[0] * prod(y.shape[3:]),
        rows,
        x.shape[2],
        groups,
        _three(y.shape[3:], 1),
        _three(x.shape[3:], 1),
        _three([line.taps for line in lines], 1),
        _three([line.start for line in lines], 0),
        _three([line.step for line in lines], 1),
        _three([line.reach for line in lines], 1),
        x_strides,
        y_strides,
        _innermost(y if rows * groups > 1 else x),
        max(ends[0] + reach, ends[1]) >= 1 << 31,
    )


def _innermost(array: DeviceArray) -> bool:
    """True if channels are side by side, and places are not."""
    channel = array.strides[2] if array.shape[2] > 1 else array.strides[1]
    return channel == 1 and array.shape[1] * array.shape[2] > 1 and all(step != 1 for step in array.strides[3:])


def _tiles(x: DeviceArray, rows: int, cols: int, depth: int, batches: int) -> tuple[Blocks, dict[str, Any]]:
    """The tile of a product of so many rows and columns, and the constants of its arithmetic."""
    driver = x.buffer.driver
    device = driver.properties(x.device.index or 0)
    table, total, product = arithmetic(dtypes.of(x.dtype), product_for(driver.capability(x.device.index or 0)))
    problem = Problem(table, max(rows, 16), cols, depth, batches, x.dtype.itemsize)
    if forced_block():
        return choose_interpreted(problem, device), {"TOTAL": total, "PRODUCT": product}
    choose = driver.pick(
        lambda: choose_among(TILES[table], problem, device), lambda: choose_interpreted(problem, device)
    )
    return choose(), {"TOTAL": total, "PRODUCT": product}


def _share(x: DeviceArray, count: int, results: int, last: bool) -> tuple[int, int]:
    """The numbers of results and of channels in a depthwise program."""
    wanted = _ELEMENTS_OF_PROCESSOR if last and is_processor(x) else _ELEMENTS
    elements = block_size(x, wanted, interpreted=1 << 16)
    across = min(power_of_two(count), _CHANNELS if last else x.buffer.driver.pick(1, _CHANNELS), max(elements // 4, 1))
    return min(max(elements // across, 1), power_of_two(results)), across


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
    taps = prod(weight.shape[3:])
    if not depthwise and taps > 1 and weight.strides[2] != 1 and out.size >= _PACKED * out.shape[1] * out.shape[2]:
        groups, rows, channels, *sizes = weight.shape
        steps = layout.contiguous_strides((groups, rows, *sizes, channels))
        packed = buffer.empty(weight.shape, weight.dtype, weight.device, (*steps[:2], 1, *steps[2:-1]))
        copy_into(packed, weight)
        weight = packed
    for lines in product(*several):
        here = out[last([line.results for line in lines])]
        taps_here = weight[last([line.weights for line in lines])]
        if here.size:
            _launch_correlation(here, x, taps_here, bias, lines, body, depthwise)


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
    w_strides = (*weight.strides[:3], *_three(weight.strides[3:], 0))
    biases = () if bias is None else (bias,)
    constants = {"EPILOGUE": body, "OUT_DTYPE": dtypes.of(out.dtype), "LAST": space.last, "WIDE": space.wide}
    title = f"_{body.__name__}" if body else ""
    if depthwise:
        count = space.groups * space.rows
        length, across = _share(x, count, space.results, space.last)
        grid = -(-space.results // length) * -(-count // across)
        places, sizes, taps, *others = space.geometry
        strides = (space.y_strides, space.x_strides, w_strides)
        arguments = (space.results, space.rows, count, places, sizes, *others, *strides)
        total = arithmetic(dtypes.of(x.dtype), "ieee")[1]
        unroll = prod(taps) if prod(taps) <= UNROLLED and is_processor(x) else 1
        constants |= {"TOTAL": total, "TAPS": taps, "UNROLL": unroll, "BLOCK_P": length, "BLOCK_R": across}
        launch(
            depthwise_kernel,
            (grid,),
            (out, x, weight, biases, *arguments),
            constants,
            out.device,
            name=f"convolution_depthwise{title}",
        )
        return
    blocks, arithmetics = _tiles(x, space.results, space.rows, space.depth, space.groups)
    even = space.channels & -space.channels
    # a step of several taps holds the places of each in registers, which spill where it is longer
    depth = min(even, blocks.depth) if even >= _LEAST_DEPTH else _LEAST_DEPTH
    constants |= {
        **arithmetics,
        "EVEN": even >= _LEAST_DEPTH,
        "BLOCK_P": blocks.rows,
        "BLOCK_R": blocks.cols,
        "BLOCK_K": depth,
        "GROUP": 8,
    }
    grid = -(-space.results // blocks.rows) * -(-space.rows // blocks.cols) * space.groups
    sizes = (space.results, space.rows, space.channels)
    launch(
        correlation_kernel,
        (grid,),
        (out, x, weight, biases, *sizes, *space.geometry, space.y_strides, space.x_strides, w_strides),
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


def launch_weights(out: DeviceArray, x: DeviceArray, y: DeviceArray, lines: Sequence[Line]) -> None:
    """The gradient of a correlation's weights in `out`, row-major, from that of its results, y."""
    if not out.size:
        return
    space = _space(x, y, lines)
    constants: dict[str, Any] = {"LAST": space.last, "WIDE": space.wide}
    options: dict[str, Any] = {}
    sizes: tuple[int, ...]
    if space.channels == 1 and space.rows <= _FEW:
        count = space.groups * space.rows
        places, across = _share(x, count, space.results, space.last)
        tiles = -(-count // across) * prod(space.taps)
        device = x.buffer.driver.properties(x.device.index or 0)
        wanted = x.buffer.driver.pick(4 * device.multi_processor_count // tiles, 1)
        parts = 3 if forced_block() else max(min(wanted, space.results // (4 * places)), 1)
        constants |= {"TOTAL": arithmetic(dtypes.of(x.dtype), "ieee")[1], "BLOCK_P": places, "BLOCK_R": across}
        kernel, name, sizes = depthwise_weight_kernel, "convolution_weight_depthwise", (space.rows, count)
    else:
        blocks, arithmetics = _tiles(x, space.rows, space.depth, space.results, space.groups)
        tiles = -(-space.rows // blocks.rows) * -(-space.depth // blocks.cols) * space.groups
        parts = blocks.split
        depth, warps = blocks.depth, blocks.warps
        if not space.last:  # places of both operands are along the depth, and spill
            depth, warps = max(depth // 2, _LEAST_DEPTH), min(2 * warps, 8)
        constants |= arithmetics
        constants |= {"BLOCK_R": blocks.rows, "BLOCK_C": blocks.cols, "BLOCK_K": depth, "GROUP": 8}
        kernel, name, sizes = weight_kernel, "convolution_weight", (space.rows, space.channels, space.groups)
        options = {"warps": warps, "stages": blocks.stages}
    into = out
    if parts > 1:
        into = buffer.empty((parts, *out.shape), constants["TOTAL"].numpy, out.device)
    constants["OUT_DTYPE"] = dtypes.of(into.dtype)
    arguments = (into, x, y, parts, space.results, *sizes, *space.geometry, space.x_strides, space.y_strides)
    launch(kernel, (tiles * parts,), arguments, constants, out.device, name=name, **options)
    if parts > 1:
        finish(out, into, None, None)
