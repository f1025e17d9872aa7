"""How many Python functions one small call enters on the CPU: what its time is made of, counted without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as torch
from tritensor.nn import functional as F


def entered(call: Callable[[], Any]) -> int:
    """The number of Python functions that a call enters, itself left out; of one that was made before."""
    for _ in range(3):
        call()
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count - 1


def cases() -> dict[str, tuple[Callable[[], Any], int]]:
    """Calls, and the most functions that each may enter: what it enters with CPython 3.11 and NumPy 2.4, and 3."""
    image, kernels, bias = torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3), torch.ones(4)
    rows, row = torch.eye(4, 16).requires_grad_(), torch.ones(16, requires_grad=True)
    heads, matrix, some = torch.ones(1, 2, 4, 8), torch.eye(4), torch.eye(2, 8)
    steps, places = torch.ones(5, 1, 8), torch.tensor([1, 2])
    linear, norm, table = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.Embedding(10, 8)
    lstm, attention = torch.nn.LSTM(8, 8), torch.nn.MultiheadAttention(8, 2)
    return {
        "a + b": (lambda: some + some, 4),
        "matmul": (lambda: some @ some.T, 14),
        "softmax": (lambda: F.softmax(some, -1), 19),
        "linear": (lambda: F.linear(some, some), 13),
        "conv2d": (lambda: F.conv2d(image, kernels, bias), 81),
        "layer_norm, recorded": (lambda: F.layer_norm(rows, (16,), row, row), 32),
        "attention": (lambda: F.scaled_dot_product_attention(heads, heads, heads), 33),
        "svd": (lambda: torch.linalg.svd(matrix), 41),
        "Linear": (lambda: linear(some), 20),
        "LayerNorm": (lambda: norm(some), 36),
        "Embedding": (lambda: table(places), 73),
        "LSTM": (lambda: lstm(steps), 217),
        "MultiheadAttention": (lambda: attention(steps, steps, steps), 321),
    }


@pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer, as for coverage, is called in between")
@pytest.mark.parametrize("name", cases())
def test_a_small_call_enters_no_more_functions_than_before(name: str) -> None:
    call, most = cases()[name]
    assert entered(call) <= most
