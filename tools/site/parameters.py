"""What the docstrings of operators leave out: the parameters that `docs/parameters.toml` describes. And how exceptions
are listed: each on a line of its own, while the docstrings have them in sentences."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import tritensor

from . import table

__all__ = ["completed", "described", "documented", "matches", "raises", "text_of", "visible"]

# Parameters for PyTorch's older forms and NumPy's names, and what stands for parameters with names.
_HIDDEN = ("older", "others", "_stacklevel", "_random_samples", "kwargs")
_OF_LAYERS = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
_SECTION = re.compile(r"(Args|Returns|Yields|Raises|Attributes|Examples?|Notes?):$")
_ERROR = re.compile(r"(?:^|(?<=[.)] ))([A-Z]\w*(?:Error|Exception)(?:, [A-Z]\w*Error)*): ")


def visible(value: Any, method: bool = False) -> inspect.Signature:
    """The signature with the parameters that are meant for callers, without the tensor of a method."""
    signature, found = inspect.signature(value), []
    given = signature.parameters
    for name, each in given.items():
        if name == "args" and "kwargs" in given:
            found += [inspect.Parameter(of, each.POSITIONAL_OR_KEYWORD) for of in _OF_LAYERS]
        elif name == "options" and each.kind is each.VAR_KEYWORD:  # of `new_ones` those of `ones`
            more = inspect.signature(getattr(tritensor, value.__name__.removeprefix("new_"))).parameters.values()
            found += [of for of in more if of.kind is of.KEYWORD_ONLY and of.name not in (*given, "out", "size")]
        elif name not in _HIDDEN:
            found.append(each)
    bound = method and found[:1] and found[0].kind is not inspect.Parameter.VAR_POSITIONAL
    return signature.replace(parameters=found[bool(bound) :])


def matches(name: str, patterns: str) -> bool:
    """Whether one of the patterns is for a name; names of pages are without `torch.` in the tables."""
    return any(fnmatchcase(name.removeprefix("torch."), pattern) for pattern in patterns.split())


_tables = cache(lambda: table("parameters")["parameters"])


def text_of(shown: str, name: str) -> tuple[int, str]:
    """What the table says about a parameter, and in which of its parts; KeyError if nothing."""
    for number, texts in reversed([*enumerate(_tables())]):
        if name in texts and (matches(shown, texts["of"]) or matches(shown.removeprefix("F."), texts["of"])):
            return number, " ".join(texts[name].split())
    raise KeyError(f"docs/parameters.toml has no text for {name} of {shown}")


def _section(lines: list[str], name: str) -> tuple[int, int]:
    """Where the lines of a section begin and end; both where it would be put if it is missing."""
    if f"{name}:" not in lines:
        return (next((place for place, line in enumerate(lines) if _SECTION.match(line)), len(lines)),) * 2
    start = lines.index(f"{name}:") + 1
    ends = (place for place, line in enumerate(lines[start:], start) if line.strip() and line[0] != " ")
    return start, next(ends, len(lines))


def documented(lines: list[str], names: Iterable[str]) -> dict[str, str]:
    """The entries of a docstring's `Args:`: the names before the colon, and the text."""
    start, end = _section(lines, "Args")
    one = rf"\*{{0,2}}(?:{'|'.join(names) or '-'})"
    text = "\n".join(line.strip() for line in lines[start:end])
    parts = re.split(rf"(?:^|(?<=\. ))({one}(?:, {one})*): ", text, flags=re.MULTILINE)
    return {head: " ".join(text.split()) for head, text in zip(parts[1::2], parts[2::2], strict=True)}


def described(shown: str, value: Any) -> dict[str, str]:
    """The entries of all parameters of a function, in the signature's order; several may share an entry.

    Args:
        shown: its name, as on the pages.
    """
    names = [*visible(value, shown.startswith("Tensor.")).parameters]
    own = documented((inspect.getdoc(value) or "").split("\n"), names)
    found = {name.strip("* "): (head, text) for head, text in own.items() for name in head.split(",")}
    return dict(found.get(name) or (name, text_of(shown, name)[1]) for name in names)


def completed(shown: str, value: Any, lines: list[str]) -> list[str]:
    """A docstring with all parameters."""
    start, end = _section(lines, "Args")
    entries = [f"    {head}: {text}" for head, text in described(shown, value).items()]
    entries = ["", "Args:", *entries] if entries and start == end else entries
    return [*lines[:start], *entries, *[""][: len(entries)], *lines[end:]]


def raises(lines: list[str]) -> Iterator[str]:
    """A docstring with each exception on a line."""
    start, end = _section(lines, "Raises")
    first, *parts = _ERROR.split(" ".join(line.strip() for line in lines[start:end]))
    if start == end or first:  # none, or another form
        yield from lines
        return
    yield from lines[:start]
    for heads, text in zip(parts[::2], parts[1::2], strict=True):
        yield from (f"    {head}: {text.strip()}" for head in heads.split(", "))
    yield from ("", *lines[end:])
