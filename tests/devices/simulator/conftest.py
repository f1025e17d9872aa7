"""Two simulated devices: one test for streams that run at once and for late ones, and late ones alone."""

from __future__ import annotations

import pytest

from tritensor import settings as options
from tritensor.drivers import simulate


@pytest.fixture(params=[False, True], ids=["prompt", "late"])
def simulator(request):
    with options.simulate_late(request.param), simulate(devices=2) as driver:
        yield driver


@pytest.fixture
def late():
    with options.simulate_late(True), simulate(devices=2) as driver:
        yield driver
