"""Linear algebra by the names that it had before `linalg`, what is there alone, and what PyTorch has removed.

Functions take and raise what `linalg`'s do.
"""

from __future__ import annotations

from typing import Any, NoReturn

from .. import return_types
from ..autograd.gradients import called, underived
from ..autograd.mode import recording
from ..errors import AutogradError, DtypeError, ShapeError, require
from ..functional.creation.creation import zeros
from ..functional.elementwise.pointwise import where
from ..functional.matmul.linear_algebra import without
from ..ground.arguments import check_tensor
from ..ground.composing import shown_as
from ..ground.public import public
from ..operators.outputs import Into, takes_out
from ..random import randn
from ..tensors import Tensor
from . import decompositions, factorizations, matrix_functions, solvers, solving
from .factorizations import check_factors, factored, positive, reflections, unpacked
from .matrices import adjoint, check_matrices, identity

_old = public(method=True, functional=False, out=takes_out())
_old_in_float32 = public(method=True, functional=False, out=takes_out(), autocast={"cpu": "float32"})
# PyTorch casts to out in these
_cast_in_float32 = public(method=True, functional=False, out=takes_out(Into("cast")), autocast={"cpu": "float32"})
_function = public(functional=False)
_method = public(functional=False, method=True)


@_cast_in_float32
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky decomposition, `linalg.cholesky`; raises LinAlgError if a matrix is not positive-definite."""
    return called("CholeskyBackward0", positive("cholesky", "cholesky", input, upper)[0])


@_old_in_float32
def qr(input: Tensor, some: bool = True) -> return_types.qr:
    """The QR decomposition: `linalg.qr` with the mode "reduced", or "complete" unless `some`."""
    return return_types.qr(*factorizations.qr(input, "reduced" if some else "complete"))


@_old_in_float32
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> return_types.svd:
    """The singular value decomposition: U, the singular values, and V, not its adjoint; see `linalg.svd`.

    Args:
        some: of matrices that are not square leave out the columns of U or V that S has no number for.
        compute_uv: whether U and V are wanted; zeros otherwise.
    """
    words = "linalg.svd: input should have at least 2 dimensions, but has {} dimensions instead"
    require(input.ndim > 1, ShapeError, words, input.ndim)
    if compute_uv:
        U, S, Vh = factorizations.svd(input, full_matrices=not some)
        return return_types.svd(U, S, adjoint(Vh))
    U, V = (zeros(*input.shape[:-2], n, n, dtype=input.dtype, device=input.device) for n in input.shape[-2:])
    return return_types.svd(U, factorizations.svdvals(input), V)


@public(method=True, functional=False, autocast={"cpu": "float32"})
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """The LU decomposition: `linalg.lu_factor` as a tuple; with `get_infos` `lu_factor_ex`, which does not raise."""
    if out is not None:
        function: Any = factorizations.lu_factor_ex if get_infos else factorizations.lu_factor
        return tuple(function(A, pivot=pivot, out=out))
    found = factored("torch.lu_factor", "" if get_infos else "torch.linalg.lu_factor", A, pivot)
    return found if get_infos else found[:2]


@public(functional=False, out=takes_out())
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> return_types.lu_unpack:
    """Unpacks `linalg.lu_factor` into P, L and U; those of data or pivots not to be unpacked are empty.

    Raises LinAlgError for pivots that are not those of the matrix.

    >>> import tritensor as torch
    >>> torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [4.0, 2.0]]))).U
    tensor([[4.0000, 2.0000],
            [0.0000, 1.5000]])
    """
    words = "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {} instead"
    require(LU_data.ndim > 1, ShapeError, words, list(LU_data.shape))
    words = "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this "
    words += "function is intended to be used with the output produced by torch.linalg.lu_factor"
    require(not unpack_pivots or LU_pivots.dtype is decompositions.INFO, DtypeError, words)
    P, L, U = unpacked(LU_data, LU_pivots, unpack_data, unpack_pivots)
    return return_types.lu_unpack(P, called("LuUnpackBackward0", L), called("LuUnpackBackward0", U))


@_old_in_float32
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Solves A X = B by an LU decomposition: `linalg.lu_solve(LU_data, LU_pivots, input)`."""
    return factorizations.lu_solve(LU_data, LU_pivots, input)


@_cast_in_float32
def geqrf(input: Tensor) -> return_types.geqrf:
    """The QR decomposition in LAPACK's form: R, below it the Householder reflectors of Q, and their factors `tau`.

    For `linalg.householder_product` and `ormqr`. Without gradients, as in PyTorch.
    """
    require(input.ndim > 1, ShapeError, "torch.geqrf: input must have at least 2 dimensions.")
    words = "geqrf does not support automatic differentiation for outputs with complex dtype."
    require(not (input._needs and recording.enabled and input.is_complex()), AutogradError, words)
    found = return_types.geqrf(*decompositions.geqrf(input.detach()))
    return underived("geqrf", found, input, name="GeqrfBackward0")


