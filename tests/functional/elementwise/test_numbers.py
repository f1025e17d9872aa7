"""Python numbers that a dtype cannot hold: refused where they are written, bound or scale; wrapped in arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch

from .values import inf, nan, of

mask = [True, False, True]

HELD = {  # calls of a tensor [1, 0, 1] with a number that must fit into its dtype
    "clamp": lambda x, v: torch.clamp(x, 0, v),
    "clamp_min": lambda x, v: torch.clamp(x, min=v),
    "clamp_max": lambda x, v: x.clamp_(max=v),
    "where": lambda x, v: torch.where(x == 0, v, x),
    "other": lambda x, v: x.where(x == 0, v),
    "add": lambda x, v: torch.add(x, x, alpha=v),
    "sub": lambda x, v: x.sub_(x, alpha=v),
    "addcmul": lambda x, v: torch.addcmul(x, x, x, value=v),
    "fill": lambda x, v: x.fill_(v),
    "full": lambda x, v: torch.full_like(x, v),
    "new": lambda x, v: x.new_full((2,), v),
    "masked": lambda x, v: x.masked_fill_(x == 0, v),
    "index_fill": lambda x, v: x.index_fill(0, torch.zeros(1, dtype=torch.int64, device=x.device), v),
    "scatter": lambda x, v: x.scatter(0, torch.zeros(1, dtype=torch.int64, device=x.device), v),
    "index_add": lambda x, v: x.index_add(0, torch.zeros(1, dtype=torch.int64, device=x.device), x[:1], alpha=v),
}
BEYOND = {  # of every call
    "uint8": [256, -256, 1 << 40, 1 << 63],
    "int8": [200, -200, 1 << 40],
    "int16": [1 << 16, -(1 << 16)],
    "int32": [1 << 40],
    "float32": [1e39, -1e39, 1e300],
    "float64": [],
}
HUGE, OVERFLOW = [1 << 64, -(1 << 64), 10**400], r"int too big to convert|can't convert negative int to unsigned"
TYPES = {"int32": "int", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float"}


@pytest.mark.sampled(36)
@pytest.mark.parametrize("kind", BEYOND)
@pytest.mark.parametrize("name", HELD)
def test_numbers_that_must_fit(name, kind, place) -> None:
    call, dtype = HELD[name], getattr(torch, kind)
    call(of([1, 0, 1], place, dtype), 2)  # what is remembered of this call must not decide about the next one
    call(of([1, 0, 1], place, dtype), 2.0) if dtype.is_floating_point else None
    for number in BEYOND[kind]:
        for elements in ([1, 0, 1], []) if name not in ("index_fill", "index_add", "scatter") else ([1, 0, 1],):
            x = of(elements, place, dtype)
            with pytest.raises(RuntimeError) as raised:
                call(x, number)
            words = f"value cannot be converted to type {TYPES.get(kind, f'{kind}_t')} without overflow"
            assert str(raised.value).startswith(words) and x.tolist() == elements
    for number in HUGE:
        with pytest.raises(OverflowError, match=OVERFLOW):
            call(of([1, 0, 1], place, dtype), number)


WRITES = {  # assignments, which PyTorch words in another way where an integer exceeds int64
    "0": lambda x, v: x.__setitem__(0, v),
    "slice": lambda x, v: x.__setitem__(slice(0, 2), v),
    "index": lambda x, v: x.__setitem__(torch.tensor([0, 1], device=x.device), v),
    "mask": lambda x, v: x.__setitem__(x == 1, v),
}


@pytest.mark.parametrize("name", WRITES)
def test_assigned_numbers(name, place) -> None:
    write = WRITES[name]
    for kind, fits, expected, refused in (
        ("uint8", -3, 253, [256, -256, -3.0, inf, 1j]),
        ("int8", 2.7, 2, [300, -129, 300.0, np.int64(300), 1j]),
        ("int64", -2.0, -2, [inf, -inf, 1e39, 2j]),
        ("float16", 7e4, inf, [1j]),
        ("bfloat16", 1e39, inf, [1j]),
        ("float32", -inf, -inf, [1e39, -1e300, np.float64(1e39), 1j]),
        ("float64", complex(3, 0), 3, [1j]),
        ("bool", 1e39, True, []),
    ):
        x = of([1, 0, 1], place, getattr(torch, kind))
        for number in refused:
            with pytest.raises(RuntimeError, match=r"value cannot be converted to type \S+ without overflow"):
                write(x, number)
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            write(x, 1 << 63)
        assert x.tolist() == [1, 0, 1]
        write(x, fits)
        assert x[0].item() == expected


def test_padding_and_tensors_of_one_number(place) -> None:
    x, pad = of([1, 0], place, torch.uint8), torch.nn.functional.pad
    assert pad(x, (1, 0), value=2.5).tolist() == [2, 1, 0] and pad(x.float(), (1, 0), value=inf).tolist() == [inf, 1, 0]
    for value in (-1, 256, inf):  # the number is a double first
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
            pad(x, (1, 0), value=value)
    with pytest.raises(TypeError, match=r"pad\(\): argument 'value' \(position 4\) must be float, not complex"):
        pad(x, (1, 0), value=1j)
    for call in (lambda v: x.masked_fill(x == 1, v), lambda v: x.index_fill(0, of([0], place), v)):
        assert call(torch.tensor(2.5)).tolist() == [2, 0]
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
            call(torch.tensor(300))
    with pytest.raises(RuntimeError, match="Converting complex Scalar to non-complex type is not supported"):
        x.index_fill(0, of([0], place), 1j)
    assert x.fill_(torch.tensor(300)).tolist() == [44, 44]  # this one wraps in PyTorch too


FIT = [
    (lambda x: torch.clamp(x, max=-3), "uint8", [1, 0, 1]),  # the magnitude of a negative number fits: it wraps to 253
    (lambda x: torch.where(x == 1, x, -255), "uint8", [1, 1, 1]),
    (lambda x: torch.add(x, x, alpha=-2), "uint8", [255, 0, 255]),
    (lambda x: torch.sub(x, 1, alpha=2), "uint8", [255, 254, 255]),
    (lambda x: torch.sub(x, x, alpha=255), "uint8", [2, 0, 2]),
    (lambda x: torch.clamp(x, max=inf), "float32", [1, 0, 1]),
    (lambda x: torch.where(x == 0, inf, x), "float32", [1, inf, 1]),
    (lambda x: torch.where(x == 0, 1e39, x), "float16", [1, inf, 1]),
    (lambda x: torch.addcmul(x, x, x, value=7e4), "float16", [inf, 0, inf]),
    (lambda x: x.fill_(1 << 63), "bfloat16", [2.0**63] * 3),
    (lambda x: torch.clamp(x, max=1.5), "int8", [1, 0, 1]),
    (lambda x: torch.add(x, x, alpha=2), "bool", [True, False, True]),
    (lambda x: torch.add(x, x, alpha=True), "bool", [True, False, True]),
    (lambda x: torch.clamp(x, max=torch.tensor(300)), "int8", [1, 0, 1]),  # of a tensor the elements wrap, to 44
    (lambda x: torch.where(x == 0, torch.tensor(300), x), "int8", [1, 44, 1]),
    # arithmetic and comparisons wrap integers, and round floats to infinity
    (lambda x: x + 300, "uint8", [45, 44, 45]),
    (lambda x: x + (1 << 63), "int64", [-(2**63) + 1, -(2**63), -(2**63) + 1]),
    (lambda x: x * ((1 << 64) - 1), "int64", [-1, 0, -1]),
    (lambda x: x == 1 << 40, "uint8", [False, True, False]),
    (lambda x: x < 200, "int8", [False, False, False]),
    (lambda x: x + 1e300, "float32", [inf, inf, inf]),
]


@pytest.mark.parametrize("row", range(len(FIT)))
def test_numbers_that_fit_or_wrap(row, place) -> None:
    call, kind, expected = FIT[row]
    for _ in range(2):
        assert call(of([1, 0, 1], place, getattr(torch, kind))).tolist() == expected


# Beside [2048, 3, inf] of float16. 2049 is rounded to 2048 and 1e5 to inf, but in products and as divisors.
HALVES = [
    (lambda x: x + 2049, [4096, 2052, inf]),
    (lambda x: 2049 - x, [0, 2045, -inf]),
    (lambda x: x == 2049.0, [True, False, False]),
    (lambda x: x != 1e5, [True, True, False]),
    (lambda x: -x > -1e5, [True, True, False]),
    (lambda x: x % 2049, [0, 3, nan]),
    (lambda x: torch.fmod(2049, x), [0, 2, 2048]),
    (lambda x: 1e5 // x, [nan, nan, nan]),
    (lambda x: torch.add(x, 2049, alpha=2), [6144, 4100, inf]),
    (lambda x: x.clone().sub_(1e5), [-inf, -inf, nan]),
    (lambda x: x * 2049, [inf, 6148, inf]),
    (lambda x: x / 1e5, [2048 / 1e5, 3e-5, inf]),
    (lambda x: x // 2049, [0, 0, nan]),
    (lambda x: torch.div(-x, 2048.5, rounding_mode="trunc"), [0, 0, -inf]),
]


@pytest.mark.parametrize("row", range(len(HALVES)))
def test_numbers_beside_half_precision(row, place) -> None:
    call, expected = HALVES[row]
    x = of([2048, 3, inf], place, torch.float16)
    call(of([], place, torch.float16)), call(x.float())
    for _ in range(2):
        found = call(x)
        assert torch.allclose(found.float().cpu(), torch.tensor(expected, dtype=torch.float32), 1e-3, equal_nan=True)
    whole = of([1, 2], place)  # their default dtype is half
    torch.set_default_dtype(torch.float16)
    try:
        assert (whole / 3).dtype is torch.float16 and (torch.atan2(whole, 1e5).tolist()) == [0, 0]
    finally:
        torch.set_default_dtype(torch.float32)


BESIDE = [  # float16 [2048, 3, inf] and int64 [2049, 100000, 2**62], which becomes [2048, inf, inf]
    (lambda x, i: x + i, [4096, inf, inf]),
    (lambda x, i: i - x, [0, inf, nan]),
    (lambda x, i: x == i, [True, False, True]),
    (lambda x, i: x < i, [False, True, False]),
    (lambda x, i: i % x, [0, nan, nan]),
    (lambda x, i: x.clone().mul_(i), [inf, inf, inf]),
    (lambda x, i: torch.add(x, i, alpha=2), [6144, inf, inf]),
    (lambda x, i: x + i[0].double(), [4096, 2052, inf]),
    (lambda x, i: (x[1:] * i[0]).float(), [6148, inf]),
    (lambda x, i: (x.expand(100000, 3) + i)[-1], [4096, inf, inf]),
]


@pytest.mark.parametrize("row", range(len(BESIDE)))
def test_integers_beside_half_precision_are_rounded_to_it(row, place) -> None:
    call, expected = BESIDE[row]
    x, i = of([2048, 3, inf], place, torch.float16), of([2049, 100000, 1 << 62], place)
    for _ in range(2):
        assert call(x, i).tolist() == pytest.approx(expected, nan_ok=True)
    assert call(x.double(), i).shape == call(x, i).shape


def test_checked_mode_rounds_integers_too() -> None:
    pytest.importorskip("triton")
    with torch.cuda.simulate(devices=1), torch.testing.checked():
        x, i = of([3], "cuda", torch.float16), of([70000], "cuda")
        assert (x - i).tolist() == [-inf] and (x == i).tolist() == [False]


def test_exponents_that_a_dtype_does_not_hold(place) -> None:
    for kind, number, words in (
        ("int8", 300, "value cannot be converted to type int8_t without overflow"),
        ("int32", 1 << 31, "value cannot be converted to type int without overflow"),
        ("float16", 1e5, "value cannot be converted to type c10::Half without overflow"),
        ("uint8", -1, "Integers to negative integer powers are not allowed"),
    ):
        x = of([1, 2], place, getattr(torch, kind))
        assert (x**3).tolist() == [1, 8]
        for call in (x.__pow__, x.pow, x.pow_):
            with pytest.raises(RuntimeError, match=words):
                call(number)
    assert (of([1.0, 2.0], place) ** 1e300).tolist() == [1, inf]
    assert (300 ** of([1], place, torch.int8)).tolist() == [44]
    assert (2049 ** of([1], place, torch.float16)).tolist() == [2048]


@pytest.mark.parametrize("number", [*HUGE, -(1 << 63) - 1])
def test_integers_beyond_64_bits_are_refused(number, place) -> None:
    x = of([1, 0], place)
    for call in (x.eq, x.lt, x.add, x.mul, x.__rsub__, x.eq_, x.sub_, x.__and__):
        call(0)
        with pytest.raises(OverflowError, match=OVERFLOW):
            call(number)
    assert x.tolist() == [0, 1]  # by eq_(0)


def test_factors_of_another_category_are_refused(place) -> None:
    whole, real = of([1, 2], place), of([1.0, 2.0], place)
    for _ in range(2):
        assert torch.add(whole, whole, alpha=2).tolist() == [3, 6] and torch.sub(real, real, alpha=0.5)[1] == 1
        for x, alpha, words in (
            (whole, 1.5, "For integral input tensors, argument alpha must not be a floating point number."),
            (whole, 1j, "For integral input tensors, argument alpha must not be a floating point number."),
            (real, 1j, "For non-complex input tensors, argument alpha must not be a complex number."),
            (real, True, "Boolean alpha only supported for Boolean results."),
        ):
            for function in (torch.add, torch.sub):
                with pytest.raises(RuntimeError) as raised:
                    function(x, x, alpha=alpha)
                assert str(raised.value).startswith(words)
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with a bool tensor is not supported"):
        torch.sub(of(mask, place), of(mask, place), alpha=True)


def test_checked_mode_judges_numbers_and_zeros_as_the_device_does() -> None:
    pytest.importorskip("triton")
    with torch.cuda.simulate(devices=1), torch.testing.checked():
        x = of([1, 0, 1], "cuda", torch.int8)
        assert torch.where(x == 0, torch.tensor(300), x).tolist() == [1, 44, 1]
        assert (x // x).tolist() == [1, 0, 1] and (x // torch.tensor(256)).tolist() == [0, 0, 0]


def test_of_a_number_logic_asks_whether_it_is_zero() -> None:
    for x in (torch.tensor([0.5, 0.0]), torch.tensor([1, 0], dtype=torch.uint8)):
        assert torch.logical_and(x, 1 << 64).tolist() == torch.logical_and(x, 256).tolist() == [True, False]
        assert torch.logical_or(x, 0).tolist() == [True, False] and torch.logical_xor(x, nan).tolist() == [False, True]
