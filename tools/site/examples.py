"""An example for every function: the call, and the operands that it takes.

An example in a function's docstring comes first. The others are calls of the tests of `out=`
(`tests/functional/calls_with_out.py`), and those of `docs/examples.toml`. They are run when the pages are made, and
what they print is shown, so that they cannot say what does not happen.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
from collections.abc import Iterator
from typing import Any

import tritensor
from tests.functional.calls_with_out import CALLS as CALLS_WITH_OUT
from tests.functional.calls_with_out import OPERANDS as OPERANDS_WITH_OUT

from . import table
from .parameters import matches

__all__ = ["RANDOM", "call_of", "setup_of", "shown"]

_TABLE = table("examples")
OPERANDS: dict[str, str] = {**OPERANDS_WITH_OUT, **_TABLE["operands"]}
CALLS: dict[str, str] = CALLS_WITH_OUT | {
    name: call for call, names in _TABLE["calls"].items() for name in names.split()
}
#: the statements that show a method of the backward pass, of an `x` that requires a gradient
BACKWARD: dict[str, list[str]] = _TABLE["backward"]
#: methods of sparse tensors, to which `x` is converted first
SPARSE = ("coalesce", "indices", "values", "is_coalesced", "sparse_mask", "sparse_resize_", "sparse_resize_and_clear_")

#: names whose results are drawn, or are whatever the memory holds
RANDOM = re.compile(
    r"rand|empty|dropout|bernoulli|multinomial|normal|poisson|binomial|rrelu|gumbel|fractional|lowrank|cauchy|uniform"
    r"|exponential_|geometric|random|seed"
)


def call_of(name: str) -> str | None:
    """The arguments of the example of a function, `x, 0`; None where there is none in the tables."""
    space, _, plain = name.rpartition(".")
    named = CALLS.get(name, CALLS.get(plain) if space in ("", "linalg", "special") else None)
    found = (call for names, call in _TABLE["others"].items() if matches(name, names))
    return named or next((None if call == "none" else call for call in found), None)


def setup_of(call: str) -> list[str]:
    """The statements that make the operands which a call names."""
    names = [node.id for node in ast.walk(ast.parse(f"f({call})")) if isinstance(node, ast.Name)]
    found = [f"{name} = {OPERANDS[name]}" for name in dict.fromkeys(names) if name in OPERANDS]
    return ["import numpy as np", *found] if "np" in names else found


def shown(statements: list[str], names: dict[str, Any] | None = None) -> Iterator[str]:
    """The lines of a session that runs the statements, as Python's prompt shows it.

    Raises what a statement raises.
    """
    names = {"torch": tritensor} if names is None else names
    for statement in statements:
        lines = statement.split("\n")
        yield f">>> {lines[0]}"
        yield from (f"... {line}" for line in lines[1:])
        out, before = io.StringIO(), sys.displayhook
        sys.displayhook = lambda value: None if value is None else print(repr(value), file=out)  # noqa: B023
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(statement, "<example>", "single"), names)
        finally:
            sys.displayhook = before
        yield from out.getvalue().rstrip("\n").split("\n") if out.getvalue() else ()
