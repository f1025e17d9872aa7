"""Recurrent layers and cells: values, gradients of both orders, launches, options, what they print and refuse."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.nn.utils.rnn import PackedSequence, pack_padded_sequence

from ..launched import note_launches
from ..needs import needs_triton

KINDS: dict[str, Any] = {
    "lstm": nn.LSTM,
    "projected": lambda *sizes, **options: nn.LSTM(*sizes, proj_size=2, **options),
    "gru": nn.GRU,
    "tanh": nn.RNN,
    "relu": lambda *sizes, **options: nn.RNN(*sizes, nonlinearity="relu", **options),
}
MANY = [
    (kind, bidirectional, lengths)
    for kind in KINDS
    for bidirectional, lengths in ((False, (4, 4, 4)), (True, (4, 2, 1)), (True, (3, 3)))
]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(mode, x, h, c, w, u, b, d, projection):
    """PyTorch's formulas of one step of one sequence."""
    given, states = w @ x + b, u @ h + d
    if mode == "GRU":
        (r, z, n), (of_r, of_z, of_n) = np.split(given, 3), np.split(states, 3)
        new = np.tanh(n + sigmoid(r + of_r) * of_n)
        z = sigmoid(z + of_z)
        return (1 - z) * new + z * h, c
    if mode == "LSTM":
        i, f, g, o = np.split(given + states, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return h if projection is None else projection @ h, c
    return (np.tanh if mode == "RNN_TANH" else lambda x: np.maximum(x, 0))(given + states), c


def expected(layer, x, lengths, first):
    """States (steps, sequences, size) with zeros where a sequence has ended, and the last states and cells."""
    last = [[np.zeros(each.shape[1:]) for _ in each] for each in first]
    for number, names in enumerate(layer._all_weights):
        values = [getattr(layer, name).detach().cpu().numpy() for name in names]
        projection = values.pop() if len(values) % 2 else None
        reverse = number % 2 == 1 and layer.bidirectional
        if not reverse:
            outs = []
        out = np.zeros((*x.shape[:2], last[0][number].shape[-1]))
        for i, length in enumerate(lengths):
            h, c = (first[0][number, i], first[-1][number, i])
            for t in range(length)[:: -1 if reverse else 1]:
                h, c = step(layer.mode, x[t, i], h, c, *values, projection)
                out[t, i] = h
            for found, value in zip(last, (h, c)):
                found[number][i] = value
        outs.append(out)
        if reverse or not layer.bidirectional:
            x = np.concatenate(outs, 2)
    return x, [np.stack(each) for each in last]


def made(kind, bidirectional, lengths, device, layers=2, dtype=torch.float64):
    """A layer, its input, packed where lengths differ, and first states."""
    torch.manual_seed(0)
    layer = KINDS[kind](3, 4, layers, bidirectional=bidirectional).to(device, dtype)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((lengths[0], len(lengths), 3))
    sizes = [layer.proj_size or 4, 4][: 1 + (layer.mode == "LSTM")]
    first = [rng.standard_normal((layers * (1 + bidirectional), len(lengths), size)) for size in sizes]
    return layer, x, first


def run(layer, x, lengths, first):
    """The states of all steps, padded, and the last ones."""
    packed = len(set(lengths)) > 1
    given = pack_padded_sequence(x, lengths) if packed else x
    out, last = layer(given, tuple(first) if layer.mode == "LSTM" else first[0])
    if packed:
        assert isinstance(out, PackedSequence) and out.batch_sizes is given.batch_sizes
        out, found = nn.utils.rnn.pad_packed_sequence(out)
        assert found.tolist() == list(lengths)
    return out, list(last) if layer.mode == "LSTM" else [last]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("kind", "bidirectional", "lengths"), MANY)
