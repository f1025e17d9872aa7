"""Settings: what the environment may say, what is refused, and blocks that set and put back."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tritensor import settings
from tritensor.settings import Setting


def made(text: str | None, like: Setting, monkeypatch: pytest.MonkeyPatch) -> Setting:
    """The setting as it would be in a process whose environment says `text`."""
    monkeypatch.delenv(like.variable, raising=False)
    if text is not None:
        monkeypatch.setenv(like.variable, text)
    parse = {
        "check": settings._flag,
        "simulate_late": settings._flag,
        "sanitize": settings._flag,
        "grid_order": settings._order,
        "simulate_engine": settings._engine,
    }
    name = like.variable.removeprefix("TRITENSOR_").lower()
    return Setting(like.variable, parse.get(name, settings._count), like.value, like.meaning)


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (settings.check, None, False),
        (settings.check, "1", True),
        (settings.check, "true", True),
        (settings.check, "YES", True),
        (settings.check, "On", True),
        (settings.check, "0", False),
        (settings.check, "", False),
        (settings.check, "off", False),
        (settings.check, "No", False),
        (settings.sanitize, "0", False),
        (settings.simulate_cuda, "2", 2),
        (settings.simulate_cuda, "", 0),
        (settings.block, "64", 64),
        (settings.grid_order, "reverse", "reverse"),
        (settings.grid_order, "shuffle", "shuffle"),
        (settings.simulate_engine, "interpreter", "interpreter"),
        (settings.simulate_engine, "", ""),
        (settings.native_threads, "2", 2),
    ],
)
def test_what_is_read(setting, text, value, monkeypatch) -> None:
    assert made(text, setting, monkeypatch).value == value


@pytest.mark.parametrize(
    ("setting", "text", "fact"),
    [
        (settings.check, "maybe", "expected 0 or 1, got 'maybe'"),
        (settings.check, "2", "expected 0 or 1"),
        (settings.simulate_cuda, "-1", "at least 0"),
        (settings.simulate_cuda, "two", "two"),
        (settings.block, "1.5", "1.5"),
        (settings.grid_order, "backwards", "expected forward, reverse, shuffle or every, got 'backwards'"),
        (settings.grid_order, "", "expected forward, reverse, shuffle or every"),
        (settings.simulate_engine, "fast", "expected native, interpreter or compiled"),
    ],
)
def test_what_is_refused_names_the_variable_and_its_meaning(setting, text, fact, monkeypatch) -> None:
    with pytest.raises(ValueError, match="TRITENSOR_") as caught:
        made(text, setting, monkeypatch)
    message = str(caught.value)
    assert setting.variable in message and fact in message and setting.meaning in message


def test_block_sets_and_puts_back() -> None:
    before = settings.debug.value
    with settings.debug(2):
        assert settings.debug.value == 2
        with settings.debug(1):
            assert settings.debug.value == 1
        assert settings.debug.value == 2
        with pytest.raises(KeyError), settings.debug(0):
            raise KeyError
        assert settings.debug.value == 2
    assert settings.debug.value == before


def test_every_setting_is_public_and_named_after_its_variable() -> None:
    found = {name: value for name, value in vars(settings).items() if isinstance(value, Setting)}
    assert set(found) == set(settings.__all__) - {"Setting"}
    for name, value in found.items():
        assert value.variable == f"TRITENSOR_{name.upper()}" and value.meaning
        assert value.variable in repr(value) and repr(value.value) in repr(value)


def test_the_environment_reaches_a_process() -> None:
    environment = {**os.environ, "TRITENSOR_SIMULATE_CUDA": "3", "TRITENSOR_GRID_ORDER": "shuffle"}
    code = "from tritensor import settings; print(settings.simulate_cuda.value, settings.grid_order.value)"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "shuffle"]
    environment["TRITENSOR_SIMULATE_CUDA"] = "many"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "ValueError: TRITENSOR_SIMULATE_CUDA" in done.stderr
    assert "how many CUDA devices to simulate" in done.stderr
