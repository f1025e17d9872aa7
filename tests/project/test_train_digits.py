"""The example as its user runs it: a fresh process, real data."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..needs import needs_triton

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "train_digits.py"

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sklearn", "matplotlib")),
    reason="the example needs tritensor[examples]",
)


def run(*arguments: str, folder: Path, script: Path = SCRIPT, **settings: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRITENSOR_")}
    # No GPU, even where there is one: what the example says without one is what is tested here.
    environment = {**inherited, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(SCRIPT.parent.parent), **settings}
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.thorough
def test_reaches_97_percent_and_says_that_there_is_no_other_device(tmp_path: Path) -> None:
    done = run(folder=tmp_path)
    assert done.returncode == 0, done.stderr
    accuracy = re.search(r"test accuracy ([\d.]+)%", done.stdout)
    assert accuracy is not None
    assert float(accuracy[1]) >= 97
    assert (tmp_path / "digits.pt").stat().st_size > 0
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")
    assert "no CUDA device" in done.stdout
    assert "TRITENSOR_SIMULATE_CUDA=1" in done.stdout
    assert "loss=" in done.stderr


def test_cuda_without_a_gpu_says_what_it_needs(tmp_path: Path) -> None:
    done = run("--device", "cuda", folder=tmp_path)
    assert done.returncode != 0
    assert "NVIDIA GPU" in done.stderr
    assert "TRITENSOR_SIMULATE_CUDA=1" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_simulation_without_triton_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "triton.py").write_text("raise ModuleNotFoundError(\"No module named 'triton'\", name='triton')\n")
    path = os.pathsep.join([str(tmp_path), str(SCRIPT.parent.parent)])
    done = run("--device", "cuda", folder=tmp_path, TRITENSOR_SIMULATE_CUDA="1", PYTHONPATH=path)
    assert done.returncode != 0
    assert "tritensor[triton]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_no_epochs_are_refused(tmp_path: Path) -> None:
    done = run("--epochs", "0", folder=tmp_path)
    assert done.returncode == 2
    assert "--epochs" in done.stderr


@pytest.mark.thorough
@needs_triton
def test_checkpoint_moves_from_the_cpu_to_a_simulated_device(tmp_path: Path) -> None:
    done = run("--epochs", "3", "--save", "out/model.pt", folder=tmp_path, TRITENSOR_SIMULATE_CUDA="1")
    assert done.returncode == 0, done.stderr
    assert re.search(r"loaded .*model\.pt on cuda.*Simulated", done.stdout)
    assert "predictions agree on 360 of 360 test digits" in done.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.pt", "model.png"}


@pytest.mark.thorough
@needs_triton
def test_simulated_device_trains_in_checked_mode(tmp_path: Path) -> None:
    settings = {"TRITENSOR_SIMULATE_CUDA": "1", "TRITENSOR_CHECK": "1"}
    done = run("--device", "cuda", "--epochs", "1", folder=tmp_path, **settings)
    assert done.returncode == 0, done.stderr
    assert "Simulated" in done.stdout
    assert "loaded digits.pt on cpu" in done.stdout
    assert "predictions agree on 360 of 360 test digits" in done.stdout
