"""The worker processes of this process's loaders, and the memory that they share."""

from __future__ import annotations

import multiprocessing
import sys
import time
from pathlib import Path


def workers():
    """The process numbers of this process's loaders' workers."""
    return {child.pid for child in multiprocessing.active_children() if child.name.startswith("DataLoader worker")}


def wait_for(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return found


def mapped():
    """Bytes of shared memory that are mapped here."""
    total = 0
    for line in Path("/proc/self/maps").read_text().splitlines() if sys.platform == "linux" else []:
        if "memfd:tritensor" in line:
            low, high = (int(part, 16) for part in line.split()[0].split("-"))
            total += high - low
    return total
