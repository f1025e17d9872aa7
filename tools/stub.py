"""The type stubs of what is made at run time: Tensor with its methods, and the functions from the registry.

Operators attach themselves to Tensor when their modules are imported, which a type checker cannot see. The stubs say
what is there on the finished class.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import tritensor
from tritensor import functional, random  # noqa: F401 - their import attaches methods
from tritensor.functional import pointwise
from tritensor.host_access import HostAccess
from tritensor.tensor import Tensor

HEADER = '''"""The type stub of Tensor, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import autograd, devices, dtypes
from .autograd import Node

class Size(tuple[int, ...]):
    def numel(self) -> int: ...

def wrap(data: Any) -> Tensor: ...
def blank(kind: type[Tensor], data: Any) -> Any: ...
def is_tensor(obj: Any) -> bool: ...

class Tensor:
    _data: Any
    _needs: bool
    _node: Any
    _counter: list[int] | None
    _origin: Any
    _grad: Tensor | None
    _hooks: list[Any] | None
    _post_hooks: list[Any] | None
    _retains: bool
    _pinned: bool
    def __new__(cls, *data: Any) -> Tensor: ...
'''

# annotations that mean something else, or nothing, in the stub's namespace
_KNOWN = {
    "Tensor",
    "Any",
    "bool",
    "int",
    "float",
    "str",
    "complex",
    "None",
    "Size",
    "Node",
    "Sequence",
    "Callable",
    "tuple",
    "list",
    "dict",
    "np",
    "devices",
    "dtypes",
    "autograd",
    "device",
    "dtype",
    "Iterator",
    "type",
    "object",
}
# method names that hide builtins in the class body: annotations after them would mean the method
_HIDDEN = {"bool": "_Bool", "int": "_Int", "float": "_Float"}


def annotation(text: Any, method: bool = True) -> str:
    """An annotation that the stub can resolve, `Any` where it cannot."""
    if text is inspect.Parameter.empty:
        return "Any"
    words = text if isinstance(text, str) else getattr(text, "__name__", "Any")
    if set(re.findall(r"(?<![.\w])[A-Za-z_]\w*", words)) - _KNOWN:
        return "Any"
    for name, alias in _HIDDEN.items() if method else ():
        words = re.sub(rf"(?<![.\w]){name}\b", alias, words)
    return words


def parameters(function: Any, method: bool = True) -> str:
    """The parameters of a function as the stub writes them; a method's first one is `self`."""
    parts = []
    starred = False
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        if method and position == 0 and parameter.kind is not parameter.VAR_POSITIONAL:
            parts.append("self")
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            starred = True
            parts.append(f"*{parameter.name}: {annotation(parameter.annotation, method)}")
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{parameter.name}: {annotation(parameter.annotation, method)}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            parts.append("*")
        default = "" if parameter.default is parameter.empty else " = ..."
        parts.append(f"{parameter.name}: {annotation(parameter.annotation, method)}{default}")
    if method and (not parts or parts[0] != "self"):
        parts.insert(0, "self")
    return ", ".join(parts)


def member(name: str, value: Any) -> list[str]:
    """The lines of one attribute of the class."""
    if isinstance(value, property):
        returns = (
            annotation(inspect.signature(value.fget).return_annotation)
            if value.fget.__name__ != "<lambda>"
            else "Tensor"
        )  # type: ignore[arg-type]
        lines = ["    @property", f"    def {name}(self) -> {returns}: ..."]
        if value.fset is not None:
            lines += [f"    @{name}.setter", f"    def {name}(self, value: Any) -> None: ..."]
        if value.fdel is not None:
            lines += [f"    @{name}.deleter", f"    def {name}(self) -> None: ..."]
        return lines
    if not callable(value):
        return []
    returns = annotation(inspect.signature(value).return_annotation)
    if returns == "Any" and value.__name__ == "<lambda>":
        returns = "Tensor"
    ignore = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    return [f"    def {name}({parameters(value)}) -> {returns}: ...{ignore}"]


def stub() -> str:
    """The text of the stub."""
    lines = [HEADER.rstrip("\n")]
    members = {**vars(HostAccess), **vars(Tensor)}
    dunders = {name for name in members if name.startswith("__")} - {
        "__new__",
        "__doc__",
        "__module__",
        "__dict__",
        "__weakref__",
        "__slots__",
        "__annotations__",
        "__array_priority__",
        "__static_attributes__",
        "__firstlineno__",
    }
    private = {"_edge", "_accumulate", "_host_array", "_to_host", "_version", "_refresh"}
    names = sorted(name for name in members if not name.startswith("_")) + sorted(dunders) + sorted(private)
    for name in names:
        lines += member(name, members[name])
    aliases = [f"{alias} = {name}" for name, alias in _HIDDEN.items()]
    return "\n".join(lines).replace("class Size", "\n".join(aliases) + "\n\nclass Size") + "\n"


FUNCTIONS = '''"""The type stub of the functions made from the registry, by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tensor import Tensor

__all__: list[str]

'''


def functions() -> str:
    """The text of the stub of `tritensor.functional.pointwise`."""
    lines = []
    for name in sorted(set(pointwise.__all__)):
        function = getattr(pointwise, name)
        signature = inspect.signature(function)
        returns = annotation(signature.return_annotation, method=False)
        lines.append(f"def {name}({parameters(function, method=False)}) -> {returns}: ...")
    return FUNCTIONS + "\n".join(lines) + "\n"


def texts() -> dict[Path, str]:
    """Every stub's path and text."""
    package = Path(tritensor.__file__).parent
    return {package / "tensor.pyi": stub(), package / "functional" / "pointwise.pyi": functions()}
