"""The loader: order, streams, options that exclude each other, seeds, and batches that are gathered at once."""

from __future__ import annotations

import itertools
import types

import pytest

import tritensor as torch
from tritensor.utils import data
from tritensor.utils.data import DataLoader, TensorDataset, default_collate

from .sources import SizedStream, Squares, Stream, lists


@pytest.mark.parametrize("workers", [0, 3])
def test_batches_come_in_order(workers):
    loader = DataLoader(Squares(), batch_size=4, num_workers=workers)
    expected = [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
    assert lists(loader) == expected
    assert lists(loader) == expected
    assert len(loader) == len(iter(loader)) == 3
    batches = iter(loader)
    assert iter(batches) is batches
    assert lists(DataLoader(Squares(), batch_size=4, num_workers=workers, drop_last=True)) == expected[:2]
    assert lists(DataLoader(Squares(3), batch_size=None, num_workers=workers, collate_fn=torch.tensor)) == [0, 1, 4]
    assert list(DataLoader(Squares(3), batch_size=None, num_workers=workers)) == [0, 1, 4]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_streams(workers):
    batches = lists(DataLoader(Stream(), batch_size=4, num_workers=workers))
    assert sorted(itertools.chain(*batches)) == list(range(10))
    if workers == 3:
        # worker 0 has 0, 3, 6, 9; worker 1 has 1, 4, 7; worker 2 has 2, 5, 8
        assert batches == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
        assert lists(DataLoader(Stream(), batch_size=4, num_workers=3, drop_last=True)) == [[0, 3, 6, 9]]
    assert sorted(DataLoader(Stream(), batch_size=None, num_workers=workers)) == list(range(10))
    assert len(DataLoader(SizedStream(), batch_size=4)) == 3
    assert len(DataLoader(SizedStream(), batch_size=4, drop_last=True)) == 2
    assert len(DataLoader(SizedStream(), batch_size=None)) == 10
    assert lists(DataLoader(Stream(), batch_size=4, drop_last=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_stream_longer_than_it_said_warns_once():
    class Short(Stream):
        def __len__(self):
            return 4

    loader = DataLoader(Short(6), batch_size=2)
    lists(loader)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2 .* but 3 samples have been fetched") as caught:
        lists(loader)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiprocessing"),
        ({"prefetch_factor": -2, "num_workers": 1}, "prefetch_factor option should be non-negative"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"multiprocessing_context": "spawn"}, "multiprocessing_context can only be used with multi-process loading"),
        ({"sampler": [0], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        (
            {"batch_sampler": [[0]], "batch_size": 2},
            "batch_sampler option is mutually exclusive with batch_size",
        ),
        (
            {"batch_sampler": [[0]], "shuffle": True},
            "batch_sampler option is mutually exclusive with batch_size",
        ),
        (
            {"batch_size": None, "drop_last": True},
            "batch_size=None option disables auto-batching",
        ),
        ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
    ],
)
def test_options_that_exclude_each_other(options, words):
    with pytest.raises(ValueError, match=words):
        DataLoader(Squares(), **options)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"shuffle": True}, "shuffle"), ({"sampler": [0]}, "sampler"), ({"batch_sampler": [[0]]}, "batch_sampler")],
)
def test_streams_have_no_order_to_choose(options, name):
    with pytest.raises(ValueError, match=f"DataLoader with IterableDataset: expected unspecified {name} option"):
        DataLoader(Stream(), **options)


def test_other_errors():
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        DataLoader(Squares(), device="tpu")
    with pytest.raises(AssertionError, match="timeout needs workers"):
        iter(DataLoader(Squares(), timeout=1))
    loader = DataLoader(Squares())
    for name in ("batch_size", "sampler", "dataset"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, 3)
    loader.pin_memory = True
    with pytest.raises(TypeError):
        len(DataLoader(Stream()))


def test_custom_samplers():
    assert lists(DataLoader(Squares(), sampler=[3, 1], batch_size=2)) == [[9, 1]]
    assert lists(DataLoader(Squares(), batch_sampler=[[1], [2, 3]])) == [[1], [4, 9]]
    loader = DataLoader({"a": 1, "b": 2}, sampler=["b", "a"], batch_size=2)
    assert lists(loader) == [[2, 1]]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_seeded_generator_makes_the_order_reproducible(workers):
    def passes():
        loader = DataLoader(
            Squares(), shuffle=True, batch_size=3, num_workers=workers, generator=torch.Generator().manual_seed(7)
        )
        return lists(loader), lists(loader)

    first, second = passes()
    assert (first, second) == passes()
    assert first != second


def test_whole_batches_are_gathered_at_once(monkeypatch):
    x, y = torch.arange(12.0).reshape(6, 2), torch.arange(6)
    dataset = TensorDataset(x, y)
    calls = []
    original = TensorDataset.__getitem__

    def counted(self, index):
        calls.append(index)
        return original(self, index)

    loader = DataLoader(data.Subset(data.Subset(dataset, [5, 4, 3, 2, -1]), range(4)), batch_size=3)
    monkeypatch.setattr(TensorDataset, "__getitem__", counted)
    gathered = list(loader)
    assert calls == []
    slow = list(DataLoader(loader.dataset, batch_size=3, collate_fn=lambda batch: default_collate(batch)))
    assert len(calls) == 4
    for one, other in zip(gathered, slow, strict=True):
        assert type(one) is type(other) is list
        for a, b in zip(one, other, strict=True):
            assert a.dtype is b.dtype
            assert a.tolist() == b.tolist()
    gathered[0][0].fill_(-1)
    assert x.min().item() == 0
    assert lists(DataLoader(TensorDataset(y), sampler=[-1, -2], batch_size=2, collate_fn=lambda b: b[0][0])) == [5]
    with pytest.raises(IndexError, match="out of bounds"):
        list(DataLoader(dataset, sampler=[6]))


def test_batches_are_not_gathered_where_that_would_mean_something_else():
    class Doubled(TensorDataset):
        def __getitem__(self, index):
            return tuple(2 * tensor for tensor in super().__getitem__(index))

    class Whole(TensorDataset):
        def __getitems__(self, indices):
            return [(torch.tensor(-index),) for index in indices]

    class Plain(TensorDataset):
        pass

    x = torch.arange(3)
    for kind, expected in ((Doubled, [0, 2, 4]), (Whole, [0, -1, -2]), (Plain, [0, 1, 2])):
        assert next(iter(DataLoader(kind(x), batch_size=3)))[0].tolist() == expected
    # indices that are tensors go the long way, and mean the same
    assert next(iter(DataLoader(TensorDataset(x), sampler=list(x), batch_size=3)))[0].tolist() == [0, 1, 2]


def test_gradients_flow_through_gathered_batches():
    x = torch.ones(3, requires_grad=True)
    (batch,) = next(iter(DataLoader(TensorDataset(x), batch_size=2)))
    (batch * 3).sum().backward()
    assert x.grad.tolist() == [3, 3, 0]


def test_a_loader_of_a_type_is_a_base_and_an_annotation() -> None:
    own = types.new_class("Own", (DataLoader[int],))
    assert issubclass(own, DataLoader) and list(own([1, 2], batch_size=None)) == [1, 2]
    assert len(DataLoader[int]([1, 2, 3], batch_size=2)) == 2
