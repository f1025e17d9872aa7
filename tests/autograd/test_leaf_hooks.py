"""Hooks behind the accumulation of a leaf's gradient: they run as soon as it is complete, and not before."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn


def test_a_leaf_is_finished_before_older_nodes_run():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))
    seen = []
    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda p, name=name: seen.append((name, p.grad.shape == p.shape)))
    hidden = model[0](torch.ones(2, 4))
    hidden.register_hook(lambda gradient: seen.append("hidden"))
    model[2](model[1](hidden)).sum().backward()
    assert sorted(seen[:2]) == [("2.bias", True), ("2.weight", True)]
    assert seen[2] == "hidden"
    assert sorted(seen[3:]) == [("0.bias", True), ("0.weight", True)]


@pytest.mark.parametrize("uses", [1, 2, 5, 40])
def test_a_leaf_that_is_used_often_is_finished_once_and_with_all(uses):
    x = torch.linspace(0.5, 1.5, 3, requires_grad=True)
    y = torch.linspace(0.5, 1.5, 3, requires_grad=True)
    seen = []
    y.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.clone()))
    for leaf in (x, y):
        total = leaf * leaf
        for _ in range(uses):
            total = (total + leaf).sin() * leaf
        total.sum().backward()
    assert len(seen) == 1
    assert torch.equal(seen[0], y.grad)
    np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=1e-6)


def test_what_sends_nothing_counts_too():
    """A gradient function may return None, and a node may not be reached by any gradient: the hook still runs."""

    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx, first, second):
            return first * 2, second * 3

        @staticmethod
        def backward(ctx, first, second):
            return first * 2, None

    x, y, seen = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True), []
    for name, leaf in (("x", x), ("y", y)):
        leaf.register_post_accumulate_grad_hook(lambda t, name=name: seen.append((name, t.grad.tolist())))
    first, second = Half.apply(x, y)
    ((first + second).sum() + (y * 5).sum() + (x.detach() * 2).sum()).backward()
    assert sorted(seen) == [("x", [2.0, 2.0]), ("y", [5.0, 5.0])]


def test_a_leaf_as_the_root():
    x, seen = torch.ones(2, requires_grad=True), []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    torch.autograd.backward([x, (x * 2).sum()], [torch.full((2,), 3.0), None])
    assert seen == [[5.0, 5.0]]


def test_hooks_on_the_gradient_come_first_and_change_it():
    x, seen = torch.ones(2, requires_grad=True), []
    x.register_hook(lambda gradient: gradient * 10)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    (x * 2 + x).sum().backward()
    assert seen == [[30.0, 30.0]]


def test_a_hook_may_step_and_clear():
    """An optimizer's step within the backward pass; the gradient of the layer below is that of the old weights."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    expected = [p.detach().clone() for p in model.parameters()]
    model(torch.ones(2, 3)).sum().backward()
    for value, p in zip(expected, model.parameters(), strict=True):
        value.sub_(p.grad * 0.5)

    def step(p):
        with torch.no_grad():
            p.sub_(p.grad * 0.5)
        p.grad = None

    model.zero_grad()
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step)
    model(torch.ones(2, 3)).sum().backward()
    for value, p in zip(expected, model.parameters(), strict=True):
        assert p.grad is None
        np.testing.assert_allclose(p.detach().numpy(), value.numpy(), rtol=1e-6)


def test_a_hook_may_run_a_backward_pass_of_its_own():
    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)

    def again(t):
        with torch.enable_grad():
            (y * 7).backward()

    x.register_post_accumulate_grad_hook(again)
    (x * x * y).sum().backward()
    assert (x.grad.item(), y.grad.item()) == (2.0, 8.0)


def test_second_gradients_and_targets():
    x, seen = torch.full((1,), 3.0, requires_grad=True), []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert seen == []
    first.sum().backward(create_graph=True)
    assert seen == [18.0]
    assert x.grad.requires_grad


def test_an_error_in_a_hook_is_the_users():
    x = torch.ones(1, requires_grad=True)

    def fail(t):
        raise KeyError("mine")

    handle = x.register_post_accumulate_grad_hook(fail)
    with pytest.raises(KeyError, match="mine"):
        (x * 2).sum().backward()
    handle.remove()
    assert torch.is_grad_enabled()
    (x * 2).sum().backward()
    assert x.grad.item() == 4.0
