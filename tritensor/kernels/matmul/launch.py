"""Launches matrix products: chooses kernel, grid and strides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, NamedTuple

from ...drivers import DeviceProperties
from ...errors import OutOfMemoryError
from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import copy_into
from ...runtime import choices
from ...runtime.launch import launch
from ...types import dtypes, layout
from ..addressing import collapse_dims
from ..blocks import block_size, forced_block
from .blocks import Blocks, Problem, candidates, choose, choose_interpreted, group_of, is_streamed
from .descriptors import described_matmul_kernel
from .kernel import finish_kernel, matmul_kernel
from .matvec import matvec_kernel
from .parts import parts_matmul_kernel, split
from .precision import product_for

# The fewest products of each element of an operand for which a copy of it pays in tf32 on Hopper, see `_along_depth`.
# Of a gradient of weights, 4096x1024 by a depth of 6400, copies are predicted to take 55 us and save 570 of 715.
_PRODUCTS_PER_COPY = 128


# Types of Triton's that matrix instructions know.
MULTIPLIED = {
    kind: dtypes.dtype(kind.name, kind.legacy, kind.numpy, triton, dtypes.FLOATING)
    for kind, triton in ((dtypes.float8_e4m3fn, "fp8e4nv"), (dtypes.float8_e5m2, "fp8e5"))
}


class _Operand(NamedTuple):
    """An array as a stack of matrices: the steps, in elements, from matrix to matrix, from row to row, and so on."""

    batch: tuple[int, ...]
    row: int
    col: int

    @property
    def strides(self) -> tuple[int, ...]:
        return (*self.batch, self.row, self.col)

    @property
    def flipped(self) -> _Operand:
        return _Operand(self.batch, self.col, self.row)


class _Geometry(NamedTuple):
    """A product of stacks of matrices, x of (rows, depth) and y of (depth, cols), and a bias spread over the result."""

    batch: tuple[int, ...]
    rows: int
    cols: int
    depth: int
    out: _Operand
    x: _Operand
    y: _Operand
    bias: _Operand

    @property
    def mirrored(self) -> _Geometry:
        """The transposed product: the transpose of y times that of x."""
        flipped = [each.flipped for each in (self.out, self.y, self.x, self.bias)]
        return _Geometry(self.batch, self.cols, self.rows, self.depth, *flipped)

    def reaches_far(self, blocks: Blocks) -> bool:
        """True if offsets within a tile need 64 bits."""
        rows, cols, depth = blocks.rows, blocks.cols, blocks.depth
        sizes = ((self.out, rows, cols), (self.x, rows, depth), (self.y, depth, cols), (self.bias, rows, cols))
        # a block of three dimensions adds up the steps along two
        return max(abs(of.row) * down + abs(of.col) * across for of, down, across in sizes) >= 1 << 31


def launch_product(
    out: DeviceArray,
    x: DeviceArray,
    y: DeviceArray,
    bias: DeviceArray | None,
    body: Any,
    scales: tuple[DeviceArray, ...] = (),
    fast: bool = False,
) -> None:
    """`out = body(x @ y + bias)`, for operands of one dtype and of any ranks that `matmul` takes.

    Args:
        body: the Triton body of an elementwise operator of one input, as a device function; or None.
        scales: of float8 matrices: two numbers, or one for each row and one for each column.
        fast: sums of float8 products may have fewer bits.
    """
    if out.size == 0:
        return
    driver = out.buffer.arena.driver
    device = driver.properties(out.device.index or 0)
    precision = product_for(driver.capability(out.device.index or 0))
    aligned = not (out.data_ptr() | x.data_ptr() | y.data_ptr()) & 15
    itemsize = x.dtype.itemsize
    table, total, product = arithmetic(dtypes.of(x.dtype), "fast" if fast else precision)
    if scales:  # matrix instructions read bytes only along the summed dimension
        x = x if x.strides[1] == 1 else _copied(x)
        y = y if y.strides[0] == 1 else _copied(y.transpose((1, 0))).transpose((1, 0))
    shape = _geometry(out, x, y, bias)
    mirrored = shape.cols < shape.rows and is_streamed(shape.cols) and not scales
    if mirrored:
        shape, x, y = shape.mirrored, y, x
    problem = Problem(
        table,
        shape.rows,
        shape.cols,
        shape.depth,
        prod(shape.batch),
        itemsize,
        aligned and _describable(shape, itemsize),
        bias is not None or body is not None,
        shape.y.row == 1,
    )
    blocks = driver.pick(_tuned, lambda *_: choose_interpreted(problem, device))(
        problem, device, lambda: launch_product(out, x, y, bias, body, scales, fast)
    )
    if product == "tf32" and blocks.kernel == "descriptors" and device.major == 9:
        copied = _along_depth(x, y)
        if copied is not None:
            launch_product(out, *copied, bias, body)
            return
    if blocks.kernel == "parts":
        try:
            x, y = _split(shape, x, y)
        except OutOfMemoryError:
            blocks = driver.pick(choose, choose_interpreted)(problem._replace(room=False), device)
    group = group_of(blocks, device.multi_processor_count)
    biases = scales if bias is None else (*scales, bias)
    constants: dict[str, Any] = {"EPILOGUE": body, "OUT_DTYPE": dtypes.of(out.dtype), "BIAS_ROWS": shape.bias.row != 0}
    if scales:
        types = {"X_TYPE": MULTIPLIED[dtypes.of(x.dtype)], "Y_TYPE": MULTIPLIED[dtypes.of(y.dtype)]}
        constants |= {**types, "SCALES": 2, "BY_LINE": scales[0].size + scales[1].size > 2}
        blocks = blocks._replace(split=1)
    options: dict[str, Any] = {
        "warps": blocks.warps,
        "stages": blocks.stages,
        "name": f"matmul_{body.__name__}" if body else "matmul",
    }
    split = blocks.split > 1
    target, passed = out, biases
    if split:
        target, passed = buffer.empty((blocks.split, *out.shape), total.numpy, out.device), ()
        constants |= {"EPILOGUE": None, "OUT_DTYPE": total}
    if blocks.kernel in ("descriptors", "parts"):
        kernel, arguments, constants = _described(shape, blocks, constants, product, x, y)
        tiles = -(-shape.rows // blocks.rows) * -(-shape.cols // blocks.cols) * problem.batches * blocks.split
        # persistent programs, or one for each tile where some would compute twice as many as others
        one_each = blocks.kernel == "parts" or split or tiles < 2 * device.multi_processor_count
        grid = tiles if one_each else device.multi_processor_count
    else:
        kernel, arguments, constants, grid = _pointed(shape, blocks, {**constants, "TOTAL": total, "PRODUCT": product})
    if kernel is not matvec_kernel:
        constants["GROUP"] = group if shape.rows > group * blocks.rows else 0
    launch(kernel, (grid,), (target, x, y, passed, *arguments), constants, out.device, **options)
    if split:
        finish(out, target, bias, body)


def _split(shape: _Geometry, x: DeviceArray, y: DeviceArray) -> tuple[DeviceArray, ...]:
    """The parts of both operands, with their lines as they lie in memory."""
    sizes = ((shape.rows, shape.depth), (shape.depth, shape.cols))
    parts = []
    for array, of, (down, across) in zip((x, y), (shape.x, shape.y), sizes, strict=True):
        lines, width = (down, across) if of.col == 1 else (across, down)
        parts.append(split(array, prod(shape.batch) if any(of.batch) else 1, lines, width, _lines(of)))
    return tuple(parts)


def _along_depth(x: DeviceArray, y: DeviceArray) -> tuple[DeviceArray, DeviceArray] | None:
    """Both operands contiguous along the summed dimension, by copies; None where they are, or where that does not pay.

    In tf32 `wgmma` reads the second operand only so, and the first one is read into registers by rows. From another
    layout Triton moves each tile through shared memory, and every step waits for all products before it (`wait_group
    0`, not 1). At 8192 cubed a copy moves 0.5 GB beside 1.1e12 operations.
    """
    if x.ndim != 2 or y.ndim != 2:
        return None
    (rows, depth), cols = x.shape, y.shape[1]
    flips = x.strides[1] != 1, y.strides[0] != 1
    if True not in flips or depth % 4 or _PRODUCTS_PER_COPY * (flips[0] * rows + flips[1] * cols) > rows * cols:
        return None
    if flips[0]:
        x = _copied(x)
    return x, _copied(y.transpose((1, 0))).transpose((1, 0)) if flips[1] else y


def _copied(x: DeviceArray) -> DeviceArray:
    copied = buffer.empty(x.shape, x.dtype, x.device)
    copy_into(copied, x)
    return copied


def _tuned(problem: Problem, device: DeviceProperties, again: Callable[[], None]) -> Blocks:
    """What `cuda.tune` found, or else what is chosen."""
    if forced_block():
        return choose(problem, device)
    usual, tried = partial(choose, problem, device), partial(candidates, problem, device)
    return choices.of("matmul", problem, device, tried, usual, again)


def _pointed(shape: _Geometry, blocks: Blocks, constants: dict[str, Any]) -> tuple[Any, ...]:
    """The kernel on pointers or the one for few rows, its arguments after the arrays, its constants and its grid."""
    strides = [each.strides for each in (shape.out, shape.x, shape.y, shape.bias)]
    arguments = (shape.rows, shape.cols, shape.depth, blocks.split, shape.batch, *strides)
    constants = {
        **constants,
        "RANK": len(shape.batch),
        "SPLIT": blocks.split > 1,
        "EVEN": shape.depth % (blocks.depth * blocks.split) == 0,
        "WIDE": shape.reaches_far(blocks),
        "BLOCK_N": blocks.cols,
        "BLOCK_K": blocks.depth,
    }
    grid = -(-shape.cols // blocks.cols) * prod(shape.batch) * blocks.split
    if blocks.kernel == "streamed":
        del constants["PRODUCT"]
        return matvec_kernel, arguments, {**constants, "ALONG": shape.y.row == 1, "ROWS": blocks.rows}, grid
    constants["BLOCK_M"] = blocks.rows
    return matmul_kernel, arguments, constants, grid * -(-shape.rows // blocks.rows)


def _describable(shape: _Geometry, itemsize: int) -> bool:
    """True if descriptors can be made of operands and result: one dimension lies side by side, steps along the others
    are multiples of 16 bytes, and there is one batch dimension at most."""

    def fits(*steps: int) -> bool:
        return all(step >= 0 and step * itemsize % 16 == 0 for step in steps)

    out = shape.out
    return (
        len(shape.batch) <= 1
        and shape.depth > 0
        and out.col == 1
        and fits(out.row, *out.batch)
        and all(
            (of.col == 1 and of.row > 0 and fits(of.row, *of.batch))
            or (of.row == 1 and of.col > 0 and fits(of.col, *of.batch))
            for of in (shape.x, shape.y)
        )
        and max(shape.rows, shape.cols, shape.depth, *shape.batch) < 1 << 31
    )


def _described(
    shape: _Geometry, blocks: Blocks, constants: dict[str, Any], product: str, x: DeviceArray, y: DeviceArray
) -> tuple[Any, Any, dict[str, Any]]:
    """The kernel on descriptors or that on parts, its arguments after the arrays, and its constants."""
    batches, bias, split = prod(shape.batch), shape.bias, blocks.split > 1
    sizes, outs, biases = (shape.rows, shape.cols, shape.depth, batches), _lines(shape.out), sum(bias.batch)
    if split:
        outs = shape.rows * shape.cols, shape.cols
    constants = {
        **constants,
        "X_FLIPPED": shape.x.col != 1,
        "Y_FLIPPED": shape.y.col != 1,
        "OUT_BATCHED": batches > 1 or split,
        "SPLIT": split,
        "BLOCK_M": blocks.rows,
        "BLOCK_N": blocks.cols,
        "BLOCK_K": blocks.depth,
    }
    if blocks.kernel == "parts":
        parts = x.shape[1], y.shape[1], outs, x.strides[1:3], y.strides[1:3]
        return parts_matmul_kernel, (*sizes, *parts, (biases, bias.row, bias.col)), constants
    constants |= {
        "PRODUCT": product,
        "X_BATCHED": batches > 1 and shape.x.batch != (0,),
        "Y_BATCHED": batches > 1 and shape.y.batch != (0,),
        "PIECES": blocks.pieces,
    }
    steps = _lines(shape.x), _lines(shape.y)
    return described_matmul_kernel, (*sizes, outs, *steps, (biases, bias.row, bias.col)), constants


def _lines(of: _Operand) -> tuple[int, int]:
    """The steps from matrix to matrix and from line to line of memory."""
    return sum(of.batch), of.row if of.col == 1 else of.col


def finish(out: DeviceArray, parts: DeviceArray, bias: DeviceArray | None, body: Any) -> None:
    """The second step of a split product."""
    shape, (steps,) = collapse_dims(out.shape, [_spread(bias, out.shape)])
    block = block_size(out, 1024)
    constants = {"EPILOGUE": body, "OUT_DTYPE": dtypes.of(out.dtype), "RANK": len(shape), "BLOCK": block}
    arguments = (out, parts, () if bias is None else (bias,), out.size, parts.shape[0], shape, steps)
    launch(finish_kernel, (-(-out.size // block),), arguments, constants, out.device, name="matmul_finish")


def arithmetic(kind: dtypes.dtype, precision: str) -> tuple[str, dtypes.dtype, str]:
    """The table of block sizes, the dtype to sum in, and how to multiply."""
    if kind is dtypes.float16 or kind is dtypes.bfloat16:
        return "half", dtypes.float32, "ieee"
    if kind is dtypes.float32:
        return precision, kind, precision
    if kind in dtypes.FLOAT8:
        return ("fast_eighth", dtypes.float32, "ieee") if precision == "fast" else ("eighth", dtypes.float32, "eighth")
    if kind is dtypes.float64:
        return "double", kind, "ieee"
    return "sum", dtypes.int64 if kind.itemsize == 8 else dtypes.int32, "sum"


def _spread(array: DeviceArray | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides that repeat an array over `shape`; zeros for none."""
    return (0,) * len(shape) if array is None else layout.broadcast_strides(array.shape, array.strides, shape)


