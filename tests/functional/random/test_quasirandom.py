"""Sobol sequences: PyTorch's points where they are not scrambled, and its scrambling of the same random digits."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import tritensor
from tritensor import quasirandom
from tritensor.functional.random import sobol
from tritensor.quasirandom import SobolEngine


def test_points_are_drawn_one_after_another():
    whole = SobolEngine(7).draw(40)
    engine = SobolEngine(7)
    out = tritensor.empty(0)
    parts = [engine.draw(), engine.draw(0), engine.draw(6), engine.draw(9, out), engine.draw_base2(4)]
    assert tritensor.cat(parts).equal(whole[:32]) and parts[3] is out and out.shape == (9, 7)
    assert engine.num_generated == 32 and engine.reset() is engine and engine.num_generated == 0
    assert (
        engine.fast_forward(0).fast_forward(5).fast_forward(2).draw(3, dtype=tritensor.float64).dtype
        is tritensor.float64
    )
    assert engine.draw(30).equal(whole[10:]) and engine.num_generated == 40
    half = SobolEngine(7).draw(40, dtype=tritensor.float16)
    assert half.equal(whole.half()) and half.dtype is tritensor.float16
    with pytest.raises(NotImplementedError, match="\"_sobol_engine_draw\" not implemented for 'Long'"):
        engine.draw(dtype=tritensor.int64)
    with pytest.raises(RuntimeError, match=r"Trying to create tensor with negative dimension -1: \[-1, 7\]"):
        engine.draw(-1)
    with pytest.raises(ValueError, match="The balance properties of Sobol' points require n to be a power of 2"):
        engine.draw_base2(3)
    for count in (0, 21202):
        with pytest.raises(ValueError, match=r"Supported range of dimensionality for SobolEngine is \[1, 21201\]"):
            SobolEngine(count)


def test_scrambled_points_are_even_and_those_of_their_seed():
    engine = SobolEngine(4, scramble=True, seed=3)
    assert (
        repr(engine) == "SobolEngine(dimension=4, scramble=True, seed=3)"
        and repr(SobolEngine(2)) == "SobolEngine(dimension=2)"
    )
    points = engine.draw(256, dtype=tritensor.float64).numpy()
    for column in points.T:  # one in each interval
        assert sorted(np.floor(column * 256)) == list(range(256))
    assert SobolEngine(4, scramble=True, seed=3).draw(256).equal(tritensor.tensor(points, dtype=tritensor.float32))
    tritensor.manual_seed(0)
    first = SobolEngine(4, scramble=True).draw(8)
    assert not first.equal(SobolEngine(4, scramble=True).draw(8))
    tritensor.manual_seed(0)
    assert SobolEngine(4, scramble=True).draw(8).equal(first)


def test_many_dimensions_need_scipy(monkeypatch):
    assert SobolEngine(1111).draw(4)[3, -1] in (0.25, 0.75)
    sobol._table.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="of more than 1111 dimensions") as info:
        SobolEngine(1112)
    assert "pip install scipy" in str(info.value)


@pytest.mark.peer
@pytest.mark.parametrize("dimension", [1, 2, 37, 1111, 1112, 21201])
def test_points_are_pytorchs(dimension):
    torch = pytest.importorskip("torch")
    if dimension > 1111:
        pytest.importorskip("scipy")
    theirs, ours = torch.quasirandom.SobolEngine(dimension), SobolEngine(dimension)
    assert (ours.sobolstate.numpy() == theirs.sobolstate.numpy()).all() and repr(ours) == repr(theirs)
    for step in ("draw", "fast_forward", "draw"):
        found = [getattr(each, step)(65) for each in (theirs, ours)]
        if step == "draw":
            np.testing.assert_array_equal(*[each.numpy() for each in found])
        assert (ours.quasi.numpy() == theirs.quasi.numpy()).all()


@pytest.mark.peer
def test_scrambling_is_pytorchs(monkeypatch):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    digits = {shape: rng.integers(0, 2, shape) for shape in ((5, 30), (5, 30, 30))}
    monkeypatch.setattr(torch, "randint", lambda high, shape, **options: torch.from_numpy(digits[shape]))
    monkeypatch.setattr(quasirandom, "randint", lambda high, shape, **options: tritensor.from_numpy(digits[shape]))
    theirs, ours = (each(5, scramble=True, seed=1) for each in (torch.quasirandom.SobolEngine, SobolEngine))
    np.testing.assert_array_equal(ours.draw(100).numpy(), theirs.draw(100).numpy())
    np.testing.assert_array_equal(ours.shift.numpy(), theirs.shift.numpy())
