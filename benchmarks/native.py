"""What native code gains on simulated devices, beside Triton's interpreter, and what making it costs.

    python -m benchmarks.native [--only 'add*'] [--blocks 7] [--json PATH]

Both engines simulate a device in one process and take turns, block by block; a ratio is the least time of the
interpreter divided by the least time of native code, of whole calls. Kernels are made for an empty cache, and found
again by a driver that has none loaded. A whole run writes benchmarks/results/native.json.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tritensor as torch
from benchmarks.compare import RESULTS, commit, machine
from benchmarks.simulation import Work, _random, _training, add, gpt, softmax
from tritensor import nn, settings
from tritensor.drivers.native import driver as native


def small() -> Work:
    a, b = _random(10), _random(10)
    return lambda: a + b


def product() -> Work:
    a, b = _random(256, 256), _random(256, 256)
    return lambda: a @ b


def layers() -> Work:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()
    return _training(model, _random(32, 784), torch.randint(0, 10, (32,)).cuda())


#: name, what a reader sees, what makes the work, how many times quicker it is to be
CASES: tuple[tuple[str, str, Callable[[], Work], float | None], ...] = (
    ("add", "a + b, 1 M", add, 200),
    ("softmax", "softmax 256x1000", softmax, 60),
    ("product", "product of 256 cubed", product, 40),
    ("small", "a + b, 10 elements", small, 8),
    ("layers", "training step of an MLP, 784-128-10, batch 32", layers, None),
    ("gpt", "training step of a GPT, 2 layers of 64", gpt, None),
)


def least(make: Callable[[], Work], engine: str, seconds: float) -> float:
    """The least seconds of an execution among those of a block, after two others."""
    with torch.cuda.simulate(engine=engine):
        work = make()
        times: list[float] = []
        work()
        work()
        while not times or sum(times) < seconds:
            start = time.process_time()
            work()
            torch.cuda.synchronize()
            times.append(time.process_time() - start)
    return min(times)


def measure(case: tuple[Any, ...], blocks: int) -> dict[str, Any]:
    """Both engines in turns."""
    _, title, make, target = case
    sides: dict[str, float] = {}
    for turn in range(blocks):
        for name in ("native", "interpreter")[:: -1 if turn % 2 else 1]:
            sides[name] = min(sides.get(name, 1e9), least(make, name, 0.2))
    found: dict[str, Any] = {"title": title, **{f"{name}_ms": round(1e3 * each, 3) for name, each in sides.items()}}
    found["ratio"] = round(sides["interpreter"] / sides["native"], 1)
    return found if target is None else {**found, "target": target, "met": found["ratio"] >= target}


def making() -> dict[str, Any]:
    """Milliseconds to make the kernels of a training step of a GPT, and to find them again on disk."""
    found: dict[str, Any] = {"title": "kernels of a training step of a GPT"}
    with tempfile.TemporaryDirectory() as folder, settings.cache_dir(folder):
        for name, target in (("made_ms", 120), ("found_ms", 1)):
            native.engine.cache_clear()
            times: list[float] = []
            make = native.Native._make

            def timed(self: native.Native, apart: bool, times: list[float] = times, make: Any = make) -> None:
                start = time.perf_counter()
                make(self, apart)
                times.append(1e3 * (time.perf_counter() - start))

            native.Native._make = timed
            try:
                with torch.cuda.simulate(engine="native"):
                    gpt()()
            finally:
                native.Native._make = make
            found |= {"kernels": len(times), name: round(statistics.median(times), 2), f"{name}_target": target}
    native.engine.cache_clear()
    return found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="names of cases, with * and ?")
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    rows = {}
    for case in CASES:
        if fnmatch.fnmatch(case[0], options.only):
            row = rows[case[0]] = measure(case, options.blocks)
            times = f"{row['interpreter_ms']:10.2f} ms interpreted {row['native_ms']:9.3f} native"
            print(f"{row['title']:48} {times} {row['ratio']:7.1f} times ({row.get('target', '-')})", flush=True)
    if fnmatch.fnmatch("making", options.only):
        row = rows["making"] = making()
        times = f"made in {row['made_ms']} ms (120), found in {row['found_ms']} ms (1)"
        print(f"{row['title']:48} {row['kernels']} {times}")
    path = options.json or (RESULTS / "native.json" if options.only == "*" else None)
    if path:
        path.write_text(json.dumps({"commit": commit(), "machine": machine(), "cases": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
