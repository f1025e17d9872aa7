"""Public names, each written once, where its function or class is declared.

    @public(method=True)
    def flip(input, *dims): ...

makes `tritensor.flip`, `tritensor.functional.flip` and `Tensor.flip`. The package and `functional` fill their
namespaces from the tables here, and the type stubs are generated from them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast

from . import index
from .index import Names, members_of, note

Declared = TypeVar("Declared", bound=Callable[..., Any])
Member = TypeVar("Member")

ROOT = ["tritensor"]  # the name that the program has for the package: `scripts.names` makes it "torch"
PACKAGE = Names("public")  # the names of tritensor, except its modules and constants
FUNCTIONAL = Names("functional")  # the names of tritensor.functional
SPECIAL = Names("special")  # the names that tritensor.special alone has
_tensor: list[type] = []
_guards: list[Callable[[Any, str, str], Any]] = []
_casts: list[Callable[[Any, str, Mapping[str, str]], Any]] = []


def methods_of(kind: type) -> None:
    """Set the class that `method` adds members to. `tensor.py` calls it, because this module must not import Tensor."""
    _tensor.append(kind)
    members_of(kind)


def tensor_class() -> Any:
    """The class that `method` adds members to."""
    return _tensor[0]


def copied(function: FunctionType) -> FunctionType:
    """A function of the same code, defaults, variables and attributes."""
    code, scope, cells = function.__code__, function.__globals__, function.__closure__
    made = FunctionType(code, scope, function.__name__, function.__defaults__, cells)
    update_wrapper(made, function).__dict__ = dict(function.__dict__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def guards_of(guarded: Declared) -> Declared:
    """Registers the wrapper that turns unexpected errors into explained ones; it gets a function, a name and a module.

    `arguments.py` calls it, which imports this module to publish an error.
    """
    _guards.append(guarded)
    return guarded


def casts_of(casting: Declared) -> Declared:
    """Registers the wrapper that lets autocast cast the inputs of a function; `autocasting.py` calls it, which needs
    Tensor."""
    _casts.append(casting)
    return casting


def publish(name: str, value: object, *, package: bool = True, functional: bool = True) -> None:
    """Make `value` the public `name` of tritensor, of tritensor.functional, or of both.

    Raises:
        ValueError: the name is already public.
    """
    tables = [names for names, wanted in ((PACKAGE, package), (FUNCTIONAL, functional)) if wanted]
    for names in tables:
        names.check_new(name)
    for names in tables:
        names.declare(name, value)


def public(
    *aliases: str,
    package: bool = True,
    functional: bool = True,
    method: bool = False,
    in_place: Callable[[Any], Any] | None = None,
    in_place_function: bool = False,
    out: Callable[[Any], Any] | None = None,
    guard: bool = True,
    autocast: Mapping[str, str] | None = None,
) -> Callable[[Declared], Declared]:
    """A decorator that makes a function or class public under its own name and under `aliases`.

    Args:
        package, functional: whether it is a name of tritensor and of tritensor.functional.
        method: whether it is a method of Tensor too.
        in_place: makes the in-place method `Tensor.name_` (`inplace.in_place_form`); None for no such method.
        in_place_function: whether that is a function of the package, too, as some are in PyTorch.
        out: gives the function, not the method, the parameter `out` (`outputs.takes_out`); None for no such parameter.
        guard: whether unexpected errors are explained in the namespaces' form (`arguments.guarded`), in which
            functions that make tensors take the options of all such functions. Not for functions of which a call takes
            about 1 us, and for those that warn about the line of their caller: they look at their input themselves.
        autocast: what autocast casts the inputs to, by the type of device (`autocasting`); None for nothing.
    """

    def declare(declared: Declared) -> Declared:
        listed = declared.__name__ if package or functional else f"linalg_{declared.__name__}"  # as PyTorch's operators
        value = declared if autocast is None else _casts[0](declared, listed, autocast)
        function = value if out is None else out(value)
        for name in (value.__name__, *aliases):
            shown = function
            if out is None and guard and (_takes_a_tensor(declared) or _makes_a_tensor(declared)):
                shown = _guards[0](value, name, "tritensor.functional" if functional else "tritensor")
            publish(name, shown, package=package, functional=functional)
            if method:  # as in PyTorch it is another object, which `__torch_function__` tells from the function
                same = shown is value and isinstance(value, FunctionType)
                _member(name, copied(cast(FunctionType, value)) if same else value)
            if in_place is not None:
                _member(f"{name}_", in_place(value), in_place_function)
        return function

    return declare


def _takes_a_tensor(function: Callable[..., Any]) -> bool:
    """True if a function's first parameter is a tensor."""
    code = getattr(function, "__code__", None)
    first = code.co_varnames[0] if code is not None and code.co_argcount else ""
    return bool(first) and function.__annotations__.get(first) == "Tensor"


def _makes_a_tensor(function: Callable[..., Any]) -> bool:
    """True if a function has a parameter for the device of what it makes, and one for the dtype."""
    code = getattr(function, "__code__", None)
    return code is not None and {"dtype", "device"} <= {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}


def method(*names: str, function: bool = False) -> Callable[[Member], Member]:
    """A decorator that makes a function or property a member of Tensor, under its own name or the names passed.

    With `function` it is a function of the package, too, as some in-place methods are in PyTorch.
    """

    def declare(value: Any) -> Any:
        for name in names or (value.__name__,):
            _member(name, value, function)
        return value

    return declare


def _member(name: str, value: Any, function: bool = False) -> None:
    """Make `value` a method of Tensor, and with `function` a function of the package, too."""
    note("member", name)
    if not index.replaced(_tensor[0], name):
        setattr(_tensor[0], name, value)
    for watch in index.watching:
        watch("member", name, value)
    if function:

        def form(input: Any, *args: Any, **named: Any) -> Any:
            return value(input, *args, **named)

        form.__name__ = form.__qualname__ = name
        form.__doc__ = f"`Tensor.{name}`: {value.__doc__}"
        form.__signature__ = inspect.signature(value)  # type: ignore[attr-defined]
        form.__annotations__ = {"input": "Tensor"}
        publish(name, _guards[0](form, name, "tritensor"), functional=False)


class ShownSignature:
    """The signature that `help`, editors and the stubs show: inputs called x and y get PyTorch's names for them."""

    def __get__(self, operator: Any, owner: type) -> inspect.Signature:
        if operator is None:
            raise AttributeError("a class of operators has the signature of its constructor")
        found: list[inspect.Parameter] = []
        for name in operator.inputs:
            shown = {"x": "input", "y": "other"}.get(name, name)
            default = None if name in operator.optional else inspect.Parameter.empty
            annotation = "Any" if found else "Tensor"
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            found.append(inspect.Parameter(shown, kind, default=default, annotation=annotation))
        if operator.variadic:
            found.append(inspect.Parameter("tensors", inspect.Parameter.VAR_POSITIONAL, annotation="Tensor"))
        for name, value in operator.metadata.items():
            found.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation="Any"))
        result = "Tensor" if len(operator.outputs) == 1 else "tuple[Tensor, ...]"
        return inspect.Signature(found, return_annotation=result)
