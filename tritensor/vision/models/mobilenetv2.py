"""MobileNetV2: Sandler et al., Inverted residuals and linear bottlenecks, https://arxiv.org/abs/1801.04381."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import nn
from ...tensor import Tensor
from .weights import initialise, made

__all__ = ["MobileNetV2", "mobilenet_v2"]

Norm = Callable[[int], nn.Module]
# Of each group of blocks: expansion, channels, number, stride of the first.
SETTING = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class Conv2dNormActivation(nn.Sequential):
    """A convolution without bias, a norm, and ReLU6."""

    def __init__(self, inputs: int, outputs: int, size: int, norm: Norm, stride: int = 1, groups: int = 1) -> None:
        layer = nn.Conv2d(inputs, outputs, size, stride, (size - 1) // 2, groups=groups, bias=False)
        super().__init__(layer, norm(outputs), nn.ReLU6(inplace=True))


class InvertedResidual(nn.Module):
    """A depthwise convolution between one that widens and one that narrows, beside a connection that skips them."""

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int, norm: Norm) -> None:
        super().__init__()
        hidden = inp * expand_ratio
        layers: list[nn.Module] = [Conv2dNormActivation(inp, hidden, 1, norm)] if expand_ratio != 1 else []
        layers += [
            Conv2dNormActivation(hidden, hidden, 3, norm, stride, groups=hidden),
            nn.Conv2d(hidden, oup, 1, bias=False),
            norm(oup),
        ]
        self.use_res_connect = stride == 1 and inp == oup
        self.conv = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """(pictures, oup, height / stride, width / stride)."""
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


def _eights(channels: float) -> int:
    """The nearest multiple of 8 that is not less than nine tenths."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels else nearest


class MobileNetV2(nn.Module):
    """Inverted residual blocks, a pool, and a linear layer with dropout.

    Args:
        num_classes: how many numbers a picture gives.
        width_mult: a factor for the numbers of channels, which are multiples of 8.
        norm_layer: what makes a norm of a number of channels; None for `BatchNorm2d`.
        dropout: the probability.
    """

    def __init__(
        self, num_classes: int = 1000, width_mult: float = 1.0, norm_layer: Norm | None = None, dropout: float = 0.2
    ) -> None:
        super().__init__()
        norm = norm_layer or nn.BatchNorm2d
        channels = _eights(32 * width_mult)
        self.last_channel = _eights(1280 * max(1.0, width_mult))
        features: list[nn.Module] = [Conv2dNormActivation(3, channels, 3, norm, stride=2)]
        for expansion, width, number, first in SETTING:
            outputs = _eights(width * width_mult)
            for index in range(number):
                features.append(InvertedResidual(channels, outputs, 1 if index else first, expansion, norm))
                channels = outputs
        features.append(Conv2dNormActivation(channels, self.last_channel, 1, norm))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes))
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """(pictures, classes) of pictures (pictures, 3, height, width)."""
        return self.classifier(self.features(x).mean((2, 3)))


def mobilenet_v2(*, weights: None = None, progress: bool = True, **kwargs: Any) -> MobileNetV2:
    """MobileNetV2, with the keywords of `MobileNetV2`; for errors see `resnet18`.

    >>> sum(parameter.numel() for parameter in mobilenet_v2().parameters())
    3504872
    """
    return made("mobilenet_v2", weights, MobileNetV2, **kwargs)
