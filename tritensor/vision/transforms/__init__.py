"""Transforms of pictures, PIL pictures and tensors, with torchvision's names, parameters and results.

Random parameters are drawn from tritensor's generator: `manual_seed` determines them, and each worker of a DataLoader
has its own.
"""

from __future__ import annotations

from . import appearance, composition, functional, geometry
from .appearance import *
from .arguments import InterpolationMode
from .composition import *
from .geometry import *

__all__ = ["InterpolationMode", "functional"]
__all__ += appearance.__all__
__all__ += composition.__all__
__all__ += geometry.__all__
