"""Random programs give the same in PyTorch and here, or are of a kind that is listed. Run with `pytest -m peer`."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

from . import calls, deferred, known, rounding
from .running import FAMILIES, Tally, devices, replay, run, smallest
from .session import CRASH, OUTCOMES, REFUSED, VALUE, Session

pytestmark = pytest.mark.peer

SIMULATED = ("indexing", "views", "numbers", "reductions", "creation", "printing", "optimizers")
FAILING = (VALUE, CRASH, REFUSED)
# The share of the statements that PyTorch runs: fewer, and little is compared; all, and no refusal is.
SHARES = {
    "refusals": (0.3, 0.7),
    "printing": (0.7, 0.97),
    "optimizers": (0.7, 0.99),
    "transforms": (0.9, 1),
    "modules": (0.7, 0.999),
    "training": (0.9, 1.01),
}


def told(tally: Tally, device: str) -> str:
    """What fails, each kind with its smallest program."""
    lines = []
    with devices(device):
        for kind, results in tally.kinds.items():
            if kind[1] in FAILING:
                found = results[0].found
                assert found is not None
                lines += ["", f"{len(results)} x {' | '.join(kind)} (--family {kind[0]} --only {results[0].seed})"]
                lines += [*smallest(results[0], device), *(f"# {line}" for line in found.detail.splitlines())]
    return "\n".join(lines)


def many(family: str, count: int, device: str) -> Tally:
    tally = Tally()
    with devices(device):
        for seed in range(count):
            tally.add(run(family, seed, device))
    return tally


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_on_the_cpu(family: str) -> None:
    tally = many(family, 300, "cpu")
    assert not told(tally, "cpu"), told(tally, "cpu")
    low, high = SHARES.get(family, (0.7, 0.95))
    assert low < tally.accepted / tally.statements < high
    assert tally.compared > 3 * tally.programs


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_that_are_noted_give_the_same(family: str) -> None:
    assert deferred.differing(family, 0, 40) == []


@pytest.mark.parametrize("family", SIMULATED)
def test_programs_on_a_simulated_device(family: str) -> None:
    tally = many(family, 30, "simulated")
    assert not told(tally, "simulated"), told(tally, "simulated")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_seed_is_one_program(family: str) -> None:
    with devices("cpu"):
        assert run(family, 5).statements == run(family, 5).statements


def test_every_public_function_is_called_by_a_family() -> None:
    """A new function is drawn by the names of its parameters, or `calls.UNCALLED` says why not."""
    assert calls.uncallable() == ()


# What is planted is found: statements of which the last differs, and the outcome.
PLANTED = {
    "x0 = torch.tensor([1.0, 2.0]); x0.there = 1; r1 = x0.there + 1": None,
    "x0 = torch.ones(2); r1 = x0 + len(torch.__name__)": VALUE,
    "x0 = torch.ones(2); r1 = x0[len(torch.__name__) - 5]": REFUSED,
    "x0 = torch.ones(2); r1 = x0[9 - len(torch.__name__)]": "accepted here alone",
    "x0 = torch.ones(2); x0.requires_grad_(len(torch.__name__) > 5)": VALUE,
    "x0 = torch.ones(2); v1 = x0.view(2) if len(torch.__name__) > 5 else x0.clone(); x0.add_(1)": VALUE,
    "x0 = torch.ones(2); r1 = (1 / 0) if len(torch.__name__) > 5 else x0['a']": "another error",
}


@pytest.mark.parametrize("program", PLANTED)
def test_a_planted_difference_is_found(program: str) -> None:
    with devices("cpu"):
        found = replay(program.split("; "))
    assert (found.outcome if found else None) == PLANTED[program]


# Whether a difference in the last statement is one of rounding.
ROUNDED = {
    "x0 = torch.tensor([5.0]); x1 = x0 + 1e8 if len(torch.__name__) == 5 else x0 + 5e7 + 5e7; r1 = x1 - 1e8": True,
    # a root, of which a change of x0 by an ulp changes no digit
    "x0 = torch.tensor([7e36]); r1 = (x0.pow(1 / 9) if len(torch.__name__) == 5 else x0.pow(1 / 9).mul(3).div(3))"
    ".sub(12413.658)": True,
    "x0 = torch.tensor([5.0]); x1 = x0 + 1e8; r1 = x1 - 1e8 + 99 * len(torch.__name__)": False,
    "x0 = torch.tensor([5.0]); r1 = x0 * 2 + len(torch.__name__) * (x0.element_size() == 4)": False,
    "x0 = torch.ones(2); r1 = x0.requires_grad_(len(torch.__name__) > 5)": False,
    "x0 = torch.ones(2); f1 = (torch.float32 if len(torch.__name__) > 5 else torch.float64, x0.sum().item())": False,
}


@pytest.mark.parametrize("program", ROUNDED)
def test_rounding_excuses_what_rounding_decides(program: str) -> None:
    with devices("cpu"):
        session = Session("cpu")
        found = [session.run(statement) for statement in program.split("; ")]
        difference = next(each for each in found if each is not None)
        assert difference.outcome == VALUE
        assert rounding.decides(difference, session) == ROUNDED[program]


def test_the_smallest_program_has_what_the_difference_needs() -> None:
    statements = ["x0 = torch.ones(3)", "y1 = x0 * 2", "x1 = torch.zeros(3)", "r1 = x1 + len(torch.__name__)"]
    with devices("cpu"):
        result = run("numbers", 0)
        found = replay(statements)
        result = type(result)("numbers", 0, tuple(statements), found, 0, 0)
        assert smallest(result) == statements[2:]


def test_entries_are_of_outcomes_and_compile() -> None:
    for entry in known.KNOWN:
        assert entry.outcome in OUTCOMES
        assert re.compile(entry.words) and re.compile(entry.statement) and re.compile(entry.program)
