"""Linear algebra of the standard: products, which the namespace has too, and what `tritensor.linalg` computes."""

from __future__ import annotations

from collections import ChainMap
from typing import Any

from .. import functional, linalg
from ..errors import ShapeError
from ..functional.views.views import broadcast_tensors
from ..ground.public import FUNCTIONAL
from ..tensors import Tensor
from .arrays import Array
from .declaring import functions_of
from .statistics import reduction

_TABLE = """
cholesky(x, /, *, upper=False)
cross(x1, x2, /, *, axis=-1): The cross products of vectors of three elements along an axis, in the common dtype.
det(x, /)
diagonal(x, /, *, offset=0): The diagonals of matrices, as a view.
eigh(x, /)
eigvalsh(x, /): The eigenvalues, rising, of Hermitian matrices.
inv(x, /)
matmul(x1, x2, /): The products of matrices, or with vectors, in the common dtype.
matrix_norm(x, /, *, keepdims=False, ord='fro'): The norms of matrices: "fro", "nuc", 1, 2, inf, and their negatives.
matrix_power(x, n, /)
matrix_rank(x, /, *, rtol=None): The number of singular values that are greater than `rtol` times the greatest; int64.
matrix_transpose(x, /): `x` with its last two axes swapped, as a view.
outer(x1, x2, /): The products of each element of a vector with each of another, in the common dtype.
pinv(x, /, *, rtol=None): The pseudoinverses of matrices; singular values up to `rtol` times the greatest count as 0.
qr(x, /, *, mode='reduced')
slogdet(x, /)
solve(x1, x2, /): The solution of `x1 @ solution = x2`; `x2` is a vector if it has one axis, else matrices.
svd(x, /, *, full_matrices=True)
svdvals(x, /): The singular values of matrices, in falling order.
tensordot(x1, x2, /, *, axes=2) = tensordot(axes=dims): Sums of products over the last axes of `x1`, the first of `x2`.
trace(x, /, *, offset=0, dtype=None): The sums of the diagonals of matrices, in the dtype of `sum`.
vecdot(x1, x2, /, *, axis=-1): The dot products of vectors along an axis, with the conjugate of `x1`.
vector_norm(x, /, *, axis=None, keepdims=False, ord=2): The norms of order `ord` of vectors along axes, or of all.
"""


def _solve(x1: Tensor, x2: Tensor) -> Tensor:
    # PyTorch takes an x2 of one axis less for a stack of vectors; an axis of extent 1 makes it matrices
    return linalg.solve(x1, x2[None] if 1 < x2.ndim < x1.ndim else x2)


def _vecdot(x1: Tensor, x2: Tensor, *, axis: int = -1) -> Tensor:
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError("vecdot: vectors of different lengths", f"{x1.shape[axis]} and {x2.shape[axis]}")
    return (functional.conj_physical(x1) * x2).sum(axis, dtype=x1.dtype)


def _vector_norm(x: Tensor, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    if axis != ():
        return linalg.vector_norm(x, ord, axis, keepdims)
    return (x != 0).to(x.abs().dtype) if ord == 0 else x.abs()


_OWN = {
    "cross": lambda x1, x2, *, axis=-1: linalg.cross(*broadcast_tensors(x1, x2), dim=axis),
    "matrix_transpose": lambda x: x.mT,
    "solve": _solve,
    "trace": lambda x, *, offset=0, **named: reduction("sum")(functional.diagonal(x, offset, -2, -1), axis=-1, **named),
    "vecdot": _vecdot,
    "vector_norm": _vector_norm,
}
_named = functions_of(__name__, _TABLE, ChainMap(_OWN, vars(linalg), FUNCTIONAL))
globals().update(_named)
__all__ = [*_named]
Array.__matmul__ = lambda self, other: _named["matmul"](self, other)
