"""Factorisations of matrices and of stacks of them, by LAPACK.

They are computed on the host. Tensors of a device are copied there and the results back, of which the first call of
each warns. All take tensors of shape (..., m, n) or (..., n, n), float32, float64 or complex, and raise ShapeError for
other shapes and DtypeError for other dtypes.
"""

from __future__ import annotations

from .. import return_types
from ..autograd.gradients import called
from ..autograd.levels import followed
from ..errors import DtypeError, ShapeError, require
from ..functional.creation.creation import empty
from ..ground.public import public
from ..operators.outputs import Into, takes_out
from ..tensors import Tensor
from ..types.dtypes import FLOATING
from . import decompositions
from .matrices import adjoint as _adjoint
from .matrices import check_info, check_matrices, identity, unit_lower
from .triangular import substituted

__all__ = ["cholesky", "cholesky_ex", "eig", "eigh", "eigvals", "eigvalsh", "householder_product", "ldl_factor"]
__all__ += ["ldl_factor_ex", "ldl_solve", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "qr", "svd", "svdvals"]

NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{} is not positive-definite)."
)
_SINGULAR = (
    "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
    "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)
_listed = public(package=False, functional=False, out=takes_out(Into("cast")))
_listed_in_float32 = public(package=False, functional=False, out=takes_out(Into("cast")), autocast={"cpu": "float32"})


@_listed_in_float32
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """The Cholesky decomposition A = L L^H of positive-definite A: lower triangular L; with `upper` its adjoint.

    One triangle of A is read: the lower one, with `upper` the other. Raises LinAlgError if A is not positive-definite.

    >>> import tritensor as torch
    >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return positive("linalg.cholesky", "linalg.cholesky", input, upper)[0]


@_listed_in_float32
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> return_types.linalg_cholesky_ex:
    """The Cholesky decomposition, with `info` for an error: the order of the first minor that is not positive, or 0.

    The columns from that order on are not factorised then.
    """
    name = "linalg.cholesky_ex" if check_errors else ""
    return return_types.linalg_cholesky_ex(*positive("linalg.cholesky", name, input, upper))


def positive(name: str, checked: str, input: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    """L and info of Cholesky's factorisation, which is checked in the name of a function."""
    check_matrices(name, input)
    found, info = decompositions.cholesky(input, upper=upper)
    if checked:
        check_info(checked, info, NOT_POSITIVE)
    return found, info


@_listed_in_float32
def qr(A: Tensor, mode: str = "reduced") -> return_types.linalg_qr:
    """The QR decomposition: Q, of orthonormal columns, and the upper triangular R of A = Q R.

    Args:
        mode: "reduced": Q is (..., m, k) and R (..., k, n), with k = min(m, n). "complete": Q is (..., m, m). "r": R of
            "reduced", and an empty Q; there is no gradient then.
    """
    check_matrices("linalg.qr", A, square=False)
    words = "qr received unrecognized mode '{}' but expected one of 'reduced' (default), 'r', or 'complete'"
    require(mode in ("reduced", "complete", "r"), ShapeError, words, mode)
    return return_types.linalg_qr(*decompositions.qr(A, mode=mode))


def _check_driver(A: Tensor, driver: str | None) -> None:
    check_matrices("linalg.svd", A, square=False)
    words = "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
    require(driver is None or (A.is_cuda and driver in ("gesvd", "gesvdj", "gesvda")), ShapeError, words)


@_listed_in_float32
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> return_types.linalg_svd:
    """The singular value decomposition A = U diag(S) V^H: U, S in falling order, and V^H, for A of shape (..., m, n).

    Gradients of U and V are infinite where two singular values are equal, and need a function that does not depend on
    the vectors' signs (of complex ones: phases). Raises LinAlgError for nan.

    Args:
        full_matrices: U is (..., m, m) and V^H (..., n, n); else (..., m, k) and (..., k, n), with k = min(m, n).
        driver: a method of NVIDIA's library, for tensors of a device only, where it changes nothing.
    """
    _check_driver(A, driver)
    return return_types.linalg_svd(*decompositions.svd(A, full_matrices=full_matrices))


@_listed_in_float32
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of matrices, in falling order, as those of `svd`.

    >>> import tritensor as torch
    >>> torch.linalg.svdvals(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
    tensor([2., 1.])
    """
    _check_driver(A, driver)
    return decompositions.svd(A, full_matrices=False, compute_uv=followed(A))[1]


@_listed_in_float32
def eig(input: Tensor) -> return_types.linalg_eig:
    """The eigenvalues (complex, in no order) of square matrices, and eigenvectors of length 1 as columns.

    Gradients of the vectors need a function that does not depend on their phases. Raises LinAlgError for nan and inf.
    """
    check_matrices("linalg.eig", input)
    return return_types.linalg_eig(*decompositions.eig(input))


@_listed_in_float32
def eigvals(input: Tensor) -> Tensor:
    """The eigenvalues of square matrices, complex and in no order, as those of `eig`."""
    check_matrices("linalg.eigvals", input)
    return decompositions.eig(input, vectors=followed(input))[0]


def _triangle(input: Tensor, letter: str) -> str:
    check_matrices("linalg.eigh", input)
    words = "Expected UPLO argument to be 'L' or 'U', but got {}"
    require(str(letter).upper() in ("L", "U"), ShapeError, words, letter)
    return str(letter).upper()


@_listed_in_float32
def eigh(input: Tensor, UPLO: str = "L") -> return_types.linalg_eigh:
    """The eigenvalues of Hermitian (or symmetric) matrices, rising, and orthonormal eigenvectors as columns.

    `UPLO` is the triangle that is read, "L" or "U"; the other one is its adjoint.

    >>> import tritensor as torch
    >>> torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    tensor([1., 3.])
    """
    return return_types.linalg_eigh(*decompositions.eigh(input, UPLO=_triangle(input, UPLO)))


@_listed_in_float32
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of Hermitian (or symmetric) matrices, rising, as those of `eigh`."""
    letter = _triangle(input, UPLO)
    return decompositions.eigh(input, UPLO=letter, vectors=followed(input))[0]


# ---- LU -------------------------------------------------------------------------------------------------------


def factored(name: str, checked: str, A: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    """LU, pivots and info, which is checked in the name of a function."""
    words = "{}: Expected tensor with 2 or more dimensions. Got size: {} instead"
    require(A.ndim > 1, ShapeError, words, name, list(A.shape))
    words = "linalg.lu_factor: LU without pivoting is not implemented on the CPU, nor for tensors of a device"
    require(pivot, ShapeError, words)
    LU, pivots, info = decompositions.lu(A)
    if checked:
        check_info(checked, info, _SINGULAR)
    return LU, pivots, info


@_listed
def lu_factor(A: Tensor, *, pivot: bool = True) -> return_types.linalg_lu_factor:
    """The compact LU decomposition A = P L U: L and U in one matrix, and pivots, rows counted from 1.

    L has ones on its diagonal, which are left out. For `lu_solve` and `torch.lu_unpack`. Raises LinAlgError if a pivot
    is zero; `pivot=False` is refused.
    """
    return return_types.linalg_lu_factor(*factored("torch.lu_factor", "torch.linalg.lu_factor", A, pivot)[:2])


@_listed
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> return_types.linalg_lu_factor_ex:
    """The LU decomposition of `lu_factor`, with `info` for an error: the first zero pivot, counted from 1, or 0."""
    checked = "torch.linalg.lu_factor_ex" if check_errors else ""
    return return_types.linalg_lu_factor_ex(*factored("torch.lu_factor", checked, A, pivot))


@_listed
def lu(A: Tensor, *, pivot: bool = True) -> return_types.linalg_lu:
    """The LU decomposition A = P L U: the permutation P, the lower triangular L and the upper triangular U."""
    P, L, U = unpacked(*factored("linalg.lu", "", A, pivot)[:2])
    return return_types.linalg_lu(P, called("LinalgLuBackward0", L), called("LinalgLuBackward0", U))


def unpacked(LU: Tensor, pivots: Tensor, data: bool = True, exchanges: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U; empty what is not asked for."""
    m, k = LU.shape[-2], min(LU.shape[-2:])
    P = L = U = empty(0, dtype=LU.dtype, device=LU.device)
    if exchanges:
        P = identity(LU, m)[decompositions.permutation(pivots, size=m)].mT
    if data:
        L, U = unit_lower(LU[..., :k]), LU[..., :k, :].triu()
    return P, L, U


@_listed
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Solves A X = B for X by `lu_factor` of A (`left=False`: X A = B; `adjoint`: of A^H); batches broadcast."""
    name, size = "linalg.lu_solve", LU.shape[-1:]
    check_matrices(f"torch.{name}", LU)
    decompositions.DIVIDED("", (LU,))
    words = "{}: Expected LU and B to have the same dtype, but found LU of type {} and B of type {} instead"
    require(LU.dtype is B.dtype, DtypeError, words, name, LU.dtype.legacy, B.dtype.legacy)
    words = "{}: pivots should be a Tensor of scalar type torch.int32"
    require(pivots.dtype is decompositions.INFO, DtypeError, words, name)
    check_matrices(name, B, square=False, argument="B")
    words = "{}: Incompatible shapes of A and B for the equation {} = B ({}x{} and {}x{})"
    values = (name, "AX" if left else "XA", *size, *size, *B.shape[-2:])
    require(B.shape[-2 if left else -1] == size[0], ShapeError, words, *values)
    words = "{}: Number of pivots per batch should be same as the dimension of the matrix"
    require(pivots.shape[-1:] == size, ShapeError, words, name)
    _check_pivots(name, LU, pivots)
    return called("LinalgLuSolveBackward0", _from_factors(LU, pivots, B, left, adjoint))


def _check_pivots(name: str, factors: Tensor, pivots: Tensor) -> None:
    kind = "LU" if name.endswith("lu_solve") else "LD"
    words = "{}: Expected {}.shape[:-1] and pivots.shape to be the same, but got pivots with shape {} instead"
    require(pivots.shape == factors.shape[:-1], ShapeError, words, name, kind, list(pivots.shape))


def _from_factors(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    P, L, U = unpacked(LU, pivots)
    lower, upper = (_adjoint(U), _adjoint(L)) if adjoint else (L, U)
    if left:
        X = substituted(upper, substituted(lower, B if adjoint else P.mT @ B, upper=False), upper=True)
        return P @ X if adjoint else X
    X = substituted(upper, B @ P if adjoint else B, upper=True, left=False)
    X = substituted(lower, X, upper=False, left=False)
    return X if adjoint else X @ P.mT


# ---- L D L^T --------------------------------------------------------------------------------------------------


def _symmetric(checked: str, input: Tensor, hermitian: bool) -> tuple[Tensor, Tensor, Tensor]:
    check_matrices("torch.linalg.ldl_factor_ex", input)
    LD, pivots, info = decompositions.ldl(input, hermitian=hermitian)
    if checked:
        check_info(checked, info, "D[{0},{0}] is zero, so that the matrix is singular.")
    return LD, pivots, info


@_listed
def ldl_factor(input: Tensor, *, hermitian: bool = False) -> return_types.linalg_ldl_factor:
    """The LDL decomposition A = P L D L^T P^T of symmetric (or `hermitian`) matrices, in LAPACK's form.

    For `ldl_solve`. Without gradients, as in PyTorch. Raises LinAlgError if a pivot is zero.
    """
    return return_types.linalg_ldl_factor(*_symmetric("torch.linalg.ldl_factor", input, hermitian)[:2])


@_listed
def ldl_factor_ex(
    input: Tensor, *, hermitian: bool = False, check_errors: bool = False
) -> return_types.linalg_ldl_factor_ex:
    """The LDL decomposition of `ldl_factor`, with `info` for an error: the first zero pivot, counted from 1, or 0."""
    checked = "torch.linalg.ldl_factor_ex" if check_errors else ""
    return return_types.linalg_ldl_factor_ex(*_symmetric(checked, input, hermitian))


@_listed
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """Solves A X = B for X by the LDL decomposition of A, `ldl_factor`; batches broadcast."""
    name = "torch.linalg.ldl_solve"
    check_matrices(name, LD)
    check_matrices(name, B, square=False, argument="B")
    words = "Incompatible matrix sizes for {0}: each A matrix is {1} by {1} but each b matrix is {2} by {3}"
    require(B.shape[-2] == LD.shape[-1], ShapeError, words, name, LD.shape[-1], *B.shape[-2:])
    _check_pivots(name, LD, pivots)
    words = "{}: Expected pivots to be integers. Got {}"
    require(pivots.dtype.category < FLOATING, DtypeError, words, name, pivots.dtype.legacy)
    words = "Expected b and A to have the same dtype, but found b of type {} and A of type {} instead."
    require(LD.dtype is B.dtype, DtypeError, words, B.dtype.legacy, LD.dtype.legacy)
    return decompositions.ldl_solve(LD, pivots, B, hermitian=hermitian)


# ---- Householder's reflections --------------------------------------------------------------------------------


def reflections(input: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """V and T of the product of reflections I - V T V^H: the compact form by Schreiber and Van Loan, 1989.

    The inverse of T is diag(1 / tau) and what of V^H V is above the diagonal.
    """
    V = unit_lower(input[..., : tau.shape[-1]])
    factors, one = tau.unsqueeze(-1), identity(tau, tau.shape[-1])
    return V, substituted(one + factors * (_adjoint(V) @ V).triu(1), one * factors, upper=True)


def check_factors(name: str, input: Tensor, tau: Tensor) -> None:
    """Raise unless the dimensions of reflections' factors fit."""
    words = "{}: Expected tau to have one dimension less than input, but got tau.ndim equal to {} and "
    require(input.ndim - tau.ndim == 1, ShapeError, words + "input.ndim is equal to {}", name, tau.ndim, input.ndim)
    words = "{}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {}"
    require(input.shape[:-2] == tau.shape[:-1], ShapeError, words, name, list(tau.shape[:-1]))


@_listed_in_float32
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first n columns of a product of Householder reflectors I - tau[i] v[i] v[i]^H, as `torch.geqrf` gives.

    Args:
        input: of shape (..., m, n); v[i] is what column i has below the diagonal, and 1 on it.
        tau: of shape (..., k), with k <= n <= m.
    """
    name = "torch.linalg.householder_product"
    require(input.ndim > 1, ShapeError, "{}: input must have at least 2 dimensions.", name)
    m, n = input.shape[-2:]
    require(m >= n, ShapeError, "{}: input.shape[-2] must be greater than or equal to input.shape[-1]", name)
    words = "{}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
    require(n >= max(tau.shape[-1:]), ShapeError, words, name)
    check_factors(name, input, tau)
    words = "{}: tau dtype {} does not match input dtype {}"
    require(tau.dtype is input.dtype, DtypeError, words, name, tau.dtype.legacy, input.dtype.legacy)
    decompositions.REFLECTED("", (input,))
    found = identity(input, m, n)
    V, T = reflections(input, tau)
    return called("LinalgHouseholderProductBackward0", found - V @ (T @ _adjoint(V[..., :n, :])))
