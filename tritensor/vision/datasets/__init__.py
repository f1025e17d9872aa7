"""Data sets of pictures, in torchvision's folders and with its parameters."""

from __future__ import annotations

from .cifar import CIFAR10, CIFAR100
from .folder import DatasetFolder, FakeData, ImageFolder
from .mnist import EMNIST, KMNIST, MNIST, QMNIST, FashionMNIST
from .vision import VisionDataset

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "EMNIST",
    "KMNIST",
    "MNIST",
    "QMNIST",
    "DatasetFolder",
    "FakeData",
    "FashionMNIST",
    "ImageFolder",
    "VisionDataset",
]
