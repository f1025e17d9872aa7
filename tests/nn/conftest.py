"""Devices that tests of several files run on."""

from __future__ import annotations

import pytest

from tritensor import cuda


@pytest.fixture
def two_devices():
    with cuda.simulate(devices=2, memory="1MB"):
        yield
