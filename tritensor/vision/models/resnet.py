"""Residual networks: He et al., Deep residual learning for image recognition, https://arxiv.org/abs/1512.03385."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import nn
from ...tensor import Tensor
from .weights import initialise, refuse_weights

__all__ = ["BasicBlock", "Bottleneck", "ResNet", "resnet18", "resnet34", "resnet50"]

Norm = Callable[[int], nn.Module]


def _conv(
    inputs: int, outputs: int, kernel_size: int, stride: int = 1, groups: int = 1, dilation: int = 1
) -> nn.Conv2d:
    padding = dilation if kernel_size == 3 else 0
    return nn.Conv2d(inputs, outputs, kernel_size, stride, padding, dilation, groups, bias=False)


class BasicBlock(nn.Module):
    """Two convolutions of 3 x 3 beside a connection that skips them.

    Raises:
        ValueError: groups or another width. NotImplementedError: a dilation.
    """

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Norm | None = None,
    ) -> None:
        super().__init__()
        self._build(inplanes, planes, stride, groups, base_width, dilation, norm_layer or nn.BatchNorm2d)
        self.downsample = downsample
        self.stride = stride

    def _build(
        self, inplanes: int, planes: int, stride: int, groups: int, base_width: int, dilation: int, norm: Norm
    ) -> None:
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
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

    def _build(
        self, inplanes: int, planes: int, stride: int, groups: int, base_width: int, dilation: int, norm: Norm
    ) -> None:
        width, outputs = int(planes * (base_width / 64.0)) * groups, planes * self.expansion
        self.conv1, self.bn1 = _conv(inplanes, width, 1), norm(width)
        self.conv2, self.bn2 = _conv(width, width, 3, stride, groups, dilation), norm(width)
        self.conv3, self.bn3 = _conv(width, outputs, 1), norm(outputs)
        self.relu = nn.ReLU(inplace=True)

    def _main(self, x: Tensor) -> Tensor:
        return self.bn3(self.conv3(self.relu(super()._main(x))))


class ResNet(nn.Module):
    """A residual network of four layers of blocks.

    Args:
        block: `BasicBlock` or `Bottleneck`. layers: how many blocks each layer has.
        num_classes: how many numbers a picture gives.
        zero_init_residual: whether the last norm of each block starts at 0, so that it passes on its input.
        groups, width_per_group: of the 3 x 3 convolutions of `Bottleneck`.
        replace_stride_with_dilation: for layers 2 to 4 whether they dilate in place of a stride.
        norm_layer: what makes a norm of a number of channels; None for `BatchNorm2d`.

    Raises:
        ValueError: other than three values for `replace_stride_with_dilation`.
    """

    def __init__(
        self,
        block: type[BasicBlock],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] | None = None,
        norm_layer: Norm | None = None,
    ) -> None:
        super().__init__()
        dilate = (False, False, False) if replace_stride_with_dilation is None else replace_stride_with_dilation
        if len(dilate) != 3:
            raise ValueError(f"replace_stride_with_dilation should be None or a 3-element tuple, got {dilate}")
        self._norm_layer: Norm = norm_layer or nn.BatchNorm2d
        self.inplanes = 64
        self.dilation = 1
        self.groups = groups
        self.base_width = width_per_group
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0], 1, False)
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        initialise(self, linear=False)
        for module in self.modules() if zero_init_residual else ():
            if isinstance(module, BasicBlock):
                last: Any = module.bn3 if isinstance(module, Bottleneck) else module.bn2
                nn.init.zeros_(last.weight)

    def _make_layer(self, block: Any, planes: int, blocks: int, stride: int, dilate: bool) -> nn.Sequential:
        before = self.dilation
        if dilate:
            self.dilation, stride = self.dilation * stride, 1
        outputs = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != outputs:
            downsample = nn.Sequential(_conv(self.inplanes, outputs, 1, stride), self._norm_layer(outputs))
        shape = (self.groups, self.base_width)
        made = [block(self.inplanes, planes, stride, downsample, *shape, before, self._norm_layer)]
        self.inplanes = outputs
        rest = (outputs, planes, 1, None, *shape, self.dilation, self._norm_layer)
        made += [block(*rest) for _ in range(1, blocks)]
        return nn.Sequential(*made)

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
    refuse_weights("resnet18", weights)
    return ResNet(BasicBlock, [2, 2, 2, 2], **kwargs)


def resnet34(*, weights: None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-34, with the keywords of `ResNet`; 21,797,672 parameters for 1000 classes. For errors see `resnet18`."""
    refuse_weights("resnet34", weights)
    return ResNet(BasicBlock, [3, 4, 6, 3], **kwargs)


def resnet50(*, weights: None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-50, with the keywords of `ResNet`; 25,557,032 parameters for 1000 classes. For errors see `resnet18`."""
    refuse_weights("resnet50", weights)
    return ResNet(Bottleneck, [3, 4, 6, 3], **kwargs)
