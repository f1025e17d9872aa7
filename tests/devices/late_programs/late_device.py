"""Two devices where nothing runs before something waits for it, and what the programs on them use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from tritensor import cuda, settings
from tritensor.drivers import require
from tritensor.drivers.allocator import PinnedPool
from tritensor.drivers.selection import lacks_native
from tritensor.memory import copies
from tritensor.memory.array import DeviceArray
from tritensor.types import devices

from ...runtime.interpreted_device import interpreted_device

MEMORY = 8 << 20
ON_STUB = bool(os.environ.get("STUB_LATE"))
KINDS = ["stub"] if ON_STUB else ["interpreter", *["native"] * (not lacks_native()), "real"]
CUDA0, CUDA1 = devices.cuda(0), devices.cuda(1)
A, B = np.arange(64, dtype=np.float32), np.full(64, -7, np.float32)
LARGE = 300_000  # floats; above the size from which pinned memory is read in place


registered: list[Callable[[], None]] = []


def program(function: Callable[[], None]) -> Callable[[], None]:
    """A program that has to give the right answer."""
    registered.append(function)
    return function


@contextmanager
def late(kind: str) -> Iterator[None]:
    """Two devices of 8 MiB where nothing runs before somebody waits for it."""
    with ExitStack() as stack:
        if kind == "stub":
            stack.enter_context(settings.simulate_cuda(0))
            for index in range(2):
                driver = require()
                driver.set_current_stream(driver.default_stream(index))
            cuda.empty_cache()
            driver.pinned = PinnedPool(driver)
        else:
            stack.enter_context(settings.simulate_late(True))
            if kind != "real":
                stack.enter_context(cuda.simulate(devices=2, memory=MEMORY, engine=kind))
            else:
                driver = stack.enter_context(interpreted_device(2))
                object.__setattr__(driver.properties(0), "total_memory", MEMORY)
        yield


def on_device(array: np.ndarray = A, where: Any = CUDA0) -> DeviceArray:
    """The array in a device's memory, where it has arrived."""
    made = copies.from_host(array, where)
    require().synchronize(where.index)
    return made


def check(found: Any, expected: np.ndarray = A) -> None:
    if isinstance(found, DeviceArray):
        found = copies.to_host(found)
    np.testing.assert_array_equal(found, expected)


def set_bytes(stream: cuda.Stream, array: DeviceArray, byte: int) -> None:
    """Write to an array in a stream that its memory does not know of."""
    require().fill(array.data_ptr(), byte, array.nbytes, stream.handle)


def first_byte(array: DeviceArray) -> int:
    """What the default stream, which is waited for, finds in an array."""
    driver = require()
    host, queue = driver.allocate_pinned(array.nbytes), driver.default_stream(0).handle
    driver.copy_d2h(host, array.data_ptr(), queue)
    driver.queue_synchronize(queue)
    return int(host[0])


def default() -> cuda.Stream:
    return cuda.default_stream(0)
