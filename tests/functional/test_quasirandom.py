"""Sobol sequences: points that are known, those of PyTorch, and scrambled ones that are as even."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor.quasirandom import SobolEngine

pytest.importorskip("scipy")


def test_first_points_and_the_way_through_them() -> None:
    engine = torch.quasirandom.SobolEngine(2)
    whole = engine.draw(8)
    assert whole[:4].tolist() == [[0, 0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]] and engine.num_generated == 8
    assert torch.equal(engine.reset().draw(3), whole[:3]) and torch.equal(engine.fast_forward(2).draw(), whole[5:6])
    assert torch.equal(engine.reset().draw_base2(2, dtype=torch.float64), whole[:4].double())
    assert torch.equal(engine.draw(4, out=torch.empty(0)), whole[4:]) and repr(engine) == "SobolEngine(dimension=2)"
    assert engine.draw(0).shape == (0, 2)
    with pytest.raises(ValueError, match=r"The balance properties of Sobol' points require n to be a power of 2\. 8"):
        engine.draw_base2(1)
    with pytest.raises(ValueError, match="Supported range of dimensionality for SobolEngine is"):
        SobolEngine(0)


def test_scrambled_points_are_even_and_follow_the_seed() -> None:
    engine = SobolEngine(5, scramble=True, seed=3)
    points = engine.draw(256, dtype=torch.float64)
    assert all(len(set(column)) == 256 for column in (points.numpy() * 256).astype(int).T)
    assert torch.equal(SobolEngine(5, True, 3).draw(256, dtype=torch.float64), points)
    assert not torch.equal(SobolEngine(5, True, 4).draw(256, dtype=torch.float64), points)
    assert torch.equal(engine.reset().draw(2, dtype=torch.float64), points[:2]) and "scramble=True, seed=3" in repr(
        engine
    )
    torch.manual_seed(1)
    one, other = SobolEngine(2, True).draw(4), SobolEngine(2, True).draw(4)
    torch.manual_seed(1)
    assert torch.equal(SobolEngine(2, True).draw(4), one) and not torch.equal(one, other)


def test_without_scipy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError, match="pip install scipy"):
        SobolEngine(2)


@pytest.mark.peer
def test_points_are_pytorchs() -> None:
    peer = pytest.importorskip("torch")
    for dimension in (1, 7, 300):
        theirs, ours = peer.quasirandom.SobolEngine(dimension), SobolEngine(dimension)
        for count in (1, 2, 9):
            np.testing.assert_array_equal(theirs.draw(count).numpy(), ours.draw(count).numpy())
