"""Simulated devices that run compiled kernels: the PTX that Triton makes for a card, executed in NumPy."""

# ruff: noqa: D102  the docstrings in protocol.py and compiling.py describe these methods

from __future__ import annotations

import math
import struct
from contextlib import nullcontext
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
from .shadow import View, views_of
from .simulator import Queue, Simulator

if TYPE_CHECKING:
    from .loading import LaunchRequest
    from .streams import Stream


class CompiledSimulator(CompilingDriver, Simulator):
    """The driver of simulated devices that run PTX.

    Attributes:
        seed: of the errors of instructions that a card executes approximately.
        recorder: what runs launches in the device's place to count their work (`profiling.profile`), or None.
    """

    kind = "simulated in host memory, running compiled kernels"
    repeats_calls = False

    def __init__(
        self,
        count: int,
        memory: int = 16 << 30,
        capability: tuple[int, int] = (9, 0),
        name: str | None = None,
        races: bool | None = None,
    ) -> None:
        super().__init__(count, memory, capability, name, races)
        self.seed = 0
        self.recorder: Any = None
        self._views: list[View] = []  # of the launch that is being added

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
        if not compiled.ptx:
            raise DeviceError(f"{label}: the compiled kernel has no PTX to run")
        kernel = parse(compiled.ptx)

        def launch(queue: Queue, grid: tuple[int, int, int], kernel: Kernel, *values: Any) -> None:
            self._enqueue(queue, grid, kernel, values, compiled)

        scratch = compiled.global_scratch_size, compiled.profile_scratch_size
        return Loaded(kernel, launch, lambda grid: grid, None, scratch)

    def refused(self, label: str, error: Exception) -> DeviceError:
        return DeviceError(f"CUDA error: launch failure at the launch of {label}", str(error))

    def launch(self, stream: Stream, request: LaunchRequest) -> None:
        if self.shadow is not None:
            self._views = views_of(request)
        try:
            super().launch(stream, request)
        finally:
            self._views = []

    def _enqueue(
        self, queue: Queue, grid: tuple[int, int, int], kernel: Kernel, values: tuple[Any, ...], compiled: Compiled
    ) -> None:
        numbers = [
            struct.unpack("<q", struct.pack("<d", value))[0] if isinstance(value, float) else value for value in values
        ]
        # as of interpreted kernels: a late one may run when buffers that it uses have been freed behind it
        late = settings.simulate_late.value
        live = self.spans(queue.index) if late and queue.captured is None else None

        watched = None if self.shadow is None else partial(self.shadow.launch, math.prod(grid), self._views)
        order = settings.grid_order.value

        def work() -> None:
            spans = self.spans(queue.index) if live is None else live
            memory = Memory(spans) if self.shadow is None else Watched(spans, self.shadow)

            def execute(counters: Any = None, blocks: Any = None) -> None:
                if blocks is None and order != "forward":
                    blocks = np.array(arranged(range(math.prod(grid)), order))
                strict = late or self.shadow is not None
                with watched() if watched else nullcontext():
                    run(kernel, grid, numbers, memory, compiled.shared, self.seed, strict, counters, blocks)

            if self.recorder is None:
                execute()
            else:
                self.recorder.record(compiled, grid, numbers, queue, memory.spans, execute)

        self._push(queue, work)