def test_the_formulas_hold(kind, bidirectional, lengths, device):
    if device == "cuda" and len(set(lengths)) == 1:
        pytest.skip("other tests have steps of equal rows there")
    layer, x, first = made(kind, bidirectional, lengths, device, layers=2 if device == "cpu" else 1)
    out, last = run(
        layer, torch.from_numpy(x).to(device), lengths, [torch.from_numpy(each).to(device) for each in first]
    )
    wanted, wanted_last = expected(layer, x, lengths, first)
    np.testing.assert_allclose(out.detach().cpu().numpy(), wanted, atol=1e-12)
    for one, other in zip(last, wanted_last, strict=True):
        np.testing.assert_allclose(one.detach().cpu().numpy(), other, atol=1e-12)


def gradients(layer, x, first, lengths, device, used):
    leaves = [torch.from_numpy(each).to(device).requires_grad_() for each in (x, *first)]
    out, last = run(layer, leaves[0], lengths, leaves[1:])
    total = sum((each.sin() * (2 + i)).sum() for i, each in enumerate((out, *last)) if i in used)
    return torch.autograd.grad(total, [*leaves, *layer.parameters()], allow_unused=True)


@needs_triton
@pytest.mark.parametrize(("kind", "bidirectional", "lengths"), [each for each in MANY if len(set(each[2])) > 1])
@pytest.mark.parametrize("used", [(0, 1, 2), pytest.param((2,), marks=pytest.mark.slow)])
def test_gradients_on_a_device_are_those_on_the_cpu(kind, bidirectional, lengths, used):
    layer, x, first = made(kind, bidirectional, lengths, "cpu", layers=1)
    used = [min(each, len(first)) for each in used]  # states of all steps, last states, and cells where there are any
    expected = gradients(layer, x, first, lengths, "cpu", used)
    with torch.cuda.simulate(devices=1):
        found = gradients(layer.to("cuda"), x, first, lengths, "cuda", used)
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one.cpu().numpy(), other.numpy(), atol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["projected", "gru"])
def test_gradients_of_both_orders_through_states_and_cells(kind):
    layer = nn.LSTM(1, 2, proj_size=1) if kind == "projected" else nn.GRU(1, 1, bidirectional=True)
    layer, lengths = layer.double(), (2, 1)
    shapes = [(2, 2, 1), (1, 2, 1), (1, 2, 2)] if kind == "projected" else [(2, 2, 1), (2, 2, 1)]
    leaves = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]

    def call(x, *first):
        out, last = run(layer, x, lengths, first)
        return torch.cat([each.flatten() for each in (out, *last)])

    torch.autograd.gradcheck(call, tuple(leaves))
    torch.autograd.gradgradcheck(call, tuple(leaves))


