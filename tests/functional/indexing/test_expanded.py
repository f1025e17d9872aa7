"""Writes to expanded tensors: the few that PyTorch allows reach every element that shares the memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tritensor as torch

from .arrays import T, on

REFUSED = "unsupported operation: more than one element of the written-to tensor refers to a single memory location"
TIMES = torch.ones(4, 3)


WRITES = [
    # in words, the write, whether PyTorch warns, and the three elements in memory afterwards
    ("fill_", lambda x, at: x.fill_(2), None, [2, 2, 2]),
    ("zero_", lambda x, at: x.zero_(), None, [0, 0, 0]),
    ("init", lambda x, at: torch.nn.init.constant_(x, 2), None, [2, 2, 2]),
    ("x[0]", lambda x, at: x.__setitem__(0, 2), None, [2, 2, 2]),
    ("masked_fill_ all", lambda x, at: x.masked_fill_(at(True), 2), "masked_fill_", [2, 2, 2]),
    ("masked_fill_ rows", lambda x, at: x.masked_fill_(at([[True], [False]]), 2), "masked_fill_", [2, 2, 2]),
    (
        "masked_fill_ places",
        lambda x, at: x.masked_fill_(at([[True, False, False], [False, True, False]]), 2),
        "masked_fill_",
        [2, 2, 7],
    ),
    ("index_fill_ rows", lambda x, at: x.index_fill_(0, at([1]), 2), "index_fill_", [2, 2, 2]),
    ("index_fill_ columns", lambda x, at: x.index_fill_(-1, at([1]), 2), "index_fill_", [5, 2, 7]),
    ("index_fill_ nothing", lambda x, at: x.index_fill_(0, at([1])[:0], 2), "index_fill_", [5, 6, 7]),
    ("rows", lambda x, at: x.__setitem__(at([1]), 2), "index_put_", [2, 2, 2]),
    ("last row", lambda x, at: x.__setitem__(at([-1]), at([2.0, 3.0, 4.0])), "index_put_", [2, 3, 4]),
    ("equal rows", lambda x, at: x.__setitem__(at([0, 1]), at([[2.0, 3, 4], [2, 3, 4]])), "index_put_", [2, 3, 4]),
    ("columns", lambda x, at: x.__setitem__((slice(None), at([1])), 2), "index_put_", [5, 2, 7]),
    (
        "columns of values",
        lambda x, at: x.__setitem__((slice(None), at([2, 0])), at([[8.0, 9.0], [2.0, 3.0]])),
        "index_put_",
        [3, 6, 2],
    ),
    ("both", lambda x, at: x.__setitem__((at([0, 1]), at([0, 2])), at([2.0, 3.0])), "index_put_", [2, 6, 3]),
    ("a mask", lambda x, at: x.__setitem__(at([True, False]), 2), "index_put_", [2, 2, 2]),
    ("a mask's value", lambda x, at: x.__setitem__(at([True, False]), at(2)), "index_put_", [2, 2, 2]),
    (
        "a mask of places",
        lambda x, at: x.index_put_((at([[True, False, True], [False, False, True]]),), at(2.0)),
        "index_put_",
        [2, 6, 2],
    ),
    ("added", lambda x, at: x.index_put_((at([0, 1]),), at(2.0), accumulate=True), "index_put_", [9, 10, 11]),
    (
        "added to columns",
        lambda x, at: x.index_put_((at([[True, False, True], [False, False, True]]),), at(2.0), accumulate=True),
        "index_put_",
        [7, 6, 11],
    ),
]


@pytest.mark.parametrize(("write", "warned", "wanted"), [each[1:] for each in WRITES], ids=[each[0] for each in WRITES])
def test_what_pytorch_allows(device, write, warned, wanted):
    memory = torch.tensor([5.0, 6.0, 7.0], device=device)
    x = memory.expand(2, 3)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        write(x, lambda numbers: T(numbers).to(device))
    assert memory.tolist() == wanted
    assert x.tolist() == [wanted, wanted]
    messages = [str(each.message) for each in found]
    expected = [] if warned is None else [f"Use of {warned} on expanded tensors is deprecated. Please clone()"]
    assert len(messages) == len(expected)
    assert all(message.startswith(words) for message, words in zip(messages, expected, strict=True))
    assert all(each.filename == __file__ for each in found)


def test_sums_over_an_expanded_dimension_that_is_not_indexed(device):
    memory = torch.zeros(2, 1, 3, device=device)
    x = memory.expand(2, 4, 3)
    with pytest.warns(UserWarning, match="index_put_ on expanded tensors"):
        x.index_put_((T([0]),), TIMES.to(device), accumulate=True)
    assert memory.tolist() == [[[4, 4, 4]], [[0, 0, 0]]]
    with pytest.warns(UserWarning, match="index_put_ on expanded tensors"):
        x[T([0]), :, T([1])] = on(device, np.array([[9, 9, 9, 8]], np.float32))
    assert memory.tolist() == [[[4, 8, 4]], [[0, 0, 0]]]


@pytest.mark.filterwarnings("ignore:Use of")
@pytest.mark.parametrize(
    "write",
    [
        lambda x, at: x.add_(1),
        lambda x, at: x.copy_(at([1.0, 2.0, 3.0])),
        lambda x, at: x.fill_(at(2.0)),
        lambda x, at: x.__setitem__(slice(None), 1),
        lambda x, at: x.__setitem__((slice(None), 0), 1),
        lambda x, at: x.__setitem__((slice(None), 0), at([1.0, 2.0])),
        lambda x, at: x.index_add_(0, at([0]), at([[1.0, 2.0, 3.0]])),
        lambda x, at: x.index_copy_(0, at([0]), at([[1.0, 2.0, 3.0]])),
        lambda x, at: x.scatter_(0, at([[0, 0, 0]]), 1.0),
        lambda x, at: x.normal_(),
        lambda x, at: x.relu_(),
    ],
)
@pytest.mark.parametrize("recording", [True, False])
def test_what_pytorch_refuses(device, write, recording):
    memory = torch.tensor([5.0, 6.0, 7.0], device=device)
    with torch.set_grad_enabled(recording), pytest.raises(RuntimeError, match=REFUSED):
        write(memory.expand(2, 3), lambda numbers: T(numbers).to(device))
    assert memory.tolist() == [5, 6, 7]


@pytest.mark.filterwarnings("ignore:Use of")
def test_bad_arguments_are_refused_before_anything_changes(device):
    memory = torch.tensor([5.0, 6.0, 7.0], device=device)
    x = memory.expand(2, 3)
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 2"):
        x.index_fill_(0, T([5]).to(device), 1)
    with pytest.raises(IndexError, match="index 2 is out of bounds for dimension 0 with size 2"):
        x[T([2])] = 1
    with pytest.raises(RuntimeError, match="masked_fill_ only supports boolean masks"):
        x.masked_fill_(T([1, 0, 1]).to(device), 1)
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape"):
        x[T([0])] = torch.ones(2, device=device)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        torch.zeros(3, device=device, requires_grad=True).expand(2, 3).fill_(1)
    assert memory.tolist() == [5, 6, 7]


@pytest.mark.filterwarnings("ignore:Use of")
def test_gradients_of_writes_to_expanded_tensors(device):
    value = torch.tensor(2.0, device=device, requires_grad=True)
    y = torch.zeros(3, device=device).expand(2, 3)
    y[T([0])] = value
    y.sum().backward()
    assert value.grad.item() == 6
    for write, wanted in (
        (lambda y: y.fill_(1), [0, 0, 0]),
        (lambda y: y.__setitem__((slice(None), T([1])), 1), [2, 0, 2]),
        (lambda y: y.masked_fill_(torch.tensor([True, False, False], device=device), 1), [0, 2, 2]),
        (lambda y: y.index_fill_(1, torch.tensor([2], device=device), 1), [2, 2, 0]),
    ):
        x = torch.ones(3, device=device, requires_grad=True)
        base = x * 1
        y = base.expand(2, 3)
        write(y)
        y.sum().backward()
        assert x.grad.tolist() == wanted
