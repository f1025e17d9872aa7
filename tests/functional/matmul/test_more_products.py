"""Products made of others: with factors, over several dimensions, of chains; traces and cross products."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import ArgumentError, DtypeError, RangeError, ShapeError, UnsupportedError

NAN = math.nan
RNG = np.random.default_rng(0)
A, B, V = (RNG.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 4), (2, 4, 5), 4))


@pytest.mark.parametrize(
    ("name", "operands", "product"),
    [
        ("addmm", (A[0], B[0]), A[0] @ B[0]),
        ("addmv", (A[0], V), A[0] @ V),
        ("addr", (V, A[0, 0]), np.outer(V, A[0, 0])),
        ("addbmm", (A, B), (A @ B).sum(0)),
        ("baddbmm", (A, B), A @ B),
    ],
)
def test_sums_with_factors(device, name, operands, product) -> None:
    function = getattr(torch, name)
    first, second = (torch.tensor(each, device=device) for each in operands)
    x = torch.full(product.shape, NAN, device=device)
    np.testing.assert_allclose(function(x, first, second, beta=0).cpu().numpy(), product, rtol=1e-4, atol=1e-6)
    one = torch.ones(1, device=device, requires_grad=True)
    made = function(one, first, second, beta=2, alpha=3)
    np.testing.assert_allclose(made.detach().cpu().numpy(), 2 + 3 * product, rtol=1e-4, atol=1e-5)
    made.sum().backward()
    assert one.grad.item() == 2 * product.size
    if name != "addmm":
        assert made.grad_fn.name() == f"{name.title()}Backward0"
    held = torch.ones(product.shape, device=device)
    assert getattr(held, f"{name}_")(first, second) is held
    np.testing.assert_allclose(held.cpu().numpy(), 1 + product, rtol=1e-4, atol=1e-5)
    out = torch.empty(0, device=device)
    assert function(held, first, second, out=out) is out and out.shape == product.shape


def test_sums_of_integers_cut_the_factors_off() -> None:
    x, v = torch.ones(2, 2, dtype=torch.int64), torch.ones(2, dtype=torch.int64)
    assert torch.addmv(v, x, v, alpha=1.5).tolist() == [3, 3]
    assert torch.addr(x.bool(), v.bool(), v.bool()).dtype is torch.bool
    assert torch.addr(x.bool() & False, v.bool(), v.bool(), beta=False).all()


def test_products_over_dimensions(device) -> None:
    x, y = torch.tensor(A, device=device), torch.tensor(B, device=device)
    for dims in (([0, 2], [0, 1]), torch.tensor([[0, 2], [0, 1]]), ([-3, 2], [0, -2])):
        made = torch.tensordot(x, y, dims)
        np.testing.assert_allclose(made.cpu().numpy(), np.tensordot(A, B, ([0, 2], [0, 1])), rtol=1e-4, atol=1e-5)
    assert torch.equal(torch.tensordot(x, y, axes=dims), made)
    assert torch.tensordot(x, y, 0).shape == (2, 3, 4, 2, 4, 5)
    one = torch.tensordot(x, torch.ones(1, 5, device=device), ([2], [0]))
    np.testing.assert_allclose(one.cpu().numpy(), np.repeat(A.sum(2)[..., None], 5, 2), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(torch.kron(x[0], y[0, 0]).cpu().numpy(), np.kron(A[0], B[0, 0]), rtol=1e-6)
    assert torch.kron(torch.ones(2, 1, device=device, requires_grad=True), y[0]).grad_fn.name() == "UnsafeViewBackward0"


def test_traces_and_vectors(device) -> None:
    x = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
    for each in (x, x.t()):
        out = torch.trace(each)
        assert out.item() == 4 and out.grad_fn.name() == "TraceBackward0"
    out.backward()
    assert x.grad.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert torch.trace(torch.ones(0, 3, device=device)).item() == 0
    assert torch.trace(torch.ones(2, 2, dtype=torch.int32, device=device)).dtype is torch.int64
    v = torch.ones(2, device=device)
    assert torch.ger(v, v).tolist() == [[1, 1], [1, 1]] and torch.vdot(v, v).item() == 2
    assert torch.vdot(torch.tensor([1j]), torch.tensor([1j])).item() == 1


def test_chains() -> None:
    sizes = (3, 7, 1, 5, 2)
    chain = [torch.tensor(RNG.standard_normal(shape)) for shape in pairwise(sizes)]
    with pytest.warns(UserWarning, match="chain_matmul is deprecated"):
        made = torch.chain_matmul(*chain)
    np.testing.assert_allclose(made.numpy(), np.linalg.multi_dot([each.numpy() for each in chain]), rtol=1e-12)
    with pytest.warns(UserWarning, match="chain_matmul"):
        single = torch.chain_matmul(chain[0])
    assert single is not chain[0] and single.tolist() == chain[0].tolist()
    with pytest.warns(UserWarning, match="chain_matmul"):
        assert torch.chain_matmul(*chain, out=made) is made


def test_cross_products(device) -> None:
    x, y = RNG.standard_normal((2, 2, 3))
    first, second = torch.tensor(x, device=device, requires_grad=True), torch.tensor(y, device=device)
    made = torch.cross(first, second, 1)
    np.testing.assert_allclose(made.detach().cpu().numpy(), np.cross(x, y), rtol=1e-12)
    assert made.grad_fn.name() == "LinalgCrossBackward0"
    with pytest.warns(UserWarning, match="without specifying the dim arg"):
        assert torch.cross(first, second[:1]).shape == (2, 3)
    made.sum().backward()
    np.testing.assert_allclose(first.grad.cpu().numpy(), np.cross(y, np.ones(3)), rtol=1e-12)


M, T, ONE = torch.ones(2, 3), torch.ones(2, 2, 3), torch.ones(3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch.addmv(ONE, M, ONE), ShapeError, r"size mismatch, got input \(3\), mat \(2x3\), vec \(3\)"),
        (lambda: torch.addmv(ONE, ONE, ONE), ShapeError, "vector . matrix @ vector expected, got 1, 1, 1"),
        (lambda: torch.addmv(M[:, 0].long(), M, ONE), DtypeError, "addmv input tensors must have the same dtype"),
        (lambda: torch.ones(4).addmm_(M, M.t()), ShapeError, r"Bad in-place call: input tensor size \[4\]"),
        (lambda: torch.addr(M, M, ONE), ShapeError, "addr: Expected 1-D argument vec1, but got 2-D"),
        (lambda: torch.addr(M, ONE, ONE), ShapeError, "The expanded size"),
        (lambda: torch.addbmm(M, M, T), ShapeError, "batch1 must be a 3D tensor"),
        (
            lambda: torch.addbmm(M, T, T[:1]),
            ShapeError,
            "batch1 and batch2 must have same number of batches, got 2 and",
        ),
        (lambda: torch.addbmm(M, T, T), ShapeError, "Incompatible matrix sizes"),
        (lambda: torch.addbmm(M[0, 0], T, T.mT.double()), DtypeError, "self and mat2 must have the same dtype"),
        (lambda: torch.baddbmm(M, T, T.mT), ShapeError, "The expanded size"),
        (lambda: torch.baddbmm(M[0, 0], T, T.mT.double()), DtypeError, "expected scalar type Float but found Double"),
        (lambda: torch.tensordot(M, M, -1), ShapeError, "tensordot expects dims >= 0"),
        (lambda: torch.tensordot(M, M, 3), ShapeError, "tensordot expects dims < ndim_a or ndim_b"),
        (lambda: torch.tensordot(M, M, ([1, 0], [1])), ShapeError, "both dimension lists should have same length"),
        (lambda: torch.tensordot(M, M.double()), DtypeError, "both inputs should have same dtype"),
        (lambda: torch.tensordot(M, M, ([0], [1])), ShapeError, "contracted dimensions need to match"),
        (lambda: torch.tensordot(M, M, ([1, 1], [1, 1])), ShapeError, "dim 1 appears multiple times"),
        (lambda: torch.tensordot(M, M, ([2], [1])), RangeError, "Dimension out of range"),
        (lambda: torch.trace(ONE), ShapeError, "trace: expected a matrix, but got tensor with dim 1"),
        (lambda: torch.trace(M.bool()), UnsupportedError, "\"trace\" not implemented for 'Bool'"),
        (lambda: torch.cross(M, ONE, 1), ShapeError, "linalg.cross: inputs must have the same number"),
        (
            lambda: torch.cross(M[0, 0], M[0, 0], -1),
            RangeError,
            "Dimension specified as -1 but tensor has no dimensions",
        ),
        (lambda: torch.cross(M, M, 0), ShapeError, "linalg.cross: inputs dimension 0 must have length 3. Got 2 and 2"),
        (lambda: torch.cross(M, M.double(), 1), DtypeError, "expected scalar type Float but found Double"),
        (lambda: torch.cross(M.bool(), M.bool(), 1), UnsupportedError, "\"cross\" not implemented for 'Bool'"),
    ],
)
def test_refusals(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.filterwarnings("ignore:torch.chain_matmul", "ignore:Using torch.cross")
def test_refusals_that_come_after_a_warning() -> None:
    for call, error, words in (
        (lambda: torch.chain_matmul(), ShapeError, "Expected one or more matrices"),
        (lambda: torch.chain_matmul(M, 1), ArgumentError, "expected Tensor as element 1"),
        (lambda: torch.chain_matmul(M, ONE), ShapeError, "Tensor dimension is 1, expected 2 instead"),
        (lambda: torch.cross(M[:, :2], M[:, :2]), ShapeError, "no dimension of size 3 in input"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_a_factor_of_zero_makes_nan_of_nan(device) -> None:
    for rows, depth, cols in ((1, 1, 3), (3, 1, 1), (1, 2, 3), (2, 2, 2)):
        zeros, nans = torch.zeros(rows, depth, device=device), torch.full((depth, cols), float("nan"), device=device)
        assert (zeros @ nans).isnan().all()


def test_tensordot_refuses_dimensions_of_what_has_none() -> None:
    with pytest.raises(IndexError, match="Dimension specified as 0 but tensor has no dimensions"):
        torch.tensordot(torch.tensor(1.0), torch.tensor(1.0), dims=[[0], [0]])
