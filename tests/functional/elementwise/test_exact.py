"""Quotients and roots of compiled kernels are rounded as IEEE 754 asks; approximations are off there on purpose."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
import tritensor.nn.functional as F
from tritensor import cuda

from ...needs import needs_triton

N = np.arange(1, 3000, dtype=np.float32)
EXACT = {
    "quotient": (lambda x: (x + 1) / x, (N + 1) / N),
    "truncated": (lambda x: torch.div(x, x, rounding_mode="trunc"), 1 + 0 * N),
    "floor": (lambda x: (x * 7) // x, 7 + 0 * N),
    "remainder": (lambda x: (x * 3 + 2) % x, (N * 3 + 2) % N),
    "reciprocal": (torch.reciprocal, 1 / N),
    "addcdiv": (lambda x: torch.addcdiv(x, x, x + 1), N + N / (N + 1)),
    "square root": (lambda x: (x * x).sqrt(), N),
    "power": (lambda x: (x * x) ** 0.5, N),
    "whole powers": (
        lambda x: torch.stack([x**exponent for exponent in (1, 2, 3, -1, -2)]),
        np.stack([N, N * N, N * N * N, 1 / N, 1 / (N * N)]),
    ),
    "hardsigmoid": (lambda x: F.hardsigmoid(x + 3), 1 + 0 * N),
    "mean": (lambda x: x[:, None].expand(-1, 41).mean(1), N),
    "norm": (lambda x: x[:, None].expand(-1, 4).norm(dim=1), 2 * N),
}


@pytest.mark.sampled(3)
@needs_triton
@pytest.mark.parametrize("name", EXACT)
def test_compiled_kernels_are_exact(name):
    function, expected = EXACT[name]
    with cuda.simulate(compiled=True):
        np.testing.assert_array_equal(function(torch.from_numpy(N).cuda()).cpu().numpy(), expected)
