"""What a small operator on a CUDA device costs the host, beside torch's on the CPU, on a machine without a GPU.

    python -m benchmarks.host [--only 'add_*'] [--json PATH]

The device is a stub of libcuda (tests/devices/libcuda_with_kernels.c, built in a temporary folder): memory is on the
host, and a launch returns at once and computes nothing. Everything above the driver is real: dispatch, the replay,
memory from the free list, cuda-core's launch of a kernel that Triton compiled for sm_90, the tape. So a row shows the
cost of our part of a call, without the driver's own 1 to 2 us, beside a whole call of torch on the CPU, its arithmetic
included; the two are timed in one process, in blocks of A B B A. A whole run writes benchmarks/results/host.json.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import importlib.util
import inspect
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import benchmarks
from benchmarks.cases import CASES, Case
from benchmarks.compare import RESULTS, commit, load, machine, print_heading, print_row, row, summary
from benchmarks.measure import side_by_side, timer

ROOT = Path(benchmarks.__file__).parent.parent

_PAIR = {"a": (10,), "b": (10,)}
_THOUSAND = {"a": (1000,), "b": (1000,)}
_PLAIN, _RECORDED = {"torch": 1.2}, {"torch": 1.1}

ROWS = (
    Case("add_10", "a + b, 10 elements", "a + b", _PAIR, _PLAIN),
    Case("add_10_grad", "a + b, 10 elements, requires_grad", "a + b", _PAIR, _RECORDED, requires_grad=True),
    Case("add_1k", "a + b, 1,000 elements", "a + b", _THOUSAND, _PLAIN),
    Case("add_1k_grad", "a + b, 1,000 elements, requires_grad", "a + b", _THOUSAND, _RECORDED, requires_grad=True),
    Case("scale", "x * 2, 10 elements", "x * 2", {"x": (10,)}, {}),
    Case("relu", "x.relu(), 10 elements", "x.relu()", {"x": (10,)}, {}),
    Case("add_in_place", "a.add_(b), 10 elements", "a.add_(b)", _PAIR, {}),
    Case("sum", "x.sum(), 32x32", "x.sum()", {"x": (32, 32)}, {}),
    Case("matmul", "x @ y, 32x32", "x @ y", {"x": (32, 32), "y": (32, 32)}, {}),
    Case("view", "x.view(2, 50)", "x.view(2, 50)", {"x": (10, 10)}, {}),
    *[replace(case, targets={}) for case in CASES if case.name in ("backward_1000", "step_128")],
)


def build(folder: Path) -> None:
    """Put a libcuda that does nothing into a folder.

    Raises:
        SystemExit: there is no C compiler, or this is not Linux.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        raise SystemExit("the stub of libcuda needs Linux and a C compiler")
    source, library = ROOT / "tests" / "devices" / "libcuda_with_kernels.c", folder / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-w", "-o", library, source, "-ldl"], check=True)


def parts(ours: ModuleType) -> dict[str, Callable[[int], float]]:
    """Timers for the parts of `a + b`, by name."""
    from tritensor.memory import buffer
    from tritensor.operators import operator

    a, b = ours.ones(10, device="cuda"), ours.ones(10, device="cuda")
    out = a + b
    known = operator.registry["add"].replays[a._data.form, b._data.form]
    assert known is not None, "a + b is not repeated"
    found = inspect.getclosurevars(known.run).nonlocals
    launch, config, kernel = found["launch0"], found["config0"], found["kernel0"]
    tail = [value for name, value in found.items() if name.startswith("k0_")]
    names = {
        "new": buffer.new,
        "arena": a._data.buffer.arena,
        "form": out._data.form,
        "launch": launch,
        "repeat": known.run,
        "x": a._data,
        "y": b._data,
        "values": (a._data.buffer.arena.queue, config, kernel, out.data_ptr(), a.data_ptr(), b.data_ptr(), *tail, 0, 0),
    }
    return {
        "memory taken and given back": timer("new(arena, form)", names),
        "cuda-core's launch alone": timer("launch(*values)", names),
        "memory, launch and result": timer("repeat(x, y)", names),
    }


