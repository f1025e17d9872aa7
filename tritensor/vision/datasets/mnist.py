"""MNIST and the data sets in its format, IDX: 0, 0, a code of the type, the number of dimensions, the dimensions in
four bytes each, and the elements, all big-endian (http://yann.lecun.com/exdb/mnist/)."""

from __future__ import annotations

import math
import os
import string
from typing import Any

import numpy as np

from ...errors import DatasetError, require
from ...functional.creation.creation import from_numpy
from ...tensors import Tensor
from ..transforms.conversion import from_array
from .files import BY_HAND, Path, corrupted, damaged, extract_archive, fetch, open_compressed
from .vision import FetchedDataset

__all__ = ["EMNIST", "KMNIST", "MNIST", "QMNIST", "FashionMNIST"]

DTYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
PACKED = (".gz", ".xz")
LARGEST_PACKED = 2**31  # bytes that a compressed file may say it has: four times those of the largest set, EMNIST
PIECE = 1 << 22  # bytes read at once: what a file says of its length is not believed before it is there
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def find_idx(path: str) -> str | None:
    """The file itself or, if there is none, the compressed file beside it, if there is one."""
    return next((found for end in ("", *PACKED) if os.path.isfile(found := path + end)), None)


def read_idx(path: str) -> np.ndarray[Any, Any]:
    """The array in an IDX file, which may be compressed (.gz, .xz); a DatasetError that names it if it is damaged."""
    suffix = os.path.splitext(path)[1]
    with damaged(path), open_compressed(path, suffix) as stream:
        magic = _exactly(stream, 4)
        if magic[:2] != b"\0\0" or magic[2] not in DTYPES or not 1 <= magic[3] <= 3:
            raise ValueError(f"an IDX file begins with 0, 0, a type of {sorted(DTYPES)} and 1 to 3, not {list(magic)}")
        dtype = np.dtype(DTYPES[magic[2]])
        shape = [int(length) for length in np.frombuffer(_exactly(stream, 4 * magic[3]), ">u4")]
        nbytes = math.prod(shape) * dtype.itemsize
        if suffix in PACKED and nbytes > LARGEST_PACKED:
            fact = f"it says that it has elements of the shape {tuple(shape)}, which is {nbytes} bytes"
            raise DatasetError(f"{path} unpacks to too many bytes", fact, remedy=BY_HAND)
        array = np.frombuffer(_exactly(stream, nbytes), dtype).reshape(shape)
        require(not stream.read(1), ValueError, "after the elements, whose shape is {}, comes more", tuple(shape))
    return array.astype(dtype.newbyteorder("="), copy=False)


def _exactly(stream: Any, count: int) -> bytearray:
    """The next `count` bytes."""
    found = bytearray()
    while len(found) < count:
        piece = stream.read(min(count - len(found), PIECE))
        if not piece:
            raise EOFError(f"it ends {count - len(found)} bytes too early")
        found += piece
    return found


