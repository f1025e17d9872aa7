"""The public functions and methods that have a page: each with its other names, so that `torch.abs`, `torch.absolute`,
`Tensor.abs` and `torch.abs_` are one page."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any, NamedTuple

import tritensor
from tritensor import fft, linalg, nn, special
from tritensor.operators import Operator, registry
from tritensor.tensors import Tensor

from . import sources
from .parameters import visible

__all__ = ["SPACES", "Function", "documented", "functions", "named", "settings"]

# The spaces of names, in the order in which a function's name is taken from them.
SPACES: dict[str, Any] = {
    "torch": tritensor,
    "F": nn.functional,
    "linalg": linalg,
    "fft": fft,
    "special": special,
    "Tensor": Tensor,
}
MODULES = {
    "torch": "tritensor",
    "F": "tritensor.nn.functional",
    "linalg": "tritensor.linalg",
    "fft": "tritensor.fft",
    "special": "tritensor.special",
    "Tensor": "tritensor.Tensor",
}

# Which only say that PyTorch removed them.
REMOVED = ("eig", "lstsq", "matrix_rank", "solve", "symeig")

# What has no page of its own among the operators: what sets or tells how the process computes.
SETTINGS = re.compile(
    r"autocast|default_|^set_|^get_(?!device$)|num_threads|_seed$|^seed$|^fork_rng$|^is_grad_enabled$|^is_inference_mode"
    r"|deterministic_algorithms|^compile$|^load$|^save$|^vmap$|^typename$|^can_cast$|^promote_types$|^result_type$|^_"
    rf"|^({'|'.join(REMOVED)})$"
)


class Function(NamedTuple):
    """A public function: `space` and `name` of its page, its other names, and the operators that it calls."""

    space: str
    name: str
    value: Any
    also: tuple[str, ...]
    in_place: tuple[str, ...]
    own: Operator | None
    operators: tuple[Operator, ...]

    @property
    def shown(self) -> str:
        """The name as programs write it: `torch.add`, `F.relu`, `Tensor.expand`."""
        return shown(self.space, self.name)

    @property
    def full(self) -> str:
        """The name in the inventory: `tritensor.add`."""
        return f"{MODULES[self.space]}.{self.name}"

    @property
    def first(self) -> str:
        """The first sentence of its docstring."""
        text = (inspect.getdoc(self.value) or "").split("\n\n")[0].replace("\n", " ")
        return text.partition(": for example")[0]


def shown(space: str, name: str) -> str:
    """A name as programs write it."""
    return f"{space if space in ('torch', 'F', 'Tensor') else f'torch.{space}'}.{name}"


def named(shown: str) -> tuple[str, str, Any]:
    """The space, the plain name and the value of a name as programs write it."""
    space, _, plain = shown.removeprefix("torch.").rpartition(".") if shown.count(".") > 1 else shown.rpartition(".")
    return space, plain, getattr(SPACES[space], plain)


@cache
def documented() -> dict[str, tuple[str, Any]]:
    """What is documented among the operators: names in the inventory, names as programs write them, and values. These
    are the functions of the pages, and other names of them that take further parameters."""
    found = {}
    for function in functions():
        own = {*visible(function.value).parameters, "self", "inplace", "input", "other"}
        for shown in (function.shown, *function.also):
            space, plain, value = named(shown)
            if shown == function.shown or not own >= visible(value).parameters.keys():
                found[f"{MODULES[space]}.{plain}"] = (shown, value)
    return found


def _names(space: str) -> list[str]:
    if space == "Tensor":
        members = [name for name in dir(Tensor) if not name.startswith("_")]
        return [name for name in members if callable(getattr(Tensor, name)) and not name.startswith("is_")]
    return [name for name in SPACES[space].__all__ if _is_function(getattr(SPACES[space], name))]


def _is_function(value: Any) -> bool:
    return callable(value) and not inspect.isclass(value)


def _base(value: Any) -> Any:
    """What two names of one function share: the operator that it is made from, or the function itself."""
    value = sources.plain(value)
    made = isinstance(value, Operator) or value.__module__ == "tritensor.functional"
    return _MADE.get(value.__name__, value) if made else value


_MADE = {name: operator.name for operator in registry.values() for name in getattr(operator, "methods", ())}


@cache
def functions() -> tuple[Function, ...]:
    """All of them, in the order of their names."""
    pages: dict[Any, list[tuple[str, str]]] = {}
    by_name: dict[str, Any] = {}
    for space in SPACES:
        for name in _names(space):
            if (space in ("torch", "F") and SETTINGS.search(name)) or (space == "Tensor" and name in REMOVED):
                continue
            if _is_in_place(space, name):
                continue
            value = getattr(SPACES[space], name)
            base = _base(value)
            plain = name if space in ("torch", "F", "Tensor") else f"{space}.{name}"
            key = base if space == "Tensor" and name == "unfold" else by_name.get(plain, base)  # not `F.unfold`
            pages.setdefault(key, []).append((space, name))
            by_name.setdefault(plain, key)
    own = {key: getattr(key, "__name__", key) for key in pages}  # the name of its own comes first
    found = [_function(sorted(names, key=lambda each: each[1] != own[key])) for key, names in pages.items()]
    return tuple(sorted(found, key=lambda each: (each.name.lower(), each.shown)))


def _is_in_place(space: str, name: str) -> bool:
    """Whether it is the form in place of a function that has a page."""
    return name.endswith("_") and any(hasattr(SPACES[each], name[:-1]) for each in ("torch", "F", "Tensor"))


def _function(names: list[tuple[str, str]]) -> Function:
    space, name = names[0]
    value = getattr(SPACES[space], name)
    own = registry.get(f"{space}_{name}") or (registry.get(name) if space in ("torch", "F", "Tensor") else None)
    operators = (own,) if own is not None else tuple(sources.operators_of(value))
    if own is None and len(operators) == 1 and name in getattr(operators[0], "methods", ()):
        own = operators[0]
    also = [shown(*each) for each in names[1:]]
    in_place = [
        shown(where, f"{other}_")
        for where in ("torch", "F", "Tensor")
        for other in dict.fromkeys(each for _, each in names)
        if callable(getattr(SPACES[where], f"{other}_", None))
    ]
    return Function(space, name, value, tuple(dict.fromkeys(also)), tuple(dict.fromkeys(in_place)), own, operators)


def settings() -> list[str]:
    """The functions of the package that have no page among the operators."""
    names = [name for name in tritensor.__all__ if _is_function(getattr(tritensor, name))]
    return [name for name in names if SETTINGS.search(name) and not name.startswith("_")]
