"""Factorisations of matrices and of stacks of them, by LAPACK.

They are computed on the host. Tensors of a device are copied there and the results back, of which the first call of
each warns.
"""

from __future__ import annotations

from typing import Any

from .. import return_types
from ..autograd.gradients import called
from ..autograd.levels import followed
from ..autograd.tape import NOWHERE, record
from ..errors import DtypeError, ShapeError, explain
from ..functional.creation import empty
from ..functional.ranges import eye
from ..outputs import Into, takes_out
from ..public import public
from ..tensor import Tensor
from . import decompositions
from .matrices import adjoint as _adjoint
from .matrices import check_info, check_matrices, unit_lower
from .triangular import substituted

__all__ = [
    "cholesky",
    "cholesky_ex",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "qr",
    "svd",
    "svdvals",
]

NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{} is not positive-definite)."
)
_listed = public(package=False, functional=False, out=takes_out(Into("cast")))


@_listed
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L of A = L L^H, for positive-definite A of shape (..., n, n); with `upper` its adjoint.

    One triangle of A is read: the lower one, with `upper` the other.

    >>> import tritensor as torch
    >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])

    Raises:
        LinAlgError: a matrix is not positive-definite. ShapeError: matrices that are not square.
    """
    check_matrices("linalg.cholesky", input)
    found, info = decompositions.cholesky(input, upper=upper)
    check_info("linalg.cholesky", info, NOT_POSITIVE)
    return found


@_listed
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> return_types.linalg_cholesky_ex:
    """As `cholesky`, with `info` in place of an error: the order of the first minor that is not positive, or 0.

    The columns from that order on are not factorised then.
    """
    check_matrices("linalg.cholesky", input)
    found = return_types.linalg_cholesky_ex(*decompositions.cholesky(input, upper=upper))
    if check_errors:
        check_info("linalg.cholesky_ex", found.info, NOT_POSITIVE)
    return found


@_listed
def qr(A: Tensor, mode: str = "reduced") -> return_types.linalg_qr:
    """Q, of orthonormal columns, and the upper triangular R of A = Q R, for A of shape (..., m, n).

    Args:
        mode: "reduced": Q is (..., m, k) and R (..., k, n), with k = min(m, n). "complete": Q is (..., m, m). "r": R of
            "reduced", and an empty Q; there is no gradient then.

    Raises:
        ShapeError: fewer than two dimensions, or another mode.
    """
    check_matrices("linalg.qr", A, square=False)
    if mode not in ("reduced", "complete", "r"):
        raise ShapeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    return return_types.linalg_qr(*decompositions.qr(A, mode=mode))


def _check_driver(A: Tensor, driver: Any) -> None:
    if driver is not None and not (A.is_cuda and driver in ("gesvd", "gesvdj", "gesvda")):
        raise ShapeError(
            explain(
                "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.",
                f"it is {driver!r}; LAPACK's gesdd is used here",
                remedy="leave it out",
            )
        )


@_listed
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> return_types.linalg_svd:
    """U, the singular values S in falling order, and V^H of A = U diag(S) V^H, for A of shape (..., m, n).

    Args:
        full_matrices: U is (..., m, m) and V^H (..., n, n); else (..., m, k) and (..., k, n), with k = min(m, n).
        driver: a method of NVIDIA's library, for tensors of a device only, where it changes nothing.

    Gradients of U and V are infinite where two singular values are equal, and need a function that does not depend on
    the vectors' signs (of complex ones: phases).

    Raises:
        LinAlgError: no convergence, as of nan. ShapeError: fewer than two dimensions, or a driver on the CPU.
    """
    check_matrices("linalg.svd", A, square=False)
    _check_driver(A, driver)
    return return_types.linalg_svd(*decompositions.svd(A, full_matrices=full_matrices))


@_listed
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of `svd`, in falling order.

    >>> import tritensor as torch
    >>> torch.linalg.svdvals(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
    tensor([2., 1.])
    """
    check_matrices("linalg.svd", A, square=False)
    _check_driver(A, driver)
    return decompositions.svd(A, full_matrices=False, compute_uv=followed(A))[1]  # type: ignore[no-any-return]


