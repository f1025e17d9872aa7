"""What kernels may not say, because the oldest Triton that pyproject.toml allows does not read it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import tritensor

ROOT = Path(tritensor.__file__).parent


@cache
def kernels(text: str) -> list[ast.FunctionDef]:
    """The functions of a module that Triton reads."""
    marks = ("kernel", "device_function")
    if not re.search(r"^ *@.*\b(kernel|device_function)$", text, re.MULTILINE):  # walking trees takes seconds
        return []
    return [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(mark).split(".")[-1] in marks for mark in node.decorator_list)
    ]


def nested_targets(text: str) -> list[int]:
    """Lines of kernels on which a tuple is taken apart within another one: Triton 3.6 cannot hash such names."""
    return [
        node.lineno
        for function in kernels(text)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Tuple) and any(isinstance(each, (ast.Tuple, ast.Starred)) for each in target.elts)
    ]


def test_tuples_are_taken_apart_one_at_a_time() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    assert sum(len(kernels(text)) for text in texts.values()) > 250
    found = {str(path.relative_to(ROOT)): nested_targets(text) for path, text in texts.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_a_nested_target_is_found() -> None:
    assert nested_targets("@kernel\ndef f(x):\n    (a, b), c = x\n    a, b = x\n") == [3]
    assert nested_targets("def f(x):\n    (a, b), c = x\n") == []
