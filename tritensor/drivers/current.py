"""The drivers that stand for the machine's own in the running code: those of the simulations that it is in.

They are kept in a context variable, so a simulation belongs to the thread or the asyncio task that entered it, and
threads and tasks that simulate at once see nothing of each other. A new task begins with a copy of its maker's context;
a thread does so if it is started with `contextvars.copy_context().run`, or it enters `use` (`Simulator.share`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..types.devices import current_index, set_current_index

#: the drivers of the running code, outermost first; `selection.active` is the last of them
used: ContextVar[tuple[Any, ...]] = ContextVar("tritensor.drivers.used", default=())
#: the drivers that any thread or task is in, once for each `use`; for errors
entered: list[Any] = []


@contextmanager
def use(driver: Any) -> Iterator[None]:
    """Use a driver's devices as the CUDA devices in a block of code; other threads and tasks keep theirs."""
    before = current_index()
    used.set((*used.get(), driver))
    entered.append(driver)
    set_current_index(0)
    try:
        yield
    finally:
        entered.remove(driver)
        # No token is used to reset the variable: blocks may end in any order, and an asynchronous fixture ends in
        # another context than the one it began in.
        left = [*used.get()]
        if driver in left:
            del left[len(left) - 1 - left[::-1].index(driver)]
        used.set(tuple(left))
        set_current_index(before)


class Seeds:
    """The default generators of some devices, by ordinal, and the seed of those that are not made yet."""

    __slots__ = ("first", "generators")

    def __init__(self, first: int) -> None:
        self.first = first
        self.generators: dict[int, Any] = {}


FIRST_SEED = 67280421310721  # PyTorch's
_of_the_machine = Seeds(FIRST_SEED)


def seeds() -> Seeds:
    """The seeds of the running code's CUDA devices: its simulation's, or the machine's. Looks for no device."""
    drivers = used.get()
    found: Seeds = drivers[-1].seeds if drivers else _of_the_machine
    return found
