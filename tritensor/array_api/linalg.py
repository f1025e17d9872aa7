"""Linear algebra of the standard: products, which the namespace has too, and what `tritensor.linalg` computes.

Matrices are the last two axes, and all others a stack of them. Tuples are PyTorch's named ones, whose names are the
standard's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .. import functional, linalg
from ..arguments import check_tensor
from ..dtypes import dtype
from ..errors import ShapeError, explain
from ..tensor import Tensor
from . import statistics
from .data_types import promoted
from .statistics import Axes

__all__ = [
    *("cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power"),
    *("matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot"),
    *("trace", "vecdot", "vector_norm"),
]


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, or with a vector, in the common dtype."""
    return functional.matmul(*promoted("matmul", x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """`x` with its last two axes swapped, as a view.

    Raises:
        ShapeError: it has fewer than two.
    """
    check_tensor("matrix_transpose", "x", 1, x)
    if x.ndim < 2:
        raise ShapeError(explain(f"matrix_transpose: a matrix has two axes, and x has {x.ndim}"))
    return x.mT  # type: ignore[no-any-return]


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The sum of products over the last axes of `x1` and the first of `x2`, so many, or over the axes named."""
    return functional.tensordot(*promoted("tensordot", x1, x2), axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The dot products of vectors along an axis, with the conjugate of `x1`, in the common dtype.

    Raises:
        ShapeError: the extents of the axis differ.
    """
    x1, x2 = promoted("vecdot", x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(explain("vecdot: the vectors have different lengths", f"{x1.shape[axis]} and {x2.shape[axis]}"))
    x1, x2 = functional.broadcast_tensors(x1, x2)
    return statistics.sum(x1.conj() * x2, axis=axis, dtype=x1.dtype)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three elements along an axis, in the common dtype."""
    return linalg.cross(*functional.broadcast_tensors(*promoted("cross", x1, x2)), dim=axis)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each element of the vector `x1` with each of the vector `x2`, in the common dtype."""
    return functional.outer(*promoted("outer", x1, x2))


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular L with `x = L @ L.mH` of positive definite matrices, or the conjugate transpose of it."""
    return linalg.cholesky(x, upper=upper)


def det(x: Tensor, /) -> Tensor:
    """The determinants of square matrices."""
    return linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices, as a view."""
    return functional.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> tuple[Tensor, Tensor]:
    """The eigenvalues, in rising order, and the eigenvectors of symmetric or Hermitian matrices."""
    return linalg.eigh(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues, in rising order, of symmetric or Hermitian matrices."""
    return linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverses of square matrices."""
    return linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Tensor:
    """The norms of matrices: "fro", "nuc", 1, 2, inf, and of these numbers the negative ones."""
    return linalg.matrix_norm(x, "fro" if ord is None else ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Square matrices multiplied `n` times, their inverses for a negative `n`."""
    return linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Tensor | float | None = None) -> Tensor:
    """How many singular values of matrices are greater than `rtol` times the greatest; int64."""
    return linalg.matrix_rank(x, rtol=rtol)


def pinv(x: Tensor, /, *, rtol: Tensor | float | None = None) -> Tensor:
    """The pseudoinverses of matrices; singular values up to `rtol` times the greatest count as 0."""
    return linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> tuple[Tensor, Tensor]:
    """Q with orthonormal columns and the upper triangular R, with `x = Q @ R`."""
    return linalg.qr(x, mode)


def slogdet(x: Tensor, /) -> tuple[Tensor, Tensor]:
    """The signs of the determinants of square matrices, and the logarithms of their absolute values."""
    return linalg.slogdet(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of `x1 @ solution = x2`, where `x2` is a vector if it has one axis, and matrices otherwise."""
    x1, x2 = promoted("solve", x1, x2)
    # PyTorch takes an x2 of one axis less for a stack of vectors; an axis of extent 1 makes it matrices
    return linalg.solve(x1, x2[None] if 1 < x2.ndim < x1.ndim else x2)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """U, the singular values in falling order, and Vh, with `x = U * S @ Vh`."""
    return linalg.svd(x, full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of matrices, in falling order."""
    return linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Tensor:
    """The sums of the diagonals of matrices, in the dtype of `sum`."""
    return statistics.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The norms of order `ord` of vectors along axes, or of all elements."""
    check_tensor("vector_norm", "x", 1, x)
    if axis == ():
        return (x != 0).to(x.abs().dtype) if ord == 0 else x.abs()  # type: ignore[no-any-return]
    return linalg.vector_norm(x, ord, axis, keepdims)


_: Any = None
