"""Factorisations by the names that they had before `linalg`, and those that are there alone."""

from __future__ import annotations

from typing import Any, NoReturn

from .. import return_types
from ..autograd.gradients import called
from ..errors import DtypeError, ShapeError
from ..functional.creation import zeros
from ..outputs import Into, takes_out
from ..public import method, public
from ..random import randn
from ..tensor import Tensor
from . import decompositions, factorizations
from .factorizations import NOT_POSITIVE, SINGULAR, factored, reflections, unpacked, without_gradient
from .matrices import Matrices, adjoint, check_info, check_matrices

_CAST = takes_out(Into("cast"))


@public(method=True, functional=False, out=_CAST)
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """`linalg.cholesky`.

    Raises:
        LinAlgError: a matrix is not positive-definite. ShapeError: matrices that are not square.
    """
    check_matrices("cholesky", input)
    found, info = decompositions.cholesky(input, upper=upper)
    check_info("cholesky", info, NOT_POSITIVE)
    return called("CholeskyBackward0", found)  # type: ignore[no-any-return]


@public(method=True, functional=False, out=_CAST)
def qr(input: Tensor, some: bool = True) -> return_types.qr:
    """`linalg.qr` with the mode "reduced", or "complete" unless `some`."""
    return return_types.qr(*factorizations.qr(input, "reduced" if some else "complete"))


@public(method=True, functional=False, out=_CAST)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> return_types.svd:
    """U, the singular values, and V, not its adjoint, of U diag(S) V^H: see `linalg.svd`.

    Args:
        some: of matrices that are not square leave out the columns of U or V that S has no number for.
        compute_uv: whether U and V are wanted; zeros otherwise.

    Raises:
        LinAlgError: no convergence, as of nan. ShapeError: fewer than two dimensions.
    """
    if input.ndim < 2:
        words = f"input should have at least 2 dimensions, but has {input.ndim} dimensions instead"
        raise ShapeError(f"linalg.svd: {words}")
    if compute_uv:
        U, S, Vh = factorizations.svd(input, full_matrices=not some)
        return return_types.svd(U, S, adjoint(Vh))
    made = [zeros(*input.shape[:-2], n, n, dtype=input.dtype, device=input.device) for n in input.shape[-2:]]
    return return_types.svd(made[0], factorizations.svdvals(input), made[1])


@public(method=True, functional=False)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """`linalg.lu_factor` as a tuple of LU and the pivots; with `get_infos` `linalg.lu_factor_ex`, which does not raise.

    Raises:
        LinAlgError: a pivot is zero. ShapeError: fewer than two dimensions, or `pivot=False`.
    """
    if out is not None:
        function = factorizations.lu_factor_ex if get_infos else factorizations.lu_factor
        return tuple(function(A, pivot=pivot, out=out))  # type: ignore[call-arg]
    found = factored("torch.lu_factor", A, pivot)
    if get_infos:
        return found
    check_info("torch.linalg.lu_factor", found[2], SINGULAR)
    return found[:2]


@public(functional=False, out=_CAST)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> return_types.lu_unpack:
    """P, L and U of `linalg.lu_factor`; empty those of the data or of the pivots that are not to be unpacked.

    >>> import tritensor as torch
    >>> torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [4.0, 2.0]]))).U
    tensor([[4.0000, 2.0000],
            [0.0000, 1.5000]])

    Raises:
        ShapeError: fewer than two dimensions. DtypeError: pivots that are not int32. LinAlgError: pivots out of range.
    """
    if LU_data.ndim < 2:
        words = f"Expected tensor with 2 or more dimensions. Got size: {list(LU_data.shape)} instead"
        raise ShapeError(f"torch.lu_unpack: {words}")
    if unpack_pivots and LU_pivots.dtype is not decompositions.INFO:
        raise DtypeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this "
            "function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    P, L, U = unpacked(LU_data, LU_pivots, unpack_data, unpack_pivots)
    return return_types.lu_unpack(P, called("LuUnpackBackward0", L), called("LuUnpackBackward0", U))


@public(method=True, functional=False, out=_CAST)
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """`linalg.lu_solve(LU_data, LU_pivots, input)`."""
    return factorizations.lu_solve(LU_data, LU_pivots, input)


@public(method=True, functional=False, out=_CAST)
def geqrf(input: Tensor) -> return_types.geqrf:
    """QR without Q: R, below it the vectors of the reflections whose product Q is, and their factors `tau`.

    For `linalg.householder_product` and `ormqr`. Without gradients, as in PyTorch.

    Raises:
        ShapeError: fewer than two dimensions.
    """
    if input.ndim < 2:
        raise ShapeError("torch.geqrf: input must have at least 2 dimensions.")
    return return_types.geqrf(*decompositions.geqrf(input))


@public(method=True, functional=False, out=_CAST)
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """`linalg.householder_product`."""
    return factorizations.householder_product(input, input2)


_MULTIPLIED = Matrices("ormqr_cpu")


