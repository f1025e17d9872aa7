"""Reading and writing places that an operator's name says: gather, scatter, index_add, masks, nonzero, cat."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor.kernels.indexing import family

from .arrays import M2, M, R, T, X, alike, on, same


@pytest.mark.sampled(2)
def test_gather_and_scatter(device):
    rng = np.random.default_rng(0)
    index = rng.integers(0, 4, (2, 6, 3))
    x = on(device, X)
    same(x.gather(1, on(device, index)), np.take_along_axis(X[:2, :, :3], index, 1))
    same(x.gather(-2, on(device, index.astype(np.int32))), np.take_along_axis(X[:2, :, :3], index, 1))
    source = rng.standard_normal((3, 6, 5)).astype(np.float32)
    added = X.copy()
    np.add.at(added, (np.arange(2)[:, None, None], index, np.arange(3)), source[:2, :, :3])
    alike(x.scatter_add(1, on(device, index), on(device, source)), added)
    alike(x.scatter(1, on(device, index), on(device, source), reduce="add"), added)
    alike(x.clone().scatter_add_(1, on(device, index), on(device, source)), added)
    distinct = np.argsort(rng.random((3, 4, 5)), axis=1)
    put = X.copy()
    np.put_along_axis(put, distinct, source[:, :4], 1)
    same(x.scatter(1, on(device, distinct), on(device, source)), put)
    same(x.scatter(1, on(device, distinct[:, :2]), value=3.0), filled(distinct[:, :2], 3))
    same(x.clone().scatter_(1, on(device, distinct), on(device, source)), put)


def filled(index, value):
    out = X.copy()
    np.put_along_axis(out, index, value, 1)
    return out


def test_tensors_without_dimensions_are_gathered(device):
    x = on(device, np.array(2.0))
    assert x.gather(0, on(device, np.array([0, 0]))).tolist() == [2, 2]
    assert x.gather(0, on(device, np.array(0))).item() == 2
    assert x.scatter_add(0, on(device, np.array([0, 0])), on(device, np.ones(2))).item() == 4
    assert x.index_select(0, on(device, np.array([0]))).item() == 2


def test_slices_by_number(device):
    x, rows = on(device, X), on(device, np.array([2, 0, 2]))
    same(x.index_select(1, rows), X[:, [2, 0, 2]])
    same(x.index_select(0, on(device, np.array(1))), X[[1]])
    source = np.random.default_rng(0).standard_normal((3, 3, 5)).astype(np.float32)
    added = X.copy()
    np.add.at(added, (slice(None), [2, 0, 2]), source)
    alike(x.index_add(1, rows, on(device, source)), added)
    alike(x.clone().index_add_(1, rows, on(device, source)), added)
    doubled = X.copy()
    np.add.at(doubled, (slice(None), [2, 0, 2]), 2 * source)
    alike(x.index_add(1, rows, on(device, source), alpha=2), doubled)
    put = X.copy()
    put[:, [2, 0]] = source[:, :2]
    same(x.index_copy(1, rows[:2], on(device, source[:, :2])), put)
    same(x.clone().index_copy_(1, rows[:2], on(device, source[:, :2])), put)
    put[:, [2, 0]] = 4
    same(x.index_fill(1, rows, 4), put)
    same(x.index_fill_(1, rows, T(4.0)), put)


def test_a_tensor_without_dimensions_is_one_slice(device):
    x, zero = on(device, np.array(5.0)), on(device, np.array([0]))
    three, four = on(device, np.array(3.0)), on(device, np.array([3.0, 4.0]))
    twice, nothing = on(device, np.array([0, 0])), on(device, np.zeros(0, np.int64))
    same(x.index_fill(0, zero, 3), np.array(3.0))
    same(x.index_fill(-1, zero.reshape(()), three), np.array(3.0))
    same(x.index_fill(0, on(device, np.array([-1])), 3), np.array(3.0))
    same(x.index_fill(0, nothing, 3), np.array(5.0))
    same(x.index_add(0, zero, three), np.array(8.0))
    same(x.index_add(0, zero.reshape(()), three, alpha=2), np.array(11.0))
    same(x.index_copy(0, zero, three), np.array(3.0))
    assert x.index_copy(0, twice, four).item() in ((4.0,) if device == "cpu" else (3.0, 4.0))
    same(x.index_copy(0, nothing, on(device, np.zeros(0))), np.array(5.0))
    same(four.index_copy(0, zero, x), np.array([5.0, 4.0]))
    same(x.clone().index_fill_(0, zero, 7), np.array(7.0))
    same(x.clone().index_add_(0, zero, three), np.array(8.0))
    same(x.clone().index_copy_(0, zero, three), np.array(3.0))


def test_gradients_of_slices_of_tensors_without_dimensions(device):
    zero = on(device, np.array([0]))
    for write, kept, written in (
        (lambda x, v: x.index_add(0, zero, v, alpha=2), 1.0, 2.0),
        (lambda x, v: x.index_copy(0, zero, v), 0.0, 1.0),
        (lambda x, v: x.index_fill(0, zero, v), 0.0, 1.0),
    ):
        x, value = (torch.tensor(number, device=device, requires_grad=True) for number in (5.0, 3.0))
        write(x, value).backward()
        assert (x.grad.item(), value.grad.item()) == (kept, written)


def test_index_fill_converts_its_value(device):
    x, zero = on(device, np.array([5, 6])), on(device, np.array([0]))
    same(x.index_fill(0, zero, T(3.5)), np.array([3, 6]))
    same(x.double().index_fill(0, zero, T(3)), np.array([3.0, 6.0]))
    same(x.index_fill(0, on(device, np.array([-1])), 3), np.array([5, 3]))
    same(x.index_add(0, zero, zero + 3, alpha=2.5), np.array([11, 6]))


def test_index_put(device):
    x, value = on(device, X), on(device, np.full((5,), 2.0, np.float32))
    added = X.copy()
    np.add.at(added, (R,), 2)
    same(x.index_put((on(device, R),), value, accumulate=True), added)
    same(x.index_put((on(device, M2),), T(0.0)), np.where(M2[..., None], 0, X).astype(np.float32))
    twice = x.clone()
    assert twice.index_put_((on(device, R), on(device, R)), on(device, np.zeros(5, np.float32))) is twice
    put = X.copy()
    put[R, R] = 0
    same(twice, put)
    same(family.index_put(x, on(device, R[None]), 2.0, dims=(0,), accumulate=True), added)
    same(x.index_add(0, on(device, R[:0]), x[:0]), X)
    same(x.clone().index_put_((), T(1.0)), np.ones_like(X))
    same(x.clone().index_put_((), T(1.0), accumulate=True), X + 1)


def test_take_and_take_along_dim(device):
    x, index = on(device, X), np.array([[0, -1], [59, 7]])
    same(x.take(on(device, index)), X.reshape(-1)[index])
    one = x.take(on(device, np.array(3)))
    one.fill_(-1)
    assert one.shape == () and one.item() == -1
    same(x, X)
    rows = np.argsort(X, axis=1)[:, :, :1]
    same(x.take_along_dim(on(device, rows), 1), np.take_along_axis(X, rows, 1))
    same(x.take_along_dim(on(device, rows - 4), 1), np.take_along_axis(X, rows, 1))
    same(x.take_along_dim(on(device, index)), X.reshape(-1)[index.reshape(-1)])


def test_masks(device):
    x, mask = on(device, X), on(device, M2)
    same(x.masked_fill(mask.unsqueeze(-1), 0), np.where(M2[..., None], 0, X).astype(np.float32))
    same(x.masked_fill(mask.unsqueeze(-1), T(2.0)), np.where(M2[..., None], 2, X).astype(np.float32))
    same(x.clone().masked_fill_(mask.unsqueeze(-1), 1), np.where(M2[..., None], 1, X).astype(np.float32))
    same(x.masked_select(mask.unsqueeze(-1)), X[M2].reshape(-1))
    whole = on(device, np.zeros((2, 3), np.int64))
    same(whole.masked_fill(on(device, M), 2.5), np.array([[2, 0, 2]] * 2))
    same((whole == 0).masked_fill(on(device, M), 0), np.array([[False, True, False]] * 2))
    with pytest.raises(RuntimeError, match="value cannot be converted to type"):
        whole.masked_fill(on(device, M), 1j)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "array",
    [
        X > 0,
        X,
        np.array(3.0),
        np.array(0),
        np.zeros((0, 3)),
        np.zeros((2, 3)),
        np.arange(40) % 3,
        X.transpose(2, 0, 1) > 4,
    ],
    ids=lambda array: str(array.shape),
)
def test_nonzero(device, array):
    x = on(device, np.array(array, order="C"))
    wanted = np.argwhere(array) if array.ndim else np.empty((int(array != 0), 0), np.int64)
    same(x.nonzero(), wanted)
    same(torch.argwhere(x), wanted)
    for found, coordinates in zip(torch.nonzero(x, as_tuple=True), np.nonzero(np.atleast_1d(array)), strict=True):
        same(found, coordinates)
    for found, coordinates in zip(torch.where(x), np.nonzero(np.atleast_1d(array)), strict=True):
        same(found, coordinates)


def test_cat_and_stack(device):
    a, b = on(device, X), on(device, X[:, :2])
    same(torch.cat([a, b], 1), np.concatenate([X, X[:, :2]], 1))
    same(torch.cat((a, a.to(torch.float64)), -1), np.concatenate([X, X.astype(np.float64)], -1))
    same(torch.cat([torch.zeros(0).to(device), a]), X)
    same(torch.cat([torch.zeros(0).to(device)] * 2), np.zeros(0, np.float32))
    for dim in (0, 1, -1):
        same(torch.stack([a, a + 1], dim), np.stack([X, X + 1], dim))
    same(torch.hstack([T(1.0), T([2.0])]), np.array([1, 2], np.float32))
    same(torch.hstack([a, b]), np.hstack([X, X[:, :2]]))
    same(torch.vstack([T([1.0]), T([[2.0]])]), np.array([[1], [2]], np.float32))
    same(torch.dstack([T([1.0, 2.0]), T([3.0, 4.0])]), np.array([[[1, 3], [2, 4]]], np.float32))
    same(torch.column_stack([T([1.0, 2.0]), T([[3.0], [4.0]])]), np.array([[1, 3], [2, 4]], np.float32))


def test_gradients_of_cat_reach_every_part():
    parts = [torch.ones(2, 2, requires_grad=True), torch.zeros(0, requires_grad=True), torch.ones(2, 1)]
    torch.cat(parts, 1).mul(T([1.0, 2.0, 3.0])).sum().backward()
    assert parts[0].grad.tolist() == [[1, 2], [1, 2]]
    assert parts[1].grad.shape == (0,)
    assert parts[2].grad is None


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.flip(x, [0]),
        lambda x: torch.roll(x, 2, 1),
        lambda x: x.repeat(2, 2),
        lambda x: x.repeat_interleave(2, 0),
        lambda x: x.tril(),
        lambda x: torch.sort(x, 1).values,
        lambda x: torch.topk(x, 2).values,
        lambda x: torch.stack([x, x]),
        lambda x: x.index_add(0, T([1, 1]), x * 2),
        lambda x: x.scatter_add(1, T([[0, 0], [2, 1]]), x[:, :2] * x[:, 1:]),
        lambda x: x.index_copy(0, T([1]), x[:1] * 3),
        lambda x: x.masked_fill(T([True, False, True]), 1.0),
        lambda x: x.take(T([0, 0, 5])),
        lambda x: x.take_along_dim(T([[0], [1]]), 1),
        lambda x: x.index_put((T([0, 0]),), x * x, accumulate=True),
    ],
)
def test_gradients_of_the_rest(function):
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3))).requires_grad_()
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(lambda x: function(x) ** 2, (x,))


def test_gather_of_no_indices_of_any_rank():
    """As in PyTorch, an index without elements fits every tensor."""
    x = torch.ones(1, 1, 2, requires_grad=True)
    found = torch.gather(x, 1, torch.zeros(1, 1, 1, 0, dtype=torch.int64))
    assert found.shape == (1, 1, 1, 0) and found.dtype is x.dtype
    found.sum().backward()
    assert x.grad.tolist() == [[[0, 0]]]