def test_second_gradients_of_an_input_that_others_are_computed_from():
    """The inputs of the node are not independent of one another, but each gets its own gradient."""
    layer = nn.GRU(2, 2).double()
    x = torch.randn(3, 1, 2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradgradcheck(lambda x: layer(x, x[:1].sin())[0], (x,))


def test_large_batches_are_shared_out_to_threads():
    layer, x, first = made("lstm", True, (5,) * 70, "cpu")
    x = np.repeat(x, 20, axis=2)
    layer = nn.LSTM(60, 40, 2, bidirectional=True).double()
    first = [np.zeros((4, 70, 40))] * 2
    out, _ = run(layer, torch.from_numpy(x), (5,) * 70, [torch.from_numpy(each) for each in first])
    np.testing.assert_allclose(out.detach().numpy(), expected(layer, x, (5,) * 70, first)[0], atol=1e-12)


@pytest.mark.sampled(1)
@needs_triton
@pytest.mark.parametrize(("kind", "dtype"), [("projected", "float16"), ("gru", "bfloat16"), ("tanh", "float16")])
def test_half_precision(kind, dtype):
    dtype = getattr(torch, dtype)
    layer, x, first = made(kind, False, (3, 3), "cpu", dtype=dtype)
    reference = copy.deepcopy(layer).double()
    given = [torch.from_numpy(each).to(dtype) for each in (x, *first)]
    wanted, _ = run(reference, given[0].double(), (3, 3), [each.double() for each in given[1:]])
    with torch.cuda.simulate(devices=1):
        for device in ("cpu", "cuda"):
            layer = layer.to(device)
            out, last = run(layer, given[0].to(device), (3, 3), [each.to(device) for each in given[1:]])
            assert all(each.dtype is dtype for each in (out, *last))
            error = (out.detach().cpu().double() - wanted).abs().max().item()
            assert error < (2e-3 if dtype is torch.float16 else 2e-2)
            out.float().sum().backward()
            assert all(each.grad.dtype is dtype and each.grad.device == each.device for each in layer.parameters())


@pytest.fixture
def launches(monkeypatch):
    """The names of the kernels that were launched on simulated devices."""
    return note_launches(monkeypatch, lambda kernel, grid: kernel.__name__)


@pytest.mark.thorough
@needs_triton
@pytest.mark.parametrize(("kind", "most", "many"), [("lstm", 0, 100), ("projected", 2, 10)])
def test_all_steps_are_one_launch_or_two_for_each_with_projected_states(kind, most, many, launches):
    with torch.cuda.simulate(devices=1):
        layer = KINDS[kind](2, 4).to("cuda")
        for steps in (3, many):
            x = torch.ones(steps, 2, 2, device="cuda")
            launches.clear()
            out, _ = layer(x)
            forward = len(launches)
            assert launches.count("step_kernel") == most * steps
            out.sum().backward()
            assert launches.count("step_backward_kernel") == most * steps
            for name in ("sequence_kernel", "sequence_backward_kernel"):
                assert launches.count(name) == (most == 0)
            # besides: the product with the input and the last states; products, sums and cuts for the gradients
            others = forward - most * steps, len(launches) - forward - most * steps
            assert others[0] <= 8 and others[1] <= 22, launches


@pytest.mark.sampled(1)
def test_batch_first_and_single_sequences(device):
    for kind in ("lstm", "gru") if device == "cpu" else ("gru",):
        torch.manual_seed(0)
        layer = KINDS[kind](3, 4, 2, bidirectional=True).to(device)
        x = torch.randn(3, 2, 3, device=device)
        out, last = layer(x)
        layer.batch_first = True
        turned, same = layer(x.transpose(0, 1))
        assert torch.allclose(turned.transpose(0, 1), out) and turned.stride() == (8, 16, 1)
        states, same = (last[0], same[0]) if kind == "lstm" else (last, same)
        assert torch.allclose(same, states)
        for layer.batch_first in (True, False):
            first = torch.zeros(4, 4, device=device)
            alone, last = layer(x[:, 0], (first, first) if kind == "lstm" else first)
            assert alone.shape == (3, 8) and torch.allclose(alone, out[:, 0])
            assert torch.allclose(last[0] if kind == "lstm" else last, states[:, 0])


def test_dropout_is_between_layers_and_while_training_only():
    torch.manual_seed(0)
    layer = nn.GRU(2, 3, 2, dropout=1.0)
    plain = nn.GRU(2, 3, 2)
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(4, 1, 2)
    assert torch.equal(layer.eval()(x)[0], plain(x)[0])
    layer.train()
    with torch.no_grad():  # nothing reaches the second layer
        plain.weight_ih_l1.zero_()
    assert torch.equal(layer(x)[0], plain(x)[0]) and torch.equal(layer(x)[1][0], plain(x)[1][0])
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last recurrent layer") as caught:
        nn.LSTM(2, 3, dropout=0.5)
    assert caught[0].filename == __file__


def test_unsorted_sequences_keep_their_states(device):
    torch.manual_seed(0)
    layer = nn.LSTM(2, 3, bidirectional=True).to(device)
    x, first = torch.randn(4, 3, 2, device=device), [torch.randn(2, 3, 3, device=device) for _ in range(2)]
    out, last = layer(pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False), first)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(out)
    assert lengths.tolist() == [2, 4, 1]
    for i, length in enumerate((2, 4, 1)):
        alone, found = layer(x[:length, i : i + 1], [each[:, i : i + 1] for each in first])
        assert torch.allclose(padded[:length, i], alone[:, 0], atol=1e-6)
        assert all(torch.allclose(one[:, i], other[:, 0], atol=1e-6) for one, other in zip(last, found))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("cell", "layer"),
    [
        (nn.LSTMCell(3, 4), nn.LSTM(3, 4)),
        (nn.GRUCell(3, 4), nn.GRU(3, 4)),
        (nn.RNNCell(3, 4), nn.RNN(3, 4)),
        (nn.RNNCell(3, 4, nonlinearity="relu"), nn.RNN(3, 4, nonlinearity="relu")),
    ],
    ids=["lstm", "gru", "tanh", "relu"],
)
def test_a_cell_is_a_step_of_its_layer(cell, layer, device):
    cell, layer = copy.deepcopy(cell).to(device), copy.deepcopy(layer).to(device)
    layer.load_state_dict({f"{name}_l0": value for name, value in cell.state_dict().items()})
    x, state = torch.randn(3, 2, 3, device=device), None
    for each, wanted in zip(x, layer(x)[0], strict=True):
        state = cell(each, state)
        assert torch.allclose(state[0] if isinstance(state, tuple) else state, wanted, atol=1e-6)
    last = layer(x)[1]
    if isinstance(state, tuple):
        assert torch.allclose(state[1], last[1][0], atol=1e-6)
        one = cell(x[0, 0], (state[0][0], state[1][0]))
        assert one[0].shape == one[1].shape == (4,) and torch.allclose(one[0], cell(x[0], state)[0][0], atol=1e-6)
    else:
        assert torch.allclose(cell(x[0, 0], state[0]), cell(x[0], state)[0], atol=1e-6)


