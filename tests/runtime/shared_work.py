"""Programs that share out work, each in a process of its own: what could hang is ended after a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

__all__ = ["SECONDS", "SHARED", "run", "together"]

SECONDS = 60  # after which a process counts as hanging; each takes one or two


def run(program: str, status: int = 0, **environment: str) -> str:
    """What a program prints, which has a second's time after all that it does to end."""
    text = "import os, sys, threading, time\n" + program
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr if status else done.stdout


SHARED = """
import numpy as np
import tritensor as torch
from tritensor.host.threads import in_pieces

torch.set_num_threads(4)

def square(size=1 << 20, step=1 << 16):
    x, out = np.arange(size, dtype=np.float64), np.empty(size)
    in_pieces(lambda start, stop: np.multiply(x[start:stop], x[start:stop], out=out[start:stop]), size, step)
    return np.array_equal(out, x * x)

assert square()
"""


def together(count: int) -> Any:
    """A function that returns once it runs in `count` threads at the same time."""
    meeting = threading.Barrier(count, timeout=SECONDS)
    return lambda start, stop: meeting.wait()
