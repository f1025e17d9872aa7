"""The examples with pictures: they run on both kinds of device, and learn as they do with PyTorch."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tritensor
from benchmarks.pictures import resnet18

from ..needs import needs_triton

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sklearn", "matplotlib", "PIL")),
    reason="the examples need tritensor[examples]",
)


# ---- they run -------------------------------------------------------------------------------------------------

# what each takes for a short run, and what it writes
PROGRAMS = {
    "mnist": (["--epochs", "1", "--batches", "2", "--save", "x.pt"], ["x.png", "x.pt"]),
    "vae": (["--epochs", "1", "--batches", "2", "--out", "o"], ["loss.png", "reconstructions.png", "samples.png"]),
    "dcgan": (["--epochs", "1", "--batches", "1", "--out", "o"], ["epoch-01.png", "loss.png"]),
    "resnet": (
        ["--epochs", "1", "--pictures", "2", "--batch", "2", "--size", "32", "--save", "x.pt"],
        ["x.png", "x.pt"],
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[needs_triton, pytest.mark.slow])])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run(name: str, device: str, tmp_path: Path) -> None:
    options, files = PROGRAMS[name]
    simulated = {"TRITENSOR_SIMULATE_CUDA": "1", "TRITENSOR_CHECK": "1"} if device == "cuda" else {}
    root = str(EXAMPLES.parent)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), "--device", device, *options],
        cwd=tmp_path,
        env={**os.environ, **simulated, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    out = tmp_path / "o" if "--out" in options else tmp_path
    assert sorted(path.name for path in out.iterdir() if path.is_file()) == files
    assert " steps" in done.stdout


@pytest.mark.slow
def test_a_resnet_trains_on_a_folder_of_pictures(tmp_path: Path) -> None:
    from PIL import Image

    for name, shade in (("dark", 10), ("light", 240)):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(2):
            Image.new("RGB", (40, 48), (shade, shade, number)).save(tmp_path / "pictures" / name / f"{number}.png")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "resnet.py"), "--folder", "pictures", "--epochs", "1", "--batch", "2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert tritensor.load(tmp_path / "resnet18.pt")["fc.weight"].shape == (2, 512)


# ---- they learn as with PyTorch -----------------------------------------------------------------------------------


def program(name: str, library: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An example, or the same with PyTorch: its import lines changed, and those of vision left out."""
    text = (EXAMPLES / f"{name}.py").read_text()
    if library == "torch":
        pytest.importorskip("torch")
        text = re.sub(r"^from tritensor\.vision.*\n", "", text, flags=re.M)
        text = text.replace("import tritensor as torch", "import torch").replace("tritensor", "torch")
    monkeypatch.syspath_prepend(EXAMPLES)
    module = ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def with_equal_weights(own: Any, theirs: Any) -> tuple[Any, Any]:
    """Both models in float64, with the weights and buffers of the first."""
    pytorch = pytest.importorskip("torch")
    own.double(), theirs.double()
    theirs.load_state_dict({name: pytorch.tensor(value.numpy()) for name, value in own.state_dict().items()})
    for model in (own, theirs):
        for part in model.modules():
            if type(part).__name__ == "Dropout":
                part.p = 0.0
    return own, theirs


def assert_same_losses(modules: Any, models: Any, optimizer: Any, inputs: Any, targets: Any) -> None:
    """20 steps of a program with each library.

    Args:
        modules: the program with tritensor, and with PyTorch. models: what their `step` trains.
        optimizer: makes the optimizer of a model from a library's `optim`.
        inputs, targets: arrays with a row for each step.
    """
    found = []
    for module, model, library in zip(modules, models, (tritensor, pytest.importorskip("torch")), strict=True):
        steps = optimizer(library.optim, model)
        batches = zip(inputs, targets, strict=True)
        found.append([module.step(model, steps, library.tensor(x), library.tensor(y)) for x, y in batches])
    assert len(found[0]) == 20
    np.testing.assert_allclose(*found, rtol=1e-8)


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).random(shape)


def labels(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape) * 7 % 10


@pytest.mark.peer
def test_the_losses_of_mnist(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [program("mnist", library, monkeypatch) for library in ("tritensor", "torch")]
    models = with_equal_weights(*(module.Net() for module in modules))
    inputs = drawn(20, 8, 1, 28, 28), labels(20, 8)
    assert_same_losses(modules, models, lambda optim, x: optim.SGD(x.parameters(), lr=0.05, momentum=0.9), *inputs)


@pytest.mark.peer
def test_the_losses_of_the_autoencoder(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [program("vae", library, monkeypatch) for library in ("tritensor", "torch")]
    models = with_equal_weights(*(module.VAE() for module in modules))
    inputs = drawn(20, 8, 1, 28, 28), drawn(20, 8, 10)
    assert_same_losses(modules, models, lambda optim, x: optim.Adam(x.parameters(), lr=2e-3), *inputs)


@pytest.mark.peer
def test_the_losses_of_generator_and_discriminator(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [program("dcgan", library, monkeypatch) for library in ("tritensor", "torch")]
    generators = with_equal_weights(*(module.build_generator() for module in modules))
    discriminators = with_equal_weights(*(module.build_discriminator() for module in modules))

    def optimizers(optim: Any, models: Any) -> Any:
        return [optim.Adam(model.parameters(), lr=1e-3, betas=(0.5, 0.999)) for model in models]

    inputs = drawn(20, 6, 1, 28, 28) * 2 - 1, drawn(20, 6, 32, 1, 1)
    assert_same_losses(modules, list(zip(generators, discriminators, strict=True)), optimizers, *inputs)


@pytest.mark.peer
def test_the_losses_of_a_resnet(monkeypatch: pytest.MonkeyPatch) -> None:
    pytorch = pytest.importorskip("torch")
    from tritensor.vision import models as own_models

    # the program's step is the same for both; only its functional module is the library's
    modules = [program("resnet", "tritensor", monkeypatch) for _ in range(2)]
    monkeypatch.setattr(modules[1], "F", pytorch.nn.functional)
    theirs = resnet18(pytorch, 10)
    models = with_equal_weights(own_models.resnet18(num_classes=10), theirs)
    # 32x32 end as one element in each channel: the variance of four numbers multiplies rounding by 100 a step
    inputs = drawn(20, 4, 3, 64, 64), labels(20, 4)

    def optimizer(optim: Any, model: Any) -> Any:
        return optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)

    assert_same_losses(modules, models, optimizer, *inputs)


@pytest.mark.peer
def test_a_checkpoint_of_a_resnet_of_torchvision(tmp_path: Path) -> None:
    pytorch = pytest.importorskip("torch")
    from tritensor.vision import models as own_models

    theirs = resnet18(pytorch, 1000)
    theirs(pytorch.randn(4, 3, 64, 64))  # which changes the running statistics
    pytorch.save(theirs.state_dict(), tmp_path / "resnet18.pth")
    own = own_models.resnet18()
    assert str(own.load_state_dict(tritensor.load(tmp_path / "resnet18.pth"))) == "<All keys matched successfully>"
    x = pytorch.randn(2, 3, 64, 64)
    with pytorch.no_grad(), tritensor.no_grad():
        expected, found = theirs.eval()(x), own.eval()(tritensor.tensor(x.numpy()))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
