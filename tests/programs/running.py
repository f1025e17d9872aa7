"""Programs drawn and run: one seed, or many of them with a count of what came out."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import torch as reference

import tritensor

from . import known, rounding
from .drawing import Draw, Finished
from .kinds import DECIDED_BY_ROUNDING, OTHER_WAY
from .session import OUTCOMES, REFUSED, VALUE, Changed, Difference, Session, Unsuitable

FAMILIES = (
    "indexing",
    "views",
    "numbers",
    "reductions",
    "creation",
    "optimizers",
    "printing",
    "refusals",
    "distributions",
    "transforms",
    "linear",
    "training",
    "modules",
)


@dataclass(frozen=True)
class Result:
    """What came of one seed."""

    family: str
    seed: int
    statements: tuple[str, ...]
    found: Difference | None
    accepted: int
    compared: int


@dataclass
class Tally:
    """The counts of many programs, and of each kind of difference how often and the seeds and smallest program."""

    programs: int = 0
    statements: int = 0
    accepted: int = 0
    compared: int = 0
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    listed: dict[str, int] = field(default_factory=dict)
    kinds: dict[tuple[str, ...], list[Result]] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        """Count one program."""
        self.programs += 1
        self.statements += len(result.statements)
        self.accepted += result.accepted
        self.compared += result.compared
        if result.found is None:
            return
        entry = known.entry(result.found, result.statements)
        if entry is not None:
            self.listed[entry.title] = self.listed.get(entry.title, 0) + 1
        if entry is None or entry.outcome == REFUSED:
            self.outcomes[result.found.outcome] += 1
        if entry is None:
            self.kinds.setdefault((result.family, *result.found.kind), []).append(result)


@contextmanager
def devices(device: str) -> Iterator[None]:
    """What a run on a device needs: tensors are made there by default."""
    with ExitStack() as stack:
        warnings_of = stack.enter_context(warnings.catch_warnings())
        del warnings_of
        warnings.simplefilter("ignore")
        threads = reference.get_num_threads()
        reference.set_num_threads(1)
        stack.callback(reference.set_num_threads, threads)
        if device == "simulated":
            stack.enter_context(tritensor.cuda.simulate(devices=1))
            before = tritensor.get_default_device()
            tritensor.set_default_device("cuda")
            stack.callback(tritensor.set_default_device, before)
        yield


_entered = ExitStack()  # in a process that runs programs until it ends


def enter(device: str) -> None:
    """Make a process ready to run programs on a device until it ends."""
    _entered.enter_context(devices(device))


def run_task(task: tuple[str, int], device: str) -> Result:
    """Run the program of a family and a seed."""
    return run(*task, device)


def run(family: str, seed: int, device: str = "cpu") -> Result:
    """Draw the program of a seed and run it in both libraries, up to its first difference."""
    session = Session(device)
    draw = Draw(session, f"{family} {seed}")
    try:
        importlib.import_module(f".{family}", __package__).program(draw)
    except Finished:
        pass
    finally:
        restore()
    found = draw.found
    if found is not None and found.outcome == VALUE and rounding.decides(found, session):
        found = replace(found, detail=f"{found.detail}\n    {DECIDED_BY_ROUNDING}")
    elif found is not None and family == "transforms" and found.outcome == VALUE:
        from .other_ways import differs_in_torch
        from .transforms import HELPERS

        if differs_in_torch(found, session, HELPERS):
            found = replace(found, detail=f"{found.detail}\n    {OTHER_WAY}")
    restore()  # these ran the program again
    return Result(family, seed, tuple(session.statements), found, session.accepted, session.compared)


def restore() -> None:
    """Undo the settings of a program."""
    for library in (reference, tritensor):
        library.set_default_dtype(library.float32)
        library.set_printoptions(profile="default")


def replay(statements: Iterable[str], device: str = "cpu") -> Difference | None:
    """Run fixed statements: the first difference, None where there is none or a name is missing."""
    session = Session(device)
    try:
        for statement in statements:
            found = session.run(statement)
            if found is not None:
                return found
    except (Changed, Unsuitable):
        pass
    finally:
        restore()
    return None


def smallest(result: Result, device: str = "cpu") -> list[str]:
    """The statements of a program that its difference needs."""
    statements, wanted = list(result.statements), result.found
    assert wanted is not None
    position = len(statements) - 2
    while position >= 0:
        fewer = statements[:position] + statements[position + 1 :]
        found = replay(fewer, device)
        if found is not None and found.kind == wanted.kind:
            statements = fewer
        position -= 1
    return statements
