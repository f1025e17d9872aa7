"""CIFAR: its pickles are read without running them, whatever is in them."""

from __future__ import annotations

import hashlib
import io
import pickle
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritensor.errors import DatasetError
from tritensor.vision import datasets
from tritensor.vision.datasets import cifar

from .serving import Server, evil_pickle, python2_pickle, serving

ROWS = np.random.default_rng(0).integers(0, 256, (3, 3072), dtype=np.uint8)
NAMES = ["airplane", "automobile", "bird"]


def ten() -> dict[str, bytes]:
    batch = {"batch_label": "batch 1 of 5", "labels": [2, 0, 1], "data": ROWS, "filenames": ["a\xe9.png", "b", "c"]}
    meta = {"num_cases_per_batch": 10000, "label_names": NAMES, "num_vis": 3072}
    first = python2_pickle(batch)
    return {
        "data_batch_1": first,
        "data_batch_2": python2_pickle({**batch, "data": 255 - ROWS}),
        "test_batch": first,
        "batches.meta": python2_pickle(meta),
    }


def hundred() -> dict[str, bytes]:
    batch = {"filenames": ["a", "b", "c"], "fine_labels": [0, 2, 1], "coarse_labels": [0, 0, 1], "data": ROWS}
    meta = {"fine_label_names": NAMES, "coarse_label_names": ["x", "y"]}
    return {"train": pickle.dumps(batch, 2), "test": python2_pickle(batch), "meta": python2_pickle(meta)}


def small(base: Any, folder: Path, files: dict[str, bytes]) -> Any:
    """The class with the checksums of these files, which are written to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    sums = {name: hashlib.md5(data).hexdigest() for name, data in files.items()}
    return type(
        base.__name__,
        (base,),
        {
            "train_list": [[name, sums[name]] for name in files if name.startswith(("data", "train"))],
            "test_list": [[name, sums[name]] for name in files if name.startswith("test")],
            "meta": {**base.meta, "md5": sums[base.meta["filename"]]},
        },
    )


def test_cifar10(tmp_path: Path) -> None:
    kind = small(datasets.CIFAR10, tmp_path / "cifar-10-batches-py", ten())
    dataset = kind(tmp_path)
    assert len(dataset) == 6 and dataset.targets == [2, 0, 1, 2, 0, 1]
    assert dataset.data.shape == (6, 32, 32, 3) and dataset.data.dtype == np.uint8
    np.testing.assert_array_equal(dataset.data[1], ROWS[1].reshape(3, 32, 32).transpose(1, 2, 0))
    np.testing.assert_array_equal(dataset.data[3], 255 - dataset.data[0])
    picture, target = dataset[1]
    assert (picture.mode, picture.size, target) == ("RGB", (32, 32), 0)
    np.testing.assert_array_equal(np.array(picture), dataset.data[1])
    assert dataset.classes == NAMES and dataset.class_to_idx == {"airplane": 0, "automobile": 1, "bird": 2}
    assert repr(kind(str(tmp_path), train=False)) == (
        f"Dataset CIFAR10\n    Number of datapoints: 3\n    Root location: {tmp_path}\n    Split: Test"
    )


def test_cifar100(tmp_path: Path) -> None:
    kind = small(datasets.CIFAR100, tmp_path / "cifar-100-python", hundred())
    for train in (True, False):  # written by Python 3, and by Python 2
        dataset = kind(tmp_path, train)
        assert dataset.targets == [0, 2, 1]
        np.testing.assert_array_equal(dataset.data[2], ROWS[2].reshape(3, 32, 32).transpose(1, 2, 0))


def test_a_missing_and_a_changed_file_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    kind = small(datasets.CIFAR10, folder, ten())
    (folder / "data_batch_2").unlink()
    (folder / "test_batch").write_bytes(b"x")
    with pytest.raises(RuntimeError) as caught:
        kind(tmp_path)
    assert str(caught.value).splitlines() == [
        "Dataset not found or corrupted. You can use download=True to download it",
        f"  missing: {folder}/data_batch_2",
        f"  corrupted: {folder}/test_batch",
        "  download=True would fetch https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    ]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as running:
        yield running


def test_download(tmp_path: Path, server: Server) -> None:
    kind = small(datasets.CIFAR10, tmp_path / "elsewhere", ten())
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        archive.add(tmp_path / "elsewhere", "cifar-10-batches-py")
    server.files["/cifar-10-python.tar.gz"] = stream.getvalue()
    kind.url, kind.tgz_md5 = f"{server.url}/cifar-10-python.tar.gz", hashlib.md5(stream.getvalue()).hexdigest()
    for _ in range(2):
        assert len(kind(tmp_path / "root", download=True)) == 6
    assert len(server.requests) == 1
    assert (tmp_path / "root" / "cifar-10-python.tar.gz").exists()


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ({"labels": [1], "data": ROWS}, "it has 3 pictures and 1 labels"),
        ({"labels": [0, 1, 3], "data": ROWS}, "no list of numbers from 0 to 2"),
        ({"labels": [0, 1, "2"], "data": ROWS}, "no list of numbers"),
        ({"labels": [0, 1, 2], "data": ROWS[:, :3000].copy()}, "no rows of 3072 bytes"),
        ({"labels": [0, 1, 2], "data": ROWS.astype(np.int64)}, "no rows of 3072 bytes"),
        ({"labels": [0, 1, 2], "data": ROWS.tolist()}, "no rows of 3072 bytes"),
        ({"labels": [0, 1, 2]}, "it lacks one of the entries data"),
        ([1, 2], "it holds a list"),
        ({"labels": [], "data": np.array([object()])}, "dtype"),
        ({"labels": [], "data": {1}.union}, "names '__builtin__.getattr', and files of CIFAR name arrays only"),
    ],
)
def test_what_files_of_cifar_do_not_hold(tmp_path: Path, batch: Any, words: str) -> None:
    files = {**ten(), "data_batch_1": pickle.dumps(batch, 2)}
    kind = small(datasets.CIFAR10, tmp_path / "cifar-10-batches-py", files)
    with pytest.raises(DatasetError, match=words) as caught:
        kind(tmp_path)
    assert str(caught.value).startswith("File not found or corrupted: ")
    assert "data_batch_1\n" in str(caught.value)


def test_nothing_is_run(tmp_path: Path) -> None:
    files = {**ten(), "data_batch_1": evil_pickle(tmp_path / "run")}
    kind = small(datasets.CIFAR10, tmp_path / "cifar-10-batches-py", files)
    with pytest.raises(DatasetError, match=r"names '_?io\.open', and files of CIFAR name arrays only"):
        kind(tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("file", ["data_batch_1", "batches.meta"])
@given(data=st.data())
def test_mutated_pickles(tmp_path_factory: pytest.TempPathFactory, file: str, data: st.DataObject) -> None:
    """Whatever bytes are changed: values, or an error that names the file."""
    original = ten()[file]
    mutated = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(mutated) - 1, 400)) | st.integers(len(mutated) - 200, len(mutated) - 1))
        mutated[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    path = tmp_path_factory.mktemp("pickles") / "batch"
    path.write_bytes(mutated)
    try:
        cifar._batch(str(path), 10) if file == "data_batch_1" else cifar._names(str(path), "label_names")
    except DatasetError as error:
        named = str(path) in str(error)
        assert named
