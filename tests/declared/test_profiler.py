"""The profiler of a program: events, ranges, steps, tables and timelines, beside PyTorch's."""

from __future__ import annotations

import gzip
import importlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import tritensor as ours
from tritensor.autograd import profiler as core
from tritensor.autograd import watched


def program(torch: Any, folder: Path) -> list[Any]:
    """What a profiled program finds, without times."""
    prof, log = importlib.import_module(f"{torch.__name__}.profiler"), []
    x, model = torch.ones(2, 4, requires_grad=True), torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    with prof.profile(activities=[prof.ProfilerActivity.CPU], record_shapes=True) as p, prof.record_function("range"):
        model(x).sum().backward()
    events = p.events()
    kinds = ("range", "aten::linear", "aten::relu", "aten::sum")
    log += list(dict.fromkeys((e.name, e.count, str(e.input_shapes[:1])) for e in events if e.name in kinds))
    nodes = [e for e in events if e.name.startswith("autograd::engine") and "Accumulate" not in e.name]
    log += [nodes[0].name, any("ReluBackward0" in e.name for e in nodes)]
    (whole,) = (e for e in events if e.name == "range")
    log += [whole.self_cpu_time_total < whole.cpu_time_total, whole.cpu_time > 0]
    (group,) = (e for e in p.key_averages(group_by_input_shape=True) if e.key == "aten::relu")
    log += [group.count, group.input_shapes[0]]
    assert "Input Shapes" in p.key_averages(group_by_input_shape=True).table()
    table = p.key_averages().table(sort_by="cpu_time_total", row_limit=1, header="title", max_name_column_width=30)
    log += [
        line.split() if "%" in line and "." not in line else line[:30]
        for line in table.splitlines()
        if ".." not in line and "aten" not in line and "range" not in line
    ][:-1]
    saved = folder / f"{torch.__name__}.json"
    p.export_chrome_trace(str(saved))
    found = json.loads(saved.read_text())["traceEvents"]
    log += sorted({(e["name"], e["ph"], e["cat"]) for e in found if e.get("name") in kinds})
    assert all({"ts", "pid", "tid"} <= e.keys() and e["dur"] >= 0 for e in found if e["ph"] == "X")

    def ready(p: Any) -> None:
        log.append((p.step_num, [(e.key, e.count) for e in p.key_averages() if "Step" in e.key]))

    cycle = prof.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    log.append([cycle(step).name for step in range(12)])
    for steps in (12, 4):
        with prof.profile(activities=[prof.ProfilerActivity.CPU], schedule=cycle, on_trace_ready=ready) as p:
            for _ in range(steps):
                x + 1
                p.step()
    for bad in ({"wait": -1, "warmup": 0, "active": 1}, {"wait": 0, "warmup": 0, "active": 0}):
        with pytest.raises(AssertionError) as caught:
            prof.schedule(**bad)
        log.append(str(caught.value))
    with pytest.raises(AssertionError, match="Step must be non-negative"):
        cycle(-1)
    log += [prof.kineto_available(), torch.autograd._profiler_enabled()]
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        prof.profile(activities=[])
    importlib.import_module(f"{torch.__name__}.overrides")

    class Noted(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(func.__name__)
            return func(*args, **(kwargs or {}))

    p = prof.profile(activities=[prof.ProfilerActivity.CPU])
    p.start()
    with Noted():
        torch.neg(x)
        p.stop()  # in the block of a mode
        torch.abs(x)
    log += [{e.name for e in p.events()} & {"aten::neg", "aten::abs"}]
    with torch.autograd.profiler.profile(enabled=True) as q, prof.record_function("second"):
        x * 2
    log += [{e.name for e in q.function_events} >= {"second", "aten::mul"}, q.self_cpu_time_total > 0]
    log += [q.total_average().key]
    prof.tensorboard_trace_handler(str(folder / torch.__name__), "worker", use_gzip=True)(p)
    (file,) = (folder / torch.__name__).iterdir()
    with gzip.open(file, "rt") as text:
        log += [file.name.partition(".")[0], file.name.partition(".pt")[2], "traceEvents" in json.load(text)]
    return log


@pytest.mark.peer
def test_as_in_pytorch(tmp_path: Path) -> None:
    """In a process of its own: PyTorch's profiler ends one in which the packages of CUDA are loaded."""
    pytest.importorskip("torch")
    run = "from tests.declared.test_profiler import Path, program\nimport torch\n"
    run += f"print(program(torch, Path({str(tmp_path)!r})))"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    assert str(program(ours, tmp_path)) == done.stdout.splitlines()[-1]


def test_events(tmp_path: Path) -> None:
    log = program(ours, tmp_path)
    assert log[:3] == [("range", 1, "[]"), ("aten::linear", 1, "[[2, 4]]"), ("aten::relu", 1, "[[2, 3]]")]
    assert not core._running and not watched.around  # nothing is left
    x = ours.ones(3)
    with ours.profiler.profile(profile_memory=True, with_stack=True) as p:
        with ours.profiler.record_function("outer"):
            y = x + x
            y[:1].view(-1)
        with pytest.raises(RuntimeError, match="Profiler is already enabled"):
            ours.profiler.profile().start()
        thread = threading.Thread(target=ours.profiler.record_function("thread")(lambda: x + 1))
        thread.start()
        thread.join()
    outer, total = p.events()[0], next(e for e in p.events() if e.name == "aten::add")
    assert (total.cpu_memory_usage, outer.cpu_memory_usage, outer.self_cpu_memory_usage) == (12, 12, 0)
    assert total.cpu_parent is outer and "test_profiler.py" in total.stack[0] and "test_events" in total.stack[0]
    assert {e.thread for e in p.events()} == {outer.thread, thread.native_id}
    table = p.key_averages(group_by_stack_n=1).table(top_level_events_only=True, time_unit="us", row_limit=-1)
    assert "Source Location" in table and "12 B" in table and "only display top-level" in table and "aten" not in table
    p.add_metadata("a", "b")
    p.add_metadata_json("c", "[1]")
    p.export_chrome_trace(tmp_path / "x.json")
    p.export_stacks(tmp_path / "stacks")
    found = json.loads((tmp_path / "x.json").read_text())
    assert (found["a"], found["c"]) == ("b", [1]) and "_test_events" in (tmp_path / "stacks").read_text()
    assert str(p.events()) and "key=aten::add" in repr(total) and core.EventList().table() == ""
    assert core._memory(3 << 20) == "3.00 MB" and core._time(2.5e6) == "2.500s"
    with pytest.raises(AttributeError, match="nothing"):
        _ = total.nothing
    with ours.autograd.profiler.emit_nvtx(), ours.autograd.profiler.emit_itt(), ours.profiler.record_function("none"):
        assert x.sum() == 3  # no profiler runs
    with ours.profiler.profile(schedule=ours.profiler.schedule(wait=0, warmup=0, active=1), acc_events=True) as p:
        for _ in range(2):
            p.step()
    assert [e.name for e in p.events()] == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]


def test_times_on_a_device(tmp_path: Path) -> None:
    with ours.cuda.simulate():
        x = ours.ones(4, device="cuda")
        with ours.profiler.profile(profile_memory=True) as p:
            y = x * 2
        (event,) = (e for e in p.events() if e.name == "aten::mul")
        assert event.device_time_total >= 0 and event.device_memory_usage == y.nbytes and event.cuda_time >= 0
        event.device_time_total = event.self_device_time_total = 5.0
        assert (
            "CUDA time avg" in (table := p.key_averages().table(sort_by="self_cuda_time_total")) and "CUDA Mem" in table
        )
        p.export_chrome_trace(tmp_path / "x.json")
    assert any(e.get("cat") == "kernel" for e in json.loads((tmp_path / "x.json").read_text())["traceEvents"])
