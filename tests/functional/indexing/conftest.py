"""Where the tests run."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

import tritensor as torch
from tritensor import settings

from ...needs import needs_triton


@pytest.fixture(
    params=["cpu", pytest.param("cuda", marks=needs_triton), pytest.param("cuda small blocks", marks=needs_triton)]
)
def device(request):
    """Where the tests run; with small blocks every kernel has several programs and a tail."""
    with ExitStack() as stack:
        if request.param != "cpu":
            stack.enter_context(torch.cuda.simulate(devices=1))
            stack.enter_context(settings.block(4 if "small" in request.param else 0))
        yield request.param.split()[0]
