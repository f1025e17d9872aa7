"""Activations: against their formulas, in every layout, in place, and their gradients."""

from __future__ import annotations

import math
import platform

import numpy as np
import pytest

import tritensor as torch

from .values import F, inf, nan, of


def test_activations_against_their_formulas(place) -> None:
    x = np.linspace(-6, 6, 41)
    formulas = {
        F.relu: lambda v: max(v, 0.0),
        F.silu: lambda v: v / (1 + math.exp(-v)),
        F.gelu: lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))),
        (lambda t: F.gelu(t, approximate="tanh")): lambda v: (
            0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))
        ),
        (lambda t: F.leaky_relu(t, 0.1)): lambda v: v if v > 0 else 0.1 * v,
        (lambda t: F.leaky_relu(t, 1.5)): lambda v: v if v > 0 else 1.5 * v,
        (lambda t: F.leaky_relu(t, -0.5)): lambda v: v if v > 0 else -0.5 * v,
        (lambda t: F.elu(t, 1.5)): lambda v: v if v > 0 else 1.5 * math.expm1(v),
        (lambda t: F.softplus(t, 2.0, 3.0)): lambda v: v if 2 * v > 3 else math.log1p(math.exp(2 * v)) / 2,
        F.selu: lambda v: 1.0507009873554805 * (v if v > 0 else 1.6732632423543772 * math.expm1(v)),
        (lambda t: F.celu(t, 1.5)): lambda v: v if v > 0 else 1.5 * math.expm1(v / 1.5),
        F.hardsigmoid: lambda v: min(max(v + 3, 0), 6) / 6,
        F.hardswish: lambda v: v * min(max(v + 3, 0), 6) / 6,
        (lambda t: F.hardshrink(t, 1.25)): lambda v: v if abs(v) > 1.25 else 0.0,
        (lambda t: F.softshrink(t, 1.2)): lambda v: math.copysign(max(abs(v) - 1.2, 0), v),
        (lambda t: F.threshold(t, 1.25, -7.5)): lambda v: v if v > 1.25 else -7.5,
        F.rrelu: lambda v: v if v > 0 else v * (1 / 8 + 1 / 3) / 2,
        (lambda t: F.prelu(t, of([-0.3], place, t.dtype))): lambda v: v if v > 0 else -0.3 * v,
        torch.sigmoid: lambda v: 1 / (1 + math.exp(-v)),
        F.mish: lambda v: v * math.tanh(math.log1p(math.exp(v))),
        F.logsigmoid: lambda v: -math.log1p(math.exp(-v)),
        F.softsign: lambda v: v / (1 + abs(v)),
        F.tanhshrink: lambda v: v - math.tanh(v),
    }
    for function, formula in formulas.items():
        expected = [formula(value) for value in x]
        np.testing.assert_allclose(function(of(x, place)).cpu().numpy(), expected, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(function(of(x, place, torch.float32)).cpu().numpy(), expected, rtol=2e-5, atol=1e-6)
        assert function(of(x[3], place)).item() == pytest.approx(expected[3])


def test_activations_of_what_is_no_ordinary_number(place) -> None:
    x = of([nan, inf, -inf], place)
    assert F.relu(x).tolist() == pytest.approx([nan, inf, 0], nan_ok=True)
    assert torch.sigmoid(x).tolist() == pytest.approx([nan, 1, 0], nan_ok=True)
    assert F.elu(x).tolist() == pytest.approx([nan, inf, -1], nan_ok=True)
    assert F.elu(of([2.0, 0.0, -1.0], place), -inf).tolist() == [2, 0, inf]
    assert F.softplus(x).tolist() == pytest.approx([nan, inf, 0], nan_ok=True)
    assert F.leaky_relu(x).tolist() == pytest.approx([nan, inf, -inf], nan_ok=True)
    assert F.leaky_relu(x, 0.0).tolist() == pytest.approx([nan, inf, nan], nan_ok=True)
    assert F.selu(x).tolist() == pytest.approx([nan, inf, -1.7580993], nan_ok=True)
    assert F.celu(x, 2.0).tolist() == pytest.approx([nan, inf, -2], nan_ok=True)
    assert F.hardsigmoid(x).tolist() == pytest.approx([nan, 1, 0], nan_ok=True)
    assert F.hardswish(x).tolist() == pytest.approx([nan, inf, nan], nan_ok=True)
    for function in (F.hardshrink, F.softshrink, lambda t: F.threshold(t, -inf, inf)):
        assert function(x).tolist() == pytest.approx(
            [nan, inf, inf if "lambda" in str(function) else -inf], nan_ok=True
        )
    for approximate in ("none", "tanh"):
        assert F.gelu(of([3e38, 1.5e308], place, torch.float64), approximate=approximate).tolist() == [3e38, 1.5e308]


def test_relu_of_every_layout() -> None:
    matrix = torch.randn(30, 40)
    for x in (torch.randn(200, 200), matrix, matrix.t(), torch.randn(9)[::2], torch.randn(())):
        assert F.relu(x).tolist() == torch.where(x > 0, x, torch.zeros_like(x)).tolist()
        assert F.relu(x.double()).tolist() == F.relu(x).tolist()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="ARM's maximum of zeros is 0.0")
@pytest.mark.parametrize("size", [3, 1000, 20_000])
def test_relu_keeps_the_sign_of_zero(place, size) -> None:
    for dtype in (torch.float32, torch.float64, torch.float16):
        x = of([-0.0] * size, place, dtype)
        assert (1 / F.relu(x)).tolist() == [-inf] * size