def shares(ours: ModuleType) -> dict[str, Any]:
    """The parts of `a + b`, each timed beside the whole call."""
    names: dict[str, object] = {"a": ours.ones(10, device="cuda"), "b": ours.ones(10, device="cuda")}
    whole = timer("a + b", names)
    found = {}
    for name, part in parts(ours).items():
        measured = side_by_side(part, whole)
        found[name] = {"us": measured.ours * 1e6, "share": measured.ratio, "spread": measured.spread}
        print(f"  {name:<40}{measured.ours * 1e6:>8.2f} us{measured.ratio:>8.0%} of a + b")
    return found


def measure(chosen: list[Case], seconds: float) -> dict[str, Any]:
    """Every chosen row, printed as it is done; run in a process that has the stub in place of libcuda."""
    ours, torch = importlib.import_module("tritensor"), importlib.import_module("torch")
    for library in (ours, torch):
        library.set_num_threads(1)
    device = ours.cuda.get_device_name(0)
    if not device.startswith("Stub"):
        raise SystemExit(f"this is {device} and not the stub: figures for a GPU come from python -m benchmarks.gpu")
    versions = {name: importlib.import_module(name).__version__ for name in ("tritensor", "torch", "triton")}
    versions["cuda-core"] = importlib.import_module("cuda.core").__version__
    load_before = load()
    print(f"Python {platform.python_version()}, {', '.join(map(' '.join, versions.items()))}, one thread each")
    print("tritensor on a device that computes nothing, torch on the CPU")
    print_heading(["torch"], checked=False)
    results: dict[str, Any] = {}
    for case in chosen:
        arrays = case.arrays()
        run = timer(case.statement, case.namespace(ours, arrays, "cuda"))
        theirs = timer(case.statement, case.namespace(torch, arrays))
        measured = row(side_by_side(run, theirs, seconds=seconds), case.targets.get("torch"))
        results[case.name] = {"title": case.title, "speed": {"torch": measured}}
        print_row(case.title, {"torch": measured}, ["torch"], None)
    print()
    facts = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": {**machine(), "load_before": load_before, "device": "a stub of libcuda"},
        "versions": {"python": platform.python_version(), **versions},
        "threads": 1,
        "cases": results,
        "parts": shares(ours),
    }
    summary(results)
    return facts


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="rows by name, as in 'add_*'; writes no JSON")
    parser.add_argument("--json", type=Path, metavar="PATH", help="where to write the figures")
    parser.add_argument("--seconds", type=float, default=0.04, help="that each block of a row is timed for")
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)  # in the process that has the stub
    options = parser.parse_args(arguments)
    chosen = [case for case in ROWS if fnmatch.fnmatch(case.name, options.only)]
    if not chosen:
        parser.error(f"--only {options.only!r} names none of: {', '.join(case.name for case in ROWS)}")
    path = options.json or (RESULTS / "host.json" if options.only == "*" else None)
    if options.inner:
        facts = measure(chosen, options.seconds)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(facts, indent=1) + "\n")
            print(f"wrote {path}")
        return 0
    missing = [name for name in ("torch", "triton", "cuda") if importlib.util.find_spec(name) is None]
    if missing:
        parser.error(f"needs {' and '.join(missing)}: pip install torch 'tritensor[cuda]'")
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        # The loader reads its path when a process starts. Kernels for the stub's device stay out of the user's cache.
        searched = os.environ.get("LD_LIBRARY_PATH")
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": folder + (os.pathsep + searched if searched else ""),
            "TRITENSOR_SIMULATE_CUDA": "0",
            "TRITENSOR_CACHE_DIR": folder,
            "TRITON_CACHE_DIR": folder,
        }
        words = sys.argv[1:] if arguments is None else arguments
        command = [sys.executable, "-m", "benchmarks.host", "--inner", *words]
        return subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
