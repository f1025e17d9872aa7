"""Inverses, solutions of systems of equations, determinants, pseudoinverses and least squares."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from .. import return_types
from ..autograd.gradients import called
from ..autograd.levels import followed
from ..errors import DtypeError, ShapeError, require
from ..functional.elementwise.pointwise import where
from ..ground.arguments import check_tensor
from ..ground.public import public
from ..operators.outputs import Into, takes_out
from ..operators.rules import is_half
from ..tensors import Tensor
from ..types import dtypes, layout
from . import solvers
from .matrices import check_info, check_matrices

__all__ = ["det", "inv", "inv_ex", "lstsq", "matrix_rank", "pinv", "slogdet", "solve", "solve_ex", "solve_triangular"]
__all__ += ["tensorinv", "tensorsolve"]

_SINGULAR = (
    "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular."
)
_UNSOLVABLE = "The solver failed because the input matrix is singular."
_OTHER_DTYPES = "This function doesn't handle types other than float and double"
_listed = public(package=False, functional=False, out=takes_out(Into("cast")))
_listed_in_float32 = public(package=False, functional=False, out=takes_out(Into("cast")), autocast={"cpu": "float32"})


@_listed_in_float32
def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices (..., n, n).

    >>> import tritensor as torch
    >>> torch.linalg.inv(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])

    Raises:
        LinAlgError: a matrix is singular. ShapeError: they are not square. DtypeError: integers, half precision.
    """
    return _inverse("linalg.inv", A, True)[0]


@_listed_in_float32
def inv_ex(A: Tensor, *, check_errors: bool = False) -> return_types.linalg_inv_ex:
    """The inverse, with `info` for an error (unless `check_errors`): the pivot that is zero, or 0; see `inv`."""
    return return_types.linalg_inv_ex(*_inverse("linalg.inv_ex", A, check_errors))


def _inverse(name: str, A: Tensor, checked: bool) -> tuple[Tensor, Tensor]:
    check_matrices("linalg.inv", A)
    require(not is_half(A.dtype), DtypeError, "linalg.inv: Low precision dtypes not supported. Got {}", A.dtype.legacy)
    inverse, info = solvers.inverse(A)
    if checked:
        check_info(name, info, _SINGULAR)
    return inverse, info


@_listed_in_float32
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Solves A @ X = B for X, or X @ A = B unless `left`, for square matrices A (..., n, n); batches broadcast.

    Args:
        B: matrices (..., n, k), unless `left` (..., k, n); or vectors: (n,), or A's shape without its last dimension.

    >>> import tritensor as torch
    >>> torch.linalg.solve(torch.tensor([[2., 0.], [1., 4.]]), torch.tensor([2., 9.]))
    tensor([1., 2.])

    Raises:
        LinAlgError: a matrix is singular. ShapeError: the shapes do not fit. DtypeError: two dtypes, or integers.
    """
    return _solution("linalg.solve", A, B, left, True)[0]


@_listed
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> return_types.linalg_solve_ex:
    """Solves as `solve`, with `info` for an error (unless `check_errors`): the pivot that is zero, or 0."""
    return return_types.linalg_solve_ex(*_solution("linalg.solve_ex", A, B, left, check_errors))


def _solution(name: str, A: Tensor, B: Tensor, left: bool, checked: bool) -> tuple[Tensor, Tensor]:
    words = "linalg.solve: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead"
    alike = A.dtype is B.dtype or A.dtype.category < dtypes.FLOATING
    require(alike, DtypeError, words, A.dtype.legacy, B.dtype.legacy)
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    a, b = fitting("linalg.solve", A, B.unsqueeze(-1) if vector else B, left)
    words = "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
    require(left or not vector, ShapeError, words + "linalg.solve is equivalent to B / A.squeeze(-1)")
    result, info = solvers.solution(a, b, left=left, vector=vector)
    if checked:
        check_info(f"torch.{name}", info, _UNSOLVABLE)
    return result, info


def fitting(name: str, A: Tensor, B: Tensor, left: bool = True) -> list[Tensor]:
    """Both operands of A @ X = B, or of X @ A = B, with as many dimensions; raises ShapeError if they do not fit."""
    check_matrices(name, B, square=False, argument="B")
    check_matrices(name, A)
    words = "{}: Incompatible shapes of A and B for the equation {} = B ({}x{} and {}x{})"
    values = (name, "AX" if left else "XA", *A.shape[-2:], *B.shape[-2:])
    require(A.shape[-1] == B.shape[-2 if left else -1], ShapeError, words, *values)
    layout.broadcast_shapes(tuple(A.shape[:-2]), tuple(B.shape[:-2]))
    rank = max(A.ndim, B.ndim)
    return [x if x.ndim == rank else x[(None,) * (rank - x.ndim)] for x in (A, B)]


@_listed_in_float32
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Solves A @ X = B for X, or X @ A = B unless `left`, for triangular A (..., n, n); on a device by a kernel.

    Args:
        B: matrices (..., n, k), unless `left` (..., k, n); batches broadcast.
        upper: which triangle is read, with `unitriangular` without its diagonal, which is taken for ones.

    >>> import tritensor as torch
    >>> torch.linalg.solve_triangular(torch.tensor([[2., 0.], [1., 4.]]), torch.tensor([[2.], [9.]]), upper=False)
    tensor([[1.],
            [2.]])

    A zero on the diagonal is no error: the solution is infinite or NaN.

    Raises:
        ShapeError: the shapes do not fit. DtypeError: integers, half precision.
    """
    a, b = fitting("linalg.solve_triangular", A, B, left)
    return solvers.substituted(a, b, upper=upper, left=left, unitriangular=unitriangular)


