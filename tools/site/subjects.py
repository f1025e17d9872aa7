"""What the pages of operators are about, and what each refers to: `docs/operators.toml`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache

from tritensor import nn

from . import sources, table
from .functions import Function, functions
from .parameters import matches

__all__ = ["TABLE", "layer_of", "related", "sidebar", "subject_of", "subjects"]

TABLE = table("operators")
_TOGETHER = [group.split() for group in re.split(r"[|\n]", TABLE["together"]["pairs"])]


@cache
def _place(function: Function) -> str:
    """The module that declares a function, `functional.views.views`; that of its kernel where one line declares it."""
    module = str(sources.plain(function.value).__module__)
    own = function.own
    if own is not None and (own.family == "elementwise" or module == "tritensor.functional"):
        found = sources.kernels_of(own) or [sources.reference_of(own)]
        module = found[0].place.partition(".py")[0].replace("/", ".")  # type: ignore[union-attr]
    return module.removeprefix("tritensor.")


@cache
def subject_of(function: Function) -> str:
    """The name of the only subject that is for a function; ValueError if there is none, or several."""
    found: list[str] = []
    for what in (function.shown, _place(function)):
        found = found or [each["name"] for each in TABLE["subjects"] if matches(what, each["of"])]
    if len(found) != 1:
        raise ValueError(f"docs/operators.toml: subjects of {function.shown}, {_place(function)}: {found}")
    return found[0]


@cache
def subjects() -> dict[str, list[Function]]:
    """The functions of each subject."""
    found: dict[str, list[Function]] = {each["name"]: [] for each in TABLE["subjects"]}
    for function in functions():
        found[subject_of(function)].append(function)
    return found


def sidebar() -> list[tuple[str, str, list[str]]]:
    """The subjects, their titles, and the names of their functions."""
    names = {name: [each.shown for each in found] for name, found in subjects().items()}
    return [(each["name"], each["title"], names[each["name"]]) for each in TABLE["subjects"]]


# ---- what a page refers to -------------------------------------------------------------------------------------------

_AFFIX = re.compile(
    r"^(nan|cum|arg|log|native_|unsafe_|masked_|index_|linear_)+(?=\w{3})"
    r"|(_copy|_like|_scatter|_ex|_with_\w+|_cell|_lowrank|_forward|_add|_reduce|_[tuvw]|[123]d|[0-9n]|_)+$"
)


@cache
def _stem(function: Function) -> str:
    return _AFFIX.sub("", function.name)


@cache
def _by_name() -> dict[str, Function]:
    """Functions by the names that docstrings have for them; a name of `torch` comes before others."""
    found: dict[str, Function] = {}
    for function in reversed(functions()):
        for name in (*function.also, function.shown):
            found[name.removeprefix("torch.")] = found[name] = function
            found.setdefault(name.rpartition(".")[2], function)
    return found


def _mentioned(function: Function) -> Iterator[str]:
    """The names in the sentences of its docstring, but those of its parameters."""
    text = (inspect.getdoc(function.value) or "").partition("\n\nArgs:")[0].partition("\n\nRaises:")[0]
    for name in re.findall(r"`(?:torch\.)?(?:nn\.functional\.)?([\w.]+)(?:\([^`]*)?`", text):
        if name not in inspect.signature(function.value).parameters:
            yield name


def related(function: Function, most: int = 6) -> list[Function]:
    """Functions to look at next: that belong together by the table, that the docstring names or the function calls,
    whose names have the same stem, or contain it; and what is declared beside it, where those are few."""
    known, own = _by_name(), function.shown.removeprefix("torch.")
    names = [name for group in _TOGETHER if own in group for name in group]
    stem, beside = _stem(function), subjects()[subject_of(function)]
    found = [known[name] for name in (*names, *_mentioned(function)) if name in known]
    found += [each for each in functions() if _stem(each) == stem]
    inside = [each for each in beside if stem in each.name or _stem(each) in function.name]
    found += sorted((each for each in inside if len(_stem(each)) > 2), key=lambda each: abs(len(each.name) - len(stem)))
    if len({*found} - {function}) < 4:
        found += [known[each.name] for each in function.operators[:2] if each.name in known]
    if len({*found} - {function}) < 3:
        most, at = 3, beside.index(function)
        found += sorted(beside, key=lambda one: (_place(one) != _place(function), abs(beside.index(one) - at)))
    return [each for each in dict.fromkeys(found) if each != function][:most]


_layers = cache(lambda: {name.lower(): name for name in nn.__all__ if inspect.isclass(getattr(nn, name))})


def layer_of(function: Function) -> str | None:
    """The class of `nn` that is the function as a layer: of the same name, or the one that its docstring names."""
    words = [name.removeprefix("nn.").lower() for name in _mentioned(function) if name.startswith("nn.")]
    told = TABLE["layers"].get(function.shown.removeprefix("torch."), function.name.replace("_", ""))
    made = (f"{name}{end}" for name in (told.lower(), *words) for end in ("", "loss", "2d"))
    return next((_layers()[name] for name in made if name in _layers()), None)
