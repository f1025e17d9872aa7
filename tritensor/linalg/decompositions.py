"""The operators of factorisations: LAPACK's, on the host, with PyTorch's gradients.

The gradients are those of PyTorch's torch/csrc/autograd/FunctionsManual.cpp (`cholesky_backward`,
`linalg_qr_backward`, `svd_backward`, `linalg_eig_backward`, `linalg_lu_backward`), written with operators that can be
differentiated again. Those of several results get a list, with None for results that nothing was computed from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import AutogradError, LinAlgError, require
from ..functional.creation.creation import zeros
from ..functional.views.joining import cat
from ..kernels.hosted.family import hosted
from ..kernels.hosted.pivoting import eliminated, orthogonal, permuted, solved_symmetric, symmetric
from ..operators.rules import INTEGRAL
from ..tensors import Tensor
from ..types import dtypes
from .matrices import Matrices, adjoint, failing, identity, on_diagonal, unit_lower
from .triangular import solved, substituted

_WANTS = ": Expected a floating point or complex tensor as input. Got {}"
_PHASE = (
    "The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The specified loss function "
    "depends on this quantity, so it is ill-defined."
)
INFO = dtypes.int32
REFLECTED, MULTIPLIED = Matrices("orgqr_cpu"), Matrices("ormqr_cpu")
DIVIDED = Matrices("lu_solve_cpu", "torch.linalg.lu_solve" + _WANTS)


# ---- Cholesky's -----------------------------------------------------------------------------------------------


@hosted(
    Matrices("cholesky_cpu", "linalg.cholesky" + _WANTS),
    name="linalg_cholesky_ex",
    outputs={"L": None, "info": INFO},
    autocast={"cpu": "float32"},
)
def cholesky(A: np.ndarray, *, upper: bool):
    """L of A = L L^H, from one triangle of A, and the order of the first minor that is not positive, or 0."""
    lower = A.conj().mT if upper else A
    info = np.zeros(A.shape[:-2], np.int32)
    try:
        L = np.linalg.cholesky(lower)
        done = not np.isnan(L.diagonal(0, -2, -1)).any()  # which OpenBLAS passes on
    except np.linalg.LinAlgError:
        done = False
    if not done:
        L = np.tril(lower)
        for place in np.ndindex(info.shape):
            info[place] = _as_far_as_positive(L[place])
    return (L.conj().mT if upper else L), info


def _as_far_as_positive(a: np.ndarray) -> int:
    """Factorise a matrix in place, column by column; the order of the first minor that is not positive, or 0."""
    for j in range(len(a)):
        a[j, j] -= (abs(a[j, :j]) ** 2).sum()
        if not a[j, j].real > 0:
            return j + 1
        a[j, j] = np.sqrt(a[j, j].real)
        a[j + 1 :, j] = (a[j + 1 :, j] - a[j + 1 :, :j] @ a[j, :j].conj()) / a[j, j]
    return 0


@cholesky.gradient
def _(grad: Tensor, L: Tensor, upper: bool):
    L, grad = (adjoint(L), adjoint(grad)) if upper else (L, grad)
    inner = (adjoint(L) @ grad).tril()
    inner = (inner + adjoint(inner.tril(-1))) * 0.5
    return substituted(L, substituted(adjoint(L), inner, upper=True), upper=False, left=False)


# ---- QR -------------------------------------------------------------------------------------------------------


@hosted(Matrices("geqrf_cpu", "linalg.qr" + _WANTS), name="linalg_qr", outputs=("Q", "R"), autocast={"cpu": "float32"})
def qr(A: np.ndarray, *, mode: str):
    """Q, of orthonormal columns, and R, upper triangular, of A = Q R; of the mode "r" R alone."""
    if mode == "r":
        return np.empty(0, A.dtype), orthogonal(A, mode)
    return tuple(orthogonal(A, mode))


@qr.gradient
def _(grads: list[Tensor], Q: Tensor, R: Tensor, mode: str):
    of_q, of_r = grads
    m, n = Q.shape[-2] if mode != "r" else 0, R.shape[-1]
    words = "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
    words += "mode='reduced') if you are going to differentiate through linalg.qr."
    require(mode != "r", AutogradError, words)
    words = "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
    require(mode != "complete" or m <= n, AutogradError, words)
    inner = 0 if of_r is None else of_r @ adjoint(R)
    inner = inner if of_q is None else inner - adjoint(Q) @ of_q
    if m >= n:
        upper = inner.triu()
        inner = Q @ (upper + adjoint(upper) - on_diagonal(_real(_diagonal(upper))))
        return substituted(adjoint(R), inner if of_q is None else inner + of_q, upper=False, left=False)
    lower = (adjoint(inner) - inner).tril()
    if lower.is_complex():  # half of what is imaginary on the diagonal, where nothing else is
        lower = lower - on_diagonal(_diagonal(lower)) * 0.5
    found = substituted(adjoint(R[..., :m]), Q @ lower, upper=False, left=False)
    found = cat([found, zeros(*found.shape[:-1], n - m, dtype=found.dtype, device=found.device)], -1)
    return found if of_r is None else found + Q @ of_r


@hosted(Matrices("geqrf_cpu"), outputs=("a", "tau"), autocast={"cpu": "float32"})
def geqrf(A: np.ndarray):
    """R, below it the vectors of Householder's reflections, and their factors."""
    a, tau = np.linalg.qr(A, "raw")
    return a.mT, tau


