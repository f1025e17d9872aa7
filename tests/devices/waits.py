"""Every place in the package where something waits, and the package without one of them.

A wait that is missing gives a wrong answer once in a thousand runs on a device and every time on a simulated one whose
streams run late. So each wait can be shown to be needed: without it, some program has to fail.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import tritensor
from tritensor.drivers import require
from tritensor.drivers.simulator import Mark, Simulator

ROOT = Path(tritensor.__file__).parent

# Calls that are left out. What they return is used by nobody, but for a pending copy's array.
_WAITS = {
    "wait",
    "wait_event",
    "wait_stream",
    "record_stream",
    "hold_until",
    "_wait_for",
    "synchronize",
    "synchronize_all",
    "mark_synchronize",
    "queue_synchronize",
}
# Questions that are answered with yes before their time.
_QUESTIONS = {"mark_done", "queue_done", "is_done"}
# Calls of the CUDA driver by name, with what a driver that does nothing returns.
_DRIVER_CALLS = {"cuCtxSynchronize": "None", "cuStreamQuery": "(0,)"}
_MAYBE = re.compile("|".join((*_WAITS, *_QUESTIONS, *_DRIVER_CALLS, "arena", "queue")))

# Processes that wait for one another are the business of tests/distributed/test_distributed.py and tests/data,
# instructions that wait, of tests/ptx, what counts launches, of tests/profiling, and what measures times on a device,
# of tests/declared/test_profiler.py and tests/profiling/test_tuning.py; what has clocks in place of work, of
# tests/distributed/test_cluster.py.
_ELSEWHERE = frozenset(("counted", "distributed", "multiprocessing", "nn", "profiler", "profiling", "ptx"))
_ELSEWHERE |= {"tuning", "utils"}


@dataclass(frozen=True)
class Site:
    """One place: a module, a function of it, and the number of the node among the function's."""

    module: str
    function: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.module}:{self.function}:{self.text}"


def sites() -> list[Site]:
    """All of them, found in the source."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if not _ELSEWHERE.isdisjoint(parts):
            continue
        module = ".".join(part for part in ("tritensor", *parts) if part != "__init__")
        if not _MAYBE.search(path.read_text(encoding="utf-8")):  # to walk all trees takes six seconds
            continue
        for name, function in _functions(_tree(path)):
            for number, node in enumerate(ast.walk(function)):
                if _replacement(node) is not None:
                    found.append(Site(module, name, number, " ".join(ast.unparse(node).split())))
    return found


@contextmanager
def without(site: Site) -> Iterator[None]:
    """The package as it would be if somebody had forgotten this one."""
    module = importlib.import_module(site.module)
    tree = ast.parse(Path(module.__file__ or "").read_text())
    (function,) = [node for name, node in _functions(tree) if name == site.function]
    target = list(ast.walk(function))[site.number]
    _Forget(target).visit(function)
    code = _code_of(compile(ast.fix_missing_locations(tree), module.__file__ or "", "exec"), site.function)
    found = _find(module, site.function)
    before, found.__code__ = found.__code__, code
    vars(module)["_stale_mark"] = _stale_mark
    try:
        yield
    finally:
        found.__code__ = before
        del vars(module)["_stale_mark"]


def _stale_mark(*_: Any, **__: Any) -> Any:
    """A mark that stands before everything, as one does that was made too early."""
    driver = require()
    if isinstance(driver, Simulator):
        mark = Mark(driver.current_stream(0).handle)
        mark.done = True
        return mark
    return driver.create_stream(0).handle.record(options=driver._timed_event)  # type: ignore[attr-defined]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods by their qualified names; what is defined inside of one is part of it."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def _replacement(node: ast.AST) -> str | None:
    """What stands in the place of a node when it is forgotten; None for a node that is no wait."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr == "is_done":
        return "True"
    if isinstance(node, ast.Compare):  # "is this memory another stream's?"
        names = {_name(side) for side in (node.left, *node.comparators)}
        return "False" if isinstance(node.ops[0], ast.IsNot) and names & {"arena", "queue"} else None
    if not isinstance(node, ast.Call):
        return None
    name = _name(node.func)
    for argument in (name, *[part.value for part in node.args[:1] if isinstance(part, ast.Constant)]):
        if argument in _DRIVER_CALLS:
            return _DRIVER_CALLS[argument]
    if name in _QUESTIONS:
        return "True"
    if name in ("mark", "record") and isinstance(node.func, ast.Attribute):  # operators record too, on the tape
        return "_stale_mark()" if _name(node.func.value).strip("_") in ("driver", "queue", "event") else None
    if name not in _WAITS or not isinstance(node.func, ast.Attribute):
        return None
    return f"{ast.unparse(node.func.value)}.raw" if ast.unparse(node.func) == "data.wait" else "None"


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


class _Forget(ast.NodeTransformer):
    def __init__(self, target: ast.AST) -> None:
        self.target = target

    def visit(self, node: ast.AST) -> Any:
        if node is not self.target:
            return self.generic_visit(node)
        return ast.parse(_replacement(node) or "", mode="eval").body


def _code_of(code: CodeType, name: str) -> CodeType:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_qualname == name:
                return inner
            if name.startswith(f"{inner.co_qualname}."):
                return _code_of(inner, name)
    raise LookupError(name)


def _find(module: Any, name: str) -> FunctionType:
    owner, _, last = name.rpartition(".")
    found: Any = inspect.getattr_static(vars(module)[owner] if owner else module, last)
    found = getattr(found, "fget", None) or getattr(found, "__func__", None) or found
    return inspect.unwrap(found)


def fails(program: Callable[[], object]) -> bool:
    """Whether a program notices."""
    try:
        program()
    except Exception:
        return True
    return False
