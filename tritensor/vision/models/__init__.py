"""Models of pictures with torchvision's structure and names of parameters, so that its checkpoints load.

model = resnet18()
model.load_state_dict(tritensor.load("resnet18-f37072fd.pth"))
"""

from __future__ import annotations

from .mobilenetv2 import MobileNetV2, mobilenet_v2
from .plain import VGG, AlexNet, alexnet, vgg11, vgg16
from .resnet import ResNet, resnet18, resnet34, resnet50

__all__ = [
    "VGG",
    "AlexNet",
    "MobileNetV2",
    "ResNet",
    "alexnet",
    "mobilenet_v2",
    "resnet18",
    "resnet34",
    "resnet50",
    "vgg11",
    "vgg16",
]
