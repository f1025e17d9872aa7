"""Names of linear algebra outside of `linalg`: older forms of its functions, and those that PyTorch has removed."""

from __future__ import annotations

from typing import Any, NoReturn

from .. import return_types
from ..autograd.gradients import called
from ..errors import ShapeError, require
from ..functional.elementwise.pointwise import where
from ..functional.matmul.linear_algebra import without
from ..ground.arguments import check_tensor
from ..ground.public import public
from ..operators.outputs import Into, takes_out
from ..tensors import Tensor
from . import matrix_functions, solvers, solving
from .matrices import check_matrices, identity

_old = public(functional=False, method=True, out=takes_out())
_old_in_float32 = public(functional=False, method=True, out=takes_out(), autocast={"cpu": "float32"})
# PyTorch casts to out in these
_cast_in_float32 = public(method=True, functional=False, out=takes_out(Into("cast")), autocast={"cpu": "float32"})
_plain = public(functional=False, method=True)


@_old_in_float32
def inverse(input: Tensor) -> Tensor:
    """`linalg.inv`."""
    return solving.inv(input)


@_plain
def det(input: Tensor) -> Tensor:
    """`linalg.det`."""
    return solving.det(input)


@_old
def slogdet(input: Tensor) -> return_types.slogdet:
    """`linalg.slogdet`."""
    return return_types.slogdet(*solving.slogdet(input))


@_plain
def logdet(input: Tensor) -> Tensor:
    """The logarithms of determinants; NaN where one is negative.

    >>> import tritensor as torch
    >>> torch.logdet(torch.tensor([[2., 0.], [0., 0.5]]))
    tensor(0.)
    """
    check_matrices("logdet", input)
    sign, size = solvers.slogdet(input)
    return sign.log() + size if sign.is_complex() else where(sign == -1, float("nan"), size)  # type: ignore[no-any-return]


@public(functional=False, method=True, autocast={"cpu": "float32"})
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`linalg.pinv`."""
    return solving.pinv(input, rcond)


@_old
def matrix_power(input: Tensor, n: int) -> Tensor:
    """`linalg.matrix_power`."""
    return matrix_functions.matrix_power(input, n)


@_plain
def matrix_exp(input: Tensor) -> Tensor:
    """`linalg.matrix_exp`."""
    return matrix_functions.matrix_exp(input)


@_cast_in_float32
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverses of L @ L^H, of which L is given; with `upper` those of U^H @ U.

    >>> import tritensor as torch
    >>> torch.cholesky_inverse(torch.tensor([[2., 0.], [0., 1.]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    check_matrices("cholesky_inverse", input)
    if getattr(input._data, "has_tangents", False):  # gradients are of the whole matrix, as PyTorch's; tangents are not
        input = input.triu() if upper else input.tril()
    one = identity(input, input.shape[-1])[(None,) * (input.ndim - 2)]
    return called("CholeskyInverseBackward0", solvers.cholesky_solved(input, one, upper=upper))  # type: ignore[no-any-return]


@_cast_in_float32
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """Solves (L @ L^H) @ X = input for X, of which L is `input2`; with `upper` (U^H @ U) @ X = input. Batches
    broadcast."""
    for letter, x in (("b", input), ("u", input2)):
        words = "{} should have at least 2 dimensions, but has {} dimensions instead"
        require(x.ndim > 1, ShapeError, words, letter, x.ndim)
    rows, cols = input2.shape[-2:]
    words = "A must be batches of square matrices, but they are {} by {} matrices"
    require(rows == cols, ShapeError, words, rows, cols)
    words = "Incompatible matrix sizes for linear_solve: each A matrix is {} by {} but each b matrix is {} by {}"
    require(cols == input.shape[-2], ShapeError, words, rows, cols, *input.shape[-2:])
    return solvers.cholesky_solved(*solving.fitting("cholesky_solve", input2, input), upper=upper)  # type: ignore[no-any-return]


@_old_in_float32
def triangular_solve(
    input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> return_types.triangular_solve:
    """Solves A @ X = input for X, with `transpose` A^T @ X = input; returns a copy of A too: see
    `linalg.solve_triangular`."""
    for letter, x in (("b", input), ("A", A)):
        words = "torch.triangular_solve: Expected {} to have at least 2 dimensions, but it has {} dimensions instead"
        require(x.ndim > 1, ShapeError, words, letter, x.ndim)
    a, b = solving.fitting("triangular_solve", A, input)
    upper = bool(upper) is not bool(transpose)
    found = solvers.substituted(a.mT if transpose else a, b, upper=upper, unitriangular=unitriangular)
    copied = without(input, A.expand(*found.shape[:-2], *A.shape[-2:]).clone())
    return return_types.triangular_solve(*[called("TriangularSolveBackward0", each) for each in (found, copied)])


_REMOVED = "This function was deprecated since version 1.9 and is now removed."


@_plain
def lstsq(input: Tensor, A: Tensor) -> NoReturn:
    """Removed from PyTorch: `linalg.lstsq`, with its arguments in the other order, takes its place."""
    raise ShapeError(f"{_REMOVED} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.")


@_plain
def solve(input: Tensor, A: Tensor) -> NoReturn:
    """Removed from PyTorch: `linalg.solve`, with its arguments in the other order, takes its place."""
    raise ShapeError(f"{_REMOVED} `torch.solve` is deprecated in favor of `torch.linalg.solve`.")


@public(functional=False)
def matrix_rank(input: Tensor, tol: Any = None, symmetric: bool = False) -> NoReturn:
    """Removed from PyTorch: `linalg.matrix_rank` takes its place."""
    check_tensor("matrix_rank", "input", 1, input)
    words = "\nPlease use the `torch.linalg.matrix_rank` function instead. The parameter 'symmetric' was renamed in "
    raise ShapeError(f"{_REMOVED}{words}`torch.linalg.matrix_rank()` to 'hermitian'.")
