"""Events: what a program calls while a profiler runs, and tables and timelines of them.

Public functions are seen by a mode of `__torch_function__`, nodes of a backward pass by what the tape lets look at
them; neither is there while no profiler runs.
"""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

from ..ground import overriding
from . import watched
from .tape import Node, inside_package

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile", "record_function"]


class FunctionEvent:
    """One call, or in `key_averages` the calls of one name: times in microseconds, and bytes.

    Attributes:
        cpu_time_total, device_time_total: with what was called inside; `self_...` without.
        cpu_memory_usage, device_memory_usage: bytes of the results.
        input_shapes, stack: of the arguments, and the program's lines.
    """

    def __init__(self, name: str, start: int, thread: int, kind: str) -> None:
        self.name, self.start, self.end, self.thread, self.kind = name, start, 0, thread, kind
        self.cpu_parent: FunctionEvent | None = None
        self.count, self.input_shapes, self.stack = 1, list[Any](), list[str]()
        self.cpu_memory_usage = self.device_memory_usage = self.flops = 0
        self.cpu_time_total = self.device_time_total = self.self_cpu_time_total = self.self_device_time_total = 0.0
        self.self_cpu_memory_usage = self.self_device_memory_usage = 0
        self.marks: Any = None  # of the device, before and after

    @property
    def key(self) -> str:
        """The name by which events are one line of a table."""
        return "ProfilerStep*" if self.name.startswith("ProfilerStep#") else self.name

    is_user_annotation = property(lambda self: self.kind == "user_annotation", doc="True for a range.")
    cpu_time = property(lambda self: self.cpu_time_total / self.count, doc="Microseconds of one call.")
    device_time = property(lambda self: self.device_time_total / self.count, doc="Microseconds of one call.")

    def __getattr__(self, name: str) -> Any:
        if "cuda" in name:  # older names
            return getattr(self, name.replace("cuda", "device"))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def add(self, other: FunctionEvent) -> None:
        """Add the numbers of another event."""
        for name, value in vars(other).items():
            if name == "count" or name.endswith(("_total", "_usage")):
                setattr(self, name, getattr(self, name) + value)

    def __repr__(self) -> str:
        times = f"self_cpu_time={_time(self.self_cpu_time_total)} cpu_time={_time(self.cpu_time)}"
        return f"<{type(self).__name__} key={self.key} {times} input_shapes={self.input_shapes} count={self.count}>"


