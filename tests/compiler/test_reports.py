"""What is said of the groups of a compiled function: errors, kernels that are refused, profiles, predictions."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as torch
from tritensor.kernels.fused import plans
from tritensor.kernels.fused.family import Fused

from ..needs import needs_triton


def chain(x: torch.Tensor) -> torch.Tensor:
    y = (x * 2 + 1).view(-1)
    z = y.sigmoid()
    return z * y


FIRST = chain.__code__.co_firstlineno
LINES = [f"{names} at {__file__}:{FIRST + n} in chain" for n, names in ((1, "mul, add"), (2, "sigmoid"), (3, "mul"))]


@needs_triton
def test_out_of_memory_names_operators_and_lines() -> None:
    with torch.cuda.simulate(devices=1, memory="1MB"):
        x = torch.ones(500, 400, device="cuda")
        with pytest.raises(torch.cuda.OutOfMemoryError) as raised:
            torch.compile(chain)(x)
    assert raised.value.__notes__ == ["while computing one kernel of " + "; ".join(LINES)]


def test_errors_of_the_processor_name_operators_and_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **named: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(Fused, "_composed", fail)
    monkeypatch.setattr(plans, "_operators", {})
    with pytest.raises(MemoryError) as raised:
        torch.compile(chain)(torch.ones(3, 57))
    assert raised.value.__notes__ == ["while computing one kernel of " + "; ".join(LINES)]
