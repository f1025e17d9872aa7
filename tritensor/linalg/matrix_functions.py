"""Powers, exponentials and products of matrices, products of vectors: of differentiable operators, which kernels
compute on a device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..autograd.gradients import called
from ..autograd.levels import followed
from ..autograd.mode import no_grad, recording
from ..autograd.tape import Gradient, Node, record
from ..errors import DtypeError, ShapeError, require
from ..functional.elementwise.pointwise import where
from ..functional.matmul.linear_algebra import matmul
from ..functional.matmul.products import chained, crossed
from ..functional.views.joining import cat
from ..ground.arguments import check_tensor, whole
from ..ground.public import public
from ..kernels.matmul.family import c_name
from ..memory.lifted import Lifted
from ..operators.outputs import Into, takes_out
from ..operators.rules import is_half
from ..tensors import Tensor, wrap
from ..types import dtypes
from . import solving
from .matrices import adjoint, check_matrices, identity

__all__ = ["cross", "diagonal", "matmul", "matrix_exp", "matrix_power", "multi_dot", "vander", "vecdot"]

_listed = public(package=False, functional=False, out=takes_out(Into("cast")))
_without_out = public(package=False, functional=False)
_WANTS = "Expected a floating point or complex tensor as input. Got"


@_listed
def matrix_power(A: Tensor, n: int) -> Tensor:
    """The n-th power of square matrices; for a negative n that of their inverses.

    >>> import tritensor as torch
    >>> torch.linalg.matrix_power(torch.tensor([[1, 1], [1, 0]]), 10)
    tensor([[89, 55],
            [55, 34]])

    Raises:
        ShapeError: the matrices are not square. LinAlgError: n is negative, and a matrix singular.
    """
    n = whole("linalg_matrix_power", "n", n)
    check_matrices("linalg.matrix_power", A)
    if n == 0:
        return A.clone().copy_(identity(A, A.shape[-1]))
    if n < 0:
        A, n = solving.inv(A), -n
    elif n == 1:
        return A.clone()
    found, square = None, A
    while n:  # the squares that n is a sum of
        if n & 1:
            found = square if found is None else found @ square
        n >>= 1
        square = square @ square if n else square
    return found  # type: ignore[return-value]


# The 1-norms up to which the Taylor polynomial of degree 15 is the exponential of a matrix that rounding could make of
# the given one: table 3.1 of A. H. Al-Mohy and N. J. Higham, "Computing the Action of the Matrix Exponential", SIAM J.
# Sci. Comput. 33, 2011. The degree here is 16.
_NORMS = {dtypes.float32: 2.2, dtypes.complex64: 2.2, dtypes.float64: 0.64, dtypes.complex128: 0.64}


@_without_out
def matrix_exp(A: Tensor) -> Tensor:
    """The matrix exponential of square matrices: the limit of I + A + A @ A / 2 + ...

    By scaling and squaring of a Taylor polynomial, that is by products of matrices alone. A device is waited for once,
    for the largest norm. Half precision is computed in float32.

    >>> import tritensor as torch
    >>> torch.linalg.matrix_exp(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])

    Raises:
        ShapeError: the matrices are not square. DtypeError: integers.
    """
    check_tensor("linalg_matrix_exp", "A", 1, A)
    check_matrices("linalg.matrix_exp", A)
    require(A.dtype.category >= dtypes.FLOATING, DtypeError, "linalg.matrix_exp: {} {}", _WANTS, A.dtype.legacy)
    if followed(A) and not A._needs:
        return _exponential(A)
    with no_grad():
        result = _exponential(A._without_node())
    if recording.enabled and A._needs:
        result._node = record(_MatrixExpBackward(), (A._edge(),), (A,), (A._version,))
        result._needs = True
    return result


def _exponential(A: Tensor) -> Tensor:
    if is_half(A.dtype):
        return _exponential(A.float()).to(A.dtype)
    if not A.numel():
        return A.clone()
    size = A.detach().abs().sum(-2).amax(-1)
    times = (size / _NORMS[A.dtype]).log2().ceil().clamp(min=0)
    finite = where(times.isfinite(), times, 0)
    x = A * (2.0**-times)[..., None, None].to(A.dtype)
    powers = [identity(A, A.shape[-1]), x, x @ x]
    powers += [powers[2] @ x, powers[2] @ powers[2]]
    found = powers[4] * (1 / math.factorial(16))
    for start in (12, 8, 4, 0):
        for i in range(4):
            found = found + powers[i] * (1 / math.factorial(start + i))
        found = powers[4] @ found if start else found
    most = finite._data
    while isinstance(most, Lifted) and most.level is not None:  # of all samples
        most = most.array
    for done in range(0 if A.is_meta else int(wrap(most).max().item())):
        found = where((finite > done)[..., None, None], found @ found, found)
    return found


class _MatrixExpBackward(Gradient):
    name = "LinalgMatrixExpBackward0"

    def run(self, node: Node, gradient: Any) -> tuple[Any, ...]:
        """The upper right block of the exponential of [[A^H, G], [0, A^H]]: R. Mathias, "A Chain Rule for Matrix
        Functions and Applications", SIAM J. Matrix Anal. Appl. 17, 1996."""
        (A,) = node.saved
        n, turned = A.shape[-1], adjoint(A)
        if not gradient.numel():
            return (gradient.clone(),)
        # linear in G, of which a large one would count as the norm of the whole, and cost as many digits
        scale = gradient.detach().abs().amax((-2, -1), keepdim=True)
        scale = where((scale > 0) & scale.isfinite(), scale, 1)
        below = cat((turned * 0, turned), dim=-1)
        both = matrix_exp(cat((cat((turned, gradient / scale), dim=-1), below), dim=-2))
        return (both[..., :n, n:] * scale,)