def test_names_of_weights_and_what_is_printed():
    layer = nn.LSTM(3, 4, 2, bias=False, bidirectional=True, proj_size=2)
    names = [f"weight_{kind}_l{n}{end}" for n in (0, 1) for end in ("", "_reverse") for kind in ("ih", "hh", "hr")]
    assert list(layer.state_dict()) == names
    assert [[tuple(each.shape) for each in weights] for weights in layer.all_weights[1:3]] == [
        [(16, 3), (16, 2), (2, 4)],
        [(16, 4), (16, 2), (2, 4)],
    ]
    assert list(nn.GRU(3, 4).state_dict()) == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    assert repr(layer) == "LSTM(3, 4, proj_size=2, num_layers=2, bias=False, bidirectional=True)"
    printed = "RNN(3, 4, num_layers=2, batch_first=True, dropout=0.5)"
    assert repr(nn.RNN(3, 4, 2, "relu", True, True, 0.5)) == printed
    assert repr(nn.RNNCell(3, 4, False, "relu")) == "RNNCell(3, 4, bias=False, nonlinearity=relu)"
    assert repr(nn.LSTMCell(3, 4)) == "LSTMCell(3, 4)"
    assert nn.GRUCell(3, 4, bias=False).bias_ih is None
    assert all(bool((each.abs() <= 0.5).all()) for each in (*layer.parameters(), *nn.GRUCell(3, 4).parameters()))


def test_layers_are_copied_and_pickled():
    layer, x = nn.GRU(3, 4, 2), torch.randn(2, 1, 3)
    layer.flatten_parameters()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(x)[0], layer(x)[0])
    layer.weight_hh_l1 = nn.Parameter(torch.zeros(12, 4))
    assert layer._flat_weights[5] is layer.weight_hh_l1


def test_a_result_that_was_changed_is_noticed():
    out, _ = nn.RNN(2, 3)(torch.ones(2, 1, 2))
    out.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


