"""The programs on docs/libraries.md run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..needs import needs_triton

pytestmark = pytest.mark.peer

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = re.findall(
    r"^```py\n(.*?)^```$", (ROOT / "docs" / "libraries.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
)
PRINTED = [
    "{device} True",
    "True True",
    "tensor(9.) tensor([1.5000, 2.5000, 3.5000])",
    "tritensor.Size([8, 16, 147]) tritensor.Size([8, 16, 16])",
    "tritensor.float64 tritensor.int64",
]


@pytest.mark.parametrize("place", range(len(PRINTED)))
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_triton)])
def test_programs_run(place: int, device: str, tmp_path: Path) -> None:
    assert len(PROGRAMS) == len(PRINTED)
    for library in re.findall(r"^(?:import|from) (\w+)", PROGRAMS[place], re.MULTILINE):
        pytest.importorskip(library)
    (tmp_path / "program.py").write_text(PROGRAMS[place])
    simulated = {"TRITENSOR_SIMULATE_CUDA": "1" if device == "cuda" else "0"}
    settings = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": str(ROOT), **simulated}
    command = [sys.executable, "-W", "ignore", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=settings)
    assert done.returncode == 0, done.stderr
    expected = PRINTED[place].replace("{device}", "cuda:0" if device == "cuda" else "cpu")
    assert " ".join(done.stdout.split()) == expected
