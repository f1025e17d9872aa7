"""Python imports this file when it starts, in every process of a program that is watched: the folder is on its path.

`WATCHED_AS` says whose program it is: "tritensor", whose losses and parameters are recorded, or "torch", which besides
draws tritensor's random numbers and may pretend that the CPU is a number of CUDA devices.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType


class _Loader(importlib.abc.Loader):
    """A module's own loader, and then what is to be done with the module."""

    def __init__(self, own: importlib.abc.Loader) -> None:
        self.own = own

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """The own loader's module."""
        return self.own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, and watch it."""
        self.own.exec_module(module)
        if module.__name__ == "torch":
            import as_torch

            as_torch.begin(module)
        import recorded

        recorded.begin(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the one module that is watched."""

    def __init__(self, name: str) -> None:
        self.name, self.looking = name, False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's own specification with another loader."""
        if fullname != self.name or self.looking:
            return None
        self.looking = True  # it is asked more than once: `python -m` looks before it imports
        found = importlib.util.find_spec(fullname)
        self.looking = False
        if found is not None and found.loader is not None:
            found.loader = _Loader(found.loader)
        return found


if os.environ.get("WATCHED_AS"):
    sys.meta_path.insert(0, _Finder(os.environ["WATCHED_AS"]))