x, z = torch.ones(5, 2, 3), torch.zeros
LSTM, GRU, RNN = nn.LSTM(3, 4, 2), nn.GRU(3, 4), nn.RNN(3, 4)
WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "no steps": (lambda: LSTM(z(0, 2, 3)), RuntimeError, "Expected sequence length to be larger than 0 in RNN"),
    "input size": (
        lambda: LSTM(z(5, 2, 4)),
        RuntimeError,
        r"input.size\(-1\) must be equal to input_size. Expected 3, got 4",
    ),
    "rank": (lambda: LSTM(z(5, 2, 3, 1)), ValueError, "LSTM: Expected input to be 2D or 3D, got 4D instead"),
    "rank of RNN": (lambda: RNN(z(5)), ValueError, "RNN: Expected input to be 2D or 3D, got 1D tensor instead"),
    "cells": (
        lambda: LSTM(x, (z(2, 2, 4), z(2, 2, 5))),
        RuntimeError,
        r"Expected hidden\[1\] size \(2, 2, 4\), got \[2, 2, 5\]",
    ),
    "states": (lambda: GRU(x, z(2, 2, 4)), RuntimeError, r"Expected hidden size \(1, 2, 4\), got \[2, 2, 4\]"),
    "rank of both": (
        lambda: LSTM(x, (z(2, 4), z(2, 4))),
        RuntimeError,
        r"For batched 3-D input, hx and cx should also be 3-D but got \(2-D, 2-D\) tensors",
    ),
    "rank of states": (
        lambda: GRU(x[:, 0], z(1, 2, 4)),
        RuntimeError,
        "For unbatched 2-D input, hx should also be 2-D but got 3-D tensor",
    ),
    "dtype": (
        lambda: LSTM(x.double()),
        ValueError,
        r"RNN input dtype \(.*float64\) does not match weight dtype \(.*float32\)",
    ),
    "dtype of states": (
        lambda: GRU(x, z(1, 2, 4).double()),
        RuntimeError,
        "mat1 and mat2 must have the same dtype, but got Float and Double",
    ),
    "nonlinearity": (lambda: nn.RNN(3, 4, nonlinearity="x"), ValueError, "Unknown nonlinearity 'x'."),
    "projection": (lambda: nn.GRU(3, 4, proj_size=2), ValueError, "proj_size argument is only supported for LSTM"),
    "large projection": (
        lambda: nn.LSTM(3, 4, proj_size=4),
        ValueError,
        "proj_size has to be smaller than hidden_size",
    ),
    "negative projection": (lambda: nn.LSTM(3, 4, proj_size=-1), ValueError, "proj_size should be a positive integer"),
    "size": (lambda: nn.LSTM(0, 4), ValueError, "input_size must be greater than zero"),
    "layers": (lambda: nn.LSTM(3, 4, 0), ValueError, "num_layers must be greater than zero"),
    "type of size": (lambda: nn.LSTM(3.0, 4), TypeError, "input_size should be of type int, got: float"),
    "type of bias": (lambda: nn.LSTM(3, 4, bias=1), TypeError, "bias should be of type bool, got: int"),
    "share": (lambda: nn.LSTM(3, 4, dropout=2), ValueError, r"dropout should be a number in range \[0, 1\]"),
    "mode": (lambda: nn.RNNBase("x", 3, 4), ValueError, "Unrecognized RNN mode: x"),
    "input of a cell": (
        lambda: nn.LSTMCell(3, 4)(z(2, 4)),
        RuntimeError,
        "input has inconsistent input_size: got 4 expected 3",
    ),
    "size of a cell": (
        lambda: nn.LSTMCell(3, 4)(z(2, 3), (z(2, 4), z(2, 5))),
        RuntimeError,
        "hidden1 has inconsistent hidden_size: got 5, expected 4",
    ),
    "batch of a cell": (
        lambda: nn.GRUCell(3, 4)(z(2, 3), z(3, 4)),
        RuntimeError,
        "Input batch size 2 doesn't match hidden0 batch size 3",
    ),
    "rank of a cell": (lambda: nn.GRUCell(3, 4)(z(2, 3, 1)), ValueError, "GRUCell: Expected input to be 1D or 2D"),
    "rank of a cell's state": (
        lambda: nn.RNNCell(3, 4)(z(2, 3), z(2, 4, 1)),
        ValueError,
        "RNNCell: Expected hidden to be 1D or 2D, got 3D instead",
    ),
    "rank of a cell's states": (
        lambda: nn.LSTMCell(3, 4)(z(2, 3), (z(2, 4), z(2, 4, 1))),
        ValueError,
        r"LSTMCell: Expected hx\[1\] to be 1D or 2D, got 3D instead",
    ),
    "dtype of a cell": (
        lambda: nn.GRUCell(3, 4)(z(2, 3).double()),
        RuntimeError,
        "mat1 and mat2 must have the same dtype",
    ),
    "nonlinearity of a cell": (
        lambda: nn.RNNCell(3, 4, nonlinearity="x")(z(2, 3)),
        RuntimeError,
        "Unknown nonlinearity: x",
    ),
    "hx of a cell": (
        lambda: torch.lstm_cell(z(2, 3), z(2, 4), z(16, 3), z(16, 4)),
        TypeError,
        r"lstm_cell\(\): argument 'hx' \(position 2\) must be tuple of Tensors, not Tensor",
    ),
    "weights": (
        lambda: torch.gru(x, z(1, 2, 4), GRU._flat_weights[:3], True, 1, 0.0, True, False, False),
        RuntimeError,
        "got an incorrect number of RNN parameters",
    ),
    "two states": (
        lambda: torch.lstm(x, (z(2, 2, 4),), LSTM._flat_weights, True, 2, 0.0, True, False, False),
        RuntimeError,
        "lstm expects two hidden states",
    ),
    "arguments": (lambda: torch.gru(x), TypeError, r"gru\(\) received an invalid combination of arguments"),
}


