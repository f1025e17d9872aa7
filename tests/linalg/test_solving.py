"""Inverses, solutions, determinants, least squares: values, gradients, and what is raised for singular matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.autograd import gradcheck, gradgradcheck
from tritensor.func import jvp, vmap

from ..needs import needs_triton

L = torch.linalg
KINDS = [torch.float32, torch.float64, torch.complex64, torch.complex128]


def drawn(*shape: int, kind: Any = torch.float64) -> torch.Tensor:
    """Matrices far from singular ones."""
    rng = np.random.default_rng(0)
    made = rng.standard_normal(shape)
    if kind.is_complex:
        made = made + 1j * rng.standard_normal(shape)
    if len(shape) > 1:
        made = made + 3 * np.eye(*shape[-2:])
    return torch.from_numpy(made.astype(kind.numpy))


def same(found: torch.Tensor, expected: Any) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(
        found.numpy(), expected, atol=3e-5 if found.itemsize // (1 + found.is_complex()) < 8 else 1e-12
    )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_solutions_solve(kind: Any) -> None:
    for a, b in (
        ((3, 3), (3, 2)),
        ((2, 1, 3, 3), (4, 3, 2)),
        ((2, 3, 3), (3, 2)),
        ((0, 0), (0, 2)),
        ((0, 2, 2), (2, 1)),
    ):
        A, B = drawn(*a, kind=kind), drawn(*b, kind=kind)
        wanted = np.broadcast_to(B.numpy(), np.broadcast_shapes(a[:-2], b[:-2]) + b[-2:])
        same(A @ L.solve(A, B), wanted)
        whole = torch.from_numpy(wanted.copy())  # what could be vectors is taken for those
        same(L.solve(A, whole.mT, left=False) @ A, np.swapaxes(wanted, -1, -2))
        same(A @ L.inv(A), np.broadcast_to(np.eye(a[-1]), a))
        for upper in (False, True):
            T = A.triu() if upper else A.tril()
            same(T @ L.solve_triangular(A, B, upper=upper), wanted)
            same(L.solve_triangular(A, B.mT, upper=upper, left=False) @ T, np.swapaxes(wanted, -1, -2))
            one = T - T * torch.eye(a[-1], dtype=kind) + torch.eye(a[-1], dtype=kind)
            same(one @ L.solve_triangular(A, B, upper=upper, unitriangular=True), wanted)
            factors = (T.mT.conj() @ T) if upper else T @ T.mT.conj()
            same(factors @ torch.cholesky_solve(B, A, upper), wanted)
            same(factors @ torch.cholesky_inverse(A, upper), np.broadcast_to(np.eye(a[-1]), a))
            same(torch.triangular_solve(B, A, upper).solution, L.solve_triangular(A, B, upper=upper).numpy())
            turned = torch.triangular_solve(B, A, upper, transpose=True)
            same(T.mT @ turned.solution, wanted)
            same(turned[1], np.broadcast_to(A.numpy(), wanted.shape[:-2] + a[-2:]))


def test_vectors_are_solved_for() -> None:
    A = drawn(2, 3, 3)
    same(A[0] @ L.solve(A[0], A[1, 0]), A[1, 0])
    found = L.solve(A, drawn(2, 3))
    same((A @ found.unsqueeze(-1)).squeeze(-1), drawn(2, 3))
    same(A @ L.solve(A, drawn(3, 3)), drawn(3, 3).expand(2, 3, 3))  # of this shape it is a matrix
    result, info = L.solve_ex(A, drawn(2, 3))
    same(result, found)
    assert info.dtype is torch.int32 and info.tolist() == [0, 0]


def test_large_triangular_systems_are_solved_in_blocks() -> None:
    A, B = drawn(150, 150) / 20 + 2 * torch.eye(150, dtype=torch.float64), drawn(150, 3)
    for upper in (False, True):
        same((A.triu() if upper else A.tril()) @ L.solve_triangular(A, B, upper=upper), B)


def test_determinants() -> None:
    for kind in KINDS:
        A = drawn(2, 3, 3, kind=kind)
        det = torch.det(A)
        same(det, np.linalg.det(A.numpy()))
        sign, size = torch.slogdet(A)
        same(sign * size.exp(), det)
        same(L.slogdet(A).logabsdet, det.abs().log())
        assert size.dtype is (torch.float32 if kind.itemsize == 4 or kind is torch.complex64 else torch.float64)
        if kind.is_complex:
            same(A.logdet().exp(), det)
    assert L.det(torch.zeros(0, 0)).item() == 1 and L.det(torch.zeros(2, 0, 0)).tolist() == [1, 1]
    found = torch.logdet(torch.tensor([[[1.0, 0], [0, 1]], [[0, 1], [1, 0]], [[0, 0], [0, 1]]])).tolist()
    assert found[0] == 0 and math.isnan(found[1]) and found[2] == -math.inf
    assert L.slogdet(torch.zeros(2, 2)) == (0, -math.inf)
    assert repr(torch.slogdet(torch.eye(2))) == "torch.return_types.slogdet(\nsign=tensor(1.),\nlogabsdet=tensor(0.))"


ONES, EYE = torch.ones(2, 2), torch.eye(2)
SINGULAR = "the inversion could not be completed because the input matrix is singular."
UNSOLVABLE = "The solver failed because the input matrix is singular."


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: L.inv(ONES), f"linalg.inv: The diagonal element 2 is zero, {SINGULAR}"),
        (lambda: ONES.inverse(), f"linalg.inv: The diagonal element 2 is zero, {SINGULAR}"),
        (lambda: L.inv(ONES * 0), f"linalg.inv: The diagonal element 1 is zero, {SINGULAR}"),
        (
            lambda: L.inv(torch.stack([EYE, ONES])),
            f"linalg.inv: (Batch element 1): The diagonal element 2 is zero, {SINGULAR}",
        ),
        (lambda: L.inv_ex(ONES, check_errors=True), f"linalg.inv_ex: The diagonal element 2 is zero, {SINGULAR}"),
        (lambda: L.solve(ONES, ONES), f"torch.linalg.solve: {UNSOLVABLE}"),
        (lambda: L.solve(torch.stack([EYE, ONES]), EYE), f"torch.linalg.solve: (Batch element 1): {UNSOLVABLE}"),
        (lambda: L.solve_ex(ONES, EYE, check_errors=True), f"torch.linalg.solve_ex: {UNSOLVABLE}"),
        (lambda: L.tensorinv(torch.zeros(2, 3, 6)), f"linalg.inv: The diagonal element 1 is zero, {SINGULAR}"),
    ],
)
def test_singular_matrices_are_refused(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(L.LinAlgError) as raised:
        call()
    assert str(raised.value).splitlines()[0] == words


def test_the_forms_that_do_not_raise_tell_which_pivot_is_zero() -> None:
    both = torch.stack([EYE * 2, ONES])
    inverse, info = L.inv_ex(both)
    assert info.tolist() == [0, 2] and inverse[0].tolist() == [[0.5, 0], [0, 0.5]]
    result, info = L.solve_ex(both, torch.ones(2, 2))
    assert info.tolist() == [0, 2] and result[0].tolist() == [0.5, 0.5] and result[1].isnan().all()
    assert L.solve_triangular(EYE * torch.tensor([0.0, 1.0]), ONES, upper=True).tolist() == [[math.inf] * 2, [1, 1]]


# ---- singular values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_pseudoinverses_are_those_of_moore_and_penrose(kind: Any) -> None:
    for shape in ((3, 3), (2, 4, 2), (2, 5), (0, 3), (3, 0), (0, 2, 2)):
        A = drawn(*shape, kind=kind)
        P = L.pinv(A)
        same(A @ P @ A, A)
        same(P @ A @ P, P)
        same((A @ P).mT.conj(), A @ P)
        same((P @ A).mT.conj(), P @ A)
    A = drawn(3, 3, kind=kind)
    A = A + A.mT.conj()
    same(L.pinv(A.tril(), hermitian=True), L.inv(A))


def test_small_singular_values_count_as_zero() -> None:
    A = torch.tensor([[4.0, 0.0], [0.0, 0.5]])
    none = [[0.25, 0.0], [0.0, 0.0]]
    assert L.pinv(A, 0.2).tolist() == L.pinv(A, rtol=0.2).tolist() == L.pinv(A, atol=1.0).tolist() == none
    assert torch.pinverse(A, 0.2).tolist() == none and A.pinverse().tolist() == [[0.25, 0], [0, 2]]
    assert L.pinv(A, atol=0.1, rtol=0.2).tolist() == none
    found = L.pinv(A, rtol=torch.tensor([0.1, 0.2]))
    assert found.tolist() == [[[0.25, 0], [0, 2]], none]
    for options, wanted in (
        ({}, 2),
        ({"tol": 1.0}, 1),
        ({"rtol": 0.2}, 1),
        ({"atol": 5.0}, 0),
        ({"hermitian": True}, 2),
    ):
        assert L.matrix_rank(A, **options).item() == wanted
    assert L.matrix_rank(A, atol=torch.tensor([0.0, 1.0, 5.0])).tolist() == [2, 1, 0]
    assert L.matrix_rank(A * 1e-9).item() == 2 and L.matrix_rank(A * 1e-9, atol=1e-20).item() == 2
    assert L.matrix_rank(torch.zeros(2, 0, 3)).tolist() == [0, 0]
    assert L.matrix_rank(-A, hermitian=True).dtype is torch.int64


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(driver: str | None) -> None:
    for kind in KINDS:
        tall, wide, B = drawn(2, 5, 3, kind=kind), drawn(2, 3, 5, kind=kind), drawn(2, 5, 2, kind=kind)
        solution, residuals, rank, values = L.lstsq(tall, B, driver=driver)
        same(solution, L.pinv(tall) @ B)
        if driver in (None, "gelsy"):
            assert residuals.shape == (0,)
        else:
            same(residuals, ((tall @ solution - B).abs() ** 2).sum(-2))
        assert rank.tolist() == ([] if driver == "gels" else [3, 3])
        if driver in ("gelsd", "gelss"):
            same(values, L.svdvals(tall))
        else:
            assert values.shape == (0,)
        found = L.lstsq(wide, B[:, :3], driver=driver)
        same(found.solution, L.pinv(wide) @ B[:, :3])
        assert found.residuals.shape == (0,)
        same(L.lstsq(tall, B[..., 0], driver=driver)[0], (L.pinv(tall) @ B)[..., 0])
    flat = torch.tensor([[1.0, 1], [1, 1], [1, 1]])
    found = L.lstsq(flat, torch.ones(3, 1), driver=driver)
    if driver != "gels":
        same(found.solution, [[0.5], [0.5]])
        assert found.rank.item() == 1 and found.residuals.shape == (0,)
        assert L.lstsq(torch.tensor([[4.0, 0], [0, 0.5]]), torch.ones(2, 1), 0.2, driver=driver).rank.item() == 1


# ---- gradients ------------------------------------------------------------------------------------------------------


def real(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Real tensors of the same information, for differences."""
    return tuple(part for x in values for part in ([abs(x * (1 + 2j) + x * x), abs(x)] if x.is_complex() else [x]))


