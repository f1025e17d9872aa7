"""Factorisations: that their factors multiply to the matrix, and what is raised for those that have none."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.kernels.hosted import pivoting

KINDS = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SHAPES = [(3, 3), (4, 2), (2, 2, 5), (0, 3, 2), (0, 2), (2, 0), (0, 0)]


def matrices(shape: tuple[int, ...], kind: Any) -> torch.Tensor:
    rng = np.random.default_rng(0)
    made = rng.standard_normal(shape)
    if kind.is_complex:
        made = made + 1j * rng.standard_normal(shape)
    return torch.from_numpy(made.astype(kind.numpy))


def adjoint(x: torch.Tensor) -> torch.Tensor:
    return x.mT.conj() if x.is_complex() else x.mT


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.dtype is expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=2e-5 if found.itemsize // 2 < 8 else 1e-12)


def orthonormal(x: torch.Tensor) -> None:
    same(adjoint(x) @ x, torch.eye(x.shape[-1], dtype=x.dtype).expand(*x.shape[:-2], x.shape[-1], x.shape[-1]))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_factors_multiply_to_the_matrix(kind: Any) -> None:
    for shape in SHAPES:
        a = matrices(shape, kind)
        m, n = shape[-2:]
        for mode in ("reduced", "complete"):
            q, r = torch.linalg.qr(a, mode)
            same(q @ r, a)
            orthonormal(q)
            same(r.triu(), r)
            assert q.shape[-1] == (m if mode == "complete" else min(m, n))
        assert torch.linalg.qr(a, "r").Q.shape == (0,)
        same(torch.linalg.qr(a, "r").R, torch.linalg.qr(a).R)
        for full in (True, False):
            u, s, vh = torch.linalg.svd(a, full_matrices=full)
            k = min(m, n)
            same(u[..., :k] * s.unsqueeze(-2).to(kind) @ vh[..., :k, :], a)
            orthonormal(u)
            orthonormal(adjoint(vh))
            assert u.shape[-1] == (m if full else k) and vh.shape[-2] == (n if full else k)
        same(torch.linalg.svdvals(a), s)
        p, low, up = torch.linalg.lu(a)
        same(p @ low @ up, a)
        same(low.tril(), low)
        same(up.triu(), up)
        assert (abs(low) <= 1.5).all()  # of complex numbers LAPACK compares the sums of both parts
        found, tau = torch.geqrf(a)
        same(found.triu()[..., : min(m, n), :], torch.linalg.qr(a).R)
        if m >= n:
            same(torch.orgqr(found, tau), torch.linalg.qr(a).Q)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_square_matrices(kind: Any) -> None:
    for shape in ((3, 3), (2, 4, 4), (0, 2, 2), (0, 0)):
        a = matrices(shape, kind)
        hermitian = a + adjoint(a)
        values, vectors = torch.linalg.eig(a)
        assert values.is_complex()
        same(a.to(values.dtype) @ vectors, vectors * values.unsqueeze(-2))
        np.testing.assert_allclose((abs(vectors) ** 2).sum(-2).numpy(), 1, rtol=1e-5)
        assert sorted(map(abs, torch.linalg.eigvals(a).flatten().tolist())) == pytest.approx(
            sorted(map(abs, values.flatten().tolist())), rel=1e-4
        )
        for letter, triangle in (("L", hermitian.tril()), ("U", hermitian.triu()), ("l", hermitian.tril())):
            values, vectors = torch.linalg.eigh(triangle, letter)
            assert not values.is_complex() and (values.diff() >= 0).all() if hasattr(values, "diff") else True
            same(vectors * values.unsqueeze(-2).to(kind) @ adjoint(vectors), hermitian)
            same(torch.linalg.eigvalsh(triangle, UPLO=letter), values)
        positive = a @ adjoint(a) + torch.eye(shape[-1], dtype=kind)
        for upper in (False, True):
            triangle = positive.triu() if upper else positive.tril()
            low = torch.linalg.cholesky(triangle, upper=upper)
            same(adjoint(low) @ low if upper else low @ adjoint(low), positive)
            same(low, low.triu() if upper else low.tril())
            same(torch.cholesky(triangle, upper), low)
            assert not torch.linalg.cholesky_ex(triangle, upper=upper).info.any()


@pytest.mark.parametrize("size", [2, 33, 70])
@pytest.mark.parametrize("scipy", [True, False], ids=["scipy", "numpy"])
@pytest.mark.parametrize("kind", [torch.float64, torch.complex128], ids=str)
def test_elimination_with_pivots(size: int, scipy: bool, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By SciPy for the largest where it is installed; without it in blocks."""
    if not scipy:
        monkeypatch.setitem(__import__("sys").modules, "scipy.linalg", None)
    a, b = matrices((2, size, size), kind), matrices((2, size, 3), kind)
    a -= a * torch.eye(size, dtype=kind) * 0.97  # a small diagonal, so that blocks of two rows are pivots
    factors = torch.linalg.lu_factor(a)
    assert factors.pivots.dtype is torch.int32 and (factors.pivots > torch.arange(size)).all()
    for left, adj in product((True, False), repeat=2):
        other, whole = b if left else b.mT, adjoint(a) if adj else a
        x = torch.linalg.lu_solve(*factors, other, left=left, adjoint=adj)
        same(whole @ x if left else x @ whole, other)
    same(torch.lu_solve(b, *factors), torch.linalg.lu_solve(*factors, b))
    for hermitian in (False, True):
        whole = a + (adjoint(a) if hermitian else a.mT)
        ld, pivots = torch.linalg.ldl_factor(whole.tril(), hermitian=hermitian)
        assert (pivots < 0).any() or size == 2
        same(ld.tril(), ld)
        same(whole @ torch.linalg.ldl_solve(ld, pivots, b, hermitian=hermitian), b)
        assert torch.linalg.ldl_solve(ld, pivots, b[:1, :, :0]).shape == (2, size, 0)
    q, r = torch.linalg.qr(a[..., 1:], "complete")
    same(q @ r, a[..., 1:])
    orthonormal(q)
    same(torch.linalg.qr(a[..., 1:], "r").R, r[..., : size - 1, :])
    same(torch.linalg.qr(a[..., 1:]).Q, q[..., : size - 1])
    monkeypatch.setattr(pivoting, "_LARGE", 2)
    for one, other in zip(torch.linalg.lu_factor(a), factors, strict=True):
        same(one, other)


