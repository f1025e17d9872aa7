"""Norms of vectors and of matrices, and condition numbers."""

from __future__ import annotations

from typing import Any

from ..autograd.gradients import called
from ..errors import ShapeError, require
from ..functional.elementwise.pointwise import where
from ..functional.reduction import matrix_norms, reductions
from ..ground.arguments import wrong_type
from ..ground.public import public
from ..kernels.reduction.functions import Dim
from ..operators.outputs import takes_out
from ..tensors import Tensor
from ..types import Dtype
from . import solvers
from .matrices import check_matrices

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]

_listed = public(package=False, functional=False, out=takes_out())
_listed_in_float32 = public(package=False, functional=False, out=takes_out(), autocast={"cuda": "float32"})
_older = public(functional=False, out=takes_out())


@_listed_in_float32
def vector_norm(x: Tensor, ord: float = 2, dim: Dim = None, keepdim: bool = False, *, dtype: Dtype = None) -> Tensor:
    """The vector norm of all elements, or along `dim`: the ord-th root of sum(|x| ** ord).

    Args:
        ord: a number; infinity of either sign for the largest or smallest |x|, 0 for the count of what is not 0.
        dtype: computed in; no narrower than the tensor's.

    >>> import tritensor as torch
    >>> torch.linalg.vector_norm(torch.tensor([[3., 4.], [6., 8.]]), dim=1)
    tensor([ 5., 10.])

    Raises:
        DtypeError: integers, or a narrower dtype. ShapeError: no elements to take the largest or smallest of.
    """
    if isinstance(ord, str) or not hasattr(ord, "__float__"):
        raise wrong_type("linalg_vector_norm", "ord", "Number", ord)
    matrix_norms.check_norm_dtype("linalg.vector_norm", x, dtype)
    return reductions.norm(x, ord, dim, keepdim, dtype)


@_listed_in_float32
def matrix_norm(
    A: Tensor, ord: float | str = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Dtype = None
) -> Tensor:
    """The matrix norm, Frobenius unless `ord` says otherwise, over two dimensions.

    Args:
        ord: "fro" for the root of the sum of squares; 1 and -1 (inf and -inf) for the largest and the smallest sum of
            |x| of a column (a row); 2 and -2 for the largest and the smallest singular value, "nuc" for their sum.
        dtype: computed in; no narrower than the tensor's.

    >>> import tritensor as torch
    >>> A = torch.tensor([[3., 0.], [4., 5.]])
    >>> [torch.linalg.matrix_norm(A, ord).item() for ord in (1, float("inf"))]
    [7.0, 9.0]

    Raises:
        ShapeError: another order, or dimensions that are not two. DtypeError: integers, a narrower dtype, or half
            precision with singular values.
    """
    return matrix_norms.matrix_norm(A, ord, dim, keepdim, dtype)


@_listed
def norm(
    A: Tensor, ord: float | str | None = None, dim: Dim | None = None, keepdim: bool = False, *, dtype: Dtype = None
) -> Tensor:
    """A norm: `matrix_norm` of an `ord` and a matrix or of two dimensions, else `vector_norm`."""
    dims = dim if dim is None or isinstance(dim, (tuple, list)) else (dim,)
    if isinstance(ord, str):
        return matrix_norms.matrix_norm(A, ord, (-2, -1) if dims is None else dims, keepdim, dtype)
    words = "linalg.norm: If dim is specified, it must be of length 1 or 2. Got {}"
    require(dims is None or len(dims) in (1, 2), ShapeError, words, None if dims is None else list(dims))
    words = "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D."
    require(dims is not None or ord is None or A.ndim in (1, 2), ShapeError, words, A.ndim)
    if ord is not None and (A.ndim if dims is None else len(dims)) == 2:
        return matrix_norms.matrix_norm(A, ord, (0, 1) if dims is None else dims, keepdim, dtype)
    return vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype)


@public(package=False, functional=False, out=takes_out(), autocast={"cpu": "float32"})
def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number of matrices: the norm of order `p`, 2 unless given, times that of the inverse.

    Of a singular matrix it is infinite. With p = 2 and -2 the matrices need not be square.

    >>> import tritensor as torch
    >>> torch.linalg.cond(torch.tensor([[2., 0.], [0., 0.5]]))
    tensor(4.)
    """
    check_matrices("linalg.cond", A, square=False)
    known = p in (None, "fro", "nuc") or (not isinstance(p, str) and abs(p) in (1, 2, float("inf")))
    require(known, ShapeError, "linalg.cond got an invalid norm type: {}", p)
    if not A.numel():
        return A.abs().new_zeros(A.shape[:-2])
    if p not in (None, 2, -2):
        check_matrices(f"linalg.cond(ord={p})", A)
    if p in (None, 2, -2, "nuc"):
        values = matrix_norms.singular_values(A)
        top, bottom = values[..., :1], values[..., -1:]
        if p == "nuc":
            return values.sum(-1) * values.reciprocal().sum(-1)
        return (bottom / top if p == -2 else top / bottom).squeeze(-1)
    inverse, info = solvers.inverse(A)
    inverse = where((info > 0)[..., None, None], float("inf"), inverse)
    return (matrix_norm(A, p) * matrix_norm(inverse, p)).nan_to_num(float("inf"), float("inf"), -float("inf"))


@public(functional=False, out=takes_out(), autocast={"cuda": "float32"})
def nuclear_norm(input: Tensor, dim: Dim = (-2, -1), keepdim: bool = False) -> Tensor:
    """The nuclear norm of matrices: `linalg.matrix_norm` with "nuc"."""
    return matrix_norms.matrix_norm(input, "nuc", dim, keepdim, None)


@_older
def frobenius_norm(input: Tensor, dim: Dim, keepdim: bool = False) -> Tensor:
    """The Frobenius norm: `linalg.vector_norm` along one dimension or two."""
    count = len(dim) if isinstance(dim, (tuple, list)) else 1
    require(count < 3, ShapeError, "Expected at most 2 dimensions, but got {} dimensions instead.", count)
    return called("NormBackward1", reductions.norm(input, 2.0, dim, keepdim))
