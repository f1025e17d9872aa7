"""`linspace` and `logspace`: bounds of every kind and dtype, counted from both ends, on every device."""

from __future__ import annotations

import math

import pytest

import tritensor as torch

nan, inf = math.nan, math.inf

SPACED = [
    ((0, 1, 5), None, [0, 0.25, 0.5, 0.75, 1]),
    ((5, 1, 3), "float16", [5, 3, 1]),
    ((3, 9, 1), None, [3]),
    ((3, inf, 1), None, [3]),
    ((1, 2, 0), None, []),
    ((1, -inf, 7), None, [nan, -inf, -inf, nan, nan, nan, nan]),
    ((inf, 1, 4), "float64", [nan, nan, inf, nan]),
    ((0, 10, 4), "int64", [0, 3, 6, 10]),
    ((0.5, 7.9, 4), "int64", [0, 2, 4, 7]),
    ((-2.5, 2.5, 5), "int32", [-2, -1, 0, 1, 2]),
    ((-3, 2, 6), "uint8", [253, 202, 152, 102, 52, 2]),
    ((0, 1 << 40, 3), "int64", [0, 1 << 39, 1 << 40]),
    ((0, 2, 3), "bool", [False, True, True]),
    ((torch.tensor(1.0), torch.tensor(3), torch.tensor(3)), None, [1, 2, 3]),
    ((True, 3, 3), None, [1, 2, 3]),
    ((5, 1e39, 1), None, [5]),  # the end is not looked at
    ((1e39, 5, 0), None, []),
]


@pytest.mark.parametrize("row", range(len(SPACED)))
def test_linspace(row, device) -> None:
    arguments, kind, expected = SPACED[row]
    made = torch.linspace(*arguments, dtype=None if kind is None else getattr(torch, kind), device=device)
    assert made.tolist() == pytest.approx(expected, nan_ok=True) and made.device == device
    assert made.dtype is (torch.float32 if kind is None else getattr(torch, kind))


def test_the_ends_are_exact(device) -> None:
    for steps in (2, 7, 100, 1001):
        made = torch.linspace(0.1, 0.7, steps, dtype=torch.float64, device=device)
        assert made[0].item() == 0.1 and made[-1].item() == 0.7 and bool((made[1:] > made[:-1]).all())


def test_complex_bounds() -> None:
    assert (
        torch.linspace(1, 10j, 3).tolist() == [1, 0.5 + 5j, 10j] and torch.linspace(1j, 2, 0).dtype is torch.complex64
    )
    assert torch.linspace(0, 1, 2, dtype=torch.complex128).tolist() == [0, 1]
    made = torch.logspace(1j, 2, 3)
    assert made.dtype is torch.complex64 and abs(made[0].item() - 10**1j) < 1e-6 and made[2].item() == 100


def test_logspace(device) -> None:
    for arguments, kind, expected in (
        ((0, 3, 4, 2), torch.float32, [1, 2, 4, 8]),
        ((-2, 3, 5, 2), torch.uint8, [0, 0, 0, 0, 8]),
        ((-2, 3, 5), torch.int32, [0, 0, 3, 56, 1000]),
        ((0, 1, 3, -2.0), torch.float32, [1, nan, -2]),
        ((0, 40, 3), torch.float32, [1, 1e20, inf]),
    ):
        made = torch.logspace(*arguments, dtype=kind, device=device)
        assert made.tolist() == pytest.approx(expected, nan_ok=True) and made.device == device


@pytest.mark.parametrize("call", [torch.linspace, torch.logspace])
def test_refusals(call) -> None:
    for arguments, kind, error, words in (
        ((0, 1, 2.0), None, TypeError, r"received an invalid combination of arguments - got \(int, int, float\)"),
        ((0, 1, None), None, TypeError, r"received an invalid combination .* - got \(int, int, NoneType\)"),
        ((0, 1, True), None, TypeError, r"received an invalid combination of arguments - got \(int, int, bool\)"),
        (("a", 1, 3), None, TypeError, "argument 'start' must be Number, not str"),
        ((0, None, 3), None, TypeError, "argument 'end' must be Number, not NoneType"),
        ((torch.ones(2), 1, 3), None, RuntimeError, "only supports 0-dimensional start and end tensors"),
        ((0, 1, -1), None, RuntimeError, "number of steps must be non-negative"),
        ((0, 300, 3), torch.uint8, RuntimeError, "value cannot be converted to type uint8_t without overflow"),
        ((0, 1e39, 3), None, RuntimeError, "value cannot be converted to type float without overflow"),
        ((nan, 1, 3), torch.int32, RuntimeError, "value cannot be converted to type int without overflow"),
        ((0, 2**64, 3), None, OverflowError, "int too big to convert"),
        ((0, 1j, 3), torch.float32, RuntimeError, r"inferred dtype \w+ can't be safely cast to passed dtype Float"),
    ):
        with pytest.raises(error, match=words):
            call(*arguments, dtype=kind)
    with pytest.raises(TypeError, match="argument 'base' must be float, not complex"):
        torch.logspace(0, 1, 3, 1j)
    with pytest.raises(RuntimeError, match="value cannot be converted to type double without overflow"):
        torch.arange(1j)
