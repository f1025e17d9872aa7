"""The example with scikit-learn's pipeline and search, as its user runs it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from ..needs import needs_triton
from .test_train_digits import run

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "sklearn_pipeline.py"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="the example needs tritensor[examples]"
)


@pytest.mark.thorough
def test_the_search_finds_a_network_that_reads_digits(tmp_path: Path) -> None:
    done = run("--epochs", "8", "--picture", "x.png", folder=tmp_path, script=SCRIPT)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ +\([\d, ]+\) +0\.\d+  ([\d.]+)% ± [\d.]+%( <- the best)?$", done.stdout, re.MULTILINE)
    assert len(rows) == 4 and max((float(share), mark) for share, mark in rows)[1] == " <- the best"
    shares = re.findall(r"reads? ([\d.]+)%", done.stdout)
    assert len(shares) == 2 and all(float(share) > 94 for share in shares)
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@needs_triton
@pytest.mark.slow
def test_it_runs_on_a_simulated_device(tmp_path: Path) -> None:
    small = ("--device", "cuda", "--samples", "60", "--epochs", "1")
    done = run(*small, folder=tmp_path, script=SCRIPT, TRITENSOR_SIMULATE_CUDA="1")
    assert done.returncode == 0, done.stderr
    assert "of 3 folds, on cuda" in done.stdout


@pytest.mark.slow
def test_fits_are_timed_beside_those_of_scikit_learns_network(tmp_path: Path) -> None:
    done = run("--compare", "--samples", "50", "--epochs", "1", folder=tmp_path, script=SCRIPT)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ *\([\d, ]+\) float(?:64|32) +([\d.]+) s +([\d.]+) s +[\d.]+$", done.stdout, re.MULTILINE)
    assert len(rows) == 4 and all(float(seconds) < 5 for row in rows for seconds in row)


@pytest.mark.slow
def test_without_a_device_it_says_what_is_needed(tmp_path: Path) -> None:
    done = run("--device", "cuda", folder=tmp_path, script=SCRIPT)
    assert done.returncode != 0 and "TRITENSOR_SIMULATE_CUDA=1" in done.stderr and "Traceback" not in done.stderr