def test_lapacks_form() -> None:
    """As LAPACK gives it: pivots of two rows are negative, and one of them is in both places."""
    a = torch.tensor([[0.0, 1, 2], [1, 0, 3], [2, 3, 0]])
    found = torch.linalg.ldl_factor(a)
    assert found.LD.tolist() == [[0, 0, 0], [2, 0, 0], [1.5, 0.5, -3]] and found.pivots.tolist() == [-3, -3, 3]
    found = torch.linalg.lu_factor(a)
    assert found.LU.tolist()[0] == [2, 3, 0] and found.pivots.tolist() == [3, 2, 3]


def test_factors_of_singular_matrices() -> None:
    zero, bad = torch.zeros(2, 2), torch.tensor([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]])
    assert torch.linalg.lu_factor_ex(torch.ones(2, 2)).info.item() == 2
    assert torch.lu(zero, get_infos=True)[2].item() == 1
    assert torch.linalg.ldl_factor_ex(torch.stack([torch.eye(2), zero])).info.tolist() == [0, 1]
    low, info = torch.linalg.cholesky_ex(torch.stack([torch.eye(3), bad]))
    assert low[0].tolist() == torch.eye(3).tolist() and info.tolist() == [0, 2]
    assert low[1].tolist() == [[1, 0, 0], [2, -3, 0], [0, 0, 1]]  # up to the minor that is negative
    upper = torch.linalg.cholesky_ex(bad, upper=True)
    assert upper.L.tolist() == [[1, 2, 0], [0, -3, 0], [0, 0, 1]] and upper.info.dtype is torch.int32
    assert torch.linalg.cholesky_ex(torch.full((2, 2), torch.nan)).info.item() == 1
    assert torch.linalg.cholesky_ex(-torch.eye(3)).info.item() == 1
    last = torch.eye(3)
    last[2, 2] = -1
    assert torch.linalg.cholesky_ex(last).info.item() == 3


