"""Datasets and samplers: rows, joins, subsets and the order in which they are drawn, by PyTorch's rules."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

import tritensor as torch
from tritensor.utils import data
from tritensor.utils.data import DataLoader, TensorDataset

from .sources import SizedStream, Squares, Stream, lists

# ---- datasets -------------------------------------------------------------------------------------------------


def test_tensor_dataset_gives_rows():
    dataset = TensorDataset(torch.arange(4), torch.ones(4, 2))
    x, y = dataset[-1]
    assert (x.item(), y.tolist(), len(dataset)) == (3, [1, 1], 4)
    assert dataset[1:3][0].tolist() == [1, 2]
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 4"):
        dataset[4]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: TensorDataset(torch.ones(2), torch.ones(3)), AssertionError, "Size mismatch between tensors"),
        (lambda: TensorDataset(), AssertionError, "at least one tensor"),
        (lambda: data.ConcatDataset([]), AssertionError, "datasets should not be an empty iterable"),
        (lambda: data.ConcatDataset([Stream()]), AssertionError, "ConcatDataset does not support IterableDataset"),
        (lambda: list(data.ChainDataset([Squares()])), AssertionError, "ChainDataset only supports IterableDataset"),
        (lambda: data.StackDataset(), ValueError, "At least one dataset should be passed"),
        (lambda: data.StackDataset(Squares(), x=Squares()), ValueError, "Supported either ``tuple``- "),
        (lambda: data.StackDataset(Squares(3), Squares(4)), ValueError, "Size mismatch between datasets"),
        (lambda: data.random_split(range(10), [3, 3]), ValueError, "Sum of input lengths does not equal"),
        (lambda: data.random_split(range(10), [-0.5, 1.5]), ValueError, "Fraction at index 0 is not between 0 and 1"),
        (lambda: data.Dataset()[0], NotImplementedError, "Subclasses of Dataset should implement"),
        (lambda: iter(data.IterableDataset()), TypeError, "should implement __iter__"),
        (lambda: iter(data.Sampler()), NotImplementedError, "does not define __iter__"),
        (lambda: data.ConcatDataset([Squares(2)])[2], IndexError, "index 2 is out of range"),
        (lambda: data.ConcatDataset([Squares(2)])[-3], ValueError, "absolute value of index should not exceed"),
        (lambda: data.RandomSampler([]), ValueError, "num_samples should be a positive integer"),
        (lambda: data.RandomSampler([1], num_samples=1.5), ValueError, "num_samples should be a"),
        (lambda: data.RandomSampler([1], replacement=1), TypeError, "replacement should be a boolean value"),
        (lambda: data.BatchSampler([1], 0, False), ValueError, "batch_size should be a positive integer"),
        (lambda: data.BatchSampler([1], True, False), ValueError, "batch_size should be a positive integer"),
        (lambda: data.BatchSampler([1], 1, 0), ValueError, "drop_last should be a boolean value, but got drop_last=0"),
        (lambda: data.WeightedRandomSampler([1.0], 0), ValueError, "num_samples should be a positive integer"),
        (lambda: data.WeightedRandomSampler([1.0], 1, replacement=2), ValueError, "replacement should be a"),
        (lambda: data.WeightedRandomSampler([[1.0]], 1), ValueError, "weights should be a 1d sequence"),
        (lambda: data.WeightedRandomSampler([1.0, -1.0], 1), ValueError, "weights should be finite"),
        (lambda: data.WeightedRandomSampler([1.0, 0.0], 2, False), ValueError, "only 1 weights are above 0"),
    ],
)
def test_misuse_raises(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_concatenation_and_chaining():
    joined = Squares(3) + Squares(2)
    assert [joined[index] for index in range(5)] == [0, 1, 4, 0, 1]
    assert joined[-1] == 1
    assert len(joined) == 5
    assert joined.cumulative_sizes == [3, 5]
    chained = SizedStream(2) + SizedStream(3)
    assert list(chained) == [0, 1, 0, 1, 2]
    assert len(chained) == 5


def test_stacking():
    assert data.StackDataset(Squares(), range(10))[3] == (9, 3)
    named = data.StackDataset(square=Squares(4), number=range(4))
    assert named[2] == {"square": 4, "number": 2}
    assert len(named) == 4


def test_subsets():
    class Recording(Squares):
        def __getitems__(self, indices):
            return [("all", index) for index in indices]

        def __getitem__(self, index):
            return ("list", index) if isinstance(index, list) else super().__getitem__(index)

    subset = data.Subset(data.Subset(Recording(), [9, 8, 7]), [2, 0])
    assert subset[0] == 49
    assert subset[[0, 1]] == ("list", [7, 9])
    assert subset.__getitems__([1, 0]) == [("all", 9), ("all", 7)]
    assert data.Subset(Squares(), [3]).__getitems__([0]) == [9]
    assert len(subset) == 2

    class Half(data.Subset):
        def __getitem__(self, index):
            return self.dataset[self.indices[index]] / 2

    with pytest.raises(NotImplementedError, match="Half overrides __getitem__ but not __getitems__"):
        Half(Squares(), [0])


def test_random_split_covers_everything_once():
    parts = data.random_split(range(10), [0.55, 0.25, 0.2], torch.Generator().manual_seed(3))
    assert [len(part) for part in parts] == [6, 2, 2]
    assert sorted(index for part in parts for index in part.indices) == list(range(10))
    again = data.random_split(range(10), [0.55, 0.25, 0.2], torch.Generator().manual_seed(3))
    assert [part.indices for part in again] == [part.indices for part in parts]
    assert [len(part) for part in data.random_split(range(10), [7, 3])] == [7, 3]
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0. This might result in an empty dataset."):
        data.random_split(range(1), [0.5, 0.5])


# ---- samplers -------------------------------------------------------------------------------------------------


def test_random_sampler_permutes():
    generator = torch.Generator().manual_seed(1)
    sampler = data.RandomSampler(range(20), generator=generator)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second
    assert list(data.RandomSampler(range(20), generator=torch.Generator().manual_seed(1))) == first
    assert all(type(index) is int for index in first)
    longer = list(data.RandomSampler(range(4), num_samples=10))
    assert Counter(longer[:4]) == Counter(longer[4:8]) == Counter(range(4))
    assert len(longer) == 10


def test_random_sampler_with_replacement(monkeypatch):
    monkeypatch.setattr(data.sampler, "_DRAWS", 7)
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=100))
    assert len(drawn) == 100
    assert set(drawn) == {0, 1, 2}
    sampler = data.RandomSampler(range(5), replacement=True)
    assert len(list(sampler)) == len(sampler) == 5


def test_the_global_seed_decides_the_order():
    def order():
        torch.manual_seed(5)
        return lists(DataLoader(Squares(), shuffle=True, batch_size=3)), list(data.WeightedRandomSampler([1.0] * 9, 9))

    first, second = order(), order()
    assert first == second
    assert sorted(itertools.chain(*first[0])) == [n * n for n in range(10)]


def test_other_samplers():
    assert list(data.SequentialSampler("abc")) == [0, 1, 2]
    chosen = data.SubsetRandomSampler([5, 6, 7], torch.Generator().manual_seed(0))
    assert sorted(chosen) == [5, 6, 7]
    assert len(chosen) == 3
    weighted = data.WeightedRandomSampler(
        torch.tensor([0.0, 3.0, 1.0]), 4000, generator=torch.Generator().manual_seed(0)
    )
    counts = Counter(weighted)
    assert len(weighted) == 4000
    assert counts[0] == 0
    assert counts[1] == pytest.approx(3000, abs=120)
    assert sorted(data.WeightedRandomSampler([1.0, 2.0, 0.0, 1.0], 3, replacement=False)) == [0, 1, 3]


@pytest.mark.parametrize(("drop_last", "expected"), [(False, [[0, 1, 2], [3, 4]]), (True, [[0, 1, 2]])])
def test_batch_sampler(drop_last, expected):
    sampler = data.BatchSampler(range(5), 3, drop_last)
    assert list(sampler) == expected
    assert len(sampler) == len(expected)
    assert len(data.BatchSampler(range(6), 3, drop_last)) == 2
