"""The bases of data sets of pictures."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ...errors import DatasetError
from ...utils.data import Dataset
from .files import Path

__all__ = ["VisionDataset"]

Transform = Callable[..., Any]


class VisionDataset(Dataset[Any]):
    """The base of data sets of pictures: a subclass defines `__getitem__` and `__len__`.

    `root` is the folder of the data; `transforms` changes picture and target together or, in its place, `transform`
    changes a picture and `target_transform` its target; a ValueError for both.
    """

    def __init__(
        self,
        root: Path | None = None,
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
        return "\n".join([f"Dataset {type(self).__name__}", *("    " + line for line in body)])

    def extra_repr(self) -> str:
        """Further lines of the representation."""
        return ""


class StandardTransform:
    """A transform for pictures and one for targets, in one function of both."""

    def __init__(self, transform: Transform | None = None, target_transform: Transform | None = None) -> None:
        self.transform = transform
        self.target_transform = target_transform

    def __call__(self, input: object, target: object) -> tuple[Any, Any]:
        """Picture and target, each changed by its transform."""
        input = input if self.transform is None else self.transform(input)
        return input, target if self.target_transform is None else self.target_transform(target)

    def __repr__(self) -> str:
        body = [type(self).__name__]
        for head, transform in (("Transform: ", self.transform), ("Target transform: ", self.target_transform)):
            if transform is not None:
                body.append(head + repr(transform).replace("\n", "\n" + " " * len(head)))
        return "\n".join(body)


class FetchedDataset(VisionDataset):
    """The base of data sets of a part to train with and one to test with, whose files can be fetched."""

    data: Any
    targets: Any
    classes: list[str]
    download: Callable[[], None]
    _load: Callable[[], None]

    def __init__(
        self,
        root: Path,
        train: bool = True,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        self._load()

    def _refuse(self, words: str, wrong: list[str], urls: list[str], note: str = "") -> None:
        """Raise if files are missing or have another checksum: which they are, and where they come from."""
        facts = [f"{'corrupted' if os.path.exists(path) else 'missing'}: {path}{note}" for path in wrong]
        if wrong:
            facts += [f"download=True would fetch {url}" for url in urls]
            raise DatasetError(f"{words} You can use download=True to download it", *facts)

    def __len__(self) -> int:
        return len(self.data)

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The numbers of the classes."""
        return {name: number for number, name in enumerate(self.classes)}

    def extra_repr(self) -> str:
        """The part of the data that it is."""
        return f"Split: {'Train' if self.train is True else 'Test'}"
