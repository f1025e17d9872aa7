"""TorchScript's names for programs that use them: `script` and `trace` return what they are passed, with a warning."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from .errors import warn

__all__ = ["Final", "annotate", "export", "ignore", "is_scripting", "is_tracing", "script", "script_if_tracing"]
__all__ += ["trace", "unused"]

T = TypeVar("T")


def _as_it_is(name: str, function: T) -> T:
    warn(f"torch.jit.{name} returns what it is passed: tritensor runs programs as Python")
    return function


def script(obj: T, optimize: None = None, example_inputs: Any = None) -> T:
    """The module or function itself."""
    return _as_it_is("script", obj)


def trace(func: T, example_inputs: Any = None, optimize: None = None, check_trace: bool = True, **options: Any) -> T:
    """The module or function itself; its control flow is not frozen as in PyTorch's trace."""
    return _as_it_is("trace", func)


def script_if_tracing(fn: T) -> T:
    """The function itself."""
    return fn


def export(fn: T) -> T:
    """The function itself."""
    return fn


def unused(fn: T) -> T:
    """The function itself."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself, or a decorator that returns the function."""
    return drop if callable(drop) else lambda decorated: decorated


def annotate(the_type: Any, the_value: T) -> T:
    """The value."""
    return the_value


def is_scripting() -> bool:
    """False: programs run as Python."""
    return False


def is_tracing() -> bool:
    """False: programs run as Python."""
    return False