@_listed
def eig(input: Tensor) -> return_types.linalg_eig:
    """The complex eigenvalues of matrices of shape (..., n, n), in no order, and eigenvectors of length 1 as columns.

    Gradients of the vectors need a function that does not depend on their phases.

    Raises:
        LinAlgError: infinite or nan elements. ShapeError: matrices that are not square.
    """
    check_matrices("linalg.eig", input)
    return return_types.linalg_eig(*decompositions.eig(input))


@_listed
def eigvals(input: Tensor) -> Tensor:
    """The eigenvalues of `eig`."""
    check_matrices("linalg.eigvals", input)
    return decompositions.eig(input, vectors=followed(input))[0]  # type: ignore[no-any-return]


def _check_triangle(input: Tensor, triangle: Any) -> str:
    check_matrices("linalg.eigh", input)
    if str(triangle).upper() not in ("L", "U"):
        raise ShapeError(f"Expected UPLO argument to be 'L' or 'U', but got {triangle}")
    return str(triangle).upper()


@_listed
def eigh(input: Tensor, UPLO: str = "L") -> return_types.linalg_eigh:
    """The eigenvalues of Hermitian matrices of shape (..., n, n), rising, and orthonormal eigenvectors as columns.

    Args:
        UPLO: the triangle that is read, "L" or "U"; the other one is its adjoint.

    >>> import tritensor as torch
    >>> torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    tensor([1., 3.])

    Raises:
        ShapeError: matrices that are not square, or another letter. LinAlgError: no convergence.
    """
    return return_types.linalg_eigh(*decompositions.eigh(input, UPLO=_check_triangle(input, UPLO)))


@_listed
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of `eigh`."""
    UPLO = _check_triangle(input, UPLO)
    return decompositions.eigh(input, UPLO=UPLO, vectors=followed(input))[0]  # type: ignore[no-any-return]


# ---- LU -------------------------------------------------------------------------------------------------------


def factored(name: str, A: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    """LU, pivots and info.

    Raises:
        ShapeError: fewer than two dimensions, or no pivots.
    """
    if A.ndim < 2:
        raise ShapeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead")
    if not pivot:
        raise ShapeError(
            explain(
                "linalg.lu_factor: LU without pivoting is not implemented on the CPU",
                "nor is it for tensors of a device, whose factorisations the host computes",
                remedy="leave pivot=False",
            )
        )
    return decompositions.lu(A)  # type: ignore[no-any-return]


SINGULAR = (
    "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
    "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)


@_listed
def lu_factor(A: Tensor, *, pivot: bool = True) -> return_types.linalg_lu_factor:
    """L and U of A = P L U in one matrix, for A of shape (..., m, n), and the row that each row was exchanged with.

    L has ones on its diagonal, which are left out; `pivots` counts from 1. For `lu_solve` and `torch.lu_unpack`.

    Raises:
        LinAlgError: a pivot is zero. ShapeError: fewer than two dimensions, or `pivot=False`.
    """
    LU, pivots, info = factored("torch.lu_factor", A, pivot)
    check_info("torch.linalg.lu_factor", info, SINGULAR)
    return return_types.linalg_lu_factor(LU, pivots)


@_listed
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> return_types.linalg_lu_factor_ex:
    """As `lu_factor`, with `info` in place of an error: the first pivot that is zero, counted from 1, or 0."""
    found = return_types.linalg_lu_factor_ex(*factored("torch.lu_factor", A, pivot))
    if check_errors:
        check_info("torch.linalg.lu_factor_ex", found.info, SINGULAR)
    return found


@_listed
def lu(A: Tensor, *, pivot: bool = True) -> return_types.linalg_lu:
    """P, of exchanged rows, the lower triangular L and the upper triangular U of A = P L U.

    Raises:
        ShapeError: fewer than two dimensions, or `pivot=False`.
    """
    LU, pivots, _ = factored("linalg.lu", A, pivot)
    P, L, U = unpacked(LU, pivots)
    return return_types.linalg_lu(P, called("LinalgLuBackward0", L), called("LinalgLuBackward0", U))


def unpacked(LU: Tensor, pivots: Tensor, data: bool = True, exchanges: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U; empty what is not asked for."""
    m, n = LU.shape[-2:]
    nothing = empty(0, dtype=LU.dtype, device=LU.device)
    P, L, U = nothing, nothing, nothing
    if exchanges:
        P = eye(m, dtype=LU.dtype, device=LU.device)[decompositions.permutation(pivots, size=m)].mT
    if data:
        k = min(m, n)
        L, U = unit_lower(LU[..., :k]), LU[..., :k, :].triu()
    return P, L, U


