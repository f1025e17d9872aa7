"""What the package says of its types: two measures that may shrink and must not grow."""

from __future__ import annotations

import ast
from pathlib import Path

import tritensor

PACKAGE = Path(tritensor.__file__).parent
UNTYPED = 3_300  # parameters of Any or of no annotation, most of them of Triton bodies; lower it when there are fewer


def unannotated(tree: ast.Module) -> int:
    """The number of parameters that have no annotation or are of Any; `*args` and `**named` do not count."""
    functions = [node.args for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    given = [each for own in functions for each in (*own.posonlyargs, *own.args, *own.kwonlyargs)]
    kinds = [each.annotation for each in given if each.arg not in ("self", "cls")]
    return sum(kind is None or (isinstance(kind, ast.Name) and kind.id == "Any") for kind in kinds)


def test_measure_of_parameters():
    """It counts what it says."""
    text = "def f(self, a, b: Any, c: int, d: Any | None, *e: Any, g: Any = 1, **h: Any): ..."
    assert unannotated(ast.parse(text)) == 3


def test_parameters_have_types():
    """No more parameters without a type than there were."""
    assert sum(unannotated(ast.parse(path.read_text(encoding="utf-8"))) for path in PACKAGE.rglob("*.py")) <= UNTYPED


def test_returned_any_is_not_ignored():
    """Few comments let the checker accept a returned Any: members of Tensor and operators have types."""
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    assert sum(text.count("no-any-return") for text in texts) < 50
