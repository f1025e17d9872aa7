"""A case: what is run with both sides, and what of it differs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch as reference

from tritensor.errors import TritensorError

from ..functional.beside_torch import gradients, name_of
from ..programs import known
from ..programs.comparison import LAYOUT, difference
from ..programs.kinds import CRASH, ERROR, VALUE
from ..programs.kinds import LAYOUT as STRIDES
from ..programs.session import Difference, of_errors, place_of, words_of
from .sides import Side, Untranslated, ours, tensors, theirs

MISSING, NODES, RANDOM = "missing", "nodes", "random values"
ABSENT = r"(module 'tritensor.*'|type object 'Tensor'|'Tensor' object) has no attribute"


class Case(Protocol):
    """A sample, which PyTorch runs first."""

    statement: str  # what is told of it
    words: str | None  # a regular expression for the error that it has to raise

    def facts(self, side: Side) -> dict[str, Any]:
        """What can be seen after running it: by the name of the fact, tensors and values."""


def facts_of_call(
    side: Side, function: Any, args: list[Any], kwargs: dict[str, Any], parameters: list[Any], orders: int
) -> dict[str, Any]:
    """What a call gives, and the gradients of what is floating by the arguments and parameters."""
    before = reference.get_rng_state()
    out = function(*args, **kwargs)
    nodes = [each.grad_fn and name_of(each.grad_fn) for each in tensors(out)]
    facts = {"result": out, NODES: nodes, RANDOM: not before.equal(reference.get_rng_state())}
    outs = [each for each in tensors(out) if each.requires_grad and each.is_leaf is False]
    leaves = [*(each for each in tensors([args, kwargs]) if each.requires_grad), *parameters]
    if outs and leaves and orders:
        found = gradients(side.library, outs, leaves, orders)
        facts |= {
            f"{order} gradient": [part if part is None else part.detach() for part in parts]
            for order, parts in found.items()
        }
    return facts


def compared(case: Case, device: str = "cpu", times: int = 1) -> Difference | None:
    """What differs, None if nothing does. The order of strides and the names of nodes are told if nothing else is.

    Of several `times` that ours is computed, the last is compared.
    """
    expected, their_error = attempted(case, theirs())
    try:
        for _ in range(times):
            found, our_error = attempted(case, ours(device))
    except Untranslated as error:
        return Difference(MISSING, case.statement, "", f"no counterpart of {error}")
    if isinstance(our_error, AttributeError) and re.search(ABSENT, str(our_error)):
        return Difference(MISSING, case.statement, "", words_of(our_error))  # a lambda calls what is not there
    differ, words = of_errors(our_error, their_error), case.words or "^$"
    seen = str(our_error).replace("tritensor.", "torch.")
    if differ is None and re.search(words, str(their_error)) and not re.search(words, seen):
        differ = (ERROR, f"{words_of(our_error)}\n    torch: {words_of(their_error)}")
    if differ is not None:
        return Difference(differ[0], case.statement, "", differ[1], place_of(our_error) if our_error else "")
    try:
        all_of_them = list(differences(found, expected))
    except TritensorError as error:  # a result whose elements cannot be read
        return Difference(CRASH, case.statement, "", words_of(error), place_of(error))
    all_of_them.sort(key=lambda each: (f"of {NODES}" in each[1], each[0] == STRIDES))
    return Difference(all_of_them[0][0], case.statement, "", all_of_them[0][1]) if all_of_them else None


def attempted(case: Case, side: Side) -> tuple[dict[str, Any], Exception | None]:
    """The facts, or the error."""
    reference.manual_seed(0)
    try:
        return case.facts(side), None
    except Untranslated:
        raise
    except Exception as error:
        return {}, error


def differences(found: dict[str, Any], expected: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The outcome and the detail of each fact that differs."""
    random = expected.pop(RANDOM, False)
    for fact, wanted in expected.items():
        if fact not in found and not any(part.any() for part in tensors(wanted)):
            continue  # a gradient of zeros, of something without elements, has no graph here
        mine = found.get(fact)
        parts = [(mine, wanted)]
        if isinstance(wanted, (tuple, list)) and isinstance(mine, (tuple, list)) and len(mine) == len(wanted):
            parts = list(zip(mine, wanted, strict=True))
        for position, (one, other) in enumerate(parts):
            what = difference(one, other)
            if what is None or (random and re.match("value|result", what)):
                continue
            kind, _, seen = what.partition("\n")
            outcome = STRIDES if kind.startswith((LAYOUT, "strides")) else VALUE
            if outcome == VALUE or "gradient" not in fact:
                yield outcome, f"{kind} of {fact}{f' [{position}]' * (len(parts) > 1)}\n{seen}"


@dataclass
class Row:
    """What came of the samples of one entry of PyTorch's tables."""

    name: str
    agree: int = 0
    missing: int = 0  # samples that call or pass what is not there
    listed: Counter[str] = field(default_factory=Counter)
    found: list[Difference] = field(default_factory=list)

    @property
    def samples(self) -> int:
        """How many there were."""
        return self.agree + self.missing + self.listed.total() + len(self.found)

    @property
    def verdict(self) -> str:
        """Whether all samples agree, but for what `docs/differences.md` lists."""
        return "differ" if self.found else "agree" if self.samples > self.missing == 0 else "are missing, or in part"

    def add(self, found: Difference | None) -> None:
        """Count a sample."""
        entry = found and known.entry(found, (found.statement,))
        if found is None:
            self.agree += 1
        elif found.outcome == MISSING:
            self.missing += 1
        elif entry:
            self.listed[entry.title] += 1
        else:
            self.found.append(found)

    def __str__(self) -> str:
        first = " ".join(self.found[0].detail.split())[:100] if self.found else "" if self.samples else MISSING
        numbers = (self.samples, self.agree, self.listed.total(), self.missing, len(self.found))
        return f"| {self.name} | {' | '.join(map(str, numbers))} | {first} |"
