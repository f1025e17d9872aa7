"""Workers of the loader that are processes: what they make, what they raise, and the memory they share."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import random
import sys
import time

import numpy as np
import pytest

import tritensor as torch
from tritensor.utils import data
from tritensor.utils.data import DataLoader

from .processes import mapped, wait_for, workers
from .sources import Dying, Failing, Raising, Squares, Stream, lists

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="classes of a test file reach workers by a fork"),
    pytest.mark.usefixtures("nothing_is_left"),
]


class Numbers(Squares):
    """Arrays that are large enough to be shared."""

    def __getitem__(self, index):
        return torch.full((500,), float(index)), np.full(300, index), {"name": f"number {index}"}


# ---- batches --------------------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["fork", "spawn", "forkserver", "a context"])
@pytest.mark.parametrize("count", [1, 3])
def test_batches_are_those_of_no_workers(name, count):
    method = multiprocessing.get_context("fork") if name == "a context" else name
    plain = DataLoader(Squares(20), batch_size=3)
    loader = DataLoader(Squares(20), batch_size=3, num_workers=count, multiprocessing_context=method)
    assert lists(loader) == lists(plain) and len(iter(loader)) == 7


def test_every_kind_of_batch_crosses():
    def collate(examples):
        x = torch.arange(2000.0).reshape(20, 100)
        return {
            "plain": x,
            "turned": x.t(),
            "spaced": x[::2, ::3],
            "half": x.bfloat16(),
            "small": torch.tensor([1, 2]),
            "number": torch.tensor(1.5),
            "empty": torch.ones(0, 3),
            "leaf": torch.ones(300, requires_grad=True),
            "twice": [x, x],
            "array": np.asfortranarray(x.numpy()),
            "words": ["a" * 10_000, None, 3.5, (1, 2)],
            "objects": np.array([None, {}], dtype=object),
            "read-only": np.broadcast_to(np.float32(2), (500,)),
        }

    loader = DataLoader(Squares(4), batch_size=4, collate_fn=collate)
    (expected,) = loader
    (found,) = DataLoader(Squares(4), batch_size=4, collate_fn=collate, num_workers=1)
    for key, value in expected.items():
        np.testing.assert_equal(repr(found[key]), repr(value))
    assert found["turned"].stride() == expected["turned"].stride() and found["leaf"].requires_grad
    assert found["twice"][0] is found["twice"][1]
    assert found["array"].flags.f_contiguous and found["array"].flags.writeable
    found["plain"].mul_(2)  # the memory is ours now


def test_memory_is_used_again_and_not_too_early():
    kept, first = [], None
    for number, (tensor, array, names) in enumerate(DataLoader(Numbers(200), batch_size=4, num_workers=2)):
        assert names["name"] == [f"number {4 * number + each}" for each in range(4)]
        if number % 10 == 0:
            kept.append((number, tensor, array[1]))
        first = first or mapped()
    assert mapped() <= 8 * first
    for number, tensor, array in kept:
        assert tensor[:, 7].tolist() == [4.0 * number + each for each in range(4)]
        assert array.tolist() == [4 * number + 1] * 300


def test_all_batches_may_be_held():
    held = list(DataLoader(Numbers(600), num_workers=2))
    assert [tensor[0, 3].item() for tensor, _, _ in held] == list(range(600))
    assert len(os.listdir("/proc/self/fd")) < 100 if sys.platform == "linux" else True


def test_tasks_and_batches_larger_than_a_pipe():
    class Wide(Squares):
        def __getitems__(self, indices):
            return [("x" * 100, index) for index in indices]

    size = 200_000
    loader = DataLoader(Wide(size * 6), batch_size=size, num_workers=2, collate_fn=list, prefetch_factor=3)
    assert [len(batch) for batch in loader] == [size] * 6


def test_streams_are_shared_out():
    found = lists(DataLoader(Stream(20), batch_size=3, num_workers=3))
    assert sorted(itertools.chain.from_iterable(found)) == list(range(20))


def test_batches_as_they_are_finished():
    class Uneven(Squares):
        def __getitem__(self, index):
            if index == 0:
                time.sleep(0.3)
            return index

    loader = DataLoader(Uneven(9), batch_size=None, num_workers=2, in_order=False)
    found = list(loader)
    assert sorted(found) == list(range(9)) and found[0] != 0
    assert list(DataLoader(Uneven(9), batch_size=None, num_workers=2)) == list(range(9))


def test_a_gradients_history_is_refused_in_pytorchs_words():
    class Recorded(Squares):
        def __getitem__(self, index):
            return torch.ones(2, requires_grad=True) * index

    with pytest.raises(RuntimeError, match=r"^Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        next(iter(DataLoader(Recorded(), batch_size=None, num_workers=1)))


# ---- who the workers are -----------------------------------------------------------------------------------------


class Asking(Squares):
    def __getitem__(self, index):
        info = data.get_worker_info()
        draws = random.random(), float(np.random.random()), torch.rand(1).item()  # noqa: NPY002
        return info.id, info.num_workers, info.seed, os.getpid(), torch.get_num_threads(), draws


def asked(**options):
    made = DataLoader(Asking(6), batch_size=None, num_workers=2, **options)
    return [info[:3] + info[4:] for info in made]


def test_workers_know_who_they_are_and_have_seeds_of_their_own():
    found = asked(generator=torch.Generator().manual_seed(3))
    assert found == asked(generator=torch.Generator().manual_seed(3))
    assert found != asked(generator=torch.Generator().manual_seed(4))
    assert [each[:2] for each in found] == [[0, 2], [1, 2]] * 3
    assert found[1][2] == found[0][2] + 1 and found[0][3] == 1
    assert not set(found[0][4]) & set(found[1][4])
    assert data.get_worker_info() is None


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_worker_starts_no_threads_of_a_library():
    """OpenBLAS starts its threads when it is told a number; they keep a processor busy for a while."""
    loader = DataLoader(Squares(1), num_workers=1, collate_fn=lambda _: len(os.listdir("/proc/self/task")))
    assert list(loader) == [2], "a worker's own thread, and the one that watches its parent"


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_without_a_task_start_too(tmp_path, persistent):
    def note(worker):
        (tmp_path / str(worker)).touch()

    loader = DataLoader(Squares(2), num_workers=4, worker_init_fn=note, persistent_workers=persistent)
    assert lists(loader) == [[0], [1]]
    assert wait_for(lambda: len(os.listdir(tmp_path)) == 4)
    assert lists(loader) == [[0], [1]]


def test_worker_init_fn_runs_in_each_worker():
    def note(worker):
        data.get_worker_info().dataset.size = 100 + worker

    class Sized(Squares):
        def __getitem__(self, index):
            return self.size

    dataset = Sized(4)
    assert list(DataLoader(dataset, batch_size=None, num_workers=2, worker_init_fn=note)) == [100, 101, 100, 101]
    assert dataset.size == 4


# ---- what they raise ---------------------------------------------------------------------------------------------


class Custom(Exception):
    def __init__(self, first, second):  # pickle calls it with one argument
        super().__init__(f"{first} and {second}")


ERRORS = {
    "KeyError": KeyError("number three"),
    "OSError": FileNotFoundError(2, "no such file", "three.png"),
    "SystemExit": SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt("three"),
    "GeneratorExit": GeneratorExit("three"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_whatever_a_worker_raises_is_raised_in_the_loop(name):
    error = ERRORS[name]
    batches = iter(DataLoader(Raising(6, {3: error}), batch_size=2, num_workers=2))
    assert next(batches).tolist() == [0, 1]
    with pytest.raises(type(error)) as caught:
        next(batches)
    assert caught.value.args == error.args
    (note,) = caught.value.__notes__
    assert note.startswith(f"Caught {type(error).__name__} in DataLoader worker process 1.\nOriginal Traceback (most ")
    assert "in __getitem__\n    raise self.errors[index]" in note
    assert next(batches).tolist() == [4, 5]
    assert list(batches) == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Custom("a", "b"), r"^Caught Custom in DataLoader worker process 1\.\nOriginal Traceback[^$]*a and b"),
        (ValueError(lambda: None), r"^Caught ValueError in DataLoader worker process 1\.\nOriginal Traceback"),
        (StopIteration(), "^the dataset raised StopIteration"),
    ],
)
def test_errors_that_cannot_be_sent_and_those_that_would_end_the_loop(error, words):
    batches = iter(DataLoader(Raising(6, {3: error}), batch_size=2, num_workers=2))
    assert next(batches).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match=words):
        next(batches)
    assert next(batches).tolist() == [4, 5]


def test_stop_iteration_of_a_dataset_is_an_error_without_workers_too():
    with pytest.raises(RuntimeError, match=r"^the dataset raised StopIteration"):
        list(DataLoader(Raising(6, {3: StopIteration()})))


def test_a_batch_that_cannot_be_sent():
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        next(iter(DataLoader(Squares(4), num_workers=1, collate_fn=lambda examples: lambda: None)))


def test_a_batch_that_cannot_be_read():
    class Mine:
        def __reduce__(self):
            return int, ("no number",)

    with pytest.raises(ValueError, match="invalid literal"):
        next(iter(DataLoader(Squares(4), num_workers=1, collate_fn=lambda examples: Mine())))


def test_a_worker_that_cannot_start():
    def broken(worker):
        raise OSError(f"no room for {worker}")

    batches = iter(DataLoader(Squares(), num_workers=2, worker_init_fn=broken))
    with pytest.raises(OSError, match="no room for 0"):
        next(batches)
    assert not workers()


def test_an_interrupted_start_leaves_no_process(monkeypatch):
    context = multiprocessing.get_context("fork")
    started = []

    class Third(context.Process):
        def start(self):
            if len(started) == 2:
                raise KeyboardInterrupt
            super().start()
            started.append(self)

    monkeypatch.setattr(type(context), "Process", Third)
    with pytest.raises(KeyboardInterrupt):
        iter(DataLoader(Squares(50), num_workers=3))
    assert wait_for(lambda: not any(process.is_alive() for process in started))


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("device", [None, "cpu"])
def test_a_sampler_that_raises_loses_no_batch(count, device):
    def indices():
        yield from range(5)
        raise ValueError("the sampler's")

    batches = iter(DataLoader(Squares(9), sampler=indices(), num_workers=count, device=device))
    assert [next(batches).item() for _ in range(5)] == [0, 1, 4, 9, 16]
    with pytest.raises(ValueError, match="the sampler's"):
        next(batches)
    assert list(batches) == []


def test_an_error_is_due_after_the_batch_before_it_also_if_batches_are_moved_ahead():
    batches = iter(DataLoader(Raising(6, {3: SystemExit(3)}), num_workers=1, device="cpu"))
    assert [next(batches).item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(SystemExit):
        next(batches)
    assert [batch.item() for batch in batches] == [4, 5]


# ---- persistent workers ------------------------------------------------------------------------------------------


class Processes(Squares):
    def __getitem__(self, index):
        return index, os.getpid()


def test_persistent_workers_stay():
    loader = DataLoader(Processes(6), batch_size=None, num_workers=2, persistent_workers=True)
    first, second = list(loader), list(loader)
    assert first == second and [index for index, _ in first] == list(range(6))
    again = iter(loader)
    next(again)  # a pass that is left
    assert list(loader) == first
    with pytest.raises(RuntimeError, match="the loader's workers have begun another pass"):
        next(again)
    copied = pickle.loads(pickle.dumps(DataLoader(Squares(3), num_workers=1, persistent_workers=True)))
    assert lists(copied) == [[0], [1], [4]]
    plain = DataLoader(Processes(6), batch_size=None, num_workers=2)
    assert not {pid for _, pid in plain} & {pid for _, pid in plain}


def test_persistent_workers_begin_a_stream_anew():
    loader = DataLoader(Stream(9), batch_size=2, num_workers=2, persistent_workers=True)
    expected = lists(loader)
    assert lists(loader) == expected
    assert next(iter(loader)).tolist() == expected[0]
    assert lists(loader) == expected


def test_persistent_workers_that_died_are_started_anew():
    loader = DataLoader(Dying(9, lambda: os._exit(1)), num_workers=1, persistent_workers=True)
    for _ in range(2):
        batches = iter(loader)
        assert [next(batches).item() for _ in range(3)] == [0, 1, 2]
        with pytest.raises(RuntimeError, match="exited unexpectedly"):
            next(batches)


def test_the_order_without_workers_is_that_with_them():
    def order(count):
        generator = torch.Generator().manual_seed(1)
        return lists(DataLoader(Failing(3), shuffle=True, num_workers=count, generator=generator))

    assert order(0) == order(2)
