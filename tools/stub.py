"""The type stubs of what is made at run time: the package, its functions, and Tensor with its methods.

Functions and operators become public where they are declared (`ground/public.py`), which a type checker and an editor
cannot see. The stubs list the resulting names: a function that is defined in a module is imported from it; one that is
made from an operator's declaration is written out with its signature and the first paragraph of its docstring.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import tritensor
from tritensor import array_api, autograd, fft, functional, masked, special
from tritensor.functional.creation.tensor_types import TensorType
from tritensor.ground import index, public
from tritensor.operators import autocasting, generators
from tritensor.tensors import Tensor
from tritensor.tensors.history import History
from tritensor.tensors.host_access import HostAccess
from tritensor.types import devices, dtypes, formats, size

from .overloads import VARIANTS, Variants

PACKAGE = Path(tritensor.__file__).parent
index.everything()

TENSOR = '''"""The type stub of Tensor, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Union, overload

import numpy as np

from .. import autograd
from ..autograd.graph import GraphNode
from ..types import Device, Dtype, devices, dtypes
from ..types.size import Size as Size
from .results import MaxResult, MedianResult, MinResult, NanmedianResult
{imports}
{aliases}
def wrap(data: Any) -> Tensor: ...
def blank(kind: type[Tensor], data: Any) -> Any: ...
def tensors_in(value: Any) -> Iterator[Tensor]: ...
def is_tensor(obj: Any) -> bool: ...

class Tensor:
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
from typing import Any, Literal, overload

