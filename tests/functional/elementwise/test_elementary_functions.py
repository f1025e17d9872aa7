"""Exponentials, angles and rounding, against definitions from Python's own mathematics."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch

from .values import inf, nan, of

FUNCTIONS = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree_with_pythons(name, place) -> None:
    x = np.concatenate([np.linspace(-5, 5, 101), [0.47, -0.47, 4.0, 30.0, 1e-9, 80.0]])
    scalar = getattr(math, name) if name != "exp2" else lambda value: 2.0**value

    ends = {
        ("log", 0.0): -inf,
        ("log2", 0.0): -inf,
        ("log10", 0.0): -inf,
        ("log1p", -1.0): -inf,
        ("atanh", 1.0): inf,
        ("atanh", -1.0): -inf,
    }

    def exact(value: float) -> float:
        try:
            return scalar(value)
        except ValueError:  # where Python raises, at an end of the domain or outside it
            return ends.get((name, value), nan)

    # as many units in the last place as the reference is from a correctly rounded result; float32 erf is rational
    for kind, allowed in ((torch.float64, 4.0), (torch.float32, 7.0 if name == "erf" else 4.0)):
        points = of(x, place, kind)
        with np.errstate(all="ignore"):
            got = getattr(torch, name)(points).cpu().numpy()
            expected = np.array([exact(value) for value in points.cpu().double().tolist()])
            units = np.abs(got - expected) / np.spacing(np.abs(expected).astype(got.dtype)).astype(np.float64)
        wrong = ~((units <= allowed) | (got == expected) | (np.isnan(got) & np.isnan(expected)))
        assert not wrong.any(), (points.cpu().numpy()[wrong][:3], got[wrong][:3], expected[wrong][:3])


def test_erf_has_an_end(place) -> None:
    x = of([-inf, inf, nan, -0.0, 40.0, -40.0, 27.0], place)
    for kind in (torch.float32, torch.float64):
        result = torch.erf(x.to(kind))
        assert result.tolist() == pytest.approx([-1, 1, nan, 0, 1, -1, 1], nan_ok=True)
        assert math.copysign(1, result[3].item()) == -1 and result.abs()[:2].tolist() == [1.0, 1.0]
        assert torch.erfc(x.to(kind)).tolist()[:6] == pytest.approx([2, 0, nan, 1, 0, 2], nan_ok=True)
    assert torch.erf(of(0.5, place)).item() == pytest.approx(math.erf(0.5))  # without dimensions
    assert torch.erfc(of(27.0, place, torch.float64)).item() == pytest.approx(math.erfc(27.0), rel=1e-5)


def test_two_operand_functions(place) -> None:
    x, y = of([3.0, -1.0, 1e30, -inf], place), of([4.0, 2.0, 1e30, -inf], place)
    assert torch.hypot(x, y).tolist() == pytest.approx([5, math.sqrt(5), math.sqrt(2) * 1e30, inf])
    angles = [math.atan2(u, v) for u, v in zip(x.tolist(), y.tolist(), strict=True)]
    assert torch.atan2(x, y).tolist() == pytest.approx(angles)
    summed = torch.logaddexp(of([1.0, 1000.0, -inf], place), of([2.0, 1000.0, -inf], place)).tolist()
    assert summed == pytest.approx([math.log(math.e + math.e**2), 1000 + math.log(2), -inf])
    assert torch.rsqrt(of([4.0, 0.0], place)).tolist() == [0.5, inf]
    assert torch.reciprocal(of([4], place)).tolist() == [0.25]


def test_rounding(place) -> None:
    x = of([-2.5, -0.5, 0.5, 1.5, 2.4, nan, inf], place)
    assert torch.round(x).tolist() == pytest.approx([-2, 0, 0, 2, 2, nan, inf], nan_ok=True)
    assert torch.floor(x).tolist() == pytest.approx([-3, -1, 0, 1, 2, nan, inf], nan_ok=True)
    assert torch.ceil(x).tolist() == pytest.approx([-2, 0, 1, 2, 3, nan, inf], nan_ok=True)
    assert torch.trunc(x).tolist() == pytest.approx([-2, 0, 0, 1, 2, nan, inf], nan_ok=True)
    assert torch.frac(x[:5]).tolist() == pytest.approx([-0.5, -0.5, 0.5, 0.5, 0.4])
    assert torch.round(of([1.25, 1234.5], place), decimals=1).tolist() == pytest.approx([1.2, 1234.5])
    assert torch.round(of([1250.0, 1234.5], place), decimals=-2).tolist() == pytest.approx([1200, 1200])
    big = of([2**62 + 1], place)
    for function in (torch.round, torch.floor, torch.ceil, torch.trunc):
        result = function(big)
        assert result.tolist() == [2**62 + 1] and result.data_ptr() != big.data_ptr()
    assert of([1.7], place).round_().tolist() == [2.0]


def test_what_is_no_ordinary_number(place) -> None:
    x = of([1.0, nan, inf, -inf], place)
    assert torch.isnan(x).tolist() == [False, True, False, False]
    assert torch.isinf(x).tolist() == [False, False, True, True]
    assert torch.isfinite(x).tolist() == [True, False, False, False]
    assert torch.nan_to_num(x, nan=2.0, posinf=3.0, neginf=-3.0).tolist() == [1, 2, 3, -3]
    limits = torch.finfo(torch.float16)
    assert torch.nan_to_num(x.half()).tolist() == [1, 0, limits.max, limits.min]
    assert torch.nan_to_num(of([1, 2], place)).tolist() == [1, 2] and torch.isnan(of([1], place)).tolist() == [False]
    assert x.nan_to_num_().isfinite().all()


def test_closeness(place) -> None:
    x = of([1.0, inf, nan], place)
    assert torch.isclose(x, x).tolist() == [True, True, False]
    assert torch.isclose(x, x, equal_nan=True).tolist() == [True, True, True]
    assert torch.isclose(x, of([1.0 + 5e-6, -inf, 1.0], place)).tolist() == [True, False, False]
    assert torch.isclose(of([100], place), of([101], place), rtol=0.02).item()
    assert torch.isclose(of([True], place), of([True], place)).item()
    assert torch.allclose(x[:2], x[:2]) and not torch.allclose(x[:1], x[:1] + 1)
    assert torch.equal(x[:2], x[:2]) and not torch.equal(x, x) and not torch.equal(x[:2], x[:1])


def test_gradients_of_infinity_where_the_slope_is_zero(place):
    """inf times 0 is NaN, as in PyTorch."""
    for function in (lambda x: torch.zeros_like(x).pow(x), lambda x: torch.nan_to_num(x - inf)):
        x = of([0.0, 2.0], place).requires_grad_()
        function(x).backward(of([inf, 1.0], place))
        assert x.grad.cpu().isnan().tolist() == [True, False]


def test_a_bound_beside_a_number_is_a_number(place):
    for x in (of(1.0, place, torch.float16), of([1.0], place, torch.float16)):
        assert torch.clamp(x, 0, of(2.0, place, torch.float32)).dtype is torch.float16
    assert torch.clamp(of(1, place, torch.int16), of(0, place, torch.int64), 5).dtype is torch.int16
    bound = of(0.5, place).requires_grad_()
    torch.clamp(of(1.0, place), 0, bound).backward()
    assert bound.grad.item() == 1


def test_a_complex_number_without_an_imaginary_part_is_real_for_real_tensors(place):
    for function in (torch.addcmul, torch.addcdiv):
        x = of([1.0, 2.0], place).requires_grad_()
        function(x, x, x, value=2 + 0j).sum().backward()
        assert x.grad.dtype is x.dtype and x.grad.isfinite().all()


def test_booleans_are_close_within_a_tolerance(place):
    x, y = of([True, False], place, torch.bool), of([False, True], place, torch.bool)
    assert torch.isclose(x, y, 0.5, 0.5).tolist() == [False, True]  # |x - y| is 1, the tolerance 0.5 + 0.5 * y
    assert not torch.isclose(x, y).any() and torch.isclose(x, x).all()
