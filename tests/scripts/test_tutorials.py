"""Programs as tutorials write them, unchanged, run on the CPU and on two simulated devices; each trains.

The programs in `tutorials/` import torch and torchvision. Their data is made here.
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ..needs import needs_triton

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "tutorials"
needs_pictures = pytest.mark.skipif(importlib.util.find_spec("PIL") is None, reason="needs tritensor[vision]")


def pictures(name: str) -> Callable[[Path], None]:
    """Files of a data set in which the class is where a bright square lies."""

    def idx(array: np.ndarray) -> bytes:
        return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()

    def make(folder: Path) -> None:
        raw = folder / "data" / name / "raw"
        raw.mkdir(parents=True)
        rng = np.random.default_rng(0)
        for part, count in (("train", 24), ("t10k", 6)):
            images, labels = rng.integers(0, 60, (count, 28, 28), dtype=np.uint8), rng.integers(0, 10, count, np.uint8)
            for image, label in zip(images, labels, strict=True):
                image[2 * label : 2 * label + 8, 2 * label : 2 * label + 8] = 255
            (raw / f"{part}-images-idx3-ubyte").write_bytes(idx(images))
            (raw / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))

    return make


def corpus(folder: Path) -> None:
    (folder / "corpus").mkdir()
    for name, lines in (("train", 12), ("valid", 4)):
        (folder / "corpus" / f"{name}.txt").write_text("the cat sat on the mat\nthe dog ran\n" * lines, encoding="utf8")


def sentences(folder: Path) -> None:
    (folder / "data").mkdir()
    rng = random.Random(0)
    words = {"red": "rouge", "house": "maison", "a": "une", "cat": "chat", "big": "grande"}
    chosen = [rng.sample(sorted(words), 3) for _ in range(8)]
    lines = [f"{' '.join(each)}.\t{' '.join(words[word] for word in each)}." for each in chosen]
    (folder / "data" / "eng-fra.txt").write_text("\n".join(lines), encoding="utf-8")


def nothing(folder: Path) -> None:
    pass


# The program, what makes its data, its arguments on the CPU and on a device, what finds the losses in what it prints.
PICTURES = "--batch-size 6 --log-interval 1 --save-model --lr 1.0 --width"
WORDS = "--emsize 8 --nhid 8 --lr 5 --log-interval 1"
CASES = {
    "quickstart": (pictures("FashionMNIST"), "8 6 32", "1 12 8", r"^loss: +(\S+)"),
    "digits": (
        pictures("MNIST"),
        f"--epochs 8 --gamma 1.0 {PICTURES} 6",
        f"--epochs 1 --dry-run {PICTURES} 1",
        r"Loss: (\S+)",
    ),
    "word_language_model": (
        corpus,
        f"{WORDS} --epochs 4 --batch_size 4 --bptt 6",
        f"{WORDS} --epochs 1 --batch_size 32 --bptt 2 --words 3 --model GRU --tied",
        r"\| loss +(\S+)",
    ),
    "time_sequence_prediction": (
        nothing,
        "--steps 3 --length 20 --waves 8 --width 8",
        "--steps 1 --length 4 --waves 6 --width 3 --max_iter 2",
        r"^loss: (\S+)",
    ),
    "translation": (sentences, "16 4 12", "8 8 1", r"%\) (\S+)$"),
    "gpt": (nothing, "12 16 scratch", "2 16 scratch", r"loss (\S+)"),
}


def run(folder: Path, name: str, words: str, *options: str) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TRITENSOR_", "PYTHONPATH"))}
    done = subprocess.run(
        [sys.executable, "-m", "tritensor", "run", *options, PROGRAMS / f"{name}.py", *words.split()],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


NAMES = [pytest.param(name, marks=needs_pictures if name in ("quickstart", "digits") else ()) for name in CASES]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NAMES)
def test_the_program_trains(tmp_path: Path, name: str) -> None:
    make, words, _, pattern = CASES[name]
    make(tmp_path)
    shown = run(tmp_path, name, words)
    losses = [float(loss) for loss in re.findall(pattern, shown, re.MULTILINE)]
    third = len(losses) // 3
    assert third and np.mean(losses[-third:]) < 0.9 * np.mean(losses[:third]), shown
    if name == "gpt":
        assert "bfloat16 cpu" in shown
        again = run(tmp_path, name, "2 16 resume")
        assert "iter 12: loss" in again and float(re.findall(pattern, again)[0]) < losses[0]


@pytest.mark.sampled(1)
@needs_triton
@pytest.mark.parametrize("name", NAMES)
def test_the_program_runs_on_simulated_devices(tmp_path: Path, name: str) -> None:
    make, _, words, pattern = CASES[name]
    make(tmp_path)
    shown = run(tmp_path, name, words, "--simulate-cuda", "2")
    assert "cuda" in shown and re.findall(pattern, shown, re.MULTILINE)
    if name == "gpt":
        assert "float16 cuda:1" in shown


@pytest.mark.parametrize("name", CASES)
def test_nothing_of_the_program_is_missing(name: str) -> None:
    from tritensor.scripts.scan import Found, scan

    found = Found()
    scan(PROGRAMS / f"{name}.py", found)
    assert found.used and not found.missing and not found.refused
