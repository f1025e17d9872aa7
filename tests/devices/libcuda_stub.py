"""Programs on the CUDA driver of `libcuda_stub.c`, which a C compiler makes of it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
EMULATED = HERE / "libcuda_emulated.c"  # a source for `environment`: kernels run


def environment(folder: Path, source: Path = HERE / "libcuda_stub.c", **variables: str) -> dict[str, str]:
    """The environment of a program that has the stub, made in a folder, for its driver. `source` may add to it.

    Skips the test where the stub cannot be: it needs Linux, a C compiler and cuda-core.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not sys.platform.startswith("linux") or compiler is None or importlib.util.find_spec("cuda") is None:
        pytest.skip("the stub needs Linux, a C compiler and cuda-core")
    command = [
        compiler,
        "-shared",
        "-fPIC",
        "-O1",
        "-w",
        f"-I{HERE}",
        "-o",
        str(folder / "libcuda.so.1"),
        str(source),
        "-ldl",
    ]
    subprocess.run(command, check=True)
    ours = {"LD_LIBRARY_PATH": str(folder), "PYTHONPATH": str(HERE.parents[1]), "TRITENSOR_SIMULATE_CUDA": "0"}
    return {**os.environ, **ours, "STUB_DEVICES": "1", **variables}


def run(environment: dict[str, str], *arguments: Any, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """What Python has made of its arguments there."""
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=timeout
    )
