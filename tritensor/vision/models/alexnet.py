"""AlexNet: Krizhevsky, One weird trick, https://arxiv.org/abs/1404.5997."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...tensor import Tensor
from .weights import refuse_weights

__all__ = ["AlexNet", "alexnet"]


class AlexNet(nn.Module):
    """Five convolutions, a pool to 6 x 6, and three linear layers with dropout.

    Args:
        num_classes: how many numbers a picture gives.
        dropout: the probability.
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, kernel_size=11, stride=4, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(64, 192, kernel_size=5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(192, 384, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
        )
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout),
            nn.Linear(256 * 6 * 6, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(pictures, classes) of pictures (pictures, 3, height, width), of 63 x 63 or more."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))  # type: ignore[no-any-return]


def alexnet(*, weights: None = None, progress: bool = True, **kwargs: Any) -> AlexNet:
    """AlexNet, with the keywords of `AlexNet`; 61,100,840 parameters for 1000 classes.

    Raises:
        ValueError: weights, of which there are none; see `tritensor.vision.models`.
    """
    refuse_weights("alexnet", weights)
    return AlexNet(**kwargs)
