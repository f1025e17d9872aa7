"""Data sets of files in folders, a folder for each class."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from PIL import Image

from ..pictures import open_picture
from .vision import Transform, VisionDataset

__all__ = ["IMG_EXTENSIONS", "DatasetFolder", "ImageFolder", "default_loader", "find_classes", "make_dataset"]

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

Path = str | os.PathLike[str]
IsValid = Callable[[str], bool]


def default_loader(path: Path) -> Image.Image:
    """The picture in a file, in mode "RGB".

    Raises:
        OSError: the file is no picture (`PIL.UnidentifiedImageError`) or is truncated; the message names it.
    """
    with open(path, "rb") as stream:
        return open_picture(stream, os.fspath(path), "RGB")


def find_classes(directory: Path) -> tuple[list[str], dict[str, int]]:
    """The names of the folders in a folder, sorted, and their numbers.

    Raises:
        FileNotFoundError: there is none.
    """
    with os.scandir(directory) as entries:
        classes = sorted(entry.name for entry in entries if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: number for number, name in enumerate(classes)}


def make_dataset(
    directory: Path,
    class_to_idx: dict[str, int] | None = None,
    extensions: str | tuple[str, ...] | None = None,
    is_valid_file: IsValid | None = None,
    allow_empty: bool = False,
) -> list[tuple[str, int]]:
    """The files below the folder of each class, sorted, with the number of the class; see `DatasetFolder`.

    Raises:
        FileNotFoundError: a class without files, unless `allow_empty`. ValueError: no class; not exactly one of
            `extensions` and `is_valid_file`.
    """
    directory = os.path.expanduser(directory)
    if class_to_idx is None:
        _, class_to_idx = find_classes(directory)
    elif not class_to_idx:
        raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
    if (extensions is None) == (is_valid_file is None):
        raise ValueError("Both extensions and is_valid_file cannot be None or not None at the same time")
    endings = (extensions,) if isinstance(extensions, str) else tuple(extensions or ())
    is_valid = is_valid_file or (lambda path: path.lower().endswith(endings))
    found, empty = [], []
    for name in sorted(class_to_idx):
        files = [
            os.path.join(folder, file)
            for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True))
            for file in sorted(files)
        ]
        valid = [(path, class_to_idx[name]) for path in files if is_valid(path)]
        found += valid
        if not valid:
            empty.append(name)
    if empty and not allow_empty:
        words = f"Found no valid file for the classes {', '.join(empty)}. "
        raise FileNotFoundError(words + (f"Supported extensions are: {', '.join(endings)}" if extensions else ""))
    return found


class DatasetFolder(VisionDataset):
    """Files in folders, a folder for each class: `root/dog/one.ext`, `root/dog/more/two.ext`, `root/cat/three.ext`.

    Args:
        root: the folder of the classes' folders.
        loader: what makes an example of a path.
        extensions: how names of files end that are examples (in lower case), or
        is_valid_file: which paths are.
        transform, target_transform: what changes an example, and the number of its class.
        allow_empty: whether a class may have no files.

    Attributes:
        classes, class_to_idx: the names of the classes, sorted, and their numbers.
        samples: (path, number of the class) of each example.
        targets: the number of the class of each example.

    Raises:
        FileNotFoundError: no class, or one without files. ValueError: see `make_dataset`.
    """

    def __init__(
        self,
        root: Path,
        loader: Callable[[str], Any],
        extensions: tuple[str, ...] | None = None,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        is_valid_file: IsValid | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = self.make_dataset(self.root, self.class_to_idx, extensions, is_valid_file, allow_empty)
        self.loader = loader
        self.extensions = extensions
        self.targets = [number for _, number in self.samples]

    @staticmethod
    def make_dataset(
        directory: Path,
        class_to_idx: dict[str, int],
        extensions: tuple[str, ...] | None = None,
        is_valid_file: IsValid | None = None,
        allow_empty: bool = False,
    ) -> list[tuple[str, int]]:
        """`make_dataset`; a subclass may find its examples in another way."""
        if class_to_idx is None:
            raise ValueError("The class_to_idx parameter cannot be None.")
        return make_dataset(directory, class_to_idx, extensions, is_valid_file, allow_empty)

    def find_classes(self, directory: Path) -> tuple[list[str], dict[str, int]]:
        """`find_classes`; a subclass may name its classes in another way."""
        return find_classes(directory)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Pictures in folders, a folder for each class: `root/dog/one.png`, `root/cat/two.jpg`.

    An example is a PIL picture of mode "RGB" and the number of its class.

    Args:
        root: the folder of the classes' folders.
        transform, target_transform: what changes a picture, and the number of its class.
        loader: what reads a picture.
        is_valid_file: which paths are read; None for those that end with one of `IMG_EXTENSIONS`.
        allow_empty: whether a class may have no pictures.

    Attributes:
        imgs: (path, number of the class) of each picture; the others are those of `DatasetFolder`.

    Raises:
        FileNotFoundError: no class, or one without pictures. OSError: of an example whose file is truncated or no
            picture; it names the file.
    """

    def __init__(
        self,
        root: Path,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: IsValid | None = None,
        allow_empty: bool = False,
    ) -> None:
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(root, loader, extensions, transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples
