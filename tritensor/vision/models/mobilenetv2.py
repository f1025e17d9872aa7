"""MobileNetV2: Sandler et al., Inverted residuals and linear bottlenecks, https://arxiv.org/abs/1801.04381."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import nn
from ...tensor import Tensor
from .weights import initialise, refuse_weights

__all__ = ["InvertedResidual", "MobileNetV2", "mobilenet_v2"]

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
        self.out_channels = outputs


class InvertedResidual(nn.Module):
    """A depthwise convolution between one that widens and one that narrows, beside a connection that skips them.

    Raises:
        ValueError: a stride other than 1 and 2.
    """

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int, norm_layer: Norm | None = None) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        norm = norm_layer or nn.BatchNorm2d
        hidden = round(inp * expand_ratio)
        layers: list[nn.Module] = [Conv2dNormActivation(inp, hidden, 1, norm)] if expand_ratio != 1 else []
        layers += [
            Conv2dNormActivation(hidden, hidden, 3, norm, stride, groups=hidden),
            nn.Conv2d(hidden, oup, 1, bias=False),
            norm(oup),
        ]
        self.stride = stride
        self.use_res_connect = stride == 1 and inp == oup
        self.conv = nn.Sequential(*layers)
        self.out_channels = oup

    def forward(self, x: Tensor) -> Tensor:
        """(pictures, oup, height / stride, width / stride)."""
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


def _divisible(channels: float, divisor: int) -> int:
    """The nearest multiple of `divisor` that is not less than nine tenths."""
    nearest = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * channels else nearest


class MobileNetV2(nn.Module):
    """Inverted residual blocks, a pool, and a linear layer with dropout.

    Args:
        num_classes: how many numbers a picture gives.
        width_mult: a factor for the numbers of channels, which are multiples of `round_nearest`.
        inverted_residual_setting: of each group of blocks [expansion, channels, number, stride of the first].
        block, norm_layer: what makes a block, and a norm of a number of channels.
        dropout: the probability.

    Raises:
        ValueError: a setting that is empty, or whose groups are not of four numbers.
    """

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting: Sequence[Sequence[int]] | None = None,
        round_nearest: int = 8,
        block: Callable[..., nn.Module] | None = None,
        norm_layer: Norm | None = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        setting = SETTING if inverted_residual_setting is None else inverted_residual_setting
        if len(setting) == 0 or len(setting[0]) != 4:
            raise ValueError(f"inverted_residual_setting should be non-empty or a 4-element list, got {setting}")
        made, norm = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        channels = _divisible(32 * width_mult, round_nearest)
        self.last_channel = _divisible(1280 * max(1.0, width_mult), round_nearest)
        features: list[nn.Module] = [Conv2dNormActivation(3, channels, 3, norm, stride=2)]
        for expansion, width, number, first in setting:
            outputs = _divisible(width * width_mult, round_nearest)
            for index in range(number):
                stride = 1 if index else first
                features.append(made(channels, outputs, stride, expand_ratio=expansion, norm_layer=norm))
                channels = outputs
        features.append(Conv2dNormActivation(channels, self.last_channel, 1, norm))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes))
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """(pictures, classes) of pictures (pictures, 3, height, width)."""
        pooled = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(pooled.flatten(1))


def mobilenet_v2(*, weights: None = None, progress: bool = True, **kwargs: Any) -> MobileNetV2:
    """MobileNetV2, with the keywords of `MobileNetV2`; 3,504,872 parameters for 1000 classes.

    >>> sum(parameter.numel() for parameter in mobilenet_v2().parameters())
    3504872

    Raises:
        ValueError: weights, of which there are none; see `tritensor.vision.models`.
    """
    refuse_weights("mobilenet_v2", weights)
    return MobileNetV2(**kwargs)
