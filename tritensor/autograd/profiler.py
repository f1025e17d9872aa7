"""Events: what a program calls while a profiler runs, and tables and timelines of them.

Public functions are seen by a mode of `__torch_function__`, nodes of a backward pass by what the tape lets look at
them; neither is there while no profiler runs.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Self

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

    def __init__(self, name: str, thread: int, kind: str) -> None:
        self.name, self.start, self.end, self.thread, self.kind = name, 0, 0, thread, kind
        self.cpu_parent: FunctionEvent | None = None
        self.count, self.input_shapes, self.stack = 1, list[Any](), list[str]()
        self.cpu_memory_usage = self.device_memory_usage = self.flops = 0
        self.cpu_time_total = self.device_time_total = self.self_cpu_time_total = self.self_device_time_total = 0.0
        self.self_cpu_memory_usage = self.self_device_memory_usage = 0
        self.marks: list[Any] = []  # of the device, before and after

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

    def add(self, **numbers: Any) -> None:
        """Add to attributes."""
        for name, more in numbers.items():
            setattr(self, name, getattr(self, name) + more)

    def add_all(self, other: FunctionEvent) -> None:
        """Add the numbers of another event."""
        self.add(**{k: x for k, x in vars(other).items() if k == "count" or k.endswith(("_total", "_usage"))})

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
                found[key] = made = FunctionEvent(each.key, each.thread, each.kind)
                made.count, made.cpu_parent, made.input_shapes, made.stack = 0, each.cpu_parent, shapes, stack
            found[key].add_all(each)
        made_of = EventList(found.values())
        made_of.memory, made_of.device = self.memory, self.device
        return made_of

    def total_average(self) -> FunctionEvent:
        """All events as one."""
        total = FunctionEvent("Total", 0, "cpu_op")
        total.count = 0
        for each in self:
            total.add_all(each)
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
        events = [each for each in self if each.cpu_parent is None or not top_level_events_only]
        if sort_by is not None:
            events.sort(key=attrgetter(sort_by), reverse=True)
        total = self.total_average()
        wholes = {"cpu": total.self_cpu_time_total, "device": total.self_device_time_total}
        titles = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        titles += ["Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"] if wholes["device"] else []
        titles += ["CPU Mem", "Self CPU Mem"] if self.memory else []
        titles += ["CUDA Mem", "Self CUDA Mem"] if self.memory and self.device else []
        widths = {"Name": min(max(len(x.key) for x in self) + 4, max_name_column_width)}
        widths |= dict.fromkeys([*titles, "# of Calls"], 12)
        if any(x.input_shapes for x in self):
            widths["Input Shapes"] = min(max(len(str(x.input_shapes)) for x in self) + 4, max_shapes_column_width)
        longest = max((len(text) for x in self for text in x.stack), default=0)
        source_width = min(longest + 4, max_src_column_width) if longest else 0

        def line(texts: dict[str, str], source: str) -> str:
            cells = [texts.get(title, "").rjust(width) for title, width in widths.items()]
            return "".join(f"{cell}  " for cell in [*cells, *[source.ljust(source_width)] * bool(longest)])

        rule = line({title: "-" * width for title, width in widths.items()}, "-" * source_width)
        above = [] if header is None else [header]
        above += ["This report only display top-level ops statistics"] * top_level_events_only
        lines = [each for words in above for each in ("=" * (len(rule) - 2), words)]
        lines += [rule, line({title: title for title in widths}, "Source Location"), rule]
        for each in events[: row_limit if row_limit >= 0 else None]:
            most = max_name_column_width - 3
            texts = {title: _cell(each, title, wholes, time_unit) for title in titles}
            texts["Name"] = each.key if len(each.key) < most else f"{each.key[:most]}..."
            texts["# of Calls"] = str(each.count)
            texts["Input Shapes"] = str(each.input_shapes)[: widths.get("Input Shapes")]
            source = [x if len(x) <= source_width else f"...{x[len(x) - source_width + 3 :]}" for x in each.stack]
            lines.append(line(texts, source[0] if source else ""))
            lines += [line({}, x) for x in [*source[1:], *[""] * bool(longest)]]
        lines += [rule, f"Self CPU time total: {_time(wholes['cpu'], time_unit)}"]
        lines += [f"Self CUDA time total: {_time(wholes['device'], time_unit)}"] if wholes["device"] else []
        return "\n".join([*lines, ""])

    def export_chrome_trace(self, path: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
        """Write a timeline that trace viewers open, Perfetto or chrome://tracing; compressed if the name ends so."""
        start = {"ph": "M", "pid": os.getpid(), "tid": 0, "ts": 0}
        found: list[dict[str, Any]] = [
            {**start, "name": "process_name", "args": {"name": "python"}},
            {**start, "name": "process_labels", "args": {"labels": "CPU"}},
        ]
        for number, each in enumerate(self):
            args: dict[str, Any] = {"External id": number, "Ev Idx": number}
            args |= {"Input Dims": each.input_shapes} if each.input_shapes else {}
            args |= {"Call stack": ";".join(each.stack)} if each.stack else {}
            args |= {"Bytes": each.cpu_memory_usage + each.device_memory_usage} if self.memory else {}
            event = {"ph": "X", "name": each.name, "pid": os.getpid(), "tid": each.thread, "ts": each.start / 1e3}
            found.append({**event, "cat": each.kind, "dur": (each.end - each.start) / 1e3, "args": args})
            if each.self_device_time_total:
                event |= {"cat": "kernel", "pid": 0, "tid": 0, "dur": each.self_device_time_total}
                found.append({**event, "args": {"External id": number}})
        whole = {"schemaVersion": 1, "displayTimeUnit": "ms", **(metadata or {}), "traceEvents": found}
        opened: Callable[..., Any] = gzip.open if str(path).endswith(".gz") else open
        with opened(path, "wt", encoding="utf-8") as file:
            file.write(json.dumps({**whole, "traceName": str(path)}))


