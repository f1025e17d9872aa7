"""The devices that the tests of this folder run on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tritensor as torch
from tritensor import cuda

from ..needs import needs_triton


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_triton)])
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """The CPU, and a simulated device."""
    if request.param == "cpu":
        yield torch.device("cpu")
    else:
        with cuda.simulate():
            yield torch.device("cuda", 0)
