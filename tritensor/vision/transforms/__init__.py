"""Image transforms of PIL images and tensors, with torchvision's names, parameters and results.

Random parameters are drawn from tritensor's generator: `manual_seed` determines them, and each worker of a DataLoader
has its own. A parameter of another type raises a TypeError and one out of range a ValueError when the transform is
made; for what a picture raises see `functional`.
"""

from __future__ import annotations

from . import functional, randomized, transforms
from .functional import InterpolationMode
from .randomized import *
from .transforms import *

__all__ = ["InterpolationMode", "functional"]
__all__ += randomized.__all__
__all__ += transforms.__all__
