"""Joining and cutting many small tensors: the work for each of them is small, and does not grow with their number."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tritensor as torch

JOINING = {
    "stack": lambda xs: torch.stack(xs),
    "stack along the last": lambda xs: torch.stack(xs, -1),
    "cat": lambda xs: torch.cat(xs),
    "hstack": lambda xs: torch.hstack(xs),
    "vstack": lambda xs: torch.vstack(xs),
    "dstack": lambda xs: torch.dstack(xs),
    "column_stack": lambda xs: torch.column_stack(xs),
    "block_diag": lambda xs: torch.block_diag(*xs),
}
CUTTING = {
    "unbind": lambda x: x.unbind(0),
    "split": lambda x: x.split(1),
    "chunk": lambda x: x.chunk(len(x)),
    "tensor_split": lambda x: x.tensor_split(len(x)),
}


def _events(run):
    """How many functions of Python and C are called."""
    count = 0

    def note(frame, event, value):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def _per_tensor(prepare, run):
    """The calls for one tensor more, and for one among ten times as many."""
    found = []
    for count in (40, 80, 800):
        run(prepare(count))  # what is remembered of a first call is not counted
        given = prepare(count)
        found.append(_events(lambda given=given: run(given)))
    return (found[1] - found[0]) / 40, (found[2] - found[1]) / 720


def _leaves(count):
    return [torch.ones(2, requires_grad=True) for _ in range(count)]


@pytest.mark.parametrize("name", JOINING)
def test_joining_leaves_takes_few_calls_for_each(name):
    few, many = _per_tensor(_leaves, JOINING[name])
    assert few <= 16, few
    assert many <= few + 1, (few, many)


@pytest.mark.parametrize("name", JOINING)
def test_the_gradients_of_joined_leaves_take_few_calls_for_each(name):
    few, many = _per_tensor(lambda count: JOINING[name](_leaves(count)).sum(), lambda total: total.backward())
    assert few <= 24, few
    assert many <= few + 1, (few, many)


@pytest.mark.parametrize("name", CUTTING)
def test_the_gradients_of_many_pieces_take_few_calls_for_each(name):
    def prepare(count):
        pieces = CUTTING[name](torch.ones(count, 2, requires_grad=True) * 1)
        return torch.cat([piece.reshape(-1) for piece in pieces]).sum()

    few, many = _per_tensor(prepare, lambda total: total.backward())
    assert few <= 60, few
    assert many <= few + 1, (few, many)


@pytest.mark.parametrize("name", JOINING)
def test_joined_tensors_get_their_own_gradients(name):
    """Also those that are no leaves, views, used twice, or need none; and second derivatives."""
    x, y, fixed = (torch.tensor(values, dtype=torch.float64) for values in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]))
    x.requires_grad_()
    y.requires_grad_()
    rows = torch.stack([y, y * y])
    joined = JOINING[name]([x, fixed, rows[1], x, y])
    weights = torch.arange(1, joined.numel() + 1, dtype=torch.float64).reshape(joined.shape)
    first = torch.autograd.grad((joined * joined * weights).sum(), (x, y), create_graph=True)
    places = JOINING[name]([torch.tensor([10.0 * k + 1, 10.0 * k + 2]) for k in range(5)])
    weight_of = {int(p): float(w) for p, w in zip(places.reshape(-1), weights.reshape(-1), strict=True)}
    a, b = x.detach().numpy(), y.detach().numpy()
    w = np.array([[weight_of[10 * k + 1], weight_of[10 * k + 2]] for k in range(5)])
    np.testing.assert_allclose(first[0].detach().numpy(), 2 * a * (w[0] + w[3]))
    np.testing.assert_allclose(first[1].detach().numpy(), 4 * b**3 * w[2] + 2 * b * w[4])
    (second,) = torch.autograd.grad(first[1].sum(), y)
    np.testing.assert_allclose(second.numpy(), 12 * b**2 * w[2] + 2 * w[4])


def test_joined_scalars_and_matrices_keep_their_shapes_in_gradients():
    scalar, row, matrix = torch.ones((), requires_grad=True), torch.ones(3, requires_grad=True), torch.ones(1, 3)
    matrix.requires_grad_()
    torch.vstack([row, matrix]).sum().backward()
    torch.hstack([scalar, row]).sum().backward()
    torch.block_diag(scalar, row, matrix).sum().backward()
    assert (scalar.grad.shape, row.grad.shape, matrix.grad.shape) == ((), (3,), (1, 3))
    assert float(scalar.grad) == 2
    assert row.grad.tolist() == [3, 3, 3]
    assert matrix.grad.tolist() == [[2, 2, 2]]


def test_a_gradient_of_a_joined_leaf_is_memory_of_its_own():
    leaves = _leaves(3)
    torch.stack(leaves).sum().backward()
    leaves[0].grad.add_(1)
    assert [leaf.grad.tolist() for leaf in leaves] == [[2, 2], [1, 1], [1, 1]]
