"""MNIST and the data sets in its format."""

from __future__ import annotations

import os
import string
from typing import Any

import numpy as np

from ...errors import DatasetError, explain
from ...functional.creation import from_numpy
from ...tensor import Tensor
from ..pictures import from_array
from .archives import extract_archive
from .download import download_from_mirrors, download_url
from .idx import find_idx, read_idx
from .vision import Transform, VisionDataset, choice, not_found

__all__ = ["EMNIST", "KMNIST", "MNIST", "QMNIST", "FashionMNIST"]

DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


class MNIST(VisionDataset):
    """Handwritten digits of 28 x 28 (http://yann.lecun.com/exdb/mnist/): 60,000 to train with, 10,000 to test with.

    An example is a PIL picture of mode "L" and its class, an int. The files are IDX files in `root/MNIST/raw`,
    compressed (.gz) or not.

    Args:
        root: the folder that holds the folder `MNIST`.
        train: whether the examples are those to train with.
        transform: what changes a picture, such as `transforms.ToTensor()`.
        target_transform: what changes a class.
        download: whether files that are missing are fetched, checked by their MD5, and unpacked.

    Attributes:
        data: the pictures, uint8 of shape (examples, 28, 28).
        targets: the classes, int64 of shape (examples,).
        classes, class_to_idx: the names of the classes, and their numbers.

    Raises:
        DatasetError: files are missing or damaged; the message names them.
    """

    mirrors = ["https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/"]
    resources: Any = [
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ]
    classes = [f"{number} - {name}" for number, name in enumerate(DIGITS)]

    data: Tensor
    targets: Tensor
    _label_dtype: Any = np.uint8
    _label_dims = 1

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
        self.data, self.targets = self._load_data()

    def _names(self) -> tuple[str, str]:
        """The files of pictures and of classes, unpacked."""
        part = "train" if self.train else "t10k"
        return f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"

    def _sources(self) -> list[tuple[list[str], str, str]]:
        """Of each file to fetch the beginnings of its URLs, the last part of these, and the MD5."""
        return [(self.mirrors, name, md5) for name, md5 in self.resources]

    def _load_data(self) -> tuple[Tensor, Tensor]:
        wanted = [os.path.join(self.raw_folder, name) for name in self._names()]
        missing = [f"{path}, and the same with .gz" for path in wanted if find_idx(path) is None]
        if missing:
            raise not_found("Dataset not found.", missing, [f"{at[0]}{name}" for at, name, _ in self._sources()])
        images, labels = (str(find_idx(path)) for path in wanted)
        pictures, classes = read_idx(images), read_idx(labels)
        if pictures.dtype != np.uint8 or pictures.ndim != 3:
            raise _unfit(images, "pictures in MNIST's format are uint8 of 3 dimensions", pictures)
        if classes.dtype != self._label_dtype or classes.ndim != self._label_dims:
            what = f"labels are {np.dtype(self._label_dtype)} of {self._label_dims} dimension(s)"
            raise _unfit(labels, f"{what} in {type(self).__name__}", classes)
        if len(pictures) != len(classes):
            raise _unfit(labels, f"there are {len(pictures)} pictures in {images}", classes)
        return from_numpy(pictures), from_numpy(classes.astype(np.int64))

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed(from_array(self.data[index].numpy(), "L"), int(self.targets[index]))

    def __len__(self) -> int:
        return len(self.data)

    @property
    def raw_folder(self) -> str:
        """The folder of the files."""
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The numbers of the classes."""
        return {name: number for number, name in enumerate(self.classes)}

    def download(self) -> None:
        """Fetch and unpack the files that are missing.

        Raises:
            DatasetError: no mirror has a file, or what it has is another file.
        """
        for mirrors, name, md5 in self._sources():
            path = os.path.join(self.raw_folder, name)
            if not os.path.isfile(os.path.splitext(path)[0]):
                download_from_mirrors(mirrors, name, self.raw_folder, md5)
                extract_archive(path, self.raw_folder)

    def extra_repr(self) -> str:
        """Which part of the data it is."""
        return f"Split: {'Train' if self.train is True else 'Test'}"


def _unfit(path: str, fact: str, found: np.ndarray[Any, Any]) -> DatasetError:
    """The error for a file that is an IDX file, but not of what belongs there."""
    there = f"it holds {found.dtype} of shape {found.shape}"
    return DatasetError(explain(f"File not found or corrupted: {path}", there, fact))


class FashionMNIST(MNIST):
    """Pictures of clothes in MNIST's format (https://github.com/zalandoresearch/fashion-mnist); see `MNIST`."""

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ]
    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


class KMNIST(MNIST):
    """Japanese characters in MNIST's format (https://github.com/rois-codh/kmnist); see `MNIST`."""

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"),
        ("train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"),
        ("t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"),
        ("t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"),
    ]
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