def _geometry(out: DeviceArray, x: DeviceArray, y: DeviceArray, bias: DeviceArray | None) -> _Geometry:
    """Sizes and strides of a product, with as many batch dimensions as possible merged into the rows.

    A vector on the left is a matrix of one row, one on the right a matrix of one column. Batches that share `y` are
    more rows of one product.
    """
    batch = out.shape[: out.ndim - (x.ndim > 1) - (y.ndim > 1)]
    rank = len(batch)
    rows, depth = (x.shape[-2] if x.ndim > 1 else 1), x.shape[-1]
    cols = y.shape[-1] if y.ndim > 1 else 1

    def placed(steps: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        rest = steps[rank:]
        return (*steps[:rank], rest[0] if x.ndim > 1 else 0), rest[-1] if y.ndim > 1 else 0

    out_rows, out_col = placed(out.strides)
    bias_rows, bias_col = placed(_spread(bias, out.shape))
    x_row = (*layout.broadcast_strides(x.shape[:-2], x.strides[:-2], batch), x.strides[-2] if x.ndim > 1 else 0)
    y_row = (*layout.broadcast_strides(y.shape[:-2], y.strides[:-2], batch), 0)
    y_steps = y.strides[-2:] if y.ndim > 1 else (y.strides[0], 0)
    shape, strides = collapse_dims((*batch, rows), [out_rows, x_row, y_row, bias_rows])
    if strides[2][-1] != 0:  # the last of them is a batch with matrices of its own, and there is one row
        shape, strides = (*shape, 1), tuple((*steps, 0) for steps in strides)
    outs, xs, ys, biases = strides
    return _Geometry(
        shape[:-1],
        shape[-1],
        cols,
        depth,
        _Operand(outs[:-1], outs[-1], out_col),
        _Operand(xs[:-1], xs[-1], x.strides[-1]),
        _Operand(ys[:-1], *y_steps),
        _Operand(biases[:-1], biases[-1], bias_col),
    )
