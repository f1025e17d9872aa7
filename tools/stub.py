"""The type stubs of what is made at run time: the package, its functions, and Tensor with its methods.

Functions and operators become public where they are declared (`tritensor.public`), which a type checker and an editor
cannot see. The stubs list the resulting names: a function that is defined in a module is imported from it; one that is
made from an operator's declaration is written out with its signature and the first paragraph of its docstring.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import tritensor
from tritensor import devices, dtypes, formats, functional, generators, public, size, special
from tritensor.history import History
from tritensor.host_access import HostAccess
from tritensor.tensor import Tensor

PACKAGE = Path(tritensor.__file__).parent

TENSOR = '''"""The type stub of Tensor, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import autograd, devices, dtypes
from .autograd.graph import GraphNode
{imports}
{aliases}
class Size(tuple[int, ...]):
    def numel(self) -> int: ...

def wrap(data: Any) -> Tensor: ...
def blank(kind: type[Tensor], data: Any) -> Any: ...
def tensors_in(value: Any) -> Iterator[Tensor]: ...
def is_tensor(obj: Any) -> bool: ...

{tuples}class Tensor:
    """{doc}"""

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

FUNCTIONS = '''"""The type stub of the public functions, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes
from ..tensor import Tensor
'''

SPECIAL = '''"""The type stub of the special functions, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from typing import Any

from .tensor import Tensor
'''

NAMES = '''"""The type stub of the package, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from builtins import float as _float
from builtins import str as _str

'''

# What an annotation may name in a stub. Other names become Any, but for named tuples and classes of drivers.
_KNOWN = {
    *("Tensor", "Any", "bool", "int", "float", "str", "complex", "None", "Size", "GraphNode", "Sequence", "Callable"),
    *("tuple", "list", "dict", "np", "devices", "dtypes", "autograd", "device", "dtype", "Iterator", "type", "object"),
}
_DIM = "int | Sequence[int] | None"
# method names that hide builtins in the class body: annotations after them would mean the method
_HIDDEN = {"bool": "_Bool", "int": "_Int", "float": "_Float"}
# members that are written into the stub by hand, or that Python gives every class
_LEFT_OUT = {
    *("__new__", "__doc__", "__module__", "__dict__", "__weakref__", "__slots__", "__annotations__"),
    *("__array_priority__", "__static_attributes__", "__firstlineno__"),
}
_PRIVATE = (
    "_count_change",
    "_edge",
    "_root",
    "_chain",
    "_way",
    "_host_array",
    "_to_host",
    "_version",
    "_refresh",
    "_replace_node",
    "_remember",
    "_recall",
    "_without_node",
    "_forget",
)