FUNCTIONS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "inv": (lambda a: real(L.inv(a)), [(2, 3, 3)]),
    "solve": (lambda a, b: real(L.solve(a, b)), [(2, 3, 3), (3, 2)]),
    "solve right": (lambda a, b: real(L.solve(a, b, left=False)), [(3, 3), (2, 2, 3)]),
    "solve vector": (lambda a, b: real(L.solve(a, b)), [(2, 3, 3), (2, 3)]),
    "triangular": (lambda a, b: real(L.solve_triangular(a, b, upper=True)), [(3, 3), (2, 3, 2)]),
    "triangular right": (
        lambda a, b: real(L.solve_triangular(a, b, upper=False, left=False, unitriangular=True)),
        [(2, 3, 3), (2, 3)],
    ),
    "triangular_solve": (lambda b, a: real(*torch.triangular_solve(b, a, transpose=True)), [(3, 2), (3, 3)]),
    "cholesky_solve": (lambda b, a: real(torch.cholesky_solve(b, a.tril())), [(2, 3, 2), (3, 3)]),
    "cholesky_inverse": (lambda a: real(torch.cholesky_inverse(a.triu(), upper=True)), [(3, 3)]),
    "det": (lambda a: real(L.det(a)), [(2, 3, 3)]),
    "slogdet": (lambda a: real(*L.slogdet(a)), [(2, 3, 3)]),
    "logdet": (lambda a: real(torch.logdet(a @ a.mT.conj())), [(3, 3)]),
    "pinv": (lambda a: real(L.pinv(a)), [(2, 3, 2)]),
    "pinv wide": (lambda a: real(L.pinv(a)), [(2, 3)]),
    "pinv hermitian": (lambda a: real(L.pinv(a + a.mT.conj(), hermitian=True)), [(3, 3)]),
    "lstsq": (lambda a, b: real(*L.lstsq(a, b, driver="gels")[:2]), [(4, 2), (4, 2)]),
    "tensorsolve": (lambda a, b: real(L.tensorsolve(a, b)), [(2, 2, 4), (2, 2)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_agree_with_finite_differences(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    inputs = [drawn(*shape) for shape in shapes]
    if name == "tensorsolve":
        inputs[0] = drawn(4, 4).reshape(2, 2, 4)
    for each in inputs:
        each.requires_grad_()
    assert gradcheck(function, tuple(inputs))
    assert gradgradcheck(function, tuple(inputs))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("solve", "slogdet", "pinv") else pytest.mark.slow)
        for name in FUNCTIONS
        if name != "tensorsolve"
    ],
)
def test_complex_gradients_agree_with_finite_differences(name: str) -> None:
    """By real and imaginary parts: differences are taken of real tensors."""
    function, shapes = FUNCTIONS[name]
    rng = np.random.default_rng(1)
    inputs = [part for shape in shapes for part in (drawn(*shape), torch.from_numpy(rng.standard_normal(shape)))]

    def of_parts(*parts: torch.Tensor) -> Any:
        return function(*[real + imaginary * 1j for real, imaginary in zip(parts[::2], parts[1::2], strict=True)])

    for each in inputs:
        each.requires_grad_()
    assert gradcheck(of_parts, tuple(inputs))
    assert gradgradcheck(of_parts, tuple(inputs))


