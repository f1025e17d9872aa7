"""`python -m tritensor scan PATH`: which names of torch a program uses, and what of it is missing here.

The program is read, not run. Names are followed from import statements through attributes (`F.relu` after
`import torch.nn.functional as F`), and calls are compared with the parameters of what they call. What a value is cannot
be known without running the program: a method is reported where its name is one of PyTorch's tensors that ours lack.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

from tqdm import tqdm

from ..tensors import Tensor
from . import names

_MOST_PLACES = 5


class Found:
    """The names that programs use: the places (file, line) of each name, and why those that are missing are.

    Attributes:
        used: the places by name; `torch.nn.Linear` as PyTorch writes it.
        missing: the reason by name, a part of `used`'s.
        perhaps: likewise, for names that the program can do without, and methods that may not be a tensor's.
        refused: files that could not be read as Python, and why.
    """

    def __init__(self) -> None:
        self.used: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self.missing: dict[str, str] = {}
        self.perhaps: dict[str, str] = {}
        self.refused: dict[str, str] = {}

    def note(self, name: str, path: str, line: int) -> None:
        """A use of a name."""
        if (path, line) not in self.used[name]:
            self.used[name].append((path, line))

    def report(self) -> str:
        """The names, first the missing ones, with their places."""
        lines = [f"{path}: not read, {reason}" for path, reason in self.refused.items()]
        perhaps = {name: reason for name, reason in self.perhaps.items() if name not in self.missing}
        there = {name: "" for name in self.used if name not in self.missing and name not in perhaps}
        for title, table in (("missing", self.missing), ("perhaps missing", perhaps), ("there", there)):
            if table:
                lines.append(f"{title} ({len(table)}):")
                width = max(map(len, table))
                lines += [f"  {name:{width}}  {self._places(name)}  {table[name]}".rstrip() for name in sorted(table)]
        return "\n".join(lines) or "no name of torch or torchvision is used"

    def _places(self, name: str) -> str:
        places = self.used[name]
        shown = ", ".join(f"{path}:{line}" for path, line in places[:_MOST_PLACES])
        return shown + (f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else "")


@cache
def tensor_names() -> frozenset[str]:
    """The public attributes of PyTorch's Tensor, without those that Python's own containers and strings have too."""
    names = (resources.files(__package__) / "tensor_names.txt").read_text(encoding="utf-8").split()
    return frozenset(names).difference(*map(dir, (list, dict, str, set)))


def scan(path: Path, found: Found) -> None:
    """Add what a file uses."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError) as error:
        found.refused[str(path)] = str(error)
        return
    try:
        _Reader(str(path), found).read(tree)
    except ImportError as error:  # torchvision's names cannot be known without Pillow
        found.refused[str(path)] = " ".join(str(error).split())