def _cell(event: FunctionEvent, title: str, wholes: dict[str, float], unit: str | None) -> str:
    """What a table shows of an event below a title such as "Self CPU %"."""
    kind = "device" if "CUDA" in title else "cpu"
    what = "memory_usage" if "Mem" in title else "time" if "avg" in title else "time_total"
    value = getattr(event, f"{'self_' if 'Self' in title else ''}{kind}_{what}")
    if "Mem" in title:
        return _memory(value)
    if title.endswith("%"):
        return f"{value * 100 / wholes[kind] if wholes[kind] else 0:.2f}%"
    return _time(value, unit)


def _time(us: float, unit: str | None = None) -> str:
    unit = unit or ("s" if us >= 1e6 else "ms" if us >= 1e3 else "us")
    return f"{us / {'s': 1e6, 'ms': 1e3, 'us': 1.0}[unit]:.3f}{unit}"


def _memory(nbytes: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


# ---- recording ------------------------------------------------------------------------------------------------


_running: list[profile] = []  # at most one


def _profiler_enabled() -> bool:
    """True while a profiler runs."""
    return bool(_running)


_SPACE = "aten"  # of PyTorch's names of operators, by which programs look for events
_OWN = ("cpu_time_total", "device_time_total", "cpu_memory_usage", "device_memory_usage")


class profile:
    """PyTorch's first profiler, a context: `tritensor.profiler.profile` without schedules.

    It collects the events of the thread that enters it, and ranges of all threads.

    Attributes:
        marks: makes a mark of the device's time, and tells the seconds between two, where that is wanted.

    Raises:
        RuntimeError: a profiler runs.
    """

    marks: tuple[Callable[[], Any], Callable[[Any, Any], float]] | None = None

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
        self.enabled, self.shapes, self.memory, self.stacks = enabled, record_shapes, profile_memory, with_stack
        self.function_events = EventList()

    def __enter__(self) -> profile:
        if self.enabled:
            if _running:
                raise RuntimeError("Profiler is already enabled on this thread")
            self.function_events.memory, self.function_events.device = self.memory, self.marks is not None
            _running.append(self)
            overriding.push(self)
            watched.around.append(self._around)
            watched.computing.append(self._computing)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.enabled:
            _running.remove(self)
            watched.around.remove(self._around)
            watched.computing.remove(self._computing)
            overriding.pop(self)
            self._nest()

    def __getattr__(self, name: str) -> Any:
        if name == "function_events":
            raise AttributeError(name)
        return getattr(self.function_events, name)

    def _nest(self) -> None:
        """Find the events that others are in, and what each takes without those in it."""
        now, outer = time.perf_counter_ns(), list[FunctionEvent]()
        for each in self.function_events:
            each.end = each.end or now  # of a range that is still open
            each.cpu_time_total = (each.end - each.start) / 1e3
            if self.marks is not None and len(each.marks) == 2:
                each.device_time_total = self.marks[1](*each.marks) * 1e6
        ordered = sorted(self.function_events, key=lambda each: (each.thread, each.start, -each.end))
        for each in ordered:
            while outer and (outer[-1].thread != each.thread or outer[-1].end < each.end):
                outer.pop()
            each.cpu_parent = outer[-1] if outer else None
            outer.append(each)
        for each in reversed(ordered):  # what others contain before these
            for name in _OWN:
                value = getattr(each, name)
                each.add(**{f"self_{name}": value})
                if each.cpu_parent is not None:
                    each.cpu_parent.add(**{f"self_{name}": -value}, **({name: value} if "usage" in name else {}))

    @contextlib.contextmanager
    def timed(self, name: str, kind: str, args: Sequence[Any] = ()) -> Iterator[FunctionEvent]:
        """A block that is an event."""
        event = FunctionEvent(name, threading.get_native_id(), kind)
        if self.shapes and kind == "cpu_op":
            event.input_shapes = [list(x.shape) if hasattr(x, "_data") else [] for x in args]
        if self.stacks:
            frames = [x for x in traceback.extract_stack()[::-1] if x.filename != contextlib.__file__]
            event.stack = [f"{x.filename}({x.lineno}): {x.name}" for x in frames if not inside_package(x.filename)]
        mark = self.marks[0] if self.marks is not None and kind == "cpu_op" else None
        if mark is not None:
            event.marks.append(mark())
        self.function_events.append(event)
        event.start = time.perf_counter_ns()
        try:
            yield event
        finally:
            event.end = time.perf_counter_ns()
            if mark is not None:
                event.marks.append(mark())

    def _call(self, name: str, call: Callable[[], Any], args: Sequence[Any] = ()) -> Any:
        with self.timed(name, "cpu_op", args) as event:
            result = call()
        for x in result if isinstance(result, tuple) else (result,):
            noted = getattr(getattr(x, "_data", None), "value", x) is None  # and so it may never be in memory
            if self.memory and hasattr(x, "_data") and x._origin is None and not noted:
                event.add(**{"device_memory_usage" if x.is_cuda else "cpu_memory_usage": x.nbytes})
        return result

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a public function, as an event."""
        name, call = func.__name__, partial(func, *args, **(kwargs or {}))
        if name in ("__get__", "__set__", "__delete__") or self not in _running:
            return call()
        if name != "backward":
            return self._call(f"{_SPACE}::{name}", call, args)
        overriding.push(self)  # the functions of the program's that it calls are seen, too
        try:
            return overriding.own_of(func)(*args, **(kwargs or {}))
        finally:
            overriding.pop(self)

    def _around(self, node: Node, run: Callable[[], Any]) -> Any:
        return self._call(f"autograd::engine::evaluate_function: {node.name()}", run)

    def _computing(self, name: str, line: str, run: Callable[[], Any]) -> Any:
        return self._call(f"compiled::{name} ({line})", run)


class record_function(contextlib.ContextDecorator):
    """A range of the program's, by a name: a context, or a decorator. It costs nothing while no profiler runs.

    >>> import tritensor as torch
    >>> with torch.profiler.profile() as p, torch.profiler.record_function("sum"):
    ...     y = torch.ones(2).sum()
    >>> [event.name.rpartition(":")[2] for event in p.events()]
    ['sum', 'ones', 'sum']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self._open = name, contextlib.ExitStack()

    def _recreate_cm(self) -> Self:
        return type(self)(self.name)

    def __enter__(self) -> Self:
        for profiler in tuple(_running):
            self._open.enter_context(profiler.timed(self.name, "user_annotation"))
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()


def emit_nvtx(enabled: bool = True, record_shapes: bool = False) -> contextlib.nullcontext[None]:
    """Accepted: there are no ranges of NVTX."""
    return contextlib.nullcontext()


emit_itt = emit_nvtx
