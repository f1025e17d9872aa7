"""The examples with recurrent layers: as their user runs them, on both kinds of device, and beside PyTorch's."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tritensor as torch

from ..needs import needs_triton
from .test_train_digits import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LETTERS = 11

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="the examples need tritensor[examples]"
)


def numbers_in(pattern: str, text: str) -> list[float]:
    found = re.search(pattern, text)
    assert found is not None, text
    return [float(each) for each in found.groups()]


@pytest.mark.thorough
def test_the_lstm_learns_and_writes(tmp_path: Path) -> None:
    small = ("--steps", "40", "--batch", "8", "--context", "16", "--width", "32", "--lr", "0.01", "--write", "12")
    done = run(*small, "--picture", "x.png", folder=tmp_path, script=EXAMPLES / "lstm_language_model.py")
    assert done.returncode == 0, done.stderr
    before, after = numbers_in(r"has not seen: ([\d.]+), after 40 steps in [\d.]+ s ([\d.]+)\n", done.stdout)
    assert before == pytest.approx(np.log(103), abs=0.2) and after < 3.6
    assert "parameters; " in done.stdout and "loss=" in done.stderr and "40/40" in done.stderr
    assert done.stdout.partition(" s ")[2].partition("\n")[2].startswith("T")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
def test_the_classifier_learns(tmp_path: Path) -> None:
    small = ("--epochs", "3", "--width", "32", "--classes", "3", "--lr", "0.01", "--picture", "x.png")
    done = run(*small, folder=tmp_path, script=EXAMPLES / "text_classifier.py")
    assert done.returncode == 0, done.stderr
    before, after = numbers_in(r"has not seen: ([\d.]+)%, after training ([\d.]+)%", done.stdout)
    assert after > max(before, 40) + 15
    assert "loss" in done.stderr and "sentences to learn from" in done.stdout
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@needs_triton
@pytest.mark.parametrize(
    "arguments",
    [
        "lstm_language_model --steps 2 --batch 2 --context 3 --width 4 --layers 1 --write 2",
        "text_classifier --epochs 1 --batches 1 --batch 2 --classes 1 --width 4",
    ],
)
@pytest.mark.slow
def test_they_run_on_a_simulated_device(arguments: str, tmp_path: Path) -> None:
    name, *rest = arguments.split()
    script = EXAMPLES / f"{name}.py"
    done = run(*rest, "--device", "cuda", folder=tmp_path, script=script, TRITENSOR_SIMULATE_CUDA="1")
    assert done.returncode == 0, done.stderr
    done = run(*rest, "--device", "cuda", folder=tmp_path, script=script)
    assert done.returncode != 0 and "TRITENSOR_SIMULATE_CUDA=1" in done.stderr and "Traceback" not in done.stderr


def program(name: str, library: str, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """An example's names, with another library in tritensor's place."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    source = re.sub(r"\b(import|from) tritensor\b", rf"\1 {library}", (EXAMPLES / f"{name}.py").read_text("utf-8"))
    names: dict[str, Any] = {"__name__": name}
    exec(compile(source, name, "exec"), names)
    sys.modules.pop("language_model", None)
    return SimpleNamespace(**names)


def with_weights(model: Any, torch: Any, device: str) -> Any:
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in model.parameters():
            drawn = rng.standard_normal(tuple(parameter.shape)).astype(np.float32)
            parameter.copy_(torch.from_numpy(drawn * np.float32(0.2)))
    return model.to(device)


def writer_losses(names: SimpleNamespace, device: str, steps: int) -> list[float]:
    """Of an LSTM that goes on from its states, from the same weights, on the same letters."""
    torch = names.torch
    model = with_weights(names.Writer(LETTERS, 8, 2, 0.0), torch, device)
    optimizer, states, losses = torch.optim.Adam(model.parameters(), lr=1e-2), None, []
    text = torch.from_numpy(np.random.default_rng(1).integers(0, LETTERS, 400))
    pieces = names.pieces_of(text, 4, 6)
    for _ in range(steps):
        x, y = (part.to(device) for part in next(pieces))
        loss, states = names.training_step(model, optimizer, x, y, states)
        losses.append(loss.item())
    return losses


def classifier_losses(names: SimpleNamespace, device: str, steps: int) -> list[float]:
    """Of a classifier of packed sentences, from the same weights, on the same sentences."""
    torch = names.torch
    model = with_weights(names.Classifier(LETTERS, 3, 8, 1), torch, device)
    optimizer, losses, rng = torch.optim.Adam(model.parameters(), lr=1e-2), [], np.random.default_rng(1)
    for _ in range(steps):
        lengths = rng.integers(1, 6, 4)
        examples = [(torch.from_numpy(rng.integers(0, LETTERS, length)), i % 3) for i, length in enumerate(lengths)]
        sentences, labels = names.collate(examples)
        optimizer.zero_grad()
        loss = names.F.cross_entropy(model(sentences.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


PROGRAMS = {"lstm_language_model": writer_losses, "text_classifier": classifier_losses}


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_device_trains_as_the_cpu_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = program(name, "tritensor", monkeypatch)
    expected = PROGRAMS[name](names, "cpu", 2)
    assert expected[0] != expected[1]
    with torch.cuda.simulate():
        assert PROGRAMS[name](names, "cuda", 2) == pytest.approx(expected, rel=1e-4)


@pytest.mark.peer
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_losses_are_pytorchs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    ours, theirs = (
        PROGRAMS[name](program(name, library, monkeypatch), "cpu", 20) for library in ("tritensor", "torch")
    )
    assert ours == pytest.approx(theirs, rel=1e-4)
