"""Orthogonal weights: the maps, and beside PyTorch the same weights, gradients, states and messages."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tests.needs import needs_triton
from tritensor import nn
from tritensor.autograd import gradcheck, gradgradcheck
from tritensor.nn.utils import parametrizations, parametrize

MAPS = ("matrix_exp", "cayley", "householder")
SHAPES = ((4, 4), (5, 3), (2, 6), (2, 3, 3), (1, 1), (3, 1))


def drawn(shape: tuple[int, ...], kind: Any = np.float64, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed).standard_normal
    return (draw(shape) + 1j * draw(shape) if np.dtype(kind).kind == "c" else draw(shape)).astype(kind)


def holder(library: Any, array: np.ndarray, name: str | None, trivial: bool) -> Any:
    """A module with an orthogonal parameter."""
    module = library.nn.Module()
    module.weight = library.nn.Parameter(library.from_numpy(array.copy()))
    return library.nn.utils.parametrizations.orthogonal(module, orthogonal_map=name, use_trivialization=trivial)


@pytest.mark.parametrize(("name", "shape"), [*product(MAPS, SHAPES)])
def test_rows_or_columns_are_orthonormal(name: str, shape: tuple[int, ...]) -> None:
    for kind, tolerance in ((np.float32, 1e-5), (np.float64, 1e-12)):
        module = holder(torch, drawn(shape, kind), name, True)
        with torch.no_grad():
            module.parametrizations.weight.original.add_(torch.from_numpy(drawn(shape, kind, 1)), alpha=3.0)
        Q = module.weight.detach().numpy()
        Q = Q if shape[-2] >= shape[-1] else np.swapaxes(Q, -2, -1)
        gram = np.swapaxes(Q, -2, -1) @ Q
        signs = np.trunc(-1 + 3 * drawn(shape, kind, 1)) if name == "householder" else None
        if signs is None:
            np.testing.assert_allclose(gram, np.broadcast_to(np.eye(gram.shape[-1]), gram.shape), atol=tolerance)
        else:  # the diagonal of X multiplies the columns
            lengths = np.diagonal(gram, axis1=-2, axis2=-1)
            expected = np.diagonal(signs, axis1=-2, axis2=-1) ** 2
            np.testing.assert_allclose(lengths, expected, rtol=10 * tolerance, atol=tolerance)


@pytest.mark.thorough
@pytest.mark.parametrize("name", MAPS)
def test_gradients_of_both_orders(name: str) -> None:
    for shape in ((3, 3), (4, 2)):
        made = holder(torch, drawn(shape), name, True).parametrizations.weight[0]
        X = torch.from_numpy(drawn(shape, seed=1)).requires_grad_()
        assert gradcheck(made, (X,)) and gradgradcheck(made, (X,))


def test_a_large_matrix_and_numbers_that_are_not_finite() -> None:
    for name in MAPS[:2]:
        made = holder(torch, np.eye(40, dtype=np.float32), name, True).parametrizations.weight[0]
        Q = made(torch.from_numpy(drawn((40, 40), np.float32) * 10))
        torch.testing.assert_close(Q.T @ Q, torch.eye(40), rtol=0, atol=1e-3)
        assert made(torch.full((40, 40), torch.nan)).isnan().any()


def test_assignment_and_removal() -> None:
    layer = parametrizations.orthogonal(nn.Linear(3, 3), orthogonal_map="cayley")
    turned = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    layer.weight = turned
    torch.testing.assert_close(layer.weight, turned)
    with pytest.raises(ValueError, match=r"Expected a matrix or batch of matrices of shape .*\[3, 3\]"):
        layer.weight = torch.ones(2, 3)
    parametrize.remove_parametrizations(layer, "weight")
    torch.testing.assert_close(layer.weight.detach(), turned)
    layer = parametrizations.orthogonal(nn.Linear(3, 3), use_trivialization=False)
    with pytest.raises(NotImplementedError, match="It is not possible to assign to the matrix exponential or the"):
        layer.weight = turned


@pytest.mark.thorough
@needs_triton
def test_on_a_simulated_device() -> None:
    with torch.cuda.simulate(devices=1):
        for name in MAPS:
            here = holder(torch, drawn((4, 3), np.float32), name, True)
            there = holder(torch, drawn((4, 3), np.float32), name, True).to("cuda")
            there.load_state_dict(here.state_dict())
            X = torch.from_numpy(drawn((4, 3), np.float32, 1))
            found = there.parametrizations.weight[0](X.cuda())
            assert found.is_cuda
            torch.testing.assert_close(found.cpu(), here.parametrizations.weight[0](X))
            there.weight = X.cuda()
            assert there.weight.is_cuda and there.parametrizations.weight[0].base.is_cuda


@pytest.mark.peer
@pytest.mark.parametrize(("name", "shape", "trivial"), [*product((None, *MAPS), SHAPES, (True, False))])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.complex128])
def test_beside_torch(name: str | None, shape: tuple[int, ...], trivial: bool, kind: Any) -> None:
    reference = pytest.importorskip("torch")
    found = []
    for library in (reference, torch):
        try:
            module = holder(library, drawn(shape, kind), name, trivial)
        except ValueError as error:
            found.append(str(error))
            continue
        original = module.parametrizations.weight.original
        state = {key: tuple(value.shape) for key, value in module.state_dict().items()}
        facts = [repr(module.parametrizations), state, original.detach().numpy(), module.weight.detach().numpy()]
        with library.no_grad():  # a state from elsewhere: completions of bases are drawn at random
            base = getattr(module.parametrizations.weight[0], "base", None)
            if base is not None:
                base.copy_(library.from_numpy(drawn(tuple(base.shape), kind, 2)))
            original.copy_(library.from_numpy(drawn(shape, kind, 1)))
        value = module.weight
        value.backward(library.from_numpy(drawn(shape, kind, 3)))
        found.append([*facts, value.detach().numpy(), original.grad.numpy()])
    wanted, ours = found
    if isinstance(wanted, str):
        assert ours == wanted
        return
    assert ours[:2] == wanted[:2]
    tolerance = 2e-4 if kind is np.float32 else 1e-9
    for one, other in zip(ours[2:], wanted[2:], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, tolerance, tolerance)


@pytest.mark.peer
def test_messages_beside_torch() -> None:
    reference = pytest.importorskip("torch")

    def orthogonal(library: Any, *arguments: Any, **named: Any) -> Any:
        return library.nn.utils.parametrizations.orthogonal(library.nn.Linear(2, 3), *arguments, **named)

    def assigned(library: Any, *shape: int, **named: Any) -> None:
        orthogonal(library, **named).weight = library.ones(*shape)

    for call in (
        lambda library: orthogonal(library, "other"),
        lambda library: orthogonal(library, "bias"),
        lambda library: orthogonal(library, orthogonal_map="qr"),
        lambda library: assigned(library, 2, 2),
        lambda library: assigned(library, 3, 2, orthogonal_map="cayley", use_trivialization=False),
    ):
        told = []
        for library in (reference, torch):
            with pytest.raises((ValueError, NotImplementedError)) as caught:
                call(library)
            kind = NotImplementedError if isinstance(caught.value, NotImplementedError) else ValueError
            told.append((kind, str(caught.value).replace("tritensor", "torch")[:150]))
        assert told[0] == told[1]
