"""Data sets of pictures, transforms, files of pictures and models, with torchvision's names.

    from tritensor.vision import datasets, transforms

It needs Pillow (`pip install "tritensor[vision]"`) and is imported only where it is named. Its files are those of
torchvision, in the same folders: a data set that torchvision downloaded is used where it stands.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import explain

try:
    import PIL  # noqa: F401
except ImportError as error:
    raise ImportError(
        explain("tritensor.vision needs Pillow", str(error), remedy='pip install "tritensor[vision]"')
    ) from error

__all__ = ["datasets", "io", "models", "transforms", "utils"]


def __getattr__(name: str) -> Any:
    """Import a part on first access."""
    if name in __all__:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
