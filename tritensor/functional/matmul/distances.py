"""Distances between vectors, and bilinear forms of two."""

from __future__ import annotations

from math import prod

import numpy as np

from ...autograd.gradients import called
from ...errors import DtypeError, ShapeError
from ...ground.arguments import check_tensor, number_in, wrong_type
from ...ground.public import public
from ...kernels.elementwise.arithmetic import where
from ...operators.inplace import in_place_form
from ...operators.outputs import Into, takes_out
from ...operators.rules import is_half
from ...tensors import Tensor, wrap
from ...types import layout
from ...types.dtypes import FLOATING
from ..reduction.reductions import norm
from ..views.joining import cat
from .linear_algebra import linear


@public()
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The pairwise distance of vectors: the p-norm of `x1 - x2 + eps` along the last dimension; the two broadcast.

    >>> import tritensor as torch
    >>> torch.nn.functional.pairwise_distance(torch.tensor([[3.0, 4.0]]), torch.zeros(2))
    tensor([5.0000])
    """
    check_tensor("pairwise_distance", "x1", 1, x1)
    check_tensor("pairwise_distance", "x2", 2, x2)
    return called("NormBackward1", norm(x1 - x2 + eps, p, -1, keepdim))


@public(autocast={"cuda": "float32"})
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Pairwise distances of the rows of a matrix (N, M): p-norms of their differences, N * (N - 1) / 2 numbers.

    >>> import tritensor as torch
    >>> torch.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])

    Raises:
        ShapeError: another rank, or a negative p. DtypeError: integers.
    """
    check_tensor("pdist", "input", 1, input)
    if input.ndim != 2:
        raise ShapeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.dtype.is_floating_point:
        raise DtypeError("pdist only supports floating-point dtypes", remedy="convert it, as in input.float()")
    if not p >= 0:
        raise ShapeError("pdist only supports non-negative p values")
    first, second = (wrap(places).to(input.device) for places in np.triu_indices(len(input), 1))
    gaps = input[first] - input[second]
    made = norm(gaps, p, 1)
    made = made if p else where(made < 0, gaps.sum(1), made)  # the count of differences, with a gradient of zeros
    return called("PdistBackward0", made)


