"""The recording mode, one flag per thread, and the context managers that set it."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from ..errors import ArgumentError
from ..public import public

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "recording",
    "set_grad_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


class _Recording(threading.local):
    enabled = True
    inference = False


recording = _Recording()


@public(functional=False)
def is_grad_enabled() -> bool:
    """Whether operators are being recorded in this thread."""
    return recording.enabled


@public(functional=False)
def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside `inference_mode`."""
    return recording.inference


class _GradMode:
    """A context manager and decorator that sets the recording mode of the thread and restores the previous one."""

    enabled = True
    inference: bool | None = None

    def __enter__(self) -> None:
        self._before = (recording.enabled, recording.inference)
        recording.enabled = self.enabled
        if self.inference is not None:
            recording.inference = self.inference

    def __exit__(self, *exception: object) -> None:
        recording.enabled, recording.inference = self._before

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return self._around_generator(function)  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A generator function in whose body the mode holds; at each `yield` the caller's mode is restored."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            body = function(*args, **kwargs)
            try:
                with self._again():
                    value = next(body)
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        with self._again():
                            body.close()
                        raise
                    except BaseException as error:
                        with self._again():
                            value = body.throw(error)
                    else:
                        with self._again():
                            value = body.send(sent)
            except StopIteration as end:
                return end.value

        return wrapped

    def _again(self) -> _GradMode:
        return type(self)()


@public(functional=False)
class no_grad(_GradMode):
    """Operators in the block (or the decorated function) are not recorded.

    >>> import tritensor as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    enabled = False

    def __new__(cls, function: Any = None) -> Any:
        """An instance, or the function decorated when used as a bare decorator."""
        made = object.__new__(cls)
        return made if function is None else made(function)


@public(functional=False)
class enable_grad(_GradMode):
    """Operators in the block are recorded, also inside `no_grad`."""

    def __new__(cls, function: Any = None) -> Any:
        """An instance, or the function decorated when used as a bare decorator."""
        made = object.__new__(cls)
        return made if function is None else made(function)


@public(functional=False)
class inference_mode(_GradMode):
    """Like `no_grad`; `is_inference_mode_enabled()` tells the two apart."""

    def __new__(cls, mode: Any = True) -> Any:
        """An instance, or the function decorated when used as a bare decorator."""
        return object.__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.enabled = not mode
        self.inference = mode

    def _again(self) -> _GradMode:
        return inference_mode(bool(self.inference))


@public(functional=False)
class set_grad_enabled(_GradMode):
    """Turn recording on or off: at once when called, until the end of the block when used as a context manager."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise ArgumentError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self._before = (recording.enabled, recording.inference)
        self.enabled = recording.enabled = mode

    def __enter__(self) -> None:
        recording.enabled = self.enabled

    def __call__(self, function: F) -> F:
        """The function, run with recording on or off; the thread's own mode is restored at once."""
        recording.enabled = self._before[0]
        return super().__call__(function)

    def _again(self) -> _GradMode:
        return set_grad_enabled(self.enabled)
