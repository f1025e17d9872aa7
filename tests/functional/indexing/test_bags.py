"""Rows of a table as sums, means and maxima of bags, against NumPy, with their gradients, and as a layer."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.errors import BoundsError
from tritensor.nn.functional import embedding_bag

TABLE = np.arange(12.0).reshape(6, 2) * [1, -1]
INDICES, OFFSETS = [1, 2, 4, 5, 4, 3], [0, 0, 4]
BAGS = [[], [1, 2, 4, 5], [4, 3]]
MODES = {"sum": np.sum, "mean": np.mean, "max": np.max}


def tensors(device, dtype=torch.float64):
    table = torch.tensor(TABLE, dtype=dtype, device=device, requires_grad=True)
    return table, torch.tensor(INDICES, device=device), torch.tensor(OFFSETS, device=device)


def expected(mode, padding=None):
    kept = [[each for each in bag if each != padding] for bag in BAGS]
    return [MODES[mode](TABLE[bag], 0).tolist() if bag else [0, 0] for bag in kept]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mode", MODES)
def test_bags(device, mode, dtype) -> None:
    table, indices, offsets = tensors(device, dtype)
    out = embedding_bag(indices, table, offsets, mode=mode)
    assert out.tolist() == expected(mode) and out.grad_fn.name() == "EmbeddingBagBackward0" and out.dtype is dtype
    complete = torch.tensor([*OFFSETS, 5], device=device)  # the last index is not in a bag
    shorter = embedding_bag(indices.int(), table, complete.int(), mode=mode, include_last_offset=True)
    assert shorter.tolist() == [*expected(mode)[:2], TABLE[4].tolist()]
    (shorter * 2).sum().backward()
    assert not table.grad[3].any() and table.grad[4].all()
    rows = torch.tensor([BAGS[1], BAGS[1][::-1]], device=device)
    assert embedding_bag(rows, table, mode=mode).tolist() == [expected(mode)[1]] * 2
    transposed = table.detach().T.contiguous().T
    assert embedding_bag(rows.T.contiguous().T, transposed, mode=mode).tolist() == [expected(mode)[1]] * 2


@pytest.mark.parametrize("mode", MODES)
def test_padding_does_not_count(device, mode) -> None:
    table, indices, offsets = tensors(device)
    for padding in (4, -2):
        out = embedding_bag(indices, table, offsets, mode=mode, padding_idx=padding)
        assert np.allclose(out.tolist(), expected(mode, 4))
    alone = embedding_bag(indices[2:3], table, offsets[:1], mode=mode, padding_idx=4)
    alone.sum().backward()
    assert alone.tolist() == [[0, 0]] and not table.grad.any()


def test_bags_without_indices(device) -> None:
    table, _, offsets = tensors(device)
    nothing = torch.zeros(0, dtype=torch.int64, device=device)
    for mode in MODES:
        assert embedding_bag(nothing, table, offsets[:2], mode=mode).tolist() == [[0, 0]] * 2
        assert embedding_bag(nothing.reshape(2, 0), table, mode=mode).tolist() == [[0, 0]] * 2
        assert embedding_bag(nothing.reshape(0, 2), table, mode=mode).shape == (0, 2)
        assert embedding_bag(nothing, table, nothing, mode=mode).shape == (0, 2)


@pytest.mark.sampled(1)
def test_the_gradients_of_bags(device) -> None:
    scale = torch.tensor([[9.0, 9.0], [1.0, 2.0], [3.0, 5.0]], dtype=torch.float64, device=device)
    factors = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    found = {
        ("sum", None, False): [[0, 0], [1, 2], [1, 2], [3, 5], [4, 7], [1, 2]],
        ("mean", None, False): [[0, 0], [0.25, 0.5], [0.25, 0.5], [1.5, 2.5], [1.75, 3], [0.25, 0.5]],
        ("max", None, False): [[0, 0], [0, 2], [0, 0], [0, 5], [3, 0], [1, 0]],
        ("sum", None, True): [[0, 0], [1, 2], [1, 2], [3, 5], [2, 3.5], [1, 2]],
        ("mean", 5, True): [[0, 0], [1 / 3, 2 / 3], [1 / 3, 2 / 3], [1.5, 2.5], [11 / 12, 19 / 12], [0, 0]],
        ("max", 4, False): [[0, 0], [0, 2], [0, 0], [3, 5], [0, 0], [1, 0]],
    }
    for (mode, padding, frequency), wanted in found.items():
        table, indices, offsets = tensors(device)
        how = {"mode": mode, "padding_idx": padding, "scale_grad_by_freq": frequency}
        (embedding_bag(indices, table, offsets, **how) * scale).sum().backward()
        assert np.allclose(table.grad.tolist(), wanted), (mode, padding, frequency)
    table, indices, offsets = tensors(device)
    weights = torch.tensor(factors, dtype=torch.float64, device=device, requires_grad=True)
    how = {"mode": "sum", "padding_idx": 4, "per_sample_weights": weights}
    (embedding_bag(indices, table, offsets, **how) * scale).sum().backward()
    assert table.grad.tolist() == [[0, 0], [0, 0], [1, 2], [15, 25], [0, 0], [3, 6]]
    assert weights.grad.tolist() == [2 - 6, 4 - 10, 0, 10 - 22, 0, 18 - 35]


@pytest.mark.parametrize("mode", MODES)
def test_both_derivatives(mode) -> None:
    table, indices, offsets = tensors("cpu")
    weights = torch.linspace(-1, 2, 6, dtype=torch.float64).requires_grad_() if mode == "sum" else None

    def call(table, weights=weights):
        return embedding_bag(indices, table, offsets, mode=mode, padding_idx=3, per_sample_weights=weights)

    inputs = (table,) if weights is None else (table, weights)
    assert torch.autograd.gradcheck(call, inputs) and torch.autograd.gradgradcheck(call, inputs)


def test_a_nan_is_the_largest_where_it_is_the_first(device) -> None:
    table = torch.tensor([[math.nan], [1.0]], device=device, requires_grad=True)
    out = embedding_bag(torch.tensor([[0, 1], [1, 0], [0, 0]], device=device), table, mode="max")
    out.sum().backward()
    assert str(out.tolist()) == "[[nan], [1.0], [nan]]" and table.grad.tolist() == [[2], [1]]


def test_of_equal_rows_the_first_gets_the_gradient(device) -> None:
    table = torch.tensor([[1.0, 2.0], [3.0, 2.0], [3.0, 0.0]], device=device, requires_grad=True)
    embedding_bag(torch.tensor([[0, 2, 1]], device=device), table, mode="max").sum().backward()
    assert table.grad.tolist() == [[0, 1], [0, 0], [1, 0]]
    assert embedding_bag(torch.tensor([[0, 2]], device=device), table[:, :0], mode="max").shape == (1, 0)


def test_long_rows_are_shortened(device) -> None:
    table, indices, offsets = tensors(device)
    out = embedding_bag(indices, table, offsets, max_norm=1.0, mode="sum")
    lengths = table.detach().norm(dim=1)
    assert torch.allclose(lengths[1:], torch.ones(5, dtype=torch.float64, device=device), atol=1e-6)
    assert torch.allclose(out[2], (table[4] + table[3]).detach())


REFUSED = {
    "call(i, w)": (ValueError, "offsets has to be a 1D Tensor but got None"),
    "call(i.reshape(2, 3), w, o)": (ValueError, "if input is 2D, then offsets has to be None, as input is treated"),
    "call(i.reshape(2, 3, 1), w)": (ValueError, "input has to be 1D or 2D Tensor, but got Tensor of dimension 3"),
    "call(i, w, o[None])": (ValueError, "offsets has to be a 1D Tensor"),
    "call(i, w, o + 1)": (RuntimeError, r"offsets\[0\] has to be 0, i.e., the first sequence"),
    "call(i, w, o * 2)": (
        RuntimeError,
        r"offsets\[-1\] can not be greater than input's length 6 but got offsets\[-1\]",
    ),
    "call(i, w, o[:0], include_last_offset=True)": (RuntimeError, "include_last_offset: number of offset should be at"),
    "call(i, w, o.float())": (RuntimeError, "Expected tensor for argument #1 'offsets' to have one of the following"),
    "call(i.short(), w, o)": (RuntimeError, "Expected tensor for argument #1 'indices' to have one of the following"),
    "call(i, w.detach().long(), o)": (RuntimeError, "Expected tensor for argument #1 'weight' to have one of the foll"),
    "call(i + 3, w, o)": (BoundsError, r"Index 2 of input takes value 7 which is not in the valid range \[0, 6\)"),
    "call(i - 2, w, o)": (BoundsError, r"Index 0 of input takes value -1 which is not in the valid range \[0, 6\)"),
    "call(i, w[0], o)": (ValueError, "weight has to be a 2D Tensor, but got Tensor of dimension 1"),
    "call(i, w, o, mode='avg')": (ValueError, "mode has to be one of sum, mean or max"),
    "call(i, w, o, mode='max', scale_grad_by_freq=True)": (
        ValueError,
        "max mode does not support scaling the gradient",
    ),
    "call(i, w, o, mode='max', sparse=True)": (ValueError, "max mode does not support sparse weights"),
    "call(i, w, o, per_sample_weights=w[:, 0])": (
        NotImplementedError,
        "embedding_bag: per_sample_weights was not None",
    ),
    "call(i, w, o, mode='sum', per_sample_weights=w[0])": (ValueError, "embedding_bag: If per_sample_weights"),
    "call(i, w, o, mode='sum', per_sample_weights=w[:, 0].float())": (RuntimeError, "Expected tensor for argument #1"),
    "call(i, w, o, padding_idx=6)": (RuntimeError, "padding_idx must be within the number of embeddings, -6 through 5"),
    "nn.EmbeddingBag(3, 2, padding_idx=3)": (AssertionError, "padding_idx must be within num_embeddings"),
    "nn.EmbeddingBag(3, 2, _weight=w)": (
        AssertionError,
        "Shape of weight does not match num_embeddings and embedding_",
    ),
    "nn.EmbeddingBag.from_pretrained(w[0])": (AssertionError, "Embeddings parameter is expected to be 2-dimensional"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(device, text) -> None:
    table, indices, offsets = tensors(device)
    kind, words = REFUSED[text]
    with pytest.raises(kind, match=words):
        eval(text, {"call": embedding_bag, "nn": nn, "w": table, "i": indices, "o": offsets})


def test_offsets_have_to_rise() -> None:
    table, indices, _ = tensors("cpu")
    with pytest.raises(RuntimeError, match="offsets have to rise"):
        embedding_bag(indices, table, torch.tensor([0, 5, 2]))


def test_the_layer(device) -> None:
    layer = nn.EmbeddingBag(6, 2, mode="sum", padding_idx=-2, device=device)
    assert repr(layer) == "EmbeddingBag(6, 2, mode='sum', padding_idx=4)" and list(layer.state_dict()) == ["weight"]
    assert not layer.weight[4].any() and layer.weight.std() > 0.3
    _, indices, offsets = tensors(device)
    ones = torch.ones(6, device=device)
    assert torch.equal(layer(indices, offsets, ones), embedding_bag(indices, layer.weight, offsets, mode="sum"))
    options = {"max_norm": 1.0, "norm_type": 3.0, "scale_grad_by_freq": True, "include_last_offset": True}
    whole = nn.EmbeddingBag.from_pretrained(torch.tensor(TABLE), **options)
    assert repr(whole) == "EmbeddingBag(6, 2, max_norm=1.0, norm_type=3.0, scale_grad_by_freq=True, mode='mean')"
    assert not whole.weight.requires_grad and whole(torch.tensor(INDICES), torch.tensor(OFFSETS)).shape == (2, 2)
    assert nn.EmbeddingBag.from_pretrained(torch.tensor(TABLE), freeze=False).weight.requires_grad