def test_the_gradient_of_the_determinant_of_singular_matrices() -> None:
    for matrix, wanted in (
        ([[1.0, 2.0], [2.0, 4.0]], [[4.0, -2.0], [-2.0, 1.0]]),
        ([[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]),
    ):
        x = torch.tensor(matrix, dtype=torch.float64, requires_grad=True)
        L.det(x).backward()
        same(x.grad, wanted)
    x = torch.tensor([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]], dtype=torch.float64, requires_grad=True)
    L.det(x).backward()
    same(x.grad, [[4.0, 4, -4], [-2, -2, 2], [0, 0, 0]])


def test_batches_and_tangents() -> None:
    A, B = drawn(4, 3, 3), drawn(4, 3, 2)
    same(vmap(L.solve)(A, B), L.solve(A, B))
    same(vmap(L.solve, (0, None))(A, B), torch.stack([L.solve(each, B) for each in A]))
    same(vmap(lambda x: L.solve_triangular(x, B[0], upper=True))(A), L.solve_triangular(A, B[0], upper=True))
    same(vmap(L.pinv)(B), L.pinv(B))
    for function in (L.det, L.inv, lambda x: L.slogdet(x)[1], lambda x: torch.cholesky_solve(B, x)):
        tangent = jvp(function, (A.tril(),), (A.tril() ** 2,))[1]
        step = 1e-6
        moved = [function(A.tril() + sign * step * A.tril() ** 2) for sign in (1, -1)]
        np.testing.assert_allclose(tangent.numpy(), ((moved[0] - moved[1]) / (2 * step)).numpy(), rtol=1e-5, atol=1e-6)


