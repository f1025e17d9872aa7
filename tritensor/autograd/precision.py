"""The state of autocast: the types of devices for which it is on, for each thread. `operators/autocasting.py` casts by
it.

Every operator that autocast may cast for looks at `casts.on`, which takes 4 ns; all else is looked at where that is not
zero. It is one number for all threads, because one of a thread's own would take 25 ns to read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..ground.locks import lock
from ..types import dtypes

Made = TypeVar("Made")


class _Casts:
    """In `on`, the number of types of devices for which autocast is on and of watches, added up over all threads."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = 0


casts = _Casts()
_lock = lock()


class _State(threading.local):
    types: frozenset[str] = frozenset()  # of devices, for which operators of this thread cast
    cache = True
    nesting = 0
    watch: Any = None  # called with each call of an operator by this thread, see `watching`

    def __init__(self) -> None:
        self.lower = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}
        self.blocks: list[Any] = []  # the states from before the blocks that this thread is in
        self.kept: dict[int, tuple[Any, Any, int, Any]] = {}  # a leaf, its array and version, and what it was cast to


state = _State()


def turn(types: frozenset[str]) -> None:
    """Turn autocast on for these types of devices in this thread, and off for all others."""
    with _lock:
        casts.on += len(types) - len(state.types)
    state.types = types


def without_casts(function: Callable[..., Made], *args: Any, **named: Any) -> Made:
    """Call a function, of which no operator casts unless it turns autocast on itself."""
    before, state.types = state.types, frozenset()
    try:
        return function(*args, **named)
    finally:
        state.types = before


def current() -> tuple[Any, ...]:
    """What autocast casts for in this thread, to what, and whether casts are kept: for `within`."""
    return state.types, dict(state.lower), state.cache


@contextmanager
def watching(watch: Callable[[Any, Any], None]) -> Iterator[None]:
    """In a block, call `watch(call, arrays)` with each `Call` of an operator by this thread, and its results.

    If `watch` has a method `instead(call)`, that may return the results, which are not computed then.
    """
    with _lock:
        casts.on += 1
    before, state.watch = state.watch, watch
    try:
        yield
    finally:
        state.watch = before
        with _lock:
            casts.on -= 1


@contextmanager
def within(found: tuple[Any, ...]) -> Iterator[None]:
    """Cast in a block as where `current` was called."""
    before = current()
    turn(found[0])
    state.lower, state.cache = dict(found[1]), found[2]
    try:
        yield
    finally:
        turn(before[0])
        _, state.lower, state.cache = before
        if not state.blocks:  # no block of autocast is left that would forget the casts
            state.kept.clear()
