"""What the rows of pictures need: convolutions and maxima of windows in float64 NumPy, and a step of a ResNet-18."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

import numpy as np

from benchmarks.training import Arrays

__all__ = [
    "channels_last",
    "exact_batch_norm",
    "exact_convolution",
    "exact_convolution_input",
    "exact_convolution_weight",
    "exact_maxima",
    "exact_resnet",
    "resnet",
    "resnet18",
]


def channels_last(torch: Any, tensors: Mapping[str, Any]) -> dict[str, object]:
    """The inputs that are pictures or kernels, with their channels innermost."""
    return {name: tensor.to(memory_format=torch.channels_last) for name, tensor in tensors.items() if tensor.ndim == 4}


def _taps(x: np.ndarray, size: tuple[int, int], stride: int, padding: int, fill: float) -> Iterator[np.ndarray]:
    """For each element of a window the elements that it meets, (images, channels, rows, columns)."""
    around = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    x = np.pad(x.astype(np.float64), around, constant_values=fill)
    rows, columns = ((total - part) // stride + 1 for total, part in zip(x.shape[2:], size, strict=True))
    for row, column in product(*map(range, size)):
        yield x[:, :, row : row + stride * rows : stride, column : column + stride * columns : stride]


def exact_convolution(stride: int = 1, padding: int = 0, groups: int = 1) -> Callable[[Arrays], np.ndarray]:
    """The correlation of `x` with `w`, and the bias `b` if there is one."""

    def exact(arrays: Arrays) -> np.ndarray:
        x, w = arrays["x"], arrays["w"].astype(np.float64)
        images, rows = len(x), w.shape[0] // groups
        w = w.reshape(groups, rows, w.shape[1], -1)
        total: Any = 0
        for number, met in enumerate(_taps(x, arrays["w"].shape[2:], stride, padding, 0.0)):
            columns = met.reshape(images, groups, w.shape[2], prod(met.shape[2:]))
            total = total + (w[..., number] @ columns).reshape(images, -1, *met.shape[2:])
        return total + arrays["b"][:, None, None] if "b" in arrays else total

    return exact


def exact_convolution_input(arrays: Arrays) -> np.ndarray:
    """The gradient of the input of a correlation of 3 x 3 with one element of padding, of that of its result, `y`."""
    return exact_convolution(padding=1)({"x": arrays["y"], "w": arrays["w"][:, :, ::-1, ::-1].swapaxes(0, 1)})


def exact_convolution_weight(arrays: Arrays) -> np.ndarray:
    """The gradient of its weights."""
    x, y = arrays["x"], arrays["y"].astype(np.float64).transpose(1, 0, 2, 3).reshape(arrays["y"].shape[1], -1)
    taps = [y @ met.transpose(0, 2, 3, 1).reshape(-1, x.shape[1]) for met in _taps(x, (3, 3), 1, 1, 0.0)]
    return np.stack(taps, -1).reshape(len(y), x.shape[1], 3, 3)


def exact_maxima(arrays: Arrays) -> np.ndarray:
    """The largest elements of windows of 3 x 3, two apart, with one element of padding."""
    return np.maximum.reduce(list(_taps(arrays["x"], (3, 3), 2, 1, -np.inf)))


def exact_batch_norm(arrays: Arrays) -> np.ndarray:
    """Each channel normalised over the batch, times `w`, plus `b`."""
    x, w, b = (arrays[name].astype(np.float64) for name in "xwb")
    mean, variance = (each(x, axis=(0, 2, 3), keepdims=True) for each in (np.mean, np.var))
    return (x - mean) / np.sqrt(variance + 1e-5) * w[:, None, None] + b[:, None, None]


def resnet18(torch: Any, classes: int) -> Any:
    """torchvision's ResNet-18 in the vocabulary that tritensor and torch share."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.downsample = None
            if stride != 1:
                self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, 2, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x: Any) -> Any:
            out = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
            return functional.relu(out + (x if self.downsample is None else self.downsample(x)))

    class ResNet(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(64)
            widths = [64, 64, 128, 256, 512]
            for number in range(1, 5):
                first = Block(widths[number - 1], widths[number], 1 if number == 1 else 2)
                setattr(self, f"layer{number}", nn.Sequential(first, Block(widths[number], widths[number], 1)))
            self.fc = nn.Linear(512, classes)

        def forward(self, x: Any) -> Any:
            x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 3, 2, 1)
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(x.mean((2, 3)))

    return ResNet()


def resnet(torch: Any, tensors: Mapping[str, Any]) -> dict[str, object]:
    """`step()` is a training step of a ResNet-18, and `scores()` what it makes of the pictures.

    Gradients are left to the tests: where rounding takes an element of 1e-7 to the other side of a ReLU, a gradient
    changes by 3e-3, in PyTorch as well.
    """
    x = tensors["x"]
    model = resnet18(torch, 10)
    rng = np.random.default_rng(0)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            scale = (2 / prod(parameter.shape[1:])) ** 0.5
            drawn = torch.from_numpy(rng.standard_normal(parameter.shape, dtype=np.float32) * np.float32(scale))
            parameter.data.copy_(drawn)
    model.fc.bias.data.zero_()
    model.to(x.device, x.dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
    labels = torch.arange(len(x), device=x.device) % 10

    def scores() -> Any:
        return model(x)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(scores(), labels).backward()
        optimizer.step()

    return {"step": step, "scores": scores}


def exact_resnet(arrays: Arrays) -> np.ndarray:
    """The scores in float64, by tritensor: the tests compare its ResNet with PyTorch's."""
    import tritensor

    found: Any = resnet(tritensor, {"x": tritensor.from_numpy(arrays["x"].astype(np.float64))})["scores"]
    return np.asarray(found().detach().numpy())
