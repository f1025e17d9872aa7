"""Saves and loads that are killed, saves that find the disk full, and that run at once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import tritensor as torch

from .scenarios import HAS_FORK, scenario
from .threads import together

ROOT = Path(__file__).resolve().parents[2]

SAVING = """
import sys
import tritensor as torch
number = 0
print("ready", flush=True)
while True:
    torch.save({"number": number, "x": torch.full((60_000,), float(number))}, sys.argv[1])
    number += 1
"""

LOADING = """
import sys
import tritensor as torch
print("ready", flush=True)
while True:
    torch.load(sys.argv[1], mmap=True)
    torch.load(sys.argv[1], mmap=False)["x"].add_(1)
"""

FULL = """
import resource, signal, sys
import tritensor as torch
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    torch.save({"x": torch.ones(60_000)}, sys.argv[1])
except OSError:
    sys.exit(7)
"""


def whole(path: Path) -> int:
    """The number of a checkpoint, which is complete."""
    found = torch.load(path)
    assert (found["x"] == found["number"]).all(), "a checkpoint is a mixture"
    return int(found["number"])


def command(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", program, *arguments]


def killed(program: str, path: Path, seconds: float) -> None:
    """Run a program that saves to a path or loads from it again and again, and kill it after some seconds."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command(program, str(path)), stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)


@scenario(HAS_FORK)
def killed_saves_and_loads(rng: random.Random) -> Counter[str]:
    """A process that is killed while it saves or loads leaves a complete checkpoint, and nothing else after the next
    save."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.pt"
        torch.save({"number": -1, "x": torch.full((4,), -1.0)}, path)
        for program in (SAVING, LOADING, SAVING):
            killed(program, path, rng.uniform(0, 0.03))
            whole(path)
        torch.save({"number": 5, "x": torch.full((4,), 5.0)}, path)
        assert whole(path) == 5
        assert os.listdir(folder) == [path.name], "a killed save left a file"
    return Counter({"killed saves": 2, "killed loads": 1})


@scenario(HAS_FORK)
def full_disks(rng: random.Random) -> Counter[str]:
    """A save that finds the disk full raises OSError and leaves the old checkpoint as it is."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.pt"
        torch.save({"number": 1, "x": torch.ones(4)}, path)
        limit = str(rng.randint(1, 200_000))
        done = subprocess.run(command(FULL, str(path), limit), env=environment, capture_output=True, text=True)
        assert done.returncode == 7, done.stderr
        assert whole(path) == 1
        assert os.listdir(folder) == ["x.pt"], "a save that failed left a file"
    return Counter({"full disks": 1})


@scenario()
def saves_at_once(rng: random.Random) -> Counter[str]:
    """Threads that save to one path and load it: each load finds one complete checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.pt"
        torch.save({"number": 0, "x": torch.zeros(4)}, path)

        def save(first: int) -> None:
            for number in range(first, first + 5):
                torch.save({"number": number, "x": torch.full((rng.randint(1, 5000),), float(number))}, path)

        def load() -> None:
            for _ in range(10):
                whole(path)

        together([lambda: save(10), lambda: save(20), load, load])
        assert os.listdir(folder) == ["x.pt"]
    return Counter({"saves": 10, "loads": 20})
