"""`use_deterministic_algorithms`: what it says, what it fills, and which of several values at one place it keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor
from tritensor import settings

from ...needs import needs_triton


@pytest.fixture(autouse=True)
def switched_off():
    yield
    tritensor.use_deterministic_algorithms(False)
    tritensor.utils.deterministic.fill_uninitialized_memory = True


def modes(torch):
    """What is set by each way to set it, and the errors of wrong ones."""
    found = []

    def note():
        found.append((torch.get_deterministic_debug_mode(), torch.are_deterministic_algorithms_enabled()))
        found.append(torch.is_deterministic_algorithms_warn_only_enabled())

    for mode, options in ((True, {}), (True, {"warn_only": True}), (False, {})):
        torch.use_deterministic_algorithms(mode, **options)
        note()
    for mode in ("error", "warn", "default", 2, 1, 0, "all", 3, 1.0):
        try:
            torch.set_deterministic_debug_mode(mode)
            note()
        except (RuntimeError, TypeError) as error:
            found.append((isinstance(error, TypeError), str(error)))
    for call in (
        lambda: torch.use_deterministic_algorithms(1),
        lambda: torch.use_deterministic_algorithms(True, warn_only="yes"),
        lambda: setattr(torch.utils.deterministic, "fill_uninitialized_memory", 1),
    ):
        with pytest.raises((RuntimeError, TypeError)) as info:
            call()
        found.append((isinstance(info.value, TypeError), str(info.value)))
    return found


def fillings(torch):
    """New memory under the mode, as lists of numbers."""
    found = []
    torch.use_deterministic_algorithms(True)
    for kind in ("float16", "bfloat16", "float32", "complex64", "int8", "uint8", "int64", "bool"):
        x = torch.ones(2, dtype=getattr(torch, kind))
        made = [torch.empty(2, dtype=x.dtype), torch.empty_like(x), x.new_empty(2), torch.empty_strided((2,), (2,))]
        made += [torch.ones(2, dtype=x.dtype).resize_(5), torch.empty_permuted((2, 1), (1, 0), dtype=x.dtype)]
        found += [str(each.tolist()) for each in made]
    return found


def test_modes_and_fillings():
    assert modes(tritensor)[:8] == [(2, True), False, (1, True), True, (0, False), False, (2, True), False]
    assert fillings(tritensor)[12:18] == ["[nan, nan]"] * 4 + ["[1.0, 1.0, nan, nan, nan]", "[[nan], [nan]]"]
    tritensor.utils.deterministic.fill_uninitialized_memory = False
    assert (
        tritensor.ones(2).resize_(2).tolist() == [1, 1] and not tritensor.utils.deterministic.fill_uninitialized_memory
    )
    tritensor.utils.deterministic.fill_uninitialized_memory = True
    assert math.isnan(tritensor.ones(1).resize_(3)[2]) and math.isnan(tritensor.empty(()))


@pytest.mark.peer
def test_modes_and_fillings_are_pytorchs():
    torch = pytest.importorskip("torch")
    try:
        assert modes(tritensor) == modes(torch)
        assert fillings(tritensor) == fillings(torch)
    finally:
        torch.use_deterministic_algorithms(False)


def written(device, kind):
    """Results of functions that write several values to one place."""
    rng = np.random.default_rng(0)
    x = tritensor.zeros(7, 5, dtype=kind, device=device)
    places = tritensor.from_numpy(rng.integers(0, 7, 20)).to(device)
    rows = tritensor.from_numpy(rng.integers(1, 99, (20, 5))).to(device).to(kind)
    found = [
        x.index_copy(0, places, rows),
        x.index_put((places,), rows),
        x.T.index_put((places % 5, places), rows[:, 0]),
    ]
    found.append(x.scatter(0, places.reshape(4, 5), rows[:4]))
    found.append(x.clone().put_(places % 35, rows[:, 1].contiguous()))
    changed = x.clone()
    changed[places, 1:3] = rows[:, 1:3]
    changed[:, places % 3] = 5  # a number
    return [each.cpu() for each in (*found, changed)]


@needs_triton
@pytest.mark.parametrize(
    "kind", ["float32", *[pytest.param(each, marks=pytest.mark.thorough) for each in ("float16", "complex64", "bool")]]
)
def test_of_several_values_the_last_is_kept(kind):
    kind = getattr(tritensor, kind)
    wanted = written("cpu", kind)
    with tritensor.cuda.simulate(), settings.grid_order("reverse"), settings.block(8):
        any_of_them = written("cuda", kind)
        tritensor.use_deterministic_algorithms(True)
        found = written("cuda", kind)
        made = [tritensor.empty(1, device="cuda"), tritensor.ones(1, device="cuda").resize_(2)[1:]]
        assert all(each.isnan().all() for each in made)
    assert all(own.equal(other) for own, other in zip(found, wanted, strict=True))
    assert kind is tritensor.bool or not any_of_them[0].equal(wanted[0])