@_cast_in_float32
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """`linalg.householder_product`."""
    return factorizations.householder_product(input, input2)


@_old_in_float32
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Multiplies by Q of a QR decomposition, the square product of all reflections of `geqrf`: Q @ input3.

    Args:
        left: unless True, input3 @ Q.
        transpose: multiply by the adjoint of Q.
    """
    tau, other, name = input2, input3, "torch.ormqr"
    for what, value in (("input", input), ("other", other)):
        require(value.ndim > 1, ShapeError, "{}: {} must have at least 2 dimensions.", name, what)
    place, (rows, count) = -2 if left else -1, input.shape[-2:]
    words = "{}: tau.shape[-1] must be equal to min(other.shape[{}], input.shape[-1])"
    require(tau.shape[-1:] == (min(other.shape[place], count),), ShapeError, words, name, place)
    require(other.shape[place] == rows, ShapeError, "{}: other.shape[{}] must be equal to input.shape[-2]", name, place)
    check_factors(name, input, tau)
    words = "{}: Expected other to have the same number of dimensions as input, but got other.ndim equal to {} and "
    require(input.ndim == other.ndim, ShapeError, words + "input.ndim is equal to {}", name, other.ndim, input.ndim)
    words = "{}: Expected batch dimensions of other to be equal to input.shape[:-2], but got {}"
    require(input.shape[:-2] == other.shape[:-2], ShapeError, words, name, list(other.shape[:-2]))
    for what, value in (("tau", tau), ("other", other)):
        words = "{0}: Expected input and {1} to have the same dtype, but input has dtype{2} and {1} has dtype {3}"
        require(value.dtype is input.dtype, DtypeError, words, name, what, input.dtype.legacy, value.dtype.legacy)
    decompositions.MULTIPLIED("", (input,))
    V, T = reflections(input, tau)
    T = adjoint(T) if transpose else T
    found = other - (V @ (T @ (adjoint(V) @ other)) if left else ((other @ V) @ T) @ adjoint(V))
    return called("OrmqrBackward0", found)


# ---- solving ----------------------------------------------------------------------------------------------


@_old_in_float32
def inverse(input: Tensor) -> Tensor:
    """`linalg.inv`."""
    return solving.inv(input)


@_method
def det(input: Tensor) -> Tensor:
    """`linalg.det`."""
    return solving.det(input)


@_old
def slogdet(input: Tensor) -> return_types.slogdet:
    """`linalg.slogdet`."""
    return return_types.slogdet(*solving.slogdet(input))


@_method
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant of square matrices; NaN where it is negative.

    >>> import tritensor as torch
    >>> torch.logdet(torch.tensor([[2., 0.], [0., 0.5]]))
    tensor(0.)
    """
    check_matrices("logdet", input)
    sign, size = solvers.slogdet(input)
    return sign.log() + size if sign.is_complex() else where(sign == -1, float("nan"), size)


