"""CIFAR-10 and CIFAR-100, whose files are pickles: they are read without running them."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image

from ...errors import DatasetError, explain
from ...serialization.builder import Builder
from ...serialization.malformed import Malformed
from ...serialization.unpickler import Unpickler
from .archives import extract_archive
from .download import check_integrity, download_url
from .vision import Transform, VisionDataset, not_found

__all__ = ["CIFAR10", "CIFAR100"]

# The names that arrays have in a pickle; Python 3 writes bytes by the last in a pickle for Python 2.
NAMES = {f"numpy.{place}.multiarray._reconstruct" for place in ("core", "_core")}
NAMES |= {"numpy.ndarray", "numpy.dtype", "_codecs.encode"}


class _Reader(Unpickler):
    """Reads numbers, text, lists, dicts and arrays, which is what files of CIFAR hold, and refuses every other name."""

    encoding = "latin1"  # Python 2 wrote the files

    def _push_global(self, module: str, name: str) -> None:
        if f"{module}.{name}" not in NAMES:
            raise Malformed(f"it names {ascii(f'{module}.{name}')[:80]}, and files of CIFAR name arrays only")
        super()._push_global(module, name)


def _read(path: str, keys: tuple[str, ...]) -> list[Any]:
    """The values of `keys` in the dict of a file; of a key that has a `|` in it, of the first of its parts."""
    size = os.path.getsize(path)
    try:
        with open(path, "rb") as stream:
            reader = _Reader(stream, size, Builder(SimpleNamespace(file_size=size, claim=None)), path)
            entry = reader.load()
        if type(entry) is not dict:
            raise Malformed(f"it holds a {type(entry).__name__}, and files of CIFAR hold a dict")
        found = [next((entry[part] for part in key.split("|") if part in entry), None) for key in keys]
        if None in [type(value) if value is not None else None for value in found]:
            raise Malformed(f"it lacks one of the entries {', '.join(keys)}")
    except Malformed as error:
        raise _damaged(path, error.first, *error.facts) from None
    return found


def _damaged(path: str, *facts: str) -> DatasetError:
    remedy = "delete it, and fetch it again with download=True"
    return DatasetError(explain(f"File not found or corrupted: {path}", *facts, remedy=remedy))


class CIFAR10(VisionDataset):
    """Colour pictures of 32 x 32 in 10 classes (https://www.cs.toronto.edu/~kriz/cifar.html): 50,000 to train with,
    10,000 to test with.

    An example is a PIL picture of mode "RGB" and its class, an int.

    Args:
        root: the folder that holds the folder `cifar-10-batches-py`.
        train: whether the examples are those to train with.
        transform: what changes a picture, such as `transforms.ToTensor()`.
        target_transform: what changes a class.
        download: whether the archive is fetched and unpacked if files are missing or have another MD5 than they should.

    Attributes:
        data: the pictures, a NumPy array of uint8 of shape (examples, 32, 32, 3).
        targets: the classes, a list of ints.
        classes, class_to_idx: the names of the classes, and their numbers.

    Raises:
        DatasetError: files are missing or damaged; the message names them.
    """

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list = [
        ["data_batch_1", "c99cafc152244af753f735de768cd75f"],
        ["data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"],
        ["data_batch_3", "54ebc095f3ab1f0389bbae665268c751"],
        ["data_batch_4", "634d18415352ddfa80567beed471001a"],
        ["data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"],
    ]
    test_list = [["test_batch", "40351d587109b95175f43aff81a1287e"]]
    meta = {"filename": "batches.meta", "key": "label_names", "md5": "5ff9c542aee3614f3951f8cda6e48888"}

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        if wrong := self._wrong_files():
            raise not_found("Dataset not found or corrupted.", wrong, [self.url])
        (self.classes,) = _read(self._path(self.meta["filename"]), (self.meta["key"],))
        if type(self.classes) is not list or any(type(name) is not str for name in self.classes):
            raise _damaged(self._path(self.meta["filename"]), "its names of classes are no list of text")
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        pictures: list[np.ndarray[Any, Any]] = []
        self.targets: list[int] = []
        for name, _ in self.train_list if train else self.test_list:
            path = self._path(name)
            rows, labels = _read(path, ("data", "labels|fine_labels"))
            _check(path, rows, labels, len(self.classes))
            pictures.append(rows)
            self.targets.extend(labels)
        self.data = np.vstack(pictures).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)

    def _path(self, name: str) -> str:
        return os.path.join(self.root, self.base_folder, name)

    def _wrong_files(self) -> list[str]:
        """The files that are missing, or have another checksum than they should."""
        wanted = [*self.train_list, *self.test_list, [self.meta["filename"], self.meta["md5"]]]
        return [self._path(name) for name, md5 in wanted if not check_integrity(self._path(name), md5)]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed(Image.fromarray(self.data[index]), self.targets[index])

    def __len__(self) -> int:
        return len(self.data)

    def download(self) -> None:
        """Fetch and unpack the archive, if a file is missing or has another checksum than it should.

        Raises:
            DatasetError: what came is another file. OSError: nothing came.
        """
        if self._wrong_files():
            download_url(self.url, self.root, self.filename, self.tgz_md5)
            extract_archive(os.path.join(self.root, self.filename), self.root)

    def extra_repr(self) -> str:
        """Which part of the data it is."""
        return f"Split: {'Train' if self.train is True else 'Test'}"


def _check(path: str, rows: Any, labels: Any, classes: int) -> None:
    """Raise unless a file has rows of 3 x 32 x 32 bytes and a class for each."""
    if type(rows) is not np.ndarray or rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != 3 * 32 * 32:
        raise _damaged(path, "its data are no rows of 3072 bytes")
    if type(labels) is not list or any(type(label) is not int or not 0 <= label < classes for label in labels):
        raise _damaged(path, f"its labels are no list of numbers from 0 to {classes - 1}")
    if len(rows) != len(labels):
        raise _damaged(path, f"it has {len(rows)} pictures and {len(labels)} labels")


class CIFAR100(CIFAR10):
    """Colour pictures of 32 x 32 in 100 classes, in the folder `cifar-100-python`; see `CIFAR10`."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = [["train", "16019d7e3df5f24257cddd939b257f8d"]]
    test_list = [["test", "f0ef6b0ae62326f3e7ffdfab6717acfc"]]
    meta = {"filename": "meta", "key": "fine_label_names", "md5": "7973b15100ade9c7d40fb424638fde48"}
