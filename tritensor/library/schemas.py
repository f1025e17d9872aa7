"""The arguments and results of an operator of a program, and how they are inferred from a function's annotations."""

from __future__ import annotations

import ast
import collections.abc
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..errors import AutogradError
from ..tensors import Tensor
from ..types import devices, dtypes

_TYPES: dict[Any, str] = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str"}
_TYPES |= {dtypes.dtype: "ScalarType", devices.device: "Device", int | float | bool: "Scalar"}


class Argument(NamedTuple):
    """One argument of an operator; `default` is `inspect.Parameter.empty` where there is none."""

    name: str
    type: str
    mutated: bool
    default: object
    kwarg_only: bool


_ARGUMENT = re.compile(r"(\w+)(\(\w+(!?)[^)]*\))?(\S*) +(\w+)(?: *= *(.*))?")


class Schema:
    """The arguments and results of an operator, from a text such as `mylib::scale(Tensor x, float by=2.0) -> Tensor`.

    Raises:
        RuntimeError: the text is no schema.
    """

    def __init__(self, text: str) -> None:
        head, arrow, self.returns = (part.strip() for part in text.rpartition("->"))
        self.name, opened, inside = head.partition("(")
        if not arrow or not opened or not inside.endswith(")"):
            raise AutogradError("Tried to parse a function schema but only the operator name was given", repr(text))
        self.text, self.arguments = text, list[Argument]()
        only = False
        for each in re.split(r", *(?![^\[]*\])", inside[:-1].strip()):
            found = _ARGUMENT.fullmatch(each.strip())
            if each in ("", "*"):
                only = only or each == "*"
            elif found is None:
                raise AutogradError(f"expected a type and a name but found '{each}' here:", text)
            else:
                kind, _, mutated, more, name, default = found.groups()
                value = inspect.Parameter.empty if default is None else _literal(default)
                self.arguments.append(Argument(name, kind + more, bool(mutated), value, only))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, those that have no names in the schema's order, and keyword-only ones by name."""
        where, places = f"Declaration: {self}", [each for each in self.arguments if not each.kwarg_only]
        if len(args) > len(places):
            words = f"{self.name}() expected at most {len(places)} argument(s) but received {len(args)} argument(s)."
            raise AutogradError(f"{words} {where}")
        given = {each.name: value for each, value in zip(places, args, strict=False)}
        if twice := given.keys() & kwargs.keys():
            raise AutogradError(
                f"Argument '{min(twice)}' specified both as positional and keyword argument. Schema: {self}"
            )
        given |= kwargs
        unknown = given.keys() - {each.name for each in self.arguments}
        if unknown:
            raise AutogradError(f"{self.name}() got an unknown argument '{min(unknown)}'. {where}")
        for position, each in enumerate(self.arguments):
            value = given.setdefault(each.name, each.default)
            if value is inspect.Parameter.empty:
                raise AutogradError(f"{self.name}() is missing value for argument '{each.name}'. {where}")
            if each.type == "Tensor" and not isinstance(value, Tensor):
                words = f"Expected a value of type 'Tensor' for argument '{each.name}' but instead found type"
                raise AutogradError(f"{self.name}() {words} '{type(value).__name__}'.\nPosition: {position}\n{where}")
        return tuple([given.pop(each.name) for each in places]), given

    def __str__(self) -> str:
        return self.text


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str], op_name: str | None = None
) -> str:
    """The schema of an operator, from the annotations of the function that computes it.

    >>> import tritensor as torch
    >>> def scale(x: torch.Tensor, by: float = 2.0) -> torch.Tensor: ...
    >>> torch.library.infer_schema(scale, mutates_args=())
    '(Tensor x, float by=2.0) -> Tensor'

    Args:
        mutates_args: the names of the arguments that the function changes in place, or "unknown" for any.

    Raises:
        ValueError: an annotation is missing, or of a type that operators do not take.
    """
    signature = inspect.signature(prototype_function)

    def refuse(what: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    try:
        known = inspect.signature(prototype_function, eval_str=True)
    except NameError as error:
        refuse(f"Unsupported type annotation. It is not a type. ({error}).")
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        words = "mutates_args must either be a sequence of the names of the arguments that are mutated or the string"
        raise ValueError(f"{words} 'unknown'. ")
    unknown, parts = mutates_args == "unknown", list[str]()
    mutated = set() if unknown else set(mutates_args)
    for index, (name, each) in enumerate(known.parameters.items()):
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if each.kind is each.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if each.annotation is each.empty:
            refuse(f"Parameter {name} must have a type annotation.")
        kind = _type_of(each.annotation)
        if kind is None:
            refuse(f"Parameter {name} has unsupported type {each.annotation}. The valid types are: {_TYPES.keys()}.")
        tensor = kind.startswith("Tensor")
        if name in mutated and not tensor:
            refuse(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
        if tensor and (unknown or name in mutated):
            kind = f"Tensor(a{index}!){kind[6:]}"
        shown = f'"{each.default}"' if isinstance(each.default, (str, devices.device)) else str(each.default)
        shown = each.default.name if isinstance(each.default, dtypes.dtype) else shown
        parts.append(f"{kind} {name}" + ("" if each.default is each.empty else f"={shown}"))
    missing = mutated - {*known.parameters}
    if missing:
        refuse(f"{missing} in mutates_args were not found in the custom op's signature.")
    result = known.return_annotation
    if result is known.empty:
        refuse("No return type annotation was provided. Please add one.")
    several = typing.get_args(result) if typing.get_origin(result) is tuple else ()
    kinds = [_type_of(each) for each in several or (result,) if each is not None]
    if None in kinds:
        refuse(f"Return has unsupported type {result}. The valid types are: {_TYPES}.")
    returned = ", ".join(map(str, kinds))
    if several or result is None:
        returned = f"(({returned}))" if len(several) == 1 else f"({returned})"
    return f"{op_name or ''}({', '.join(parts)}) -> {returned}"


def _type_of(annotation: object) -> str | None:
    """The schema's word for an annotation, None if operators do not take such values."""
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType) and len(inside) == 2 and type(None) in inside:
        found = _type_of(inside[0] if inside[1] is type(None) else inside[1])
        return found and f"{found}?"
    if origin in (list, collections.abc.Sequence) and len(inside) == 1:
        found = _type_of(inside[0])
        return found and f"{found}[]"
    return next((word for kind, word in _TYPES.items() if kind == annotation), None)
