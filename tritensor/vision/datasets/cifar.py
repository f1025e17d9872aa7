"""CIFAR-10 and CIFAR-100, whose files are pickles: they are read without running them."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image

from ...serialization.builder import Builder
from ...serialization.malformed import Malformed
from ...serialization.unpickler import Unpickler
from .files import check_integrity, corrupted, extract_archive, fetch
from .vision import FetchedDataset

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


def _entries(path: str, *keys: str) -> list[Any]:
    """What the dict in a file has for each of the keys; of a key that has a `|` in it, for the first of its parts."""
    try:
        with open(path, "rb") as stream:
            size = os.path.getsize(path)
            entry = _Reader(stream, size, Builder(SimpleNamespace(file_size=size, claim=None)), path).load()
    except Malformed as error:
        raise corrupted(path, error.first, *error.facts) from None
    if type(entry) is not dict:
        raise corrupted(path, f"it holds a {type(entry).__name__}, and files of CIFAR hold a dict")
    found = [next((entry[part] for part in key.split("|") if part in entry), None) for key in keys]
    if any(value is None for value in found):
        raise corrupted(path, f"it lacks one of the entries {', '.join(keys)}")
    return found


def _names(path: str, key: str) -> list[str]:
    (names,) = _entries(path, key)
    if type(names) is not list or any(type(name) is not str for name in names):
        raise corrupted(path, "its names of classes are no list of text")
    return names


def _batch(path: str, classes: int) -> tuple[np.ndarray[Any, Any], list[int]]:
    """Rows of 3 x 32 x 32 bytes, and a class for each."""
    rows, labels = _entries(path, "data", "labels|fine_labels")
    if type(rows) is not np.ndarray or rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != 3 * 32 * 32:
        raise corrupted(path, "its data are no rows of 3072 bytes")
    if type(labels) is not list or any(type(label) is not int or not 0 <= label < classes for label in labels):
        raise corrupted(path, f"its labels are no list of numbers from 0 to {classes - 1}")
    if len(rows) != len(labels):
        raise corrupted(path, f"it has {len(rows)} pictures and {len(labels)} labels")
    return rows, labels


class CIFAR10(FetchedDataset):
    """CIFAR-10: 50,000 + 10,000 colour images of 32 x 32 in 10 classes (https://www.cs.toronto.edu/~kriz/cifar.html).

    For parameters and errors see `MNIST`.

    An example is a PIL picture of mode "RGB" and its class, an int. The files, all of which must have their MD5, are in
    `root/cifar-10-batches-py`. `data` is a NumPy array of uint8 (examples, 32, 32, 3), `targets` a list.
    """

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
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

    def _load(self) -> None:
        self._refuse("Dataset not found or corrupted.", self._wrong_files(), [self.url])
        self.classes = _names(self._path(self.meta["filename"]), self.meta["key"])
        names = [name for name, _ in (self.train_list if self.train else self.test_list)]
        batches = [_batch(self._path(name), len(self.classes)) for name in names]
        self.targets = [label for _, labels in batches for label in labels]
        self.data = np.vstack([rows for rows, _ in batches]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)

    def _path(self, name: str) -> str:
        return os.path.join(self.root, self.base_folder, name)

    def _wrong_files(self) -> list[str]:
        """The files that are missing, or have another checksum than they should."""
        wanted = [*self.train_list, *self.test_list, [self.meta["filename"], self.meta["md5"]]]
        return [self._path(name) for name, md5 in wanted if not check_integrity(self._path(name), md5)]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed(Image.fromarray(self.data[index]), self.targets[index])

    def download(self) -> None:
        """Fetch and unpack the archive, if a file is missing or has another checksum than it should."""
        if self._wrong_files():
            extract_archive(fetch([self.url], self.root, self.tgz_md5), self.root)


class CIFAR100(CIFAR10):
    """CIFAR-100: colour images of 32 x 32 in 100 classes, in the folder `cifar-100-python`; see `CIFAR10`."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = [["train", "16019d7e3df5f24257cddd939b257f8d"]]
    test_list = [["test", "f0ef6b0ae62326f3e7ffdfab6717acfc"]]
    meta = {"filename": "meta", "key": "fine_label_names", "md5": "7973b15100ade9c7d40fb424638fde48"}
