"""Backward passes in several threads at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

import tritensor as torch


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(count: int, work: Callable[[], None]) -> None:
    """Run work in several threads that begin at once."""
    barrier = threading.Barrier(count)

    def run() -> None:
        barrier.wait()
        work()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize(("size", "times"), [(10, 200), (1000, 500), (200_000, 40)])
def test_no_gradient_of_a_shared_leaf_is_lost(size: int, times: int) -> None:
    x = torch.zeros(size, requires_grad=True)
    ones = torch.ones(size)

    def work() -> None:
        for _ in range(times):
            (x * ones).backward(ones)

    together(8, work)
    assert (x.grad == 8 * times).all()


@pytest.mark.usefixtures("quick_switches")
def test_no_first_gradient_is_lost() -> None:
    x, ones = torch.zeros(1, requires_grad=True), torch.ones(1)
    for _ in range(200):
        x.grad = None
        together(4, lambda: (x * 1).backward(ones))
        assert x.grad.item() == 4