L, ONE, FLAT, WIDE, WHOLE = torch.linalg, torch.eye(3), torch.ones(3), torch.ones(2, 3), torch.ones(2, 2).long()
HALF, NAN, PIVOTS = torch.ones(2, 2).half(), torch.full((2, 2), torch.nan), torch.tensor([1, 2, 3]).int()
NEGATIVE, ZERO = torch.stack([ONE, -ONE]), torch.stack([ONE, ONE * 0])
SQUARE = "A must be batches of square matrices, but they are 2 by 3 matrices"
DIMENSIONS = "The input tensor A must have at least 2 dimensions."
FLOATING = "Expected a floating point or complex tensor as input. Got Long"
MINOR = "positive-definite (the leading minor of order 1 is not positive-definite)."
DIVISION = "is zero and using it on lu_solve would result in a division by zero."
SHAPE = "Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape [3] instead"
REFUSED: list[tuple[str, Any]] = [
    (f"linalg.cholesky: {DIMENSIONS}", lambda: L.cholesky(FLAT)),
    (f"linalg.cholesky: {SQUARE}", lambda: L.cholesky_ex(WIDE)),
    (f"linalg.cholesky: {FLOATING}", lambda: L.cholesky(WHOLE)),
    ("\"cholesky_cpu\" not implemented for 'Half'", lambda: L.cholesky(HALF)),
    (f"linalg.cholesky: (Batch element 1): The factorization could not .*{MINOR}", lambda: L.cholesky(NEGATIVE)),
    (f"linalg.cholesky_ex: The factorization could not .*{MINOR}", lambda: L.cholesky_ex(-ONE, check_errors=True)),
    (f"cholesky: The factorization could not .*{MINOR}", lambda: torch.cholesky(-ONE)),
    (f"linalg.qr: {DIMENSIONS}", lambda: L.qr(FLAT)),
    (f"linalg.qr: {FLOATING}", lambda: torch.qr(WHOLE)),
    ("qr received unrecognized mode 'raw' but expected one of 'reduced'", lambda: L.qr(ONE, "raw")),
    (f"linalg.svd: {DIMENSIONS}", lambda: L.svdvals(FLAT)),
    ("linalg.svd: input should have at least 2 dimensions, but has 1 dimensions instead", lambda: torch.svd(FLAT)),
    ("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA", lambda: L.svd(ONE, driver="gesvd")),
    ("linalg.svd: The algorithm failed to converge because the input matrix contained non-finite", lambda: L.svd(NAN)),
    ("linalg.svd: (Batch element 1): The algorithm failed", lambda: L.svdvals(torch.stack([torch.eye(2), NAN]))),
    (f"linalg.eig: {SQUARE}", lambda: L.eig(WIDE)),
    (f"linalg.eigvals: {DIMENSIONS}", lambda: L.eigvals(FLAT)),
    ("torch.linalg.eig: input tensor should not contain infs or NaNs.", lambda: L.eigvals(NAN)),
    ("Unknown Complex ScalarType for Long", lambda: L.eig(WHOLE)),
    (f"linalg.eigh: {SQUARE}", lambda: L.eigvalsh(WIDE)),
    ("\"linalg_eigh_cpu\" not implemented for 'Long'", lambda: L.eigh(WHOLE)),
    ("Expected UPLO argument to be 'L' or 'U', but got X", lambda: L.eigvalsh(ONE, "X")),
    ("linalg.lu: Expected tensor with 2 or more dimensions. Got size: [3] instead", lambda: L.lu(FLAT)),
    ("linalg.lu_factor: LU without pivoting is not implemented on the CPU", lambda: L.lu_factor(ONE, pivot=False)),
    (f"torch.linalg.lu_factor: (Batch element 1): U[1,1] {DIVISION}", lambda: L.lu_factor(ZERO)),
    (f"torch.linalg.lu_factor: U[2,2] {DIVISION}", lambda: torch.ones(2, 2).lu()),
    (f"torch.linalg.lu_factor_ex: U[1,1] {DIVISION}", lambda: L.lu_factor_ex(ONE * 0, check_errors=True)),
    ("torch.lu_unpack: Expected tensor with 2 or more", lambda: torch.lu_unpack(FLAT, PIVOTS)),
    ("torch.lu_unpack: LU_pivots is expected to be", lambda: torch.lu_unpack(ONE, PIVOTS.long())),
    ("pivots passed to lu_unpack must be between 1 and LU.size(-2)", lambda: torch.lu_unpack(ONE, PIVOTS + 1)),
    ("torch.linalg.lu_solve: A must be batches of square matrices", lambda: L.lu_solve(WIDE, PIVOTS, ONE)),
    (f"torch.linalg.lu_solve: {FLOATING}", lambda: L.lu_solve(WHOLE, PIVOTS, WHOLE)),
    ("linalg.lu_solve: Expected LU and B to have the same dtype", lambda: L.lu_solve(ONE, PIVOTS, ONE.double())),
    ("linalg.lu_solve: pivots should be a Tensor of scalar type", lambda: L.lu_solve(ONE, PIVOTS.long(), ONE)),
    ("linalg.lu_solve: The input tensor B must have at least 2", lambda: L.lu_solve(ONE, PIVOTS, FLAT)),
    ("Incompatible shapes of A and B for the equation AX = B (3x3 and 2x3)", lambda: L.lu_solve(ONE, PIVOTS, WIDE)),
    ("for the equation XA = B (3x3 and 3x2)", lambda: L.lu_solve(ONE, PIVOTS, WIDE.mT, left=False)),
    ("linalg.lu_solve: Number of pivots per batch should be", lambda: L.lu_solve(ONE, PIVOTS[:2], ONE)),
    (f"linalg.lu_solve: {SHAPE}", lambda: L.lu_solve(ZERO, PIVOTS, ONE)),
    (f"torch.linalg.ldl_factor_ex: {SQUARE}", lambda: L.ldl_factor(WIDE)),
    ("torch.linalg.ldl_factor: D[1,1] is zero", lambda: L.ldl_factor(ONE * 0)),
    ("torch.linalg.ldl_factor_ex: D[1,1] is zero", lambda: L.ldl_factor_ex(ONE * 0, check_errors=True)),
    (
        "Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is 3 by 3 but each b matrix is 2 by 3",
        lambda: L.ldl_solve(ONE, PIVOTS, WIDE),
    ),
    ("torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots", lambda: L.ldl_solve(ONE, PIVOTS[:2], ONE)),
    ("torch.linalg.ldl_solve: Expected pivots to be integers. Got Float", lambda: L.ldl_solve(ONE, FLAT, ONE)),
    ("Expected b and A to have the same dtype", lambda: L.ldl_solve(ONE, PIVOTS, ONE.double())),
    ("torch.geqrf: input must have at least 2 dimensions.", lambda: torch.geqrf(FLAT)),
    *[
        (f"torch.linalg.householder_product: {words}", lambda a=a, tau=tau: L.householder_product(a, tau))
        for words, a, tau in (
            ("input must have at least 2 dimensions.", FLAT, FLAT),
            ("input.shape[-2] must be greater than or equal to input.shape[-1]", WIDE, FLAT),
            ("input.shape[-1] must be greater than or equal to tau.shape[-1]", WIDE.mT, FLAT),
            ("Expected tau to have one dimension less than input", ONE, ONE),
            ("Expected batch dimensions of tau to be equal to input.shape[:-2], but got [3]", ZERO, ONE),
            ("tau dtype Double does not match input dtype Float", ONE, FLAT.double()),
        )
    ],
    ("\"orgqr_cpu\" not implemented for 'Long'", lambda: L.householder_product(WHOLE, WHOLE[0])),
    *[
        (f"torch.ormqr: {words}", lambda args=args: torch.ormqr(*args))
        for words, args in (
            ("input must have at least 2 dimensions.", (FLAT, FLAT, ONE)),
            ("other must have at least 2 dimensions.", (ONE, FLAT, FLAT)),
            ("tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1])", (ONE, FLAT[:2], ONE)),
            ("other.shape[-1] must be equal to input.shape[-2]", (WIDE.mT, FLAT[:2], WIDE.mT, False)),
            ("Expected tau to have one dimension less than input", (ONE, ONE, ONE)),
            ("Expected other to have the same number of dimensions as input", (ONE, FLAT, ZERO)),
            ("Expected batch dimensions of tau to be equal to input.shape[:-2], but got [3]", (ZERO, ONE, ZERO)),
            (
                "Expected batch dimensions of other to be equal to input.shape[:-2], but got [1]",
                (ZERO, ONE[:2], ZERO[:1]),
            ),
            ("Expected input and other to have the same dtype, but input has dtypeFloat", (ONE, FLAT, ONE.double())),
        )
    ],
    ("\"ormqr_cpu\" not implemented for 'Long'", lambda: torch.ormqr(WHOLE, WHOLE[0], WHOLE)),
    ("q(=4) must be non-negative integer and not greater than min(m, n)=3", lambda: torch.pca_lowrank(ONE, 4)),
    ("niter(=-1) must be non-negative integer", lambda: torch.pca_lowrank(ONE, niter=-1)),
    ("This function was deprecated since version 1.9 and is now removed. The default behavior", lambda: ONE.symeig()),
    ("This function was deprecated since version 1.9 and is now removed. `torch.linalg.eig`", lambda: torch.eig(ONE)),
]


