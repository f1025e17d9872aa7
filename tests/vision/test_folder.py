"""Pictures in folders, and pictures of noise."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, UnidentifiedImageError

import tritensor as torch
from tritensor.vision import datasets, transforms
from tritensor.vision.datasets import folder as folders


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, size in (
        ("dog/b.png", 3),
        ("dog/a.JPG", 4),
        ("dog/more/c.ppm", 5),
        ("cat/d.bmp", 6),
        ("cat/note.txt", 0),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if size:
            Image.new("L", (size, size), 100).save(path)
        else:
            path.write_text("no picture")
    (tmp_path / "file").write_text("no folder")
    return tmp_path


def test_image_folder(root: Path) -> None:
    dataset = datasets.ImageFolder(str(root), transforms.ToTensor(), lambda target: -target)
    assert dataset.classes == ["cat", "dog"] and dataset.class_to_idx == {"cat": 0, "dog": 1}
    names = ["cat/d.bmp", "dog/a.JPG", "dog/b.png", "dog/more/c.ppm"]
    assert dataset.imgs == dataset.samples == [(str(root / name), int("dog" in name)) for name in names]
    assert dataset.targets == [0, 1, 1, 1] and len(dataset) == 4
    picture, target = dataset[2]
    assert picture.shape == (3, 3, 3) and target == -1
    assert repr(dataset) == (
        f"Dataset ImageFolder\n    Number of datapoints: 4\n    Root location: {root}\n    StandardTransform\n"
        f"Transform: ToTensor()\nTarget transform: {dataset.target_transform!r}"
    )


def test_dataset_folder(root: Path) -> None:
    dataset = datasets.DatasetFolder(root, lambda path: Path(path).read_text(), (".txt",), allow_empty=True)
    assert [*dataset] == [("no picture", 0)]
    only = datasets.ImageFolder(root, is_valid_file=lambda path: path.endswith(("b.png", "d.bmp")))
    assert len(only) == 2 and only.extensions is None


def test_folders_without_classes_or_files(root: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^Couldn't find any class folder in .*/cat\.$"):
        datasets.ImageFolder(root / "cat")
    (root / "bird").mkdir()
    words = r"^Found no valid file for the classes bird. Supported extensions are: .jpg, .jpeg, .png, .ppm, .bmp, .pgm"
    with pytest.raises(FileNotFoundError, match=words):
        datasets.ImageFolder(root)
    assert datasets.ImageFolder(root, allow_empty=True).classes == ["bird", "cat", "dog"]
    with pytest.raises(FileNotFoundError):
        datasets.ImageFolder(root / "nowhere")
    with pytest.raises(ValueError, match="Both extensions and is_valid_file cannot be None"):
        datasets.DatasetFolder(root, str)
    with pytest.raises(ValueError, match="The class_to_idx parameter cannot be None"):
        datasets.DatasetFolder.make_dataset(root, None, (".png",))  # type: ignore[arg-type]


def test_a_truncated_picture_is_named(root: Path) -> None:
    path = root / "dog" / "b.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40), dtype=np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(OSError, match=r"^image file is truncated.*\n  the file is .*b\.png"):
        datasets.ImageFolder(root)[2]
    path.write_text("no picture")
    with pytest.raises(UnidentifiedImageError, match=r"^cannot identify image file .*\n  the file is .*b\.png"):
        datasets.ImageFolder(root)[2]


def test_a_picture_that_is_a_bomb_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4)
    words = r"(?s)^Image size \(9 pixels\) exceeds limit of 8 pixels.*the file is .*b\.png"
    with pytest.raises(Image.DecompressionBombError, match=words):
        datasets.ImageFolder(root)[2]
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 8)
    with pytest.warns(Image.DecompressionBombWarning):
        datasets.ImageFolder(root)[2]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("end", ["png", "jpg", "bmp", "tiff", "webp", "ppm"])
@given(data=st.data())
def test_mutated_pictures(tmp_path_factory: pytest.TempPathFactory, end: str, data: st.DataObject) -> None:
    """Whatever bytes are changed: a picture, or an OSError that names the file."""
    path = tmp_path_factory.mktemp("pictures") / f"x.{end}"
    Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(path)
    mutated = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(mutated) - 1))
        mutated[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    path.write_bytes(mutated)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert folders.default_loader(path).mode == "RGB"
    except (OSError, Image.DecompressionBombError) as error:
        named = str(path) in str(error)
        assert named


def test_fake_data() -> None:
    state = torch.get_rng_state()
    dataset = datasets.FakeData(4, (3, 6, 5), 10, transforms.ToTensor())
    assert len(dataset) == 4
    pictures, targets = zip(*dataset, strict=True)
    assert all(picture.shape == (3, 6, 5) for picture in pictures) and {type(target) for target in targets} == {int}
    assert torch.equal(dataset[2][0], pictures[2]) and not torch.equal(pictures[0], pictures[1])
    shifted = datasets.FakeData(3, (3, 6, 5), 10, transforms.ToTensor(), lambda target: target + 100, random_offset=1)
    assert torch.equal(shifted[0][0], pictures[1]) and shifted[0][1] == targets[1] + 100
    assert torch.equal(torch.get_rng_state(), state)
    with pytest.raises(IndexError, match="FakeData index out of range"):
        dataset[4]
    assert repr(datasets.FakeData(4)) == "Dataset FakeData\n    Number of datapoints: 4"
    with pytest.raises(ValueError, match="Only transforms or transform/target_transform"):
        datasets.VisionDataset("x", transforms=str, transform=str)
