"""Networks of convolutions one after the other: AlexNet (Krizhevsky, One weird trick, https://arxiv.org/abs/1404.5997)
and VGG (Simonyan and Zisserman, https://arxiv.org/abs/1409.1556)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import nn
from ...tensor import Tensor
from .weights import initialise, made

__all__ = ["VGG", "AlexNet", "alexnet", "vgg11", "vgg16"]

# Of each convolution: channels and, if it is not of 3 x 3, size, stride and padding; 0 is a pool.
ALEXNET = ((64, 11, 4, 2), 0, (192, 5, 1, 2), 0, 384, 256, 256, 0)
VGG11 = (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0)
VGG16 = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)


def _features(layers: Sequence[Any], pool: int) -> nn.Sequential:
    made: list[nn.Module] = []
    inputs = 3
    for layer in layers:
        if layer == 0:
            made.append(nn.MaxPool2d(pool, 2))
        else:
            outputs, *shape = layer if isinstance(layer, tuple) else (layer, 3, 1, 1)
            made += [nn.Conv2d(inputs, outputs, *shape), nn.ReLU(inplace=True)]
            inputs = outputs
    return nn.Sequential(*made)


class _Plain(nn.Module):
    """Features, a pool to `side` x `side`, and three linear layers with dropouts in the places `dropped` among them."""

    def __init__(
        self, features: nn.Module, channels: int, side: int, classes: int, dropout: float, dropped: tuple[int, int]
    ) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((side, side))
        layers = [nn.Linear(channels * side * side, 4096), nn.ReLU(True), nn.Linear(4096, 4096), nn.ReLU(True)]
        for place in dropped:
            layers.insert(place, nn.Dropout(dropout))
        self.classifier = nn.Sequential(*layers, nn.Linear(4096, classes))

    def forward(self, x: Tensor) -> Tensor:
        """(pictures, classes) of pictures (pictures, 3, height, width); for AlexNet of 63 x 63 or more."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


class AlexNet(_Plain):
    """Five convolutions, a pool to 6 x 6, and three linear layers with dropout of probability `dropout`."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__(_features(ALEXNET, 3), 256, 6, num_classes, dropout, (0, 3))


class VGG(_Plain):
    """Convolutions `features`, a pool to 7 x 7, and three linear layers with dropout of probability `dropout`.

    With `init_weights` parameters start as in torchvision, otherwise as those of the layers do.
    """

    def __init__(
        self, features: nn.Module, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5
    ) -> None:
        super().__init__(features, 512, 7, num_classes, dropout, (2, 5))
        if init_weights:
            initialise(self)


def alexnet(*, weights: None = None, progress: bool = True, **kwargs: Any) -> AlexNet:
    """AlexNet, with the keywords of `AlexNet`; 61,100,840 parameters for 1000 classes. For errors see `resnet18`."""
    return made("alexnet", weights, AlexNet, **kwargs)


def vgg11(*, weights: None = None, progress: bool = True, **kwargs: Any) -> VGG:
    """VGG-11, with the keywords of `VGG`; 132,863,336 parameters for 1000 classes. For errors see `resnet18`."""
    return made("vgg11", weights, VGG, _features(VGG11, 2), **kwargs)


def vgg16(*, weights: None = None, progress: bool = True, **kwargs: Any) -> VGG:
    """VGG-16, with the keywords of `VGG`; 138,357,544 parameters for 1000 classes. For errors see `resnet18`."""
    return made("vgg16", weights, VGG, _features(VGG16, 2), **kwargs)
