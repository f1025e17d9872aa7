"""Very deep convolutional networks: Simonyan and Zisserman, https://arxiv.org/abs/1409.1556."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...tensor import Tensor
from .weights import initialise, refuse_weights

__all__ = ["VGG", "vgg11", "vgg11_bn", "vgg16", "vgg16_bn"]

# The channels of each convolution; 0 is a pool.
LAYERS = {
    11: (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0),
    16: (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0),
}


class VGG(nn.Module):
    """Convolutions `features`, a pool to 7 x 7, and three linear layers with dropout.

    Args:
        num_classes: how many numbers a picture gives.
        init_weights: whether parameters start as in torchvision, otherwise as those of the layers do.
        dropout: the probability.
    """

    def __init__(
        self, features: nn.Module, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )
        if init_weights:
            initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """(pictures, classes) of pictures (pictures, 3, height, width)."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))  # type: ignore[no-any-return]


def _vgg(depth: int, norm: bool, weights: None, options: dict[str, Any]) -> VGG:
    refuse_weights(f"vgg{depth}{'_bn' if norm else ''}", weights)
    layers: list[nn.Module] = []
    inputs = 3
    for channels in LAYERS[depth]:
        if channels:
            layers.append(nn.Conv2d(inputs, channels, kernel_size=3, padding=1))
            layers += [nn.BatchNorm2d(channels)] if norm else []
            layers.append(nn.ReLU(inplace=True))
            inputs = channels
        else:
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
    return VGG(nn.Sequential(*layers), **options)


def vgg11(*, weights: None = None, progress: bool = True, **kwargs: Any) -> VGG:
    """VGG-11, with the keywords of `VGG`; 132,863,336 parameters for 1000 classes.

    Raises:
        ValueError: weights, of which there are none; see `tritensor.vision.models`.
    """
    return _vgg(11, False, weights, kwargs)


def vgg11_bn(*, weights: None = None, progress: bool = True, **kwargs: Any) -> VGG:
    """VGG-11 with batch norm after each convolution; see `vgg11`."""
    return _vgg(11, True, weights, kwargs)


def vgg16(*, weights: None = None, progress: bool = True, **kwargs: Any) -> VGG:
    """VGG-16, with the keywords of `VGG`; 138,357,544 parameters for 1000 classes; see `vgg11`."""
    return _vgg(16, False, weights, kwargs)


def vgg16_bn(*, weights: None = None, progress: bool = True, **kwargs: Any) -> VGG:
    """VGG-16 with batch norm after each convolution; see `vgg11`."""
    return _vgg(16, True, weights, kwargs)