@pytest.mark.parametrize(("words", "call"), REFUSED, ids=[f"{place}" for place in range(len(REFUSED))])
def test_refused(words: str, call: Any) -> None:
    with pytest.raises((RuntimeError, ValueError)) as raised:
        call()
    first, _, last = words.partition(".*")
    text = str(raised.value)
    assert text.startswith(first) or first in text.splitlines()[0]
    assert last in text


def test_their_error_is_one_type() -> None:
    assert issubclass(torch.linalg.LinAlgError, RuntimeError)
    for call in (lambda: L.cholesky(-ONE), lambda: L.svd(NAN), lambda: L.lu_factor(ONE * 0)):
        with pytest.raises(torch.linalg.LinAlgError):
            call()


def test_results_have_names() -> None:
    assert str(torch.linalg.eigh(torch.tensor([[2.0]]))) == (
        "torch.return_types.linalg_eigh(\neigenvalues=tensor([2.]),\neigenvectors=tensor([[1.]]))"
    )
    assert isinstance(torch.svd(ONE), torch.return_types.svd) and torch.svd(ONE).V.shape == (3, 3)
    assert isinstance(torch.lu_unpack(ONE, PIVOTS), torch.return_types.lu_unpack)
    out, whole = (torch.empty(0), torch.empty(0, dtype=torch.int32)), torch.empty(0, dtype=torch.int32)
    found = torch.linalg.cholesky_ex(ONE * 4, out=out)
    assert found.L is out[0] and out[0].tolist() == (ONE * 2).tolist() and found.info.item() == 0
    assert torch.lu(ONE, out=(out[0], whole))[0] is out[0] and whole.tolist() == [1, 2, 3]


