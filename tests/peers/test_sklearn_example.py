"""The example of scikit-learn on a device, as its user runs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..needs import needs_triton
from ..project.test_train_digits import run

pytestmark = pytest.mark.peer

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "sklearn_on_device.py"


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_triton)])
def test_it_predicts_on_the_device_what_scikit_learn_predicts_on_numpy(device: str, tmp_path: Path) -> None:
    pytest.importorskip("sklearn", minversion="1.9")
    settings = {"TRITENSOR_SIMULATE_CUDA": "1"} if device == "cuda" else {}
    done = run("--device", device, "--samples", "100", "--picture", "x.png", folder=tmp_path, script=SCRIPT, **settings)
    assert done.returncode == 0, done.stderr
    place = "cuda:0" if device == "cuda" else "cpu"
    assert done.stdout.count(f"on {place}, predictions on {place}") == 2
    accuracy = re.search(r"accuracy ([\d.]+)", done.stdout)
    assert accuracy is not None and float(accuracy[1]) > 0.8
    differences = [float(each) for each in re.findall(r"at most (\S+) from what", done.stdout)]
    assert len(differences) == 2 and max(differences) < 0.01
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_it_says_that_there_is_no_device(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", minversion="1.9")
    done = run("--device", "cuda", folder=tmp_path, script=SCRIPT)
    assert done.returncode != 0 and "TRITENSOR_SIMULATE_CUDA=1" in done.stderr and "Traceback" not in done.stderr