# ---- products -------------------------------------------------------------------------------------------------------


@public(package=False, functional=False, out=takes_out(Into("cast")), autocast={"cuda": "lower"})
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of two matrices or more in the order of the fewest multiplications; the ends may be vectors.

    >>> import tritensor as torch
    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 9), torch.ones(9)])
    tensor([27., 27.])

    Raises:
        ShapeError: fewer than two, other dimensions, or shapes that do not fit. DtypeError: the dtypes differ.
    """
    count = len(tensors)
    require(count > 1, ShapeError, "multi_dot(): expected at least 2 tensors but got {}", count)
    for place, x in enumerate(tensors):
        check_tensor("linalg_multi_dot", "tensors", 1, x)
        wanted = ("1D or 2D", (1, 2)) if place in (0, count - 1) else ("2D", (2,))
        words = "multi_dot(): tensor {} must be {} but got {}D"
        require(x.ndim in wanted[1], ShapeError, words, place, wanted[0], x.ndim)
        if x.dtype is not tensors[0].dtype:
            words = "multi_dot(): all tensors must have be the same dtype but tensor 0 is"
            raise DtypeError(f"{words} {c_name(tensors[0].dtype)} and tensor {place} {c_name(x.dtype)}")
    parts = list(tensors)
    parts[0] = parts[0].unsqueeze(0) if parts[0].ndim == 1 else parts[0]
    parts[-1] = parts[-1].unsqueeze(-1) if parts[-1].ndim == 1 else parts[-1]
    for place, (x, y) in enumerate(pairwise(parts)):
        words = "multi_dot(): tensors {} and {} with shapes {} and {} cannot be multiplied"
        require(x.shape[1] == y.shape[0], ShapeError, words, place, place + 1, list(x.shape), list(y.shape))
    return chained(parts).view(*tensors[0].shape[:-1], *tensors[-1].shape[1:])


@public(package=False, functional=False, out=takes_out(Into("cast")), autocast={"cpu": "lower", "cuda": "lower"})
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot product of vectors along a dimension, the sum of conj(x) * y; the others broadcast.

    Both are of one floating or complex dtype.

    >>> import tritensor as torch
    >>> torch.linalg.vecdot(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 10.]))
    tensor([21., 43.])
    """
    require(x.dtype.category >= dtypes.FLOATING, DtypeError, "linalg.vecdot: {} {}", _WANTS, x.dtype.legacy)
    words = "linalg.vecdot: Expected x and y to have the same dtype, but found x of type {} and y of type {} instead"
    require(x.dtype is y.dtype, DtypeError, words, x.dtype.legacy, y.dtype.legacy)
    conjugate = x.conj() if x.is_complex() else x
    if x.ndim == y.ndim == 1:
        return called("VdotBackward0", conjugate @ y)
    return (conjugate * y).sum(dim)


@_listed
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product along a dimension of size 3; the others broadcast. Both are of one dtype, not of booleans.

    >>> import tritensor as torch
    >>> torch.linalg.cross(torch.tensor([1., 0., 0.]), torch.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    return crossed(input, other, dim)


@_without_out
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The Vandermonde matrix: powers of the elements from 0 to N - 1 along a new last dimension; N the last one's size.

    >>> import tritensor as torch
    >>> torch.linalg.vander(torch.tensor([2, 3]), N=4)
    tensor([[ 1,  2,  4,  8],
            [ 1,  3,  9, 27]])
    """
    check_tensor("linalg_vander", "x", 1, x)
    words = "linalg.vander supports floating point, complex, and integer tensors, but got Bool"
    require(x.dtype is not dtypes.bool_, DtypeError, words)
    count = (x.shape[-1] if x.ndim else 1) if N is None else N
    require(count > 1, ShapeError, "N must be greater than 1.")
    base = (x if x.dtype.category > dtypes.INTEGER else x.long()).reshape(x.shape or 1).unsqueeze(-1)
    powers = [base.new_ones(base.shape), base]
    while len(powers) < count:
        powers.append(powers[-1] * base)
    return cat(powers, dim=-1)


@_without_out
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """`torch.diagonal` of the last two dimensions: a view.

    >>> import tritensor as torch
    >>> torch.linalg.diagonal(torch.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
    return A.diagonal(offset, dim1, dim2)
