"""`nn.utils.rnn`: sequences of several lengths, padded and packed, there and back."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.nn.utils import rnn

from ..needs import needs_triton

LENGTHS = [(3, 2, 2), (1, 3, 2)]


def sequences(lengths, device, *shape):
    numbers = torch.arange(1, 100.0)
    return [
        numbers[:length].reshape(-1, *[1] * len(shape)).expand(length, *shape).to(device) + i * 10
        for i, length in enumerate(lengths)
    ]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_what_was_packed_comes_back(lengths, batch_first, device):
    given = sequences(lengths, device, 2)
    padded = rnn.pad_sequence(given, batch_first, padding_value=-1.0)
    packed = rnn.pack_padded_sequence(padded, lengths, batch_first, enforce_sorted=lengths[0] == 3)
    assert packed.batch_sizes.tolist() == [3, lengths.count(2) + 1, 1] and packed.data.device == padded.device
    order = sorted(range(3), key=lambda i: -lengths[i])
    assert packed.data[:, 0].tolist() == [t + 1 + 10 * i for t in range(3) for i in order if t < lengths[i]]
    assert (packed.sorted_indices is None) == (lengths[0] == 3)
    if packed.sorted_indices is not None:
        assert packed.sorted_indices.tolist() == order and packed.sorted_indices.device == padded.device
        assert packed.unsorted_indices.tolist() == [order.index(i) for i in range(3)]
    back, found = rnn.pad_packed_sequence(packed, batch_first, padding_value=-1.0)
    assert torch.equal(back, padded) and found.tolist() == list(lengths) and not found.is_cuda
    longer, _ = rnn.pad_packed_sequence(packed, batch_first, total_length=5)
    assert longer.shape == ((3, 5, 2) if batch_first else (5, 3, 2))
    for one, other in zip(rnn.unpack_sequence(packed), given, strict=True):
        assert torch.equal(one, other)
    for one, other in zip(rnn.unpad_sequence(padded, found, batch_first), given, strict=True):
        assert torch.equal(one, other)


def test_pack_sequence_and_padding_on_the_left():
    given = [torch.tensor([1, 2]), torch.tensor([3, 4, 5])]
    assert rnn.pad_sequence(given, True, 9, "left").tolist() == [[9, 1, 2], [3, 4, 5]]
    assert rnn.pad_sequence(torch.ones(2, 3)).shape == (3, 2)
    packed = rnn.pack_sequence(given, enforce_sorted=False)
    assert packed.data.tolist() == [3, 1, 4, 2, 5] and packed.batch_sizes.tolist() == [2, 2, 1]
    data, batch_sizes, order, back = packed
    assert packed._fields == ("data", "batch_sizes", "sorted_indices", "unsorted_indices")
    again = rnn.PackedSequence((data, batch_sizes), None, order)
    assert again.unsorted_indices.tolist() == back.tolist()
    for other in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert isinstance(other, rnn.PackedSequence) and other.data.tolist() == data.tolist()


def test_gradients_go_through():
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)

    def there_and_back(x):
        return rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [2, 3], enforce_sorted=False), total_length=4)[0]

    torch.autograd.gradcheck(there_and_back, (x,))
    packed = rnn.pack_padded_sequence(x, [3, 1])
    assert packed.data.grad_fn.name() == "PackPaddedSequenceBackward0"
    packed.data.sum().backward()
    assert x.grad[..., 0].tolist() == [[1, 1], [1, 0], [1, 0]]


@needs_triton
def test_packed_sequences_are_moved_and_cast():
    packed = rnn.pack_sequence([torch.ones(1), torch.ones(2)], enforce_sorted=False)
    assert packed.to("cpu") is packed and packed.float() is packed and packed.cpu() is packed
    kinds = {"double": "float64", "half": "float16", "long": "int64", "int": "int32", "short": "int16"}
    for name, kind in {**kinds, "char": "int8", "byte": "uint8"}.items():
        cast = getattr(packed, name)()
        assert cast.data.dtype is getattr(torch, kind) and cast.sorted_indices.dtype is torch.int64
    assert not packed.is_cuda and not packed.is_pinned()
    with torch.cuda.simulate(devices=1):
        pinned = packed.pin_memory()
        assert pinned.is_pinned() and pinned.sorted_indices.is_pinned()
        for there in (
            packed.cuda(),
            packed.to("cuda:0"),
            packed.cuda(non_blocking=True),
            packed.to(torch.empty(0).cuda()),
        ):
            assert there.is_cuda and there.sorted_indices.is_cuda and there.unsorted_indices.is_cuda
            assert not there.batch_sizes.is_cuda and there.cuda() is there and not there.cpu().sorted_indices.is_cuda
        with pytest.raises(ValueError, match="batch_sizes should always be on CPU"):
            rnn.PackedSequence(torch.ones(2), torch.tensor([1, 1]).cuda())
        with pytest.raises(RuntimeError, match="'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0"):
            rnn.pack_padded_sequence(torch.ones(2, 1), torch.tensor([2]).cuda())


x, z = torch.ones(5, 2, 3), torch.zeros
WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "unsorted": (
        lambda: rnn.pack_padded_sequence(x, [3, 5]),
        RuntimeError,
        "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True.",
    ),
    "too long": (lambda: rnn.pack_padded_sequence(x, [6, 5]), RuntimeError, "Expected lengths of at most 5"),
    "zero": (
        lambda: rnn.pack_padded_sequence(x, [5, 0]),
        RuntimeError,
        "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0",
    ),
    "too few": (
        lambda: rnn.pack_padded_sequence(x, [5]),
        RuntimeError,
        r"Expected `len\(lengths\)` to be equal to batch_size, but got 1 \(batch_size=2\)",
    ),
    "rank of lengths": (
        lambda: rnn.pack_padded_sequence(x, torch.tensor([[5, 4]])),
        RuntimeError,
        "'lengths' argument should be a 1D CPU int64 tensor, but got 2D cpu Long tensor",
    ),
    "vector": (lambda: rnn.pack_padded_sequence(z(5), [5]), IndexError, "Dimension out of range"),
    "nothing": (lambda: rnn.pack_padded_sequence(z(0, 2, 3), [0, 0]), RuntimeError, "Cannot pack empty tensors."),
    "no sequences": (lambda: rnn.pack_padded_sequence(z(5, 0, 3), []), RuntimeError, "Cannot pack empty tensors."),
    "total length": (
        lambda: rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [4, 3]), total_length=3),
        ValueError,
        "Expected total_length to be at least the length of the longest sequence in input, but got total_length=3",
    ),
    "no sizes": (
        lambda: rnn.pad_packed_sequence(rnn.PackedSequence(z(0, 2), z(0, dtype=torch.int64))),
        RuntimeError,
        "batch_sizes can not be empty",
    ),
    "growing sizes": (
        lambda: rnn.pad_packed_sequence(rnn.PackedSequence(z(3, 2), torch.tensor([1, 2]))),
        RuntimeError,
        r"batch_sizes \[1, 2\] are not those of a packed sequence of 3 rows",
    ),
    "too few rows": (
        lambda: rnn.pad_packed_sequence(rnn.PackedSequence(z(3, 2), torch.tensor([2, 2]))),
        RuntimeError,
        r"batch_sizes \[2, 2\] are not those of a packed sequence of 3 rows",
    ),
    "no list": (lambda: rnn.pad_sequence(3), RuntimeError, "pad_sequence: Expected iterable for input sequences"),
    "empty list": (lambda: rnn.pack_sequence([]), RuntimeError, "received an empty list of sequences"),
    "side": (
        lambda: rnn.pad_sequence([z(2), z(3)], padding_side="x"),
        RuntimeError,
        "Expected padding_side to be one of left or right, but got x.",
    ),
    "trailing sizes": (lambda: rnn.pad_sequence([z(2, 3), z(3, 4)]), RuntimeError, "The size of tensor a"),
    "number": (lambda: rnn.pad_sequence([z(())]), RuntimeError, "The size of tensor a"),
    "lengths": (lambda: rnn.unpad_sequence(z(5, 2, 3), torch.tensor([5, 4, 4])), ValueError, "zip"),
    "data alone": (lambda: rnn.PackedSequence(z(3)), AssertionError, "Expected data to be a list or tuple of length 2"),
}


@pytest.mark.parametrize("what", WRONG)
def test_bad_input_is_refused_with_the_words_of_pytorch(what):
    call, error, words = WRONG[what]
    with pytest.raises(error, match=words):
        call()


@pytest.mark.peer
@pytest.mark.parametrize("lengths", [(4, 2, 2), (1, 4, 3)])
def test_packing_is_pytorchs(lengths):
    reference = pytest.importorskip("torch")
    numbers = np.arange(24.0).reshape(4, 3, 2)
    theirs = reference.nn.utils.rnn.pack_padded_sequence(reference.from_numpy(numbers), lengths, enforce_sorted=False)
    ours = rnn.pack_padded_sequence(torch.from_numpy(numbers), lengths, enforce_sorted=False)
    assert repr(ours.batch_sizes) == repr(theirs.batch_sizes) and ours.data.tolist() == theirs.data.tolist()
    assert [each.tolist() for each in ours[2:]] == [each.tolist() for each in theirs[2:]]
    for options in ({}, {"batch_first": True, "padding_value": 3.0, "total_length": 6}):
        expected = reference.nn.utils.rnn.pad_packed_sequence(theirs, **options)
        found = rnn.pad_packed_sequence(ours, **options)
        assert [each.tolist() for each in found] == [each.tolist() for each in expected]