def test_relu_does_not_pass_a_gradient_where_it_is_zero() -> None:
    x = torch.tensor([-1.0, 0.0, 2.0, nan], requires_grad=True)
    x.relu().backward(torch.tensor([inf, nan, 3.0, 4.0]))
    assert x.grad.tolist() == [0, 0, 3, 4]


@pytest.mark.parametrize("inplace", [False, True])
def test_hardtanh_has_no_gradient_at_its_bounds(place, inplace) -> None:
    x = of([-1.0, -0.5, 1.0, 2.0], place).requires_grad_()
    F.hardtanh(x * 1, inplace=inplace).sum().backward()
    assert x.grad.tolist() == [0, 1, 0, 0]
    y = of([0.0, 6.0, nan, 3.0], place).requires_grad_()
    F.relu6(y * 1, inplace).sum().backward()
    assert y.grad.tolist() == [0, 0, 1, 1]


def test_leaky_relu_without_a_slope_keeps_infinity(place) -> None:
    x = of([inf, 2.0, -3.0], place)
    assert F.leaky_relu(x, 0.0).tolist() == [inf, 2.0, 0.0]


def test_hardtanh_of_integers(place) -> None:
    for kind in (torch.int8, torch.int32, torch.int64):
        x = of([-7, 0, 7], place, kind)
        for made, expected in (
            (F.hardtanh(x), [-1, 0, 1]),
            (F.hardtanh(x, -1.9, 2.9), [-1, 0, 2]),
            (F.relu6(x), [0, 0, 6]),
            (F.hardtanh(x, inplace=True), [-1, 0, 1]),
        ):
            assert made.dtype is kind and made.tolist() == expected
    x = of([3, 7], place, torch.uint8)
    assert F.relu6(x).tolist() == [3, 6] and F.relu6(x).dtype is torch.uint8
    for call, error, words in (
        (lambda: F.hardtanh(x), RuntimeError, "cannot do hardtanh on an unsigned type with negative limits"),
        (lambda: F.hardtanh(x, 0, 300), RuntimeError, "value cannot be converted to type uint8_t without overflow"),
        (lambda: F.hardtanh(x, 0, inf), RuntimeError, "value cannot be converted to type uint8_t without overflow"),
        (lambda: F.relu6(x.bool()), RuntimeError, "Bool inputs not supported for hardtanh"),
        (lambda: F.hardtanh(x, 2, 1), ValueError, "min_val cannot be greater than max_val"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_activations_in_place() -> None:
    for function in (F.relu, F.silu, F.elu, F.leaky_relu, F.mish, F.relu6, F.celu, F.selu, F.hardsigmoid, F.hardswish):
        x = torch.randn(5)
        expected = function(x)
        assert function(x, inplace=True) is x and torch.equal(x, expected)


SLOPES = {  # at -1, 0, 1, 6, nan
    "hardtanh": (lambda x: F.hardtanh(x), [0, 1, 0, 0, 1]),
    "hardtanh in place": (lambda x: F.hardtanh(x * 1, inplace=True), [0, 1, 0, 0, 1]),
    "relu6": (lambda x: F.relu6(x), [0, 0, 1, 0, 1]),
    "clamp": (lambda x: x.clamp(-1, 1), [1, 1, 1, 0, 0]),
    "elu": (lambda x: F.elu(x), [math.exp(-1), 1, 1, 1, nan]),
    "atan2": (lambda x: torch.atan2(x, torch.zeros_like(x)), [0, 0, 0, 0, nan]),
    "atan2 of 1e-30": (lambda x: torch.atan2(torch.full_like(x, 1e-30), x), [0, 0, 0, 0, nan]),
}


@pytest.mark.parametrize("name", SLOPES)
def test_gradients_at_the_edges(name, place) -> None:
    call, expected = SLOPES[name]
    x = of([-1, 0, 1, 6, nan], place, torch.float32).requires_grad_()
    call(x).sum().backward()
    assert x.grad.tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_gelu_of_every_half(dtype) -> None:
    """The body for results of 16 bits, by its stated bound and the rounding of the result."""
    every = torch.arange(-(1 << 15), 1 << 15).to(torch.int16).view(dtype)
    x = every.double().numpy()
    with np.errstate(all="ignore"):
        share = 0.5 * np.array([math.erfc(-each / math.sqrt(2)) for each in x])
        slope = share + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        exact = x * share
    with torch.cuda.simulate(devices=1):
        values = every.cuda().requires_grad_()
        out = F.gelu(values)
        out.backward(torch.ones_like(out))
        found, change = (each.detach().cpu().double().numpy() for each in (out, values.grad))
    numbers = np.isfinite(x)
    assert np.isnan(found[np.isnan(x)]).all() and found[x == inf] == inf and np.isnan(found[x == -inf])
    unit, least = (2.0**-11, 2.0**-25) if dtype is torch.float16 else (2.0**-8, 2.0**-126)
    with np.errstate(invalid="ignore"):
        error = np.abs(found - exact) - (unit + 2.0**-14 + 2.0**-22) * np.abs(exact)
        assert error[numbers].max() <= 6.5e-9 + least
        numbers &= np.abs(x) < 1e18  # beyond, the square is infinite and the density NaN
        assert (np.abs(change - slope) - unit * np.abs(slope))[numbers].max() <= 2.0**-14
