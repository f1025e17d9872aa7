"""Profile a program: its calls of public functions, their times and lines, as tables and timelines.

`tritensor.cuda.profile` counts what kernels ask of a card.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from enum import Enum
from functools import partial
from typing import Any

from . import cuda
from .autograd import profiler
from .autograd.profiler import EventList, FunctionEvent, record_function
from .errors import require
from .operators import deferring

__all__ = ["EventList", "FunctionEvent", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile"]
__all__ += ["record_function", "schedule", "supported_activities", "tensorboard_trace_handler"]


class ProfilerActivity(Enum):
    """The activities that are measured: the time of the host, and of devices."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """The actions of a profiler in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """True: `profile` works."""
    return True


def supported_activities() -> set[ProfilerActivity]:
    """The host, and CUDA devices where there are any."""
    return {ProfilerActivity.CPU} | ({ProfilerActivity.CUDA} if cuda.is_available() else set())


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """A schedule for `profile`: cycles of steps, of which some wait, some warm up, and some are recorded.

    >>> import tritensor as torch
    >>> cycle = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [cycle(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']

    Raises:
        AssertionError: a number is negative, or `active` is 0.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step -= skip_first - (wait if skip_first_wait else 0)
        cycle, place = divmod(step, wait + warmup + active)
        if step < 0 or (repeat and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < wait + warmup + active - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """A function for `on_trace_ready` that writes each timeline to a file in a folder, by the name of the worker."""

    def write(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' * use_gzip}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write


def _mark() -> cuda.Event:
    event = cuda.Event(enable_timing=True)
    with deferring.paused():  # or what is noted would be computed here, and not together
        event.record()
    return event


def _between(start: cuda.Event, end: cuda.Event) -> float:
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3


class profile:
    """Record the calls of public functions in a block: names, times, and if wanted shapes, memory and lines.

    >>> import tritensor as torch
    >>> x = torch.ones(2, 3, requires_grad=True)
    >>> with torch.profiler.profile(record_shapes=True) as p:
    ...     (x @ x.T).sum().backward()
    >>> p.events()[0].name.rpartition(":")[2], p.events()[0].input_shapes
    ('matmul', [[2, 3], [3, 2]])
    >>> print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=5))  # doctest: +SKIP

    Args:
        activities: `ProfilerActivity.CPU`, and `CUDA` to measure each call's time on the current device, too; all that
            are there by default.
        schedule: which steps are recorded, see `schedule`; the program says `step()` at the end of each.
        on_trace_ready: called with the profiler when steps were recorded.
        record_shapes, profile_memory, with_stack: keep the inputs' shapes, the results' bytes, the program's lines.
        acc_events: keep the events of earlier cycles.
        with_flops, with_modules, experimental_config, execution_trace_observer: accepted.

    Raises:
        AssertionError: no activity. RuntimeError: another profiler runs.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        acc_events: bool = False,
        **more: object,
    ) -> None:
        chosen = supported_activities() if activities is None else set(activities)
        require(chosen, AssertionError, "No valid profiler activities found")
        self.activities, self.step_num, self.on_trace_ready = chosen, 0, on_trace_ready
        how = {"record_shapes": record_shapes, "profile_memory": profile_memory, "with_stack": with_stack}
        self._recorders = partial(profiler.profile, use_device=None, **how)
        self._schedule, self._keeps, self._open = schedule, acc_events, ExitStack()
        self._recorder: profiler.profile | None = None
        self._events, self._metadata = EventList(), dict[str, Any]()
        self.current_action = ProfilerAction.RECORD if schedule is None else schedule(0)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the first step."""
        if self.current_action.value >= ProfilerAction.RECORD.value and self._recorder is None:
            recorder = self._recorders()
            if ProfilerActivity.CUDA in self.activities and cuda.is_available():
                recorder.marks = _mark, _between
            self._recorder = recorder.__enter__()
        if self._schedule is not None:
            self._open.enter_context(record_function(f"ProfilerStep#{self.step_num}"))

    def step(self) -> None:
        """Say that the program's next step begins."""
        self._open.close()
        before, self.step_num = self.current_action, self.step_num + 1
        if self._schedule is not None:
            self.current_action = self._schedule(self.step_num)
        if before is not ProfilerAction.RECORD or self.current_action.value < ProfilerAction.RECORD.value:
            self.stop()
        self.start()

    def stop(self) -> None:
        """End, and pass on what was recorded since the last time."""
        self._open.close()
        if self._recorder is not None:
            self._recorder.__exit__()
            found, self._recorder = self._recorder.function_events, None
            if self._keeps:
                found[:0] = self._events
            self._events = found
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def events(self) -> EventList:
        """The events that were recorded, in the order in which they began."""
        return self._events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """One event for all of a name, see `EventList`."""
        return self._events.key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a timeline that trace viewers open: Perfetto, chrome://tracing."""
        self._events.export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write the program's lines with their time, in the form that flame graphs are made of; needs `with_stack`."""
        with open(path, "w", encoding="utf-8") as file:
            for each in self._events:
                value = int(getattr(each, metric))
                if each.stack and value > 0:
                    file.write(f"{';'.join(line.replace(' ', '_') for line in reversed(each.stack))} {value}\n")

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the timeline's file."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a value in JSON's form to the timeline's file."""
        self._metadata[key] = json.loads(value)
