"""What is here imports PyTorch's own tests, which takes 3 seconds: it is collected where it is asked for alone."""

from __future__ import annotations

import importlib.util

import pytest

from ..selection import left_out


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Leave it out where tests beside PyTorch are, and where PyTorch's tests cannot be imported."""
    found = all(importlib.util.find_spec(name) for name in ("torch", "expecttest"))
    return True if "peer" in left_out(config) or not found else None
