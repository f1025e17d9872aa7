"""The table of scenarios."""

from __future__ import annotations

import importlib.util
import os
import random
from collections import Counter
from collections.abc import Callable

Round = Callable[[random.Random], Counter[str]]

SCENARIOS: dict[str, Round] = {}


def scenario(needs: bool = True) -> Callable[[Round], Round]:
    """Add a function to the table under its name, where its machine has what it needs."""

    def add(function: Round) -> Round:
        if needs:
            SCENARIOS[function.__name__] = function
        return function

    return add


HAS_TRITON = importlib.util.find_spec("triton") is not None
HAS_FORK = hasattr(os, "fork")