@pytest.mark.parametrize("what", WRONG)
def test_bad_input_is_refused_with_the_words_of_pytorch(what):
    call, error, words = WRONG[what]
    with pytest.raises(error, match=words):
        call()


@pytest.mark.peer
@pytest.mark.parametrize(
    ("kind", "projected", "bidirectional", "bias", "packed"),
    [
        each
        for each in itertools.product(("LSTM", "GRU", "RNN_TANH", "RNN_RELU"), (0, 2), *[(False, True)] * 3)
        if each[0] == "LSTM" or not each[1]
    ],
)
def test_functions_and_their_gradients_of_both_orders_are_pytorchs(kind, projected, bidirectional, bias, packed):
    reference = pytest.importorskip("torch")
    reference.manual_seed(0)
    layer = reference.nn.RNNBase(kind, 3, 4, 2, bias, bidirectional=bidirectional, proj_size=projected).double()
    shapes = [(4, 3, 3), *[(2 * (1 + bidirectional), 3, size) for size in (projected or 4, 4)[: 1 + (kind == "LSTM")]]]
    given = [reference.randn(shape, dtype=reference.float64) for shape in shapes]
    batch_sizes = reference.tensor([3, 2, 1, 1])
    given[0] = reference.cat([x[:size] for x, size in zip(given[0], batch_sizes)]) if packed else given[0]
    given += [weight.detach() for weight in layer._flat_weights]
    found = []
    for library in (torch, reference):
        here = [each.clone() if library is reference else torch.from_numpy(each.numpy().copy()) for each in given]
        for each in here:
            each.requires_grad_()
        sizes = [batch_sizes if library is reference else torch.from_numpy(batch_sizes.numpy())] * packed
        rows, *first = here[: len(shapes)]
        hx = tuple(first) if kind == "LSTM" else first[0]
        arguments = (hx, here[len(shapes) :], bias, 2, 0.0, True, bidirectional, *[False] * (not packed))
        out = getattr(library, kind.lower())(rows, *sizes, *arguments)
        grads = library.autograd.grad(sum(each.sin().sum() for each in out), here, create_graph=True)
        second = library.autograd.grad(sum((each * each).sum() for each in grads), here)
        found.append([each.detach().numpy() for each in (*out, *grads, *second)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.peer
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_weights_of_pytorch_are_loaded(kind):
    reference = pytest.importorskip("torch")
    theirs = getattr(reference.nn, kind)(3, 4, 2, bidirectional=True)
    ours = getattr(nn, kind)(3, 4, 2, bidirectional=True)
    ours.load_state_dict({name: torch.from_numpy(value.numpy()) for name, value in theirs.state_dict().items()})
    x = reference.randn(5, 2, 3)
    np.testing.assert_allclose(ours(torch.from_numpy(x.numpy()))[0].detach(), theirs(x)[0].detach(), atol=1e-6)
