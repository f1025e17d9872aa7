"""The operators of solving: inverses, solutions, determinants, pseudoinverses, least squares, by NumPy's LAPACK.

The gradients are those of PyTorch's torch/csrc/autograd/FunctionsManual.cpp (`linalg_solve_backward`,
`linalg_det_backward`, `slogdet_backward`, `pinv_backward`), written with operators that can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..kernels.hosted.family import hosted
from ..kernels.hosted.pivoting import eliminated
from ..kernels.triangular.family import OfFactors, Triangular
from ..tensors import Tensor
from ..types import dtypes
from .matrices import Matrices, adjoint, failing

_WANTS = ": Expected a floating point or complex tensor as input. Got {}"
_OF_SINGULAR_VALUES = "This function doesn't handle types other than float and double"
INFO = dtypes.int32
# of float64 whatever the matrices are
TOLERANCES = {"atol": dtypes.float64, "rtol": dtypes.float64}


def _mh(x: np.ndarray) -> np.ndarray:
    return x.conj().mT


def _by_columns(x: np.ndarray) -> np.ndarray:
    """The same elements in LAPACK's order, which PyTorch's results have."""
    return np.ascontiguousarray(x.mT).mT


def _regular(run: Callable[..., np.ndarray], a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`run(a, b)` for stacks, and for each matrix of `a` its first pivot that is zero, or 0.

    The results of singular matrices are NaN; their pivots are looked for again, because NumPy does not tell which.
    """
    try:
        return run(a, b), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    found, numbers = np.empty((*batch, *b.shape[-2:]), b.dtype), np.zeros(batch, np.int32)
    a, b = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    for place in np.ndindex(batch):
        try:
            found[place] = run(a[place], b[place])
        except np.linalg.LinAlgError:
            found[place], numbers[place] = np.nan, int(eliminated(a[place])[2]) or len(a[place])
    return found, numbers


@hosted(
    Matrices("inv_cpu", "linalg.inv" + _WANTS),
    name="linalg_inv_ex",
    outputs={"inverse": None, "info": INFO},
    autocast={"cpu": "float32"},
)
def inverse(A: np.ndarray):
    """The inverse, and 0, or the number of a pivot that is zero."""
    return _regular(lambda a, _: np.linalg.inv(a.mT).mT, A, A)


@inverse.gradient
def _(grad: Tensor, inverse: Tensor):
    turned = adjoint(inverse)
    return -(turned @ grad @ turned)


@hosted(Matrices("lu_cpu", "linalg.solve" + _WANTS), name="linalg_solve_ex", outputs={"result": None, "info": INFO})
def solution(A: np.ndarray, B: np.ndarray, *, left: bool = True, vector: bool = False):
    """X of A @ X = B (X @ A = B unless `left`), and 0 or the number of a pivot that is zero; with `vector` the last
    dimension of B, of size 1, is left out."""
    if left:
        found, info = _regular(lambda a, b: _by_columns(np.linalg.solve(a, b)), A, B)
        return (found[..., 0] if vector else found), info
    found, info = _regular(np.linalg.solve, A.mT, B.mT)
    return found.mT, info


@solution.gradient
def _(grad: Tensor, A, result, left: bool, vector, needs: tuple[bool, ...]):
    if vector:
        of_b = solution(adjoint(A), grad.unsqueeze(-1))[0]
        return (-(of_b @ adjoint(result.unsqueeze(-1))) if needs[0] else None), of_b
    of_b = solution(adjoint(A), grad, left=left)[0]
    return (_of_matrix(of_b, result, left) if needs[0] else None), of_b


def _of_matrix(of_b: Tensor, x: Tensor, left: bool) -> Any:
    """The gradient of A, where X solves A @ X = B or X @ A = B, from that of B."""
    return -(of_b @ adjoint(x)) if left else -(adjoint(x) @ of_b)


# ---- triangular matrices --------------------------------------------------------------------------------------------

substituted = Triangular("linalg_solve_triangular", Matrices("triangular_solve_cpu"))
cholesky_solved = OfFactors("cholesky_solve", Matrices("cholesky_solve_cpu"))
cholesky_solved.autocasts(cpu="float32")


@substituted.gradient
def _(grad: Tensor, A: Tensor, out: Tensor, upper: bool, left: bool, unitriangular: bool, needs: tuple[bool, ...]):
    of_b = substituted(adjoint(A), grad, upper=not upper, left=left, unitriangular=unitriangular)
    if not needs[0]:
        return None, of_b
    of_a = _of_matrix(of_b, out, left)
    return (of_a.triu(int(unitriangular)) if upper else of_a.tril(-int(unitriangular))), of_b


@cholesky_solved.gradient
def _(grad: Tensor, A: Tensor, out: Tensor, upper: bool, needs: tuple[bool, ...]):
    of_b = cholesky_solved(A, grad, upper=upper)
    if not needs[0]:
        return None, of_b
    both = of_b @ adjoint(out)
    both = both + adjoint(both)
    return (-(A @ both) if upper else -(both @ A)), of_b


