"""Image datasets, in torchvision's folders and with its parameters."""

from __future__ import annotations

from . import cifar, folder, mnist, vision
from .cifar import *
from .folder import *
from .mnist import *
from .vision import *

__all__ = [*cifar.__all__, *folder.__all__, *mnist.__all__, *vision.__all__]
