"""`torch.compiler`: the calls that programs make to PyTorch's compilers. Every program runs as Python here, so these
return what they are passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["allow_in_graph", "compile", "disable", "is_compiling", "is_dynamo_compiling", "reset"]

T = TypeVar("T")


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """The module or function itself; without one, a decorator that returns what it decorates.

    Kernels are compiled when they are first launched, and a model's step becomes one call by `cuda.graph`.

    >>> import tritensor as torch
    >>> model = torch.nn.Linear(2, 2)
    >>> torch.compile(model, mode="reduce-overhead") is model
    True
    """
    return model if model is not None else lambda decorated: decorated


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself; without one, a decorator that returns what it decorates."""
    return fn if fn is not None else lambda decorated: decorated


def allow_in_graph(fn: T) -> T:
    """The function itself."""
    return fn


def is_compiling() -> bool:
    """False: programs run as Python."""
    return False


def is_dynamo_compiling() -> bool:
    """False: programs run as Python."""
    return False


def reset() -> None:
    """Does nothing: there is nothing to forget."""
