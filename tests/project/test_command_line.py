"""`python -m tritensor`: doctor, inspect, and what is said to a command that is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tritensor as torch
from tritensor.__main__ import main

from ..needs import needs_triton


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, without the variables that this one was started with."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TRITENSOR_")}
    return subprocess.run(
        [sys.executable, "-m", "tritensor", *words],
        env={**clean, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_doctor_says_what_is_there_and_what_is_missing() -> None:
    done = run("doctor")
    assert done.returncode == 0 and done.stderr == ""
    for word in ("tritensor", "Python", "numpy", "ml_dtypes", "safetensors", "triton", "TRITENSOR_SIMULATE_CUDA"):
        assert word in done.stdout
    if not torch.cuda.is_available():
        assert "No CUDA device is available" in done.stdout
        assert "Simulated ones need no GPU: TRITENSOR_SIMULATE_CUDA=1" in done.stdout


@needs_triton
def test_doctor_of_a_simulation() -> None:
    done = run("doctor", TRITENSOR_SIMULATE_CUDA="2")
    assert done.returncode == 0 and "2 CUDA device(s), simulated in host memory" in done.stdout
    assert "cuda:1" in done.stdout and "capability" in done.stdout and "GiB free" in done.stdout


def test_a_bad_setting_is_named() -> None:
    done = run("doctor", TRITENSOR_CHECK="perhaps")
    assert done.returncode == 1 and "TRITENSOR_CHECK: expected 0 or 1, got 'perhaps'" in done.stderr


def test_inspect(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save({"layer.weight": torch.zeros(2, 3), "layer.bias": torch.zeros(2, dtype=torch.float64)}, path)
    done = run("inspect", str(path))
    assert done.returncode == 0 and done.stderr == ""
    assert "layer.weight" in done.stdout and "float64" in done.stdout and "3" in done.stdout


def test_inspect_of_what_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"not a checkpoint at all" * 10)
    for name in ("noise", "absent"):
        done = run("inspect", str(tmp_path / name))
        assert done.returncode != 0 and name in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "status"),
    [([], 0), (["-h"], 0), (["--help"], 0), (["doktor"], 2), (["doctor", "now"], 2), (["inspect"], 2)],
)
def test_usage(words, status, capsys) -> None:
    assert main(words) == status
    captured = capsys.readouterr()
    assert "usage: python -m tritensor COMMAND" in (captured.err if status else captured.out)
    assert "inspect FILE" in captured.out + captured.err and not (captured.out and captured.err)
