"""`autograd.grad(is_grads_batched=True)`: the products of several vectors with one Jacobian."""

from __future__ import annotations

import pytest

import tritensor as torch

grad = torch.autograd.grad


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    if request.param == "cpu":
        yield "cpu"
    else:
        with torch.cuda.simulate(devices=1):
            yield "cuda"


def powers(device):
    x = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    w = torch.ones(3, device=device, requires_grad=True)
    return x, w, x**2 * w


def test_each_row_is_a_pass_of_its_own(device) -> None:
    x, w, y = powers(device)
    one, other = grad(y, (x, w), torch.eye(3, device=device), retain_graph=True, is_grads_batched=True)
    assert one.tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]
    assert other.tolist() == [[1.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 9.0]]
    weights = torch.ones(2, 3, device=device), torch.tensor([1.0, 3.0], device=device)
    (both,) = grad((y, y.sum()), x, weights, is_grads_batched=True)
    assert both.tolist() == [[4.0, 8.0, 12.0], [8.0, 16.0, 24.0]] and x.grad is None
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        grad(y, x, torch.eye(3, device=device), is_grads_batched=True)


def test_the_results_can_be_differentiated() -> None:
    x, _, y = powers("cpu")
    (rows,) = grad(y, x, torch.eye(3), create_graph=True, is_grads_batched=True)
    assert grad(rows.sum(), x)[0].tolist() == [2.0, 2.0, 2.0]


def test_an_input_that_was_not_used() -> None:
    x, _, y = powers("cpu")
    unused = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 1 appears to not have been used"):
        grad(y, (x, unused), torch.eye(3), retain_graph=True, is_grads_batched=True)
    assert grad(y, (x, unused), torch.eye(3), True, is_grads_batched=True, allow_unused=True)[1] is None
    filled = grad(y, (x, unused), torch.eye(3), is_grads_batched=True, materialize_grads=True)[1]
    assert filled.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("gradient", "error", "words"),
    [
        (
            torch.ones(3),
            RuntimeError,
            "If `is_grads_batched=True`, we interpret the first dimension of each grad_output",
        ),
        (torch.ones(3, 2), RuntimeError, "If `is_grads_batched=True`, we interpret the first dimension of each"),
        (None, RuntimeError, "grad can be implicitly created only for scalar outputs"),
        (torch.ones(0, 3), IndexError, "index 0 is out of bounds for dimension 0 with size 0"),
    ],
)
def test_gradients_that_are_no_batch(gradient, error, words: str) -> None:
    x, _, y = powers("cpu")
    with pytest.raises(error, match=words):
        grad(y, x, gradient, is_grads_batched=True)
    with pytest.raises(ValueError, match="vmap: Expected all tensors to have the same size in the mapped dimension"):
        grad((y, y.sum()), x, (torch.eye(3), torch.ones(2)), is_grads_batched=True)
    assert grad(y.sum(), x)[0].tolist() == [2.0, 4.0, 6.0]
