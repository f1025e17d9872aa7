"""Functions that reverse, shift or repeat elements, and triangular matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...autograd.gradients import called
from ...errors import ArgumentError, DtypeError, RangeError, ShapeError
from ...ground.arguments import whole
from ...ground.public import method, public
from ...operators import registry
from ...operators.inplace import in_place_form
from ...operators.outputs import takes_out
from ...tensors import Tensor, wrap
from ...types import dtypes, layout
from ...types.formats import contiguous_format
from ...types.layout import integers
from ...types.size import check_extents
from ..creation import ranges
from ..indexing.indexing import index_select
from .joining import cat, stack
from .view_operators import standing_alone
from .view_operators import view_registry as views


@public(method=True)
def flip(input: Tensor, *along: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Flips: a copy with the order along each of `dims` reversed.

    >>> import tritensor as torch
    >>> torch.flip(torch.arange(3), [0])
    tensor([2, 1, 0])
    """
    wanted = layout.normalize_dims(integers("flip", "dims", along, dims), input.ndim)
    key = tuple(slice(None, None, -1) if dim in wanted else slice(None) for dim in range(input.ndim))
    return called("FlipBackward0", views["slice"](input, (*key, Ellipsis)).clone())


@public(method=True)
def fliplr(input: Tensor) -> Tensor:
    """A copy with the second dimension reversed: left and right exchanged."""
    if input.ndim < 2:
        raise ShapeError("Input must be >= 2-d.")
    return flip(input, 1)


@public(method=True)
def flipud(input: Tensor) -> Tensor:
    """A copy with the first dimension reversed: up and down exchanged."""
    if input.ndim < 1:
        raise ShapeError("Input must be >= 1-d.")
    return flip(input, 0)


@public(method=True)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Rotates: a copy turned by `k` quarters in the plane of two dimensions, from the first towards the second.

    >>> import tritensor as torch
    >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])

    Raises:
        ShapeError: not two different dimensions, or a tensor that has fewer. RangeError: no such dimension.
    """
    if len(dims) != 2:
        raise ShapeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise ShapeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == input.ndim:
        words = f"but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        raise ShapeError(f"expected rotation dims to be different, {words}")
    first, second = (layout.normalize_dim(dim, input.ndim) for dim in dims)
    k %= 4
    if k % 2 == 0:
        return called("Rot90Backward0", flip(input, first, second) if k else input.clone())
    return standing_alone(flip(input, second if k == 1 else first).transpose(first, second), "rot90")


@public(method=True)
def ravel(input: Tensor) -> Tensor:
    """Flattens to a vector: a view where that is possible, else a copy."""
    return input.contiguous().view(-1)


@public()
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Converts flat indices into coordinates in a tensor of this shape, one tensor for each dimension.

    >>> import tritensor as torch
    >>> torch.unravel_index(torch.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))

    Raises:
        ArgumentError: indices that are no integers. ValueError: a negative size.
    """
    if indices.dtype.category > dtypes.INTEGER or indices.dtype is dtypes.bool_:
        raise ArgumentError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = integers("unravel_index", "shape", (shape,) if isinstance(shape, (tuple, list)) else ((shape,),))
    if min(sizes, default=0) < 0:
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    steps = [prod(sizes[dim + 1 :]) for dim in range(len(sizes))]
    indices = indices.to(dtypes.int64)
    # as PyTorch: columns of one matrix, so a coordinate's elements are as many elements apart as there are dimensions
    found = [indices.floor_divide(step) % size for step, size in zip(steps, sizes, strict=True)]
    return stack(found, -1).unbind(-1) if found else ()


