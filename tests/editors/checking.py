"""Type checkers as a user runs them: on files in a folder of their own, where tritensor is an installed package."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tritensor

PACKAGE = Path(tritensor.__file__).parent
PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


def needs(tool: str) -> pytest.MarkDecorator:
    """Skips a test where a tool is not installed."""
    return pytest.mark.skipif(importlib.util.find_spec(tool) is None, reason=f"needs {tool}: tritensor[editors]")


def pyright(folder: Path, **options: object) -> list[dict[str, object]]:
    """What pyright finds in a folder: errors, and the types that `reveal_type` asks for."""
    (folder / "pyrightconfig.json").write_text(json.dumps({"include": ["."], **options}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] > 0
    return [
        {
            "file": Path(each["file"]).name,
            "line": each["range"]["start"]["line"] + 1,
            "severity": each["severity"],
            "message": each["message"],
        }
        for each in found["generalDiagnostics"]
        if each["severity"] != "warning"
    ]


def mypy(folder: Path) -> list[str]:
    """The lines that mypy prints of a folder, but for its summary."""
    command = [sys.executable, "-m", "mypy", "--config-file=", "--scripts-are-modules", "--no-error-summary"]
    environment = {**os.environ, "MYPY_CACHE_DIR": str(folder / "cache")}
    if PACKAGE.parent.name != "site-packages":  # mypy finds those by itself, and asks that they are not named
        command += ["--follow-imports=silent"]
        environment["MYPYPATH"] = str(PACKAGE.parent)
    done = subprocess.run([*command, "."], capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout.splitlines()
