"""Mistakes of kernels that are found on simulated devices, each with the line of the kernel that makes it."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

import tritensor as torch
from tritensor.drivers import execution

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("running kernels needs Triton", allow_module_level=True)

from .planted import PLANTED, Planted, line_of

CASES = [
    pytest.param(name, mode, marks=[pytest.mark.thorough] if mode == "9.0" and "8.0" in planted.modes else [])
    for name, planted in PLANTED.items()
    for mode in planted.modes
]


def message_of(planted: Planted, mode: str) -> str:
    """The error or the warning of a launch."""
    options: dict[str, Any] = {"compiled": False}
    if mode != "interpreted":
        options = {"compiled": True, "capability": tuple(map(int, mode.split(".")))}
    with torch.cuda.simulate(races=True, **options), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            planted.launch(planted.kernel)
            torch.cuda.synchronize()  # where streams run late
        except (RuntimeError, AssertionError) as error:
            return str(error)
    assert len(warned) == 1, "nothing was found"
    return str(warned[0].message)


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_a_mistake_is_found_and_its_line_is_named(name: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = PLANTED[name]
    if planted.drop:
        parse, without = execution.parse, re.compile(rf"^.*{planted.drop}.*$", re.MULTILINE)
        monkeypatch.setattr(execution, "parse", lambda text: parse(without.sub("", text)))
    message = message_of(planted, mode)
    assert re.search(planted.words, message), message
    line = line_of(planted)
    assert re.search(rf"at planted\.py:{line}\b", message), f"line {line}: {message}"
