"""Powers, exponentials and products of matrices, products of vectors, norms and condition numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.autograd import gradcheck, gradgradcheck
from tritensor.func import jvp

from ..needs import needs_triton

L = torch.linalg
INF = math.inf


def drawn(*shape: int, kind: Any = torch.float64) -> torch.Tensor:
    rng = np.random.default_rng(0)
    made = rng.standard_normal(shape)
    return torch.from_numpy((made + 1j * rng.standard_normal(shape) if kind.is_complex else made).astype(kind.numpy))


def same(found: torch.Tensor, expected: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found.numpy(), np.asarray(expected), rtol=tolerance, atol=tolerance)


# ---- powers and the exponential -------------------------------------------------------------------------------------


def test_powers() -> None:
    A = drawn(2, 3, 3)
    for n in (0, 1, 2, 3, 7, -1, -2, -5):
        same(L.matrix_power(A, n), np.linalg.matrix_power(A.numpy(), n))
    same(torch.matrix_power(torch.tensor([[1, 1], [1, 0]]), 10), [[89, 55], [55, 34]])
    assert A.matrix_power(1) is not A
    x = drawn(2, 2).requires_grad_()
    L.matrix_power(x, 0).sum().backward()
    assert x.grad is None or not x.grad.any()
    assert gradcheck(lambda x: L.matrix_power(x, -3), (x,))


def exponential(a: np.ndarray) -> np.ndarray:
    """By eigenvalues."""
    values, vectors = np.linalg.eig(a)
    return (vectors * np.exp(values)[..., None, :]) @ np.linalg.inv(vectors)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.complex64, torch.complex128], ids=str)
def test_exponentials(kind: Any) -> None:
    A = drawn(4, 3, 3, kind=kind) * torch.tensor([1e-6, 0.3, 2.0, 9.0], dtype=kind)[:, None, None]
    wide = exponential(A.numpy().astype(np.complex128))
    scale = np.abs(wide).max((-2, -1))[:, None, None]
    found = torch.matrix_exp(A).numpy()
    assert found.dtype == A.numpy().dtype
    np.testing.assert_allclose(
        found / scale, wide / scale, atol=2e-4 if A.itemsize // (1 + A.is_complex()) < 8 else 1e-11
    )


def test_exponentials_of_few_elements_and_of_what_is_not_finite() -> None:
    assert L.matrix_exp(torch.zeros(0, 0)).shape == (0, 0) and L.matrix_exp(torch.zeros(0, 2, 2)).shape == (0, 2, 2)
    assert L.matrix_exp(torch.tensor([[1.0]])).item() == pytest.approx(math.e)
    assert L.matrix_exp(torch.full((2, 2), math.nan)).isnan().all() and L.matrix_exp(torch.full((1, 1), INF)).isnan()
    assert L.matrix_exp(torch.full((2, 2), 1e10)).tolist() == [[INF, INF], [INF, INF]]
    half = L.matrix_exp(torch.zeros(2, 2, dtype=torch.bfloat16))
    assert half.dtype is torch.bfloat16 and half.tolist() == [[1, 0], [0, 1]]


def test_gradients_of_exponentials() -> None:
    x = drawn(2, 2, 2).requires_grad_()
    assert gradcheck(L.matrix_exp, (x,))
    assert gradgradcheck(L.matrix_exp, (x,))
    tangent = jvp(L.matrix_exp, (x.detach(),), (torch.ones(2, 2, 2, dtype=torch.float64),))[1]
    step = 1e-6
    same(tangent, (L.matrix_exp(x + step) - L.matrix_exp(x - step)).detach() / (2 * step), 1e-6)


# ---- products -------------------------------------------------------------------------------------------------------


def test_products_of_several_matrices() -> None:
    a, b, c, d = drawn(3, 10), drawn(10, 2), drawn(2, 7), drawn(7)
    same(L.multi_dot([a, b]), (a @ b).numpy())
    same(L.multi_dot([a, b, c]), (a @ b @ c).numpy())
    same(L.multi_dot((a, b, c, d)), (a @ b @ c @ d).numpy())
    same(L.multi_dot([a[0], b, c, d]), (a[0] @ b @ c @ d).numpy())
    assert gradcheck(lambda *parts: L.multi_dot(parts), tuple(x.clone().requires_grad_() for x in (a, b, c, d)))


def test_products_of_vectors() -> None:
    x, y = drawn(2, 3), drawn(4, 2, 3)
    same(L.vecdot(x, y), (x.numpy() * y.numpy()).sum(-1))
    same(L.vecdot(x, x, dim=0), (x.numpy() ** 2).sum(0))
    z = drawn(3, kind=torch.complex128)
    same(L.vecdot(z, z * 1j), np.vdot(z.numpy(), z.numpy() * 1j))
    same(L.cross(x[None], y), np.cross(x.numpy(), y.numpy()))
    same(L.cross(y.mT, y.mT * 2 + 1, dim=1), np.cross(y.mT.numpy(), y.mT.numpy() * 2 + 1, axis=1))
    assert L.cross(torch.tensor([1, 2, 3]), torch.tensor([0, 1, 0])).tolist() == [-3, 0, 1]
    assert gradcheck(L.cross, (x.clone().requires_grad_(), y[0].clone().requires_grad_()))


def test_powers_of_elements() -> None:
    assert L.vander(torch.tensor([2, 3]), N=4).tolist() == [[1, 2, 4, 8], [1, 3, 9, 27]]
    assert L.vander(torch.tensor([[2.0, 3.0]])).tolist() == [[[1, 2], [1, 3]]]
    assert L.vander(torch.tensor(3, dtype=torch.int8), N=3).tolist() == [[1, 3, 9]]
    assert L.vander(torch.tensor([torch.inf]), N=3).tolist() == [[1.0, torch.inf, torch.inf]]
    assert gradcheck(lambda x: L.vander(x, N=4), (torch.zeros(2, dtype=torch.float64, requires_grad=True),))


# ---- norms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [torch.float64, torch.complex128], ids=str)
def test_norms_are_numpys(kind: Any) -> None:
    A = drawn(2, 3, 4, kind=kind)
    a = A.numpy()
    for ord in ("fro", "nuc", 1, -1, 2, -2, INF, -INF):
        for dim in ((-2, -1), (0, 2), (2, 1)):
            for keepdim in (False, True):
                same(L.matrix_norm(A, ord, dim, keepdim), np.linalg.norm(a, ord, dim, keepdim))
                same(L.norm(A, ord, dim, keepdim), np.linalg.norm(a, ord, dim, keepdim))
        same(L.norm(A[0], ord), np.linalg.norm(a[0], ord))
    for ord in (2, 1, 0, 3.5, -1, INF, -INF):
        same(L.vector_norm(A, ord, 1), np.linalg.norm(a, ord, 1))
        same(L.norm(A[0, 0], ord), np.linalg.norm(a[0, 0], ord))
        same(L.norm(A, ord, 1, True), np.linalg.norm(a, ord, 1, True))
    same(L.norm(A), np.linalg.norm(a))
    same(L.vector_norm(A, dim=(0, 2)), np.sqrt((np.abs(a) ** 2).sum((0, 2))))
    same(torch.frobenius_norm(A, [0, 1], True), np.linalg.norm(a, "fro", (0, 1), True))
    same(torch.nuclear_norm(A), np.linalg.norm(a, "nuc", (1, 2)))
    found = L.matrix_norm(A.to(torch.complex64 if kind.is_complex else torch.float32), 2, dtype=kind)
    assert found.dtype is torch.float64


def test_norms_without_elements() -> None:
    for ord in ("fro", "nuc", 1, 2, INF):
        assert L.matrix_norm(torch.zeros(0, 2), ord).item() == 0
    assert L.matrix_norm(torch.zeros(0, 2), -1).item() == 0 and L.matrix_norm(torch.zeros(2, 0), -INF).item() == 0
    with pytest.raises(IndexError, match="to have non-zero size"):
        L.matrix_norm(torch.zeros(2, 0), -1)


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, INF, -INF, "fro", "nuc"])
def test_condition_numbers(p: Any) -> None:
    A = drawn(2, 3, 3)
    same(L.cond(A, p), np.linalg.cond(A.numpy(), p))
    assert L.cond(torch.zeros(0, 0), p).item() == 0 and L.cond(torch.zeros(0, 2, 2), p).shape == (0,)
    assert L.cond(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), p).item() == (0 if p == -2 else INF)
    assert gradcheck(lambda x: L.cond(x, p), (A.clone().requires_grad_(),))


def test_condition_numbers_of_what_is_not_square() -> None:
    same(L.cond(drawn(4, 2)), np.linalg.cond(drawn(4, 2).numpy()))


# ---- devices, and what is refused -----------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Any], Any]] = {
    "matrix_exp": L.matrix_exp,
    "matrix_power": lambda x: L.matrix_power(x, 5),
    "multi_dot": lambda x: L.multi_dot([x, x, x[0]]),
    "cross": lambda x: L.cross(x, x * x + 1),
    "vecdot": lambda x: L.vecdot(x, x * x),
    "matrix_norm": lambda x: L.matrix_norm(x, 1),
    "vector_norm": lambda x: L.vector_norm(x, 3, 0),
    "vander": lambda x: L.vander(x[0], N=4),
}


@needs_triton
@pytest.mark.parametrize("name", CALLS)
def test_kernels_compute_them(name: str) -> None:
    def run(device: str) -> list[Any]:
        x = drawn(3, 3, kind=torch.float32).to(device).requires_grad_()
        found = CALLS[name](x)
        found.sum().backward()
        return [found.detach(), x.grad]

    expected = run("cpu")
    with torch.cuda.simulate(devices=1), torch.cuda.transfers() as ledger:
        found = run("cuda")
        assert ledger.count("d2h") <= 2 * (name == "matrix_exp")  # the largest norm, of the gradient's matrix too
        for mine, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine.cpu().numpy(), other.numpy(), rtol=1e-4, atol=1e-5)


SHAPED = "A must be batches of square matrices, but they are 3 by 2 matrices"
A, B, WHOLE = torch.eye(3), torch.ones(3, 2), torch.ones(2, 2, dtype=torch.int64)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: L.matrix_power(B, 2), f"linalg.matrix_power: {SHAPED}"),
        (
            lambda: L.matrix_power(WHOLE, -1),
            "linalg.inv: Expected a floating point or complex tensor as input. Got Long",
        ),
        (lambda: L.matrix_exp(B), f"linalg.matrix_exp: {SHAPED}"),
        (
            lambda: L.matrix_exp(WHOLE),
            "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got Long",
        ),
        (lambda: L.multi_dot([A]), "multi_dot(): expected at least 2 tensors but got 1"),
        (lambda: L.multi_dot([A, A[None], A]), "multi_dot(): tensor 1 must be 2D but got 3D"),
        (lambda: L.multi_dot([A[0, 0], A]), "multi_dot(): tensor 0 must be 1D or 2D but got 0D"),
        (
            lambda: L.multi_dot([A, A.double()]),
            "multi_dot(): all tensors must have be the same dtype but tensor 0 is float and tensor 1 double",
        ),
        (
            lambda: L.multi_dot([A, A[:2]]),
            "multi_dot(): tensors 0 and 1 with shapes [3, 3] and [2, 3] cannot be multiplied",
        ),
        (lambda: L.cross(B, B), "linalg.cross: inputs dimension -1 must have length 3. Got 2 and 2"),
        (lambda: L.cross(A, A[0]), "linalg.cross: inputs must have the same number of dimensions."),
        (lambda: L.cross(A, A.double()), "expected scalar type Float but found Double"),
        (lambda: L.cross(A > 0, A > 0), "\"cross\" not implemented for 'Bool'"),
        (
            lambda: L.vecdot(WHOLE, WHOLE),
            "linalg.vecdot: Expected a floating point or complex tensor as input. Got Long",
        ),
        (
            lambda: L.vecdot(A, A.double()),
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type Float and y of type Double "
            "instead",
        ),
        (lambda: L.vander(A, N=1), "N must be greater than 1."),
        (lambda: L.vander(A > 0), "linalg.vander supports floating point, complex, and integer tensors, but got Bool"),
        (lambda: L.norm(A, "x"), "linalg.matrix_norm: Order x not supported."),
        (lambda: L.norm(A[0], "fro"), "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."),
        (
            lambda: L.norm(A[None], 2),
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D.",
        ),
        (
            lambda: L.norm(A[None], 2, (0, 1, 2)),
            "linalg.norm: If dim is specified, it must be of length 1 or 2. Got [0, 1, 2]",
        ),
        (lambda: L.norm(A, dim=()), "linalg.norm: If dim is specified, it must be of length 1 or 2. Got []"),
        (lambda: L.matrix_norm(A, 3), "linalg.matrix_norm: Order 3 not supported."),
        (lambda: L.matrix_norm(A, dim=(0,)), "linalg.matrix_norm: dim must be a 2-tuple. Got 0"),
        (lambda: L.matrix_norm(A.half(), 2), "linalg.matrix_norm: Low precision dtypes not supported. Got Half"),
        (
            lambda: L.vector_norm(WHOLE),
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long",
        ),
        (lambda: L.cond(A, 3), "linalg.cond got an invalid norm type: 3"),
        (lambda: L.cond(A, "x"), "linalg.cond got an invalid norm type: x"),
        (lambda: L.cond(B, 1), f"linalg.cond(ord=1): {SHAPED}"),
        (lambda: torch.frobenius_norm(A, (0, 1, 2)), "Expected at most 2 dimensions, but got 3 dimensions instead."),
    ],
)
def test_what_is_refused(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        call()
    assert str(raised.value).splitlines()[0] == words


def test_arguments_of_other_types() -> None:
    with pytest.raises(TypeError, match=r"linalg_vector_norm\(\): argument 'ord' must be Number, not str"):
        L.vector_norm(A, "fro")
    with pytest.raises(TypeError, match=r"linalg_matrix_power\(\): argument 'n' must be int, not float"):
        L.matrix_power(A, 2.0)


def test_a_large_gradient_of_matrix_exp_keeps_its_digits() -> None:
    x = torch.tensor([[2.0]], dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(L.matrix_exp(x), x, torch.tensor([[1e12]], dtype=torch.float64))
    assert found.item() == pytest.approx(1e12 * math.exp(2), rel=1e-13)
    (none,) = torch.autograd.grad(L.matrix_exp(x), x, torch.zeros(1, 1, dtype=torch.float64))
    assert none.item() == 0