@public(method=True, functional=False, out=_CAST)
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q @ input3, where Q is the square product of all reflections of `geqrf`'s results `input` and `input2`.

    Args:
        left: unless True, input3 @ Q.
        transpose: multiply by the adjoint of Q.

    Raises:
        ShapeError: shapes that do not fit. DtypeError: integers, or several dtypes.
    """
    tau, other = input2, input3
    for name, value in (("input", input), ("other", other)):
        if value.ndim < 2:
            raise ShapeError(f"torch.ormqr: {name} must have at least 2 dimensions.")
    place, (rows, count) = -2 if left else -1, input.shape[-2:]
    if tau.shape[-1:] != (min(other.shape[place], count),):
        raise ShapeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{place}], input.shape[-1])")
    if other.shape[place] != rows:
        raise ShapeError(f"torch.ormqr: other.shape[{place}] must be equal to input.shape[-2]")
    if input.ndim - tau.ndim != 1:
        raise ShapeError(
            f"torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} "
            f"and input.ndim is equal to {input.ndim}"
        )
    if input.ndim != other.ndim:
        raise ShapeError(
            "torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to "
            f"{other.ndim} and input.ndim is equal to {input.ndim}"
        )
    for name, batch in (("tau", tau.shape[:-1]), ("other", other.shape[:-2])):
        if batch != input.shape[:-2]:
            raise ShapeError(
                f"torch.ormqr: Expected batch dimensions of {name} to be equal to input.shape[:-2], but got "
                f"{list(batch)}"
            )
    for name, value in (("tau", tau), ("other", other)):
        if value.dtype is not input.dtype:
            raise DtypeError(
                f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype"
                f"{input.dtype.legacy} and {name} has dtype {value.dtype.legacy}"
            )
    _MULTIPLIED("ormqr", (input,))
    if not (input.numel() and tau.numel()):
        return without_gradient(other.clone(), input, tau)
    V, T = reflections(input, tau)
    T = adjoint(T) if transpose else T
    found = other - (V @ (T @ (adjoint(V) @ other)) if left else ((other @ V) @ T) @ adjoint(V))
    return called("OrmqrBackward0", found)  # type: ignore[no-any-return]


# ---- approximate, of few singular values ----------------------------------------------------------------------


def _basis(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """Orthonormal columns that span about the range of A - M: algorithm 4.4 of Halko et al., 2009 (arXiv:0909.4061)."""
    A = A if M is None else A - M
    Q = factorizations.qr(A @ randn(A.shape[-1], q, dtype=A.dtype, device=A.device))[0]
    for _ in range(niter):
        Q = factorizations.qr(A @ factorizations.qr(adjoint(A) @ Q)[0])[0]
    return Q  # type: ignore[no-any-return]


@public(functional=False)
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of about A = U diag(S) V^H, for A of shape (..., m, n) and of a rank of about `q`, by random vectors.

    Args:
        q: a little more than the rank: the columns of U and V.
        niter: more iterations are more exact.
        M: of A's shape or one that broadcasts to it; A - M is factorised. It is algorithm 5.1 of Halko et al., 2009.
    """
    q = 6 if q is None else q
    wide = A.shape[-2] < A.shape[-1]
    A, M = (adjoint(A), M if M is None else adjoint(M)) if wide else (A, M)
    Q = _basis(A, q, 2 if niter is None else niter, M)
    B = adjoint(Q) @ (A if M is None else A - M)
    U, S, Vh = factorizations.svd(B, full_matrices=False)
    U, V = Q @ U, adjoint(Vh)
    return (V, S, U) if wide else (U, S, V)


@public(functional=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """The principal directions V of the rows of A, of shape (..., m, n), and U and S of about A = U diag(S) V^T.

    Args:
        q: how many, min(6, m, n) unless given.
        center: whether the columns' means are subtracted first.

    Raises:
        ValueError: `q` or `niter` is out of range.
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center:
        A = A - A.mean(-2, keepdim=True)
    return svd_lowrank(A, q, niter=niter)  # type: ignore[no-any-return]


# ---- removed ----------------------------------------------------------------------------------------------------

_REMOVED = "This function was deprecated since version 1.9 and is now removed. "


@method()
@public(functional=False)
def symeig(input: Tensor, eigenvectors: bool = False, upper: bool = True, **options: Any) -> NoReturn:
    """Removed from PyTorch: `linalg.eigh` and `linalg.eigvalsh` take its place.

    Raises:
        ShapeError: always.
    """
    raise ShapeError(
        f"{_REMOVED}The default behavior has changed from using the upper triangular portion of the matrix by default "
        "to using the lower triangular portion.\n\nL, _ = torch.symeig(A, upper=upper) should be replaced with:\n"
        "L = torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L')\n\nand\n\nL, V = torch.symeig(A, eigenvectors=True) "
        "should be replaced with:\nL, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')"
    )


@method()
@public(functional=False)
def eig(self: Tensor, eigenvectors: bool = False, **options: Any) -> NoReturn:
    """Removed from PyTorch: `linalg.eig` and `linalg.eigvals` take its place.

    Raises:
        ShapeError: always.
    """
    raise ShapeError(
        f"{_REMOVED}`torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors "
        "mimicking complex tensors.\n\nL, _ = torch.eig(A) should be replaced with:\n"
        "L_complex = torch.linalg.eigvals(A)\n\nand\n\nL, V = torch.eig(A, eigenvectors=True) should be replaced with:"
        "\nL_complex, V_complex = torch.linalg.eig(A)"
    )