class Signatures:
    """The signatures of one stub, and the imports that they need."""

    def __init__(self, method: bool) -> None:
        self.method = method
        self.imports: set[str] = set()
        self.tuples: dict[str, Any] = {}

    def annotation(self, text: Any, function: Any) -> str:
        """An annotation that the stub can resolve, `Any` where it cannot."""
        if text is inspect.Parameter.empty:
            return "Any"
        words = text if isinstance(text, str) else getattr(text, "__name__", "Any")
        words = re.sub(r"\bDim\b", _DIM, words)
        for name in set(re.findall(r"(?<![.\w])[A-Za-z_]\w*", words)) - _KNOWN:
            found = getattr(function, "__globals__", {}).get(name)
            home = str(getattr(found, "__module__", ""))
            if self.method and hasattr(found, "_fields"):
                # a named tuple stands in this stub: importing it would make a circle of the stub and its module
                self.tuples[name] = found
            elif self.method and home.startswith("tritensor.drivers."):
                self.imports.add(f"from {home.removeprefix('tritensor')} import {name}")
            elif hasattr(found, "_fields") and home.startswith("tritensor.functional."):
                self.imports.add(f"from {home.removeprefix('tritensor.functional')} import {name}")
            else:
                return "Any"
        for name, alias in _HIDDEN.items() if self.method else ():
            words = re.sub(rf"(?<![.\w]){name}\b", alias, words)
        return words

    def parameters(self, function: Any) -> str:
        """The parameters as the stub writes them; a method's first one is `self`."""
        parts = []
        starred = False
        for position, parameter in enumerate(inspect.signature(function).parameters.values()):
            if self.method and position == 0 and parameter.kind is not parameter.VAR_POSITIONAL:
                parts.append("self")
                continue
            kind = self.annotation(parameter.annotation, inspect.unwrap(getattr(function, "plain", function)))
            if parameter.kind is parameter.KEYWORD_ONLY and not starred:
                parts.append("*")
            starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
            stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
            parts.append(f"{stars}{parameter.name}: {kind}{_default(parameter.default)}")
        if self.method and (not parts or parts[0] != "self"):
            parts.insert(0, "self")
        return ", ".join(parts)

    def function(self, name: str, value: Any, indent: str = "", note: str = "") -> list[str]:
        """The lines of a function."""
        plain = inspect.unwrap(getattr(value, "plain", value))
        returns = self.annotation(inspect.signature(value).return_annotation, plain)
        if returns == "Any" and getattr(plain, "__name__", "") == "<lambda>":
            returns = "Tensor"
        head = f"{indent}def {name}({self.parameters(value)}) -> {returns}:"
        return _with_docstring(head, value, indent, note)

    def member(self, name: str, value: Any) -> list[str]:
        """The lines of one attribute of Tensor."""
        if isinstance(value, property):
            getter = value.fget
            returns = "Tensor"
            if getter.__name__ != "<lambda>":  # type: ignore[union-attr]
                returns = self.annotation(inspect.signature(getter).return_annotation, getter)  # type: ignore[arg-type]
            lines = ["    @property", *_with_docstring(f"    def {name}(self) -> {returns}:", value, "    ")]
            if value.fset is not None:
                lines += [f"    @{name}.setter", f"    def {name}(self, value: Any) -> None: ..."]
            if value.fdel is not None:
                lines += [f"    @{name}.deleter", f"    def {name}(self) -> None: ..."]
            return lines
        if not callable(value):
            return []
        ignore = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
        return self.function(name, value, "    ", ignore)


def _default(value: Any) -> str:
    """A default as the stub writes it: itself where it is a plain number, text, None or an empty tuple."""
    if value is inspect.Parameter.empty:
        return ""
    plain = value is None or value == () or (type(value) in (bool, int, float, str) and value == value)
    return f" = {value!r}" if plain and abs(value if type(value) is float else 0.0) < float("inf") else " = ..."


def _with_docstring(head: str, value: Any, indent: str, note: str = "") -> list[str]:
    text = inspect.cleandoc(value.__doc__ or "").split("\n\n")[0]
    if not text:
        return [f"{head} ...{note}"]
    body = text.replace("\\", "\\\\").replace("\n", f"\n{indent}    ")
    return [f"{head}{note}", f'{indent}    """{body}"""']


def tensor() -> str:
    """The text of the stub of Tensor."""
    made = Signatures(method=True)
    members = {**vars(HostAccess), **vars(History), **vars(Tensor)}
    dunders = {name for name in members if name.startswith("__")} - _LEFT_OUT
    lines = []
    for name in [*sorted(name for name in members if not name.startswith("_")), *sorted(dunders), *sorted(_PRIVATE)]:
        lines += made.member(name, members[name])
    head = TENSOR.format(
        imports="".join(f"{line}\n" for line in sorted(made.imports)),
        tuples="".join(
            f"class {name}(NamedTuple):\n" + "".join(f"    {field}: Tensor\n" for field in kind._fields) + "\n"
            for name, kind in sorted(made.tuples.items())
        ),
        aliases="".join(f"{alias} = {name}\n" for name, alias in _HIDDEN.items()),
        doc=(inspect.getdoc(Tensor) or "").split("\n\n")[0].replace("\n", "\n    "),
    )
    return head + "\n".join(lines) + "\n"


