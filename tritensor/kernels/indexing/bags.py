"""Sums, means and maxima of the rows of a table that are looked up together: a bag of rows becomes one.

A program takes one bag and a block of columns, and reads the rows one after another: they are never stored side by
side. As it goes it notes each place's bag, which the gradient needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError
from ...operators import Dtypes, Shapes
from ...operators.rules import FLOATING
from ...runtime.call import Call
from ...runtime.launch import Int64, kernel, launch
from ...runtime.reference import with_casts
from ...tensors import Tensor
from ...types import dtypes
from ..blocks import block_size
from .family import Indexing, index, index_put, scatter

if TYPE_CHECKING:
    import triton.language as tl

_INT64 = np.dtype(np.int64)


class Bags(Indexing):
    """The rows in each bag as one; `offsets` holds where each begins, and where the last one ends."""

    outputs = ("out", "rows", "bags")

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The table's; halves are added up in float32."""
        return self.rule(self.name, call.inputs[:1])[0], (call.inputs[0].dtype, dtypes.int64, dtypes.int64)

    def prepare(self, call: Call) -> None:
        """Check on the CPU that bags follow each other; on a device one whose end lies before it is empty."""
        indices, offsets = call.inputs[1:3]
        if not offsets._off_host:
            ends = offsets._host_array()
            if ends[0] or ends[-1] != indices.numel() or (ends[1:] < ends[:-1]).any():
                raise ShapeError("embedding_bag(): offsets have to rise", remedy="sort the bags")

    def on_host(self, call: Call) -> Any:
        """The reference, which casts only the rows that it reads."""
        return with_casts(self.reference, [call.results[0].numpy, _INT64, _INT64, call.compute.numpy], call)

    def allocate(self, call: Call) -> Shapes:
        """A row for each bag; the rows of the maxima, or how many rows were added; a bag for each place."""
        table, indices, offsets = call.arrays[:3]
        bags, width = offsets.size - 1, table.shape[1]
        rows = (bags, width if call.metadata["mode"] == "max" else 1)
        return [((bags, width), table.dtype), (rows, _INT64), (indices.shape, _INT64)]

    def launch(self, call: Call) -> None:
        """Read the rows of each bag."""
        (out, rows, bags), (table, indices, offsets, factors) = call.outs, call.arrays
        width, mode = table.shape[1], call.metadata["mode"]
        if not out.size:
            return
        block = block_size(out, 128, interpreted=4096, count=width)
        padding, scaled = Int64(call.metadata["padding_idx"]), factors is not None
        launch(
            bags_kernel,
            (out.shape[0] * -(-width // block),),
            (out, rows, bags, table, indices, offsets, factors if scaled else table, *table.strides, width, padding),
            {"MODE": mode, "SCALED": scaled, "COMPUTE": call.compute, "BLOCK": block},
            out.device,
            name=f"bags_{mode}",
        )


def _bag(table: np.ndarray, indices: np.ndarray, offsets, factors=None, *, mode, padding_idx=-1, by_frequency=False):
    """The sum, mean or maximum of the table's rows at the indices in each bag, without those at padding_idx."""
    bags = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    kept = np.flatnonzero(indices != padding_idx)
    where, counts = indices[kept], np.bincount(bags[kept], minlength=len(offsets) - 1)
    values = table[where]
    values = values.astype(np.float32) if values.itemsize == 2 else values
    if factors is not None:
        values *= factors[kept][:, None]
    starts, some = (np.cumsum(counts) - counts)[counts > 0], counts > 0
    out, rows = np.zeros((len(counts), table.shape[1]), values.dtype), counts[:, None]
    if mode != "max":
        if len(where):
            out[some] = np.add.reduceat(values, starts, 0)
        return out / np.maximum(rows, 1).astype(out.dtype) if mode == "mean" else out, rows, bags
    rows = np.full(out.shape, -1)
    if values.size:
        # a nan is the maximum only if it is the first, as in PyTorch
        found = np.fmax.reduceat(values, starts, 0)
        np.copyto(found, np.nan, where=np.isnan(values[starts]))
        equal = values == np.repeat(found, counts[some], 0)
        equal[starts] |= np.isnan(found)
        places, columns = np.divmod(np.flatnonzero(equal)[::-1], out.shape[1])
        out[some], rows[bags[kept[places]], columns] = found, where[places]  # of equal ones the first is written last
    return out, rows, bags


bag = Bags("embedding_bag", _bag, "indices")
bag.kinds["offsets"], bag.rule = dtypes.int64, FLOATING


def _values(table: Tensor, indices: Tensor, padding_idx: int) -> Any:
    """What stands at places, 0 at those of padding."""
    return table if padding_idx < 0 else table.masked_fill((indices == padding_idx).unsqueeze(1), 0)


def _of_table(grad: Tensor, indices: Tensor, factors: Tensor, rows, bags, table_shape, mode, padding_idx, by_frequency):
    table = grad.new_zeros(table_shape)
    if mode == "max":
        return scatter(table, rows.clamp_min(0), grad.masked_fill(rows < 0, 0), dim=0, accumulate=True)
    values = index(grad / rows.clamp_min(1) if mode == "mean" else grad, bags.unsqueeze(0), dims=(0,))
    if factors is not None:
        values = values * factors.unsqueeze(1)
    if by_frequency:
        ones = grad.new_ones(indices.shape, dtype=dtypes.float32)
        counts = index_put(ones.new_zeros(table_shape[0]), indices.unsqueeze(0), ones, dims=(0,), accumulate=True)
        values = values / counts[indices].unsqueeze(1).to(values.dtype)
    return index_put(table, indices.unsqueeze(0), _values(values, indices, padding_idx), dims=(0,), accumulate=True)


def _of_factors(grad: Tensor, table: Tensor, indices: Tensor, bags: Tensor, padding_idx: int):
    rows = _values(index(table, indices.unsqueeze(0), dims=(0,)), indices, padding_idx)
    return (index(grad, bags.unsqueeze(0), dims=(0,)) * rows).sum(1)


bag.gradients(table=_of_table, factors=_of_factors)


@bag.samples
def _(draw: Any) -> Any:
    indices, offsets = np.array([1, 4, 0, 3, 4, 2, 4]), np.array([0, 3, 3, 4, 7])
    for mode, padding in (("sum", 4), ("max", 3)):
        factors = draw((7,)) if mode == "sum" else None
        yield [draw((5, 3)), indices, offsets, factors], {"mode": mode, "padding_idx": padding}
    yield [draw((5, 3)), indices[:0], offsets[:1].repeat(3), None], {"mode": "mean"}


@kernel
def bags_kernel(
    out_ptr,
    rows_ptr,
    bags_ptr,
    table_ptr,
    index_ptr,
    offset_ptr,
    factor_ptr,
    row_step,
    column_step,
    width,
    padding,
    MODE: tl.constexpr,
    SCALED: tl.constexpr,
    COMPUTE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One bag's block of columns; the arguments are the operator's, vectors contiguous.

    The grid is (bags * ceil(width / BLOCK),): its other dimensions would end at 65535 programs.
    """
    across = tl.cdiv(width, BLOCK)
    bag = (tl.program_id(0) // across).to(tl.int64)
    column = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
    inside = column < width
    place = tl.load(offset_ptr + bag)
    end = tl.load(offset_ptr + bag + 1)
    total = tl.zeros((BLOCK,), COMPUTE)
    rows = tl.full((BLOCK,), -1, tl.int64)
    count = end - end
    while place < end:
        tl.store(bags_ptr + place, bag)
        row = tl.load(index_ptr + place)
        if row != padding:
            value = tl.load(table_ptr + row * row_step + column * column_step, mask=inside, other=0.0).to(COMPUTE)
            if SCALED:
                value *= tl.load(factor_ptr + place).to(COMPUTE)
            if MODE == "max":
                better = (rows < 0) | (value > total)
                total = tl.where(better, value, total)
                rows = tl.where(better, row, rows)
            else:
                total += value
            count += 1
        place += 1
    if MODE == "mean":
        total = total / tl.maximum(count, 1).to(COMPUTE)
    tl.store(out_ptr + bag * width + column, total, mask=inside)
    if MODE == "max":
        tl.store(rows_ptr + bag * width + column, rows, mask=inside)
    else:
        tl.store(rows_ptr + bag, count)
