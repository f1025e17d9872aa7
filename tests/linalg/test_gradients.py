"""Gradients of factorisations beside finite differences, of functions that do not depend on signs and phases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.autograd import gradcheck, gradgradcheck
from tritensor.func import grad, jvp, vmap

L = torch.linalg


def drawn(*shape: int, complex: bool = False) -> torch.Tensor:
    rng = np.random.default_rng(0)
    made = rng.standard_normal(shape)
    if len(shape) > 1:
        made += 2 * np.eye(*shape[-2:]) * np.arange(1, shape[-1] + 1)  # values far from one another
    return torch.tensor(made + 1j * rng.standard_normal(shape) if complex else made, requires_grad=True)


def adjoint(x: torch.Tensor) -> torch.Tensor:
    return x.mT.conj() if x.is_complex() else x.mT


def hermitian(x: torch.Tensor) -> torch.Tensor:
    return x + adjoint(x)


def parts(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Real tensors of the same information, for differences."""
    return tuple(part for x in values for part in ([abs(x * (1 + 2j) + x * x), abs(x)] if x.is_complex() else [x]))


def outer(x: torch.Tensor) -> torch.Tensor:
    """What of columns does not depend on phases."""
    return x.unsqueeze(-2) * x.conj().unsqueeze(-3)


def of_vectors(a: torch.Tensor, full: bool) -> tuple[torch.Tensor, ...]:
    u, s, vh = L.svd(a, full_matrices=full)
    k = s.shape[-1]
    return parts(outer(u[..., :k]), s, u[..., :k] @ vh[..., :k, :], outer(adjoint(vh)[..., :k]))


def of_lu_solve(left: bool, adj: bool) -> Callable[..., Any]:
    def call(a: torch.Tensor, b: torch.Tensor) -> Any:
        lu, pivots, _ = L.lu_factor_ex(a)
        return parts(L.lu_solve(lu, pivots, b if left else b.mT, left=left, adjoint=adj))

    return call


