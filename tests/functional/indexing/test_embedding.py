"""Rows of a table by number, and numbers as rows with a single one."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import BoundsError
from tritensor.nn.functional import embedding, one_hot

from ...needs import needs_triton
from .arrays import T, X, on, same


def test_embedding(device):
    weight = on(device, X[0]).requires_grad_()
    numbers = on(device, np.array([[0, 3], [3, 1]]))
    out = embedding(numbers, weight, padding_idx=-1)
    same(out, X[0][[[0, 3], [3, 1]]])
    out.sum().backward()
    assert weight.grad[:, 0].tolist() == [1, 1, 0, 0]
    assert embedding(on(device, np.array(2)), weight).shape == (5,)
    with torch.no_grad():
        same(embedding(numbers, weight), X[0][[[0, 3], [3, 1]]])
    plain = on(device, X[0]).requires_grad_()
    embedding(numbers, plain).sum().backward()
    assert plain.grad[:, 0].tolist() == [1, 1, 0, 2]
    often = on(device, X[0]).requires_grad_()
    embedding(numbers, often, scale_grad_by_freq=True).sum().backward()
    assert often.grad[:, 0].tolist() == [1, 1, 0, 1]


def test_embedding_shortens_the_rows_that_it_reads(device):
    weight = on(device, np.array([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]], np.float32)).requires_grad_()
    out = embedding(on(device, np.array([0, 1, 0])), weight, max_norm=1.0)
    expected = [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]]
    assert np.allclose(out.detach().cpu().numpy(), expected, atol=1e-6)
    assert np.allclose(weight.detach().cpu().numpy(), [*expected[:2], [6, 8]], atol=1e-6)
    out.sum().backward()
    assert weight.grad.tolist() == [[2, 2], [1, 1], [0, 0]]


def test_pytorchs_own_function_takes_the_table_first(device):
    indices = on(device, np.array([0, 3, 3]))
    for padding, expected in ((-1, [1, 0, 0, 2]), (3, [1, 0, 0, 0]), (0, [0, 0, 0, 2]), (4, [1, 0, 0, 2])):
        weight = on(device, X[0]).requires_grad_()
        out = torch.embedding(weight, indices, padding)
        same(out, X[0][[0, 3, 3]])
        out.sum().backward()
        assert weight.grad[:, 0].tolist() == expected
    with pytest.raises(RuntimeError, match="'weight' must be 2-D"):
        torch.embedding(indices[0], indices)


def test_one_row_has_its_own_memory(device):
    weight = torch.ones(3, 2, device=device, requires_grad=True)
    row = embedding(T(1).to(device), weight)
    row[0] = 5.0
    assert weight.tolist() == [[1.0, 1.0]] * 3
    row.sum().backward()
    assert weight.grad.tolist() == [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("index", "weight", "padding", "kind", "words"),
    [
        (T([0.0]), torch.ones(2, 2), 7, AssertionError, "Padding_idx must be within num_embeddings"),
        (T([0]), torch.ones(2), -3, AssertionError, "Padding_idx must be within num_embeddings"),
        (T([0]), T(1.0), 1, IndexError, "Dimension specified as 0 but tensor has no dimensions"),
        (T([0]), T(1.0), 0, RuntimeError, "'weight' must be 2-D"),
        (T([0.0]), T(1.0), None, RuntimeError, "Expected tensor for argument #1 'indices' to have one of"),
    ],
    ids=str,
)
def test_the_padding_is_looked_at_first(index, weight, padding, kind, words):
    with pytest.raises(kind, match=f"^{words}"):
        embedding(index, weight, padding_idx=padding)


def test_one_hot(device):
    numbers = on(device, np.array([[0], [2]]))
    assert one_hot(numbers).tolist() == [[[1, 0, 0]], [[0, 0, 1]]]
    assert one_hot(numbers, 4).shape == (2, 1, 4)
    assert one_hot(numbers[:0], 3).shape == (0, 1, 3)


@needs_triton
def test_what_is_known_of_an_index_stays_with_its_elements():
    """Copies, views and pickles start anew, and so does a tensor that is given other memory."""
    with torch.cuda.simulate(devices=1):
        weight = torch.zeros(5, 2).cuda()
        numbers = T([0, 4, 4]).cuda() * 1  # of the copy itself the host knows the bounds
        embedding(numbers, weight)
        assert numbers._recall("range") == (0, 4)
        again = [
            copy.copy(numbers),
            copy.deepcopy(numbers),
            pickle.loads(pickle.dumps(numbers)),
            numbers[:],
            numbers.detach(),
        ]
        assert [each._recall("range") for each in again] == [None] * 5
        numbers.data = T([0, 5, 4]).cuda()
        with pytest.raises(BoundsError):
            embedding(numbers, weight)


def test_a_row_is_a_copy() -> None:
    weight = torch.ones(2, 3).requires_grad_()
    row = embedding(torch.tensor(0), weight)
    row.mul_(5)
    assert weight.tolist() == [[1, 1, 1], [1, 1, 1]] and row.tolist() == [5, 5, 5]
    row.sum().backward()
    assert weight.grad.tolist() == [[5, 5, 5], [0, 0, 0]]