# ---- singular values ------------------------------------------------------------------------------------------


@hosted(
    Matrices("linalg_svd_cpu", "linalg.svd" + _WANTS),
    name="linalg_svd",
    outputs={"U": None, "S": "real", "Vh": None},
    autocast={"cpu": "float32"},
)
def svd(A: np.ndarray, *, full_matrices: bool, compute_uv: bool = True):
    """U, S and V^H of A = U diag(S) V^H; S alone unless `compute_uv`."""
    options = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    found = failing("linalg.svd", "singular values", np.linalg.svd, A, **options)
    return tuple(found) if compute_uv else (np.empty(0, A.dtype), found, np.empty(0, A.dtype))


@svd.gradient
def _(grads, U, S, Vh):
    of_u, of_s, of_vh = grads
    k, (m, n) = S.shape[-1], (U.shape[-2], Vh.shape[-1])
    U, of_u = U[..., :k], of_u if of_u is None else of_u[..., :k]
    Vh, of_vh = Vh[..., :k, :], of_vh if of_vh is None else of_vh[..., :k, :]
    values = S.to(U.dtype)
    if of_u is None and of_vh is None:
        return U @ (of_s.unsqueeze(-1).to(U.dtype) * Vh)
    of_left = None if of_u is None else _skew(adjoint(U) @ of_u)
    of_right = None if of_vh is None else _skew(Vh @ adjoint(of_vh))
    if U.is_complex():
        words = _PHASE.replace("eigen", "singular ").replace("quantity, so it is", "phase term, making it")
        turned = sum(_diagonal(part) for part in (of_left, of_right) if part is not None)
        _check_phase(turned, f"svd_backward: {words}")
    left: Any = 0 if of_left is None else of_left * values.unsqueeze(-2)
    inner = left if of_right is None else left + values.unsqueeze(-1) * of_right
    squares = S * S
    inner = inner / _apart(squares.unsqueeze(-2) - squares.unsqueeze(-1)).to(U.dtype)
    if of_s is not None:
        inner = inner + on_diagonal(of_s).to(U.dtype)
    if U.is_complex() and of_left is not None and of_right is not None:
        inner = inner + on_diagonal(_diagonal(of_left) / (2 * values))
    inner = U @ inner
    if m > k and of_u is not None:
        scaled = of_u / values.unsqueeze(-2)
        inner = inner + scaled - U @ (adjoint(U) @ scaled)
    found = inner @ Vh
    if n > k and of_vh is not None:
        scaled = of_vh / values.unsqueeze(-1)
        found = found + U @ (scaled - (scaled @ adjoint(Vh)) @ Vh)
    return found


# ---- eigenvalues ----------------------------------------------------------------------------------------------


@hosted(
    Matrices("linalg_eig_out_cpu", "Unknown Complex ScalarType for {}"),
    name="linalg_eig",
    outputs={"eigenvalues": "complex", "eigenvectors": "complex"},
    autocast={"cpu": "float32"},
)
def eig(A: np.ndarray, *, vectors: bool = True):
    """The eigenvalues of square matrices, and eigenvectors of length 1 unless the values alone are wanted."""
    require(np.isfinite(A).all(), LinAlgError, "torch.linalg.eig: input tensor should not contain infs or NaNs.")
    if not vectors:
        return np.linalg.eigvals(A), np.empty(0, A.dtype)
    return tuple(np.linalg.eig(A))


@eig.gradient
def _(grads, eigenvalues: Tensor, eigenvectors: Tensor):
    of_values, of_vectors = grads
    L, V = eigenvalues, eigenvectors
    Vh = adjoint(V)
    inner = 0 if of_values is None else on_diagonal(of_values)
    if of_vectors is not None:
        turned = Vh @ of_vectors
        _check_phase(_diagonal(turned), f"linalg_eig_backward: {_PHASE}")
        turned = turned - Vh @ (V * _real(_diagonal(turned)).unsqueeze(-2))
        inner = inner + _off_diagonal(turned / _apart(L.unsqueeze(-2) - L.unsqueeze(-1)).conj())
    return solved(Vh, inner @ Vh)


@hosted(
    Matrices("linalg_eigh_cpu"),
    name="linalg_eigh",
    outputs={"eigenvalues": "real", "eigenvectors": None},
    autocast={"cpu": "float32"},
)
def eigh(A: np.ndarray, *, UPLO: str, vectors: bool = True):
    """The eigenvalues of Hermitian matrices in rising order, from one triangle, and orthonormal eigenvectors."""
    found = failing("linalg.eigh", "eigenvalues", np.linalg.eigh if vectors else np.linalg.eigvalsh, A, UPLO=UPLO)
    return tuple(found) if vectors else (found, np.empty(0, A.dtype))


