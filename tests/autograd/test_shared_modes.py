"""One object of every context manager, entered by many threads at once: each thread has its own mode."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as torch

THREADS = 8


def grad() -> tuple[bool, bool]:
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


def casting() -> tuple[bool, Any]:
    return torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")


def default_device() -> torch.device:
    return torch.get_default_device()


def current_device() -> int:
    return torch.cuda.current_device()


SHARED: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "no_grad": (torch.no_grad, grad),
    "enable_grad": (torch.enable_grad, grad),
    "inference_mode": (torch.inference_mode, grad),
    "set_grad_enabled": (lambda: torch.set_grad_enabled(False), grad),
    "autocast": (lambda: torch.autocast("cpu", torch.float16), casting),
    "autocast that is off": (lambda: torch.autocast("cpu", enabled=False), casting),
    "device": (lambda: torch.device("cuda", 1), default_device),
    "cuda.device": (lambda: torch.cuda.device(1), current_device),
}
OUTER: dict[Any, Callable[[int], Any]] = {  # the mode that a thread is in already, by its number
    grad: lambda number: torch.no_grad() if number % 2 else torch.enable_grad(),
    casting: lambda number: torch.autocast("cpu", torch.bfloat16, enabled=number % 2 == 1),
    default_device: lambda number: torch.device("cuda", 2) if number % 2 else torch.device("cpu"),
    current_device: lambda number: torch.cuda.device(2 * (number % 2)),
}


def in_threads(work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []
    all_there = threading.Barrier(THREADS)

    def run(number: int) -> None:
        try:
            all_there.wait(10)
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    if failures:
        raise failures[0]


def shared_by_threads(name: str, times: int) -> None:
    make, state = SHARED[name]
    with torch.cuda.simulate(devices=3) as simulation:
        mode = make()
        if name == "set_grad_enabled":
            torch.set_grad_enabled(True)
        with mode:
            inside = state()
        decorated = mode(state) if callable(mode) else None

        def work(number: int) -> None:
            with simulation.share(), OUTER[state](number):
                outside = state()
                for turn in range(times):
                    if turn % 3 == 0:
                        with mode:
                            assert state() == inside
                    elif turn % 3 == 1:
                        with mode, OUTER[state](number), mode:
                            assert state() == inside
                    else:
                        mode.__enter__()
                        assert state() == inside
                        mode.__exit__(None, None, None)
                    if decorated is not None and turn % 5 == 0:
                        assert decorated() == inside
                    assert state() == outside

        in_threads(work)


@pytest.mark.parametrize("name", SHARED)
def test_a_shared_object_gives_each_thread_its_own_mode(name: str) -> None:
    shared_by_threads(name, 300)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_a_shared_object_holds_in_a_long_loop(name: str) -> None:
    shared_by_threads(name, 20_000)


def test_set_grad_enabled_restores_the_mode_of_the_thread_that_is_in_it() -> None:
    mode = torch.set_grad_enabled(False)
    torch.set_grad_enabled(True)

    def work(number: int) -> None:
        torch.set_grad_enabled(number % 2 == 0)
        with mode:
            assert not torch.is_grad_enabled()
        assert torch.is_grad_enabled() is (number % 2 == 0)

    in_threads(work)
