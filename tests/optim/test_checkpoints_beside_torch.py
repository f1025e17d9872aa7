"""Optimizers go on from checkpoints that PyTorch's wrote, and PyTorch's from ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor

NAMES = "Adadelta Adafactor Adagrad Adam AdamW Adamax ASGD LBFGS Muon NAdam RAdam RMSprop Rprop SGD"
RNG = np.random.default_rng(0)
START, GRADIENTS = RNG.standard_normal((4, 3)).astype("f"), RNG.standard_normal((4, 4, 3)).astype("f")


def made(library: Any, name: str, start: np.ndarray) -> tuple[Any, Any]:
    parameter = library.nn.Parameter(library.from_numpy(start.copy()))
    return parameter, getattr(library.optim, name)([parameter], **({"momentum": 0.9} if name == "SGD" else {}))


def steps(library: Any, parameter: Any, optimizer: Any, gradients: np.ndarray) -> None:
    for each in gradients:

        def closure(each: np.ndarray = each) -> Any:
            parameter.grad = None
            loss = ((parameter - library.from_numpy(each.copy())) ** 2).sum()
            loss.backward()
            return loss

        if type(optimizer).__name__ == "LBFGS":
            optimizer.step(closure)
        else:
            parameter.grad = library.from_numpy(each.copy())
            optimizer.step()


@pytest.mark.peer
@pytest.mark.parametrize("ours_first", [True, False])
@pytest.mark.parametrize("name", NAMES.split())
def test_a_checkpoint_of_the_other_library_is_gone_on_from(name: str, ours_first: bool, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    first, second = (tritensor, torch) if ours_first else (torch, tritensor)
    parameter, optimizer = made(first, name, START)
    steps(first, parameter, optimizer, GRADIENTS[:3])
    first.save({"state": optimizer.state_dict(), "parameter": parameter.detach()}, tmp_path / "file.pt")
    loaded = second.load(tmp_path / "file.pt", map_location="cpu")
    other, again = made(second, name, loaded["parameter"].numpy())
    again.load_state_dict(loaded["state"])
    steps(first, parameter, optimizer, GRADIENTS[3:])
    steps(second, other, again, GRADIENTS[3:])
    # Muon's products are of bfloat16
    np.testing.assert_allclose(
        other.detach().numpy(), parameter.detach().numpy(), rtol=2e-2 if name == "Muon" else 1e-5, atol=1e-6
    )
