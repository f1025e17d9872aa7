"""Running a program of the documentation as its page says, in a folder of its own."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

from ..needs import HAS_TRITON

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "docs" / "programs"
PAGES = ROOT / "docs" / "questions"

ALL = sorted(PROGRAMS.glob("*.py"))


def output_of(program: Path, folder: Path) -> str:
    """What a program prints when it is run in `folder`."""
    text = program.read_text("utf-8")
    if program.name.startswith("test_"):
        plugins = ("-p", "no:cacheprovider", "-p", "tritensor.pytest_plugin")
        return _results(run("-m", "pytest", "-v", *plugins, "--devices", "cpu,sim:2", program, folder=folder))
    if "\nimport torch\n" in text:
        simulated = ("--simulate-cuda", "1") if HAS_TRITON else ()
        return run("-m", "tritensor", "run", *simulated, program, folder=folder)
    return _here(program, folder)


def _here(program: Path, folder: Path) -> str:
    """In this process: the program's simulations end with their blocks, and starting Python takes longer than most."""
    out, errors, before = io.StringIO(), io.StringIO(), Path.cwd()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        os.chdir(folder)
        try:
            runpy.run_path(str(program), run_name="__main__")
        finally:
            os.chdir(before)
    unseen = [errors.getvalue(), *(str(warning.message) for warning in warned)]
    assert unseen == [""], f"{program.name} wrote to stderr: {unseen}"
    return out.getvalue()


def run(*command: str | Path, folder: Path) -> str:
    """What Python prints in another process, where pytest has only the plugins that are named."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "100"}
    environment = {
        name: value for name, value in environment.items() if not name.startswith(("TRITENSOR_", "PYTEST_A"))
    }
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _results(report: str) -> str:
    """The lines of a report of pytest that are the same everywhere: one for each test, and their number."""
    lines = re.findall(r"^\S+::\S+ [A-Z]+(?: \(.*\))?|\d+ passed.*(?= in )", report, re.MULTILINE)
    return "".join(f"{re.sub('^[^ ]*/', '', line)}\n" for line in lines)


def recorded(program: Path) -> str:
    """The output that the pages show; empty if there is none yet."""
    path = program.with_suffix(".txt")
    return path.read_text("utf-8") if path.exists() else ""
