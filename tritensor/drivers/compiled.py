"""Simulated devices that run compiled kernels: the PTX that Triton makes for a card, executed in NumPy."""

# ruff: noqa: D102  the docstrings in protocol.py and compiling.py describe these methods

from __future__ import annotations

import math
import struct
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import settings
from ..errors import DeviceError
from .compiling import CompilingDriver
from .lines import arranged
from .loading import Compiled, Loaded, Target
from .ptx.machine import run
from .ptx.memory import Memory
from .ptx.parse import Kernel, parse
from .ptx.races import Watched
from .shadow import views_of
from .simulator import Queue, Simulator

if TYPE_CHECKING:
    from .loading import LaunchRequest
    from .streams import Stream


class CompiledSimulator(CompilingDriver, Simulator):
    """The driver of simulated devices that run PTX."""

    kind = "simulated in host memory, running compiled kernels"
    repeats_calls = False

    def pose(self, **figures: Any) -> dict[str, Any]:
        """Give the devices other properties, as of a certain card; returns those that they had.

        Kernels that divide work among the multiprocessors are launched as on that card.
        """
        before = {name: getattr(self._properties, name) for name in figures}
        self._properties = replace(self._properties, **figures)
        return before

    def target(self, index: int) -> Target:
        major, minor = self.capability(index)
        return "cuda", major * 10 + minor

    def load(self, index: int, compiled: Compiled, label: str) -> Loaded:
        return executed(self, compiled, label)

    def launch(self, stream: Stream, request: LaunchRequest) -> None:
        if self.shadow is not None:
            self.shadow.views = views_of(request)
        super().launch(stream, request)

    def refused(self, label: str, error: Exception) -> DeviceError:
        return DeviceError(f"CUDA error: launch failure at the launch of {label}", str(error))


def executed(driver: Simulator, compiled: Compiled, label: str) -> Loaded:
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

    def launch(queue: Queue, grid: tuple[int, int, int], kernel: Kernel, *values: Any) -> None:
        _enqueue(driver, queue, grid, kernel, values, compiled)

    return Loaded(
        kernel, launch, lambda grid: grid, None, (compiled.global_scratch_size, compiled.profile_scratch_size)
    )


def _enqueue(
    driver: Simulator,
    queue: Queue,
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
            launch = partial(run, kernel, grid, numbers, memory, compiled.shared, driver.seed, lazy, counters, blocks)
            (launch if watched is None else watched(launch))()

        if driver.recorder is None:
            execute()
        else:
            driver.recorder.record(compiled, grid, numbers, queue, memory.spans, execute)

    driver.submit_to(queue, work)
