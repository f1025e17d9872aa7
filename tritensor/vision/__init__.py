"""Data sets of pictures, transforms, files of pictures and models, with torchvision's names.

    from tritensor.vision import datasets, transforms

It needs Pillow (`pip install "tritensor[vision]"`) and is imported only where it is named. Its files are those of
torchvision, in the same folders: a data set that torchvision downloaded is used where it stands.
"""

from __future__ import annotations

from ..errors import explain

try:
    import PIL  # noqa: F401
except ImportError as error:
    raise ImportError(
        explain("tritensor.vision needs Pillow", str(error), remedy='pip install "tritensor[vision]"')
    ) from error

from . import datasets, io, models, transforms, utils

__all__ = ["datasets", "io", "models", "transforms", "utils"]