class _Reader:
    def __init__(self, path: str, found: Found) -> None:
        self.path, self.found = path, found
        self.bound: dict[str, str] = {}  # the names of the file that stand for names of torch
        self.starred: set[str] = set()  # those of them that no statement names

    def read(self, tree: ast.Module) -> None:
        tolerant = names.tolerant_lines(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._import(node, tolerant)
            elif isinstance(node, ast.ImportFrom) and not node.level and _of_torch(node.module):
                self._import_from(node, tolerant)
        called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
                name = self._name(node)
                bare = isinstance(node, ast.Name) and node.id not in self.starred  # named where it was imported
                if name is not None and isinstance(node.ctx, ast.Load) and not bare:
                    self._use(name, node.lineno, called.get(id(node)), tolerant)
            if isinstance(node, ast.Attribute) and id(node) in called and self._name(node) is None:
                self._method(node)

    def _import(self, node: ast.Import, tolerant: frozenset[int]) -> None:
        for alias in node.names:
            if _of_torch(alias.name):
                root = alias.name.partition(".")[0]
                self.bound[alias.asname or root] = alias.name if alias.asname else root
                if names.module_for(alias.name) is None:
                    self._lacking(alias.name, node.lineno, "no such module", tolerant)

    def _import_from(self, node: ast.ImportFrom, tolerant: frozenset[int]) -> None:
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            if alias.name == "*":
                module = names.facade(node.module or "")
                self.starred |= {name for name in dir(module) if not name.startswith("_")}
                self.bound |= {name: f"{node.module}.{name}" for name in self.starred}
                continue
            self.bound[alias.asname or alias.name] = full
            self._use(full, node.lineno, None, tolerant)

    def _name(self, node: ast.expr) -> str | None:
        """The name of torch that an expression stands for."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.bound:
            return None
        return ".".join([self.bound[node.id], *reversed(parts)])

    def _lacking(self, name: str, line: int, reason: str, tolerant: frozenset[int]) -> None:
        self.found.note(name, self.path, line)
        if line in tolerant:
            self.found.perhaps[name] = "in a try: the program has another way"
        else:
            self.found.missing[name] = reason

    def _use(self, name: str, line: int, call: ast.Call | None, tolerant: frozenset[int]) -> None:
        known, value, there = _resolved(name)
        if not there:
            self._lacking(known, line, "", tolerant)
            return
        self.found.note(known, self.path, line)
        accepted = _parameters(value) if call is not None and known == name else None
        if call is None or accepted is None:
            return
        for keyword in call.keywords:
            if keyword.arg is not None and keyword.arg not in accepted:
                self._lacking(f"{name}({keyword.arg}=)", line, "no such parameter", tolerant)

    def _method(self, node: ast.Attribute) -> None:
        if node.attr in tensor_names() and not hasattr(Tensor, node.attr):
            self.found.note(f"Tensor.{node.attr}", self.path, node.lineno)
            self.found.perhaps[f"Tensor.{node.attr}"] = "if it is called on a tensor"


def _of_torch(name: str | None) -> bool:
    return name is not None and name.partition(".")[0] in names.ROOTS


@cache
def _resolved(name: str) -> tuple[str, Any, bool]:
    """The part of a dotted name that names a member of a module or class, its value, and whether it exists."""
    parts = name.split(".")
    value: Any = names.facade(parts[0])
    for place in range(1, len(parts)):
        full = ".".join(parts[: place + 1])
        module = names.facade(full) if isinstance(value, ModuleType) else None
        if module is None and not hasattr(value, parts[place]):
            return full, None, False
        value = module or getattr(value, parts[place])
        if not isinstance(value, ModuleType | type):
            return full, value, True
    return name, value, True


def _parameters(function: Callable[..., Any]) -> frozenset[str] | None:
    """The names that a call may use; None where any may be."""
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_KEYWORD for each in found.values()):
        return None
    return frozenset(found)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    else:
        for each in sorted(path.rglob("*.py")):
            if not any(part.startswith(".") for part in each.relative_to(path).parts):
                yield each


def _place_of(module: str) -> Path | None:
    """The file or folder of a module that can be imported; it is not."""
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent if found.submodule_search_locations else Path(found.origin)


def main(arguments: Sequence[str]) -> int:
    """Print what the programs under a path use; returns 0 where nothing is missing, else 1.

    Raises:
        SystemExit: there is no such file, or the options are wrong.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tritensor scan",
        description="List which names of torch and torchvision programs use, and which of them tritensor lacks.",
    )
    parser.add_argument("path", nargs="*", type=Path, help="a program, or a folder of programs")
    parser.add_argument("-m", dest="module", action="append", default=[], help="an installed library, by its module")
    options = parser.parse_args(arguments)
    paths = [*options.path]
    for module in options.module:
        place = _place_of(module)
        if place is None:
            parser.error(f"there is no module {module!r}")
        paths.append(place)
    if not paths:
        parser.error("the following arguments are required: path, or -m MODULE")
    for path in paths:
        if not path.exists():
            parser.error(f"there is no file {str(path)!r}")
    found = Found()
    files = [file for path in paths for file in _files(path)]
    for file in tqdm(files, disable=len(files) < 50 or not sys.stderr.isatty()):
        scan(file, found)
    print(found.report())
    return 1 if found.missing or found.refused else 0
