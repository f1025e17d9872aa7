"""Scattering: functions that write, or reduce, values into the elements that a tensor of indices names."""

from __future__ import annotations

from typing import Any

from ...autograd.gradients import called
from ...autograd.mode import no_grad
from ...errors import DtypeError, RangeError, ShapeError, UnsupportedError
from ...ground.arguments import check_tensor
from ...ground.public import public
from ...host.scalars import converted
from ...kernels.indexing import family as kernels
from ...kernels.indexing.folding import fold
from ...operators import registry
from ...operators.inplace import in_place_form
from ...operators.outputs import SCATTERED, takes_out
from ...tensors import Tensor
from ...types import dtypes, layout
from ..views.views import basic_index
from .indexing import check_slices, index_put, places_of, short


@public(method=True, in_place=in_place_form, out=takes_out(SCATTERED))
def scatter(
    input: Tensor, dim: int, index: Tensor, src: object = None, *, value: object = None, reduce: str | None = None
) -> Tensor:
    """Scatters: `input` with each element of `src` (or one number) written to the position in `index` along `dim`.

    Args:
        reduce: "add" or "multiply" to add to what is there, or to multiply it.

    If positions repeat, the last element is written on the CPU and any one of them on a CUDA device.

    >>> import tritensor as torch
    >>> torch.zeros(2, 3).scatter(0, torch.tensor([[1, 0, 1]]), 5.0)
    tensor([[0., 5., 0.],
            [5., 0., 5.]])
    """
    if reduce not in (None, "add", "multiply"):
        raise ShapeError("reduce argument must be either add or multiply.", f"it is {reduce!r}")
    src = src if value is None else value
    return _scatter(input, dim, index, src, "prod" if reduce == "multiply" else reduce and "sum")


@public(method=True, in_place=in_place_form, out=takes_out(SCATTERED), autocast={"cuda": "widest"})
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Scatters and adds: `input` with each element of `src` added at the position in `index` along `dim`.

    The order of the additions is fixed, so every run gives the same bits.

    >>> import tritensor as torch
    >>> torch.zeros(3).scatter_add(0, torch.tensor([0, 2, 0]), torch.tensor([1.0, 2.0, 3.0]))
    tensor([4., 0., 2.])
    """
    return called("ScatterAddBackward0", _scatter(input, dim, index, src, "sum"))


def _scatter(input: Tensor, dim: int, index: Tensor, src: object, reduce: str | None, own: bool = True) -> Tensor:
    layout.normalize_dim(dim, input.ndim)
    index = places_of("scatter", index)
    if isinstance(src, Tensor) and src.dtype is not input.dtype:
        raise DtypeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not index.numel():  # PyTorch looks at no shape then
        return input.clone()
    if isinstance(src, Tensor):
        extents, shape = index._data.shape, src._data.shape
        if extents and len(shape) == len(extents) and any(n > m for n, m in zip(extents, shape, strict=True)):
            raise ShapeError(
                f"Expected index {list(extents)} to be no larger than self {list(input.shape)} apart from "
                f"dimension {dim} and to be no larger size than src {list(shape)}"
            )
        if len(shape) != len(extents):
            raise ShapeError("Index tensor must have the same number of dimensions as src tensor")
        if shape != extents and extents:
            src = basic_index(src, tuple(slice(extent) for extent in extents))
    else:
        src = converted(src, input.dtype)
    if reduce in (None, "sum"):
        # a sum without what is there is added to zeros
        start = input if own else kernels.scatter(input, index, 0, dim=dim)
        return kernels.scatter(start, index, src, dim=dim, accumulate=reduce == "sum")
    return fold(input, index, src, dim=dim, reduce=reduce, include_self=own)


@public(method=True, in_place=in_place_form, out=takes_out(SCATTERED))
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Scatters and reduces by "sum", "prod", "mean", "amax" or "amin": `src` to positions `index` of `input`.

    A position that nothing is scattered to keeps its element. Equal extremes share their gradient evenly. The order of
    sums and products is fixed, so every run gives the same bits.

    Args:
        include_self: whether a position's own element counts.

    >>> import tritensor as torch
    >>> torch.ones(3).scatter_reduce(0, torch.tensor([0, 2, 0]), torch.tensor([2.0, 3.0, 5.0]), "prod")
    tensor([10.,  1.,  3.])

    Raises:
        ShapeError: another `reduce`. BoundsError: an index out of bounds.
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise ShapeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    if reduce == "mean":
        if input.dtype is dtypes.bool_:
            raise UnsupportedError("\"scatter_gather_tensor_cpu_reduce_mean\" not implemented for 'Bool'")
        total = _scatter(input, dim, index, src, "sum", include_self)
        with no_grad():
            count = input.new_full(input.shape, int(include_self))
            count = _scatter(count, dim, index, src.new_ones(src.shape), "sum").clamp_min_(1)
        found: Tensor = total / count if input.dtype.category >= dtypes.FLOATING else total // count
    else:
        found = _scatter(input, dim, index, src, reduce, include_self)
    return called("ScatterReduceBackward0", found)


@public(method=True, in_place=in_place_form, out=takes_out(SCATTERED))
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Reduces slices: slice `index[i]` of `input` along `dim` with `source[i]`: "prod", "mean", "amax" or "amin".

    See `scatter_reduce`.

    >>> import tritensor as torch
    >>> torch.ones(3).index_reduce(0, torch.tensor([0, 0]), torch.tensor([2.0, 3.0]), "mean")
    tensor([2., 1., 1.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ShapeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    dim = check_slices("index_reduce_", input, dim, index, source)
    extent = input.shape[dim] if input.ndim else 1
    kernels.check_bounds(index.reshape(-1), extent, dim, 0, "index out of range in self")
    if not source.ndim or not input.ndim:
        source = source.reshape(input.shape)
    lined = index.reshape([-1 if axis == dim else 1 for axis in range(source.ndim)]).expand(source.shape)
    found = scatter_reduce(input, dim, lined, source, reduce, include_self=include_self)
    return called("IndexReduceBackward0", found)


@public(method=True, in_place=in_place_form)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Writes elements of `source` to the positions `index` of the flattened `input`, or adds them there.

    >>> import tritensor as torch
    >>> torch.zeros(2, 2).put(torch.tensor([1, -1]), torch.tensor([5.0, 6.0]))
    tensor([[0., 5.],
            [0., 6.]])

    Raises:
        DtypeError: an index that is not int64, a source of another dtype. RangeError: another number of elements.
    """
    if index.dtype is not dtypes.int64:
        raise DtypeError(f"put_(): Expected a long tensor for index, but got {short(index)}")
    if source.dtype is not input.dtype:
        raise DtypeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{short(input)} and source.dtype = {short(source)}"
        )
    if source.numel() != index.numel():
        raise RangeError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel()}, index.numel() = {index.numel()}"
        )
    if index.numel() and not input.numel():
        raise RangeError("put_(): Tried to put elements into an empty tensor")
    words = f"out of range: tried to access index {{wrong}} on a tensor of {input.numel()} elements."
    kernels.check_bounds(index, input.numel(), 0, message=words)
    places, values = index.reshape(-1), source.reshape(-1)
    found = index_put(input.reshape(-1), (places,), values, accumulate).reshape(input.shape)
    return called("PutBackward0", found)


