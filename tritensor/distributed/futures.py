"""Futures: values that are there later, such as the result of a collective, and functions to run on them then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

from ..errors import require

T = TypeVar("T")
S = TypeVar("S")
_TWICE = (
    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked completed once."
)


class Future(Generic[T]):
    """A value that is set later: by `set_result`, by the function given to `then`, or by a collective that ends.

    >>> future = Future()
    >>> tripled = future.then(lambda ready: 3 * ready.value())
    >>> future.set_result(7)
    >>> tripled.wait()
    21

    A collective's future moves on, and runs its functions, only while it is asked by `wait()` or `done()`. If these
    start collectives, all processes have to ask in the same order. `devices` is accepted, and not used.
    """

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        self._event = threading.Event()
        self._result: Any = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []
        # of a future that waits for something: whether that has ended, and a function that waits and sets the value
        self._source: tuple[Callable[[], bool], Callable[[], Any]] | None = None

    @staticmethod
    def _of(ended: Callable[[], bool], wait: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        future._source = (ended, wait)
        return future

    def done(self) -> bool:
        """True if the value, or an exception in its place, is there."""
        if self._source is not None and not self._event.is_set() and self._source[0]():
            self._settle()
        return self._event.is_set()

    def wait(self) -> T:
        """Wait for the value and return it. Raises the exception that is there in its place."""
        self._settle()
        return self.value()

    def value(self) -> T:
        """The value. Raises RuntimeError before it is there, and the exception that is there in its place."""
        require(self._event.is_set(), RuntimeError, "Future is not done: wait() for it, or call value() in then()")
        if self._error is not None:
            raise self._error
        return cast(T, self._result)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future with what `callback(self)` returns, or raises, once this one is done; at once if it is already."""
        child = Future._of(self.done, self._settle)
        self.add_done_callback(lambda _: child._fulfil(lambda: callback(self)))
        return child

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(self)` once this future is done; at once if it is already."""
        if self._event.is_set():
            callback(self)
        else:
            self._callbacks.append(callback)

    def set_result(self, result: T) -> None:
        """Set the value, and run the callbacks. Raises RuntimeError if there is one."""
        self._set(result, None)

    def set_exception(self, result: Exception) -> None:
        """Set an exception, which `wait()` and `value()` raise, and run the callbacks."""
        words = "{!r} is of type {}, not an Exception."
        require(isinstance(result, Exception), AssertionError, words, result, type(result))
        self._set(None, result)

    def _set(self, result: T | None, error: Exception | None) -> None:
        require(not self._event.is_set(), RuntimeError, _TWICE)
        self._result, self._error = result, error
        self._event.set()
        while self._callbacks:
            self._callbacks.pop(0)(self)

    def _settle(self) -> None:
        """Wait, whatever comes."""
        if self._source is not None and not self._event.is_set():
            self._source[1]()
        self._event.wait()

    def _fulfil(self, function: Callable[[], Any]) -> None:
        try:
            result = function()
        except Exception as error:
            self._set(None, error)
        else:
            self._set(result, None)


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future with the list of these, done when all of them are."""
    listed = list(futures)
    joined = Future._of(lambda: all(each.done() for each in listed), lambda: [*map(Future._settle, listed)])
    left = list(range(len(listed)))  # whoever takes the 0 is the last, also among threads
    for each in listed:
        each.add_done_callback(lambda _: None if left.pop() else joined.set_result(listed))
    if not listed:
        joined.set_result(listed)
    return joined


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """Wait for all, and return their values. Raises the first exception among them."""
    return [each.wait() for each in collect_all(futures).wait()]
