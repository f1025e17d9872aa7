"""Slices that go backwards: read as copies, written in place, with gradients, on the CPU and on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch

from ...needs import needs_triton

A = np.arange(60.0).reshape(3, 4, 5)
MASK = np.array([True, False, True, True])
KEYS: dict[str, Any] = {
    "[::-1]": np.s_[::-1],
    "[:, ::-2]": np.s_[:, ::-2],
    "[1:, ::-1, None, ::-3]": np.s_[1:, ::-1, None, ::-3],
    "[..., ::-1]": np.s_[..., ::-1],
    "[0, 2:0:-1]": np.s_[0, 2:0:-1],
    "[0:2:-1]": np.s_[0:2:-1],
    "[True, ::-1]": np.s_[True, ::-1],
    "[[0, 2], ::-1]": np.s_[[0, 2], ::-1],
    "[::-1, :, [0, 4]]": np.s_[::-1, :, [0, 4]],
    "[::-1, mask]": np.s_[::-1, MASK],
}


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_triton)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "cpu":
        yield "cpu"
        return
    with torch.cuda.simulate():
        yield "cuda"


@pytest.mark.parametrize("name", KEYS)
def test_backwards_is_as_in_numpy(name: str, device: str) -> None:
    key = KEYS[name]
    keys = tuple(torch.tensor(part) if part is MASK else part for part in key) if isinstance(key, tuple) else key
    x, expected = torch.tensor(A, device=device), A.copy()
    found = x[keys]
    assert min(found.stride()) >= 0
    np.testing.assert_array_equal(found.cpu().numpy(), A[key])
    value = -1 - np.arange(A[key].size, dtype=A.dtype).reshape(A[key].shape)
    x[keys], expected[key] = torch.tensor(value, device=device), value
    np.testing.assert_array_equal(x.cpu().numpy(), expected)
    x[keys], expected[key] = 7, 7
    np.testing.assert_array_equal(x.cpu().numpy(), expected)


def test_what_is_read_backwards_is_a_copy() -> None:
    x = torch.arange(3)
    x[::-1].zero_()
    assert x.tolist() == [0, 1, 2]
    x[::-1] += torch.tensor([5, 0, 0])
    x[::-1] = x
    assert x.tolist() == [7, 1, 0]


def test_gradients_go_backwards(device: str) -> None:
    x, w = (torch.tensor(A, device=device, requires_grad=True) for _ in range(2))
    y = x * 2
    y[:, ::-1] = w[::-1]
    (y * torch.tensor(A, device=device)).sum().backward()
    assert x.grad is not None and w.grad is not None
    assert not x.grad.any()
    np.testing.assert_array_equal(w.grad.cpu().numpy(), A[::-1, ::-1])