@public(method=True, autocast={"cuda": "float32"})
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The distance of two tensors: the p-norm of input - other; the two broadcast.

    >>> import tritensor as torch
    >>> torch.dist(torch.tensor([3.0, 4.0]), torch.zeros(2))
    tensor(5.)

    Raises:
        DtypeError: integers alone.
    """
    check_tensor("dist", "input", 1, input)
    check_tensor("dist", "other", 2, other)
    gap = input - other
    if gap.dtype.category < FLOATING:
        words = f"norm(): input dtype should be either floating point or complex. Got {gap.dtype.legacy} instead."
        raise DtypeError(words)
    return called("DistBackward0", norm(gap, p))


@public(method=True, in_place=in_place_form, out=takes_out(Into("same", "partly")), autocast={"cuda": "float32"})
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Renormalises: scales the slices along `dim` whose p-norm is above `maxnorm` to that norm.

    >>> import tritensor as torch
    >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])

    Raises:
        ShapeError: a p that is not positive, a negative maxnorm, or fewer than two dimensions. DtypeError: integers.
    """
    check_tensor("renorm", "input", 1, input)
    for wrong, words in (
        (isinstance(p, complex), "renorm: p must be real-valued"),
        (isinstance(p, complex) or not p > 0, "renorm: non-positive-norm not supported"),
        (isinstance(maxnorm, complex), "renorm: maxnorm must be real-valued"),
        (isinstance(maxnorm, complex) or maxnorm < 0, f"renorm: expected maxnorm to be >= 0 but got {maxnorm}"),
        (input.ndim < 2, f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions"),
    ):
        if wrong:
            raise ShapeError(words)
    kept = layout.normalize_dim(dim, input.ndim)
    x = input.float() if is_half(input.dtype) else input
    sizes = norm(x, p, [each for each in range(x.ndim) if each != kept], keepdim=True)
    made = x * where(sizes > maxnorm, maxnorm / (sizes + 1e-7), 1)
    return called("RenormBackward0", made.to(input.dtype))


_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
_BLOCK = 1 << 22  # differences that are held at once


@public(autocast={"cpu": "float32", "cuda": "float32"})
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = _MODES[0]) -> Tensor:
    """Pairwise distances (..., P, R): the p-norms of each row of `x1` (..., P, M) less each of `x2` (..., R, M).

    >>> import tritensor as torch
    >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])

    Args:
        p: not negative; 0 counts the elements that differ, infinity is the largest difference.
        compute_mode: whether distances of p = 2 are computed by a product of matrices, which is faster and loses digits
            where rows are near: from 26 rows on unless "use_mm_for_euclid_dist" or "donot_use_mm_for_euclid_dist".

    Raises:
        ShapeError: other ranks, different M, batches that do not broadcast, or a negative p. DtypeError: integers, or
            different dtypes. ValueError: another mode.
    """
    check_tensor("cdist", "x1", 1, x1)
    check_tensor("cdist", "x2", 2, x2)
    if compute_mode is not None and compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    p = number_in(p)
    if not isinstance(p, (int, float)):
        raise wrong_type("cdist", "p", "float", p, 3)
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise ShapeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.dtype.is_floating_point:
            words = f"cdist only supports floating-point dtypes, {name} got: {x.dtype.legacy}"
            raise DtypeError(words, remedy="convert it with .float()")
    (rows, size), (columns, other) = x1._data.shape[-2:], x2._data.shape[-2:]
    if size != other:
        raise ShapeError(f"X1 and X2 must have the same number of columns. X1: {size} X2: {other}")
    if not p >= 0:
        raise ShapeError("cdist only supports non-negative p values")
    batch = layout.broadcast_shapes(x1._data.shape[:-2], x2._data.shape[:-2])
    if x1.dtype is not x2.dtype:
        raise DtypeError(f"expected scalar type {x1.dtype.legacy} but found {x2.dtype.legacy}")
    if not prod((*batch, rows, columns, size)):
        return called("CdistBackward0", (x1.sum(-1).unsqueeze(-1) + x2.sum(-1).unsqueeze(-2)) * 0)
    mode = _MODES.index(compute_mode or _MODES[0])
    if p == 2 and (mode == 1 or (mode == 0 and (rows > 25 or columns > 25))):
        return called("ViewBackward0", _by_product(x1, x2))
    step = max(1, _BLOCK // prod((*batch, columns, size)))
    parts = [_direct(each, x2, p) for each in x1.split(step, -2)]
    return called("CdistBackward0", parts[0] if len(parts) == 1 else cat(parts, -2))


def _direct(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    gaps = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    found = norm(gaps, p, -1)
    return found if p else where(found < 0, gaps.sum(-1), found)  # a count, with a gradient of zeros


def _by_product(x1: Tensor, x2: Tensor) -> Tensor:
    """The roots of |x|^2 - 2 x y + |y|^2; their gradient is 0 where they are 0."""
    squares, others = ((x * x).sum(-1, True) for x in (x1, x2))
    ones, more = squares.new_ones(squares.shape), others.new_ones(others.shape)
    found = cat((x1 * -2, squares, ones), -1) @ cat((x2, more, others), -1).mT
    if not found._needs:
        return found.clamp_min_(0).sqrt_()
    found = found.clamp_min(0)
    return where(found == 0, 0, where(found == 0, 1, found).sqrt())


@public(autocast={"cpu": "apart", "cuda": "widest"})
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Applies a bilinear transformation: `input1 @ weight[k] @ input2 + bias[k]` for each k.

    Computed as one product of matrices, of all products of two elements.

    >>> import tritensor as torch
    >>> torch.bilinear(torch.tensor([1.0, 2.0]), torch.tensor([3.0]), torch.ones(4, 2, 1))
    tensor([9., 9., 9., 9.])

    Args:
        input1, input2: (..., in1) and (..., in2), of the same other dimensions.
        weight: (out, in1, in2).
        bias: (out,).

    Raises:
        ShapeError: shapes that do not fit together. DtypeError: different dtypes.
    """
    for position, (name, x) in enumerate((("input1", input1), ("input2", input2), ("weight", weight))):
        check_tensor("bilinear", name, position + 1, x)
    if not input1.dtype is input2.dtype is weight.dtype:
        found = f"input1: {input1.dtype}, input2: {input2.dtype}, weight: {weight.dtype}"
        raise DtypeError(f"All tensors must have the same dtype, got {found}", remedy="convert with .to(dtype)")
    if input1.ndim != input2.ndim:
        raise ShapeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for dim, (one, other) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if one != other:
            raise ShapeError(f"bilinear(): input batch dimensions do not match at dim {dim}: got {one} and {other}")
    if weight.ndim != 3:
        raise ShapeError(f"bilinear(): weight must have 3 dimensions, got {weight.ndim}")
    sizes = [("input1", input1.shape[-1], weight.shape[1]), ("input2", input2.shape[-1], weight.shape[2])]
    for name, size, wanted in sizes if bias is None else [*sizes, ("bias", len(bias), len(weight))]:
        if size != wanted:
            raise ShapeError(f"bilinear(): {name} size does not match weight size: got {size} but expected {wanted}")
    pairs = (input1.unsqueeze(-1) * input2.unsqueeze(-2)).flatten(-2)
    made = linear(pairs, weight.flatten(1), bias)
    return called("ViewBackward0" if bias is None else "AddBackward0", made)
