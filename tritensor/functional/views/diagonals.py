"""Diagonals of tensors, tensors made of diagonals, and the indices of triangles."""

from __future__ import annotations

import numpy as np

from ...autograd.gradients import called
from ...errors import DeviceMismatchError, ShapeError, UnsupportedError
from ...ground.arguments import check_flag, check_tensors, whole
from ...ground.public import method, public
from ...kernels.indexing.family import index_put
from ...operators.inplace import check_history
from ...operators.outputs import takes_out
from ...tensors import Tensor
from ...types import Device, Dtype, dtypes, layout
from ..creation.creation import place
from .joining import joined
from .parts import as_strided, written
from .view_operators import View, copy_of, view_registry


def _pair(rank: int, dim1: int, dim2: int) -> tuple[int, int]:
    """Two dimensions counted from the front.

    Raises:
        ShapeError: they are one. RangeError: no such dimension.
    """
    first, second = layout.normalize_dim(dim1, rank), layout.normalize_dim(dim2, rank)
    if first == second:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def _diagonal(input: Tensor, offset: int, dim1: int, dim2: int) -> tuple[View, tuple[int, ...]]:
    """The view operator of a diagonal, and its arguments."""
    first, second = _pair(input.ndim, dim1, dim2)
    return view_registry["diagonal"], (whole("diagonal", "offset", offset), first - input.ndim, second - input.ndim)