@eigh.gradient
def _(grads, eigenvalues: Tensor, eigenvectors: Tensor):
    (of_values, of_vectors), V = grads, eigenvectors
    Vh = adjoint(V)
    if of_vectors is None:
        return (V * of_values.unsqueeze(-2).to(V.dtype)) @ Vh
    inner = Vh @ of_vectors
    if V.is_complex():
        _check_phase(_diagonal(inner), f"linalg_eigh_backward: {_PHASE}")
    inner = _skew(inner) * 0.5 / _apart(eigenvalues.unsqueeze(-2) - eigenvalues.unsqueeze(-1)).to(V.dtype)
    inner = _off_diagonal(inner)
    if of_values is not None:
        inner = inner + on_diagonal(of_values).to(V.dtype)
    return V @ inner @ Vh


# ---- LU and L D L^T -------------------------------------------------------------------------------------------


@hosted(Matrices("lu_cpu"), name="linalg_lu_factor_ex", outputs={"LU": None, "pivots": INFO, "info": INFO})
def lu(A: np.ndarray):
    """L below the diagonal and U from it on, of A = P L U, the exchanges of rows, and the first pivot that is zero."""
    return eliminated(A)


@lu.gradient
def _(grad: Tensor, LU: Tensor, pivots: Tensor):
    m, n = LU.shape[-2:]
    k = min(m, n)
    L, U, L2, U2 = unit_lower(LU[..., :k, :k]), LU[..., :k, :k].triu(), LU[..., k:, :k], LU[..., :k, k:]
    inner = (adjoint(L) @ grad[..., :k, :k] - grad[..., :k, k:] @ adjoint(U2)).tril(-1)
    inner = inner + (grad[..., :k, :k] @ adjoint(U) - adjoint(L2) @ grad[..., k:, :k]).triu()
    inner = substituted(adjoint(U), inner, upper=False, left=False)
    inner = cat([inner, grad[..., :k, k:]], -1)
    inner = substituted(adjoint(L), inner, upper=True)
    if m > n:
        inner = cat([inner, substituted(adjoint(U), grad[..., k:, :k], upper=False, left=False)], -2)
    order = permutation(pivots, size=m).unsqueeze(-1).expand(inner.shape)
    return inner.new_zeros(inner.shape).scatter(-2, order, inner)


@hosted(INTEGRAL, name="lu_permutation", outputs={"order": dtypes.int64})
def permutation(pivots: np.ndarray, *, size: int):
    """The order of rows that exchanging rows leads to: row i of P^T A is row order[i] of A."""
    words = "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result "
    require(((pivots > 0) & (pivots <= size)).all(), LinAlgError, words + "of lu_factor?")
    return permuted(pivots, size)


@hosted(
    Matrices("ldl_factor_kernel_cpu", "torch.linalg.ldl_factor_ex" + _WANTS),
    name="linalg_ldl_factor_ex",
    outputs={"LD": None, "pivots": INFO, "info": INFO},
)
def ldl(A, *, hermitian):
    """L and D of A = L D L^T (hermitian: L^H) in one matrix, as LAPACK's sytrf, and the first pivot that is zero."""
    return symmetric(A, hermitian)


@hosted(
    Matrices("ldl_solve_cpu", "torch.linalg.ldl_solve" + _WANTS),
    name="linalg_ldl_solve",
    outputs=("X",),
    kinds={"pivots": INFO},
)
def ldl_solve(LD: np.ndarray, pivots: np.ndarray, B: np.ndarray, *, hermitian: bool):
    """X of A X = B, from L D L^T of A."""
    return solved_symmetric(LD, pivots, B, hermitian)


# ---- parts of gradients ---------------------------------------------------------------------------------------


def _diagonal(x: Tensor) -> Tensor:
    rows = np.arange(x.shape[-1])
    return x[..., rows, rows]


def _off_diagonal(x: Tensor) -> Tensor:
    return x.tril(-1) + x.triu(1)


def _real(x: Tensor) -> Tensor:
    return (x + x.conj()) * 0.5 if x.is_complex() else x


def _skew(x: Tensor) -> Tensor:
    return x - adjoint(x)


def _apart(differences: Tensor) -> Tensor:
    """Differences of all pairs of values, with 1 where a value is taken from itself."""
    return differences + identity(differences, differences.shape[-1])


def _check_phase(diagonal: Tensor, words: str) -> None:
    """Raise AutogradError if a gradient turns vectors of which the phase is nobody's choice; a device is waited for."""
    if getattr(diagonal._data, "level", None) is None and not diagonal.is_meta:  # where there is nothing to look at
        require(abs(diagonal.detach()._to_host().imag).max(initial=0) <= 1e-2, AutogradError, words)
