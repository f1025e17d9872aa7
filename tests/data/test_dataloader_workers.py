"""Workers of the loader that are threads: who they are, how they fail, how far ahead they run and how they end."""

from __future__ import annotations

import functools
import gc
import threading
import time

import pytest

import tritensor as torch
from tritensor.utils import data
from tritensor.utils.data import DataLoader

from .sources import Failing, Squares, lists

Loader = functools.partial(DataLoader, multiprocessing_context="thread")


@pytest.mark.parametrize("workers", [0, 2])
def test_an_example_that_fails_ends_its_batch_only(workers):
    batches = iter(
        DataLoader(Failing(6), batch_size=2, num_workers=workers, multiprocessing_context="thread" if workers else None)
    )
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
    loader = Loader(dataset, num_workers=2, worker_init_fn=started.append, generator=torch.Generator().manual_seed(0))
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

    loader = Loader(Plain(), batch_size=3, num_workers=2, worker_init_fn=take_share)
    assert lists(loader) == [[0, 1, 2], [3, 4, 5]]
    assert (loader.dataset.start, loader.dataset.end) == (0, 6)


def test_a_worker_that_cannot_start_says_so():
    def broken(worker):
        raise OSError(f"no room for {worker}")

    with pytest.raises(OSError, match="no room for 0"):
        next(iter(Loader(Squares(), num_workers=2, worker_init_fn=broken)))


def test_a_slow_worker_times_out():
    event = threading.Event()

    class Slow(Squares):
        def __getitem__(self, index):
            event.wait(5)
            return index

    batches = iter(Loader(Slow(1), num_workers=1, timeout=0.05))
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

    batches = iter(Loader(Noting(50), num_workers=2, prefetch_factor=factor))
    assert next(batches).item() == 0
    ahead = 2 * (2 if factor is None else max(factor, 1))
    deadline = time.monotonic() + 5
    while len(fetched) < ahead + 1 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)
    assert len(fetched) == ahead + 1


def test_workers_that_cannot_start_end():
    def broken(worker):
        raise SystemExit(f"no room for {worker}")

    before = set(threading.enumerate())
    batches = iter(Loader(Squares(), num_workers=3, worker_init_fn=broken))
    with pytest.raises(SystemExit, match="no room for 0"):
        next(batches)
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert set(threading.enumerate()) <= before
    with pytest.raises(StopIteration):
        next(batches)


def test_an_interrupted_start_leaves_no_thread(monkeypatch):
    starts = []

    def start(thread):
        if len(starts) == 2:
            raise KeyboardInterrupt
        starts.append(thread)
        plain(thread)

    plain = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt):
        iter(Loader(Squares(50), num_workers=3))
    gc.collect()  # the traceback holds the pool
    for thread in starts:
        thread.join(5)
        assert not thread.is_alive()


def test_workers_end_with_their_iterator():
    before = set(threading.enumerate())

    def workers():
        return set(threading.enumerate()) - before

    batches = iter(Loader(Squares(50), num_workers=3))
    next(batches)
    assert len(workers()) == 3
    del batches
    for thread in workers():
        thread.join(5)
    assert not workers()
    list(Loader(Squares(5), num_workers=2))
    for thread in workers():
        thread.join(5)
    assert not workers()
