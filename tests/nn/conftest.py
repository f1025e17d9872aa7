"""Devices that tests of several files run on."""

from __future__ import annotations

import pytest

from tritensor import cuda

from ..functional.conftest import device

__all__ = ["device", "two_devices"]


@pytest.fixture
def two_devices():
    with cuda.simulate(devices=2, memory="1MB"):
        yield
