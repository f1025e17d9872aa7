"""Where the tests run."""

from __future__ import annotations

import pytest

import tritensor as torch


@pytest.fixture
def simulated():
    pytest.importorskip("triton")
    with torch.cuda.simulate(devices=2):
        yield torch.device("cuda:1")