def _home(value: Any) -> tuple[str, str] | None:
    """The module that holds a public object, and its name there; None for one that is made from a declaration, or that
    got the parameter `out`, which a type checker does not see in its module.
    """
    if hasattr(value, "plain"):
        return None
    if getattr(value, "__module__", None) in ("tritensor", "tritensor.functional"):
        value = getattr(value, "__wrapped__", value)  # the function itself, not its guarded form
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    name = getattr(value, "__name__", "")
    if module not in (None, functional, tritensor) and vars(module).get(name) is value:
        return module.__name__, name
    # classes that name the package as their module, and constants
    for module in (
        size,
        sys.modules["tritensor.tensor"],
        sys.modules["tritensor.functional.tensor_types"],
        devices,
        dtypes,
        formats,
        generators,
    ):
        for name, found in vars(module).items():
            if found is value and not name.startswith("_"):
                return module.__name__, name
    return None


def functions() -> str:
    """The text of the stub of `tritensor.functional`."""
    made = Signatures(method=False)
    imports, lines = [], []
    for name in functional.__all__:
        value = getattr(functional, name)
        home = _home(value)
        if home is None:
            lines += made.function(name, value)
        else:
            module = home[0].removeprefix("tritensor.functional.")
            source = f".{module}" if module != home[0] else f"..{home[0].removeprefix('tritensor.')}"
            imports.append(f"from {source} import {home[1]} as {name}")
    for name in _of_the_package_alone():
        lines += made.function(f"_{name}", public.PACKAGE[name])
    imports += made.imports
    return "\n".join([FUNCTIONS + "\n".join(sorted(imports)), "", *_listed(functional.__all__), "", *lines]) + "\n"


def _of_the_package_alone() -> list[str]:
    """The functions that no module holds under their name, or not with these parameters, and that `functional` does not
    have; its stub holds them with an underscore, because in the package's `float`, `int` and `bool` are dtypes.
    """
    return [
        name
        for name, value in sorted(public.PACKAGE.items())
        if public.FUNCTIONAL.get(name) is not value and _home(value) is None
    ]


def special_functions() -> str:
    """The text of the stub of `tritensor.special`, where the package's functions have other names, too."""
    made, lines = Signatures(method=False), []
    for name in special.__all__:
        value = getattr(special, name)
        same = [other for other, found in public.PACKAGE.items() if found is value]
        lines += [f"from . import {same[0]} as {name}"] if same else made.function(name, value)
    return "\n".join([SPECIAL, *_listed(special.__all__), "", *lines]) + "\n"


def names() -> str:
    """The text of the stub of the package."""
    lines = []
    for name in tritensor.__all__:
        if name in public.FUNCTIONAL and public.PACKAGE.get(name) is public.FUNCTIONAL[name]:
            lines.append(f"from .functional import {name} as {name}")
        elif name in _of_the_package_alone():
            lines.append(f"from .functional import _{name} as {name}")
        elif name in public.PACKAGE:
            home = _home(public.PACKAGE[name])
            assert home is not None, name
            lines.append(f"from .{home[0].removeprefix('tritensor.')} import {home[1]} as {name}")
        elif inspect.ismodule(getattr(tritensor, name)):
            lines.append(f"from . import {name} as {name}")
        elif name in tritensor._FROM:
            lines.append(f"from .{tritensor._FROM[name]} import {name} as {name}")
    constants = ["", "__version__: _str", *(f"{name}: _float" for name in ("e", "inf", "nan", "pi")), "newaxis: None"]
    return NAMES + "\n".join([*sorted(lines), *constants, "", *_listed(tritensor.__all__)]) + "\n"


def _listed(public_names: list[str]) -> list[str]:
    return ["__all__ = [", *(f'    "{name}",' for name in public_names), "]"]


def texts() -> dict[Path, str]:
    """Every stub's path and text."""
    return {
        PACKAGE / "tensor.pyi": tensor(),
        PACKAGE / "functional" / "__init__.pyi": functions(),
        PACKAGE / "__init__.pyi": names(),
        PACKAGE / "special.pyi": special_functions(),
    }
