"""Pictures in files: read, written, and in grids."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, UnidentifiedImageError

import tritensor as torch
from tritensor.vision.io import ImageReadMode, decode_image, read_image, write_png
from tritensor.vision.utils import make_grid, save_image

ARRAY = np.random.default_rng(0).integers(0, 256, (5, 6, 3), dtype=np.uint8)
TENSOR = torch.from_numpy(np.ascontiguousarray(ARRAY.transpose(2, 0, 1)))


def png() -> torch.Tensor:
    """The bytes of a PNG file with the picture."""
    stream = io.BytesIO()
    Image.fromarray(ARRAY).save(stream, "png")
    return torch.tensor(list(stream.getvalue()), dtype=torch.uint8)


def bytes_of(path: Path) -> torch.Tensor:
    return torch.tensor(list(path.read_bytes()), dtype=torch.uint8)


def test_png_keeps_every_element(tmp_path: Path) -> None:
    for tensor in (TENSOR, TENSOR[:1]):
        write_png(tensor, tmp_path / "x.png", compression_level=0)
        assert read_image(tmp_path / "x.png").equal(tensor)
        assert decode_image(str(tmp_path / "x.png")).is_contiguous()
        assert decode_image(bytes_of(tmp_path / "x.png")).equal(tensor)
    write_png(TENSOR * 0, tmp_path / "y.png", compression_level=9)
    write_png(TENSOR * 0, tmp_path / "x.png", compression_level=0)
    assert (tmp_path / "y.png").stat().st_size < (tmp_path / "x.png").stat().st_size


def test_jpeg(tmp_path: Path) -> None:
    smooth = np.broadcast_to(np.arange(64, dtype=np.uint8).reshape(8, 8, 1), (8, 8, 3))
    Image.fromarray(np.ascontiguousarray(smooth)).save(tmp_path / "x.jpg", quality=100)
    assert np.abs(read_image(tmp_path / "x.jpg").numpy().astype(int) - smooth.transpose(2, 0, 1)).max() <= 3


@pytest.mark.parametrize(
    ("mode", "channels"),
    [("UNCHANGED", 3), ("GRAY", 1), ("GRAY_ALPHA", 2), ("RGB", 3), ("RGB_ALPHA", 4), ("RGBA", 4), ("gray", 1)],
)
def test_modes(mode: str, channels: int) -> None:
    assert decode_image(png(), mode).shape == (channels, 5, 6)
    assert decode_image(png(), ImageReadMode[mode.upper()]).shape == (channels, 5, 6)


@pytest.mark.parametrize(
    ("mode", "shape", "dtype"),
    [("1", (1, 5, 6), "uint8"), ("P", (3, 5, 6), "uint8"), ("I;16", (1, 5, 6), "uint16"), ("LA", (2, 5, 6), "uint8")],
)
def test_pictures_read_unchanged(tmp_path: Path, mode: str, shape: Any, dtype: str) -> None:
    Image.fromarray(ARRAY).convert("L").convert(mode).save(tmp_path / "x.png")
    found = read_image(tmp_path / "x.png")
    assert found.shape == shape and found.dtype is getattr(torch, dtype)
    assert read_image(tmp_path / "x.png", "RGB").shape == (3, 5, 6)


def test_orientation(tmp_path: Path) -> None:
    picture = Image.fromarray(ARRAY)
    exif = Image.Exif()
    exif[0x0112] = 6  # held so that it has to be turned by a quarter
    picture.save(tmp_path / "x.png", exif=exif)
    assert read_image(tmp_path / "x.png").shape == (3, 5, 6)
    upright = read_image(tmp_path / "x.png", apply_exif_orientation=True)
    assert upright.equal(TENSOR.transpose(1, 2).flip(2))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: write_png(TENSOR.float(), "x"), TypeError, "Input should be a picture"),
        (lambda: write_png(TENSOR[:2], "x"), TypeError, r"got .*uint8 of shape \(2, 5, 6\)"),
        (lambda: write_png(ARRAY, "x"), TypeError, "got ndarray"),
        (lambda: write_png(TENSOR, "x", 10), ValueError, "Compression level should be between 0 and 9"),
        (lambda: decode_image(TENSOR), TypeError, "Expected a 1-dimensional uint8 tensor"),
        (lambda: decode_image(png(), "x"), KeyError, "X"),
        (
            lambda: decode_image(png()[:-30]),
            OSError,
            "(?s)truncated.*the file is the bytes that were passed",
        ),
        (lambda: decode_image(torch.zeros(9, dtype=torch.uint8)), UnidentifiedImageError, "cannot identify"),
        (lambda: read_image("nowhere.png"), FileNotFoundError, r"nowhere\.png"),
        (lambda: make_grid(3), TypeError, "tensor or list of tensors expected, got <class 'int'>"),
        (lambda: make_grid([TENSOR, 3]), TypeError, "tensor or list of tensors expected, got a list containing"),
        (lambda: make_grid(TENSOR, normalize=True, value_range=[0, 1]), TypeError, "value_range has to be a tuple"),
    ],
)
def test_refusals(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_files_that_are_damaged_or_too_large_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_png(TENSOR, tmp_path / "x.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 5)
    with pytest.raises(Image.DecompressionBombError, match=r"the file is .*x\.png"):
        read_image(tmp_path / "x.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    (tmp_path / "x.png").write_bytes((tmp_path / "x.png").read_bytes()[:-30])
    with pytest.raises(OSError, match=r"the file is .*x\.png"):
        read_image(tmp_path / "x.png")


def test_grids() -> None:
    pictures = torch.arange(1, 4).view(3, 1, 1, 1).expand(3, 1, 1, 2).float()
    grid = make_grid(pictures, nrow=2, padding=1, pad_value=9)
    assert grid.shape == (3, 5, 7)
    assert grid[1].tolist() == [
        [9, 9, 9, 9, 9, 9, 9],
        [9, 1, 1, 9, 2, 2, 9],
        [9, 9, 9, 9, 9, 9, 9],
        [9, 3, 3, 9, 9, 9, 9],
        [9, 9, 9, 9, 9, 9, 9],
    ]
    assert make_grid(list(pictures)).equal(make_grid(pictures))
    assert make_grid(pictures[0, 0]).equal(make_grid(pictures[0])) and make_grid(pictures[0]).shape == (3, 1, 2)
    scaled = make_grid(pictures, padding=0, normalize=True)
    assert scaled[0].tolist() == [[0, 0, 0.5, 0.5, 1, 1]]
    assert make_grid(pictures, padding=0, normalize=True, value_range=(2, 4))[0].tolist() == [[0, 0, 0, 0, 0.5, 0.5]]
    assert make_grid(pictures, padding=0, normalize=True, scale_each=True)[0].tolist() == [[0] * 6]
    assert pictures.flatten().tolist() == [1, 1, 2, 2, 3, 3]
    assert not make_grid(pictures.requires_grad_()).requires_grad


def test_save_image(tmp_path: Path) -> None:
    pictures = torch.rand(5, 3, 4, 4)
    save_image(pictures, tmp_path / "x.png", nrow=3)
    expected = (make_grid(pictures, nrow=3).numpy() * np.float32(255) + np.float32(0.5)).clip(0, 255).astype(np.uint8)
    assert read_image(tmp_path / "x.png").numpy().tolist() == expected.tolist()
    stream = io.BytesIO()
    save_image(list(pictures), stream, format="bmp")
    assert Image.open(stream).size == (5 * 6 + 2, 8)
    with pytest.raises(ValueError, match="unknown file extension"):
        save_image(pictures, tmp_path / "x.unknown")