@_listed
def det(A: Tensor) -> Tensor:
    """The determinant of square matrices (..., n, n).

    >>> import tritensor as torch
    >>> torch.linalg.det(torch.tensor([[1., 2.], [3., 4.]]))
    tensor(-2.)

    Raises:
        ShapeError: the matrices are not square. DtypeError: integers, half precision.
    """
    check_matrices("linalg.det", A)
    return solvers.det(A)


@_listed
def slogdet(A: Tensor) -> return_types.linalg_slogdet:
    """The sign of the determinant (of a complex one its direction) and the logarithm of its absolute value."""
    check_matrices("linalg.slogdet", A)
    return return_types.linalg_slogdet(*solvers.slogdet(A))


# ---- singular values ------------------------------------------------------------------------------------------------


def _tolerances(A: Tensor, atol: Any, rtol: Any) -> list[Any]:
    """Both tolerances, as numbers or as tensors with the batch of A. Of an absolute one the relative default is 0."""
    default = dtypes.finfo(A.dtype).eps * max(A.shape[-2:])
    is_complex = any(isinstance(each, Tensor) and each.is_complex() for each in (atol, rtol))
    require(not is_complex, DtypeError, "atol and rtol tensors of complex dtype are not supported")
    if rtol is None:
        rtol = where(atol > 0, 0.0, default) if isinstance(atol, Tensor) else 0.0 if (atol or 0) > 0 else default
    found = [0.0 if atol is None else atol, rtol]
    for place, each in enumerate(found):
        if isinstance(each, Tensor):
            shape = layout.broadcast_shapes(tuple(each.shape), tuple(A.shape[:-2]))
            found[place] = each.to(dtypes.float64).expand(shape)
    return found


@_listed
def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """The (Moore-Penrose) pseudoinverse of matrices (..., m, n), by their singular values.

    Args:
        rcond: the same as `rtol`.
        hermitian: the matrices are (complex: conjugate) symmetric, and one triangle is read.
        atol, rtol: numbers or tensors; singular values up to the larger of `atol` and `rtol` times the largest one are
            taken for 0. `rtol` is the dtype's epsilon times max(m, n), unless it or a positive `atol` is given.

    Raises:
        ShapeError: not square, but `hermitian`. DtypeError: no matrices, integers, half precision.
    """
    words = "linalg.pinv({}{{{}}}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble "
    fits = A.ndim > 1 and A.dtype.category >= dtypes.FLOATING and not is_half(A.dtype)
    require(fits, DtypeError, words + "types", A.dtype.legacy, list(A.shape))
    check_matrices("linalg.pinv", A, square=hermitian)
    found = _tolerances(A, atol, rcond if rtol is None else rtol)
    return solvers.pseudoinverse(A, *found, hermitian=hermitian)


