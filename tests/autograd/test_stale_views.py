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


def unrecorded(x):
    """A view of a tensor that requires grad, made without recording."""
    with torch.no_grad():
        return x[0]


def test_a_view_made_without_recording_requires_grad_as_its_base_and_passes_no_gradient_on():
    x = torch.ones(2, 2, requires_grad=True)
    v = unrecorded(x)
    assert v.requires_grad and v.is_leaf and v.grad_fn is None
    w = v[:1]
    assert w.requires_grad and not w.is_leaf
    (v * 3).sum().backward()
    w.sum().backward()
    assert x.grad is None and v.grad is None


def test_a_view_made_without_recording_is_changed_without_recording_alone():
    x = torch.ones(2, 2, requires_grad=True)
    v = unrecorded(x)
    plain = torch.zeros(2, requires_grad=True)
    for change in (lambda: v.mul_(2), lambda: v[:1].mul_(2), lambda: v.add_(plain)):
        with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
            change()
    with torch.no_grad():
        v.mul_(2)
        v.mul_(3)
    assert x.tolist() == [[6.0, 6.0], [1.0, 1.0]]


def test_a_view_made_without_recording_whose_base_changed_is_in_no_graph():
    x = torch.ones(2, 2, requires_grad=True)
    v = unrecorded(x)
    with torch.no_grad():
        x.mul_(2)
        assert (v * 3).tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and its base or another view of its"):
        v * 3
    assert repr(v) == "tensor([2., 2.], grad_fn=<Invalid>)"
    assert (v.detach() * 3).tolist() == [6.0, 6.0]


def test_a_view_made_without_recording_becomes_a_leaf_when_asked():
    x = torch.ones(2, 2, requires_grad=True)
    v = unrecorded(x).requires_grad_()
    (v * 3).sum().backward()
    assert v.grad.tolist() == [3.0, 3.0] and x.grad is None


def test_a_leaf_that_is_a_view_is_not_changed_through_its_views():
    x = torch.ones(4)[::2].requires_grad_()
    for change in (lambda: x.mul_(2), lambda: x[:].mul_(2), lambda: x.__setitem__(0, 2)):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-"):
            change()
    assert x.tolist() == [1.0, 1.0]
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_leaf_that_no_longer_requires_grad_gets_none():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward(retain_graph=True)
    assert x.grad is None
    x.requires_grad_()
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


# ---- views of a leaf that is a view of a tensor that does not require grad ------------------------------------------


def test_a_view_made_without_recording_has_the_flag_of_the_root():
    x = torch.ones(4)[::2].requires_grad_()
    with torch.no_grad():
        v = x[:1]
    assert not v.requires_grad


def test_after_a_change_a_view_of_such_a_leaf_passes_no_gradient_on():
    x = torch.ones(4)[::2].requires_grad_()
    v = x.reshape(2, 1)
    with torch.no_grad():
        v.mul_(3)
    assert v.requires_grad
    (v * 2).sum().backward()
    assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("ask", [lambda x: x.requires_grad_(), lambda x: setattr(x, "requires_grad", True)])
def test_views_learn_that_their_root_requires_grad(ask):
    x = torch.ones(2, 2)
    v = x[0]
    ask(x)
    assert v.requires_grad and v.is_leaf
    (v * 2).sum().backward()
    assert v.grad is None and x.grad is None
    x[0].sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_asking_a_tensor_without_views_searches_for_none(monkeypatch):
    monkeypatch.setattr("tritensor.autograd.tape.views_on", None)
    x = torch.ones(2)
    x.detach().requires_grad_()
    other = x.detach()
    other.requires_grad = True
    assert other.requires_grad


def test_a_view_that_changed_before_its_root_required_grad_has_a_node_then():
    x = torch.ones(2, 2)
    v = x[0]
    v.mul_(3)
    assert v.is_leaf and v.grad_fn is None
    x.requires_grad_()
    assert not v.is_leaf
    v.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_a_view_made_without_recording_loses_the_flag_with_its_root():
    x = torch.ones(2, 2, requires_grad=True)
    v = unrecorded(x)
    x.requires_grad_(False)
    assert not v.requires_grad


def test_what_was_recorded_before_a_view_became_a_leaf_passes_no_gradient_to_it():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        v = x[:]
    before = v * 3
    v.requires_grad_()
    (before + v * 2).sum().backward()
    assert v.grad.tolist() == [2.0, 2.0] and x.grad is None


def test_a_stale_view_of_a_view_hangs_on_the_root():
    x = torch.ones(2, requires_grad=True)
    h = x * 1
    v = h[:1]
    w = v[None]
    v.retain_grad()
    h.mul_(3)
    (w * 2).sum().backward(retain_graph=True)
    assert v.grad is None and x.grad.tolist() == [6.0, 0.0]


def test_a_view_outlives_the_shape_of_its_root():
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    v = h[:1]
    h.data = torch.tensor(5.0)
    h.mul_(2)
    v.detach().add_(1)
    assert not v.is_leaf and v.tolist() == [3.0]
