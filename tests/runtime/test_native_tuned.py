"""Sizes that are measured on a machine, kept and used; operators that are switched off by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.elementwise.activations import gelu_tanh
from tritensor.runtime import choice, tuned
from tritensor.scripts import doctor, tune
from tritensor.types import dtypes

pytestmark = pytest.mark.skipif(not choice.available(), reason="native code needs Triton, llvmlite and Linux on x86-64")
FLOAT32 = dtypes.float32.numpy


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path) -> Iterator[None]:
    with settings.cache_dir(str(tmp_path)), settings.native_cpu(""):
        yield


def test_what_is_measured_is_kept_and_used(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert choice.wins(gelu_tanh, FLOAT32, 10) and choice.wins(gelu_tanh, FLOAT32, 10**6)
    before = torch.get_num_threads()
    ratios = iter([1.5, 0.5, 0.4, 2.0] + [2.0] * 4 + [0.5] * 4)
    monkeypatch.setattr(tune, "measure", lambda work, blocks: {"ratio": next(ratios)})
    assert tune.main(["--only", "gelu_tanh"]) == 0
    assert "gelu_tanh" in capsys.readouterr().out
    assert torch.get_num_threads() == before
    assert [choice.wins(gelu_tanh, FLOAT32, size) for size in (10, 1000, 30_000, 10**6)] == [False, True, True, False]
    assert not choice.wins(gelu_tanh, dtypes.bfloat16.numpy, 1000)
    assert choice.wins(gelu_tanh, dtypes.float16.numpy, 10**8)
    assert f"measured here, 1 operators, {tuned.path()}" in doctor.report()
    tuned.keep({"other": ((1, 2), (3, 4), (5, 6))})
    assert {*tuned.ranges()} == {"gelu_tanh", "other"}
    tuned.path().write_text("{")
    tuned._read.cache_clear()
    assert choice.wins(gelu_tanh, FLOAT32, 10)
    assert "those of the declarations" in doctor.report()


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ([0.5, 0.5, 0.5, 0.5], choice.ALWAYS),
        ([1.5, 1.0, 0.97, 2.0], choice.NEVER),
        ([0.4, 0.4, 1.04, 0.7], choice.ALWAYS),
        ([0.7, 0.6, 1.5, 1.3], (1, 5477)),
        ([1.5, 1.1, 0.9, 0.4], (5477, choice.ALWAYS[1])),
    ],
)
def test_ranges_are_those_of_the_largest_gain(ratios: list[float], expected: tuple[int, int]) -> None:
    assert tune.range_of(ratios) == expected


@pytest.mark.thorough
def test_an_operator_is_measured() -> None:
    assert tune.main(["--only", "gelu_tanh", "--blocks", "1"]) == 0
    assert tuned.ranges()["gelu_tanh"][0][0] == 1


def test_operators_are_switched_off_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choice.wins(gelu_tanh, FLOAT32, 1000)
    with settings.native_off("silu,gelu_tanh"):
        assert not choice.wins(gelu_tanh, FLOAT32, 1000)
        with settings.native_cpu("force"):
            assert not choice.wins(gelu_tanh, FLOAT32, 1000)
            param: Any = torch.nn.Parameter(torch.ones(1000))
            optimizer = torch.optim.SGD([param], lr=0.1)
            param.grad = torch.ones(1000)
            with settings.native_off("sgd"):
                for _ in range(3):
                    optimizer.step()
                assert "_plans" not in vars(optimizer)
            optimizer.step()
            assert "_plans" in vars(optimizer)
    assert choice.wins(gelu_tanh, FLOAT32, 1000)
