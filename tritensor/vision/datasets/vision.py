"""The base of data sets of pictures."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ...errors import DatasetError, explain
from ...utils.data import Dataset

__all__ = ["StandardTransform", "VisionDataset", "choice", "not_found"]

Transform = Callable[..., Any]


class VisionDataset(Dataset[Any]):
    """The base of data sets of pictures: a subclass defines `__getitem__` and `__len__`.

    Args:
        root: the folder of the data.
        transforms: changes picture and target together; or pass, in its place,
        transform: what changes a picture, and
        target_transform: what changes its target.

    Raises:
        ValueError: `transforms` and one of the others.
    """

    _repr_indent = 4

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        transforms: Transform | None = None,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
    ) -> None:
        self.root: Any = os.path.expanduser(root) if isinstance(root, str) else root
        separate = transform is not None or target_transform is not None
        if transforms is not None and separate:
            raise ValueError("Only transforms or transform/target_transform can be passed as argument")
        self.transform = transform
        self.target_transform = target_transform
        self.transforms = StandardTransform(transform, target_transform) if separate else transforms

    def _transformed(self, picture: Any, target: Any) -> tuple[Any, Any]:
        """Picture and target, each changed by its transform."""
        return StandardTransform(self.transform, self.target_transform)(picture, target)

    def __len__(self) -> int:
        raise NotImplementedError

    def __repr__(self) -> str:
        body = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            body.append(f"Root location: {self.root}")
        body += self.extra_repr().splitlines()
        if self.transforms is not None:
            body.append(repr(self.transforms))
        return "\n".join([f"Dataset {type(self).__name__}", *(" " * self._repr_indent + line for line in body)])

    def extra_repr(self) -> str:
        """Further lines of the representation."""
        return ""


class StandardTransform:
    """A transform for pictures and one for targets, in one function of both."""

    def __init__(self, transform: Transform | None = None, target_transform: Transform | None = None) -> None:
        self.transform = transform
        self.target_transform = target_transform

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        """Picture and target, each changed by its transform."""
        if self.transform is not None:
            input = self.transform(input)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return input, target

    def __repr__(self) -> str:
        body = [type(self).__name__]
        for head, transform in (("Transform: ", self.transform), ("Target transform: ", self.target_transform)):
            if transform is not None:
                body.append(head + repr(transform).replace("\n", "\n" + " " * len(head)))
        return "\n".join(body)


def choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """An argument that is one of some words.

    Raises:
        ValueError: it is not, as in torchvision.
    """
    if not isinstance(value, str):
        raise ValueError(f"Expected type str for argument {name}, but got type {type(value)}.")
    if value not in choices:
        valid = "', '".join(choices)
        raise ValueError(f"Unknown value '{value}' for argument {name}. Valid values are {{'{valid}'}}.")
    return value


def not_found(words: str, wrong: list[str], urls: list[str], note: str = "") -> DatasetError:
    """The error for a data set that is not there: the files that are missing or wrong, and where they come from."""
    facts = [*(f"missing: {path}" if not os.path.exists(path) else f"corrupted: {path}" for path in wrong)]
    facts += [f"download=True would fetch {url}" for url in urls]
    return DatasetError(explain(f"{words} You can use download=True to download it", *facts, note))
