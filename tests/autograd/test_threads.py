"""Backward passes in several threads at once."""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

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


def interrupted(work: Callable[[], None], functions: set[str], instant: int) -> bool:
    """Run work with an interrupt after one of the calls in some functions, where Python looks for signals; returns
    whether there were so many calls."""
    left = instant
    called = False

    def each(frame: Any, event: str, _: Any) -> Any:
        nonlocal left, called
        if event == "opcode":
            if called and left == 0:
                left = -1
                raise KeyboardInterrupt
            left -= called
            called = dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("CALL")
        return each

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_name not in functions or not frame.f_code.co_filename.endswith("leaves.py"):
            return None
        frame.f_trace_opcodes = True
        sys.settrace(trace)  # or Python 3.12 tells of no instruction in the function's first call
        return each

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_does_not_stop_other_threads() -> None:
    x, ones = torch.zeros(3, requires_grad=True), torch.ones(3)
    for instant in range(1000):
        if not interrupted(lambda: (x * ones).backward(ones), {"_finish_leaf", "accumulate", "_added"}, instant):
            break
        other = threading.Thread(target=lambda: (x * ones).backward(ones), daemon=True)
        other.start()
        other.join(10)
        assert not other.is_alive(), f"a lock is taken after an interrupt at instant {instant}"
    assert instant > 5
