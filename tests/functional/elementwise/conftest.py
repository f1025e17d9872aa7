"""Where the tests run."""

from __future__ import annotations

import pytest

import tritensor as torch


@pytest.fixture(params=["cpu", "cuda"], autouse=False)
def place(request):
    """Run a test on the CPU and in simulation."""
    if request.param == "cpu":
        yield torch.device("cpu")
        return
    pytest.importorskip("triton")
    with torch.cuda.simulate(devices=1):
        yield torch.device("cuda:0")
