"""The example of a language model: as its user runs it, captured as a graph, and beside PyTorch's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tritensor as torch

from ..needs import needs_triton
from .test_train_digits import run

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "language_model.py"
SMALL = ("--batch", "2", "--context", "8", "--width", "16", "--heads", "2")
SIZES = {"context": 8, "width": 16, "heads": 2, "dropout": 0.0}
LETTERS = 11


def run_example(*arguments: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    return run(*arguments, folder=folder, script=SCRIPT, **settings)


def losses_of(text: str) -> list[float]:
    found = re.search(r"has not seen: ([\d.]+), after \d+ steps in [\d.]+ s ([\d.]+)\n", text)
    assert found is not None, text
    return [float(found[1]), float(found[2])]


@pytest.mark.thorough
def test_it_learns_and_writes(tmp_path: Path) -> None:
    done = run_example("--steps", "60", "--write", "12", *SMALL, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    before, after = losses_of(done.stdout)
    assert before == pytest.approx(np.log(103), abs=0.2) and after < 3.6
    assert "parameters; " in done.stdout and "loss=" in done.stderr and "60/60" in done.stderr
    written = done.stdout.partition(" s ")[2].partition("\n")[2]
    assert written.startswith("T") and len(written.rstrip("\n")) <= 13 + 1


@pytest.mark.peer
def test_it_learns_pieces_of_words(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    text, held_out, pieces = program("tritensor").load_text(300)
    whole, _, letters = program("tritensor").load_text()
    assert len(pieces) == 300 and set(letters) < set(pieces) and any(len(piece) > 3 for piece in pieces)
    again = "".join(pieces[i] for i in text.tolist() + held_out.tolist())
    assert again.startswith("".join(letters[i] for i in whole.tolist())) and len(text) < 0.7 * len(whole)
    done = run_example("--steps", "60", "--write", "12", "--tokenizer", "300", *SMALL, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    before, after = losses_of(done.stdout)
    assert before == pytest.approx(np.log(300), abs=0.2) and after < before - 0.5


@needs_triton
@pytest.mark.slow
def test_it_learns_on_a_simulated_device_by_replays(tmp_path: Path) -> None:
    results = []
    for more in ((), ("--graph",)):
        few = ("--device", "cuda", "--steps", "3", "--lr", "0.02", "--write", "2", "--layers", "1", *SMALL)
        done = run_example(*few, *more, folder=tmp_path, TRITENSOR_SIMULATE_CUDA="1")
        assert done.returncode == 0, done.stderr
        before, after = losses_of(done.stdout)
        assert after < before - 0.1
        results.append(before)
    assert results[0] == results[1]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--graph",), "CUDA graphs on CUDA devices only"),
        (("--width", "10", "--heads", "4"), "cannot be shared out to 4 heads"),
        (("--device", "cuda"), "TRITENSOR_SIMULATE_CUDA=1"),
    ],
)
def test_it_says_what_it_cannot_do(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = run_example(*arguments, folder=tmp_path)
    assert done.returncode != 0 and words in done.stderr and "Traceback" not in done.stderr


def test_it_says_what_tokenizers_need(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    parse = program("tritensor").parse_arguments
    monkeypatch.setattr("sys.argv", ["language_model.py", "--tokenizer", "300"])
    monkeypatch.setitem(parse.__globals__, "find_spec", lambda name: None if name == "tokenizers" else 1 / 0)
    with pytest.raises(SystemExit):
        parse()
    assert "--tokenizer: pip install tokenizers" in capsys.readouterr().err


def program(library: str) -> SimpleNamespace:
    """The example's names, with another library in tritensor's place."""
    source = SCRIPT.read_text(encoding="utf-8")
    if library != "tritensor":
        for line in ("import tritensor as torch\n", "from tritensor import nn\n", "from tritensor.nn import "):
            assert line in source
            source = source.replace(line, line.replace("tritensor", library))
    names: dict[str, Any] = {"__name__": "language_model"}
    exec(compile(source, str(SCRIPT), "exec"), names)
    return SimpleNamespace(**names)


def trained(library: str, device: str, graph: bool = False, layers: int = 1, steps: int = 4) -> list[float]:
    """The losses of some steps from the same weights, on the same letters."""
    names = program(library)
    torch = names.torch
    rng = np.random.default_rng(0)
    model = names.GPT(LETTERS, layers=layers, **SIZES)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.from_numpy(rng.standard_normal(tuple(parameter.shape)).astype(np.float32) * 0.1))
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1, capturable=graph)
    x, y = (torch.from_numpy(rng.integers(0, LETTERS, (steps, 4, 8))) for _ in range(2))
    if not graph:
        return [names.training_step(model, optimizer, x[i].to(device), y[i].to(device)).item() for i in range(steps)]
    start = {name: value.clone() for name, value in model.state_dict().items()}
    step = names.captured(model, optimizer, x[0].to(device), y[0].to(device))
    model.load_state_dict(start)
    for state in optimizer.state.values():
        for value in state.values():
            value.zero_()
    return [step(x[i], y[i]).item() for i in range(steps)]


def written(cached: bool, device: str = "cpu", layers: int = 2, count: int = 14) -> tuple[list[int], list[int]]:
    """Letters that an untrained model writes, over the end of its context, and how many positions each takes."""
    torch.manual_seed(1)
    model = program("tritensor").GPT(LETTERS, layers=layers, **SIZES).double().to(device).eval()
    taken: list[int] = []
    model.last.register_forward_pre_hook(lambda module, args: taken.append(args[0].shape[1]))
    torch.manual_seed(2)
    # an untrained model has hardly any preferences, a low temperature makes some of them
    numbers = model.write(torch.tensor([[3, 1]], device=device), count, 0.1, cached=cached)
    return numbers[0].tolist(), taken


def test_letters_are_the_same_with_a_cache() -> None:
    (plain, many), (cached, few) = written(cached=False), written(cached=True)
    assert plain == cached and len(plain) == 16 and len(set(plain)) > 3
    assert many == [2, 3, 4, 5, 6, 7, 8, 4, 5, 6, 7, 8, 4, 5]
    assert few == [2, 1, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 4, 1]


@needs_triton
def test_a_device_writes_with_a_cache() -> None:
    with torch.cuda.simulate():
        letters, few = written(cached=True, device="cuda", layers=1, count=4)
    assert letters[0] == 3 and max(letters) < LETTERS and few == [2, 1, 1, 1]


def test_a_cache_gives_the_same_scores() -> None:
    torch.manual_seed(1)
    model = program("tritensor").GPT(LETTERS, layers=3, **SIZES).double()
    numbers = torch.tensor([[1, 5, 2, 7, 0, 3], [4, 4, 9, 1, 8, 2]])
    expected = model(numbers)
    caches: list[Any] = [[] for _ in range(3)]
    parts = [model(numbers[:, :3], caches), *(model(numbers[:, [place]], caches) for place in (3, 4, 5))]
    np.testing.assert_allclose(torch.cat(parts, 1).detach().numpy(), expected.detach().numpy(), rtol=1e-10)


@pytest.mark.thorough
@needs_triton
def test_a_device_and_a_graph_train_as_the_cpu_does() -> None:
    expected = trained("tritensor", "cpu")
    assert expected[0] != expected[1]
    with torch.cuda.simulate():
        assert trained("tritensor", "cuda") == pytest.approx(expected, rel=1e-4)
        assert trained("tritensor", "cuda", graph=True) == pytest.approx(expected, rel=1e-4)


@pytest.mark.peer
def test_it_trains_as_with_pytorch() -> None:
    pytest.importorskip("torch")
    ours, theirs = (trained(library, "cpu", layers=3, steps=20) for library in ("tritensor", "torch"))
    assert ours == pytest.approx(theirs, rel=1e-5)