# ---- determinants ---------------------------------------------------------------------------------------------------


@hosted(Matrices("lu_cpu", "linalg.det" + _WANTS), name="linalg_det")
def det(A: np.ndarray):
    """The determinant."""
    return np.linalg.det(A)


@det.gradient
def _(grad: Tensor, A: Tensor):
    return grad[..., None, None] * cofactors(A)


@hosted(Matrices("lu_cpu"))
def cofactors(A: np.ndarray):
    """The conjugates of the determinants of a matrix without a row and a column: conj(det(A)) * inv(A)^H, also of
    singular matrices."""
    det = np.linalg.det(A)
    if np.all(np.isfinite(det) & (det != 0)):
        try:
            return np.conj(det)[..., None, None] * _mh(np.linalg.inv(A))
        except np.linalg.LinAlgError:
            pass
    u, s, vh = np.linalg.svd(A)
    before, after = _products(s)
    turned = np.conj(np.linalg.det(u) * np.linalg.det(vh))
    return turned[..., None, None] * ((u * (before * after)[..., None, :]) @ vh)


def _products(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The products of the elements before each along the last dimension, and of those after."""
    ones = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], -1), -1)
    return before, np.cumprod(np.concatenate([ones, s[..., :0:-1]], -1), -1)[..., ::-1]


@cofactors.gradient
def _(grad: Tensor, A: Tensor):
    return cofactors_moved(A, grad)


@hosted(Matrices("lu_cpu"))
def cofactors_moved(A: np.ndarray, G: np.ndarray):
    """The conjugate of how the minors of conj(cofactors(A)) change as A does by conj(G): of determinants of two rows
    and two columns less, so of any matrix."""
    u, s, vh = np.linalg.svd(A)
    before, after = _products(s)
    rows = np.arange(s.shape[-1])
    between = np.cumprod(np.where(rows > rows[:, None], s[..., None, :], 1), -1)
    between = np.concatenate([np.ones_like(between[..., :1]), between[..., :-1]], -1)  # [i, j]: of s[i + 1 : j]
    minors = np.triu(before[..., :, None] * between * after[..., None, :], 1)
    minors = minors + minors.mT
    change = vh @ _mh(G) @ u
    found = -change * minors
    found[..., rows, rows] = (minors @ change.diagonal(0, -2, -1)[..., None])[..., 0]
    turned = np.conj(np.linalg.det(u) * np.linalg.det(vh))
    return turned[..., None, None] * (u @ found @ vh)


def _moved_twice(grad: Tensor, A: Tensor, G: Tensor) -> Any:
    """The third derivative of the determinant, of regular matrices."""
    k, size = inverse(A)[0].mT, det(A)[..., None, None]
    g, h = ((k * x).sum((-2, -1), keepdim=True) for x in (G, grad))
    kg, kh = (k @ x.mT @ k for x in (G, grad))
    found = h * (g * k - kg) - (kh * G).sum((-2, -1), keepdim=True) * k - g * kh + kh @ G.mT @ k + k @ G.mT @ kh
    return (size * found).conj()


cofactors_moved.gradients(A=_moved_twice, G=lambda grad, A: cofactors_moved(A, grad))


@hosted(
    Matrices("lu_cpu", "linalg.slogdet" + _WANTS), name="linalg_slogdet", outputs={"sign": None, "logabsdet": "real"}
)
def slogdet(A: np.ndarray):
    """The logarithm of the determinant's absolute value, and its sign: of complex numbers its direction."""
    return tuple(np.linalg.slogdet(A))


@slogdet.gradient
def _(grads, A, sign):
    of_sign, g = grads
    if sign.is_complex() and of_sign is not None:  # d log(det) is the trace of inv(A) dA, its imaginary part turns sign
        turned = of_sign * sign.conj()
        g = (0 if g is None else g) + (turned - turned.conj()) / 2
    elif g is None:
        return None
    return g[..., None, None] * adjoint(inverse(A)[0])


# ---- singular values ------------------------------------------------------------------------------------------------


def _spectrum(a: np.ndarray, hermitian: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Factors u, s, vh of which `(u * s) @ vh` is the matrix; s may be negative, or without order, if `hermitian`."""
    if not hermitian:
        return failing("linalg.svd", "singular values", np.linalg.svd, a, full_matrices=False)
    s, u = failing("linalg.eigh", "eigenvalues", np.linalg.eigh, a)
    return u, s, _mh(u)


def _counting(s: np.ndarray, atol: np.ndarray | float, rtol: np.ndarray | float) -> np.ndarray:
    """Tests which values are larger than both tolerances, the second of which is relative to the largest value."""
    size = np.abs(s)
    top = size.max(-1, keepdims=True, initial=0)
    bounds = [np.asarray(x)[..., None] * scale for x, scale in ((atol, 1), (rtol, top))]
    return size > np.maximum(*bounds)


def _inverted(s: np.ndarray, counting: np.ndarray) -> np.ndarray:
    return np.where(counting, 1 / np.where(counting, s, 1), 0)


@hosted(Matrices("svd_cpu"), name="linalg_pinv", kinds=TOLERANCES)
def pseudoinverse(A: np.ndarray, atol: float, rtol: float, *, hermitian: bool = False):
    """The pseudoinverse; singular values up to the larger of `atol` and `rtol` times the largest are taken for 0."""
    u, s, vh = _spectrum(A, hermitian)
    return (_mh(vh) * _inverted(s, _counting(s, atol, rtol))[..., None, :]) @ _mh(u)


pseudoinverse.refuses = dict.fromkeys(TOLERANCES, "linalg_pinv")


@pseudoinverse.gradient
def _(grad: Tensor, A: Tensor, out: Tensor):
    """G. H. Golub and V. Pereyra, "The Differentiation of Pseudo-Inverses", SIAM J. Numer. Anal. 10, 1973."""
    p, ph, gh = out, adjoint(out), adjoint(grad)
    if A.shape[-2] <= A.shape[-1]:
        k = gh @ p
        kph = k @ ph
        return -adjoint(p @ k) + kph - (A @ p) @ kph + (ph @ p) @ (gh - k @ A)
    k = p @ gh
    phk = ph @ k
    return -adjoint(k @ p) + (gh - A @ k) @ p @ ph + phk - (phk @ p) @ A


@hosted(
    Matrices("svd_cpu"),
    name="linalg_matrix_rank",
    outputs={"out": dtypes.int64},
    kinds=TOLERANCES,
    autocast={"cpu": "float32"},
)
def rank(A, atol, rtol, *, hermitian: bool = False):
    """The number of singular values that are larger than both tolerances."""
    if hermitian:
        s = failing("linalg.eigh", "eigenvalues", np.linalg.eigvalsh, A)
    else:
        s = failing("linalg.svd", "singular values", np.linalg.svd, A, compute_uv=False)
    return np.count_nonzero(_counting(s, atol, rtol), -1)


@hosted(
    Matrices("svd_cpu", _OF_SINGULAR_VALUES),
    name="linalg_lstsq",
    outputs={"solution": None, "residuals": "real", "rank": dtypes.int64, "singular_values": "real"},
    autocast={"cpu": "float32"},
)
def least_squares(A: np.ndarray, B: np.ndarray, *, rcond: float):
    """The smallest X for which A @ X - B is smallest, the squares of that, the rank, and the singular values."""
    u, s, vh = _spectrum(A, False)
    counting = _counting(s, np.zeros(()), np.asarray(rcond))
    found = _inverted(s, counting)[..., None] * (_mh(u) @ B)
    solution = _mh(vh) @ found
    residuals = np.square(np.abs(A @ solution - B)).sum(-2)
    return _by_columns(solution), residuals, np.count_nonzero(counting, -1), s


# ---- samples --------------------------------------------------------------------------------------------------------


def _regular_matrices(draw: Any, *shape: int) -> np.ndarray:
    """Matrices far from singular ones."""
    return draw(shape) + np.asarray(4 * np.eye(shape[-1]), draw(()).dtype)


def _of_matrices(draw: Any) -> Iterator[tuple[Any, ...]]:
    for shape in ((3, 3), (5, 1, 2, 2), (0, 0), (0, 2, 2)):
        yield [_regular_matrices(draw, *shape)], {}


for _operator in (inverse, det, cofactors, slogdet):
    _operator.samples(_of_matrices)


@cofactors_moved.samples
def _(draw):
    for (matrix,), _ in _of_matrices(draw):
        yield [matrix, draw(matrix.shape)], {}


@solution.samples
def _(draw):
    for a, b in (((3, 3), (3, 4)), ((2, 1, 2, 2), (4, 2, 1)), ((2, 2), (3, 2, 0)), ((0, 0), (0, 2))):
        yield [_regular_matrices(draw, *a), draw(b)], {}
    yield [_regular_matrices(draw, 2, 2), draw((3, 4, 2))], {"left": False}
    yield [_regular_matrices(draw, 2, 2), draw((3, 2, 1))], {"vector": True}


@pseudoinverse.samples
def _(draw):
    for shape in ((3, 2), (2, 2, 4), (0, 2)):
        yield [draw(shape), *(draw(shape[:-2], (0, 0.01)).astype(np.float64) for _ in range(2))], {}, (0,)
    square = draw((3, 3))
    yield [square + square.mT, 0.0, 0.01], {"hermitian": True}, ()


@rank.samples
def _(draw):
    for inputs, metadata, *_ in pseudoinverse.calls(draw):
        yield inputs, metadata


@least_squares.samples
def _(draw):
    for a, b in (((4, 2), (4, 3)), ((2, 2, 3), (2, 2, 1)), ((0, 2), (0, 2))):
        yield [draw(a), draw(b)], {"rcond": 1e-6}
