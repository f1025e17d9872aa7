"""Small data in the formats that public programs read, instead of what they would download."""

from __future__ import annotations

import pickle
import random
import string
import struct
from pathlib import Path

import numpy as np


def mnist(folder: Path, count: int = 128) -> None:
    """MNIST's four files in `data/MNIST/raw`, with digits that are bars in different places."""
    raw = folder / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, size in (("train", count), ("t10k", count // 4)):
        draws = np.random.default_rng(len(name))
        labels = draws.integers(0, 10, size).astype(np.uint8)
        pictures = draws.integers(0, 64, (size, 28, 28)).astype(np.uint8)
        for picture, label in zip(pictures, labels, strict=True):
            picture[4 + 2 * label : 6 + 2 * label] += 128
        (raw / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">iiii", 2051, size, 28, 28) + pictures.tobytes())
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">ii", 2049, size) + labels.tobytes())


def pictures(folder: Path, classes: int = 3, each: int = 4, side: int = 256) -> None:
    """`data/train` and `data/val` with a folder of pictures for each class."""
    from PIL import Image

    draws = np.random.default_rng(0)
    for part in ("train", "val"):
        for label in range(classes):
            place = folder / "data" / part / f"class{label}"
            place.mkdir(parents=True)
            for number in range(each):
                coarse = draws.integers(0, 255, (8, 8, 3)).astype(np.uint8)
                Image.fromarray(coarse).resize((side, side)).save(place / f"{number}.png")


def words(count: int) -> str:
    """A text of made words."""
    draws = random.Random(0)
    known = ["".join(draws.choices(string.ascii_lowercase, k=draws.randint(2, 7))) for _ in range(60)]
    return " ".join(draws.choices(known, k=count)) + "\n"


def characters(folder: Path) -> None:
    """nanoGPT's files of a text's characters, as its data/shakespeare_char/prepare.py writes them."""
    text = words(2000)
    known = sorted(set(text))
    numbers = np.array([known.index(each) for each in text], np.uint16)
    place = folder / "data" / "shakespeare_char"
    place.mkdir(parents=True, exist_ok=True)
    numbers[: len(numbers) * 9 // 10].tofile(place / "train.bin")
    numbers[len(numbers) * 9 // 10 :].tofile(place / "val.bin")
    meta = {"vocab_size": len(known), "itos": dict(enumerate(known)), "stoi": {c: i for i, c in enumerate(known)}}
    (place / "meta.pkl").write_bytes(pickle.dumps(meta))


def text(folder: Path) -> None:
    """A text for minGPT's program."""
    (folder / "text.txt").write_text(words(60))
