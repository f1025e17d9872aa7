"""The pictures of the examples: MNIST where its files are, else scikit-learn's digits in the same format."""

import gzip
import sys
from pathlib import Path

import numpy as np

TRAINING = 1437  # of scikit-learn's 1,797 digits, which the rest is for testing
FILES = {
    "train-images-idx3-ubyte": lambda pictures, labels: pictures[:TRAINING],
    "train-labels-idx1-ubyte": lambda pictures, labels: labels[:TRAINING],
    "t10k-images-idx3-ubyte": lambda pictures, labels: pictures[TRAINING:],
    "t10k-labels-idx1-ubyte": lambda pictures, labels: labels[TRAINING:],
}


def folder(root: Path) -> Path:
    """The folder to give to `datasets.MNIST`: `root` if MNIST is there, else one of small files that are made once."""
    raw = root / "MNIST" / "raw"
    if all((raw / name).exists() or (raw / f"{name}.gz").exists() for name in FILES):
        return root
    made = root / "digits"
    raw = made / "MNIST" / "raw"
    if not all((raw / f"{name}.gz").exists() for name in FILES):
        print(f"MNIST is not in {root}: writing scikit-learn's digits to {raw} in its format", file=sys.stderr)
        pictures, labels = digits()
        raw.mkdir(parents=True, exist_ok=True)
        for name, choose in FILES.items():
            with gzip.open(raw / f"{name}.gz", "wb") as file:
                file.write(idx(choose(pictures, labels)))
    return made


def digits() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's digits of 8x8 pixels, enlarged to 28x28 and in a random order, and what they are."""
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    pixels, labels = map(np.asarray, load_digits(return_X_y=True))
    order = np.random.default_rng(0).permutation(len(labels))
    pictures = np.asarray(zoom(pixels.reshape(-1, 8, 8)[order] / 16, (1, 3.5, 3.5), order=1))
    return (pictures * 255).round().astype(np.uint8), labels[order].astype(np.uint8)


def idx(array: np.ndarray) -> bytes:
    """An array of bytes as an IDX file: zeros, dtype and rank in four bytes, the sizes, then the elements."""
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()
