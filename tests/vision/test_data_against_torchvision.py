"""Folders of pictures, generated pictures, and saved grids beside torchvision's: samples, classes, files, messages."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tritensor
from tritensor.vision import datasets, transforms, utils

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or its error's class and first words, without the library's name."""
    try:
        return call()
    except (OSError, TypeError, ValueError, IndexError) as error:
        return type(error).__mro__[-4:], str(error).splitlines()[0].replace("tritensor.vision", "torchvision")[:60]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Classes with pictures in several formats and depths, whose names do not sort as they were made."""
    draw = np.random.default_rng(0)
    for name in ("dog/b.png", "dog/a.PNG", "cat/z.bmp", "cat/sub/y.png", "cat/10.jpg", "cat/9.jpg", "dog/note.txt"):
        path = tmp_path / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".txt":
            path.write_text("no picture")
        else:
            Image.fromarray(draw.integers(0, 256, (5, 4, 3), dtype=np.uint8)).save(path)
    (tmp_path / "set" / "none").mkdir()
    (tmp_path / "set" / "loose.png").write_bytes((tmp_path / "set" / "dog" / "b.png").read_bytes())
    return tmp_path / "set"


def test_folders_of_pictures(root: Path) -> None:
    vision = pytest.importorskip("torchvision")
    theirs = vision.datasets.ImageFolder(str(root), vision.transforms.PILToTensor(), allow_empty=True)
    mine = datasets.ImageFolder(str(root), transforms.PILToTensor(), allow_empty=True)
    assert repr(mine) == repr(theirs)
    for name in ("classes", "class_to_idx", "samples", "imgs", "targets", "root", "extensions"):
        assert getattr(mine, name) == getattr(theirs, name), name
    assert len(mine) == len(theirs) == 6
    for (picture, label), (expected, other) in zip(mine, theirs, strict=True):
        assert label == other
        np.testing.assert_array_equal(picture.numpy(), expected.numpy())


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("ImageFolder", {}),  # a class has no pictures
        ("ImageFolder", {"is_valid_file": lambda path: "dog" in path, "allow_empty": True}),
        ("ImageFolder", {"target_transform": lambda label: label + 7, "allow_empty": True}),
        ("DatasetFolder", {"loader": str, "extensions": (".txt", ".jpg"), "allow_empty": True}),
        ("DatasetFolder", {"loader": str, "extensions": ".txt"}),
        ("DatasetFolder", {"loader": str}),
        ("DatasetFolder", {"loader": str, "extensions": (".txt",), "is_valid_file": bool}),
    ],
)
def test_folders_with_conditions(root: Path, name: str, named: dict[str, Any]) -> None:
    vision = pytest.importorskip("torchvision")

    def seen(library: Any) -> Any:
        dataset = getattr(library, name)(str(root), **named)
        return dataset.classes, dataset.samples, [label for _, label in dataset]

    assert outcome(lambda: seen(datasets)) == outcome(lambda: seen(vision.datasets))


def test_folders_that_are_not_there(tmp_path: Path) -> None:
    vision = pytest.importorskip("torchvision")
    (tmp_path / "empty").mkdir()
    for folder in (str(tmp_path / "empty"), str(tmp_path / "absent")):
        mine, theirs = (outcome(partial(each.ImageFolder, folder)) for each in (datasets, vision.datasets))
        assert mine == theirs


def test_generated_pictures() -> None:
    """The noise is drawn by another generator; everything else agrees."""
    vision = pytest.importorskip("torchvision")
    mine, theirs = (library.FakeData(3, (3, 5, 4), 6, random_offset=2) for library in (datasets, vision.datasets))
    assert repr(mine) == repr(theirs) and len(mine) == len(theirs) == 3
    for (picture, label), (expected, other) in zip(mine, theirs, strict=True):
        assert (picture.mode, picture.size, type(label)) == (expected.mode, expected.size, type(other))
        assert 0 <= label < 6
    for index in (3, 7):
        assert outcome(partial(mine.__getitem__, index)) == outcome(partial(theirs.__getitem__, index))
    with_tensors = datasets.FakeData(2, (1, 4, 4), 2, transforms.ToTensor(), lambda label: -label)
    others = vision.datasets.FakeData(2, (1, 4, 4), 2, vision.transforms.ToTensor(), lambda label: -label)
    assert repr(with_tensors).splitlines()[:2] == repr(others).splitlines()[:2]
    assert [tuple(each.shape) for each, _ in with_tensors] == [tuple(each.shape) for each, _ in others]


@pytest.mark.parametrize("end", ["png", "bmp", "jpg"])
def test_saved_grids(tmp_path: Path, end: str) -> None:
    vision = pytest.importorskip("torchvision")
    torch = pytest.importorskip("torch")
    array = np.random.default_rng(0).uniform(-0.2, 1.2, (5, 3, 6, 4)).astype(np.float32)
    for given, named in (
        (array, {"nrow": 3, "padding": 1, "pad_value": 0.5}),
        (array[:, :1].copy(), {"normalize": True}),
        (array, {"normalize": True, "scale_each": True, "value_range": (0.0, 1.0)}),
        (array[0], {}),
        (array[0, 0], {}),
    ):
        pictures = []
        for library, tensor in ((utils, tritensor.from_numpy(given)), (vision.utils, torch.from_numpy(given))):
            path = tmp_path / f"{library.__name__}.{end}"
            library.save_image(tensor, path, **named)
            stream = io.BytesIO()
            library.save_image(list(tensor) if tensor.ndim == 4 else tensor, stream, format="png", **named)
            pictures.append([np.array(Image.open(each)) for each in (path, stream)])
        for found, expected in zip(*pictures, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_grids_of_other_things() -> None:
    vision = pytest.importorskip("torchvision")
    torch = pytest.importorskip("torch")

    def made(library: Any, tensors: Any, given: Any, named: dict[str, Any]) -> Any:
        grid = library.make_grid(given(tensors), **named)
        return str(grid.dtype).rpartition(".")[2], tuple(grid.shape), grid.tolist()

    for given, named in (
        (lambda lib: lib.arange(24).reshape(2, 3, 2, 2), {"pad_value": 3}),
        (lambda lib: [lib.ones(3, 2, 2), lib.zeros(3, 2, 2)], {"padding": 0}),
        (lambda lib: (lib.ones(3, 2, 2), lib.zeros(3, 2, 2)), {}),
        (lambda lib: [1, 2], {}),
        (lambda lib: "x", {}),
        (lambda lib: lib.ones(2, 3, 2, 2), {"normalize": True}),
        (lambda lib: lib.ones(2, 3, 2, 2), {"normalize": True, "value_range": [0, 1]}),
        (lambda lib: lib.ones(2, 2, 2, 2), {"nrow": 1}),
        (lambda lib: lib.ones(7, 1, 1, 1), {"nrow": 3}),
    ):
        mine, theirs = (
            outcome(partial(made, library, tensors, given, named))
            for library, tensors in ((utils, tritensor), (vision.utils, torch))
        )
        assert mine == theirs
