"""segment_reduce: reductions of the segments of a dimension."""

from __future__ import annotations

from math import inf
from typing import Any

from ...autograd.gradients import called
from ...autograd.mode import no_grad
from ...errors import DtypeError, RangeError, ShapeError, UnsupportedError
from ...ground.public import public
from ...operators import registry
from ...operators.outputs import SELECTED, takes_out
from ...tensors import Tensor
from ...types import dtypes, layout
from ..views.joining import cat
from .scattering import scatter_reduce

_NAMES = {"max": "amax", "min": "amin"}
_START = {"amax": -inf, "amin": inf, "prod": 1}


@public("_segment_reduce")
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """Reduces segments of `axis`, given by `lengths` or `offsets`: "sum", "mean", "max", "min" or "prod".

    With `initial` every segment begins with that value. Without it an empty one has the sum 0, the product 1, the
    maximum -inf, the minimum inf, and the mean NaN. On a device lengths are not compared with the data.

    >>> import tritensor as torch
    >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "max", lengths=torch.tensor([2, 1]))
    tensor([2., 3.])

    Raises:
        ShapeError: segments that do not fit the data.
    """
    reduce = _NAMES.get(reduce, reduce)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise ShapeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise ShapeError("segment_reduce(): indices based reduction is not supported yet.")
    given = lengths if offsets is None else offsets
    if given is None:
        raise ShapeError("segment_reduce(): Either lengths or offsets must be defined.")
    axis = layout.normalize_dim(axis, data.ndim)
    if axis != given.ndim - 1:
        raise RangeError(f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}.")
    if given.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(f"\"_segment_reduce\" not implemented for '{given.dtype}'", remedy="use int64")
    if not data.dtype.is_floating_point:
        raise UnsupportedError(f"\"_segment_reduce_cpu\" not implemented for '{data.dtype}'")
    with no_grad():
        ends = given.to(dtypes.int64)
        if offsets is None:
            if not unsafe and not given._off_host:
                _check_lengths(given, data.shape[axis])
            ends = cat([ends.new_zeros((*ends.shape[:-1], 1)), ends.cumsum(-1)], -1)
        size, count = data.shape[axis], ends.shape[-1] - 1
        # an element's segment is how many offsets are at it or before; 0 is before the first segment
        marks = ends.new_zeros((*ends.shape[:-1], size + 1)).scatter_add(-1, ends, ends.new_ones(ends.shape))
        segment = marks.cumsum(-1).narrow(-1, 0, size).reshape(*marks.shape[:-1], size, *(1,) * (data.ndim - axis - 1))
    shape = [*data.shape[:axis], count + 2, *data.shape[axis + 1 :]]
    start = data.new_full(shape, _START.get(reduce, 0))
    how = "sum" if reduce == "mean" else reduce
    found: Any = scatter_reduce(start, axis, segment.expand(data.shape), data, how, include_self=False)
    found = found.narrow(axis, 1, count)
    if initial is not None:
        if reduce in ("sum", "mean"):
            found = found + initial
        elif reduce == "prod":
            found = found * initial
        else:
            found = registry["where"](found < initial if reduce == "amax" else found > initial, initial, found)
    if reduce == "mean":
        counts: Any = ends[..., 1:] - ends[..., :-1]
        counts = counts.clamp_min(0 if initial is None else 1).to(data.dtype)
        found = found / counts.reshape(*counts.shape, *(1,) * (data.ndim - axis - 1))
    return called("SegmentReduceBackward0", found)


def _check_lengths(lengths: Tensor, size: int) -> None:
    if bool((lengths < 0).any()):
        raise ShapeError("lengths contains negative value!")
    if bool((lengths.sum(-1) != size).any()):
        raise ShapeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            "!unsafe."
        )


@public(method=True, out=takes_out(SELECTED))
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The indices of the first `size` nonzero elements, filled up with `fill_value`.

    >>> import tritensor as torch
    >>> torch.nonzero_static(torch.tensor([3, 0, 5]), size=3)
    tensor([[ 0],
            [ 2],
            [-1]])

    Raises:
        ShapeError: a negative size.
    """
    if size < 0:
        raise ShapeError("nonzero_static: 'size' must be an non-negative integer")
    if input.is_meta:
        return input.new_empty((size, input.ndim), dtype=dtypes.int64)
    found = input.nonzero()[:size]
    return cat([found, found.new_full((size - len(found), input.ndim), fill_value)])