@public(method=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view of the diagonals of two dimensions, which become the last dimension.

    >>> import tritensor as torch
    >>> torch.arange(6).view(2, 3).diagonal(1)
    tensor([1, 5])

    Args:
        offset: which diagonal: so many to the right of the main one, to the left if negative.

    Raises:
        ShapeError: `dim1` is `dim2`. RangeError: no such dimension.
    """
    view, arguments = _diagonal(input, offset, dim1, dim2)
    return view(input, *arguments)


@public(method=True, out=takes_out())
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal matrix of a vector; of a matrix a copy of its diagonal.

    >>> import tritensor as torch
    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])

    Raises:
        ShapeError: neither a vector nor a matrix.
    """
    if input.ndim not in (1, 2):
        raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    return diag_embed(input, diagonal) if input.ndim == 1 else copy_of(input.diagonal(diagonal))


@public(method=True)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Diagonal matrices of the last dimension of `input`: it lies on the diagonals of two new dimensions.

    >>> import tritensor as torch
    >>> torch.diag_embed(torch.ones(2, 3)).shape
    tritensor.Size([2, 3, 3])

    Raises:
        ShapeError: `dim1` is `dim2`. RangeError: no such dimension, or `input` has none.
    """
    dims = _pair(input.ndim + 1, dim1, dim2)
    size = input._data.shape[layout.normalize_dim(-1, input.ndim)] if input.ndim else 1
    shape = list(input.shape[:-1])
    for dim in sorted(dims):
        shape.insert(dim, size + abs(offset))
    made = input.new_zeros(shape)
    return written("diag_embed", made, *_diagonal(made, offset, *dims), input)


@public(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The diagonal matrix of the elements of `input`, flattened."""
    return diag_embed(input.reshape(-1), offset)


@public(method=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `input` with `src` on its diagonal; the arguments are `diagonal`'s.

    Raises:
        ShapeError: `src` has not the diagonal's shape.
    """
    return written("diagonal_scatter", input.clone(), *_diagonal(input, offset, dim1, dim2), src)


@method()
def fill_diagonal_(self: Tensor, fill_value: complex, wrap: bool = False) -> Tensor:
    """Fill the main diagonal, that of all dimensions, with a number in place.

    Args:
        wrap: whether the diagonal of a matrix of more rows than columns begins anew under each square.

    Raises:
        ShapeError: a vector, or dimensions of different sizes where there are more than two.
    """
    check_flag("fill_diagonal_", "wrap", wrap, 2)
    shape, strides = tuple(self.shape), self.stride()
    if len(shape) < 2:
        raise ShapeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError("all dimensions of input must be of equal length")
    check_history(self)
    step, first = sum(strides), self.storage_offset()
    size = min(shape) if step else min(1, *shape)
    as_strided(self, (size,), (step,), first).fill_(fill_value)
    rows, cols = shape[:2]
    if wrap and len(shape) == 2 and rows > cols + 1:
        count = (self.numel() + cols) // (cols + 1) - size
        as_strided(self, (count,), (step,), first + strides[0] * (cols + 1)).fill_(fill_value)
    return self


@public()
def block_diag(*tensors: Tensor) -> Tensor:
    """The block diagonal matrix of tensors, of which numbers and vectors count as rows; zeros around them.

    >>> import tritensor as torch
    >>> torch.block_diag(torch.tensor([1, 2]), torch.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])

    Raises:
        ShapeError: a tensor of more than two dimensions. DeviceMismatchError: tensors on two devices.
    """
    check_tensors(tensors)
    for position, x in enumerate(tensors):
        if x.device != tensors[0].device:
            words = f"Input 0 is on device {tensors[0].device} and input {position} is on device {x.device}."
            raise DeviceMismatchError(f"torch.block_diag: input tensors must all be on the same device. {words}")
        if x.ndim > 2:
            words = f"Input {position} has {x.ndim} dimensions"
            raise ShapeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. {words}")
    if not tensors:
        return place(np.empty((1, 0), dtypes.get_default_dtype().numpy), None)
    heights, widths = np.array([(1, *x._data.shape)[-2:] if x.ndim else (1, 1) for x in tensors]).T
    # All values are written at once: of each block by itself it would be a node that passes the whole gradient on.
    values = joined(list(tensors), 0, lambda x: x.reshape(-1))
    each = np.repeat(widths, heights)  # of every row how many values, and how many columns and values are before them
    before = np.repeat(widths.cumsum() - widths, heights) - (each.cumsum() - each)
    rows, cols = np.repeat(np.arange(len(each)), each), np.arange(each.sum()) + np.repeat(before, each)
    made = values.new_zeros((len(each), int(widths.sum())))
    made = index_put(made, place(np.stack((rows, cols)), values.device), values, dims=(0, 1))
    return called("BlockDiagBackward0", made)


def _triangle(name: str, row: int, col: int, offset: int, dtype: Dtype, device: Device, upper: bool) -> Tensor:
    for title, size in (("row", row), ("col", col)):
        if whole(name, title, size) < 0:
            raise ShapeError(f"{title} must be non-negative, got{size}")
    kind = dtypes.of_argument(dtype) or dtypes.int64
    if kind not in (dtypes.int64, dtypes.int32):
        raise UnsupportedError(
            f"\"{name}\" not implemented for '{kind.legacy.removesuffix('Tensor').rpartition('.')[2]}'"
        )
    edge = np.clip(np.arange(row) + offset + (not upper), 0, col)
    counts, first = (col - edge, edge) if upper else (edge, 0 * edge)
    rows, starts = np.repeat(np.arange(row), counts), np.cumsum(counts) - counts - first
    return place(np.stack([rows, np.arange(len(rows)) - starts[rows]]).astype(kind.numpy, copy=False), device)


@public(functional=False)
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Dtype = dtypes.int64, device: Device = None) -> Tensor:
    """The indices of the lower triangle of a matrix of `row` by `col`: rows and columns, shape (2, n).

    >>> import tritensor as torch
    >>> torch.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])

    Raises:
        ShapeError: a negative size. UnsupportedError: a dtype other than int32 and int64.
    """
    return _triangle("tril_indices", row, col, offset, dtype, device, upper=False)


@public(functional=False)
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Dtype = dtypes.int64, device: Device = None) -> Tensor:
    """The indices of the upper triangle of a matrix: rows and columns; see `tril_indices`."""
    return _triangle("triu_indices", row, col, offset, dtype, device, upper=True)
