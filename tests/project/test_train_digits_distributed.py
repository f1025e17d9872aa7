"""The example in several processes, as its user runs it: every number of processes takes the same steps."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tritensor as torch
from tests.distributed.test_distributed import MPIEXEC, environment, needs_mpi

from ..needs import needs_triton

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "train_digits_distributed.py"

pytestmark = [
    needs_mpi,
    pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="the example needs tritensor[examples]"),
]


def run(ranks: int, *arguments: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [MPIEXEC, "-n", str(ranks), sys.executable, str(SCRIPT), *arguments]
    # one thread per process: several on two cores get into each other's way
    every = environment(OPENBLAS_NUM_THREADS="1", **settings)
    return subprocess.run(command, cwd=folder, env=every, capture_output=True, text=True, timeout=300)


@pytest.mark.thorough
@pytest.mark.parametrize("more", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_any_number_of_processes_reaches_the_same_parameters(tmp_path: Path, more: int) -> None:
    states = {}
    for ranks in (1, more):
        done = run(ranks, "--epochs", "5", "--save", f"{ranks}.pt", "--picture", "x.png", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        accuracy = re.search(rf"test accuracy ([\d.]+)% after 5 epochs on {ranks} process", done.stdout)
        assert accuracy is not None, done.stdout
        assert float(accuracy[1]) > 95
        assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
        states[ranks] = torch.load(tmp_path / f"{ranks}.pt")
    for name, value in states[1].items():
        # gradients are averaged in another order: some units in the last place of numbers around 1
        np.testing.assert_allclose(states[more][name].numpy(), value.numpy(), rtol=1e-5, atol=5e-6, err_msg=name)


@needs_triton
@pytest.mark.slow
def test_simulated_devices_reach_it_too(tmp_path: Path) -> None:
    for device, ranks in (("cpu", 1), ("cuda", 2)):
        settings = {"TRITENSOR_SIMULATE_CUDA": "2"} if device == "cuda" else {}
        done = run(ranks, "--epochs", "1", "--device", device, "--save", f"{device}.pt", folder=tmp_path, **settings)
        assert done.returncode == 0, done.stderr
    expected, found = (torch.load(tmp_path / f"{device}.pt", map_location="cpu") for device in ("cpu", "cuda"))
    for name, value in expected.items():
        np.testing.assert_allclose(found[name].numpy(), value.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.thorough
def test_a_batch_that_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    done = run(3, folder=tmp_path)
    assert done.returncode != 0
    assert "3 processes cannot share a batch of 32 evenly" in done.stderr