from ..tensors import Tensor
from ..tensors.results import MaxResult, MedianResult, MinResult, NanmedianResult
from ..types import Device, Dtype, dtypes
'''

MODULE = '''"""The type stub of `{name}`, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

'''

NAMES = '''"""The type stub of the package, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from .tensors.results import MaxResult, MedianResult, MinResult, NanmedianResult
from .types import Device, Dtype, dtypes
'''

# What an annotation may name in a stub. Other names become Any, but for named tuples and classes of drivers.
_KNOWN = {
    *("Tensor", "Any", "bool", "int", "float", "str", "complex", "None", "Size", "GraphNode", "Sequence", "Callable"),
    *("tuple", "list", "dict", "np", "devices", "dtypes", "autograd", "device", "dtype", "Iterator", "type", "object"),
    *("Device", "Dtype"),
}
_DIM = "int | Sequence[int] | None"
# method names that hide builtins in the class body: annotations after them would mean the method
_HIDDEN = {"bool": "_Bool", "int": "_Int", "float": "_Float"}
# members that are written into the stub by hand, or that Python gives every class
_LEFT_OUT = {
    *("__new__", "__doc__", "__module__", "__dict__", "__weakref__", "__slots__", "__annotations__"),
    *("__array_priority__", "__static_attributes__", "__firstlineno__"),
}
# what the signatures of modules may name
_OF_MODULES = (
    "from collections.abc import Sequence",
    "from typing import Any",
    "from tritensor.types import Device, Dtype, dtypes",
    "from tritensor.types.devices import device",
    "from tritensor.types.dtypes import dtype",
    "from tritensor.tensors import Tensor",
)
_PRIVATE = (
    "_count_change",
    "_edge",
    "_root",
    "_chain",
    "_way",
    "_host_array",
    "_off_host",
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
    """The signatures of one stub, and the imports that they need.

    Args:
        method: whether they are of methods.
        variants: those that functions have, by their names.
        hidden: what the stub calls types whose names mean something else in it.
    """

    def __init__(self, method: bool, hidden: Mapping[str, str] | None = None, variants: Variants | None = None) -> None:
        self.method, self.variants = method, variants or {}
        self.hidden = hidden or {}
        self.imports: set[str] = set()

    def annotation(self, text: Any, function: Any) -> str:
        """An annotation that the stub can resolve, `Any` where it cannot."""
        if text is inspect.Parameter.empty:
            return "Any"
        words = text if isinstance(text, str) else getattr(text, "__name__", "Any")
        words = re.sub(r"\bDim\b", _DIM, words)
        for name in set(re.findall(r"(?<![.\w])[A-Za-z_]\w*", words)) - _KNOWN:
            found = getattr(function, "__globals__", {}).get(name)
            home = str(getattr(found, "__module__", ""))
            if inspect.ismodule(found) and name == "return_types":
                door = "tritensor.tensors import results as return_types"  # which imports that of the Tensor
                self.imports.add(f"from {door if self.method else 'tritensor import return_types'}")
            elif home == "tritensor.return_types":
                self.imports.add(f"from tritensor.tensors.results import {name}")
            elif hasattr(found, "_fields") or home.startswith("tritensor.drivers."):
                self.imports.add(f"from {home} import {name}")
            else:
                return "Any"
        words = re.sub(r"^(\w+) \| Any$", r"Union[\1, Any]", words)  # jedi completes nothing with the other form
        return self.visible(words)

    def visible(self, words: str) -> str:
        """An annotation with the names by which the stub knows the types that its own names hide."""
        for name, alias in self.hidden.items():
            words = re.sub(rf"(?<![.\w]){name}\b", alias, words)
        return words

    def parameters(self, function: Any, changed: Mapping[str, str] = {}) -> str:
        """The parameters as the stub writes them, some of them `changed`; a method's first one is `self`."""
        parts = []
        starred = positional = False
        for position, parameter in enumerate(inspect.signature(function).parameters.values()):
            if self.method and position == 0 and parameter.kind is not parameter.VAR_POSITIONAL:
                parts.append("self")
                continue
            if changed.get(parameter.name) == "":
                continue
            if positional and parameter.kind is not parameter.POSITIONAL_ONLY:
                parts.append("/")
            positional = parameter.kind is parameter.POSITIONAL_ONLY
            kind = self.annotation(parameter.annotation, inspect.unwrap(getattr(function, "plain", function)))
            if parameter.kind is parameter.KEYWORD_ONLY and not starred:
                parts.append("*")
            starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
            stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
            written = changed.get(parameter.name)
            if written is None:
                kind += " | None" if parameter.default is None and kind != "Any" and "None" not in kind else ""
                written = f"{stars}{parameter.name}: {kind}{_default(parameter.default)}"
            parts.append(self.visible(written))
        if positional:
            parts.append("/")
        if self.method and (not parts or parts[0] != "self"):
            parts.insert(0, "self")
        return ", ".join(parts)

    def function(self, name: str, value: Any, indent: str = "", note: str = "") -> list[str]:
        """The lines of a function, with those of its variants before them."""
        plain = inspect.unwrap(getattr(value, "plain", value))
        lines = []
        returns = self.annotation(inspect.signature(value).return_annotation, plain)
        if returns == "Any" and getattr(plain, "__name__", "") == "<lambda>":
            returns = "Tensor"
        for changed, result in self.variants.get(name.removeprefix("_"), ()) if returns == "Any" else ():
            head = f"{indent}def {name}({self.parameters(value, changed)}) -> {self.visible(result)}:"
            lines += [f"{indent}@overload", *_with_docstring(head, value, indent)]
            if not changed:  # it takes all calls
                return lines
        lines += [f"{indent}@overload"] if lines else []
        head = f"{indent}def {name}({self.parameters(value)}) -> {returns}:"
        return [*lines, *_with_docstring(head, value, indent, note)]

    def member(self, name: str, value: Any) -> list[str]:
        """The lines of one attribute of Tensor."""
        if isinstance(value, property):
            getter = value.fget
            returns = "Tensor"
            if getter.__name__ != "<lambda>":  # type: ignore[union-attr]
                returns = self.annotation(inspect.signature(getter).return_annotation, getter)  # type: ignore[arg-type]
            lines = ["    @property", *_with_docstring(f"    def {name}(self) -> {returns}:", value, "    ")]
            if value.fset is not None:
                written = [*inspect.signature(value.fset).parameters.values()][-1]
                kind = self.annotation(written.annotation, value.fset)
                lines += [f"    @{name}.setter", f"    def {name}(self, value: {kind}) -> None: ..."]
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
    made = Signatures(method=True, hidden=_HIDDEN, variants=VARIANTS)
    members = {**vars(HostAccess), **vars(History), **vars(Tensor)}
    dunders = {name for name in members if name.startswith("__")} - _LEFT_OUT
    lines = []
    for name in [*sorted(name for name in members if not name.startswith("_")), *sorted(dunders), *sorted(_PRIVATE)]:
        lines += made.member(name, members[name])
    head = TENSOR.format(
        imports="".join(f"{line}\n" for line in sorted(made.imports)),
        aliases="".join(f"{alias} = {name}\n" for name, alias in _HIDDEN.items()),
        doc=(inspect.getdoc(Tensor) or "").split("\n\n")[0].replace("\n", "\n    "),
    )
    return head + "\n".join(lines) + "\n"


def _home(value: Any) -> tuple[str, str] | None:
    """The module that holds a public object, and its name there; None for one that is made from a declaration, or that
    got the parameter `out` or options, which a type checker does not see in its module.
    """
    if hasattr(value, "plain"):
        return None
    if isinstance(value, TensorType):
        return "tritensor.tensors.tensor", "Tensor"  # which can be an annotation
    if getattr(value, "__module__", None) in ("tritensor", "tritensor.functional"):
        value = getattr(value, "__wrapped__", value)  # the function itself, not its guarded form
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    name = getattr(value, "__name__", "")
    code = getattr(value, "__code__", None)
    if code is not None and "<locals>" in code.co_qualname and code.co_filename.startswith(str(PACKAGE)):
        return None  # that of another function, around it or in its place
    if module not in (None, functional, tritensor) and vars(module).get(name) is value:
        return module.__name__, name
    # classes that name the package as their module, and constants
    for module in (
        size,
        sys.modules["tritensor.tensors.tensor"],
        sys.modules["tritensor.functional.creation.tensor_types"],
        devices,
        dtypes,
        formats,
        generators,
        autocasting,
    ):
        for name, found in vars(module).items():
            if found is value and not name.startswith("_"):
                return module.__name__, name
    return None


def functions() -> str:
    """The text of the stub of `tritensor.functional`.

    Names come from `tritensor.functional.matmul`, not from `.matmul`: to a type checker the latter makes that folder a
    name of the stub, and hides the function that is called so.
    """
    made = Signatures(method=False, variants=VARIANTS)
    imports, lines = [], []
    for name in functional.__all__:
        value = getattr(functional, name)
        home = _home(value)
        if home is None or name in VARIANTS:
            lines += made.function(name, value)
        else:
            module = home[0].removeprefix("tritensor.functional.")
            source = f".{module}" if module != home[0] else f"..{home[0].removeprefix('tritensor.')}"
            if module.partition(".")[0] in functional.__all__:
                source = home[0]
            imports.append(f"from {source} import {home[1]} as {name}")
    imports += made.imports
    return "\n".join([FUNCTIONS + "\n".join(sorted(imports)), "", *_listed(functional.__all__), "", *lines]) + "\n"


def _of_the_package_alone() -> list[str]:
    """The functions that no module holds under their name, or not with these parameters, and that `functional` does not
    have.
    """
    return [
        name
        for name, value in sorted(public.PACKAGE.items())
        if public.FUNCTIONAL.get(name) is not value and (_home(value) is None or name in VARIANTS)
    ]


def module(made_of: ModuleType) -> str:
    """The text of the stub of a module whose names a type checker does not see in it."""
    names = [name for name in made_of.__all__ if not name.startswith("__")]
    hidden = _hidden_in(names)
    made, imports, lines = Signatures(method=False, hidden=hidden), set(_OF_MODULES), []
    imports |= {f"from builtins import {name} as {alias}" for name, alias in hidden.items()}
    for name in names:
        value = getattr(made_of, name)
        same = [other for other, found in public.PACKAGE.items() if found is value]
        home = _home(value)
        if inspect.ismodule(value):
            imports.add(f"from {made_of.__name__} import {name} as {name}")
        elif isinstance(value, float) or value is None:
            lines.append(f"{name}: {made.visible(type(value).__name__) if value is not None else None}")
        elif isinstance(value, type) and value.__module__ != made_of.__name__:
            imports.add(f"from {value.__module__} import {value.__name__} as {name}")
        elif isinstance(value, dtypes.dtype) and home is not None:
            imports.add(f"from {home[0]} import {home[1]} as {name}")
        elif same and made_of.__name__.count(".") == 1:
            imports.add(f"from tritensor import {same[0]} as {name}")
        else:
            lines += made.function(name, value)
    head = MODULE.format(name=made_of.__name__) + "\n".join(sorted(imports | made.imports))
    return "\n".join([head, "", *_listed(made_of.__all__), "", *lines]) + "\n"


def _hidden_in(names: list[str]) -> dict[str, str]:
    """What a stub of these names calls Python's types that they hide."""
    return {name: f"_{name}" for name in ("bool", "int", "float", "complex", "str") if name in names}


def gradients() -> str:
    """The text of the stub of `tritensor.autograd`, which gets some names from modules that import it."""
    tree = ast.parse(Path(autograd.__file__).read_text(encoding="utf-8"))
    lines = [
        f"from tritensor.autograd.{node.module} import {alias.name} as {alias.asname or alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    ]
    lines += [f"from tritensor.autograd import {name} as {name}" for name in ("forward_ad", "functional")]
    lines.append("from tritensor.operators import function as function")
    for name in ("Function", "gradcheck", "gradgradcheck"):
        lines.append(f"from {getattr(autograd, name).__module__} import {name} as {name}")
    text = MODULE.format(name=autograd.__name__) + "\n".join(sorted(lines))
    return "\n".join([text, "", *_listed(autograd.__all__)]) + "\n"


def names() -> str:
    """The text of the stub of the package."""
    hidden = _hidden_in(tritensor.__all__)
    made, functions, apart = (
        Signatures(method=False, hidden=hidden, variants=VARIANTS),
        [],
        set(_of_the_package_alone()),
    )
    lines = [f"from . import {name} as {name}" for name in tritensor._LATER if name not in tritensor.__all__]
    for name in tritensor.__all__:
        if name in public.FUNCTIONAL and public.PACKAGE.get(name) is public.FUNCTIONAL[name]:
            lines.append(f"from .functional import {name} as {name}")
        elif name in apart:
            functions += made.function(name, public.PACKAGE[name])
        elif name in public.PACKAGE:
            home = _home(public.PACKAGE[name])
            assert home is not None, name
            lines.append(f"from {home[0].removeprefix('tritensor')} import {home[1]} as {name}")
        elif name in tritensor._LATER or inspect.ismodule(getattr(tritensor, name)):  # some need an extra
            lines.append(f"from . import {name} as {name}")
        elif name in tritensor._FROM:
            lines.append(f"from .{tritensor._FROM[name]} import {name} as {name}")
    lines += [f"from builtins import {name} as {alias}" for name, alias in hidden.items()]
    constants = ["", "__version__: str", *(f"{name}: _float" for name in ("e", "inf", "nan", "pi")), "newaxis: None"]
    lines = sorted({*lines, *made.imports})
    return NAMES + "\n".join([*lines, *constants, "", *_listed(tritensor.__all__), "", *functions]) + "\n"


def _listed(public_names: list[str]) -> list[str]:
    return ["__all__ = [", *(f'    "{name}",' for name in public_names), "]"]


def texts() -> dict[Path, str]:
    """Every stub's path and text."""
    return {
        PACKAGE / "tensors" / "tensor.pyi": tensor(),
        PACKAGE / "functional" / "__init__.pyi": functions(),
        PACKAGE / "__init__.pyi": names(),
        PACKAGE / "autograd" / "__init__.pyi": gradients(),
        **{_stub_of(each): module(each) for each in _MODULES},
    }


_MODULES = (array_api, array_api.fft, array_api.linalg, fft, masked, special)


def _stub_of(made_of: ModuleType) -> Path:
    return Path(str(made_of.__file__)).with_suffix(".pyi")
