"""Norms of matrices: sums and maxima of their elements, or of their singular values."""

from __future__ import annotations

from typing import Any

from ...autograd.gradients import called
from ...autograd.levels import followed
from ...errors import DtypeError, ShapeError, require
from ...ground.arguments import check_tensor
from ...kernels.reduction import extremes, sums
from ...operators import registry
from ...operators.rules import is_half
from ...tensors import Tensor
from ...types import dtypes, layout

_ORDERS = (1.0, -1.0, 2.0, -2.0, float("inf"), -float("inf"))


def check_norm_dtype(name: str, input: Tensor, dtype: Any) -> None:
    """Raise unless a norm takes the tensor, and `dtype` to compute in.

    Raises:
        DtypeError: integers, or a dtype that is no wider floating (for complex tensors, complex) dtype.
    """
    if input.dtype.category < dtypes.FLOATING:
        raise DtypeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {input.dtype.legacy}",
            remedy="convert the tensor first, as in x.float()",
        )
    dtype = dtypes.of_argument(dtype) or dtype
    if dtype is None:
        return
    words = f"{name}: dtype should be floating point or complex, but got {dtype.legacy}"
    if dtype.category >= dtypes.FLOATING:
        if dtype.is_complex == input.is_complex():
            if dtypes.promote_types(input.dtype, dtype) is dtype:
                return
            words = (
                f"{name}: the dtype of the input ({input.dtype.legacy}) should be convertible without narrowing to the "
                f"specified dtype ({dtype.legacy})"
            )
        else:
            kind = "complex" if input.is_complex() else "real"
            words = f"{name}: dtype should be {kind} for {kind} inputs, but got {dtype.legacy}"
    raise DtypeError(words, remedy="convert the tensor or the result with .to(dtype)")


def singular_values(A: Tensor) -> Tensor:
    """The singular values of stacks of matrices, in falling order."""
    return registry["linalg_svd"](A, full_matrices=False, compute_uv=followed(A))[1]


def matrix_norm(A: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """The norms of the matrices along two dimensions, or of a matrix where `dim` is None; see `linalg.matrix_norm`.

    Raises:
        ShapeError: another order, or other dimensions. DtypeError: integers, a narrower dtype, or half precision with
            singular values.
    """
    name = "linalg.matrix_norm"
    check_tensor("linalg_matrix_norm", "A", 1, A)
    text = isinstance(ord, str)
    order = ord if text else float(ord)
    if order not in (("fro", "nuc") if text else _ORDERS):
        raise ShapeError(f"{name}: Order {ord} not supported.", "it is 'fro', 'nuc', or 1, 2 or inf of either sign")
    require(A.ndim >= 2, ShapeError, "{}: The input tensor A must have at least 2 dimensions.", name)
    dims = range(A.ndim) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    if len(dims) != 2:
        told = f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dims))}"
        raise ShapeError(told, f"the tensor has shape {A.shape}")
    check_norm_dtype(name, A, None)
    spectral = order in ("nuc", 2.0, -2.0)
    if spectral and is_half(A.dtype):
        words = f"{name}: Low precision dtypes not supported. Got {A.dtype.legacy}"
        raise DtypeError(words, remedy="convert the tensor with .float()")
    first, second = [layout.normalize_dim(each, A.ndim) for each in dims]
    if first == second:
        raise ShapeError(f"{name}: dims must be different. Got ({dims[0]}, {dims[1]})")
    check_norm_dtype(name, A, dtype)
    A = A if dtype is None else A.to(dtype)
    if spectral:
        values = singular_values(A.movedim((first, second), (-2, -1)))
        total = order == "nuc"
        found = called("SumBackward1", values.sum(-1, keepdim)) if total else _extreme(order, values, -1, keepdim)
        return found.unsqueeze(-1).movedim((-2, -1), (first, second)) if keepdim else found
    size = A.abs() if A.is_complex() else A
    if order == "fro":
        return sums.norm(size, dim=(first, second), keepdim=keepdim)
    along, across = (first, second) if abs(order) == 1 else (second, first)
    lengths = sums.norm(size, p=1.0, dim=(along,), keepdim=keepdim)
    return _extreme(order, lengths, across if keepdim or across < along else across - 1, keepdim)


def _extreme(order: float, x: Tensor, dim: int, keepdim: bool) -> Tensor:
    """The largest along a dimension, 0 where there are no elements; for a negative order the smallest."""
    if order > 0 and not x.shape[dim]:
        return sums.sum(x, dim=(dim,), keepdim=keepdim)
    return (extremes.amax if order > 0 else extremes.amin)(x, dim=(dim,), keepdim=keepdim)