@public(method=True, in_place=in_place_form)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Copies elements of `source`, in order, to where `mask` is True; input and mask broadcast.

    >>> import tritensor as torch
    >>> torch.zeros(3).masked_scatter(torch.tensor([True, False, True]), torch.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 2.])

    Raises:
        DtypeError: a mask that is not boolean, a source of another dtype. ShapeError: too few elements.
    """
    check_tensor("masked_scatter", "mask", 1, mask)
    if source.dtype is not input.dtype:
        names = f"{short(input)} and {short(source)}"
        raise DtypeError(f"masked_scatter: expected self and source to have same dtypes but got{names}")
    if mask.dtype is not dtypes.bool_:
        raise DtypeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {short(mask)}")
    shape = layout.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    if mask.is_meta:  # no places are known
        return called("MaskedScatterBackward0", registry["where"](mask, source.sum(), input))
    places = mask.expand(shape).reshape(-1).nonzero().reshape(-1)
    if source.numel() < places.numel():
        raise ShapeError("Number of elements of source < number of ones in mask")
    values = source.reshape(-1)[: places.numel()]
    found = index_put(input.expand(shape).reshape(-1), (places,), values).reshape(shape)
    return called("MaskedScatterBackward0", found)


@public()
def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: Any, fill: Any) -> Tensor:
    """`input[indices]` where `mask` holds, which may be out of bounds elsewhere, and `fill` there."""
    kept = _inside(input, mask, indices)
    return registry["where"](mask, input[kept], fill)


@public()
def _unsafe_masked_index_put_accumulate(input: Tensor, mask: Tensor, indices: Any, values: Tensor) -> Tensor:
    """`input` with `values` added at `indices` where `mask` holds, which may be out of bounds elsewhere."""
    return index_put(input, _inside(input, mask, indices), values * mask.to(values.dtype), True)


def _inside(input: Tensor, mask: Tensor, indices: Any) -> tuple[Any, ...]:
    """An index, with 0 where the mask does not hold."""
    with no_grad():
        return tuple([slice(None) if each is None else each.masked_fill(~mask, 0) for each in indices])
