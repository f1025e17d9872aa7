"""Models of pictures with torchvision's structure and names of parameters, so that its checkpoints load.

model = resnet18()
model.load_state_dict(tritensor.load("resnet18-f37072fd.pth"))
"""

from __future__ import annotations

from . import mobilenetv2, plain, resnet
from .mobilenetv2 import *
from .plain import *
from .resnet import *

__all__ = [*mobilenetv2.__all__, *plain.__all__, *resnet.__all__]
