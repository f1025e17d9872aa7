"""Views whose memory was changed: they have a new node, whoever changed it and whether or not that was recorded."""

from __future__ import annotations

import pytest

import tritensor as torch


def test_a_write_without_recording_keeps_the_history_of_a_stale_view(device):
    x = torch.ones(2, device=device, requires_grad=True)
    h = x * 2
    v = h[0]
    h.mul_(3)
    with torch.no_grad():
        v.mul_(2)
    (v + x.sum()).backward()
    assert x.grad.tolist() == [7.0, 1.0]


CHANGES = {
    "the base": lambda x, h, v: h.mul_(3),
    "the base, not recorded": lambda x, h, v: torch.no_grad()(h.mul_)(3),
    "the view, not recorded": lambda x, h, v: torch.no_grad()(v.mul_)(3),
    "a detached base": lambda x, h, v: h.detach().mul_(3),
    "another view": lambda x, h, v: h[:1].mul_(3),
    "constants": lambda x, h, v: h.zero_(),
    "an element": lambda x, h, v: h.__setitem__(1, 5.0),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_stale_view_is_not_part_of_an_older_graph(change):
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    v = h[:1]
    y = v.sum()
    change(x, h, v)
    assert torch.autograd.grad(y, v, allow_unused=True) == (None,)
    assert v.requires_grad and v.grad_fn is not None


def test_a_view_of_a_leaf_is_stale_after_a_step():
    x = torch.ones(2, requires_grad=True)
    v = x[:1]
    y = v.sum()
    with torch.no_grad():
        x.mul_(2)
    assert torch.autograd.grad(y, v, allow_unused=True) == (None,)
    v.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