@_listed
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X of A X = B (`left=False`: X A = B; `adjoint`: of A^H) from `lu_factor` of A; batches broadcast.

    Raises:
        ShapeError: shapes that do not fit. DtypeError: integers, two dtypes, or pivots that are not int32.
    """
    name = "linalg.lu_solve"
    check_matrices(f"torch.{name}", LU)
    if LU.dtype.category < 2:
        raise DtypeError(f"torch.{name}: Expected a floating point or complex tensor as input. Got {LU.dtype.legacy}")
    if LU.dtype is not B.dtype:
        raise DtypeError(
            f"{name}: Expected LU and B to have the same dtype, but found LU of type {LU.dtype.legacy} and B of type "
            f"{B.dtype.legacy} instead"
        )
    if pivots.dtype is not decompositions.INFO:
        raise DtypeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    check_matrices(name, B, square=False, argument="B")
    size = LU.shape[-1]
    if B.shape[-2 if left else -1] != size:
        (rows, columns), equation = B.shape[-2:], "AX = B" if left else "XA = B"
        raise ShapeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({size}x{size} and {rows}x{columns})"
        )
    if pivots.shape[-1:] != (size,):
        raise ShapeError(f"{name}: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.shape != LU.shape[:-1]:
        raise ShapeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    return called("LinalgLuSolveBackward0", _from_factors(LU, pivots, B, left, adjoint))  # type: ignore[no-any-return]


def _from_factors(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    if not left:  # X A = B is A^T X^T = B^T, and A^T the adjoint of the conjugate
        if LU.is_complex():
            LU = LU.conj()
        return _from_factors(LU, pivots, B.mT, True, not adjoint).mT
    P, L, U = unpacked(LU, pivots)
    if adjoint:
        L, U = _adjoint(L), _adjoint(U)
        return P @ substituted(L, substituted(U, B, upper=False), upper=True)
    return substituted(U, substituted(L, P.mT @ B, upper=False), upper=True)


# ---- L D L^T --------------------------------------------------------------------------------------------------


@_listed
def ldl_factor(input: Tensor, *, hermitian: bool = False) -> return_types.linalg_ldl_factor:
    """L and D of A = P L D L^T P^T in LAPACK's form, for symmetric (or `hermitian`) A, of which one triangle is read.

    For `ldl_solve`. Without gradients, as in PyTorch.

    Raises:
        LinAlgError: a pivot is zero. ShapeError: matrices that are not square.
    """
    found = ldl_factor_ex(input, hermitian=hermitian)
    check_info("torch.linalg.ldl_factor", found.info, "D[{0},{0}] is zero, so that the matrix is singular.")
    return return_types.linalg_ldl_factor(found.LD, found.pivots)


@_listed
def ldl_factor_ex(
    input: Tensor, *, hermitian: bool = False, check_errors: bool = False
) -> return_types.linalg_ldl_factor_ex:
    """As `ldl_factor`, with `info` in place of an error: the first pivot that is zero, counted from 1, or 0."""
    check_matrices("torch.linalg.ldl_factor_ex", input)
    found = return_types.linalg_ldl_factor_ex(*decompositions.ldl(input, hermitian=hermitian))
    if check_errors:
        words = "D[{0},{0}] is zero, so that the matrix is singular."
        check_info("torch.linalg.ldl_factor_ex", found.info, words)
    return found


@_listed
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X of A X = B from `ldl_factor` of A; batches broadcast.

    Raises:
        ShapeError: shapes that do not fit. DtypeError: two dtypes, or pivots that are no integers.
    """
    name = "torch.linalg.ldl_solve"
    check_matrices(name, LD)
    check_matrices(name, B, square=False, argument="B")
    if B.shape[-2] != LD.shape[-1]:
        rows, size = "{} by {}".format(*B.shape[-2:]), LD.shape[-1]
        raise ShapeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {size} by {size} but each b matrix is {rows}"
        )
    if LD.shape[:-1] != pivots.shape:
        raise ShapeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if pivots.dtype.category >= 2:
        raise DtypeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype.legacy}")
    if LD.dtype is not B.dtype:
        raise DtypeError(
            f"Expected b and A to have the same dtype, but found b of type {B.dtype.legacy} and A of type "
            f"{LD.dtype.legacy} instead."
        )
    return decompositions.ldl_solve(LD, pivots, B, hermitian=hermitian)  # type: ignore[no-any-return]


