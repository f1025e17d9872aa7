"""What goes on while collectives, messages and groups are under way."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .jobs import PROGRAMS, environment, launch, needs_mpi


@pytest.mark.thorough
@needs_mpi
def test_what_is_under_way_goes_on():
    done = launch(3, "under_way.py")
    assert (done.returncode, done.stdout) == (0, "all that was under way came on 3 ranks\n"), done.stderr


@pytest.mark.thorough
@needs_mpi
def test_what_is_under_way_goes_on_beside_a_store():
    command = [sys.executable, "-m", "tritensor", "launch", "-n", "2", str(PROGRAMS / "under_way.py")]
    done = subprocess.run(command, env=environment(OMP_NUM_THREADS="1"), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "all that was under way came on 2 ranks\n"), done.stderr
