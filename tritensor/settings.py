"""Settings, which are read from the environment and can be set for a block of code.

Each is a `Setting`: `setting.value` reads it, and `with setting(value):` sets it for a block and then restores it.

>>> from tritensor import settings
>>> with settings.debug(2):
...     settings.debug.value
2
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

__all__ = ["Setting", "block", "cache_dir", "check", "debug", "grid_order", "native_target", "native_threads"]
__all__ += [
    "native_cpu",
    "native_off",
    "sanitize",
    "simulate_compiled",
    "simulate_cuda",
    "simulate_engine",
    "simulate_late",
]
__all__ += ["simulate_races"]

T = TypeVar("T")


def _flag(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("", "0", "false", "no", "off"):
        return False
    raise ValueError(f"expected 0 or 1, got {text!r}")


def _count(text: str) -> int:
    number = int(text or "0")
    if number < 0:
        raise ValueError(f"expected a number of at least 0, got {text!r}")
    return number


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            *first, last = filter(None, words)
            raise ValueError(f"expected {', '.join(first)} or {last}, got {text!r}")
        return text

    return parse


_order = _one_of("forward", "reverse", "shuffle", "every")
_engine = _one_of("", "native", "interpreter", "compiled")


# Called after a change that cached work may depend on: of a setting, the default dtype, or the matmul precision.
watchers: list[Callable[[], None]] = []


def changed() -> None:
    """Call the watchers, which drop cached work that depends on settings."""
    for watcher in watchers:
        watcher()


class Setting(Generic[T]):
    """One typed setting: its environment variable, the function that parses it, and the default."""

    def __init__(self, variable: str, parse: Callable[[str], T], default: T, meaning: str) -> None:
        self.variable = variable
        self.meaning = meaning
        text = os.environ.get(variable)
        try:
            self.value: T = default if text is None else parse(text)
        except ValueError as error:
            raise ValueError(f"{variable}: {error} ({meaning})") from None

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        if name == "value":
            changed()

    @contextmanager
    def __call__(self, value: T) -> Iterator[None]:
        """Set the value for a block."""
        before, self.value = self.value, value
        try:
            yield
        finally:
            self.value = before

    def __repr__(self) -> str:
        return f"Setting({self.variable}={self.value!r})"


simulate_cuda = Setting("TRITENSOR_SIMULATE_CUDA", _count, 0, "how many CUDA devices to simulate")
simulate_compiled = Setting("TRITENSOR_SIMULATE_COMPILED", _flag, False, "simulated devices run compiled code")
simulate_engine = Setting(
    "TRITENSOR_SIMULATE_ENGINE",
    _engine,
    "",
    "what runs kernels: native, interpreter or compiled; empty for native where it can be",
)
simulate_late = Setting("TRITENSOR_SIMULATE_LATE", _flag, False, "simulated streams run only when waited for")
simulate_races = Setting("TRITENSOR_SIMULATE_RACES", _flag, False, "simulated kernels are checked for races")
check = Setting("TRITENSOR_CHECK", _flag, False, "compare every kernel launch with its reference")
debug = Setting("TRITENSOR_DEBUG", _count, 0, "1: record where tensors are made; 2: print a line per launch")
sanitize = Setting("TRITENSOR_SANITIZE", _flag, True, "check every address that a simulated kernel touches")
grid_order = Setting("TRITENSOR_GRID_ORDER", _order, "forward", "order in which a simulated grid runs")
block = Setting("TRITENSOR_BLOCK", _count, 0, "elements per program; 0 leaves the choice to the kernel")
native_target = Setting(
    "TRITENSOR_NATIVE_TARGET",
    _one_of("", "quick", "avx2", "no-fma"),
    "",
    "what native code is for; empty for this processor",
)
native_threads = Setting("TRITENSOR_NATIVE_THREADS", _count, 1, "threads that run a native kernel's programs")
native_cpu = Setting(
    "TRITENSOR_NATIVE_CPU",
    _one_of("", "0", "1", "force"),
    "",
    "0: no native code for tensors of the CPU; force: for every call, made at once",
)
native_off = Setting(
    "TRITENSOR_NATIVE_OFF", str, "", "names, separated by commas, of operators of CPU tensors without native code"
)
cache_dir = Setting("TRITENSOR_CACHE_DIR", str, "", "where compiled kernels are kept; empty for Triton's own place")
