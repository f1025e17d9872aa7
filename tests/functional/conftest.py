"""Where the tests run that ask for a device and do not say which."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tritensor as torch

from ..needs import needs_triton


@pytest.fixture(params=["cpu", pytest.param("cuda:0", marks=needs_triton)])
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """The CPU, then a simulated device."""
    if request.param == "cpu":
        yield torch.device("cpu")
    else:
        with torch.cuda.simulate(devices=1):
            yield torch.device(request.param)
