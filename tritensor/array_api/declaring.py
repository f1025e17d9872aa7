"""Declares the functions of the namespace, from tables of their signatures and of the functions that compute them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..ground.arguments import check_tensor
from .arrays import kept
from .data_types import promoted

_ANNOTATIONS = """x: Tensor; x1: Tensor | complex; x2: Tensor | complex; arrays: Sequence[Tensor]; keepdims: bool;
    axes: int | Sequence[Any] | None; axis: int | tuple[int, ...] | None; device: device | str | None;
    dtype: dtype | None; shape: int | Sequence[int]"""
_KINDS = dict(entry.strip().split(": ") for entry in _ANNOTATIONS.split(";"))


def functions_of(module: str, table: str, functions: Mapping[str, Any]) -> dict[str, Any]:
    """The public functions of a table, by name.

    A line is `name(parameters) = target(parameter=its): text`. The target, by default `name`, is the one of `functions`
    that computes. In its brackets is what it calls a parameter, besides `dim` for `axis` and `keepdim` for `keepdims`
    if it is not of this package. The default text is the target's. Tensors and numbers that are called `x1` and `x2`,
    or are in the list `arrays`, come to the target in the dtype that they promote to.
    """
    made = {}
    for line in table.strip().splitlines():
        head, _, text = line.partition(": ")
        described, _, target = head.partition(" = ")
        name, _, parameters = described.removesuffix(")").partition("(")
        target, _, renamed = target.removesuffix(")").partition("(")
        compute = functions[target or name]
        names = {} if compute.__module__ == module else {"axis": "dim", "keepdims": "keepdim"}
        names |= dict(pair.split("=") for pair in renamed.split(", ") if pair)
        made[name] = _function(name, compute, parameters, names)
        made[name].__module__, made[name].__doc__ = module, text or compute.__doc__.partition("\n\n")[0]
    return made


def _function(name: str, compute: Callable[..., Any], parameters: str, names: dict[str, str]) -> Callable[..., Any]:
    found = inspect.signature(eval(f"lambda {parameters}: 0")).parameters.values()  # of this package's own text
    kinds = ["Tensor" if each.kind is each.VAR_POSITIONAL else _KINDS.get(each.name, "Any") for each in found]
    parts = [each.replace(annotation=kind) for each, kind in zip(found, kinds, strict=True)]
    shown = inspect.Signature(parts, return_annotation=inspect.signature(compute).return_annotation)
    positional = [each.name for each in found if each.kind < each.VAR_POSITIONAL]
    needed = sum(each.default is each.empty for each in found if each.name in positional)
    named_so = {each.name: names.get(each.name, each.name) for each in found if each.kind > each.POSITIONAL_ONLY}
    many = any(each.kind == each.VAR_POSITIONAL for each in found)
    first = positional.index("x1") if "x1" in positional else None

    def call(*args: Any, **named: Any) -> Any:
        if not needed <= len(args) or (len(args) > len(positional) and not many) or not named.keys() <= named_so.keys():
            shown.bind(*args, **named)  # raises, unless they are passed by name
        given = args
        if first is not None and len(args) > first:
            given = (*args[:first], *promoted(name, *args[first : first + 2]), *args[first + 2 :])
        elif positional[:1] == ["arrays"]:
            given = (promoted(name, *args[0]), *args[1:])
        elif positional[:1] == ["x"]:
            check_tensor(name, "x", 1, args[0])
        if isinstance(named.get("shape"), int):
            named["shape"] = (named["shape"],)
        return kept(compute(*given, **({named_so[key]: named[key] for key in named} if named else named)), args)

    call.__name__ = call.__qualname__ = name
    call.__signature__ = shown  # type: ignore[attr-defined]
    return call
