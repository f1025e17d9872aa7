"""Loaders of every kind, left at every point, with workers that raise, die and are killed."""

from __future__ import annotations

import contextlib
import gc
import itertools
import multiprocessing
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import tritensor as torch
from tritensor.utils.data import DataLoader, Dataset

from .scenarios import HAS_FORK, scenario


class Numbers(Dataset[Any]):
    """Rows that hold their own number; one may raise, and one may end the worker."""

    def __init__(self, size: int, raises: int = -1, dies: int = -1) -> None:
        self.size, self.raises, self.dies = size, raises, dies

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        if index == self.raises:
            raise ValueError(f"number {index}")
        if index == self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((200,), float(index)), index


def workers() -> list[int]:
    """The process numbers of the workers that this process has."""
    children = multiprocessing.active_children()
    return [child.pid for child in children if child.pid and child.name.startswith("DataLoader worker")]


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait until something is so; whether it was in time."""
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return found


def check(batch: Any) -> list[int]:
    """The numbers of a batch, whose rows are as they should be."""
    rows, numbers = batch
    assert (rows == numbers.float().unsqueeze(1)).all(), "a row is of another batch"
    found: list[int] = numbers.tolist()
    return found


@scenario(HAS_FORK)
def loops(rng: random.Random) -> Counter[str]:
    """Whole loops, loops that are left, and loops with an example that raises."""
    size, count = rng.randint(1, 40), rng.randint(0, 3)
    options: dict[str, Any] = {"batch_size": rng.randint(1, 7), "shuffle": rng.random() < 0.5, "num_workers": count}
    if count:
        options["multiprocessing_context"] = rng.choice(["fork", "fork", "thread"])
        options["persistent_workers"] = rng.random() < 0.5
        options["prefetch_factor"] = rng.randint(1, 4)
        options["in_order"] = rng.random() < 0.8
    raises = rng.randrange(size) if rng.random() < 0.3 else -1
    loader = DataLoader(Numbers(size, raises), **options)
    tried: Counter[str] = Counter()
    for _ in range(3):
        seen: list[int] = []
        held: list[Any] = []
        leave = rng.randrange(size) if rng.random() < 0.3 else size + 1
        batches = iter(loader)
        for _ in itertools.count():
            if len(seen) > leave:
                tried["loops that were left"] += 1
                break
            try:
                batch = next(batches)
            except StopIteration:
                missing = set(range(size)) - set(seen)
                assert len(seen) + len(missing) == size, "an example came twice"
                lost = len(missing) > (options["batch_size"] if raises >= 0 else 0)
                assert not lost and (raises < 0 or raises in missing), "an example is lost"
                tried["whole loops"] += 1
                break
            except ValueError:
                tried["errors of workers"] += 1
                continue
            seen += check(batch)
            if rng.random() < 0.3:
                held.append(batch)
        for batch in held:
            check(batch)
    del loader, batches, held
    gc.collect()
    assert wait_for(lambda: not workers()), "a worker is left"
    return tried


@scenario(HAS_FORK)
def killed_workers(rng: random.Random) -> Counter[str]:
    """A worker that is killed by itself or by somebody else is named; nothing hangs."""
    size = rng.randint(6, 20)
    batches = iter(DataLoader(Numbers(size, dies=rng.randrange(size)), num_workers=2))
    start = time.monotonic()
    try:
        if rng.random() < 0.5:
            next(batches, None) if rng.random() < 0.2 else None
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(workers()), rng.choice([signal.SIGKILL, signal.SIGTERM]))
        for batch in batches:
            check(batch)
    except RuntimeError as error:
        if "is killed by signal" not in str(error):
            raise
    else:
        raise AssertionError("a killed worker was not noticed")
    assert time.monotonic() - start < 10, "it took too long"
    assert wait_for(lambda: not workers()), "a worker is left"
    return Counter({"killed workers": 1})


@scenario(HAS_FORK)
def forks(rng: random.Random) -> Counter[str]:
    """A fork while other threads compute: the child computes, loads and ends."""
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            (torch.randn(100, requires_grad=True) * 2).sum().backward()

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            child = os.fork()
            if child == 0:
                status = 1
                with contextlib.suppress(BaseException):
                    x = torch.randn(300, 300, requires_grad=True)
                    (x @ x).sum().backward()
                    seen = [check(batch) for batch in DataLoader(Numbers(4), num_workers=rng.randint(0, 1))]
                    status = 0 if len(seen) == 4 else 2
                os._exit(status)
            deadline = time.monotonic() + 30
            while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
                assert time.monotonic() < deadline, "a forked process hangs"
                time.sleep(0.005)
            assert ended == (child, 0), f"a forked process ended with {ended[1]}"
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return Counter({"forks": 3})


@scenario()
def spawned(rng: random.Random) -> Counter[str]:
    """Workers that are spawned."""
    loader = DataLoader(Numbers(rng.randint(1, 9)), num_workers=1, multiprocessing_context="spawn")
    seen = [number for batch in loader for number in check(batch)]
    assert seen == list(range(len(loader.dataset)))
    return Counter({"spawned workers": 1})