class EMNIST(MNIST):
    """Handwritten letters and digits in MNIST's format (https://www.nist.gov/itl/products-and-services/emnist-dataset).

    As in the files, and in torchvision, the pictures are transposed.

    Args:
        root: the folder that holds the folder `EMNIST`.
        split: "byclass", "bymerge", "balanced", "letters" (whose classes begin with 1), "digits" or "mnist".
        kwargs: see `MNIST`.

    Raises:
        ValueError: no such split. DatasetError: see `MNIST`.
    """

    url = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
    md5 = "58c8d27c78d21e728a6bc7b3cc06412e"
    splits = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    _merged_classes = set("cijklmopsuvwxyz")  # the lowercase letters that look like their uppercase ones
    _all_classes = set(string.digits + string.ascii_letters)
    classes_split_dict = {
        "byclass": sorted(_all_classes),
        "bymerge": sorted(_all_classes - _merged_classes),
        "balanced": sorted(_all_classes - _merged_classes),
        "letters": ["N/A", *string.ascii_lowercase],
        "digits": list(string.digits),
        "mnist": list(string.digits),
    }

    def __init__(self, root: str | os.PathLike[str], split: str, **kwargs: Any) -> None:
        self.split = choice(split, "split", self.splits)
        self.classes = self.classes_split_dict[split]
        super().__init__(root, **kwargs)

    def _names(self) -> tuple[str, str]:
        part = f"emnist-{self.split}-{'train' if self.train else 'test'}"
        return f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"

    def _sources(self) -> list[tuple[list[str], str, str]]:
        return [([self.url], "", self.md5)]

    def download(self) -> None:
        """Fetch and unpack the archive of all splits, if files of this one are missing."""
        if all(find_idx(os.path.join(self.raw_folder, name)) for name in self._names()):
            return
        download_url(self.url, self.raw_folder, md5=self.md5)
        archive = os.path.join(self.raw_folder, os.path.basename(self.url))
        extract_archive(archive, self.raw_folder)
        packed = os.path.join(self.raw_folder, "gzip")
        for name in sorted(os.listdir(packed)):
            if name.endswith(".gz"):
                extract_archive(os.path.join(packed, name), self.raw_folder, remove_finished=True)


class QMNIST(MNIST):
    """MNIST with 60,000 examples to test with and what is known of each (https://github.com/facebookresearch/qmnist).

    Args:
        root: the folder that holds the folder `QMNIST`.
        what: "train", "test", "test10k" (MNIST's own), "test50k" (the others) or "nist" (all digits); None for "train"
            or "test", by `train`.
        compat: whether a target is the class; otherwise it is a tensor of 8 numbers, of which the first is the class.
        kwargs: see `MNIST`.

    Raises:
        ValueError: no such part. DatasetError: see `MNIST`.
    """

    subsets = {"train": "train", "test": "test", "test10k": "test", "test50k": "test", "nist": "nist"}
    mirrors = ["https://raw.githubusercontent.com/facebookresearch/qmnist/master/"]
    resources = {
        "train": [
            ("qmnist-train-images-idx3-ubyte.gz", "ed72d4157d28c017586c42bc6afe6370"),
            ("qmnist-train-labels-idx2-int.gz", "0058f8dd561b90ffdd0f734c6a30e5e4"),
        ],
        "test": [
            ("qmnist-test-images-idx3-ubyte.gz", "1394631089c404de565df7b7aeaf9412"),
            ("qmnist-test-labels-idx2-int.gz", "5b5b05890a5e13444e108efe57b788aa"),
        ],
        "nist": [
            ("xnist-images-idx3-ubyte.xz", "7f124b3b8ab81486c9d8c2749c17f834"),
            ("xnist-labels-idx2-int.xz", "5ed0e788978e45d4a8bd4b7caec3d79d"),
        ],
    }
    _label_dtype = np.int32
    _label_dims = 2

    def __init__(
        self,
        root: str | os.PathLike[str],
        what: str | None = None,
        compat: bool = True,
        train: bool = True,
        **kwargs: Any,
    ) -> None:
        self.what = choice(("train" if train else "test") if what is None else what, "what", tuple(self.subsets))
        self.compat = compat
        super().__init__(root, train, **kwargs)

    def _names(self) -> tuple[str, str]:
        images, labels = (os.path.splitext(name)[0] for name, _ in self.resources[self.subsets[self.what]])
        return images, labels

    def _sources(self) -> list[tuple[list[str], str, str]]:
        return [(self.mirrors, name, md5) for name, md5 in self.resources[self.subsets[self.what]]]

    def _load_data(self) -> tuple[Tensor, Tensor]:
        data, targets = super()._load_data()
        part = {"test10k": slice(0, 10000), "test50k": slice(10000, None)}.get(self.what)
        return (data, targets) if part is None else (data[part].clone(), targets[part].clone())

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        target = self.targets[index]
        picture = from_array(self.data[index].numpy(), "L")
        return self._transformed(picture, int(target[0]) if self.compat else target)

    def extra_repr(self) -> str:
        """Which part of the data it is."""
        return f"Split: {self.what}"
