"""`python -m tritensor`: doctor, inspect, and what is said to a command that is none."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import tritensor as torch
from tritensor.__main__ import COMMANDS, main

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


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"]])
def test_usage(words, capsys) -> None:
    assert main(words) == 0
    captured = capsys.readouterr()
    assert "usage: python -m tritensor COMMAND" in captured.out and not captured.err
    assert all(f"\n  {command} " in captured.out for command in COMMANDS)


@pytest.mark.parametrize("words", [["--version"], ["-V"]])
def test_the_version(words, capsys) -> None:
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"tritensor {torch.__version__} from ") and f"python {platform.python_version()}" in shown


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["rum", "x.py"], "run"),
        (["doktor"], "doctor"),
        ([__file__, "-x"], f"run {__file__}"),
        (["--vresion"], "--help"),
    ],
)
def test_an_unknown_command_is_told_what_was_meant(words, meant, capsys) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert f"error: unknown command {words[0]!r}" in captured.err and not captured.out
    assert f"Did you mean `python -m tritensor {meant}`?" in captured.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_options_to_help(command, capsys) -> None:
    for words, status in ((["--help"], 0), (["--not-there"], 2)):
        with pytest.raises(SystemExit) as ended:
            main([command, *words])
        captured = capsys.readouterr()
        assert ended.value.code == status
        assert f"usage: python -m tritensor {command}" in (captured.err if status else captured.out)


# What extras bring, gone: the default install.
BLOCKED = """import sys
for name in ("PIL", "triton", "cuda", "matplotlib", "sklearn", "scipy", "torch", "torchvision", "numpy.f2py"):
    sys.modules[name] = None
"""
PROGRAM = """import sys
import torch, torch.nn as nn
from torch.nn.init import *
layer = nn.Linear(3, 2)
layer(torch.ones(4, 3)).sum().backward()
print(sys.argv[1:], tuple(layer.weight.grad.shape), torch.cuda.is_available())
"""


def without(tmp_path: Path, *words: str, blocked: str = BLOCKED) -> subprocess.CompletedProcess[str]:
    """A command where what extras install is missing, and the program that it is given."""
    (tmp_path / "sitecustomize.py").write_text(blocked, encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    root = Path(__file__).resolve().parents[2]
    return run(*words, PYTHONPATH=os.pathsep.join([str(tmp_path), str(root)]))


def test_a_program_runs_on_the_default_install_and_its_options_are_its_own(tmp_path: Path) -> None:
    path = str(tmp_path / "program.py")
    for before in ((), ("--",), ("--profile",)):
        done = without(tmp_path, "run", *before, path, "--lr", "0.1", "--help", "--profile")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "['--lr', '0.1', '--help', '--profile'] (2, 3) False\n"
        assert ("tottime" in done.stderr) == (before == ("--profile",))


@pytest.mark.parametrize("words", [("profile",), ("run", "--simulate-cuda", "2")])
def test_a_command_that_needs_triton_says_at_once_how_to_install_it(tmp_path: Path, words) -> None:
    done = without(tmp_path, *words, str(tmp_path / "program.py"))
    assert done.returncode == 2 and "pip install 'tritensor[triton]'" in done.stderr
    assert "Traceback" not in done.stderr and not done.stdout


@pytest.mark.thorough
@needs_triton
@pytest.mark.parametrize("words", [("profile",), ("run", "--simulate-cuda", "2")])
def test_a_program_is_profiled_and_simulated_without_pillow(tmp_path: Path, words) -> None:
    done = without(tmp_path, *words, str(tmp_path / "program.py"), blocked=BLOCKED.replace('"triton", ', ""))
    assert done.returncode == 0 and done.stdout.startswith("[] (2, 3) True\n"), done.stderr


def test_pictures_without_pillow_say_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pictures.py").write_text("import torchvision\n", encoding="utf-8")
    for command in ("run", "scan"):
        done = without(tmp_path, command, str(tmp_path / "pictures.py"))
        shown = done.stdout + done.stderr
        assert done.returncode == 1 and "needs Pillow" in shown and 'pip install "tritensor[vision]"' in shown
