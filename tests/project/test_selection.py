"""What a run collects: a sample and what it leaves are all cases, and where the time went is told by what happened."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..needs import needs_triton
from ..selection import groups_without

ROOT = Path(__file__).resolve().parents[2]
SAMPLED = "tests/functional/test_attention_on_devices.py"
QUICK = "not slow and not peer and not site and not editors and not thorough"


def run(*words: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def collected(expression: str, *words: str) -> set[str]:
    found = run("--collect-only", "-m", expression, SAMPLED, *words).splitlines()
    return {line for line in found if "::" in line}


@pytest.mark.parametrize(
    ("expression", "groups"),
    [
        (QUICK, {"slow", "peer", "site", "editors", "thorough"}),
        ("not slow", {"slow"}),
        ("", set()),
        ("slow", set()),
        ("not slow or thorough", set()),
        ("not (slow and peer)", set()),
    ],
)
def test_groups_are_left_out_by_expressions_that_say_so(expression: str, groups: set[str]) -> None:
    assert groups_without(expression) == groups


@pytest.mark.thorough
def test_a_sample_and_what_it_leaves_are_all_cases() -> None:
    quick, thorough, every = collected(QUICK), collected("thorough"), collected("not slow")
    assert quick and thorough and not quick & thorough and quick | thorough == every
    name = f"{SAMPLED}::test_kernels_agree_with_blocks_on_the_cpu["
    assert len([case for case in quick if case.startswith(name)]) == 1  # as the test says of itself
    assert len([case for case in every if case.startswith(name)]) > 1


@pytest.mark.thorough
def test_what_is_left_out_is_not_collected() -> None:
    """Not even to be deselected: neither functions nor files of another group."""
    files = (
        SAMPLED,
        "tests/exchange/test_cuda.py",
        "tests/serialization/test_paths.py",
        "tests/serialization/test_peer.py",
    )
    printed = run("--collect-only", "-m", QUICK, *files)
    assert "deselected" not in printed and "test_peer.py" not in printed and "test_paths.py" in printed


@pytest.mark.thorough
@needs_triton
def test_the_time_is_told_by_what_tests_do() -> None:
    files = ("tests/project/test_light_import.py", "tests/project/test_calls.py", SAMPLED)
    printed = run("--times", "-k", "few_modules or enters or agree_with_blocks", *files)
    assert re.search(r" s +\d+ tests  tests/project\n", printed) and "tests  tests/functional\n" in printed
    for kind in ("starts processes", "interprets kernels", "computes on the CPU"):
        assert re.search(rf"\d s  {kind}\n", printed), printed
