"""Long chains: of views, of nodes, of modules. No step of ours is a call within a call for each link."""

from __future__ import annotations

import contextlib
import copy
import pickle
from typing import Any

import pytest

import tritensor as torch

from ..needs import needs_triton


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


@pytest.mark.sampled(1)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_triton)])
def test_views_of_views_each_changed_in_place(device: str) -> None:
    with torch.cuda.simulate() if device == "cuda" else contextlib.nullcontext():
        n = 2000 if device == "cpu" else 12
        leaf = torch.ones(6, device=device, requires_grad=True)
        x = view = leaf * 1
        for number in range(n):
            view = view.view(2, 3)[:, 1:] if number == 9 else view[:]
            view.mul_(1 + 2**-10)
        first, rest = (1 + 2**-10) ** 9, (1 + 2**-10) ** n
        expected = [[first, rest, rest], [first, rest, rest]]
        assert torch.allclose(x.view(2, 3).cpu(), torch.tensor(expected), rtol=1e-3)
        (x.sum() + view.sum()).backward()
        expected = [[first, 2 * rest, 2 * rest], [first, 2 * rest, 2 * rest]]
        assert torch.allclose(leaf.grad.view(2, 3).cpu(), torch.tensor(expected), rtol=1e-3)


@pytest.mark.parametrize("n", [1, 12])
@pytest.mark.parametrize("expand", [False, True])
def test_a_long_way_is_the_same_way(n: int, expand: bool) -> None:
    leaf = torch.arange(6.0).reshape(2, 3).requires_grad_()
    x = leaf.t().contiguous().t() * 1
    assert x.stride() == (1, 2)
    view = x.t()
    for _ in range(n):
        view = view[:]
    (view[1].expand(4, 2)[0] if expand else view.reshape(-1)[2:4]).mul_(5)
    (x * torch.arange(6.0).reshape(2, 3)).sum().backward(create_graph=True)
    assert leaf.grad.tolist() == [[0, 5, 2], [3, 20, 5]]
    assert (x.detach() == leaf * torch.tensor([1, 5, 1])).all()


def test_a_long_way_to_replaced_data() -> None:
    leaf, x, view = chain(12)
    x.data = torch.arange(4.0)
    x.mul_(2)
    view.sum().backward()
    assert view.tolist() == [1] * 4 and leaf.grad.tolist() == [2] * 4


def test_second_derivatives_through_a_long_way() -> None:
    leaf = torch.tensor([1.0, 2, 3, 4], requires_grad=True)
    x = view = leaf * 1
    for _ in range(12):
        view = view[:]
    view = view[1:3]
    view.pow_(3)
    (first,) = torch.autograd.grad(x.sum() + view.sum(), leaf, create_graph=True)
    assert first.tolist() == [1, 24, 54, 1]
    first.sum().backward()
    assert leaf.grad.tolist() == [0, 24, 36, 0]


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
