"""The programs in `programs/` are run and checked, not imported: they begin when they are imported.

The stubs are made when the package is built or installed; in a checkout that is not, they are made here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tritensor

ROOT = Path(__file__).resolve().parents[2]

collect_ignore = ["programs"]

if not Path(tritensor.__file__).with_suffix(".pyi").is_file():
    subprocess.run(
        [sys.executable, "-m", "tools.generate", "--stubs"],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