# ---- Householder's reflections --------------------------------------------------------------------------------


def reflections(input: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """V and T of the product of reflections I - V T V^H: the compact form by Schreiber and Van Loan, 1989.

    The inverse of T is diag(1 / tau) and what of V^H V is above the diagonal.
    """
    V = unit_lower(input[..., : tau.shape[-1]])
    factors = tau.unsqueeze(-1)
    one = eye(tau.shape[-1], dtype=tau.dtype, device=tau.device)
    return V, substituted(one + factors * (_adjoint(V) @ V).triu(1), one * factors, upper=True)


def without_gradient(result: Tensor, *values: Tensor) -> Tensor:
    """A product of no reflections: it is recorded, and no gradient comes to `values`, as in PyTorch."""
    if followed(*values) and not result._needs:
        result._node, result._needs = record(NOWHERE, ()), True
    return result


@_listed
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first n columns of the product of the reflections I - tau[i] v[i] v[i]^H, as `torch.geqrf` returns them.

    Args:
        input: of shape (..., m, n); v[i] is what column i has below the diagonal, and 1 on it.
        tau: of shape (..., k), with k <= n <= m.

    Raises:
        ShapeError: shapes that do not fit. DtypeError: integers, or two dtypes.
    """
    name = "torch.linalg.householder_product"
    if input.ndim < 2:
        raise ShapeError(f"{name}: input must have at least 2 dimensions.")
    m, n = input.shape[-2:]
    words = "{}.shape[-{}] must be greater than or equal to {}.shape[-1]"
    if m < n:
        raise ShapeError(f"{name}: {words.format('input', 2, 'input')}")
    if n < tau.shape[-1]:
        raise ShapeError(f"{name}: {words.format('input', 1, 'tau')}")
    if input.ndim - tau.ndim != 1:
        raise ShapeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {input.ndim}"
        )
    if input.shape[:-2] != tau.shape[:-1]:
        raise ShapeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    if tau.dtype is not input.dtype:
        raise DtypeError(f"{name}: tau dtype {tau.dtype.legacy} does not match input dtype {input.dtype.legacy}")
    decompositions.REFLECTED(name, (input,))
    if not (input.numel() and tau.numel()):
        found = eye(m, n, dtype=input.dtype, device=input.device).expand(*input.shape).clone()
        return without_gradient(found, input, tau)
    V, T = reflections(input, tau)
    found = eye(m, n, dtype=input.dtype, device=input.device) - V @ (T @ _adjoint(V[..., :n, :]))
    return called("LinalgHouseholderProductBackward0", found)  # type: ignore[no-any-return]
