"""Signs, neighbours, mantissas, divisors, odds and angles: values, dtypes and errors on both kinds of device."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import ArgumentError, DtypeError, UnsupportedError

INF, NAN = math.inf, math.nan


def same(found: torch.Tensor, expected: list[float]) -> None:
    np.testing.assert_array_equal(found.detach().cpu().numpy(), np.asarray(expected))


def test_signs(device) -> None:
    x = torch.tensor([-0.0, 0.0, -2.0, INF, -INF, NAN], device=device)
    same(torch.signbit(x), [True, False, True, False, True, False])
    same(torch.isposinf(x), [False, False, False, True, False, False])
    same(torch.isneginf(x), [False, False, False, False, True, False])
    assert math.copysign(1, torch.copysign(x, -1.0)[1].item()) == -1
    same(torch.copysign(x[:3], torch.tensor([1.0, -0.0, 0.0], device=device)), [0, -0.0, 2])
    same(torch.heaviside(x, torch.full((6,), 0.5, device=device)), [0.5, 0.5, 0, 1, 0, 0])
    assert torch.copysign(torch.tensor([1, 2], device=device), -1).tolist() == [-1.0, -2.0]
    assert not torch.signbit(torch.tensor([True], device=device)).any()


def test_gradient_of_copysign_is_zero_at_zero(device) -> None:
    x = torch.tensor([3.0, -2.0, 0.0], device=device, requires_grad=True)
    out = torch.copysign(x, -1.0)
    assert out.grad_fn.name() == "CopysignBackward1"
    out.sum().backward()
    assert x.grad.tolist() == [-1, 1, 0]
    assert torch.copysign(x, x).grad_fn.name() == "CopysignBackward0"


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_neighbours_have_the_next_bits(device, kind) -> None:
    eps, tiny = torch.finfo(kind).eps, torch.finfo(kind).smallest_normal * torch.finfo(kind).eps
    x = torch.tensor([1.0, 1.0, 0.0, 0.0, -1.0, 1.0, INF], device=device, dtype=kind)
    y = torch.tensor([2.0, 0.0, 1.0, -1.0, 0.0, 1.0, INF], device=device, dtype=kind)
    assert torch.nextafter(x, y).double().tolist() == [1 + eps, 1 - eps / 2, tiny, -tiny, -1 + eps / 2, 1, INF]
    assert torch.nextafter(x[:1], x[:1] * NAN).isnan().all()


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64], ids=str)
def test_mantissas_and_exponents(device, kind) -> None:
    smallest = torch.finfo(kind).smallest_normal
    x = torch.tensor([9.0, -0.75, smallest / 4, 0.0, INF], device=device, dtype=kind)
    mantissa, exponent = torch.frexp(x)
    assert mantissa.tolist() == [0.5625, -0.75, 0.5, 0, INF] and exponent.dtype is torch.int32
    assert exponent.tolist() == [4, 0, round(math.log2(smallest)) - 1, 0, 0]
    assert torch.frexp(torch.tensor([NAN], device=device)).exponent.tolist() == [0]


def test_divisors(device) -> None:
    x = torch.tensor([12, -18, 0, 7], device=device)
    y = torch.tensor([18, 12, 5, 0], device=device)
    assert torch.gcd(x, y).tolist() == [6, 6, 5, 7] and torch.lcm(x, y).tolist() == [36, 36, 0, 0]
    assert torch.gcd_(x, y) is x and x.tolist() == [6, 6, 5, 7]
    consecutive = torch.tensor([7540113804746346429], device=device), torch.tensor([4660046610375530309], device=device)
    assert torch.gcd(*consecutive).tolist() == [1]  # numbers of Fibonacci, which take the most steps


def test_logarithms_and_odds(device) -> None:
    x = torch.tensor([0.0, 0.0, 1.0, 2.0], device=device)
    same(torch.xlogy(x, torch.tensor([0.0, NAN, 0.0, 1.0], device=device)), [0, NAN, -INF, 0])
    y = torch.tensor([1.0, INF, -INF, NAN], device=device)
    same(torch.logaddexp2(y, y), [2, INF, -INF, NAN])
    odds = torch.tensor([0.5, 0.0, 1.0, 1.5], device=device, requires_grad=True)
    same(torch.logit(odds), [0, -INF, INF, NAN])
    kept = torch.logit(odds, 0.25)
    kept.sum().backward()
    assert kept.tolist() == pytest.approx([0, -math.log(3), math.log(3), math.log(3)]) and odds.grad.tolist() == [
        4,
        0,
        0,
        0,
    ]
    (slope,) = torch.autograd.grad(torch.logit(odds).sum(), odds)
    assert slope.isnan().tolist() == [False, False, False, True]


def test_names_of_xlogy(device) -> None:
    x = torch.ones(1, device=device, requires_grad=True)
    calls = (torch.xlogy(x, x), torch.xlogy(2, x), torch.xlogy(x, 2))
    assert [each.grad_fn.name() for each in calls] == [f"XlogyBackward{number}" for number in range(3)]


def test_angles(device) -> None:
    x = torch.tensor([-1.0, 0.0, 2.0, NAN, INF], device=device, dtype=torch.float64)
    same(torch.angle(x), [math.pi, 0, 0, NAN, 0])
    assert torch.deg2rad(torch.tensor([180.0], device=device)).tolist() == pytest.approx([math.pi])
    assert torch.rad2deg(torch.tensor([True], device=device)).tolist() == pytest.approx([180 / math.pi])
    at = torch.tensor([0.0, 0.5, 1.0], device=device, dtype=torch.float64, requires_grad=True)
    out = torch.sinc(at)
    out.sum().backward()
    assert out.tolist() == pytest.approx([1, 2 / math.pi, 0]) and at.grad.tolist() == pytest.approx(
        [0, -4 / math.pi, -1]
    )


def test_powers(device) -> None:
    x = torch.tensor([1, 4], device=device)
    assert torch.float_power(x, 0.5).tolist() == [1, 2] and torch.float_power(2, x).dtype is torch.float64
    wide = torch.tensor([2.0, 3.0], device=device, dtype=torch.float64)
    assert wide.float_power_(2) is wide and wide.tolist() == [4, 9]
    assert torch.ldexp(torch.tensor([1.5], device=device), x).tolist() == [3, 24]
    tiny = torch.tensor([1e-30], device=device)
    assert torch.ldexp(tiny, torch.tensor([200], device=device)).item() == pytest.approx(1e-30 * 2.0**200)
    assert torch.ldexp(tiny.bfloat16(), x).dtype is torch.bfloat16
    assert torch.ldexp(torch.tensor([1j]), torch.tensor([2])).tolist() == [4j]
    assert torch.rsub(x, 5, alpha=2).tolist() == [3, -3] and x.__rdiv__(2).tolist() == [2, 0.5]
    filled = torch.fill(torch.ones(2, device=device, requires_grad=True), torch.tensor(3.0, device=device))
    assert filled.tolist() == [3, 3] and filled.grad_fn.name() == "FillBackward1"


def test_changes_in_place_are_functions(device) -> None:
    x = torch.tensor([4.0], device=device)
    assert torch.sqrt_(x) is x and torch.clamp_(x, 3) is x and x.tolist() == [3]
    with pytest.raises(ArgumentError, match=r"sqrt_\(\): argument 'input' \(position 1\) must be Tensor, not int"):
        torch.sqrt_(4)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch.signbit(torch.ones(1) * 1j), UnsupportedError, "signbit is not implemented for complex"),
        (lambda: torch.deg2rad(torch.ones(1) * 1j), DtypeError, "deg2rad is not supported for complex tensors"),
        (lambda: torch.heaviside(torch.ones(1), torch.ones(1).long()), DtypeError, "heaviside is not yet .* different"),
        (lambda: torch.nextafter(torch.ones(1).long(), 2), ArgumentError, "'other' .position 2. must be Tensor"),
        (lambda: torch.frexp(torch.ones(1).long()), DtypeError, r"torch.frexp\(\) only supports floating-point"),
        (lambda: torch.logit(torch.ones(1), "1"), ArgumentError, "argument 'eps'"),
        (lambda: torch.float_power(2, 3), ArgumentError, "must be Tensor, not int"),
        (lambda: torch.ones(1).float_power_(2), DtypeError, "the base given to float_power_ has dtype Float"),
        (lambda: torch.rsub(torch.ones(1), "1"), ArgumentError, "argument 'other'"),
        (lambda: torch.lcm(torch.ones(1), torch.ones(1)), UnsupportedError, "\"lcm\" not implemented for 'Float'"),
        (lambda: torch.fill(torch.ones(1), torch.ones(1)), DtypeError, "fill_ only supports 0-dimension"),
        (lambda: torch.linspace(0, 3, 1.5), ArgumentError, r"linspace\(\) received an invalid .* \(int, int, float\)"),
    ],
)
def test_refusals(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


def test_the_lower_bound_of_logit_wins_and_the_slope_at_minus_zero_is_infinite(device) -> None:
    x = torch.tensor([-1.0, 0.5, 0.75, 2.0, NAN], device=device)
    lower, upper = math.log(0.7 / 0.3), math.log(0.3 / 0.7)
    found = torch.logit(x, 0.7).tolist()
    assert found[:4] == pytest.approx([lower, lower, upper, upper], abs=1e-6) and math.isnan(found[4])
    zero = torch.tensor([-0.0], device=device, requires_grad=True)
    torch.logit(zero).sum().backward()
    assert zero.grad.item() == INF
