"""Calls a function when a module of another library has been imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["after"]


class _Watcher:
    """A finder that finds nothing but the one module, whose loader then calls a function."""

    def __init__(self, name: str, call: Callable[[], object]) -> None:
        self.name, self.call, self.finding = name, call, False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name or self.finding:
            return None
        self.finding = True
        try:
            spec = find_spec(name)
        finally:
            self.finding = False
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def executed(module: ModuleType) -> None:
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                execute(module)
                self.call()

            loader.exec_module = executed
        return spec


def after(name: str, call: Callable[[], object]) -> None:
    """Call a function once a top-level module has been imported: at once if that has happened."""
    if sys.modules.get(name) is not None:
        call()
    else:
        sys.meta_path.insert(0, _Watcher(name, call))
