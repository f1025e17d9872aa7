"""`cuda.tune`: what it tries, what it keeps, and that launches use it; by prediction and, of a device that does not
predict, by its events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tritensor as torch
from tritensor import settings
from tritensor.errors import ArgumentError, DeviceError, KernelError
from tritensor.runtime import choices

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("compiling needs Triton", allow_module_level=True)

from tritensor.cuda import tuning
from tritensor.drivers import DeviceProperties, active
from tritensor.drivers.compiled import CompiledSimulator
from tritensor.kernels.matmul import launch as matmul

CARD = DeviceProperties("a card", 9, 0, 0, 132)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with settings.cache_dir(str(tmp_path)):
        yield tmp_path


def entry(seconds: float, measured: bool, best: tuple[object, ...] = (1, 2)) -> choices.Entry:
    return choices.Entry(best, seconds, 1.0, measured)


def asked(found: list[tuple[int, int]]) -> tuple[int, int]:
    return choices.of("kind", (3,), CARD, lambda: found, lambda: (0, 0), lambda: None)


def test_what_is_kept_is_used_if_it_is_still_there(folder: Path) -> None:
    assert asked([(1, 2)]) == (0, 0)
    choices.keep(CARD, {"kind (3,)": entry(0.5, False)})
    assert asked([(5, 6), (1, 2)]) == (1, 2)
    assert asked([(5, 6)]) == (0, 0)
    assert choices.of("kind", (4,), CARD, lambda: [(1, 2)], lambda: (0, 0), lambda: None) == (0, 0)


def test_measured_times_replace_predicted_ones_and_not_the_other_way_round() -> None:
    choices.keep(CARD, {"a": entry(0.5, False), "b": entry(0.4, True)})
    choices.keep(CARD, {"a": entry(0.9, True), "b": entry(0.1, False), "c": entry(0.2, False)})
    assert {key: (each.seconds, each.measured) for key, each in choices.entries(CARD).items()} == {
        "a": (0.9, True),
        "b": (0.4, True),
        "c": (0.2, False),
    }


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"kind (3,)": 7}'])
def test_a_damaged_file_is_none(text: str) -> None:
    choices.keep(CARD, {"kind (3,)": entry(0.5, False)}).write_text(text)
    choices._read.cache_clear()
    assert asked([(1, 2)]) == (0, 0)


def test_each_problem_is_tried_once_and_what_does_not_run_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[int, int]] = []
    session = tuning._Session(None)

    def again() -> None:
        one = choices.of("kind", (3,), CARD, lambda: [(1, 1), (2, 2), (3, 3)], lambda: (2, 2), again)
        tried.append(one)
        if one == (1, 1):
            raise KernelError("it takes too much shared memory")

    monkeypatch.setattr(session, "_seconds", lambda run: (run(), 1.0 / sum(tried[-1]))[1])
    monkeypatch.setattr(choices, "tuner", session)
    for _ in range(2):
        assert choices.of("kind", (3,), CARD, lambda: [(1, 1), (2, 2), (3, 3)], lambda: (2, 2), again) == (3, 3)
    assert tried == [(2, 2), (1, 1), (3, 3)]
    assert session.found == [tuning.Tuned("kind (3,)", (3, 3), 2, 1 / 6, 1 / 4)]


def test_the_usual_configuration_has_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def again() -> None:
        raise KernelError("a mistake")

    monkeypatch.setattr(choices, "tuner", tuning._Session(None))
    with pytest.raises(KernelError, match="a mistake"):
        choices.of("kind", (3,), CARD, lambda: [(1, 1)], lambda: (1, 1), again)
    assert choices.forced is None


@pytest.mark.parametrize("measured", [False, True], ids=["predicted", "measured"])
def test_products_are_tuned_and_then_launched_so(measured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    every = matmul.candidates
    monkeypatch.setattr(matmul, "candidates", lambda *of: every(*of)[-2:])
    if measured:
        monkeypatch.setattr(CompiledSimulator, "predicts", False)
        monkeypatch.setattr(tuning, "_MOST", 2)
    with torch.cuda.simulate(1, compiled=True):
        x = torch.arange(48.0 * 48, device="cuda").reshape(48, 48).to(torch.bfloat16)
        found = torch.cuda.tune(lambda: x @ x)
        assert [each.tried > 1 for each in found] == [True] and found.measured is measured
        assert ("predicted, not measured" in str(found)) is not measured and "1 problems" in str(found)
        device = active().properties(0) if measured else CARD  # an H100 has as many multiprocessors
        (kept,) = choices.entries(device).values()
        assert kept.best == found[0].best and kept.measured is measured
        properties = active().pose(multi_processor_count=device.multi_processor_count)
        monkeypatch.setattr(matmul, "choose", lambda *_: pytest.fail("chosen, not looked up"))
        host = x.float().cpu()
        assert (x @ x).float().cpu().allclose(host @ host, rtol=0.05)
        active().pose(**properties)


def test_what_cannot_be_tuned() -> None:
    with torch.cuda.simulate(1), pytest.raises(DeviceError, match="compiled"):
        torch.cuda.tune(lambda: None)
    with torch.cuda.simulate(1, compiled=True):
        assert torch.cuda.tune(lambda: None) == ()
        with pytest.raises(ArgumentError, match="no card is called 'gtx'"):
            torch.cuda.tune(lambda: None, card="gtx")


def test_a_card_is_named_in_simulation_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompiledSimulator, "predicts", False)
    with torch.cuda.simulate(1, compiled=True), pytest.raises(ArgumentError, match="times are measured"):
        torch.cuda.tune(lambda: None, card="h100")