@_listed_in_float32
def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """The rank of matrices (..., m, n): the number of singular values not taken for 0; arguments as for `pinv`.

    Args:
        tol: the same as `atol`, without a relative tolerance.

    >>> import tritensor as torch
    >>> torch.linalg.matrix_rank(torch.ones(3, 2))
    tensor(1)
    """
    require(A.ndim > 1, ShapeError, "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    require(A.dtype.category >= dtypes.FLOATING and not is_half(A.dtype), DtypeError, _OTHER_DTYPES)
    check_matrices("linalg.matrix_rank", A, square=hermitian)
    found = _tolerances(A, *((atol, rtol) if tol is None else (tol, 0.0)))
    return solvers.rank(A, *found, hermitian=hermitian)


_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@public(package=False, functional=False, autocast={"cpu": "float32"})
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> return_types.linalg_lstsq:
    """Solves the least squares problem: the least-norm X that minimises |A @ X - B|, for A (..., m, n).

    Args:
        B: matrices (..., m, k) or vectors (..., m).
        rcond: singular values up to this times the largest one are taken for 0; the dtype's epsilon times max(m, n)
            unless given, and 0 for "gels", which takes all matrices for ones of full rank.
        driver: LAPACK's name of the way: "gels", "gelsy" (the default), "gelsd" or "gelss". The way here is that of the
            singular values for all of them; what is returned besides the solution differs.

    Returns:
        solution, residuals (the sums of squares of A @ X - B, if m > n and all ranks are n; not for "gelsy"), rank (not
        for "gels"), singular_values (for "gelsd" and "gelss"); empty tensors for others.

    Raises:
        ShapeError: the shapes do not fit, or another driver. DtypeError: two dtypes, integers, half precision.
    """
    name = "torch.linalg.lstsq"
    check_tensor("linalg_lstsq", "A", 1, A)
    check_tensor("linalg_lstsq", "B", 2, B)
    require(A.ndim > 1, ShapeError, "{}: input must have at least 2 dimensions.", name)
    require(B.ndim > 0, ShapeError, "{}: other must have at least 1 dimension.", name)
    words = "{}: Expected input and other to have the same dtype, but got input's dtype {} and other's dtype {}"
    require(A.dtype is B.dtype, DtypeError, words, name, A.dtype.legacy, B.dtype.legacy)
    vector = A.ndim - B.ndim
    words = "{}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
    require(0 <= vector <= 1, ShapeError, words, name)
    b = B.unsqueeze(-1) if vector else B
    fits = A.shape[-2] == b.shape[-2]
    require(fits, ShapeError, "{}: input.size(-2) should match other.size({})", name, -1 if vector else -2)
    require(A.dtype.category >= dtypes.FLOATING and not is_half(A.dtype), DtypeError, _OTHER_DTYPES)
    driver = "gelsy" if driver is None else driver
    require(driver in _DRIVERS, ShapeError, "{}: parameter `driver` should be one of ({})", name, ", ".join(_DRIVERS))
    epsilon = dtypes.finfo(A.dtype).eps * max(A.shape[-2:])
    bound = 0.0 if driver == "gels" else epsilon if rcond is None else float(rcond)
    batch = layout.broadcast_shapes(tuple(A.shape[:-2]), tuple(b.shape[:-2]))
    a, b = (x.expand(*batch, *x.shape[-2:]) for x in (A, b))
    solution, residuals, rank, values = solvers.least_squares(a.detach(), b.detach(), rcond=bound)
    node, moves = "LinalgLstsqBackward0", followed(A, B)
    if moves:  # PyTorch's derivative is that of the product with the pseudoinverse
        solution = called(node, solvers.pseudoinverse(a, 0.0, epsilon) @ b)
        residuals = called(node, (a @ solution - b).abs().square().sum(-2))
    rows, cols = A.shape[-2:]
    if driver == "gelsy" or rows <= cols or (driver != "gels" and bool((rank < cols).any())):
        residuals = called(node, solution.flatten()[:0].abs()) if moves else values.new_empty(0)
    return return_types.linalg_lstsq(
        solution.squeeze(-1) if vector else solution,
        residuals,
        rank.new_empty(0) if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else values.new_empty(0),
    )


# ---- tensors as matrices --------------------------------------------------------------------------------------------


@_listed_in_float32
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of a tensor as a square matrix: its first `ind` dimensions are rows, the others columns.

    >>> import tritensor as torch
    >>> torch.linalg.tensorinv(torch.eye(6).reshape(2, 3, 6)).shape
    tritensor.Size([6, 2, 3])
    """
    require(ind > 0, ShapeError, "Expected a strictly positive integer for 'ind', but got {}", ind)
    rows, cols = A.shape[:ind], A.shape[ind:]
    words = "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got"
    require(prod(rows) == prod(cols), ShapeError, words + " {} != {}", prod(cols), prod(rows))
    return inv(A.reshape(prod(rows), prod(cols))).reshape(*cols, *rows)


@_listed_in_float32
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Solves tensordot(A, X, X.ndim) = B for X: the first dimensions of A, as many as B has, are a matrix's rows.

    Args:
        dims: dimensions of A that are moved to the end first.
    """
    if dims is not None:
        moved = layout.normalize_dims(tuple(dims), A.ndim)
        A = A.permute(*[dim for dim in range(A.ndim) if dim not in moved], *moved)
    rows, cols = A.shape[: B.ndim], A.shape[B.ndim :]
    words = "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
    require(prod(rows) == prod(cols), ShapeError, words + "but got {} != {}", prod(cols), prod(rows))
    return solve(A.reshape(prod(rows), prod(cols)), B.flatten()).reshape(*cols)
