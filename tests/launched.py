"""Which kernels are launched on simulated devices, whatever runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tritensor.runtime import launch as launching


def note_launches(monkeypatch: pytest.MonkeyPatch, note: Callable[[Any, tuple[int, int, int]], Any]) -> list[Any]:
    """What `note` makes of the kernel and the grid of each launch from now on."""
    found: list[Any] = []
    request = launching.Request

    def noted(kernel: Any, grid: tuple[int, int, int], *rest: Any) -> Any:
        found.append(note(kernel, grid))
        return request(kernel, grid, *rest)

    monkeypatch.setattr(launching, "Request", noted)
    return found
