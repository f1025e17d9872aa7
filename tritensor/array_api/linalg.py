"""Linear algebra of the standard: products, which the namespace has too, and what `tritensor.linalg` computes.

Matrices are the last two axes, and all others a stack of them. Tuples are PyTorch's named ones, whose names are the
standard's.
"""

from __future__ import annotations

from typing import Any

from .. import functional, linalg
from ..errors import ShapeError, explain
from ..functional.views import broadcast_tensors
from ..tensor import Tensor
from .arrays import Array, declared
from .data_types import promoted
from .statistics import _summed

_TEXTS = """
cholesky: The triangular L with `x = L @ L.mH` of positive definite matrices, or with `upper` its conjugate transpose.
cross: The cross products of vectors of three elements along an axis, in the dtype that both promote to.
det: The determinants of square matrices.
diagonal: The diagonals of matrices, as a view.
eigh: The eigenvalues, in rising order, and the eigenvectors of symmetric or Hermitian matrices.
eigvalsh: The eigenvalues, in rising order, of symmetric or Hermitian matrices.
inv: The inverses of square matrices.
matmul: The products of matrices, or with vectors, in the dtype that both promote to.
matrix_norm: The norms of matrices: "fro", "nuc", 1, 2, inf, and of these numbers the negative ones.
matrix_power: Square matrices multiplied `n` times, their inverses for a negative `n`.
matrix_rank: How many singular values of matrices are greater than `rtol` times the greatest; int64.
outer: The products of each element of the vector `x1` with each of the vector `x2`, in the dtype that both promote to.
pinv: The pseudoinverses of matrices; singular values up to `rtol` times the greatest count as 0.
qr: Q with orthonormal columns and the upper triangular R, with `x = Q @ R`; `mode` is "reduced" or "complete".
slogdet: The signs of the determinants of square matrices, and the logarithms of their absolute values.
solve: The solution of `x1 @ solution = x2`, where `x2` is a vector if it has one axis, and matrices otherwise.
svd: U, the singular values in falling order, and Vh, with `x = U * S @ Vh`.
svdvals: The singular values of matrices, in falling order.
tensordot: The sums of products over the last axes of `x1` and the first of `x2`, so many, or over those named.
trace: The sums of the diagonals of matrices, in the dtype of `sum`.
vector_norm: The norms of order `ord` of vectors along axes, or of all elements.
"""


def _matrix_transpose(x: Tensor, /) -> Tensor:
    """`x` with its last two axes swapped, as a view.

    Raises:
        ShapeError: it has fewer than two.
    """
    if x.ndim < 2:
        raise ShapeError(explain(f"matrix_transpose: a matrix has two axes, and x has {x.ndim}"))
    return x.mT  # type: ignore[no-any-return]


def _vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The dot products of vectors along an axis, with the conjugate of `x1`, in the dtype that both promote to.

    Raises:
        ShapeError: the extents of the axis differ.
    """
    x1, x2 = promoted("vecdot", x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(explain("vecdot: vectors of different lengths", f"{x1.shape[axis]} and {x2.shape[axis]}"))
    return (functional.conj_physical(x1) * x2).sum(axis, dtype=x1.dtype)  # type: ignore[no-any-return]


def _solve(x1: Any, x2: Any) -> Tensor:
    x1, x2 = promoted("solve", x1, x2)
    # PyTorch takes an x2 of one axis less for a stack of vectors; an axis of extent 1 makes it matrices
    return linalg.solve(x1, x2[None] if 1 < x2.ndim < x1.ndim else x2)


def _vector_norm(x: Tensor, axis: Any, keepdims: bool, ord: Any) -> Tensor:
    if axis != ():
        return linalg.vector_norm(x, ord, axis, keepdims)
    return (x != 0).to(x.abs().dtype) if ord == 0 else x.abs()  # type: ignore[no-any-return]


_ONE, _TWO = ("det", "eigh", "eigvalsh", "inv", "slogdet", "svdvals"), ("matmul", "outer")


def _of_one(compute: Any) -> Any:
    return lambda x, /: compute(x)


def _of_two(name: str) -> Any:
    return lambda x1, x2, /: getattr(functional, name)(*promoted(name, x1, x2))


_made = declared(
    __name__,
    {
        **{name: _of_one(getattr(linalg, name)) for name in _ONE},
        **{name: _of_two(name) for name in _TWO},
        "cholesky": lambda x, /, *, upper=False: linalg.cholesky(x, upper=upper),
        "cross": lambda x1, x2, /, *, axis=-1: linalg.cross(*broadcast_tensors(*promoted("cross", x1, x2)), dim=axis),
        "diagonal": lambda x, /, *, offset=0: functional.diagonal(x, offset, -2, -1),
        "matrix_norm": lambda x, /, *, keepdims=False, ord="fro": linalg.matrix_norm(
            x, "fro" if ord is None else ord, (-2, -1), keepdims
        ),
        "matrix_power": lambda x, n, /: linalg.matrix_power(x, n),
        "matrix_rank": lambda x, /, *, rtol=None: linalg.matrix_rank(x, rtol=rtol),
        "matrix_transpose": _matrix_transpose,
        "pinv": lambda x, /, *, rtol=None: linalg.pinv(x, rtol=rtol),
        "qr": lambda x, /, *, mode="reduced": linalg.qr(x, mode),
        "solve": lambda x1, x2, /: _solve(x1, x2),
        "svd": lambda x, /, *, full_matrices=True: linalg.svd(x, full_matrices),
        "tensordot": lambda x1, x2, /, *, axes=2: functional.tensordot(*promoted("tensordot", x1, x2), axes),
        "trace": lambda x, /, *, offset=0, dtype=None: _summed(
            "sum", functional.diagonal(x, offset, -2, -1), -1, dtype, False
        ),
        "vecdot": _vecdot,
        "vector_norm": lambda x, /, *, axis=None, keepdims=False, ord=2: _vector_norm(x, axis, keepdims, ord),
    },
    _TEXTS,
)
globals().update(_made)
Array.__matmul__ = lambda self, other: _made["matmul"](self, other)  # type: ignore[method-assign]

__all__ = list(_made)
