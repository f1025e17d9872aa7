"""Compiled kernels on simulated devices: the PTX that Triton made for a card, executed in NumPy."""

from __future__ import annotations

import math
import struct
from functools import partial
from typing import Any

import numpy as np

from .. import settings
from ..errors import DeviceError
from .lines import arranged
from .loading import Compiled, Loaded
from .ptx.machine import run
from .ptx.memory import Memory
from .ptx.parse import Kernel, parse
from .ptx.races import Watched
from .together import refuse_more

__all__ = ["executed"]


def executed(driver: Any, compiled: Compiled, label: str) -> Loaded:
    """A kernel whose PTX is executed in the memory of simulated devices."""
    if not compiled.ptx:
        raise DeviceError(f"{label}: the compiled kernel has no PTX to run")
    if compiled.ctas > 1:
        raise DeviceError(
            f"{label}: a simulated device runs no clusters of blocks",
            f"the kernel was compiled for num_ctas={compiled.ctas}",
            remedy="launch it with num_ctas=1, or on a GPU",
        )
    kernel = parse(compiled.ptx)

    def configure(grid: tuple[int, int, int]) -> tuple[int, int, int]:
        if compiled.cooperative:
            refuse_more(label, math.prod(grid), driver.properties(0), compiled)
        return grid

    def launch(queue: Any, grid: tuple[int, int, int], kernel: Kernel, *values: Any) -> None:
        _enqueue(driver, queue, grid, kernel, values, compiled)

    return Loaded(kernel, launch, configure, None, (compiled.global_scratch_size, compiled.profile_scratch_size))


def _enqueue(
    driver: Any,
    queue: Any,
    grid: tuple[int, int, int],
    kernel: Kernel,
    values: tuple[Any, ...],
    compiled: Compiled,
) -> None:
    numbers = [
        struct.unpack("<q", struct.pack("<d", value))[0] if isinstance(value, float) else value for value in values
    ]
    # as of interpreted kernels: a late one may run when buffers that it uses have been freed behind it
    late = settings.simulate_late.value
    live = driver.spans(queue.index) if late and queue.captured is None else None

    order, shadow = settings.grid_order.value, driver.shadow
    # what nothing waits for has to be missing, or it would not be found
    lazy = late or shadow is not None
    watched = shadow.launching(math.prod(grid)) if shadow is not None else None

    def work() -> None:
        spans = driver.spans(queue.index) if live is None else live
        memory = Memory(spans) if shadow is None else Watched(spans, shadow)

        def execute(counters: Any = None, blocks: Any = None) -> None:
            if blocks is None and order != "forward":
                blocks = np.array(arranged(range(math.prod(grid)), order))
            facts = compiled.shared, driver.seed, lazy, counters, blocks, compiled.cooperative
            launch = partial(run, kernel, grid, numbers, memory, *facts)
            (launch if watched is None else watched(launch))()

        if driver.recorder is None:
            execute()
        else:
            driver.recorder.record(compiled, grid, numbers, queue, memory.spans, execute)

    driver.submit_to(queue, work)
