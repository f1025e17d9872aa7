"""Loads the modules that import Triton, when the first kernel is launched."""

from __future__ import annotations

import importlib
from types import ModuleType

from ..errors import DeviceError
from ..ground.locks import lock

#: one compilation or one interpreted launch at a time: to interpret, the functions of Triton's language are exchanged
language = lock()


def needs_triton(module: str, name: str) -> ModuleType:
    """A module of this room, or one by its path from the package on (".cuda.x"), that imports Triton; `name` is the
    operator that needs it.

    Raises:
        DeviceError: Triton is not installed.
    """
    try:
        if module.startswith("."):
            return importlib.import_module(module, __package__.partition(".")[0])
        return importlib.import_module(f".{module}", __package__)
    except ImportError as error:
        raise DeviceError(
            f"{name}: running kernels needs Triton, which cannot be imported",
            str(error),
            remedy='pip install "tritensor[triton]" (Linux)',
        ) from error