FUNCTIONS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "cholesky": (lambda a: parts(L.cholesky(a @ adjoint(a))), [(2, 3, 3)]),
    "cholesky upper": (lambda a: parts(torch.cholesky(a @ adjoint(a), upper=True)), [(3, 3)]),
    "qr of tall": (lambda a: parts(*L.qr(a)), [(2, 4, 3)]),
    "qr, q alone": (lambda a: parts(L.qr(a).Q), [(3, 2)]),
    "qr of wide": (lambda a: parts(*L.qr(a)), [(2, 4)]),
    "qr of wide, r alone": (lambda a: parts(L.qr(a, "complete").R), [(2, 3)]),
    "svd of tall": (lambda a: of_vectors(a, True), [(4, 2)]),
    "svd of wide": (lambda a: of_vectors(a, False), [(2, 3)]),
    "svd, left vectors": (lambda a: parts(outer(L.svd(a, full_matrices=False).U)), [(3, 2)]),
    "svd, right vectors": (lambda a: parts(outer(adjoint(L.svd(a, full_matrices=False).Vh))), [(2, 3)]),
    "svdvals": (lambda a: parts(L.svdvals(a)), [(3, 2)]),
    "eig": (lambda a: parts(L.eig(a).eigenvalues, outer(L.eig(a).eigenvectors)), [(2, 2)]),
    "eigvals": (lambda a: parts(L.eigvals(a)), [(2, 2, 2)]),
    "eigh": (lambda a: parts(L.eigh(hermitian(a)).eigenvalues, outer(L.eigh(hermitian(a)).eigenvectors)), [(2, 2)]),
    "eigvalsh": (lambda a: parts(L.eigvalsh(hermitian(a), "U")), [(3, 3)]),
    "lu": (lambda a: parts(*L.lu(a)[1:]), [(3, 3)]),
    "lu of tall": (lambda a: parts(L.lu_factor(a).LU), [(2, 3, 2)]),
    "lu of wide": (lambda a: parts(L.lu_factor(a).LU), [(2, 3)]),
    "lu_solve": (of_lu_solve(True, False), [(2, 2), (2, 1)]),
    "lu_solve, adjoint": (of_lu_solve(True, True), [(2, 2), (2, 1)]),
    "lu_solve, right": (of_lu_solve(False, False), [(2, 2), (2, 1)]),
    "lu_solve, right adjoint": (of_lu_solve(False, True), [(2, 2), (2, 1)]),
    "householder_product": (lambda a, tau: parts(L.householder_product(a, tau)), [(3, 2), (2,)]),
    "ormqr": (lambda a, tau, x: parts(torch.ormqr(a, tau, x, True, True)), [(3, 2), (2,), (3, 1)]),
    "ormqr, right": (lambda a, tau, x: parts(torch.ormqr(a, tau, x.mT, False)), [(3, 2), (2,), (3, 1)]),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_both_orders(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    inputs = [drawn(*shape) for shape in shapes]
    gradcheck(function, inputs)
    gradgradcheck(function, inputs)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_complex_matrices(name: str) -> None:
    """By real and imaginary parts: differences are taken of real tensors."""
    function, shapes = FUNCTIONS[name]
    inputs = [drawn(*shape) for shape in shapes for _ in range(2)]
    gradcheck(lambda *x: function(*[re + im.flip(0) * 0.7j for re, im in zip(x[::2], x[1::2], strict=True)]), inputs)


def test_refused() -> None:
    a, c = drawn(4, 3), drawn(3, 3, complex=True)
    phase = "The eigenvectors in the complex case are specified up to multiplication by e"
    for words, result in (
        ("The derivative of linalg.qr depends on Q, which is not computed when mode='r'", L.qr(a, "r").R),
        ("The QR decomposition is not differentiable when mode='complete' and nrows > ncols", L.qr(a, "complete").R),
        (f"linalg_eig_backward: {phase}", abs(L.eig(c).eigenvectors + 1)),
        (f"linalg_eigh_backward: {phase}", abs(L.eigh(c).eigenvectors + 1)),
        ("svd_backward: The singular vectors in the complex case are specified up to multiplic", abs(L.svd(c).U + 1)),
    ):
        with pytest.raises(RuntimeError) as raised:
            result.sum().backward()
        assert str(raised.value).startswith(words)


def test_equal_values_have_no_vectors_to_differentiate() -> None:
    a = torch.eye(2, requires_grad=True)
    (of_vectors,) = torch.autograd.grad(L.eigh(a).eigenvectors.sum(), a)
    assert of_vectors.isnan().any()
    (of_values,) = torch.autograd.grad(L.eigvalsh(a).sum(), a)
    assert of_values.tolist() == [[1, 0], [0, 1]]


def test_what_has_no_gradient() -> None:
    a = drawn(3, 3)
    assert L.cholesky_ex(hermitian(a)).info.grad_fn is None
    assert L.lu(a).P.grad_fn is None
    (of_no_reflections,) = torch.autograd.grad(L.householder_product(a, a[0, :0]).sum(), a)
    assert of_no_reflections.tolist() == torch.zeros(3, 3).tolist()


def test_names_of_nodes() -> None:
    a = drawn(3, 3)
    found = (*L.svd(a), L.qr(a).R, *L.lu(a)[1:], L.eig(a).eigenvectors, L.cholesky(a @ a.mT), L.lu_factor(a).LU)
    names = "LinalgSvd LinalgSvd LinalgSvd LinalgQr LinalgLu LinalgLu LinalgEig LinalgCholeskyEx LinalgLuFactorEx"
    assert [x.grad_fn.name().removesuffix("Backward0") for x in found] == names.split()


def test_forward_mode_gives_the_tangents_of_all_results() -> None:
    a, t = drawn(3, 2).detach(), drawn(3, 2).detach().flip(0)
    step = 1e-6
    for function in (lambda x: L.qr(x), lambda x: L.svd(x, full_matrices=False)):
        _, tangents = jvp(lambda x, f=function: tuple(f(x)), (a,), (t,))
        for tangent, after, before in zip(tangents, function(a + step * t), function(a - step * t), strict=True):
            np.testing.assert_allclose(tangent.numpy(), ((after - before) / (2 * step)).numpy(), atol=1e-6)


def test_vmap() -> None:
    a = drawn(4, 3, 3).detach()
    for mine, whole in zip(vmap(lambda x: tuple(L.qr(x)))(a), L.qr(a), strict=True):
        assert mine.tolist() == whole.tolist()
    found = vmap(lambda x: L.svdvals(x), in_dims=1)(a)
    np.testing.assert_allclose(found.numpy(), L.svdvals(a.movedim(1, 0)).numpy())
    of_each = vmap(grad(lambda x: abs(L.eig(x).eigenvectors[0]).sum()))(a)
    of_first = grad(lambda x: abs(L.eig(x).eigenvectors[0]).sum())(a[0])
    np.testing.assert_allclose(of_each[0].numpy(), of_first.numpy(), atol=1e-12)
