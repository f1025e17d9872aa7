"""Programs that give a wrong answer where a wait is missing, on devices where nothing runs before it is waited for."""

from __future__ import annotations

from . import copies, graphs, kernels, streams
from .late_device import registered

__all__ = ["PROGRAMS"]

# Launches come last: the programs that need a wait of theirs are tried from the end.
PROGRAMS = [
    each for module in (copies, streams, graphs, kernels) for each in registered if each.__module__ == module.__name__
]