# ---- devices --------------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "inv": lambda a, b: L.inv(a),
    "solve": L.solve,
    "solve right": lambda a, b: L.solve(a[0], b.mT, left=False),
    "triangular": lambda a, b: L.solve_triangular(a, b, upper=True),
    "triangular right": lambda a, b: L.solve_triangular(a, b.mT, upper=True, left=False),
    "cholesky_solve": lambda a, b: torch.cholesky_solve(b, a, upper=True),
    "cholesky_inverse": lambda a, b: torch.cholesky_inverse(a),
    "det": lambda a, b: L.det(a),
    "slogdet": lambda a, b: L.slogdet(a)[1],
    "pinv": lambda a, b: L.pinv(b),
    "lstsq": lambda a, b: L.lstsq(a[0], b)[0],
}


@needs_triton
@pytest.mark.filterwarnings("ignore::tritensor.errors.HostComputationWarning")
@pytest.mark.parametrize("name", CALLS)
def test_as_on_the_cpu(name: str) -> None:
    def run(device: str) -> list[Any]:
        a, b = (drawn(*shape, kind=torch.float32).to(device).requires_grad_() for shape in ((2, 3, 3), (3, 2)))
        found = CALLS[name](a, b)
        assert found.device == a.device
        (found * found).sum().backward()
        return [x.detach().cpu().numpy() for x in (found, *(x.grad for x in (a, b) if x.grad is not None))]

    expected = run("cpu")
    with torch.cuda.simulate(devices=1):
        for mine, other in zip(run("cuda"), expected, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-5)


