"""The programs that type checkers are shown run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..needs import HAS_TRITON
from .checking import PACKAGE, PROGRAMS

pytestmark = pytest.mark.editors
ON_DEVICES = ("graphs_and_streams", "simulated_device")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_program_runs(program: Path, tmp_path: Path) -> None:
    if program.stem in ON_DEVICES and not HAS_TRITON:
        pytest.skip("simulated devices need Triton")
    if program.stem == "pictures":
        pytest.importorskip("PIL")
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout
