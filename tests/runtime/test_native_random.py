"""Random numbers that native code draws on the CPU have the bits of NumPy's reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.random import natively, reference
from tritensor.runtime import choice, native_rows

F = torch.nn.functional
pytestmark = pytest.mark.skipif(not choice.available(), reason="native code needs Triton, llvmlite and Linux on x86-64")

DRAWS: dict[str, Callable[[int, Any], Any]] = {
    "rand": lambda n, dtype: torch.rand(n, dtype=dtype),
    "randn": lambda n, dtype: torch.randn(n, dtype=dtype),
    "dropout": lambda n, dtype: F.dropout(torch.full((n,), 3.0, dtype=dtype), 0.3),
    "dropout of all": lambda n, dtype: F.dropout(torch.ones(n, dtype=dtype), 1.0),
    "dropout of columns": lambda n, dtype: F.dropout(torch.ones(n, 2, dtype=dtype).T, 0.5),
    "few integers": lambda n, dtype: torch.randint(-5, 100, (n,)),
    "many integers": lambda n, dtype: torch.randint(-5, 10**12, (n,)),
    "permutation": lambda n, dtype: torch.randperm(n),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_numbers_have_numpys_bits(dtype: Any) -> None:
    found: list[list[bytes]] = []
    for wanted in ("0", "force"):
        with settings.native_cpu(wanted):
            torch.manual_seed((1 << 63) + 5)
            sizes = (1, 2, 3, 7, 1000, 70001)
            found.append([draw(n, dtype).numpy().tobytes() for n in sizes for draw in DRAWS.values()])
    assert found[0] == found[1]
    assert all(each.template.made for each in natively._drawings.values())


@pytest.mark.parametrize("name", ["rand", "randn", "dropout", "many integers"])
def test_every_number_of_threads_draws_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch, same_number_of_threads: None
) -> None:
    monkeypatch.setattr(native_rows, "_PROGRAMS", 20)
    monkeypatch.setattr(natively, "_drawings", {})
    found = []
    with settings.native_cpu("force"):
        for number in (1, 2, 3, 7):
            torch.set_num_threads(number)
            torch.manual_seed(1)
            found.append(DRAWS[name](300_000, torch.float32).numpy().tobytes())
    assert len({*found}) == 1


def test_dropout_from_a_later_counter_has_numpys_bits() -> None:
    x, found = np.ones(1000, np.float32), []
    for wanted in ("0", "force"):
        with settings.native_cpu(wanted):
            found.append(reference.draw_dropout(x, 5, 6, 30000, 2.0, x.dtype, first=77))
    np.testing.assert_array_equal(*found)


def test_what_differs_is_drawn_by_numpy(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(natively, "_drawings", {})
    monkeypatch.setattr(natively, "_OFFSET", 8)
    right = natively._state
    monkeypatch.setattr(natively, "_state", lambda seed, offset, *rest: right(seed, offset + (offset == 8), *rest))
    found = []
    for wanted in ("0", "force"):
        with settings.native_cpu(wanted), settings.debug(1):
            torch.manual_seed(3)
            found.append([torch.rand(1000).numpy().tobytes() for _ in range(3)])
    assert found[0] == found[1]
    assert "uniform_kernel is computed by NumPy: it has other bits" in capsys.readouterr().err
