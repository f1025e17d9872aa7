"""Starting a program in several processes, by mpiexec as a user does."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"


def find_mpiexec() -> str | None:
    """MPICH's mpiexec, the one beside Python first; None if mpi4py or that is not installed."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None or importlib.util.find_spec("mpi4py") is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True)
    return found if "HYDRA" in version.stdout else None


MPIEXEC = find_mpiexec()
needs_mpi = pytest.mark.skipif(
    MPIEXEC is None, reason='several processes need mpi4py and MPICH: pip install "tritensor[mpi]"'
)


def environment(**settings: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRITENSOR_")}
    return {**inherited, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(HERE.parents[1]), **settings}


def launch(ranks: int, program: Path | str, *arguments: str, folder: Path | None = None, **settings: str):
    """Run a program in several processes. `seconds` of the result says how long that took; two minutes are too long."""
    command = [MPIEXEC, "-n", str(ranks), sys.executable, "-W", "error", str(PROGRAMS / program), *arguments]
    start = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=environment(**settings), capture_output=True, text=True, errors="replace", timeout=120
    )
    done.seconds = time.monotonic() - start
    return done


def free_port() -> tuple[str]:
    """A port that is free now, as an argument."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return (str(found.getsockname()[1]),)
