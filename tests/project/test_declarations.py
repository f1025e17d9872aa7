"""The declaration of an operator is whole: no table elsewhere names operators to say something of each.

What a family or a layer says of its operators stands in `kernels/` and `nn/`; tables of other modules may list names of
operators only where they are about something else that has these names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tritensor
from tritensor.operators import registry
from tritensor.operators.autocasting import POLICIES

PACKAGE = Path(tritensor.__file__).parent
DECLARING = ("kernels/", "nn/")

# Modules with tables of such names, and why.
OTHERS = {
    "array_api/elementwise.py": "the functions of the standard",
    "array_api/statistics.py": "the functions of the standard",
    "drivers/native/functions.py": "the functions of libdevice and of the C library",
    "drivers/ptx/arithmetic.py": "instructions of PTX",
    "drivers/ptx/bits.py": "comparisons of PTX",
    "drivers/ptx/table.py": "instructions of PTX",
    "functional/indexing/scattering.py": "the values of the argument `reduce`",
    "functional/indexing/segment_reduction.py": "the values of the argument `reduce`",
    "ground/overriding.py": "the methods that are Python's syntax",
    "masked.py": "the functions of the namespace",
    "special.py": "the functions of the namespace that have the same name in the package",
}


def names_in(node: ast.AST) -> list[str]:
    """The strings of a literal: keys of a dict, elements of a list, words of a string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.replace(",", " ").split()
    elements = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    return [each.value for each in elements if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def tables_of(text: str) -> Iterator[int]:
    """The lines of literals, other than docstrings, half of whose strings are names of at least four operators."""
    tree = ast.parse(text)
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        names = [] if id(node) in texts else names_in(node)
        named = registry.keys() & names
        if len(named) >= 4 and 2 * len(named) >= len(set(names)):
            yield node.lineno  # type: ignore[attr-defined]


MODULES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}


def test_no_table_names_operators_but_those_of_their_families() -> None:
    found = {
        name: lines
        for name, path in MODULES.items()
        if not name.startswith(DECLARING) and (lines := [*tables_of(path.read_text(encoding="utf-8"))])
    }
    assert found.keys() == OTHERS.keys(), found


@pytest.mark.parametrize(
    "text",
    [
        '_LOWER = "exp log sin cos tan"',
        'NAMES = {"exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos"}',
        'RULES = frozenset(["exp", "log", "sin", "cos", "another"])',
    ],
)
def test_a_table_is_found(text: str) -> None:
    assert [*tables_of(text)] == [1]


def test_facts_of_a_declaration_are_those_that_are_used() -> None:
    for operator in registry.values():
        assert operator.listed == bool(operator.autocast), operator.name
        assert operator.linear in ("", "first", "product", "written"), operator.name
        assert not operator.listed or POLICIES[operator.name].items() <= operator.autocast.items(), operator.name
