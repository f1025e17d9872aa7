"""NumPy's functions on tensors: they compute on the CPU tensor's memory, and the answer is a tensor."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch

X, COUNTS = torch.tensor([1.0, 2.0]), torch.tensor([1, 2])
ARRAY = np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("found", "dtype", "expected"),
    [
        (np.add(X, 1), torch.float32, [2.0, 3.0]),
        (np.add(ARRAY, X), torch.float64, [2.0, 4.0]),
        (np.add(X, ARRAY.astype(np.float32)), torch.float32, [2.0, 4.0]),
        (np.add(X, 1, dtype=np.float64), torch.float64, [2.0, 3.0]),
        (np.add(COUNTS, 1), torch.int64, [2, 3]),
        (np.multiply(COUNTS, X), torch.float64, [1.0, 4.0]),
        (np.sqrt(torch.tensor(4.0)), torch.float32, 2.0),
        (np.sin(torch.tensor([0])), torch.float64, [0.0]),
        (np.exp(torch.tensor([0.0], dtype=torch.float16)), torch.float16, [1.0]),
        (np.abs(torch.tensor([3 + 4j])), torch.float32, [5.0]),
        (np.isnan(X), torch.uint8, [0, 0]),
        (np.greater(X, 1), torch.uint8, [0, 1]),
        (np.matmul(X, X), torch.float32, 5.0),
        (np.add.reduce(X), torch.float32, 3.0),
        (np.divmod(COUNTS, 2)[1], torch.int64, [1, 0]),
        (np.clip(X, 0, 1), torch.float32, [1.0, 1.0]),
        (np.cumsum(X), torch.float32, [1.0, 3.0]),
        (X @ ARRAY, torch.float64, 5.0),
        (ARRAY * X, torch.float64, [1.0, 4.0]),
        (ARRAY.astype(np.float32) * X, torch.float32, [1.0, 4.0]),
        (COUNTS / ARRAY.astype(np.int64), torch.float64, [1.0, 1.0]),
        (np.float64(2) * X, torch.float32, [2.0, 4.0]),
    ],
)
def test_answers_are_tensors(found: torch.Tensor, dtype: torch.dtype, expected: object) -> None:
    assert type(found) is torch.Tensor and found.dtype is dtype and found.tolist() == expected


def test_an_array_is_added_out_of_place() -> None:
    for array, dtype in ((ARRAY, torch.float64), (ARRAY.astype(np.float32), torch.float32)):
        x = before = torch.tensor([1.0, 2.0])
        x += array
        assert x.tolist() == [2.0, 4.0] and x.dtype is dtype and before.tolist() == [1.0, 2.0]
    x = before
    x *= np.float32(2)
    assert x is before and x.tolist() == [2.0, 4.0]


def test_an_output_that_is_an_array_stays_one() -> None:
    out = np.zeros(2, np.float32)
    assert np.add(X, 1, out=out) is out and out.tolist() == [2.0, 3.0]


def test_refusals() -> None:
    with pytest.raises(RuntimeError, match=r"^Can't call numpy\(\) on Tensor that requires grad"):
        np.add(torch.ones(2, requires_grad=True), 1)
    with torch.no_grad():
        assert torch.ones(2, requires_grad=True).numpy().tolist() == [1, 1]
    with (
        torch.cuda.simulate(devices=1),
        pytest.raises(TypeError, match=r"^can't convert cuda:0 device type tensor to numpy"),
    ):
        np.sin(torch.ones(2, device="cuda"))
