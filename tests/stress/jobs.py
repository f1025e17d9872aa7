"""Distributed jobs of which one process raises, dies, leaves, hangs or is late."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from ..distributed.jobs import MPIEXEC
from .scenarios import scenario

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import datetime, os, signal, sys, time
import tritensor as torch
import tritensor.distributed as dist
victim, action, step = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
dist.init_process_group("mpi", timeout=datetime.timedelta(seconds=2 if action == "hang" else 60))
rank = dist.get_rank()
x = torch.ones(100)
for number in range(4):
    if rank == victim and number == step:
        if action == "raise":
            raise ValueError("the victim's")
        if action == "exit":
            os._exit(0)
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "late":
            time.sleep(1.0)
        if action == "hang":
            time.sleep(1000)
    y = x.clone()
    dist.all_reduce(y)
    assert (y == dist.get_world_size()).all()
dist.destroy_process_group()
"""


@scenario(MPIEXEC is not None)
def ranks(rng: random.Random) -> Counter[str]:
    """A job ends with an error that names the rank that failed, or a timeout; a late rank is waited for."""
    count = rng.randint(2, 3)
    victim, action, step = rng.randrange(count), rng.choice(["raise", "exit", "kill", "late", "hang"]), rng.randrange(4)
    command = [str(MPIEXEC), "-n", str(count), sys.executable, "-c", PROGRAM, str(victim), action, str(step)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    start = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    if action == "late":
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode != 0, "the job ended as if nothing had happened"
        words = "Watchdog caught collective operation timeout" if action == "hang" else f"rank {victim}"
        assert words in done.stderr + done.stdout, done.stderr
        assert time.monotonic() - start < 30, "the job took too long to end"
    return Counter({f"ranks that {action}": 1})