@needs_triton
def test_triangular_systems_stay_on_the_device() -> None:
    a, b = drawn(2, 40, 40, kind=torch.float32), drawn(40, 35, kind=torch.float32)
    a = a / 20 + 2 * torch.eye(40)
    with torch.cuda.simulate(devices=1):
        x, y = a.cuda(), b.cuda()
        with torch.cuda.transfers() as ledger:
            found = [L.solve_triangular(x, y, upper=True), L.solve_triangular(x.mT, y.mT, upper=True, left=False)]
        assert ledger.count("d2h") == 0
        for result, wanted in zip(found, (a.triu() @ found[0].cpu(), found[1].cpu() @ a.mT.triu()), strict=True):
            assert result.is_cuda
            other = b if result is found[0] else b.mT
            np.testing.assert_allclose(wanted.numpy(), other.expand(2, *other.shape).numpy(), atol=1e-4)


# ---- tensors as matrices, and what is refused -----------------------------------------------------------------------


def test_tensors_as_matrices() -> None:
    A = drawn(6, 6)
    found = L.tensorinv(A.reshape(2, 3, 6))
    same(found, np.linalg.inv(A.numpy()).reshape(6, 2, 3))
    same(L.tensorinv(A.reshape(6, 3, 2), ind=1), np.linalg.inv(A.numpy()).reshape(3, 2, 6))
    B = drawn(2, 3)
    same(L.tensorsolve(A.reshape(2, 3, 3, 2), B), np.linalg.tensorsolve(A.reshape(2, 3, 3, 2).numpy(), B.numpy()))
    moved = A.reshape(2, 3, 3, 2).movedim(2, 0)
    same(L.tensorsolve(moved, B, dims=(0, 3)), np.linalg.tensorsolve(moved.numpy(), B.numpy(), (0, 3)))


