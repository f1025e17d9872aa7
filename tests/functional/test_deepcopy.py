"""`copy.deepcopy` of tensors: those that share memory share it in the copy, on the CPU and on a simulated device."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn


@pytest.fixture(params=["cpu", "cuda"])
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    with torch.cuda.simulate(devices=1):
        yield request.param


VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "detached": lambda x: x.detach(),
    "first": lambda x: x[:2],
    "middle": lambda x: x[1:3, 1],
    "every second": lambda x: x[:, ::2],
    "turned": lambda x: x.t(),
    "expanded": lambda x: x[:1].expand(3, 3),
    "none": lambda x: x[:, 3:],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_views_have_their_place_in_one_copy(place: str, dtype: Any) -> None:
    x = torch.arange(12, dtype=dtype, device=place).reshape(4, 3)
    views = [view(x) for view in VIEWS.values()]
    for order in (1, -1):  # the copy of the memory is made for the first that is met, whichever that is
        others = copy.deepcopy(views[::order])[::order]
        for view, other in zip(views, others, strict=True):
            assert other.device == x.device and other.dtype is dtype and not other.requires_grad
            assert other.tolist() == view.tolist()
            if view.numel():
                assert (other.stride(), other.storage_offset()) == (view.stride(), view.storage_offset())
        others[0].mul_(2)
        for view, other in zip(views, others, strict=True):
            assert other.tolist() == (view * 2).tolist()
    assert x.tolist() == torch.arange(12).reshape(4, 3).tolist()


def test_modules_buffers_share_memory_in_a_copy(place: str) -> None:
    module = nn.Module()
    module.weight = nn.Parameter(torch.ones(2, device=place))
    module.register_buffer("table", torch.arange(4.0, device=place))
    module.register_buffer("tail", module.table[2:])
    module.view = module.weight.detach()  # PyTorch copies a parameter's own elements, apart from all views
    other = copy.deepcopy(module)
    other.table.add_(10)
    with torch.no_grad():
        other.weight.add_(1)
    assert other.tail.tolist() == [12.0, 13.0] and other.view.tolist() == [1.0, 1.0]
    assert module.tail.tolist() == [2.0, 3.0] and module.weight.tolist() == [1.0, 1.0]


def test_a_change_of_one_copy_is_noticed_in_the_other(place: str) -> None:
    x = torch.ones(3, device=place)
    whole, part = copy.deepcopy([x, x[:2]])
    weight = torch.ones(2, requires_grad=True, device=place)
    product = (weight * part).sum()
    whole.add_(1)
    with pytest.raises(RuntimeError, match=r"^one of the variables needed for gradient computation has been modified"):
        product.backward()


def test_one_tensor_has_one_copy_also_as_a_gradient() -> None:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.zeros(2)
    gradient, other, again = copy.deepcopy([x.grad, x, x])
    assert other.grad is gradient and other is again and other.requires_grad and other is not x


def test_attributes_are_copied_and_hooks_are_not() -> None:
    x = torch.ones(2, requires_grad=True)
    x.note, x._mark = ["note"], 3
    x.register_hook(lambda gradient: gradient * 2)
    other = copy.deepcopy(x)
    assert other.note == ["note"] and other.note is not x.note and other._mark == 3
    other.sum().backward()
    assert other.grad.tolist() == [1.0, 1.0] and x.grad is None
    assert copy.deepcopy(nn.Buffer(torch.ones(2), persistent=False)).persistent is False


def test_an_array_with_gaps_or_without_write_access_is_copied() -> None:
    for array in (np.arange(6.0)[::2], np.frombuffer(bytes(8), np.float32), np.ones((2, 3)).T):
        x = torch.from_numpy(array)
        other = copy.deepcopy(x)
        other.add_(1)
        assert other.tolist() == (array + 1).tolist() and x.tolist() == array.tolist()


def test_the_copy_of_a_whole_owns_its_memory() -> None:
    """A gradient that owns its memory is taken over without a copy."""
    assert copy.deepcopy(torch.ones(3))._data.base is None
