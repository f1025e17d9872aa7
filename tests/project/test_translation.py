"""The example of a sequence-to-sequence model: as its user runs it, what it is given, and beside PyTorch's."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tritensor

from ..needs import needs_triton

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "translation.py"
SMALL = ("--batch", "4", "--width", "8", "--heads", "2", "--layers", "1", "--test", "3")


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **settings, "PYTHONPATH": str(SCRIPT.parents[1])}
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


def test_it_learns_and_translates() -> None:
    done = run("--steps", "30", "--lr", "0.02", *SMALL)
    assert done.returncode == 0, done.stderr
    found = re.search(r"30 steps in [\d.]+ s, loss ([\d.]+) to ([\d.]+)\n", done.stdout)
    assert found and float(found[2]) < 0.7 * float(found[1]), done.stdout
    assert re.search(r"\d of 3 dates are right, [\d.]+ % of the letters\n", done.stdout)
    assert done.stdout.count(" -> ") == 3


@needs_triton
@pytest.mark.slow
def test_it_runs_on_a_simulated_device() -> None:
    done = run("--device", "cuda", "--steps", "2", *SMALL, TRITENSOR_SIMULATE_CUDA="1", TRITENSOR_CHECK="1")
    assert done.returncode == 0, done.stderr
    assert "2 steps in" in done.stdout and done.stdout.count(" -> ") == 3


def test_heads_that_do_not_divide() -> None:
    done = run("--width", "10", "--heads", "4")
    assert done.returncode != 0 and "--width 10 cannot be shared out to 4 heads" in done.stderr


def program(library: str) -> ModuleType:
    """The example, or the same with another library in tritensor's place."""
    text = SCRIPT.read_text(encoding="utf-8")
    if library != "tritensor":
        text = text.replace("import tritensor as torch", "import torch").replace("from tritensor", f"from {library}")
    module = ModuleType("translation")
    exec(compile(text, str(SCRIPT), "exec"), module.__dict__)
    return module


def test_dates_and_their_translations() -> None:
    names = program("tritensor")
    source, target = names.draw_batch(random.Random(0), 200)
    texts = [names.text_of(row) for row in source.tolist()]
    dates = [names.text_of(row) for row in target.tolist()]
    assert all(re.fullmatch(r"(19[7-9]|20[0-6])\d-\d\d-\d\d", date) for date in dates)
    pairs = dict(zip(texts, dates, strict=True))
    known = next(text for text in texts if re.fullmatch(r"\d+\.\d+\.\d+", text))
    assert pairs[known] == "{2}-{1:0>2}-{0:0>2}".format(*known.split("."))
    assert max(map(len, texts)) <= names.LENGTH and len(set(map(len, texts))) > 5
    assert not (source == names.PADDING).all(1).any() and (target[:, 0] == names.START).all()


def test_the_best_letters_are_written() -> None:
    names = program("tritensor")
    tritensor.manual_seed(0)
    model = names.Translator(8, 2, 1).double().eval()
    source, _ = names.draw_batch(random.Random(0), 5)
    written = model.translate(source, 6)
    scores = model(source, written[:, :-1])
    assert tritensor.equal(scores.argmax(-1), written[:, 1:])
    alone = model.translate(source[2:3][:, source[2] != names.PADDING], 6)  # padding changes nothing
    assert tritensor.equal(alone[0], written[2])


@pytest.mark.peer
def test_the_losses_are_pytorchs() -> None:
    peer = pytest.importorskip("torch")
    found, weights = [], {}
    for library in (tritensor, peer):
        names = program(library.__name__)
        model = names.Translator(16, 2, 2).double()
        if library is tritensor:
            weights = {name: value.numpy().copy() for name, value in model.state_dict().items()}
        else:
            model.load_state_dict({name: peer.tensor(value) for name, value in weights.items()})
        optimizer: Any = library.optim.Adam(model.parameters(), lr=2e-3)
        rng = random.Random(0)
        found.append([names.step(model, optimizer, *names.draw_batch(rng, 8)) for _ in range(20)])
    assert len(found[0]) == 20 and found[0][-1] < found[0][0]
    np.testing.assert_allclose(*found, rtol=1e-8)
