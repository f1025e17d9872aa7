"""Residual networks: He et al., Deep residual learning for image recognition, https://arxiv.org/abs/1512.03385."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import nn
from ...tensor import Tensor
from .weights import initialise, made

__all__ = ["ResNet", "resnet18", "resnet34", "resnet50"]

Norm = Callable[[int], nn.Module]


def _conv(inputs: int, outputs: int, kernel_size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel_size, stride, kernel_size // 2, bias=False)


class BasicBlock(nn.Module):
    """Two convolutions of 3 x 3 beside a connection that skips them."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        norm_layer: Norm = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        self._build(inplanes, planes, stride, norm_layer)
        self.downsample = downsample
        self.stride = stride

    def _build(self, inplanes: int, planes: int, stride: int, norm: Norm) -> None:
        self.conv1, self.bn1 = _conv(inplanes, planes, 3, stride), norm(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = _conv(planes, planes, 3), norm(planes)

    def _main(self, x: Tensor) -> Tensor:
        return self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))

    def forward(self, x: Tensor) -> Tensor:
        """(pictures, planes * expansion, height / stride, width / stride)."""
        return self.relu(self._main(x) + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(BasicBlock):
    """Convolutions of 1 x 1, 3 x 3 (which has the stride, as in "ResNet V1.5") and 1 x 1 beside a connection that skips
    them."""

    expansion = 4

    def _build(self, inplanes: int, planes: int, stride: int, norm: Norm) -> None:
        self.conv1, self.bn1 = _conv(inplanes, planes, 1), norm(planes)
        self.conv2, self.bn2 = _conv(planes, planes, 3, stride), norm(planes)
        self.conv3, self.bn3 = _conv(planes, planes * self.expansion, 1), norm(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)

    def _main(self, x: Tensor) -> Tensor:
        return self.bn3(self.conv3(self.relu(super()._main(x))))


class ResNet(nn.Module):
    """A residual network of four layers of blocks.

    Args:
        block: `BasicBlock` or `Bottleneck`. layers: how many blocks each layer has.
        num_classes: how many numbers a picture gives.
        zero_init_residual: whether the last norm of each block starts at 0, so that it passes on its input.
        norm_layer: what makes a norm of a number of channels; None for `BatchNorm2d`.
    """

    def __init__(
        self,
        block: type[BasicBlock],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        norm_layer: Norm | None = None,
    ) -> None:
        super().__init__()
        norm = norm_layer or nn.BatchNorm2d
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), norm(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        inputs = 64
        for number, count in enumerate(layers, 1):
            stride, planes = 1 if number == 1 else 2, 32 << number
            outputs = planes * block.expansion
            skip = None
            if stride != 1 or inputs != outputs:
                skip = nn.Sequential(_conv(inputs, outputs, 1, stride), norm(outputs))
            blocks = [block(inputs, planes, stride, skip, norm)]
            blocks += [block(outputs, planes, norm_layer=norm) for _ in range(1, count)]
            setattr(self, f"layer{number}", nn.Sequential(*blocks))
            inputs = outputs
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(inputs, num_classes)
        initialise(self, linear=False)
        for module in self.modules() if zero_init_residual else ():
            if isinstance(module, BasicBlock):
                last: Any = module.bn3 if isinstance(module, Bottleneck) else module.bn2
                nn.init.zeros_(last.weight)

    def forward(self, x: Tensor) -> Tensor:
        """(pictures, classes) of pictures (pictures, 3, height, width)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def resnet18(*, weights: None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-18, with the keywords of `ResNet`; 11,689,512 parameters for 1000 classes.

    >>> import tritensor as torch
    >>> resnet18(num_classes=10).eval()(torch.zeros(1, 3, 32, 32)).shape
    tritensor.Size([1, 10])

    Raises:
        ValueError: weights, of which there are none; see `tritensor.vision.models`.
    """
    return made("resnet18", weights, ResNet, BasicBlock, [2, 2, 2, 2], **kwargs)


def resnet34(*, weights: None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-34, with the keywords of `ResNet`; 21,797,672 parameters for 1000 classes. For errors see `resnet18`."""
    return made("resnet34", weights, ResNet, BasicBlock, [3, 4, 6, 3], **kwargs)


def resnet50(*, weights: None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-50, with the keywords of `ResNet`; 25,557,032 parameters for 1000 classes. For errors see `resnet18`."""
    return made("resnet50", weights, ResNet, Bottleneck, [3, 4, 6, 3], **kwargs)
