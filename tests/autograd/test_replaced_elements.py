"""A tensor whose elements are all replaced by constants stays in its graph, with a gradient of zero behind it."""

from __future__ import annotations

import pytest

import tritensor as torch

CHANGES = {
    "zero_": (lambda h: h.zero_(), "ZeroBackward0"),
    "fill_": (lambda h: h.fill_(3), "FillBackward0"),
    "copy_": (lambda h: h.copy_(torch.ones(2)), "CopyBackwards"),
    "normal_": (lambda h: h.normal_(), "NormalBackward0"),
    "uniform_": (lambda h: h.uniform_(), "UniformBackward0"),
    "random_": (lambda h: h.random_(), "RandomBackward0"),
    "bernoulli_": (lambda h: h.bernoulli_(), "BernoulliBackward0"),
    "exponential_": (lambda h: h.exponential_(), "ExponentialBackward0"),
    "gt_": (lambda h: h.gt_(1), "GtBackward0"),
    "[:] = 0": (lambda h: h.__setitem__(slice(None), 0), "CopySlices"),
}


@pytest.mark.parametrize(("change", "name"), CHANGES.values(), ids=CHANGES)
def test_history_stays(change, name):
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    change(h)
    assert h.requires_grad and not h.is_leaf and type(h.grad_fn).__name__ == name
    (h.sum() * 2).backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_a_comparison_with_what_requires_grad_does_too():
    x, y = torch.tensor([0.25, 3.0]), torch.tensor([1.0, 2.0], requires_grad=True)
    x.le_(y)
    assert x.requires_grad and x.tolist() == [1.0, 0.0]
    x.sum().backward()
    assert y.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("view", [False, True])
def test_logical_changes_are_not_recorded(view):
    x = torch.tensor([[1.5, 0.0]], requires_grad=True)
    (x[0] if view else x).logical_not_()
    assert x.tolist() == [[0.0, 1.0]] and x.is_leaf and x.requires_grad
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.logical_and_(torch.ones(2, 1, 1))