@public(functional=False, method=True, autocast={"cpu": "float32"})
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`linalg.pinv`."""
    return solving.pinv(input, rcond)


@_old
def matrix_power(input: Tensor, n: int) -> Tensor:
    """`linalg.matrix_power`."""
    return matrix_functions.matrix_power(input, n)


@_method
def matrix_exp(input: Tensor) -> Tensor:
    """`linalg.matrix_exp`."""
    return matrix_functions.matrix_exp(input)


@_cast_in_float32
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of a matrix from its Cholesky factor: of L @ L^H, or with `upper` of U^H @ U.

    >>> import tritensor as torch
    >>> torch.cholesky_inverse(torch.tensor([[2., 0.], [0., 1.]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    check_matrices("cholesky_inverse", input)
    if getattr(input._data, "has_tangents", False):  # gradients are of the whole matrix, as PyTorch's; tangents are not
        input = input.triu() if upper else input.tril()
    one = identity(input, input.shape[-1])[(None,) * (input.ndim - 2)]
    return called("CholeskyInverseBackward0", solvers.cholesky_solved(input, one, upper=upper))


@_cast_in_float32
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """Solves (L @ L^H) @ X = input for X by the Cholesky factor `input2`, with `upper` U; batches broadcast."""
    for letter, x in (("b", input), ("u", input2)):
        words = "{} should have at least 2 dimensions, but has {} dimensions instead"
        require(x.ndim > 1, ShapeError, words, letter, x.ndim)
    rows, cols = input2.shape[-2:]
    words = "A must be batches of square matrices, but they are {} by {} matrices"
    require(rows == cols, ShapeError, words, rows, cols)
    words = "Incompatible matrix sizes for linear_solve: each A matrix is {} by {} but each b matrix is {} by {}"
    require(cols == input.shape[-2], ShapeError, words, rows, cols, *input.shape[-2:])
    return solvers.cholesky_solved(*solving.fitting("cholesky_solve", input2, input), upper=upper)


@_old_in_float32
def triangular_solve(
    input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> return_types.triangular_solve:
    """Solves triangular A @ X = input (`transpose`: A^T) for X, and copies A; see `linalg.solve_triangular`."""
    for letter, x in (("b", input), ("A", A)):
        words = "torch.triangular_solve: Expected {} to have at least 2 dimensions, but it has {} dimensions instead"
        require(x.ndim > 1, ShapeError, words, letter, x.ndim)
    a, b = solving.fitting("triangular_solve", A, input)
    upper = bool(upper) is not bool(transpose)
    found = solvers.substituted(a.mT if transpose else a, b, upper=upper, unitriangular=unitriangular)
    copied = without(input, A.expand(*found.shape[:-2], *A.shape[-2:]).clone())
    return return_types.triangular_solve(*[called("TriangularSolveBackward0", each) for each in (found, copied)])


# ---- approximate, of few singular values ----------------------------------------------------------------------


@_function
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """A low-rank singular value decomposition, about A = U diag(S) V^H of a rank of about `q`, by random vectors.

    Algorithms 4.4 and 5.1 of Halko et al., 2009, https://arxiv.org/abs/0909.4061.

    Args:
        q: a little more than the rank: the columns of U and V.
        niter: more iterations are more exact.
        M: a matrix that is subtracted from A first.
    """
    A = A if M is None else A - M
    wide = A.shape[-2] < A.shape[-1]
    A = adjoint(A) if wide else A
    Q = factorizations.qr(A @ randn(A.shape[-1], 6 if q is None else q, dtype=A.dtype, device=A.device))[0]
    for _ in range(2 if niter is None else niter):
        Q = factorizations.qr(A @ factorizations.qr(adjoint(A) @ Q)[0])[0]
    U, S, Vh = factorizations.svd(adjoint(Q) @ A, full_matrices=False)
    U, V = Q @ U, adjoint(Vh)
    return (V, S, U) if wide else (U, S, V)


@_function
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Principal component analysis (PCA) by `svd_lowrank`: U, S and the principal directions V of the rows.

    Args:
        q: how many, min(6, m, n) unless given; ValueError if it is more than m or n.
        center: whether the columns' means are subtracted first.
    """
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    words = "q(={}) must be non-negative integer and not greater than min(m, n)={}"
    require(0 <= q <= min(m, n), ValueError, words, q, min(m, n))
    require(niter >= 0, ValueError, "niter(={}) must be non-negative integer", niter)
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


# ---- removed ----------------------------------------------------------------------------------------------------

_GONE = "This function was deprecated since version 1.9 and is now removed."
_REMOVED = {
    "symeig": """The default behavior has changed from using the upper triangular portion of the matrix by default \
to using the lower triangular portion.

L, _ = torch.symeig(A, upper=upper) should be replaced with:
L = torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L')

and

L, V = torch.symeig(A, eigenvectors=True) should be replaced with:
L, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')""",
    "eig": """`torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors \
mimicking complex tensors.

L, _ = torch.eig(A) should be replaced with:
L_complex = torch.linalg.eigvals(A)

and

L, V = torch.eig(A, eigenvectors=True) should be replaced with:
L_complex, V_complex = torch.linalg.eig(A)""",
}


def _removed(name: str, words: str) -> None:
    def call(input: Tensor, *args: Any, **options: Any) -> Any:
        raise ShapeError(f"{_GONE} {words}")

    doc = f"Removed from PyTorch, as a call says: see `linalg.{'eigh' if name == 'symeig' else name}`."
    _method(shown_as(call, name, doc))


for _name, _words in _REMOVED.items():
    _removed(_name, _words)


@_method
def lstsq(input: Tensor, A: Tensor) -> NoReturn:
    """Removed from PyTorch: `linalg.lstsq`, with its arguments in the other order, takes its place."""
    raise ShapeError(f"{_GONE} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.")


@_method
def solve(input: Tensor, A: Tensor) -> NoReturn:
    """Removed from PyTorch: `linalg.solve`, with its arguments in the other order, takes its place."""
    raise ShapeError(f"{_GONE} `torch.solve` is deprecated in favor of `torch.linalg.solve`.")


@public(functional=False)
def matrix_rank(input: Tensor, tol: Any = None, symmetric: bool = False) -> NoReturn:
    """Removed from PyTorch: `linalg.matrix_rank` takes its place."""
    check_tensor("matrix_rank", "input", 1, input)
    words = "\nPlease use the `torch.linalg.matrix_rank` function instead. The parameter 'symmetric' was renamed in "
    raise ShapeError(f"{_GONE}{words}`torch.linalg.matrix_rank()` to 'hermitian'.")
