"""MNIST and its relatives: files used where they stand, fetched if they are not there, named if they are damaged."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import pickle
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tritensor as torch
from tritensor.errors import DatasetError
from tritensor.utils.data import DataLoader
from tritensor.vision import datasets, transforms
from tritensor.vision.datasets.mnist import read_idx

from .serving import LABELS, PICTURES, Server, idx, serving, write_mnist


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as running:
        yield running


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST", "KMNIST"])
def test_files_are_used_where_they_stand(tmp_path: Path, name: str, packed: bool) -> None:
    write_mnist(tmp_path / name / "raw", packed)
    before = sorted(tmp_path.rglob("*"))
    for train in (True, False):
        dataset = getattr(datasets, name)(str(tmp_path), train=train)
        assert len(dataset) == 5
        assert dataset.data.dtype is torch.uint8 and dataset.targets.dtype is torch.int64
        np.testing.assert_array_equal(dataset.data.numpy(), PICTURES)
        assert dataset.targets.tolist() == LABELS.tolist()
        picture, target = dataset[2]
        assert (picture.mode, picture.size, target, type(target)) == ("L", (28, 28), 4, int)
        np.testing.assert_array_equal(np.array(picture), PICTURES[2])
        assert len(dataset.classes) == 10
        assert dataset.class_to_idx[dataset.classes[9]] == 9
        assert [target for _, target in dataset] == LABELS.tolist()
    assert sorted(tmp_path.rglob("*")) == before


def test_only_the_part_that_is_used_has_to_be_there(tmp_path: Path) -> None:
    write_mnist(tmp_path / "MNIST" / "raw", parts=("t10k",))
    assert len(datasets.MNIST(tmp_path, train=False)) == 5
    with pytest.raises(DatasetError, match=r"^Dataset not found\. You can use download=True to download it"):
        datasets.MNIST(tmp_path)


def test_classes() -> None:
    assert datasets.MNIST.classes[:2] == ["0 - zero", "1 - one"]
    assert datasets.FashionMNIST.classes[9] == "Ankle boot"
    assert datasets.KMNIST.classes == ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]
    lengths = {split: len(classes) for split, classes in datasets.EMNIST.classes_split_dict.items()}
    assert lengths == {"byclass": 62, "bymerge": 47, "balanced": 47, "letters": 27, "digits": 10, "mnist": 10}


def test_representation(tmp_path: Path) -> None:
    write_mnist(tmp_path / "MNIST" / "raw")
    dataset = datasets.MNIST(
        str(tmp_path),
        transform=transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))]),
        target_transform=transforms.Lambda(lambda label: label + 1),
    )
    assert repr(dataset) == (
        "Dataset MNIST\n"
        "    Number of datapoints: 5\n"
        f"    Root location: {tmp_path}\n"
        "    Split: Train\n"
        "    StandardTransform\n"
        "Transform: Compose(\n"
        "               ToTensor()\n"
        "               Normalize(mean=(0.1307,), std=(0.3081,))\n"
        "           )\n"
        "Target transform: Lambda()"
    )
    assert dataset[0][1] == 4


def test_batches_of_a_loader_with_workers(tmp_path: Path) -> None:
    write_mnist(tmp_path / "MNIST" / "raw")
    dataset = datasets.MNIST(tmp_path, transform=transforms.ToTensor())
    for workers in (0, 2):
        pictures, labels = next(iter(DataLoader(dataset, 5, num_workers=workers)))
        assert pictures.shape == (5, 1, 28, 28) and labels.tolist() == LABELS.tolist()
        np.testing.assert_array_equal(pictures[:, 0].numpy(), PICTURES.astype(np.float32) / np.float32(255))
    assert len(pickle.loads(pickle.dumps(dataset))) == 5


def test_an_absent_set_says_where_it_looked_and_what_it_would_fetch(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as caught:
        datasets.MNIST(tmp_path, train=False)
    lines = str(caught.value).splitlines()
    assert lines[0] == "Dataset not found. You can use download=True to download it"
    assert f"  missing: {tmp_path}/MNIST/raw/t10k-images-idx3-ubyte, and the same with .gz" in lines
    assert (
        "  download=True would fetch https://ossci-datasets.s3.amazonaws.com/mnist/t10k-labels-idx1-ubyte.gz" in lines
    )
    with pytest.raises(RuntimeError, match=r"would fetch https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"):
        datasets.EMNIST(tmp_path, "letters")
    with pytest.raises(RuntimeError, match=r"qmnist/master/xnist-images-idx3-ubyte.xz"):
        datasets.QMNIST(tmp_path, "nist")


def small(base: type, server: Server, **files: bytes) -> Any:
    """A set of the same name whose files come from the server."""
    resources = [(name, hashlib.md5(data).hexdigest()) for name, data in files.items()]
    server.files |= {f"/good/{name}": data for name, data in files.items()}
    mirrors = [f"{server.url}/none/", f"{server.url}/good/"]
    return type(base.__name__, (base,), {"resources": resources, "mirrors": mirrors})


def mnist_files() -> dict[str, bytes]:
    return {
        f"{part}-{what}-ubyte.gz": gzip.compress(idx(array))
        for part in ("train", "t10k")
        for what, array in (("images-idx3", PICTURES), ("labels-idx1", LABELS))
    }


def test_download(tmp_path: Path, server: Server) -> None:
    kind = small(datasets.MNIST, server, **mnist_files())
    dataset = kind(tmp_path, download=True)
    np.testing.assert_array_equal(dataset.data.numpy(), PICTURES)
    assert sorted(path.name for path in (tmp_path / "MNIST" / "raw").iterdir()) == sorted(
        [*mnist_files(), *(name.removesuffix(".gz") for name in mnist_files())]
    )
    server.requests.clear()
    assert len(kind(tmp_path, download=True)) == 5
    assert server.requests == []


def test_download_of_another_file(tmp_path: Path, server: Server) -> None:
    kind = small(datasets.KMNIST, server, **mnist_files())
    server.files["/good/train-labels-idx1-ubyte.gz"] = b"<html>"
    with pytest.raises(RuntimeError, match=r"^Error downloading train-labels-idx1-ubyte\.gz:\nTried .*/none/.*, got"):
        kind(tmp_path, download=True)


def test_emnist(tmp_path: Path, server: Server) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for split in ("letters", "digits"):
            for part in ("train", "test"):
                for what, array in (("images-idx3", PICTURES), ("labels-idx1", LABELS)):
                    name = f"gzip/emnist-{split}-{part}-{what}-ubyte.gz"
                    archive.writestr(name, gzip.compress(idx(array)))
    kind = small(datasets.EMNIST, server, **{"gzip.zip": stream.getvalue()})
    dataset = kind(tmp_path, split="letters", train=False, download=True)
    assert dataset.targets.tolist() == LABELS.tolist()
    assert dataset.classes[1] == "a" and dataset.class_to_idx["z"] == 26
    assert len(kind(tmp_path, split="digits", download=True)) == 5
    assert [path for path, _ in server.requests] == ["/none/gzip.zip", "/good/gzip.zip"]
    with pytest.raises(ValueError, match=r"^Unknown value 'x' for argument split. Valid values are \{'byclass', '"):
        kind(tmp_path, split="x")
    with pytest.raises(ValueError, match="Expected type str for argument split, but got type"):
        kind(tmp_path, split=1)


def test_qmnist(tmp_path: Path) -> None:
    raw = tmp_path / "QMNIST" / "raw"
    raw.mkdir(parents=True)
    known = np.arange(40, dtype=np.int32).reshape(5, 8) - 3
    (raw / "qmnist-test-images-idx3-ubyte").write_bytes(idx(PICTURES))
    (raw / "qmnist-test-labels-idx2-int.gz").write_bytes(gzip.compress(idx(known, 12)))
    (raw / "xnist-images-idx3-ubyte.xz").write_bytes(lzma.compress(idx(PICTURES)))
    (raw / "xnist-labels-idx2-int.xz").write_bytes(lzma.compress(idx(known, 12)))
    dataset = datasets.QMNIST(tmp_path, train=False)
    assert dataset[1][1] == 5 and dataset.targets.shape == (5, 8)
    assert "    Split: test\n" in repr(dataset) + "\n"
    full = datasets.QMNIST(tmp_path, "nist", compat=False)
    assert full[0][1].tolist() == [-3, -2, -1, 0, 1, 2, 3, 4]
    assert len(datasets.QMNIST(tmp_path, "test10k")) == 5
    assert len(datasets.QMNIST(tmp_path, "test50k")) == 0
    with pytest.raises(ValueError, match="Unknown value 'tests' for argument what"):
        datasets.QMNIST(tmp_path, "tests")


IMAGES = "train-images-idx3-ubyte"


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (IMAGES, b"", "it ends 4 bytes too early"),
        (IMAGES, idx(PICTURES)[:-1], "it ends 1 bytes too early"),
        (IMAGES, idx(PICTURES) + b"x", "comes more"),
        (IMAGES, b"\x1f\x8b" + idx(PICTURES), "an IDX file begins with"),
        (IMAGES, b"\0\0\x0a\3" + idx(PICTURES)[4:], "an IDX file begins with"),
        (IMAGES, bytes([0, 0, 8, 3]) + b"\xff" * 12, "it ends 79228162458924105385300197375 bytes too early"),
        (IMAGES, idx(LABELS), r"it holds uint8 of shape \(5,\)"),
        (IMAGES, idx(PICTURES.astype(np.float32), 13), "it holds float32 of shape"),
        ("train-labels-idx1-ubyte", idx(LABELS[:4]), "there are 5 pictures in"),
        ("train-labels-idx1-ubyte", idx(LABELS.astype(np.int32), 12), "labels are uint8 of 1 dimension"),
        (f"{IMAGES}.gz", gzip.compress(idx(PICTURES), mtime=0)[:-9], "ended before"),
        (f"{IMAGES}.gz", b"x" + gzip.compress(idx(PICTURES), mtime=0), "gzip"),
        (f"{IMAGES}.gz", gzip.compress(idx(PICTURES) + bytes(2**24), mtime=0), "comes more"),
        (f"{IMAGES}.gz", gzip.compress(bytes([0, 0, 8, 3]) + b"\xff" * 12, mtime=0), "unpacks to too many bytes"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    raw = tmp_path / "MNIST" / "raw"
    write_mnist(raw)
    (raw / name.removesuffix(".gz")).unlink()
    (raw / name).write_bytes(data)
    with pytest.raises(RuntimeError, match=words) as caught:
        datasets.MNIST(tmp_path)
    assert re.search(rf"{re.escape(name)}(\n| unpacks)", str(caught.value))


def test_a_checksum_in_gzip_that_does_not_fit(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(idx(LABELS)))
    packed[-8] ^= 1
    (tmp_path / "x.gz").write_bytes(packed)
    with pytest.raises(DatasetError, match=r"corrupted: .*x.gz\n  CRC check failed"):
        read_idx(str(tmp_path / "x.gz"))


@pytest.mark.parametrize(("kind", "code"), [("u1", 8), ("i1", 9), ("i2", 11), ("i4", 12), ("f4", 13), ("f8", 14)])
def test_idx(tmp_path: Path, kind: str, code: int) -> None:
    array = (np.arange(6).reshape(1, 2, 3) * 20).astype(kind)
    (tmp_path / "x").write_bytes(idx(array, code))
    found = read_idx(str(tmp_path / "x"))
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype and found.flags.writeable


@pytest.mark.thorough
@pytest.mark.parametrize("end", ["", ".gz", ".xz"])
@given(data=st.data())
def test_mutated_idx(tmp_path_factory: pytest.TempPathFactory, end: str, data: st.DataObject) -> None:
    """Whatever bytes are changed, it is an array of as many bytes, or an error that names the file."""
    content = idx(LABELS)
    path = tmp_path_factory.mktemp("idx") / f"x{end}"
    mutated = bytearray({"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[end](content))  # type: ignore[operator]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(mutated)))
        mutated[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    path.write_bytes(mutated)
    try:
        found = read_idx(str(path))
    except DatasetError as error:
        named = path.name in str(error)
        assert named
    else:
        assert found.nbytes <= 2**20