class EventList(list[FunctionEvent]):
    """Events in the order in which they began, with PyTorch's tables."""

    memory = device = False

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events."""
        return sum(each.self_cpu_time_total for each in self)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0) -> EventList:
        """One event for all of a name, or of a name, shapes and so many of the program's lines."""
        found: dict[Any, FunctionEvent] = {}
        for each in self:
            shapes, stack = each.input_shapes if group_by_input_shapes else [], each.stack[:group_by_stack_n]
            key = each.key, str(shapes), tuple(stack)
            if key not in found:
                found[key] = made = FunctionEvent(each.key, each.start, each.thread, each.kind)
                made.count, made.cpu_parent, made.input_shapes, made.stack = 0, each.cpu_parent, shapes, stack
            found[key].add(each)
        made_of = EventList(found.values())
        made_of.memory, made_of.device = self.memory, self.device
        return made_of

    def total_average(self) -> FunctionEvent:
        """All events as one."""
        total = FunctionEvent("Total", 0, 0, "cpu_op")
        total.count = 0
        for each in self:
            total.add(each)
        return total

    def __str__(self) -> str:
        return self.table()

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """A line for each event: names, times, and shapes, memory and lines of the program where they were recorded.

        Args:
            sort_by: the attribute of events whose largest comes first: "cpu_time_total", "self_cuda_memory_usage".
        """
        if not self:
            return ""
        events = list(self)
        if sort_by is not None:
            events.sort(key=lambda each: getattr(each, str(sort_by)), reverse=True)
        if top_level_events_only:
            events = [each for each in events if each.cpu_parent is None]
        whole, on_device = sum(x.self_cpu_time_total for x in self), sum(x.self_device_time_total for x in self)
        columns: list[tuple[str, Callable[[FunctionEvent], str]]] = [
            ("Self CPU %", lambda x: _share(x.self_cpu_time_total, whole)),
            ("Self CPU", lambda x: _time(x.self_cpu_time_total, time_unit)),
            ("CPU total %", lambda x: _share(x.cpu_time_total, whole)),
            ("CPU total", lambda x: _time(x.cpu_time_total, time_unit)),
            ("CPU time avg", lambda x: _time(x.cpu_time, time_unit)),
        ]
        if on_device:
            columns += [
                ("Self CUDA", lambda x: _time(x.self_device_time_total, time_unit)),
                ("Self CUDA %", lambda x: _share(x.self_device_time_total, on_device)),
                ("CUDA total", lambda x: _time(x.device_time_total, time_unit)),
                ("CUDA time avg", lambda x: _time(x.device_time, time_unit)),
            ]
        for name, kind in (("CPU", "cpu"), ("CUDA", "device"))[: self.memory + (self.memory and self.device)]:
            for title, attribute in ((f"{name} Mem", ""), (f"Self {name} Mem", "self_")):
                columns.append((title, partial(_memory_of, f"{attribute}{kind}_memory_usage")))
        columns.append(("# of Calls", lambda x: str(x.count)))
        widths = [12] * len(columns)
        if any(each.input_shapes for each in self):
            columns.append(("Input Shapes", lambda x: str(x.input_shapes)[: widths[len(columns) - 1]]))
            widths.append(min(max(len(str(x.input_shapes)) for x in self) + 4, max_shapes_column_width))
        name_width = min(max(len(x.key) for x in self) + 4, max_name_column_width)
        stacks = any(each.stack for each in self)
        most = min(max((len(line) for x in self for line in x.stack), default=0) + 4, max_src_column_width)

        def line(name: str, texts: Sequence[str], source: str) -> str:
            parts = [name.rjust(name_width), *(text.rjust(width) for text, width in zip(texts, widths, strict=True))]
            return "".join(f"{part}  " for part in [*parts, *[source.ljust(most)] * stacks])

        rule = "".join("-" * width + "  " for width in [name_width, *widths, *[most] * stacks])
        lines = ["=" * (len(rule) - 2), header] if header is not None else []
        if top_level_events_only:
            lines += ["=" * (len(rule) - 2), "This report only display top-level ops statistics"]
        lines += [rule, line("Name", [title for title, _ in columns], "Source Location"), rule]
        for each in events[: row_limit if row_limit >= 0 else None]:
            longest = max_name_column_width - 3
            name = each.key if len(each.key) < longest else f"{each.key[:longest]}..."
            source = [x if len(x) <= most else f"...{x[len(x) - most + 3 :]}" for x in each.stack]
            lines.append(line(name, [text(each) for _, text in columns], source[0] if source else ""))
            lines += [line("", [""] * len(columns), x) for x in [*source[1:], *[""] * stacks]]
        lines += [rule, f"Self CPU time total: {_time(whole, time_unit)}"]
        lines += [f"Self CUDA time total: {_time(on_device, time_unit)}"] if on_device else []
        return "\n".join([*lines, ""])

    def export_chrome_trace(self, path: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
        """Write a timeline that trace viewers open, Perfetto or chrome://tracing; compressed if the name ends so."""
        process, found = os.getpid(), list[dict[str, Any]]()
        start = {"ph": "M", "pid": process, "tid": 0, "ts": 0}
        found.append({**start, "name": "process_name", "args": {"name": "python"}})
        found.append({**start, "name": "process_labels", "args": {"labels": "CPU"}})
        for number, each in enumerate(self):
            args: dict[str, Any] = {"External id": number, "Ev Idx": number}
            args |= {"Input Dims": each.input_shapes} if each.input_shapes else {}
            args |= {"Call stack": ";".join(each.stack)} if each.stack else {}
            args |= {"Bytes": each.cpu_memory_usage + each.device_memory_usage} if self.memory else {}
            event = {"ph": "X", "cat": each.kind, "name": each.name, "pid": process, "tid": each.thread}
            found.append({**event, "ts": each.start / 1e3, "dur": (each.end - each.start) / 1e3, "args": args})
            if each.self_device_time_total:
                times = {"ts": each.start / 1e3, "dur": each.self_device_time_total}
                found.append({**event, "cat": "kernel", "pid": 0, "tid": 0, **times, "args": {"External id": number}})
        whole = {"schemaVersion": 1, "displayTimeUnit": "ms", **(metadata or {}), "traceEvents": found}
        text = json.dumps({**whole, "traceName": str(path)})
        opened: Callable[..., Any] = gzip.open if str(path).endswith(".gz") else open
        with opened(path, "wt", encoding="utf-8") as file:
            file.write(text)


def _time(us: float, unit: str | None = None) -> str:
    unit = unit or ("s" if us >= 1e6 else "ms" if us >= 1e3 else "us")
    return f"{us / {'s': 1e6, 'ms': 1e3, 'us': 1.0}[unit]:.3f}{unit}"


def _share(part: float, whole: float) -> str:
    return f"{part * 100 / whole if whole else 0:.2f}%"


def _memory_of(attribute: str, event: FunctionEvent) -> str:
    return _memory(getattr(event, attribute))


def _memory(nbytes: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


# ---- recording ------------------------------------------------------------------------------------------------


_running: list[Recorder] = []  # at most one


def _profiler_enabled() -> bool:
    """True while a profiler runs."""
    return bool(_running)


_SPACE = "aten"  # of PyTorch's names of operators, by which programs look for events
_OWN = ("cpu_time_total", "device_time_total", "cpu_memory_usage", "device_memory_usage")


class Recorder:
    """Collects events between `start` and `stop`, of the thread that starts it, and ranges of all threads.

    Args:
        marks: makes a mark of the device's time, where that is wanted; `seconds` later tells the time between two.
    """

    def __init__(
        self,
        shapes: bool,
        memory: bool,
        stacks: bool,
        marks: tuple[Callable[[], Any], Callable[[Any, Any], float]] | None,
    ) -> None:
        self.shapes, self.memory, self.stacks, self.marks = shapes, memory, stacks, marks
        self.events = EventList()
        self.events.memory, self.events.device = memory, marks is not None

    def start(self) -> None:
        """Begin.

        Raises:
            RuntimeError: a profiler runs.
        """
        if _running:
            raise RuntimeError("Profiler is already enabled on this thread")
        _running.append(self)
        overriding.push(self)
        watched.around.append(self._around)

    def stop(self) -> EventList:
        """End, and return the events."""
        _running.remove(self)
        watched.around.remove(self._around)
        overriding.pop()
        now, outer = time.perf_counter_ns(), list[FunctionEvent]()
        for each in self.events:
            each.end = each.end or now  # of a range that is still open
            each.cpu_time_total = (each.end - each.start) / 1e3
            if each.marks is not None and self.marks is not None and len(each.marks) == 2:
                each.device_time_total = self.marks[1](*each.marks) * 1e6
        ordered = sorted(self.events, key=lambda each: (each.thread, each.start, -each.end))
        for each in ordered:
            while outer and (outer[-1].thread != each.thread or outer[-1].end < each.end):
                outer.pop()
            each.cpu_parent = outer[-1] if outer else None
            outer.append(each)
        for each in reversed(ordered):  # what others contain before these
            for name in _OWN:
                value, own = getattr(each, name), f"self_{name}"
                setattr(each, own, getattr(each, own) + value)
                if each.cpu_parent is not None:
                    if name.endswith("usage"):
                        setattr(each.cpu_parent, name, getattr(each.cpu_parent, name) + value)
                    setattr(each.cpu_parent, own, getattr(each.cpu_parent, own) - value)
        return self.events

    def begin(self, name: str, kind: str, args: Sequence[Any] = ()) -> FunctionEvent:
        """The event of a call that begins."""
        event = FunctionEvent(name, 0, threading.get_native_id(), kind)
        if self.shapes and kind == "cpu_op":
            event.input_shapes = [list(x.shape) if hasattr(x, "_data") else [] for x in args]
        if self.stacks:
            frames = traceback.extract_stack()[::-1]
            event.stack = [f"{x.filename}({x.lineno}): {x.name}" for x in frames if not inside_package(x.filename)]
        event.marks = None if self.marks is None or kind != "cpu_op" else [self.marks[0]()]
        self.events.append(event)
        event.start = time.perf_counter_ns()
        return event

    def end(self, event: FunctionEvent, result: object = None) -> None:
        """Note the end of a call."""
        event.end = time.perf_counter_ns()
        if event.marks is not None and self.marks is not None:
            event.marks.append(self.marks[0]())
        for x in result if isinstance(result, tuple) else (result,):
            if self.memory and hasattr(x, "_data") and x._origin is None:
                name = "device_memory_usage" if x.is_cuda else "cpu_memory_usage"
                setattr(event, name, getattr(event, name) + x.nbytes)

    def _event(self, name: str, call: Callable[[], Any], args: Sequence[Any] = ()) -> Any:
        event, result = self.begin(name, "cpu_op", args), None
        try:
            result = call()
            return result
        finally:
            self.end(event, result)

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a public function, as an event."""
        name = func.__name__
        if name in ("__get__", "__set__", "__delete__") or self not in _running:
            return func(*args, **(kwargs or {}))
        if name == "backward":  # whose functions of the program's are seen, too
            overriding.push(self)
            try:
                return overriding.own_of(func)(*args, **(kwargs or {}))
            finally:
                overriding.pop()
        return self._event(f"{_SPACE}::{name}", partial(func, *args, **(kwargs or {})), args)

    def _around(self, node: Node, run: Callable[[], Any]) -> Any:
        return self._event(f"autograd::engine::evaluate_function: {node.name()}", run)


class record_function:
    """A range of the program's, by a name: a context, or a decorator. It costs nothing while no profiler runs.

    >>> import tritensor as torch
    >>> with torch.profiler.profile() as p, torch.profiler.record_function("sum"):
    ...     y = torch.ones(2).sum()
    >>> [event.name.rpartition(":")[2] for event in p.events()]
    ['sum', 'ones', 'sum']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self._event = name, None

    _event: tuple[Recorder, FunctionEvent] | None

    def __enter__(self) -> record_function:
        if _running:
            self._event = _running[0], _running[0].begin(self.name, "user_annotation")
        return self

    def __exit__(self, *exception: object) -> None:
        if self._event is not None:
            recorder, event = self._event
            recorder.end(event)
            self._event = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, each call of which is a range."""

        @wraps(function)
        def ranged(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name):
                return function(*args, **kwargs)

        return ranged


class profile:
    """PyTorch's first profiler, a context: `tritensor.profiler.profile` without schedules."""

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        **more: object,
    ) -> None:
        self._recorder = Recorder(record_shapes, profile_memory, with_stack, None) if enabled else None
        self.function_events = EventList()

    def __enter__(self) -> profile:
        if self._recorder is not None:
            self._recorder.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._recorder is not None:
            self.function_events = self._recorder.stop()

    def __getattr__(self, name: str) -> Any:
        if name == "function_events":
            raise AttributeError(name)
        return getattr(self.function_events, name)


class emit_nvtx:
    """Accepted: there are no ranges of NVTX."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        pass

    def __enter__(self) -> emit_nvtx:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


emit_itt = emit_nvtx
