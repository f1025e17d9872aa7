"""Datasets, samplers, collation and the loader, by PyTorch's rules; batches that arrive on a device."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter, OrderedDict, UserDict, namedtuple
from types import MappingProxyType

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda
from tritensor.utils import data
from tritensor.utils.data import DataLoader, TensorDataset, default_collate

Point = namedtuple("Point", ["x", "y"])


class Squares(data.Dataset):
    def __init__(self, size=10):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index * index


class Stream(data.IterableDataset):
    def __init__(self, size=10):
        self.size = size

    def __iter__(self):
        worker = data.get_worker_info()
        if worker is None:
            return iter(range(self.size))
        return iter(range(worker.id, self.size, worker.num_workers))


class SizedStream(Stream):
    def __len__(self):
        return self.size


def lists(loader):
    return [batch.tolist() for batch in loader]


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


# ---- collation ------------------------------------------------------------------------------------------------


def test_collation_by_type():
    batch = default_collate(
        [{"a": 1, "b": (2.0, "x"), "c": [np.float32(1), b"y"]}, {"a": 2, "b": (3.0, "z"), "c": [2, b"w"]}]
    )
    assert (batch["a"].dtype, batch["a"].tolist()) == (torch.int64, [1, 2])
    assert (batch["b"][0].dtype, batch["b"][0].tolist()) == (torch.float64, [2, 3])
    assert batch["b"][1] == ("x", "z")
    assert isinstance(batch["c"], list)
    assert default_collate([True, False]).dtype is torch.bool
    assert default_collate([np.float32(1), np.float32(2)]).dtype is torch.float32
    assert default_collate([np.ones(2), np.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert default_collate([torch.ones(2), torch.zeros(2)]).shape == (2, 2)
    point = default_collate([Point(1, 2), Point(3, 4)])
    assert isinstance(point, Point)
    assert point.x.tolist() == [1, 3]


def test_collation_keeps_container_types():
    assert isinstance(default_collate([OrderedDict(a=1), OrderedDict(a=2)]), OrderedDict)
    assert isinstance(default_collate([UserDict(a=1), UserDict(a=2)]), UserDict)
    assert isinstance(default_collate([MappingProxyType({"a": 1})]), MappingProxyType)
    assert isinstance(default_collate([range(2), range(2)]), list)

    class Stubborn(dict):
        def __copy__(self):
            raise TypeError("no")

    assert type(default_collate([Stubborn(a=1)])) is dict


def test_collation_refuses():
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors, numpy arrays, numbers"):
        default_collate([object()])
    with pytest.raises(TypeError, match="found <U1"):
        default_collate([np.array(["a"])])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1, 2], [1]])


def test_collation_can_be_taught():
    class Money:
        def __init__(self, amount):
            self.amount = amount

    class Coins(Money):
        pass

    def join(batch, *, collate_fn_map=None):
        return sum(money.amount for money in batch)

    assert data.collate([(Money(1), 1), (Coins(2), 1)], collate_fn_map={Money: join, int: lambda b, **_: len(b)}) == [
        3,
        2,
    ]
    assert data.collate([Coins(1), Coins(2)], collate_fn_map={Money: join}) == 3


def test_conversion_of_single_examples():
    converted = data.default_convert({"a": np.ones(2), "b": [np.int32(3), "x"], "c": (1, Point(np.zeros(1), None))})
    assert torch.is_tensor(converted["a"])
    assert converted["b"][0].dtype is torch.int32
    assert converted["b"][1] == "x"
    assert isinstance(converted["c"], list)
    assert torch.is_tensor(converted["c"][1].x)
    assert converted["c"][1].y is None
    strings = np.array(["a"])
    assert data.default_convert(strings) is strings
    tensor = torch.ones(1)
    assert data.default_convert(tensor) is tensor


# ---- the loader -----------------------------------------------------------------------------------------------


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


# ---- workers --------------------------------------------------------------------------------------------------


class Failing(Squares):
    def __getitem__(self, index):
        if index == 3:
            raise KeyError("number three")
        return index


@pytest.mark.parametrize("workers", [0, 2])
def test_an_example_that_fails_ends_its_batch_only(workers):
    batches = iter(DataLoader(Failing(6), batch_size=2, num_workers=workers))
    assert next(batches).tolist() == [0, 1]
    with pytest.raises(KeyError, match="number three") as caught:
        next(batches)
    assert (getattr(caught.value, "__notes__", []) == ["raised in DataLoader worker 1"]) is (workers > 0)
    assert next(batches).tolist() == [4, 5]
    with pytest.raises(StopIteration):
        next(batches)
    with pytest.raises(StopIteration):
        next(batches)


def test_workers_know_who_they_are():
    infos, started = [], []

    class Asking(Squares):
        def __getitem__(self, index):
            infos.append(data.get_worker_info())
            return index

    dataset = Asking(8)
    loader = DataLoader(
        dataset, num_workers=2, worker_init_fn=started.append, generator=torch.Generator().manual_seed(0)
    )
    lists(loader)
    assert sorted(started) == [0, 1]
    assert {info.id for info in infos} == {0, 1}
    assert {info.num_workers for info in infos} == {2}
    seeds = {info.id: info.seed for info in infos}
    assert seeds[1] == seeds[0] + 1
    assert all(info.dataset is not dataset for info in infos)
    assert infos[0].dataset.size == 8
    assert data.get_worker_info() is None


def test_each_worker_may_change_its_own_copy_of_a_stream():
    class Plain(data.IterableDataset):
        def __init__(self):
            self.start, self.end = 0, 6

        def __iter__(self):
            return iter(range(self.start, self.end))

    def take_share(worker):
        own = data.get_worker_info().dataset
        own.start, own.end = worker * 3, worker * 3 + 3

    loader = DataLoader(Plain(), batch_size=3, num_workers=2, worker_init_fn=take_share)
    assert lists(loader) == [[0, 1, 2], [3, 4, 5]]
    assert (loader.dataset.start, loader.dataset.end) == (0, 6)


def test_a_worker_that_cannot_start_says_so():
    def broken(worker):
        raise OSError(f"no room for {worker}")

    with pytest.raises(OSError, match="no room for 0"):
        next(iter(DataLoader(Squares(), num_workers=2, worker_init_fn=broken)))


def test_a_slow_worker_times_out():
    event = threading.Event()

    class Slow(Squares):
        def __getitem__(self, index):
            event.wait(5)
            return index

    batches = iter(DataLoader(Slow(1), num_workers=1, timeout=0.05))
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0.05 seconds"):
        next(batches)
    event.set()
    assert next(batches).tolist() == [0]


@pytest.mark.parametrize("factor", [None, 0, 3])
def test_workers_run_only_so_far_ahead(factor):
    fetched = []

    class Noting(Squares):
        def __getitem__(self, index):
            fetched.append(index)
            return index

    batches = iter(DataLoader(Noting(50), num_workers=2, prefetch_factor=factor))
    assert next(batches).item() == 0
    ahead = 2 * (2 if factor is None else max(factor, 1))
    deadline = time.monotonic() + 5
    while len(fetched) < ahead + 1 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)
    assert len(fetched) == ahead + 1


def test_workers_end_with_their_iterator():
    before = set(threading.enumerate())

    def workers():
        return set(threading.enumerate()) - before

    batches = iter(DataLoader(Squares(50), num_workers=3))
    next(batches)
    assert len(workers()) == 3
    del batches
    for thread in workers():
        thread.join(5)
    assert not workers()
    list(DataLoader(Squares(5), num_workers=2))
    for thread in workers():
        thread.join(5)
    assert not workers()


# ---- devices --------------------------------------------------------------------------------------------------


@pytest.fixture
def simulated():
    with cuda.simulate(devices=2):
        yield


class Nested(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return {"image": torch.ones(2) * index, "meta": Point([index, float(index)], "name"), "bytes": b"x"}


def test_nested_batches_arrive_on_the_device(simulated):
    for workers in (0, 2):
        batches = list(DataLoader(Nested(), batch_size=3, device="cuda:1", num_workers=workers))
        batch = batches[0]
        numbers, floats = batch["meta"].x
        assert {str(t.device) for t in (batch["image"], numbers, floats)} == {"cuda:1"}
        assert (numbers.dtype, floats.dtype) == (torch.int64, torch.float64)
        assert list(batch["meta"].y) == ["name"] * 3
        assert batch["bytes"] == [b"x"] * 3
        assert batch["image"].cpu().tolist() == [[0, 0], [1, 1], [2, 2]]
        assert batches[1]["meta"].x[0].cpu().tolist() == [3]


def test_objects_with_a_to_method_are_moved(simulated):
    class Graph:
        place = "cpu"

        def to(self, device, non_blocking=False):
            self.place = str(device)
            return self

    (batch,) = DataLoader(range(2), batch_size=2, collate_fn=lambda batch: [Graph(), None], device="cuda")
    assert batch[0].place == "cuda"
    assert batch[1] is None


def test_the_next_batch_is_staged_while_one_is_in_use(simulated):
    fetched = []

    class Noting(Squares):
        def __getitem__(self, index):
            fetched.append(index)
            return index

    batches = iter(DataLoader(Noting(3), device="cuda"))
    assert next(batches).item() == 0
    assert fetched == [0, 1]
    assert next(batches).item() == 1
    assert fetched == [0, 1, 2]
    assert next(batches).item() == 2
    with pytest.raises(StopIteration):
        next(batches)


def test_a_staged_error_waits_for_its_turn(simulated):
    batches = iter(DataLoader(Failing(6), batch_size=3, device="cuda"))
    assert next(batches).tolist() == [0, 1, 2]
    with pytest.raises(KeyError, match="number three"):
        next(batches)


def test_staging_is_one_copy_per_tensor(simulated):
    loader = DataLoader(TensorDataset(torch.ones(6, 3), torch.ones(6)), batch_size=2, device="cuda")
    with cuda.transfers() as ledger:
        for _ in loader:
            pass
    ledger.assert_at_most(h2d=6, d2h=0, syncs=0)


def test_pin_memory(simulated):
    (batch,) = DataLoader(TensorDataset(torch.ones(2)), batch_size=2, pin_memory=True)
    assert batch[0].is_pinned()


def test_pin_memory_without_a_device_does_nothing():
    (batch,) = DataLoader(TensorDataset(torch.ones(2)), batch_size=2, pin_memory=True, device="cpu")
    assert not batch[0].is_pinned()


# ---- against PyTorch ------------------------------------------------------------------------------------------


@pytest.mark.peer
def test_collation_equals_pytorchs():
    peer = pytest.importorskip("torch")
    examples = [
        [1, 2, 3],
        [1.5, 2.5],
        [True, False],
        [np.float32(1), np.float32(2)],
        [np.arange(3), np.arange(3)],
        [(1, 2.0), (3, 4.0)],
        [[1, "a"], [2, "b"]],
        [{"x": np.ones(2), "y": {"z": 1}}, {"x": np.zeros(2), "y": {"z": 2}}],
        [Point(1, b"a"), Point(2, b"b")],
    ]

    def plain(value):
        if isinstance(value, dict):
            return {key: plain(entry) for key, entry in value.items()}
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value), [plain(entry) for entry in value]
        if isinstance(value, tuple):
            return type(value), [plain(entry) for entry in value]
        return (str(value.dtype).rpartition(".")[2], value.tolist()) if hasattr(value, "tolist") else value

    for batch in examples:
        assert plain(default_collate(batch)) == plain(peer.utils.data.default_collate(batch)), batch
