"""Binary search: where elements would be inserted into sorted rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...host.threads import in_pieces
from ...operators import Dtypes, Operator, Shapes
from ...operators.rules import Rule
from ...runtime.call import Call
from ...runtime.launch import kernel, launch
from ...types import dtypes
from ..addressing import collapse_dims, offset_of
from ..blocks import block_size

if TYPE_CHECKING:
    import triton.language as tl

# Elements of a piece that a thread looks up; NumPy holds no lock meanwhile.
_PIECE = 1 << 14
# More rows are searched together: a call for each takes 3 us, a step for all of them 10 ns an element.
_ROWS = 64


class Searching(Operator):
    """The place of each element in sorted boundaries: in one row of them, or in the one for its own row."""

    family = "searching"
    about = "Binary search, a program for a block of elements; all steps in one launch."
    repeatable = True

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """Compared in the operands' common dtype; places are int64, or int32."""
        compute, result = self.rule(self.name, call.inputs[:2])
        return compute, (dtypes.int32 if call.metadata["narrow"] else result,)

    def allocate(self, call: Call) -> Shapes:
        """The shape of the elements."""
        return [(tuple(call.arrays[1].shape), call.results[0].numpy)]

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference; many elements in pieces, on all threads."""
        reference, count = super().on_host(call), call.arrays[1].size
        if call.arrays[0].ndim > 1 or count < 2 * _PIECE:
            return reference

        def run(boundaries: np.ndarray, x: np.ndarray, *sorter: Any) -> tuple[np.ndarray, ...]:
            flat, out = x.reshape(-1), np.empty(count, call.results[0].numpy)

            def piece(start: int, stop: int) -> None:
                out[start:stop] = reference(boundaries, flat[start:stop], *sorter)[0]

            in_pieces(piece, count, _PIECE)
            return (out.reshape(x.shape),)

        return run

    def launch(self, call: Call) -> None:
        """A program for a block of elements."""
        boundaries, x, sorter = call.arrays
        (out,) = call.outs
        count, size = out.size, boundaries.shape[-1]
        if not count:
            return
        sources = [boundaries] if sorter is None else [boundaries, sorter]
        rows, steps = collapse_dims(boundaries.shape[:-1], [each.strides[:-1] for each in sources])
        shape, (x_strides,) = collapse_dims(x.shape, [x.strides])
        block = block_size(out, 512, interpreted=1 << 14, count=count)
        launch(
            search_kernel,
            (-(-count // block),),
            (
                out,
                x,
                tuple(sources),
                shape,
                x_strides,
                rows,
                tuple(steps),
                tuple([each.strides[-1] for each in sources]),
                count,
                x.shape[-1] if boundaries.ndim > 1 else count,
                size,
                size.bit_length(),
            ),
            {
                "RIGHT": call.metadata["right"],
                "COMPUTE": call.compute,
                "RANK": len(shape),
                "ROW_RANK": len(rows),
                "BLOCK": block,
            },
            out.device,
            name="searchsorted",
        )


@kernel
def search_kernel(
    out_ptr,
    x_ptr,
    sources,
    shape,
    strides,
    row_shape,
    row_strides,
    steps,
    count,
    width,
    size,
    rounds,
    RIGHT: tl.constexpr,
    COMPUTE: tl.constexpr,
    RANK: tl.constexpr,
    ROW_RANK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The number of boundaries below each element; with RIGHT of those that are not above it.

    Args:
        sources: the pointer to the boundaries, and that to the order in which they are sorted, if there is one.
        row_shape, row_strides, steps: from which a row's number, and a place in it, give the offset in each of them.
        width: how many elements each row of boundaries is for.
        rounds: how often `size` can be halved.
    """
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    x = tl.load(x_ptr + offset_of(index, strides, shape, RANK), mask=mask, other=0).to(COMPUTE)
    row = index // width
    low = tl.zeros_like(index)
    high = low + size
    for _ in range(rounds):
        middle = (low + high) // 2
        inside = mask & (low < high)
        place = middle
        if len(sources) == 2:
            found = sources[1] + offset_of(row, row_strides[1], row_shape, ROW_RANK) + middle * steps[1]
            place = tl.load(found, mask=inside, other=0)
        pointer = sources[0] + offset_of(row, row_strides[0], row_shape, ROW_RANK) + place * steps[0]
        boundary = tl.load(pointer, mask=inside, other=0).to(COMPUTE)
        if RIGHT:  # NaN is behind all numbers
            stays = (boundary > x) | ((boundary != boundary) & (x == x))
        else:
            stays = (boundary >= x) | (boundary != boundary)
        low = tl.where(inside & (stays == 0), middle + 1, low)
        high = tl.where(inside & stays, middle, high)
    tl.store(out_ptr + index, low.to(out_ptr.dtype.element_ty), mask=mask)


def _searchsorted(boundaries, x, sorter=None, *, right=False, narrow=False):
    """The number of boundaries below each element (with right, how many are not above it)."""
    side = "right" if right else "left"
    if boundaries.ndim == 1:
        return np.asarray(np.searchsorted(boundaries, x, side, sorter))
    ordered = boundaries if sorter is None else np.take_along_axis(boundaries, sorter, -1)
    size = boundaries.shape[-1]
    if not x.size or not size:
        return np.zeros(x.shape, np.int64)
    rows, values = ordered.reshape(-1, size), np.reshape(x, (-1, x.shape[-1]))
    if len(rows) <= _ROWS:
        found = [np.searchsorted(row, each, side) for row, each in zip(rows, values, strict=True)]
        return np.reshape(found, x.shape)
    low, high = np.zeros(values.shape, np.int64), np.full(values.shape, size)
    for _ in range(size.bit_length()):
        middle = (low + high) // 2
        boundary = np.take_along_axis(rows, np.minimum(middle, size - 1), 1)
        before = np.isnan(boundary) if boundary.dtype.kind == "f" else np.zeros((), bool)
        before = (boundary > values) | (before & (values == values)) if right else (boundary >= values) | before
        stays = before | (low >= high)
        low, high = np.where(stays, low, middle + 1), np.where(stays & (low < high), middle, high)
    return low.reshape(x.shape)


searchsorted = Searching(
    "searchsorted", _searchsorted, Rule("order", dtypes.INTEGER, dtypes.FLOATING, result=dtypes.int64)
)
searchsorted.kinds = {"sorter": dtypes.int64}


@searchsorted.samples
def _(draw: Any) -> Iterator[tuple[Any, ...]]:
    for rows, shape in (
        ((7,), (5, 8)),
        ((2, 6), (2, 4)),
        ((70, 5), (70, 3)),
        ((2, 3, 1), (2, 3, 0)),
        ((0,), (4,)),
        ((4,), ()),
    ):
        unsorted = draw(rows)
        for right in (False, True):
            yield [np.sort(unsorted, -1), draw(shape), None], {"right": right, "narrow": right}
    yield [unsorted, draw((9,)), np.argsort(unsorted, -1)], {}
    rows = draw((2, 5))
    yield [rows, draw((2, 3)), np.argsort(rows, -1)], {"right": True}
