"""What the stubs of the package say, read without a type checker."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

import tritensor

from .checking import PACKAGE

OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"]
TREE = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))


def names_of(tree: ast.Module) -> set[str]:
    """The names that a stub gives to others: what it defines, and what it imports by `as`."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found.update(alias.asname for alias in node.names if alias.asname)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def test_the_package_lists_every_module_that_it_imports_when_it_is_named() -> None:
    assert "backends" in dir(tritensor)
    assert set(tritensor.__all__) | set(tritensor._LATER) <= names_of(TREE)


def test_no_module_hides_a_function_of_its_name() -> None:
    """To a type checker `from .tensor import Tensor` makes the module a name of the package."""
    from_here = [node for node in TREE.body if isinstance(node, ast.ImportFrom) and node.level == 1]
    modules = {str(node.module).split(".")[0] for node in from_here}
    functions = {name for name in tritensor.__all__ if not inspect.ismodule(getattr(tritensor, name))}
    assert modules & functions == set()


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_return_tensors(name: str) -> None:
    for prefix in ("", "r"):
        assert inspect.signature(getattr(tritensor.Tensor, f"__{prefix}{name}__")).return_annotation == "Tensor"


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_return_tensors(name: str) -> None:
    assert inspect.signature(getattr(tritensor.Tensor, f"__{name}__")).return_annotation == "Tensor"


@pytest.mark.parametrize("name", tritensor.masked.__all__)
def test_masked_functions_have_their_own_annotations(name: str) -> None:
    function: Any = getattr(tritensor.masked, name)
    shown = inspect.signature(function)
    assert shown.return_annotation == "Tensor" and shown.parameters["input"].annotation == "Tensor"