SHAPED = "A must be batches of square matrices, but they are 3 by 2 matrices"
A, B, WHOLE = torch.eye(3), torch.ones(3, 2), torch.ones(2, 2, dtype=torch.int64)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: L.inv(B), f"linalg.inv: {SHAPED}"),
        (lambda: L.inv(A[0]), "linalg.inv: The input tensor A must have at least 2 dimensions."),
        (lambda: L.inv(WHOLE), "linalg.inv: Expected a floating point or complex tensor as input. Got Long"),
        (lambda: L.inv(A.half()), "linalg.inv: Low precision dtypes not supported. Got Half"),
        (lambda: L.det(B), f"linalg.det: {SHAPED}"),
        (lambda: L.det(WHOLE), "linalg.det: Expected a floating point or complex tensor as input. Got Long"),
        (lambda: L.det(A.half()), "\"lu_cpu\" not implemented for 'Half'"),
        (lambda: L.slogdet(WHOLE), "linalg.slogdet: Expected a floating point or complex tensor as input. Got Long"),
        (lambda: torch.logdet(B), f"logdet: {SHAPED}"),
        (lambda: L.solve(B, B), f"linalg.solve: {SHAPED}"),
        (
            lambda: L.solve(A, B.double()),
            "linalg.solve: Expected A and B to have the same dtype, but found A of type Float and B of type Double "
            "instead",
        ),
        (
            lambda: L.solve(A, A[:2]),
            "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 2x3)",
        ),
        (
            lambda: L.solve(A, A[0], left=False),
            "linalg.solve: Incompatible shapes of A and B for the equation XA = B (3x3 and 3x1)",
        ),
        (
            lambda: L.solve(A[:1, :1], A[0, :1], left=False),
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)",
        ),
        (lambda: L.solve(WHOLE, WHOLE), "linalg.solve: Expected a floating point or complex tensor as input. Got Long"),
        (
            lambda: L.solve_triangular(A, A[0], upper=True),
            "linalg.solve_triangular: The input tensor B must have at least 2 dimensions.",
        ),
        (lambda: L.solve_triangular(WHOLE, WHOLE, upper=True), "\"triangular_solve_cpu\" not implemented for 'Long'"),
        (
            lambda: torch.cholesky_solve(A[0], A),
            "b should have at least 2 dimensions, but has 1 dimensions instead",
        ),
        (lambda: torch.cholesky_solve(A, B), SHAPED),
        (
            lambda: torch.cholesky_solve(B[:2], A),
            "Incompatible matrix sizes for linear_solve: each A matrix is 3 by 3 but each b matrix is 2 by 2",
        ),
        (lambda: torch.cholesky_inverse(B), f"cholesky_inverse: {SHAPED}"),
        (
            lambda: torch.triangular_solve(A[0], A),
            "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has 1 dimensions instead",
        ),
        (
            lambda: L.pinv(WHOLE),
            "linalg.pinv(Long{[2, 2]}): expected a tensor with 2 or more dimensions of float, double, cfloat or "
            "cdouble types",
        ),
        (lambda: L.pinv(B, hermitian=True), f"linalg.pinv: {SHAPED}"),
        (lambda: L.pinv(A, atol=A[0].to(torch.complex64)), "atol and rtol tensors of complex dtype are not supported"),
        (
            lambda: L.matrix_rank(A[0]),
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.",
        ),
        (lambda: L.matrix_rank(WHOLE), "This function doesn't handle types other than float and double"),
        (lambda: L.matrix_rank(B, hermitian=True), f"linalg.matrix_rank: {SHAPED}"),
        (
            lambda: L.lstsq(A, B.double()),
            "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype Float and "
            "other's dtype Double",
        ),
        (
            lambda: L.lstsq(A, B, driver="x"),
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)",
        ),
        (lambda: L.lstsq(A, A[:2]), "torch.linalg.lstsq: input.size(-2) should match other.size(-2)"),
        (lambda: L.lstsq(A[None], A[:2, :2]), "torch.linalg.lstsq: input.size(-2) should match other.size(-1)"),
        (lambda: L.lstsq(A[0], A[0]), "torch.linalg.lstsq: input must have at least 2 dimensions."),
        (lambda: L.lstsq(A, A[0, 0]), "torch.linalg.lstsq: other must have at least 1 dimension."),
        (
            lambda: L.lstsq(A, A[None]),
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) "
            "<= 1",
        ),
        (lambda: L.lstsq(WHOLE, WHOLE), "This function doesn't handle types other than float and double"),
        (lambda: L.tensorinv(A, 0), "Expected a strictly positive integer for 'ind', but got 0"),
        (
            lambda: L.tensorinv(B, 1),
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got 2 != 3",
        ),
        (
            lambda: L.tensorsolve(B, A),
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            "but got 1 != 6",
        ),
        (
            lambda: torch.lstsq(A, B),
            "This function was deprecated since version 1.9 and is now removed. `torch.lstsq` is deprecated in favor "
            "of `torch.linalg.lstsq`.",
        ),
        (
            lambda: B.solve(A),
            "This function was deprecated since version 1.9 and is now removed. `torch.solve` is deprecated in favor "
            "of `torch.linalg.solve`.",
        ),
        (lambda: torch.matrix_rank(A), "This function was deprecated since version 1.9 and is now removed."),
    ],
)
def test_what_is_refused(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        call()
    assert str(raised.value).splitlines()[0] == words


def test_results_are_written_into_out() -> None:
    A = drawn(3, 3)
    out = torch.empty(3, 3, dtype=torch.float64)
    assert L.inv(A, out=out) is out
    same(out, np.linalg.inv(A.numpy()))
    both = torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.int32)
    found = L.inv_ex(A, out=both)
    assert found.inverse is both[0] and type(found) is torch.return_types.linalg_inv_ex
    same(both[0], np.linalg.inv(A.numpy()))


@pytest.mark.parametrize("call", [L.pinv, L.matrix_rank, L.cond, lambda A: L.lstsq(A, A)])
def test_singular_values_of_what_is_not_finite_are_refused(call: Callable[[Any], Any]) -> None:
    words = r"linalg\.svd: The algorithm failed to converge because the input matrix contained non-finite values"
    with pytest.raises(L.LinAlgError, match=words):
        call(torch.tensor([[1.0, torch.nan], [2.0, 3.0]]))
    if call in (L.pinv, L.matrix_rank):
        with pytest.raises(L.LinAlgError, match=r"linalg\.eigh: The algorithm failed to converge"):
            call(torch.tensor([[1, torch.nan, 2], [torch.nan, 1, 2], [2, 2, 3.0]]), hermitian=True)
