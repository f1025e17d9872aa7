"""What tests of workers have in common."""

from __future__ import annotations

import gc

import pytest

from .processes import mapped, wait_for, workers


@pytest.fixture
def nothing_is_left():
    """No test leaves a worker or memory that it shared."""
    yield
    gc.collect()
    assert wait_for(lambda: not workers())
    assert not mapped()