def test_old_names() -> None:
    a = matrices((4, 3), torch.float64)
    u, s, v = a.svd()
    same(u * s @ v.mT, a)
    assert torch.svd(a, some=False).U.shape == (4, 4)
    none = torch.svd(a, compute_uv=False)
    same(none.S, s)
    assert none.U.tolist() == torch.zeros(4, 4).tolist() and none.V.tolist() == torch.zeros(3, 3).tolist()
    assert a.qr().Q.shape == (4, 3) and torch.qr(a, some=False).Q.shape == (4, 4)
    factors, q = a.geqrf(), torch.linalg.qr(a, "complete").Q
    other = matrices((4, 4), torch.float64)
    same(torch.ormqr(*factors, other), q @ other)
    same(torch.ormqr(*factors, other, True, True), q.mT @ other)
    same(factors.a.ormqr(factors.tau, other, left=False), other @ q)
    same(torch.ormqr(a[:, :0], a[0, :0], other), other)
    same(torch.linalg.householder_product(a, a[0, :0]), torch.eye(4, 3, dtype=torch.float64))
    p, low, up = torch.lu_unpack(*a.lu(), unpack_pivots=False)
    assert p.shape == (0,) and low.shape == (4, 3) and up.shape == (3, 3)
    assert torch.lu_unpack(*a.lu(), unpack_data=False).L.shape == (0,)


@pytest.mark.parametrize("shape", [(7, 5), (2, 5, 7)])
def test_few_singular_values(shape: tuple[int, ...]) -> None:
    """Of a matrix of rank 2 all of them are found."""
    a = matrices((*shape[:-1], 2), torch.float64) @ matrices((*shape[:-2], 2, shape[-1]), torch.float64)
    u, s, v = torch.svd_lowrank(a, 3)
    same(u * s.unsqueeze(-2) @ v.mT, a)
    same(torch.svd_lowrank(a, 2, M=a * 0.5)[1], s[..., :2] * 0.5)
    u, s, v = torch.pca_lowrank(a)
    same(u * s.unsqueeze(-2) @ v.mT, a - a.mean(-2, keepdim=True))
    assert torch.pca_lowrank(a, 2, center=False)[2].shape == (*shape[:-2], shape[-1], 2)
