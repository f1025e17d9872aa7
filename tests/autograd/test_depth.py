"""Long chains: of views, of nodes, of modules. No step of ours is a call within a call for each link."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import tritensor as torch


def chain(n: int, requires_grad: bool = True) -> tuple[Any, Any, Any]:
    """A leaf, a tensor made of it, and a view of a view of ... of that one."""
    leaf = torch.ones(4, requires_grad=requires_grad)
    x = view = leaf * 1
    for _ in range(n):
        view = view[:]
    return leaf, x, view


def test_views_of_views_changed_in_place() -> None:
    leaf, x, view = chain(2000)
    view.mul_(2)
    (x.sum() + view.sum()).backward()
    assert leaf.grad.tolist() == [4] * 4


def test_views_of_views_that_need_a_gradient_since_a_change() -> None:
    _, x, view = chain(2000, requires_grad=False)
    middle = view
    for _ in range(1000):
        middle = middle._origin[0]
    weight = torch.ones(4, requires_grad=True)
    view.mul_(weight)
    assert middle.requires_grad and x.requires_grad
    middle.sum().backward()
    assert weight.grad.tolist() == [1] * 4


def test_many_views_are_refreshed() -> None:
    leaf, x, view = chain(20_000)
    views = [x[:] for _ in range(20_000)]
    x.mul_(3)
    total = (view * 1).sum()
    for each in views[::500]:
        total = total + each.sum()
    assert all(each.grad_fn is not None for each in views)
    total.backward()
    assert leaf.grad.tolist() == [3 * 41] * 4


@pytest.mark.parametrize("create_graph", [False, True])
def test_deep_graphs(create_graph: bool) -> None:
    x = torch.ones(4, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 1
    assert repr(y).startswith("tensor([20001., 20001., 20001., 20001.], grad_fn=<AddBackward0>)")
    assert pickle.loads(pickle.dumps(y)).tolist() == copy.deepcopy(y.detach()).tolist() == [20_001] * 4
    (y * y).sum().backward(create_graph=create_graph)
    assert x.grad.tolist() == [40_002] * 4
    x.grad = None
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(y)
