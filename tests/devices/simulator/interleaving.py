"""Threads whose steps interleave in the same way every time, on a machine without devices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tritensor import settings
from tritensor.drivers import selection

PATIENCE = 60  # seconds until a thread that waits for another one gives up


def at_once(*functions: Callable[[], Any]) -> list[Any]:
    """What the functions return, each called in a thread of its own; raises what one of them raised."""
    results: list[Any] = [None] * len(functions)
    errors: list[BaseException] = []

    def call(position: int) -> None:
        try:
            results[position] = functions[position]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(position,), daemon=True) for position in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a thread hangs"
    for error in errors:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    assert not errors
    return results


class Steps:
    """`steps()` returns when all threads have called it, so that what they do interleaves the same way every time."""

    def __init__(self, count: int) -> None:
        self.barrier = threading.Barrier(count, timeout=PATIENCE)

    def __call__(self) -> None:
        self.barrier.wait()


@contextmanager
def no_devices() -> Iterator[None]:
    """The block's machine has no devices, whatever this one has."""
    with pytest.MonkeyPatch.context() as patch, settings.simulate_cuda(0):
        patch.setattr(selection, "_asked", True)
        patch.setattr(selection, "_real", None)
        patch.setattr(selection, "_missing", ["Found no NVIDIA driver on your system."])
        yield
