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
