"""`__torch_function__`: classes and modes that decide what public functions and methods of Tensor return.

>>> import tritensor as torch
>>> from tritensor.overrides import TorchFunctionMode, resolve_name
>>> class Names(TorchFunctionMode):
...     def __torch_function__(self, func, types, args=(), kwargs=None):
...         print(resolve_name(func))
...         return func(*args, **(kwargs or {}))
>>> with Names():
...     y = torch.ones(2) + 1
torch.ones
torch.Tensor.add
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from . import fft as _fft  # noqa: F401 - its functions are overridable
from .ground import index, overriding, public
from .ground.overriding import here, known
from .tensors import Tensor

__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch", "get_default_nowrap_functions"]
__all__ += ["get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "handle_torch_function"]
__all__ += ["has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like"]
__all__ += ["is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function"]


class TorchFunctionMode:
    """Decides what every public function returns within `with`, those that make tensors too.

    Functions that are called in `__torch_function__` are those of the modes around this one.
    """

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: tuple[object, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        overriding.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        overriding.pop()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls each function."""

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: tuple[object, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args: Iterable[object]) -> bool:
    """True if a mode or a class of the arguments is to be asked with `handle_torch_function`."""
    if here.skips or here.disabled == 2:
        here.skips = False
        return False
    return bool(here.modes) or (not here.disabled and bool(overriding.overloaded(relevant_args)))


def has_torch_function_unary(a: object) -> bool:
    """`has_torch_function` of one argument."""
    return has_torch_function((a,))


def has_torch_function_variadic(*args: object) -> bool:
    """`has_torch_function` of these arguments."""
    return has_torch_function(args)


def handle_torch_function(public_api: Any, relevant_args: Iterable[object], *args: object, **kwargs: object) -> Any:
    """What a function of one's own returns that the innermost mode or one of its arguments overrides.

    >>> import tritensor as torch
    >>> def double(x):
    ...     if has_torch_function((x,)):
    ...         return handle_torch_function(double, (x,), x)
    ...     return 2 * x
    >>> class Kept(torch.Tensor): pass
    >>> type(double(Kept([1.0]))).__name__
    'Kept'

    Raises:
        ArgumentError: none of them has a result.
    """
    asked = [] if here.disabled else overriding.overloaded(relevant_args)
    name = f"{public_api.__module__}.{public_api.__name__}"
    words = f"no implementation found for '{name}' on types that implement __torch_function__: {list(map(type, asked))}"
    return overriding.ask(public_api, name, asked, args, kwargs, words)


def wrap_torch_function(dispatcher: Callable[..., Iterable[object]]) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that lets a function be overridden; `dispatcher` gives its arguments that are to be asked."""

    def inner(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def redispatch_function(
    func: Any, types: object, args: tuple[object, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """Calls a function that asks nobody, where the functions that it calls ask."""
    here.skips = True
    try:
        return func(*args, **(kwargs or {}))
    finally:
        here.skips = False


def is_tensor_like(inp: object) -> bool:
    """True for a Tensor, and for what has `__torch_function__`."""
    return hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """True for a method of Tensor, and for what gets or sets a property."""
    return (resolve_name(func) or "").startswith("torch.Tensor.")


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The name of a function that `__torch_function__` gets: "torch.Tensor.add"; None of another function."""
    overriding.install()
    return known[f].name if f in known else None


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions that can be overridden, by the module or class that has them."""
    overriding.install()
    index.everything()
    found: dict[Any, list[Any]] = {}
    for func, asks in [*known.items()]:
        owner: Any = sys.modules[__name__.partition(".")[0]]
        for name in asks.name.split(".")[1:-1]:
            owner = getattr(owner, name)
        found.setdefault(owner, []).append(func)
    return found


def get_ignored_functions() -> set[Any]:
    """The public functions that cannot be overridden."""
    overriding.install()
    tables = (*public.PACKAGE.values(), *vars(Tensor).values())
    return {each for each in tables if isinstance(each, FunctionType) and each not in known}


def get_testing_overrides() -> dict[Any, Callable[..., int]]:
    """For each function that can be overridden one of the same parameters that returns -1."""
    found = {}
    for func in (func for functions in get_overridable_functions().values() for func in functions):

        def override(*args: object, **kwargs: object) -> int:
            return -1

        override.__signature__ = inspect.signature(known[func].own)  # type: ignore[attr-defined]
        found[func] = override
    return found


def get_default_nowrap_functions() -> set[Any]:
    """The functions whose results the default `__torch_function__` leaves as they are."""
    return {Tensor.grad.__get__}  # type: ignore[attr-defined]


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Nothing: functions within `__torch_function__` are asked about in any case."""
    yield


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return [*here.modes]


def _get_current_function_mode() -> TorchFunctionMode | None:
    return here.modes[-1] if here.modes else None
