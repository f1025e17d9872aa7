"""The type stub of `tritensor.array_api.linalg`, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from tritensor.tensors import Tensor
from tritensor.types import dtypes
from tritensor.types.devices import device
from tritensor.types.dtypes import dtype
from typing import Any

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

def cholesky(x: Tensor, /, *, upper: Any = False) -> Tensor:
    """The Cholesky decomposition: the lower triangular L of A = L L^H, for positive-definite A; with `upper` its
    adjoint."""
def cross(x1: Tensor | complex, x2: Tensor | complex, /, *, axis: int | tuple[int, ...] | None = -1) -> Any:
    """The cross products of vectors of three elements along an axis, in the common dtype."""
def det(x: Tensor, /) -> Tensor:
    """The determinants of square matrices (..., n, n)."""
def diagonal(x: Tensor, /, *, offset: Any = 0) -> Tensor:
    """The diagonals of matrices, as a view."""
def eigh(x: Tensor, /) -> Any:
    """The eigenvalues of Hermitian matrices, rising, and orthonormal eigenvectors as columns."""
def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues, rising, of Hermitian matrices."""
def inv(x: Tensor, /) -> Tensor:
    """The inverses of square matrices (..., n, n)."""
def matmul(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The products of matrices, or with vectors, in the common dtype."""
def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = 'fro') -> Tensor:
    """The norms of matrices: "fro", "nuc", 1, 2, inf, and their negatives."""
def matrix_power(x: Tensor, n: Any, /) -> Tensor:
    """The n-th powers of square matrices; of a negative n those of their inverses."""
def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The number of singular values that are greater than `rtol` times the greatest; int64."""
def matrix_transpose(x: Tensor, /) -> Any:
    """`x` with its last two axes swapped, as a view."""
def outer(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The products of each element of a vector with each of another, in the common dtype."""
def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudoinverses of matrices; singular values up to `rtol` times the greatest count as 0."""
def qr(x: Tensor, /, *, mode: Any = 'reduced') -> Any:
    """The QR decomposition: Q, of orthonormal columns, and the upper triangular R of A = Q R."""
def slogdet(x: Tensor, /) -> Any:
    """The signs of the determinants (of complex ones their directions) and the logarithms of their absolute values."""
def solve(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The solution of `x1 @ solution = x2`; `x2` is a vector if it has one axis, else matrices."""
def svd(x: Tensor, /, *, full_matrices: Any = True) -> Any:
    """The singular value decomposition A = U diag(S) V^H: U, S in falling order, and V^H, for A of shape (..., m, n)."""
def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of matrices, in falling order."""
def tensordot(x1: Tensor | complex, x2: Tensor | complex, /, *, axes: int | Sequence[Any] | None = 2) -> Tensor:
    """Sums of products over the last axes of `x1`, the first of `x2`."""
def trace(x: Tensor, /, *, offset: Any = 0, dtype: dtype | None = None) -> Any:
    """The sums of the diagonals of matrices, in the dtype of `sum`."""
def vecdot(x1: Tensor | complex, x2: Tensor | complex, /, *, axis: int | tuple[int, ...] | None = -1) -> Tensor:
    """The dot products of vectors along an axis, with the conjugate of `x1`."""
def vector_norm(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """The norms of order `ord` of vectors along axes, or of all."""
