"""`__torch_function__`: classes and modes that override public functions and methods of Tensor."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, Self

from .ground import index, overriding, public
from .ground.overriding import Args, Function, Named, here, known, owns
from .tensors import Tensor

__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "get_ignored_functions", "get_overridable_functions"]
__all__ += ["handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"]
__all__ += ["is_tensor_like", "is_tensor_method_or_property", "resolve_name", "wrap_torch_function"]


class TorchFunctionMode:
    """A mode that overrides all public functions, those that make tensors too, within `with`.

    Functions that are called in there are those of the modes around this one.
    """

    def __enter__(self) -> Self:
        overriding.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        overriding.pop(self)


class BaseTorchFunctionMode(TorchFunctionMode):
    """The base of function modes, which calls each function as it is."""

    def __torch_function__(
        self, func: Function, types: Iterable[type], args: Args = (), kwargs: Named | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args: Iterable[object]) -> bool:
    """True if an argument's class, or a mode, overrides functions by `__torch_function__`."""
    return here.disabled < 2 and bool(here.modes or (not here.disabled and overriding.overloaded(relevant_args)))


def has_torch_function_variadic(*args: object) -> bool:
    """`has_torch_function` of these arguments."""
    return has_torch_function(args)


has_torch_function_unary = has_torch_function_variadic


def handle_torch_function(
    public_api: Function, relevant_args: Iterable[object], *args: object, **kwargs: object
) -> Any:
    """Call the innermost mode, or the override of an argument, in place of a function of one's own.

    Raises:
        ArgumentError: none of them has a result.
    """
    asked = [] if here.disabled else overriding.overloaded(relevant_args)
    name = f"{public_api.__module__}.{public_api.__name__}"
    words = f"no implementation found for '{name}' on types that implement __torch_function__: {[*map(type, asked)]}"
    return overriding.ask(public_api, name, asked, args, kwargs, words)


def wrap_torch_function(dispatcher: Callable[..., Iterable[object]]) -> Callable[[Function], Function]:
    """A decorator that lets a function be overridden; `dispatcher` gives its arguments that are to be asked."""

    def inner(func: Function) -> Function:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            asks = has_torch_function(relevant)
            return handle_torch_function(wrapped, relevant, *args, **kwargs) if asks else func(*args, **kwargs)

        return wrapped

    return inner


def is_tensor_like(inp: object) -> bool:
    """True for a Tensor, and for what has `__torch_function__`."""
    return hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Function) -> bool:
    """True for a method of Tensor, and for what gets or sets a property of it."""
    return (resolve_name(func) or "").startswith("torch.Tensor.")


def resolve_name(f: Function) -> str | None:
    """The name of a function that `__torch_function__` gets: "torch.Tensor.add"; None of another function."""
    overriding.install()
    return known.get(f)


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions that can be overridden, by the module or class that has them."""
    overriding.install()
    index.everything()
    found: dict[Any, list[Any]] = {}
    for func, name in [*known.items()]:
        parts = name.split(".")[1:-1]
        found.setdefault(functools.reduce(getattr, parts, sys.modules[Tensor.__module__]), []).append(func)
    return found


def get_ignored_functions() -> set[Any]:
    """The public functions that cannot be overridden."""
    overriding.install()
    functions = (*public.PACKAGE.values(), *vars(Tensor).values())
    return {each for each in functions if isinstance(each, FunctionType) and each not in owns}
