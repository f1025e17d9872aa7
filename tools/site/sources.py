"""The text of what an operator is made of: which operators a public function calls, and where their reference, their
kernel and their gradient are written."""

from __future__ import annotations

import ast
import dis
import functools
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

import tritensor
from tritensor.ground.public import PACKAGE
from tritensor.operators import Operator, registry
from tritensor.runtime.source import DeviceFunction, Kernel
from tritensor.tensors import Tensor

__all__ = ["Source", "gradients_of", "kernels_of", "operators_of", "plain", "reference_of", "source_of"]

ROOT = Path(tritensor.__file__).parent.parent
# Where functions are composed of operators; what these call elsewhere says how, not of what.
_ROOMS = ("functional", "kernels", "linalg", "fft", "special", "sampling", "inplace", "masked")
_COMPOSED = tuple(f"tritensor.{room}" for room in _ROOMS)
_WHOLE = (Operator, Kernel, DeviceFunction)


class Source(NamedTuple):
    """A text, and the file and line where it stands."""

    text: str
    place: str


@functools.cache
def source_of(value: Any) -> Source | None:
    """The text of a function, without the indentation of what it stands in; None where it has no file."""
    value = inspect.unwrap(value)
    value = value.function if isinstance(value, DeviceFunction | Kernel) else value
    while isinstance(value, functools.partial | MethodType):
        value = value.func if isinstance(value, functools.partial) else value.__func__
    if isinstance(value, np.ufunc):
        return Source(f"np.{value.__name__}", "a function of NumPy")
    try:
        lines, first = inspect.getsourcelines(value)
    except (OSError, TypeError):
        return None
    path = Path(inspect.getsourcefile(value) or "").resolve()
    place = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else f"{value.__module__}"
    return Source(textwrap.dedent("".join(lines)).rstrip(), f"{place}:{max(first, 1)}")


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _imported(function: FunctionType) -> Iterator[Any]:
    """What a function imports itself, when it is called."""
    found = source_of(function)
    if found is None or "import " not in found.text:
        return
    try:
        tree = ast.parse(found.text)
    except SyntaxError:  # a lambda in the middle of an expression
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or str(node.module).startswith("tritensor")):
            home = function.__module__.rsplit(".", node.level)[0] if node.level else ""
            if Path(inspect.getsourcefile(function) or "").name == "__init__.py" and node.level:
                home = function.__module__.rsplit(".", node.level - 1)[0]
            module = importlib.import_module(".".join(part for part in (home, node.module) if part))
            yield from (getattr(module, name.name, None) for name in node.names)


def _named(function: FunctionType, methods: bool) -> Iterator[Any]:
    """The objects that the text of a function names: globals, attributes of modules, what it closes over."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a function that is not defined yet
            continue
    for code in _codes(function.__code__):
        last: Any = None
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                last = function.__globals__.get(step.argval)
                yield from last.values() if isinstance(last, dict) and len(last) < 9 else (last,)
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                name = step.argval
                if isinstance(last, ModuleType):
                    last = getattr(last, name, None)
                    yield last
                    continue
                if (
                    methods
                    and name in registry
                    and isinstance(inspect.getattr_static(Tensor, name, None), FunctionType)
                ):
                    yield registry[name]
                last = None
            elif step.opname == "BINARY_OP" and step.argrepr == "@" and methods:
                yield registry["matmul"]
            elif step.opname not in ("PRECALL", "PUSH_NULL", "CACHE"):
                last = None
    yield from _imported(function)


def plain(value: Any) -> Any:
    """A function without what is wrapped around it."""
    value = getattr(value, "plain", value)
    while isinstance(value, functools.partial | MethodType):
        value = value.func if isinstance(value, functools.partial) else value.__func__
    return inspect.unwrap(value, stop=lambda each: isinstance(each, _WHOLE)) if callable(value) else value


def _operator_of(function: Any) -> Any:
    """The operator whose public function this is; else the function."""
    found = registry.get(getattr(function, "__name__", ""))
    return found if found is not None and plain(PACKAGE.get(found.name)) is function else function


def _walk(start: Any, wanted: type | tuple[type, ...], within: Callable[[Any], bool], depth: int) -> list[Any]:
    """The objects of a class that a function names, itself or by functions that it names; the nearest operators."""
    found: dict[int, Any] = {}
    level, seen = [start], set()
    for distance in range(depth + 1):
        below: list[Any] = []
        for value in level:
            value = plain(value)
            if wanted is Operator and distance:
                value = _operator_of(value)
            if isinstance(value, wanted):
                found.setdefault(id(value), value)
            elif isinstance(value, type) and within(value):
                below += [each for each in vars(value).values() if isinstance(each, FunctionType)]
            elif isinstance(value, FunctionType) and id(value) not in seen and (distance == 0 or within(value)):
                seen.add(id(value))
                below += _named(value, wanted is Operator)
        if found and wanted is Operator:
            break
        level = below
    return list(found.values())


def operators_of(function: Any) -> list[Operator]:
    """The operators that a public function calls, directly or through the functions that it calls."""

    def within(value: Any) -> bool:
        return str(value.__module__).startswith(_COMPOSED)

    return _walk(function, Operator, within, 5)


def reference_of(operator: Operator) -> Source | None:
    """The text of the NumPy reference."""
    return source_of(operator.reference)


def kernels_of(operator: Operator) -> list[Source]:
    """The text of the Triton body of an operator, or of the kernels that its family launches."""
    if operator.body is not None:
        found = [operator.body]
    else:
        folder = type(operator).__module__.rpartition(".")[0]
        homes = (folder, str(inspect.unwrap(operator.reference).__module__) if callable(operator.reference) else folder)

        def within(value: Any) -> bool:
            return str(value.__module__).startswith((*homes, "tritensor.kernels"))

        found = _walk(type(operator).launch, Kernel, within, 5)
        word = operator.name.split("_")[0]
        later = re.compile("backward|gradient|weight|descri|depthwise|keys")
        found.sort(key=lambda each: (bool(later.search(each.__name__)), word not in each.__name__))  # else the nearest
        found = found[:1] or [type(operator).launch] * (type(operator).launch is not Operator.launch)
    return [source for source in map(source_of, found) if source is not None]


def gradients_of(operator: Operator) -> list[tuple[str, Source]]:
    """The texts of the gradient functions, with the inputs that they are for."""
    if operator.joint_gradient is not None:
        made = [("", operator.joint_gradient)]
    else:
        made = list(operator.gradients_of.items())
    sources = [(name, source_of(function)) for name, function in made]
    return [(name, source) for name, source in sources if source is not None]
