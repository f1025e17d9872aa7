"""The table of scenarios."""

from __future__ import annotations

import contextlib
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator

import tritensor as torch

from ..needs import HAS_TRITON

Round = Callable[[random.Random], Counter[str]]

SCENARIOS: dict[str, Round] = {}


def scenario(needs: bool = True) -> Callable[[Round], Round]:
    """Add a function to the table under its name, where its machine has what it needs."""

    def add(function: Round) -> Round:
        if needs:
            SCENARIOS[function.__name__] = function
        return function

    return add


HAS_FORK = hasattr(os, "fork")


@contextlib.contextmanager
def somewhere(rng: random.Random) -> Iterator[str]:
    """A device: the CPU, a simulated one, or a GPU where there is one."""
    if torch.cuda.is_available():
        yield rng.choice(["cpu", "cuda"])
    elif HAS_TRITON and rng.random() < 0.5:
        with torch.cuda.simulate(devices=1):
            yield "cuda"
    else:
        yield "cpu"
