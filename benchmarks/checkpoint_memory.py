"""Memory and time that saving and loading a checkpoint take, beside torch's and safetensors' where they are installed.

    python -m benchmarks.checkpoint_memory [--size MEGABYTES] [--limit RATIO] [--json FILE]

Each measurement runs in a new process. Memory is the most that was resident at any moment, above what the process had
before: for `load` only the library, for `load_into` and `load_state_dict` also the model. With a limit the exit status
says whether `load` and `load_into` stay within that many times the checkpoint's size (the project's own limit is 1.05).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

# Measures one statement. `/proc/self/clear_refs` resets the high-water mark of resident memory to what is resident.
PROGRAM = """
import json, sys, time
import numpy as np
{setup}
def resident(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before, begin = resident("VmRSS:"), time.perf_counter()
{statement}
seconds = time.perf_counter() - begin
print(json.dumps([seconds, resident("VmHWM:") - before]))
"""

LAYERS = 16
ARRAYS = """
size, path = {size}, {path!r}
side = int((size / {layers} / 4) ** 0.5)
arrays = {{f"{{i}}.weight": np.random.default_rng(i).random((side, side), dtype=np.float32) for i in range({layers})}}
"""
OURS = "import tritensor.serialization\n"
MODEL = """
import tritensor.serialization
from tritensor import nn
side = int(({size} / {layers} / 4) ** 0.5)
model = nn.Sequential(*[nn.Linear(side, side, bias=False) for _ in range({layers})])
"""
THEIRS = "import torch\n"
SAFE = "from safetensors.numpy import save_file, load_file\n"
STATE = "state = dict((key, MAKE(value)) for key, value in arrays.items())\n"

# (name, library, what comes before, the statement); the first that writes a path makes the file that the others read.
SAVES = [
    (
        "save, flushed to the disk",
        "tritensor",
        OURS + "{arrays}" + STATE.replace("MAKE", "tritensor.from_numpy"),
        "tritensor.save(state, path)",
    ),
    (
        "save to a file object",
        "tritensor",
        OURS + "{arrays}" + STATE.replace("MAKE", "tritensor.from_numpy"),
        "with open(path + '.copy', 'wb') as file: tritensor.save(state, file)",
    ),
    (
        "save to a file object",
        "torch",
        THEIRS + "{arrays}" + STATE.replace("MAKE", "torch.from_numpy"),
        "with open(path + '.copy', 'wb') as file: torch.save(state, file)",
    ),
    ("save to a file object", "safetensors", SAFE + "{arrays}", "save_file(arrays, path + '.safetensors')"),
]
LOADS = [
    ("load", "tritensor", OURS, "state = tritensor.load({path!r})"),
    ("load", "torch", THEIRS, "state = torch.load({path!r}, weights_only=True)"),
    ("load", "safetensors", SAFE, "state = load_file({path!r} + '.safetensors')"),
    ("load, mapped", "tritensor", OURS, "state = tritensor.load({path!r}, mmap=True)"),
    ("load, mapped", "torch", THEIRS, "state = torch.load({path!r}, weights_only=True, mmap=True)"),
    ("load + load_state_dict", "tritensor", MODEL, "model.load_state_dict(tritensor.load({path!r}))"),
    ("load_into", "tritensor", MODEL, "tritensor.serialization.load_into(model, {path!r})"),
]
LIMITED = {("load", "tritensor"), ("load + load_state_dict", "tritensor"), ("load_into", "tritensor")}


def measure(setup: str, statement: str, rounds: int, **fields: Any) -> tuple[float, int]:
    """The fewest seconds and the most bytes of some runs, each in a fresh process."""
    fields["arrays"] = ARRAYS.format(**fields)
    program = PROGRAM.format(setup=setup.format(**fields), statement=statement.format(**fields))
    runs = []
    for _ in range(rounds):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{statement.format(**fields)}:\n{done.stderr}")
        runs.append(json.loads(done.stdout))
    return min(seconds for seconds, _ in runs), max(nbytes for _, nbytes in runs)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1000, metavar="MEGABYTES", help="of the checkpoint (default 1000)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each measurement (default 3)")
    parser.add_argument("--limit", type=float, metavar="RATIO", help="fail above this many times the checkpoint's size")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there too")
    chosen = parser.parse_args(arguments)
    size = chosen.size * 10**6
    rows: list[dict[str, Any]] = []
    over = []
    print(f"checkpoint of {chosen.size} MB in {LAYERS} tensors; best time and highest memory of {chosen.rounds}\n")
    print(f"{'':28}{'library':14}{'seconds':>9}{'GB/s':>8}{'memory, x size':>16}{'time, x ours':>14}")
    with tempfile.TemporaryDirectory() as folder:
        fields = {"path": os.path.join(folder, "model.pt"), "size": size, "layers": LAYERS}
        ours: dict[str, float] = {}
        for name, library, setup, statement in (*SAVES, *LOADS):
            if importlib.util.find_spec(library) is None:
                continue
            seconds, nbytes = measure(setup, statement, chosen.rounds, **fields)
            if library == "tritensor":
                ours[name] = seconds
            ratio = seconds / ours[name]
            rows.append({"name": name, "library": library, "seconds": seconds, "memory": nbytes / size, "ratio": ratio})
            print(f"{name:28}{library:14}{seconds:9.3f}{size / seconds / 1e9:8.2f}{nbytes / size:16.3f}{ratio:14.2f}")
            if chosen.limit is not None and (name, library) in LIMITED and nbytes / size > chosen.limit:
                over.append(f"{name} takes {nbytes / size:.3f} times the checkpoint's size, over {chosen.limit}")
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump({"size": size, "rows": rows}, file, indent=1)
    print("".join(f"\n{line}" for line in over))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