def _four(*checksums: str) -> list[tuple[str, str]]:
    """MNIST's four files, with these checksums."""
    names = (f"{part}-{what}-ubyte.gz" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1"))
    return list(zip(names, checksums))


class MNIST(FetchedDataset):
    """MNIST: handwritten digits of 28 x 28 (http://yann.lecun.com/exdb/mnist/), 60,000 to train, 10,000 to test with.

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
    resources: Any = _four(
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    )
    classes = [f"{number} - {name}" for number, name in enumerate(DIGITS)]
    _labels: tuple[Any, int] = (np.uint8, 1)  # dtype and dimensions of what the second file holds

    def _sources(self) -> list[tuple[str, str]]:
        return self.resources

    def _files(self) -> list[str]:
        return [f"{'train' if self.train else 't10k'}-{what}-ubyte" for what in ("images-idx3", "labels-idx1")]

    def _missing(self) -> list[str]:
        paths = (os.path.join(self.raw_folder, name) for name in self._files())
        return [path for path in paths if find_idx(path) is None]

    def _load(self) -> None:
        urls = [f"{self.mirrors[0]}{name}" for name, _ in self._sources()]
        self._refuse("Dataset not found.", self._missing(), urls, ", and the same with .gz")
        images, labels = (str(find_idx(os.path.join(self.raw_folder, name))) for name in self._files())
        pictures, classes = read_idx(images), read_idx(labels)
        parts = ((images, pictures, "pictures", (np.uint8, 3)), (labels, classes, "labels", self._labels))
        for path, found, what, (kind, dims) in parts:
            if found.dtype != kind or found.ndim != dims:
                expected = f"{what} are {np.dtype(kind)} of {dims} dimension(s) in {type(self).__name__}"
                raise corrupted(path, f"it holds {found.dtype} of shape {found.shape}", expected)
        if len(pictures) != len(classes):
            raise corrupted(labels, f"it has {len(classes)} labels, and there are {len(pictures)} pictures in {images}")
        self.data, self.targets = from_numpy(pictures), from_numpy(classes.astype(np.int64))

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed(from_array(self.data[index].numpy(), "L"), self._target(self.targets[index]))

    def _target(self, target: Tensor) -> Any:
        return int(target)

    @property
    def raw_folder(self) -> str:
        """The folder of the files."""
        return os.path.join(self.root, type(self).__name__, "raw")

    def download(self) -> None:
        """Fetch, check and unpack the files that are missing; a DatasetError if no mirror has one."""
        for name, md5 in self._sources():
            path = os.path.join(self.raw_folder, name)
            if not os.path.isfile(os.path.splitext(path)[0]):
                path = fetch([f"{mirror}{name}" for mirror in self.mirrors], self.raw_folder, md5)
                extract_archive(path, self.raw_folder)


class FashionMNIST(MNIST):
    """Fashion-MNIST: images of clothes, as MNIST (https://github.com/zalandoresearch/fashion-mnist); see `MNIST`."""

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = _four(
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    )
    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


class KMNIST(MNIST):
    """KMNIST: Japanese characters in MNIST's format (https://github.com/rois-codh/kmnist); see `MNIST`."""

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = _four(
        "bdb82020997e1d708af4cf47b453dcf7",
        "e144d726b3acfaa3e44228e80efcd344",
        "5c965bf0a639b31b8f53240b1b52f4d7",
        "7320c461ea6c1c855c0b718fb2a4b134",
    )
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


class EMNIST(MNIST):
    """EMNIST: handwritten letters and digits (https://www.nist.gov/itl/products-and-services/emnist-dataset).

    They are transposed as in the files and in torchvision; see `MNIST`.

    `split` is "byclass", "bymerge", "balanced", "letters" (whose classes begin with 1), "digits" or "mnist"; a
    ValueError for another.
    """

    mirrors = ["https://biometrics.nist.gov/cs_links/EMNIST/"]
    resources = [("gzip.zip", "58c8d27c78d21e728a6bc7b3cc06412e")]
    # "cijklmopsuvwxyz" look like their uppercase letters
    _merged = sorted(set(string.digits + string.ascii_letters) - set("cijklmopsuvwxyz"))
    classes_split_dict = {
        "byclass": sorted(string.digits + string.ascii_letters),
        "bymerge": _merged,
        "balanced": _merged,
        "letters": ["N/A", *string.ascii_lowercase],
        "digits": list(string.digits),
        "mnist": list(string.digits),
    }

    def __init__(self, root: Path, split: str, **kwargs: Any) -> None:
        self.split = _choice(split, "split", self.classes_split_dict)
        self.classes = self.classes_split_dict[split]
        super().__init__(root, **kwargs)

    def _files(self) -> list[str]:
        return [f"emnist-{self.split}-{name}".replace("t10k", "test") for name in super()._files()]

    def download(self) -> None:
        """Fetch and unpack the archive of all splits, if files of this one are missing."""
        if self._missing():
            super().download()
            packed = os.path.join(self.raw_folder, "gzip")
            for name in sorted(os.listdir(packed)):
                if name.endswith(".gz"):
                    extract_archive(os.path.join(packed, name), self.raw_folder)
                    os.unlink(os.path.join(packed, name))


class QMNIST(MNIST):
    """QMNIST: MNIST with 60,000 test examples and their metadata (https://github.com/facebookresearch/qmnist).

    Args:
        what: "train", "test", "test10k" (MNIST's own), "test50k" (the others) or "nist" (all digits); None for "train"
            or "test", by `train`; a ValueError for another.
        compat: whether a target is the class; otherwise it is a tensor of 8 numbers, of which the first is the class.
        root, train, kwargs: see `MNIST`.
    """

    subsets = {"train": "train", "test": "test", "test10k": "test", "test50k": "test", "nist": "nist"}
    mirrors = ["https://raw.githubusercontent.com/facebookresearch/qmnist/master/"]
    resources = {
        part: [(f"{name}-images-idx3-ubyte.{end}", images), (f"{name}-labels-idx2-int.{end}", labels)]
        for part, name, end, images, labels in (
            ("train", "qmnist-train", "gz", "ed72d4157d28c017586c42bc6afe6370", "0058f8dd561b90ffdd0f734c6a30e5e4"),
            ("test", "qmnist-test", "gz", "1394631089c404de565df7b7aeaf9412", "5b5b05890a5e13444e108efe57b788aa"),
            ("nist", "xnist", "xz", "7f124b3b8ab81486c9d8c2749c17f834", "5ed0e788978e45d4a8bd4b7caec3d79d"),
        )
    }
    _labels = (np.int32, 2)

    def __init__(
        self, root: Path, what: str | None = None, compat: bool = True, train: bool = True, **kwargs: Any
    ) -> None:
        self.what = _choice(("train" if train else "test") if what is None else what, "what", self.subsets)
        self.compat = compat
        super().__init__(root, train, **kwargs)

    def _sources(self) -> list[tuple[str, str]]:
        return self.resources[self.subsets[self.what]]

    def _files(self) -> list[str]:
        return [os.path.splitext(name)[0] for name, _ in self._sources()]

    def _load(self) -> None:
        super()._load()
        if self.what in ("test10k", "test50k"):
            part = slice(0, 10000) if self.what == "test10k" else slice(10000, None)
            self.data, self.targets = self.data[part].clone(), self.targets[part].clone()

    def _target(self, target: Tensor) -> Any:
        return int(target[0]) if self.compat else target

    def extra_repr(self) -> str:
        """The part of the data that it is."""
        return f"Split: {self.what}"


def _choice(value: object, name: str, choices: dict[str, Any]) -> str:
    if not isinstance(value, str):
        raise ValueError(f"Expected type str for argument {name}, but got type {type(value)}.")
    if value not in choices:
        raise ValueError(f"Unknown value '{value}' for argument {name}. Valid values are {{{str([*choices])[1:-1]}}}.")
    return value
