"""Distances between vectors, and bilinear forms of two."""

from __future__ import annotations

import numpy as np

from ..arguments import check_tensor
from ..autograd.gradients import called
from ..errors import DtypeError, ShapeError, explain
from ..kernels.elementwise.arithmetic import where
from ..public import public
from ..tensor import Tensor, wrap
from .linear_algebra import linear
from .reductions import norm


@public()
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of `x1 - x2 + eps` along the last dimension; the two broadcast.

    >>> import tritensor as torch
    >>> torch.nn.functional.pairwise_distance(torch.tensor([[3.0, 4.0]]), torch.zeros(2))
    tensor([5.0000])
    """
    check_tensor("pairwise_distance", "x1", 1, x1)
    check_tensor("pairwise_distance", "x2", 2, x2)
    return called("NormBackward1", norm(x1 - x2 + eps, p, -1, keepdim))  # type: ignore[no-any-return]


@public()
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of the difference of each two rows of a matrix (N, M): N * (N - 1) / 2 numbers.

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
        raise DtypeError(explain("pdist only supports floating-point dtypes", remedy="convert it, as in input.float()"))
    if not p >= 0:
        raise ShapeError("pdist only supports non-negative p values")
    first, second = (wrap(places).to(input.device) for places in np.triu_indices(len(input), 1))
    gaps = input[first] - input[second]
    made = norm(gaps, p, 1)
    made = made if p else where(made < 0, gaps.sum(1), made)  # the count of differences, with a gradient of zeros
    return called("PdistBackward0", made)  # type: ignore[no-any-return]


@public()
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[k] @ input2` for each k, and `bias[k]` added.

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
        raise DtypeError(
            explain(f"All tensors must have the same dtype, got {found}", remedy="convert with .to(dtype)")
        )
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
    return called("ViewBackward0" if bias is None else "AddBackward0", made)  # type: ignore[no-any-return]
