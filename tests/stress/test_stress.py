"""A round of each scenario; the nightly workflow runs them for an hour."""

from __future__ import annotations

import random

import pytest

from . import __main__ as command
from .scenarios import SCENARIOS


def slow(name: str) -> bool:
    """Whether the quick group leaves a scenario out."""
    # an interrupt may also come to what runs the tests
    return name.startswith("interrupted") or name == "memory_over_20_000_steps"


# an interrupt in a finalizer or in a hook of a fork, where Python swallows it
@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * slow(name)) for name in SCENARIOS],
)
def test_a_round(name: str) -> None:
    assert SCENARIOS[name](random.Random(name))


def test_the_command_counts_rounds_and_repeats_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(rng: random.Random) -> None:
        raise AssertionError("lost")

    assert command.main(["--only", "deep_graphs", "--seed", "3"]) == 0
    assert "| deep_graphs | 1 | " in capsys.readouterr().out
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SCENARIOS, "deep_graphs", fails)
        assert command.main(["--only", "deep_graphs", "--seed", "5"]) == 1
    printed = capsys.readouterr().out
    assert "1 failures" in printed and "AssertionError: lost" in printed and "--only deep_graphs --seed 5" in printed
