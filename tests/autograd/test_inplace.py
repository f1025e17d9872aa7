"""Changes in place: versions, views that share storage, histories that follow, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.operators import inplace

from .leaves import leaf


def test_views_share_memory_and_version() -> None:
    x = torch.zeros(4)
    views = [x[1:3], x.view(2, 2), x.reshape(2, 2).t(), x.detach(), x[None]]
    x.add_(1)
    assert all((v == 1).all() for v in views)
    assert all(v._version == 1 for v in views)
    views[0].mul_(5)
    assert x.tolist() == [1, 5, 5, 1] and x._version == 2


def test_data_and_numpy_change_unseen() -> None:
    x = torch.ones(2)
    x.data.add_(1)
    x.numpy()[0] = 7
    assert x.tolist() == [7, 2] and x._version == 0


def test_leaf_and_its_views_are_refused() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        x[0:1].mul_(2)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x[0] = 5
    assert x.tolist() == [1.0, 2.0] and x._version == 0
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 3.0]


def test_history_follows_a_change() -> None:
    w = leaf(2.0, 3.0)
    y = w * 2
    y.mul_(w.detach())
    y.add_(1)
    y.sum().backward()
    assert w.grad.tolist() == [4.0, 6.0]


def test_a_tensor_without_history_gets_one() -> None:
    w = leaf(2.0, 3.0)
    x = torch.zeros(2, dtype=torch.float64)
    x.add_(w)
    assert x.requires_grad and not x.is_leaf
    (x * x).sum().backward()
    assert w.grad.tolist() == [4.0, 6.0]


def test_change_of_a_view_changes_its_base_history() -> None:
    w = leaf(1.0, 2.0, 3.0)
    base = w * 2
    base[0:1].mul_(10)
    base.sum().backward()
    assert w.grad.tolist() == [20.0, 2.0, 2.0]


def test_change_of_a_base_changes_its_views_history() -> None:
    w = leaf(1.0, 2.0, 3.0)
    base = w * 1
    early = base[1:]
    base.mul_(3)
    (early * torch.tensor([1.0, 10.0], dtype=torch.float64)).sum().backward()
    assert w.grad.tolist() == [0.0, 3.0, 30.0]


def test_change_through_a_view_of_a_view() -> None:
    w = leaf(*range(6))
    base = w * 1
    matrix = base.view(2, 3)
    column = matrix[:, 1]
    column.copy_(torch.zeros(2, dtype=torch.float64))
    other = matrix.t()[2]
    (base.sum() + other.sum()).backward()
    assert w.grad.tolist() == [1.0, 0.0, 2.0, 1.0, 0.0, 2.0]


def test_assignment_into_zeros() -> None:
    w = leaf(1.0, 2.0)
    buffer = torch.zeros(2, 2, dtype=torch.float64)
    for i in range(2):
        buffer[i] = w * (i + 1)
    (buffer * buffer).sum().backward()
    assert w.grad.tolist() == [10.0, 20.0]


def test_copy_of_a_leaf_itself() -> None:
    w = leaf(1.0, 2.0)
    x = torch.zeros(2, dtype=torch.float64)
    x.copy_(w)
    (x * 3).sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]


def test_what_is_copied_over_has_a_gradient_of_zero() -> None:
    w, source = leaf(1.0, 2.0), leaf(3.0)
    for change in (lambda y: y.copy_(source), lambda y: y.copy_(source * 1), lambda y: y.fill_(source.sum())):
        w.grad = source.grad = None
        change(y := w * 2)
        (y * y).sum().backward()
        assert (w.grad.tolist(), source.grad.tolist()) == ([0, 0], [12])


def test_a_comparison_in_place_gives_both_operands_a_gradient_of_zero() -> None:
    w, other = leaf(1.0, 2.0), leaf(1.0, 3.0)
    y = w * 2
    y.ne_(other)
    (y * y).sum().backward()
    assert w.grad.tolist() == other.grad.tolist() == [0, 0]


def test_copy_of_an_expanded_tensor_itself_is_a_change() -> None:
    x = torch.zeros(1).expand(3)
    before = x._version
    assert x.copy_(x) is x and x._version == before + 1


def test_second_derivative_through_a_change() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * x
        y[0:1].add_(x[1:2] ** 3)
        return y

    assert torch.autograd.gradcheck(function, leaf(1.0, 2.0, 3.0))
    assert torch.autograd.gradgradcheck(function, leaf(1.0, 2.0, 3.0))


def test_a_factor_that_needs_the_old_value_keeps_it() -> None:
    """The gradient of x in y *= x reads the y that was overwritten. PyTorch raises; here the node keeps a copy."""
    x = leaf(1.0, 2.0)
    y = x * x
    y[0:1].mul_(x[1:2])
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 5.0]


def test_what_does_not_fit_is_refused_unchanged() -> None:
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
        x.add_(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.ones(3, dtype=torch.int64).add_(torch.ones(3))
    with pytest.raises(RuntimeError, match="The expanded size of the tensor"):
        x.copy_(torch.ones(4))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        torch.zeros(1).expand(3).add_(1)
    frozen = np.ones(2, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        torch.from_numpy(frozen).add_(1)
    with pytest.raises(TypeError, match="must be Tensor"):
        x.copy_([1, 2, 3])
    assert x.tolist() == [1.0] * 3 and x._version == 0


def test_dtype_stays() -> None:
    half = torch.ones(2, dtype=torch.float16)
    half.add_(torch.ones(2, dtype=torch.float32))
    assert half.dtype is torch.float16 and half.tolist() == [2.0, 2.0]


def test_fill_and_zero() -> None:
    x = torch.ones(2, 2)
    x.t().fill_(3)
    assert x.tolist() == [[3, 3], [3, 3]]
    assert x.zero_() is x and not x.any()
    with pytest.raises(RuntimeError, match="fill_ only supports 0-dimension value tensor"):
        x.fill_(torch.ones(2))
    w = leaf(4.0)
    y = torch.zeros(3, dtype=torch.float64)
    y.fill_(w[0])
    y.sum().backward()
    assert w.grad.item() == 3.0


def test_augmented_assignment_changes_in_place() -> None:
    x = torch.ones(2)
    same = x
    x += 1
    x *= 3
    x -= 2
    x /= 2
    assert same is x and x.tolist() == [2.0, 2.0] and x._version == 4


# ---- views that were taken before their base had a history ---------------------------------------------------------

W = [1.0, 2.0, 3.0, 4.0]


def _weights() -> torch.Tensor:
    return torch.tensor(W, requires_grad=True)


def test_a_view_learns_of_its_bases_first_history() -> None:
    base, w = torch.zeros(4), _weights()
    view, deep, detached = base[:2], base.view(2, 2).t()[0], base[:2].detach()
    with torch.no_grad():
        unrecorded = base[1:]
    base.add_(w * 3)
    assert view.requires_grad and deep.requires_grad and unrecorded.requires_grad and not detached.requires_grad
    (view * torch.tensor([2.0, 5.0])).sum().backward(retain_graph=True)
    assert w.grad.tolist() == [6, 15, 0, 0]
    deep.sum().backward()
    assert w.grad.tolist() == [9, 15, 3, 0]


def test_views_learn_of_a_history_that_came_by_another_view() -> None:
    base, w = torch.zeros(4), _weights()
    left, right, outer = base[:3], base[1:], base.view(2, 2)
    left.mul_(0).add_(w[:3])
    assert right.requires_grad and outer.requires_grad and base.requires_grad
    (right * torch.tensor([1.0, 10.0, 100.0])).sum().backward(retain_graph=True)
    assert w.grad.tolist() == [0, 1, 10, 0]
    outer[1].sum().backward()
    assert w.grad.tolist() == [0, 1, 11, 0]


CHANGES = {
    "copy_": lambda x, w: x.copy_(w),
    "slice": lambda x, w: x.__setitem__(slice(None), w),
    "view": lambda x, w: x.view(2, 2).__setitem__(0, w[:2]),
    "mul_": lambda x, w: x.mul_(w),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_way_of_changing_a_base_tells_its_views(change: Any) -> None:
    base, w = torch.ones(4), _weights()
    view = base[:1]
    change(base, w)
    assert view.requires_grad
    view.sum().backward()
    assert w.grad.tolist() == [1, 0, 0, 0]


def test_without_gradients_views_stay_without() -> None:
    base, w = torch.ones(4), _weights()
    view = base[:2]
    with torch.no_grad():
        base.mul_(w)
    assert not view.requires_grad and not base.requires_grad


def test_filling_a_tensor_part_by_part_looks_for_no_views(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(counter: Any) -> Any:
        raise AssertionError("this takes milliseconds")

    w = _weights()
    monkeypatch.setattr(inplace, "views_on", look)
    out, other = torch.zeros(2, 4), torch.zeros(4)
    for row in range(2):
        out[row] = w * (row + 1)
        out[row][1:].mul_(w[1:])
    other.add_(w)
    del other
    torch.zeros(2, 2).t().add_(w[0])
    (out.sum()).backward()
    assert w.grad.tolist() == [3, 12, 18, 24]
    kept, view = torch.zeros(4), None
    view = kept[:1]
    with pytest.raises(AssertionError, match="milliseconds"):
        kept.add_(w)
    assert view is not None


def test_retain_grad_follows_a_change() -> None:
    x = torch.ones(2, requires_grad=True)
    for change in (lambda h, v: h.mul_(3), lambda h, v: v.mul_(3)):
        h = x * 2
        h.retain_grad()
        v = h[:1]
        v.retain_grad()
        change(h, v)
        (h * h).sum().backward(retain_graph=True)
        assert h.grad.tolist() == (2 * h.detach()).tolist()
        assert v.grad is None  # no part of the graph
        v.sum().backward()
        assert v.grad.tolist() == [1.0]


def test_a_value_assigned_to_more_places_than_it_has_elements_gets_the_sum_of_gradients(device: Any) -> None:
    x = torch.tensor([[2.0, 3.0]], device=device, requires_grad=True)
    y = torch.zeros(1, 2, device=device)
    y[torch.tensor([[0, 0]], device=device), :] = x
    y.sum().backward()
    assert x.grad.shape == (1, 2)


def test_data_of_another_shape_in_a_graph_is_refused_by_backward() -> None:
    x = torch.ones(3, requires_grad=True)
    h = x * x
    x.data = torch.ones(2)
    with pytest.raises(RuntimeError, match="Function MulBackward0 returned an invalid gradient") as caught:
        h.sum().backward()
    assert "recorded at" in str(caught.value)


def test_what_a_users_backward_raises_is_passed_on() -> None:
    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise ValueError("my own")

    with pytest.raises(ValueError, match="my own"):
        Failing.apply(torch.ones(2, requires_grad=True)).sum().backward()