@public(method=True)
def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Rolls the elements by `shifts` along `dims`; those shifted past the end continue at the start.

    >>> import tritensor as torch
    >>> torch.roll(torch.arange(4), 1)
    tensor([3, 0, 1, 2])

    Raises:
        ShapeError: there are not as many shifts as dimensions.
    """
    steps = integers("roll", "shifts", (shifts,))
    if not steps:
        raise ShapeError("`shifts` required")
    along = () if dims is None else integers("roll", "dims", (dims,))
    if not along and len(steps) == 1:
        flat = input.reshape(-1)
        return roll(flat, steps, 0).reshape(input.shape)
    if len(steps) != len(along):
        raise ShapeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(along)}")
    if not input.ndim:
        raise RangeError(f"Dimension specified as {along[0]} but tensor has no dimensions")
    if not input.numel():
        return called("RollBackward0", input.clone())
    result = input
    for step, dim in zip(steps, along, strict=True):
        size = input._data.shape[layout.normalize_dim(dim, input.ndim)]
        shift = step % size
        parts = (result.narrow(dim, size - shift, shift), result.narrow(dim, 0, size - shift))
        result = cat(parts, dim)
    return result


@method()
def repeat(input: Tensor, *counts: Any, repeats: Any = None) -> Tensor:
    """Repeats the tensor along each dimension, as a copy; there may be more repeats than dimensions."""
    counts = integers("repeat", "repeats", counts, repeats)
    extra = len(counts) - input.ndim
    if extra < 0:
        raise ShapeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (1,) * extra + tuple(input.shape)
    target = tuple(count * size for count, size in zip(counts, shape, strict=True))
    if any(count < 0 for count in counts):
        raise ShapeError(f"Trying to create tensor with negative dimension {min(target)}: {list(target)}")
    check_extents(target, words=f"Storage size calculation overflowed with sizes={list(target)}")
    # A new dimension for each count only where it is needed: there are at most 64.
    spaced, spread_to = [], []
    for count, size in zip(counts, shape, strict=True):
        if count != 1 and size != 1:
            spaced += [1, size]
            spread_to += [count, size]
        elif count * size != 1:
            spaced.append(size)
            spread_to.append(count * size)
    spread = input.reshape(spaced).expand(spread_to)
    return standing_alone(spread.clone(memory_format=contiguous_format).view(target), "repeat")


@public(method=True)
def tile(input: Tensor, *counts: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Repeats the tensor along each dimension, as `repeat` does; missing leading counts are 1.

    >>> import tritensor as torch
    >>> torch.tile(torch.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    counts = integers("tile", "dims", counts, dims)
    return repeat(input, (1,) * (input.ndim - len(counts)) + counts)


@public(method=True)
def repeat_interleave(
    input: Tensor, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeats each slice along `dim` (each element if None) `repeats` times.

    If `repeats` is a CUDA tensor, the host waits to read it.

    >>> import tritensor as torch
    >>> torch.repeat_interleave(torch.tensor([5, 6]), torch.tensor([1, 2]))
    tensor([5, 6, 6])
    """
    if repeats is None:
        repeats, input = input, ranges.arange(input.numel(), device=input.device)
    if dim is None:
        input, dim = input.reshape(-1), 0
    dim = layout.normalize_dim(dim, input.ndim)
    if not isinstance(repeats, Tensor):
        if repeats < 0:
            raise ShapeError("Repeats must be non-negative")
        shape = tuple(input.shape)
        spread = input.unsqueeze(dim + 1).expand(*shape[: dim + 1], repeats, *shape[dim + 1 :])
        return spread.clone(memory_format=contiguous_format).reshape(
            *shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]
        )
    if repeats.is_meta and output_size is not None:
        return index_select(input, dim, repeats.new_empty(output_size))
    positions = wrap(_origins(repeats, input._data.shape[dim] if input.ndim else 1))
    return index_select(input, dim, positions.to(input.device))


def _origins(repeats: Tensor, size: int) -> np.ndarray:
    """For each slice of the result the index of the slice that it repeats."""
    if repeats.ndim > 1:
        raise ShapeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(f'"repeat_interleave" not implemented for {repeats.dtype}: repeats must be int64 or int32')
    if repeats.is_meta:
        raise ShapeError("cannot repeat_interleave a meta tensor without output_size")
    counts = repeats._to_host().reshape(-1)
    if (counts < 0).any():
        raise ShapeError("repeats can not be negative")
    if counts.size not in (1, size):
        raise ShapeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.size} and input.size(0) = {size}"
        )
    return np.repeat(np.arange(size), counts)


@public(method=True, in_place=in_place_form, out=takes_out())
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangles of matrices: zeros above the diagonal (the one `diagonal` to the right of the main one).

    >>> import tritensor as torch
    >>> torch.tril(torch.ones(2, 3), 1)
    tensor([[1., 1., 0.],
            [1., 1., 1.]])
    """
    return _triangle("tril", input, diagonal, lower=True)


@public(method=True, in_place=in_place_form, out=takes_out())
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangles of matrices: zeros below the diagonal (the one `diagonal` to the right of the main one)."""
    return _triangle("triu", input, diagonal, lower=False)


def _triangle(name: str, input: Tensor, diagonal: int, lower: bool) -> Tensor:
    if input.ndim < 2:
        raise ShapeError(f"{name}: input tensor must have at least 2 dimensions")
    diagonal = whole(name, "diagonal", diagonal)
    rows, cols = (ranges.arange(size, device=input.device) for size in input._data.shape[-2:])
    bound = rows.unsqueeze(1) + diagonal
    kept = cols <= bound if lower else cols >= bound
    triangle = registry["where"](kept, input, False if input.dtype is dtypes.bool_ else 0)
    return called(f"{name.capitalize()}Backward0", triangle)
