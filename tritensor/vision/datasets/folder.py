"""Data sets of files in folders, a folder for each class, and one of noise."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from PIL import Image

from ...errors import require
from ...random import Generator, randint, randn
from ..transforms.conversion import open_picture
from ..transforms.functional import to_pil_image
from .files import Path
from .vision import Transform, VisionDataset

__all__ = ["DatasetFolder", "FakeData", "ImageFolder"]

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

IsValid = Callable[[str], bool]


def default_loader(path: Path) -> Image.Image:
    """The picture in a file, in mode "RGB"; an OSError that names it if it is truncated or no picture."""
    with open(path, "rb") as stream:
        return open_picture(stream, os.fspath(path), "RGB")


class DatasetFolder(VisionDataset):
    """Files in folders, a folder for each class: `root/dog/one.ext`, `root/dog/more/two.ext`, `root/cat/three.ext`.

    Args:
        root: the folder of the classes' folders.
        loader: what makes an example of a path.
        extensions: how names of files end that are examples (in lower case); or is_valid_file: which paths are.
        transform, target_transform: what changes an example, and the number of its class.
        allow_empty: whether a class may have no files.

    Attributes:
        classes, class_to_idx: the names of the classes, sorted, and their numbers.
        samples, targets: (path, number of the class) of each example, and the number alone.

    Raises:
        FileNotFoundError: no class, or one without files. ValueError: not exactly one of `extensions` and
            `is_valid_file`.
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

    def find_classes(self, directory: Path) -> tuple[list[str], dict[str, int]]:
        """The names of the folders in a folder, sorted, and their numbers; a subclass may name classes otherwise."""
        with os.scandir(directory) as entries:
            classes = sorted(entry.name for entry in entries if entry.is_dir())
        require(classes, FileNotFoundError, "Couldn't find any class folder in {}.", directory)
        return classes, {name: number for number, name in enumerate(classes)}

    @staticmethod
    def make_dataset(
        directory: Path,
        class_to_idx: dict[str, int],
        extensions: tuple[str, ...] | None = None,
        is_valid_file: IsValid | None = None,
        allow_empty: bool = False,
    ) -> list[tuple[str, int]]:
        """The files below the folder of each class, sorted, with the class's number; a subclass may find others."""
        require(class_to_idx is not None, ValueError, "The class_to_idx parameter cannot be None.")
        if (extensions is None) == (is_valid_file is None):
            raise ValueError("Both extensions and is_valid_file cannot be None or not None at the same time")
        is_valid = is_valid_file or (lambda path: path.lower().endswith(tuple(extensions or ())))
        found = [
            (path, class_to_idx[name])
            for name in sorted(class_to_idx)
            for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True))
            for path in (os.path.join(folder, file) for file in sorted(files))
            if is_valid(path)
        ]
        empty = sorted(set(class_to_idx.values()) - {number for _, number in found})
        if empty and not allow_empty:
            names = ", ".join(sorted(name for name in class_to_idx if class_to_idx[name] in empty))
            known = f"Supported extensions are: {', '.join(extensions)}" if extensions else ""
            raise FileNotFoundError(f"Found no valid file for the classes {names}. {known}")
        return found

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Pictures in folders, a folder for each class: `root/dog/one.png`, `root/cat/two.jpg`; see `DatasetFolder`.

    An example is a PIL picture of mode "RGB" and the number of its class; an OSError names a file that is truncated or
    no picture. `is_valid_file` says which paths are read; None for those that end with one of `IMG_EXTENSIONS`. `imgs`
    are the `samples`.
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


class FakeData(VisionDataset):
    """Pictures of noise with random classes, the same for an index each time.

    Args:
        size, num_classes: how many pictures and classes there are. image_size: (channels, height, width).
        transform, target_transform: what changes a PIL picture, and its class, an int64 tensor of no dimension.
        random_offset: what is added to an index before it seeds the noise.

    >>> FakeData(3, (3, 8, 8))[0][0].size
    (8, 8)
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.size, self.image_size = size, image_size
        self.num_classes, self.random_offset = num_classes, random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        require(index < len(self), IndexError, "{} index out of range", type(self).__name__)
        generator = Generator().manual_seed(index + self.random_offset)  # the default one is left as it is
        noise = randn(*self.image_size, generator=generator)
        target = randint(0, self.num_classes, (1,), generator=generator)[0]
        picture, target = self._transformed(to_pil_image(noise), target)
        return picture, target.item()

    def __len__(self) -> int:
        return self.size
