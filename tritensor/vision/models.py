"""Image models with torchvision's structure and names of parameters, so that its checkpoints load.

model = resnet18()
model.load_state_dict(tritensor.load("resnet18-f37072fd.pth"))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import nn
from ..errors import explain
from ..functional.views.joining import cat
from ..tensors import Tensor
from ..utils.checkpoint import checkpoint

__all__ = ["VGG", "AlexNet", "DenseNet", "MobileNetV2", "ResNet", "alexnet", "densenet121", "mobilenet_v2", "resnet18"]
__all__ += ["resnet34", "resnet50", "vgg11", "vgg16"]

Made = TypeVar("Made")
Norm = Callable[[int], nn.Module]

# Of each convolution: channels and, if it is not of 3 x 3, size, stride and padding; 0 is a pool.
ALEXNET = ((64, 11, 4, 2), 0, (192, 5, 1, 2), 0, 384, 256, 256, 0)
VGG11 = (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0)
VGG16 = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)
# Of each group of blocks: expansion, channels, number, stride of the first.
SETTING = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def _made(name: str, weights: str | None, kind: Callable[..., Made], *args: Any, **kwargs: Any) -> Made:
    """`kind(*args, **kwargs)`, unless weights are asked for: there are none here to give."""
    if weights is not None:
        fact = f"weights={weights!r} would have to be fetched, and tritensor has no weights to fetch"
        remedy = f'model = {name}(); model.load_state_dict(tritensor.load("checkpoint.pth")) takes one of torchvision'
        raise ValueError(explain(f"{name} has no pretrained weights", fact, remedy=remedy))
    return kind(*args, **kwargs)


def _initialise(model: nn.Module, linear: bool = True) -> None:
    """Convolutions from normal numbers by their fan-out (He et al., https://arxiv.org/abs/1502.01852), norms to 1 and 0
    and, if `linear`, linear layers from normal numbers of deviation 0.01."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)) and module.weight is not None:
            nn.init.ones_(module.weight)
        elif isinstance(module, nn.Linear) and linear:
            nn.init.normal_(module.weight, 0, 0.01)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)


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
    """ResNet, by He et al., Deep residual learning, https://arxiv.org/abs/1512.03385: four layers of blocks.

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
        _initialise(self, linear=False)
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
    return _made("resnet18", weights, ResNet, BasicBlock, [2, 2, 2, 2], **kwargs)


def resnet34(*, weights: None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-34, with the keywords of `ResNet`; 21,797,672 parameters for 1000 classes. For errors see `resnet18`."""
    return _made("resnet34", weights, ResNet, BasicBlock, [3, 4, 6, 3], **kwargs)


def resnet50(*, weights: None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-50, with the keywords of `ResNet`; 25,557,032 parameters for 1000 classes. For errors see `resnet18`."""
    return _made("resnet50", weights, ResNet, Bottleneck, [3, 4, 6, 3], **kwargs)


def _features(layers: Sequence[Any], pool: int, norm: Norm | None = None) -> nn.Sequential:
    made: list[nn.Module] = []
    inputs = 3
    for layer in layers:
        if layer in (0, "M"):
            made.append(nn.MaxPool2d(pool, 2))
        else:
            outputs, *shape = layer if isinstance(layer, tuple) else (layer, 3, 1, 1)
            made += [nn.Conv2d(inputs, outputs, *shape), *([norm(outputs)] if norm else []), nn.ReLU(inplace=True)]
            inputs = outputs
    return nn.Sequential(*made)


def make_layers(cfg: Sequence[int | str], batch_norm: bool = False) -> nn.Sequential:
    """The convolutions of a `VGG`.

    Args:
        cfg: the channels of each convolution; "M" is a pool.
        batch_norm: whether a norm follows each convolution.
    """
    return _features(cfg, 2, nn.BatchNorm2d if batch_norm else None)


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
    """AlexNet, by Krizhevsky, One weird trick, https://arxiv.org/abs/1404.5997.

    Five convolutions, a pool to 6 x 6, and three linear layers with dropout of probability `dropout`."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__(_features(ALEXNET, 3), 256, 6, num_classes, dropout, (0, 3))


class VGG(_Plain):
    """VGG, by Simonyan and Zisserman, https://arxiv.org/abs/1409.1556.

    Convolutions `features`, a pool to 7 x 7, and three linear layers with dropout of probability `dropout`.

    With `init_weights` parameters start as in torchvision, otherwise as those of the layers do.
    """

    def __init__(
        self, features: nn.Module, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5
    ) -> None:
        super().__init__(features, 512, 7, num_classes, dropout, (2, 5))
        if init_weights:
            _initialise(self)


def alexnet(*, weights: None = None, progress: bool = True, **kwargs: Any) -> AlexNet:
    """AlexNet, with the keywords of `AlexNet`; 61,100,840 parameters for 1000 classes. For errors see `resnet18`."""
    return _made("alexnet", weights, AlexNet, **kwargs)


def vgg11(*, weights: None = None, progress: bool = True, **kwargs: Any) -> VGG:
    """VGG-11, with the keywords of `VGG`; 132,863,336 parameters for 1000 classes. For errors see `resnet18`."""
    return _made("vgg11", weights, VGG, _features(VGG11, 2), **kwargs)


def vgg16(*, weights: None = None, progress: bool = True, **kwargs: Any) -> VGG:
    """VGG-16, with the keywords of `VGG`; 138,357,544 parameters for 1000 classes. For errors see `resnet18`."""
    return _made("vgg16", weights, VGG, _features(VGG16, 2), **kwargs)


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
    """MobileNetV2, by Sandler et al., Inverted residuals and linear bottlenecks, https://arxiv.org/abs/1801.04381.

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
        _initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """(pictures, classes) of pictures (pictures, 3, height, width)."""
        return self.classifier(self.features(x).mean((2, 3)))


def mobilenet_v2(*, weights: None = None, progress: bool = True, **kwargs: Any) -> MobileNetV2:
    """MobileNetV2, with the keywords of `MobileNetV2`; for errors see `resnet18`.

    >>> sum(parameter.numel() for parameter in mobilenet_v2().parameters())
    3504872
    """
    return _made("mobilenet_v2", weights, MobileNetV2, **kwargs)


class _DenseLayer(nn.Sequential):
    def __init__(self, inputs: int, growth: int, bottleneck: int, drop_rate: float, memory_efficient: bool) -> None:
        super().__init__()
        self.norm1, self.relu1 = nn.BatchNorm2d(inputs), nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(inputs, bottleneck, 1, bias=False)
        self.norm2, self.relu2 = nn.BatchNorm2d(bottleneck), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bottleneck, growth, 3, padding=1, bias=False)
        self.drop_rate, self.memory_efficient = drop_rate, memory_efficient

    def _narrowed(self, *features: Tensor) -> Tensor:
        return self.conv1(self.relu1(self.norm1(cat(features, 1))))

    def forward(self, features: Sequence[Tensor]) -> Tensor:
        """The channels that the layer adds to all before it."""
        if self.memory_efficient and any(feature.requires_grad for feature in features):
            narrow = checkpoint(self._narrowed, *features, use_reentrant=False)
        else:
            narrow = self._narrowed(*features)
        new = self.conv2(self.relu2(self.norm2(narrow)))
        return nn.functional.dropout(new, self.drop_rate, self.training) if self.drop_rate else new


class _Transition(nn.Sequential):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm, self.relu = nn.BatchNorm2d(inputs), nn.ReLU(inplace=True)
        self.conv, self.pool = _conv(inputs, outputs, 1), nn.AvgPool2d(2, 2)


class _DenseBlock(nn.ModuleDict):
    def forward(self, x: Tensor) -> Tensor:
        """The input and what each layer adds."""
        features = [x]
        for layer in self.values():
            features.append(layer(features))
        return cat(features, 1)


class DenseNet(nn.Module):
    """DenseNet, by Huang et al., Densely connected convolutional networks, https://arxiv.org/abs/1608.06993.

    Each layer of a block takes the features of all layers before it.

    Args:
        growth_rate: the channels that a layer adds. block_config: how many layers each block has.
        num_init_features: channels of the first convolution.
        bn_size: the channels between the two convolutions of a layer, in multiples of `growth_rate`.
        drop_rate: the probability of dropout after each layer.
        num_classes: how many numbers a picture gives.
        memory_efficient: whether the joined features are computed again in backward instead of kept.
    """

    def __init__(
        self,
        growth_rate: int = 32,
        block_config: Sequence[int] = (6, 12, 24, 16),
        num_init_features: int = 64,
        bn_size: int = 4,
        drop_rate: float = 0,
        num_classes: int = 1000,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        channels = num_init_features
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False))
        self.features.add_module("norm0", nn.BatchNorm2d(channels))
        self.features.add_module("relu0", nn.ReLU(inplace=True))
        self.features.add_module("pool0", nn.MaxPool2d(3, 2, 1))
        options = growth_rate, bn_size * growth_rate, drop_rate, memory_efficient
        for number, count in enumerate(block_config, 1):
            block = _DenseBlock()
            for layer in range(count):
                block[f"denselayer{layer + 1}"] = _DenseLayer(channels + layer * growth_rate, *options)
            self.features.add_module(f"denseblock{number}", block)
            channels += count * growth_rate
            if number < len(block_config):
                self.features.add_module(f"transition{number}", _Transition(channels, channels // 2))
                channels //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(pictures, classes) of pictures (pictures, 3, height, width)."""
        return self.classifier(nn.functional.adaptive_avg_pool2d(self.features(x).relu(), (1, 1)).flatten(1))


def densenet121(*, weights: None = None, progress: bool = True, **kwargs: Any) -> DenseNet:
    """DenseNet-121, with the keywords of `DenseNet`; 7,978,856 parameters. For errors see `resnet18`."""
    return _made("densenet121", weights, DenseNet, **kwargs)
