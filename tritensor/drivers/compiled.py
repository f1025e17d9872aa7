"""Simulated devices that run compiled kernels: the PTX that Triton makes for a card, executed in NumPy."""

# ruff: noqa: D102  the docstrings in protocol.py and compiling.py describe these methods

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .compiling import CompilingDriver
from .shadow import views_of
from .simulator import Simulator

if TYPE_CHECKING:
    from .loading import LaunchRequest
    from .streams import Stream


class CompiledSimulator(Simulator):
    """The driver of simulated devices that run PTX."""

    kind = "simulated in host memory, running compiled kernels"
    assembles = True
    pick = CompilingDriver.pick

    def pose(self, **figures: Any) -> dict[str, Any]:
        """Give the devices other properties, as of a certain card; returns those that they had.

        Kernels that divide work among the multiprocessors are launched as on that card.
        """
        before = {name: getattr(self._properties, name) for name in figures}
        self._properties = replace(self._properties, **figures)
        return before

    def launch(self, stream: Stream, request: LaunchRequest) -> None:
        if self.shadow is not None:
            self.shadow.views = views_of(request)
        CompilingDriver.launch(self, stream, request)
