"""Elementwise operators: PyTorch's semantics and words for arithmetic, comparison, logic, bits and choices."""

from __future__ import annotations

import operator as python

import numpy as np
import pytest

import tritensor as torch
from tritensor.kernels.elementwise.family import Elementwise
from tritensor.kernels.elementwise.select import masked, select
from tritensor.operators import registry

from .values import INTEGERS, F, inf, nan, of

# ---- the words of errors --------------------------------------------------------------------------------------

i, f, b = torch.tensor([1, 2]), torch.tensor([1.0, 2.0]), torch.tensor([True, False])
REFUSED = [
    (lambda: i**-1, RuntimeError, "Integers to negative integer powers are not allowed."),
    (lambda: i.pow_(-1), RuntimeError, "Integers to negative integer powers are not allowed."),
    (lambda: b**b, RuntimeError, "\"pow\" not implemented for 'Bool'"),
    (lambda: b - b, RuntimeError, "Subtraction, the `-` operator, with a bool tensor is not supported."),
    (lambda: 1 - b, RuntimeError, "Subtraction, the `-` operator, with a bool tensor is not supported."),
    (lambda: i - b, RuntimeError, "Subtraction, the `-` operator, with a bool tensor is not supported."),
    (lambda: i - True, RuntimeError, "Subtraction, the `-` operator, with a bool tensor is not supported."),
    (lambda: -b, RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported."),
    (lambda: +b, RuntimeError, r"The `\+` operator, on a bool tensor is not supported."),
    (lambda: f & f, RuntimeError, "\"bitwise_and\" not implemented for 'Float'"),
    (lambda: f | 1, RuntimeError, "\"bitwise_or\" not implemented for 'Float'"),
    (lambda: f << 1, RuntimeError, "\"bitwise_left_shift\" not implemented for 'Float'"),
    (lambda: ~f, TypeError, r"~ \(operator.invert\) is only implemented on integer and Boolean-type tensors"),
    (lambda: i // 0, RuntimeError, "ZeroDivisionError"),
    (lambda: i % 0, RuntimeError, "ZeroDivisionError"),
    (lambda: torch.fmod(i, 0), RuntimeError, "ZeroDivisionError"),
    (lambda: torch.div(i, 0, rounding_mode="trunc"), RuntimeError, "ZeroDivisionError"),
    (lambda: torch.div(i, 2, rounding_mode="up"), RuntimeError, "div expected rounding_mode to be one of None, 'tr"),
    (lambda: torch.add(i, 1, alpha=0.5), RuntimeError, "For integral input tensors, argument alpha must not be"),
    (lambda: torch.sub(f, f, alpha=True), RuntimeError, "Boolean alpha only supported for Boolean results."),
    (lambda: torch.clamp(f), RuntimeError, "torch.clamp: At least one of 'min' or 'max' must not be None"),
    (lambda: torch.lerp(f, f.double(), 0.5), RuntimeError, "lerp: expected tensors of the same dtype"),
    (lambda: torch.lerp(f, f, 1j), RuntimeError, "value cannot be converted to type float without overflow"),
    (lambda: torch.sub("a", [1], alpha=-inf), TypeError, r"sub\(\): argument 'input'"),
    (lambda: torch.add(f, "a", alpha=2), TypeError, r"add\(\): argument 'other'"),
    (lambda: torch.add(1, 2, alpha=2), TypeError, r"add\(\): at least one argument must be a Tensor"),
    (lambda: torch.addcdiv(f, i, i), RuntimeError, "Integer division with addcdiv is no longer supported"),
    (lambda: f.view_as(3), TypeError, r"view_as\(\): argument 'other' \(position 1\) must be Tensor, not int"),
    (lambda: f.type_as(3), TypeError, r"type_as\(\): argument 'other' \(position 1\) must be Tensor, not int"),
    (lambda: f.expand_as(3), TypeError, r"expand_as\(\): argument 'other' \(position 1\) must be Tensor, not int"),
    (lambda: f.reshape_as(3), TypeError, r"reshape_as\(\): argument 'other' \(position 1\) must be Tensor, not int"),
    (lambda: torch.can_cast(f, torch.int8), TypeError, r"can_cast\(\): argument 'from_' \(position 1\) must be"),
    (lambda: torch.result_type(f, None), TypeError, r"result_type\(\) received an invalid combination of arguments"),
    (lambda: torch.result_type(f, 2**64), OverflowError, "int too big to convert"),
    (lambda: f.nan_to_num(neginf=1j), TypeError, r"nan_to_num\(\): argument 'neginf' must be float, not complex"),
    (lambda: torch.sign(torch.tensor(1j)), RuntimeError, "Unlike NumPy, torch.sign is not intended to support complex"),
    (
        lambda: torch.broadcast_shapes(f),
        RuntimeError,
        "Input shapes should be of type ints, a tuple of ints, or a list",
    ),
    (lambda: torch.broadcast_shapes((2, 1.5)), TypeError, "broadcast_shapes.*must be tuple of ints, not float"),
    (lambda: f.clamp_min(1e300), RuntimeError, "value cannot be converted to type float without overflow"),
    (lambda: f.clamp_max_(-1e300), RuntimeError, "value cannot be converted to type float without overflow"),
    (lambda: F.elu(f, 1j), RuntimeError, "value cannot be converted to type float without overflow"),
    (lambda: F.softplus(f, 1e39), RuntimeError, "value cannot be converted to type float without overflow"),
    (lambda: torch.where(f, f, f), RuntimeError, "where expected condition to be a boolean tensor"),
    (lambda: torch.isclose(f, f.double()), RuntimeError, "tritensor.float32 did not match tritensor.float64"),
    (lambda: torch.isclose(f, f, rtol=-1), RuntimeError, "rtol must be greater than or equal to zero"),
    (lambda: b.relu(), RuntimeError, "Boolean inputs not supported for relu"),
    (lambda: F.gelu(i), RuntimeError, "\"gelu\" not implemented for 'Long'"),
    (lambda: F.gelu(f, approximate="x"), RuntimeError, "approximate argument must be either none or tanh."),
    (lambda: i.add_(0.5), RuntimeError, "result type Float can't be cast to the desired output type Long"),
    (lambda: i.div_(2), RuntimeError, "result type Float can't be cast to the desired output type Long"),
    (lambda: torch.exp(1.0), TypeError, r"exp\(\): argument 'input' \(position 1\) must be Tensor, not float"),
    (lambda: torch.exp([1.0]), TypeError, r"exp\(\): argument 'input' \(position 1\) must be Tensor, not list"),
    (lambda: f.maximum([1]), TypeError, r"maximum\(\): argument 'other' \(position 2\) must be Tensor, not list"),
    (lambda: f.add(None), TypeError, r"add\(\): argument 'other' \(position 2\) must be Tensor, not NoneType"),
    (lambda: i.clamp_min_(None), TypeError, r"clamp_min\(\): argument 'min' \(position 2\) must be Tensor, not None"),
    (lambda: python.iadd(f, None), TypeError, r"unsupported operand type\(s\) for \+=: 'Tensor' and 'NoneType'"),
    (lambda: python.imul(f, [1]), TypeError, r"unsupported operand type\(s\) for \*=|can't multiply sequence"),
    (lambda: torch.conj(1j), TypeError, r"conj\(\): argument 'input' \(position 1\) must be Tensor, not complex"),
    (lambda: f + [1], TypeError, "unsupported operand type"),  # noqa: RUF005
    (lambda: 2 ** torch.tensor([[1.0]]) + "x", TypeError, "unsupported operand type"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[2][:40])
def test_refused_in_pytorchs_words(case) -> None:
    call, kind, words = case
    with pytest.raises(kind, match=words):
        call()
    assert i.tolist() == [1, 2] and f.tolist() == [1.0, 2.0] and b.tolist() == [True, False]


# ---- arithmetic -----------------------------------------------------------------------------------------------

PYTHON = [python.add, python.sub, python.mul, python.truediv, python.floordiv, python.mod]


@pytest.mark.parametrize("function", PYTHON)
def test_operators_mean_what_they_mean_in_python(function, place) -> None:
    left, right = [7, -7, 7, -7, 6, 0], [2, 2, -2, -2, 3, 5]
    expected = [function(x, y) for x, y in zip(left, right, strict=True)]
    for kind in (torch.int32, torch.int64, torch.float32, torch.float64):
        assert function(of(left, place, kind), of(right, place, kind)).tolist() == pytest.approx(expected)
        assert function(of(left, place, kind), 3).tolist() == pytest.approx([function(x, 3) for x in left])
        assert function(13, of(right, place, kind)).tolist() == pytest.approx([function(13, y) for y in right])
        changed = of(left, place, torch.float64)
        same = getattr(python, f"i{function.__name__}")(changed, of(right, place, kind))
        assert same is changed and changed.tolist() == pytest.approx(expected)


def test_quotients_without_fraction(place) -> None:
    x, y = of([7.0, -7.0, 7.0, -7.0, 1.0, -1.0, inf, 2.0, 1.0], place), of([2.0, 2, -2, -2, inf, inf, 2, 0, nan], place)
    assert torch.fmod(x, y).tolist() == pytest.approx([1, -1, 1, -1, 1, -1, nan, nan, nan], nan_ok=True)
    assert torch.remainder(x, y).tolist() == pytest.approx([1, 1, -1, -1, 1, inf, nan, nan, nan], nan_ok=True)
    assert torch.floor_divide(x, y).tolist() == pytest.approx([3, -4, -4, 3, 0, -1, nan, inf, nan], nan_ok=True)
    truncated = torch.div(x, y, rounding_mode="trunc").tolist()
    assert truncated == pytest.approx([3, -3, -3, 3, 0, 0, inf, inf, nan], nan_ok=True)
    x, y = of([7, -7, 7, -7], place), of([2, 2, -2, -2], place)
    assert torch.fmod(x, y).tolist() == [1, -1, 1, -1]
    assert torch.div(x, y, rounding_mode="trunc").tolist() == [3, -3, -3, 3]
    assert torch.div(x, y, rounding_mode="floor").tolist() == [3, -4, -4, 3]


def test_zeros_of_divisions_have_pytorchs_signs(place) -> None:
    x, y = [0.0, -0.0, 6.0, -6.0, 0.0, -6.0, -0.0, 1.0], [-1.0, 1.0, -3.0, 3.0, inf, -3.0, -inf, 3.0]
    remainders = ["0.0", "-0.0", "0.0", "-0.0", "0.0", "-0.0", "-0.0", "1.0"]  # the dividend's
    quotients = ["-0.0", "-0.0", "-2.0", "-2.0", "0.0", "2.0", "0.0", "0.0"]  # the quotient's
    for kind in (torch.float16, torch.float32, torch.float64):
        left, right = of(x, place, kind), of(y, place, kind)
        assert [str(value) for value in (left // right).tolist()] == quotients
        assert [str(value) for value in (left % right).tolist()] == remainders
        assert [str((left[i] % y[i]).item()) for i in range(len(x))] == remainders
        assert [str(value) for value in left.remainder_(right).tolist()] == remainders


QUOTIENTS = {
    "//": python.floordiv,
    "%": python.mod,
    "fmod": torch.fmod,
    "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", QUOTIENTS)
def test_integers_divided_by_zero(name, place) -> None:
    # on the CPU a zero among the divisors raises; a device is not asked for its elements, and gives 0
    divide = QUOTIENTS[name]
    for kind in INTEGERS:
        x, y = of([5, 7, 0], place, kind), of([0, 2, 0], place, kind)
        if place.type == "cpu":
            for left, right in ((x, y), (7, y), (x, y[:1]), (x[:, None], y), (x, y[0])):
                with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                    divide(left, right)
        else:
            assert divide(x, y).tolist() == [0, 1 if name in ("%", "fmod") else 3, 0]
        for number in (0, 0, 1 << 8 * kind.itemsize) if kind.itemsize < 8 else (0, 0):  # the last one wraps to 0
            assert divide(x, 2).tolist() == divide(x, of([2], place, kind)).tolist()  # a remembered call
            with pytest.raises(ZeroDivisionError) as raised:
                divide(x, number)
            assert isinstance(raised.value, RuntimeError) and str(raised.value).startswith("ZeroDivisionError")
        empty = x[:0]
        assert [divide(empty, z).tolist() for z in (0, y[:1], y[0], empty)] == [[], [], [], []]
    assert x.tolist() == [5, 7, 0] and y.tolist() == [0, 2, 0]


@pytest.mark.parametrize("size", [3, 1 << 19])
def test_a_division_in_place_by_zero_changes_nothing(size) -> None:
    for method in ("floor_divide_", "remainder_", "fmod_", "__ifloordiv__", "__imod__"):
        x, y = torch.full((size,), 7), torch.full((size,), 2)
        y[-1] = 0
        with pytest.raises(ZeroDivisionError):
            getattr(x, method)(y)
        assert x.min() == x.max() == 7
        y[-1] = 3
        getattr(x, method)(y)
        assert x[-2:].tolist() == ([3, 2] if "floor" in method else [1, 1])


def test_a_bound_without_dimensions_beside_a_number_counts_as_one(place) -> None:
    whole, one = of([0, 2], place, torch.int32), of(1.0, place, torch.float64)
    for bounds in ((one, False), (one, 2), (0.5, one), (one.half(), 2.5)):
        assert torch.clamp(whole, *bounds).dtype is torch.float32
    assert torch.clamp(whole, one).dtype is torch.clamp(whole, one, one).dtype is torch.float64
    tenth = of(0.1, place, torch.float64)
    assert torch.clamp(of([0.0], place, torch.float64), tenth, 2).item() == 0.1


def test_booleans_where_pytorch_takes_them(place) -> None:
    x = of([True, False], place)
    for found, expected in (
        (x**True, [True, False]),
        (x**False, [True, True]),
        (x.square(), [1, 0]),
        (torch.square(x), [1, 0]),
        (x**2, [1, 0]),
        (2**x, [2, 1]),
        (x ** x.int(), [1, 1]),
        (x % 2, [1, 0]),
        (5 % of([True, True], place), [0, 0]),
    ):
        assert found.tolist() == expected and (found.dtype is torch.bool) is isinstance(expected[0], bool)
    for call in (lambda: x**x, lambda: True**x, lambda: x % True, lambda: True % x, lambda: x // x, lambda: x**-1):
        with pytest.raises(RuntimeError, match=r"not implemented for 'Bool'|Integers to negative integer powers"):
            call()


def test_integer_powers(place) -> None:
    base, exponent = [0, 1, -1, -1, 2, -3, 5, 2], [0, 5, 3, 4, 10, 3, 0, 62]
    assert (of(base, place) ** of(exponent, place)).tolist() == [x**y for x, y in zip(base, exponent, strict=True)]
    inverse = of([1, -1, -1, 2, 0, -3], place) ** of([-1, -1, -2, -1, -1, -3], place)
    assert inverse.tolist() == [1, -1, 1, 0, 0, 0]
    assert (2 ** of([0, 1, 5], place)).tolist() == [1, 2, 32] and (of([3], place) ** 0).tolist() == [1]
    assert (of([200], place, torch.uint8) ** 2).tolist() == [200**2 % 256]
    for _ in range(2):  # after a call with another number too
        with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
            of([200], place, torch.uint8) ** -1


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 5, 0.5, 1.5, -1, -2, -3, -0.5, inf])
def test_powers_of_floats(exponent, place) -> None:
    base = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, inf, -inf, nan, 1e-30, 3e9])
    with np.errstate(all="ignore"):
        expected = np.power(base, np.full(base.shape, exponent))  # C's pow; a single exponent may take a short way
        root = {0.5: np.sqrt(base), -0.5: 1 / np.sqrt(base)}.get(exponent, expected)  # -inf and -0 differ
    found = (of(base, place) ** exponent).cpu().numpy()
    np.testing.assert_allclose(found, root, rtol=1e-13)
    assert np.array_equal(np.signbit(found[:2]), np.signbit(root[:2]))
    powers = torch.pow(of(base, place), of(exponent, place, torch.float64))
    np.testing.assert_allclose(powers.cpu().numpy(), expected, rtol=1e-13)
    single = (of(2.0, place, torch.float64) ** exponent).item()  # without dimensions
    assert single == pytest.approx(2.0**exponent, rel=1e-15)
    x = of(base[2:6], place).requires_grad_()
    (x**exponent).sum().backward()
    if exponent != inf:
        with np.errstate(all="ignore"):
            slope = exponent * np.power(base[2:6], np.full(4, exponent - 1.0))
        np.testing.assert_allclose(x.grad.cpu().numpy(), slope, rtol=1e-12)


def test_scaled_sums_and_products(place) -> None:
    x, y, z = of([1.0, 2.0], place), of([3.0, 4.0], place), of([2.0, 8.0], place)
    assert torch.add(x, y, alpha=2).tolist() == [7, 10] and torch.sub(x, y, alpha=0.5).tolist() == [-0.5, 0]
    assert torch.add(2, y).tolist() == [5, 6] and torch.sub(2, y).tolist() == [-1, -2]
    assert torch.div(6, z).tolist() == [3, 0.75]
    assert torch.addcmul(x, y, z, value=0.5).tolist() == [4, 18] and torch.addcmul(x, y, z).tolist() == [7, 34]
    assert torch.addcdiv(x, y, z, value=2).tolist() == [4, 3] and torch.addcdiv(x, y, z).tolist() == [2.5, 2.5]
    assert torch.lerp(x, z, 0.25).tolist() == [1.25, 3.5] and torch.lerp(x, z, 1.0).tolist() == [2, 8]
    assert torch.lerp(x, z, of([0.0, 0.5], place)).tolist() == [1, 5]
    for weight in (of(0.5, place, torch.float64), of(True, place), of(0.5, "cpu")):
        mixed = torch.lerp(x, z, weight)  # a weight without dimensions promotes
        assert mixed.tolist() == ([2, 8] if weight.dtype is torch.bool else [1.5, 5]) and mixed.dtype is x.dtype
    assert torch.lerp(x.long(), z.long(), of(0.5, place, torch.float64)).dtype is torch.float64
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        torch.lerp(x, z, 1e39)
    flags = of([True, False], place)
    assert torch.add(flags, flags, alpha=True).tolist() == [True, False]
    x.add_(y, alpha=2).sub_(z, alpha=3).sub_(1).add_(2)
    assert x.tolist() == [2.0, -13.0]


def test_booleans_add_as_or_and_multiply_as_and(place) -> None:
    x, y = of([True, True, False], place), of([True, False, False], place)
    assert (x + y).tolist() == [True, True, False] and (x * y).tolist() == [True, False, False]
    assert (x + 1).dtype is torch.int64 and (x * 1.5).dtype is torch.float32 and (x / y).dtype is torch.float32


def test_numbers_beyond_a_dtype_wrap_alike_everywhere(place) -> None:
    x = of([44, 3], place, torch.uint8)
    assert (x + 300).tolist() == [88, 47] and (x - 256).tolist() == [44, 3] and (x & -1).tolist() == [44, 3]
    assert (x < 300).tolist() == [False, True]  # 300 is 44 in uint8, in PyTorch too
    assert (of([1], place, torch.int8) + 200).tolist() == [-55]
    assert (of([True], place) + 300).tolist() == [301]


def test_magnitude_and_sign(place) -> None:
    x = of([-2.5, 0.0, -0.0, 3.0, nan, -inf], place)
    assert abs(x).tolist() == pytest.approx([2.5, 0, 0, 3, nan, inf], nan_ok=True)
    assert torch.sign(x).tolist() == [-1, 0, 0, 1, 0, -1]
    assert torch.sgn(of([-3, 0, 9], place)).tolist() == [-1, 0, 1]
    assert torch.sign(of([7, 0], place, torch.uint8)).tolist() == [1, 0]
    assert torch.sign(of([True, False], place)).dtype is torch.bool
    assert (+x) is x and torch.square(of([-3], place)).tolist() == [9]


def test_magnitude_of_complex_numbers_is_real() -> None:
    x = torch.tensor([3 + 4j, 0j])
    assert x.abs().dtype is torch.float32 and x.abs().tolist() == [5.0, 0.0]
    assert torch.sgn(x).tolist() == pytest.approx([0.6 + 0.8j, 0])


# ---- the larger and the smaller -------------------------------------------------------------------------------


def test_nan_wins_a_maximum_and_loses_an_fmax(place) -> None:
    x, y = of([1.0, nan, 3.0, nan], place), of([2.0, 2.0, nan, nan], place)
    assert torch.maximum(x, y).tolist() == pytest.approx([2, nan, nan, nan], nan_ok=True)
    assert torch.minimum(x, y).tolist() == pytest.approx([1, nan, nan, nan], nan_ok=True)
    assert torch.fmax(x, y).tolist() == pytest.approx([2, 2, 3, nan], nan_ok=True)
    assert torch.fmin(x, y).tolist() == pytest.approx([1, 2, 3, nan], nan_ok=True)


def test_equal_operands_share_the_gradient() -> None:
    for function, slope in ((torch.maximum, [0.5, 0, 1]), (torch.minimum, [0.5, 1, 0])):
        x, y = (torch.tensor(values, requires_grad=True) for values in ([1.0, 2.0, 3.0], [1.0, 5.0, 0.0]))
        function(x, y).sum().backward()
        assert x.grad.tolist() == slope and y.grad.tolist() == [1 - part for part in slope]


def test_clamp(place) -> None:
    x = of([-2.0, 0.5, 3.0, nan], place)
    for result, expected in (
        (torch.clamp(x, 0, 1), [0, 0.5, 1, nan]),
        (x.clamp(min=0), [0, 0.5, 3, nan]),
        (x.clip(max=of(1.0, place)), [-2, 0.5, 1, nan]),
        (torch.clamp(x, of([-1.0, 1.0, 0.0, 0.0], place), 2), [-1, 1, 2, nan]),
        (torch.clamp(x, 2, 1), [1, 1, 1, nan]),
        (torch.clamp_min(x, 0), [0, 0.5, 3, nan]),
        (F.hardtanh(x), [-1, 0.5, 1, nan]),
        (F.relu6(x * 4), [0, 2, 6, nan]),
    ):
        assert result.tolist() == pytest.approx(expected, nan_ok=True)
    assert torch.clamp(of([1, 5], place), 0.5, 2).dtype is torch.float32
    assert F.hardtanh(x, inplace=True) is x and x.tolist() == pytest.approx([-1, 0.5, 1, nan], nan_ok=True)


def test_clamp_passes_gradients_at_its_bounds() -> None:
    x = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0, nan], requires_grad=True)
    x.clamp(0, 1).sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 1, 0, 0]


# ---- comparison, logic, bits ----------------------------------------------------------------------------------


def test_comparisons_are_boolean(place) -> None:
    x, y = of([1.0, 2.0, nan], place), of([1.0, 1.0, nan], place)
    for function, expected in (
        (python.eq, [1, 0, 0]),
        (python.ne, [0, 1, 1]),
        (python.lt, [0, 0, 0]),
        (python.le, [1, 0, 0]),
        (python.gt, [0, 1, 0]),
        (python.ge, [1, 1, 0]),
    ):
        assert function(x, y).dtype is torch.bool and function(x, y).tolist() == [bool(flag) for flag in expected]
        assert function(x, 1).tolist() == [function(value, 1) for value in x.tolist()]
    assert (x == None) is False and (x != "text") is True  # noqa: E711
    assert len({x, y}) == 2
    assert of([1, 0], place).eq_(1).tolist() == [1, 0] and of([2.0, 3.0], place).lt_(2.5).tolist() == [1.0, 0.0]


def test_logic_takes_every_dtype(place) -> None:
    x, y = of([0.0, 2.0, nan, 0.0], place), of([0, 1, 0, 3], place)
    assert torch.logical_and(x, y).tolist() == [False, True, False, False]
    assert torch.logical_or(x, y).tolist() == [False, True, True, True]
    assert torch.logical_xor(x, y).tolist() == [False, False, True, True]
    assert torch.logical_not(x).tolist() == [True, False, False, True]
    assert of([True, False], place).logical_and_(of([True, True], place)).tolist() == [True, False]
    assert of([3, 0], place).logical_not_().tolist() == [0, 1]


def test_bits(place) -> None:
    for kind in INTEGERS:
        x, y = of([12, 5], place, kind), of([10, 3], place, kind)
        assert (x & y).tolist() == [8, 1] and (x | y).tolist() == [14, 7] and (x ^ y).tolist() == [6, 6]
        assert (6 & x).tolist() == [4, 4] and (1 | x).tolist() == [13, 5] and (1 ^ x).tolist() == [13, 4]
        assert (~x).tolist() == ([243, 250] if kind is torch.uint8 else [-13, -6])
        x &= 4
        x |= 1
        x ^= 3
        x <<= 1
        assert x.tolist() == [12, 12]
    flags = of([True, False], place)
    assert (~flags).tolist() == [False, True] and (flags & True).tolist() == [True, False]


def test_shifts_by_all_bits_leave_the_sign(place) -> None:
    for kind in INTEGERS:
        bits = torch.iinfo(kind).bits
        x = of([5, 1, 100], place, kind)
        assert (x >> 1).tolist() == [2, 0, 50] and (x << 1).tolist()[:2] == [10, 2] and (1 << x)[1].item() == 2
        assert (x << bits).tolist() == [0, 0, 0] and (x >> bits).tolist() == [0, 0, 0]
        assert (200 >> of([3], place, kind)).tolist() == ([25] if bits > 8 or kind is torch.uint8 else [-7])
        if kind is not torch.uint8:
            assert (of([-8], place, kind) >> bits).tolist() == [-1] and (x >> -1).tolist() == [0, 0, 0]


# ---- in place -------------------------------------------------------------------------------------------------


def test_gradients_of_changes_in_place_use_the_old_values(place) -> None:
    x = of([0.5, 1.5], place, torch.float64).requires_grad_()
    ((x * 2).pow_(3).exp_().clamp_(min=-1).mul_(x).log_()).sum().backward()
    y = of([0.5, 1.5], place, torch.float64).requires_grad_()
    (((y * 2) ** 3).exp().clamp(min=-1) * y).log().sum().backward()
    assert x.grad.tolist() == y.grad.tolist()


def test_a_changed_operand_is_still_noticed() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    product = x * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


# ---- what is made from the registry ---------------------------------------------------------------------------


def test_every_method_is_a_function_too() -> None:
    for operator in registry.values():
        if isinstance(operator, Elementwise):
            for name in operator.methods:
                assert getattr(torch, name).__doc__, name
                assert getattr(torch.Tensor, name).__doc__, name


def test_functions_take_pytorchs_keywords() -> None:
    x, y = torch.tensor([4.0]), torch.tensor([2.0])
    assert torch.sqrt(input=x).item() == 2 and torch.pow(input=x, other=y).item() == 16
    assert torch.clamp_min(input=x, min=5).item() == 5 and torch.clamp(input=x, max=1).item() == 1
    assert torch.addcmul(input=x, tensor1=y, tensor2=y, value=2).item() == 12
    assert torch.lerp(input=x, end=y, weight=0.5).item() == 3
    assert torch.exp.__name__ == "exp" and torch.exp.__module__ == "tritensor.functional"


@pytest.mark.parametrize("kind", ["bool", "int8", "float16", "float32", "int64", "float64", "complex64", "complex128"])
def test_choosing_by_bits_equals_where(kind) -> None:
    rng = np.random.default_rng(0)
    condition = rng.random((5, 7)) < 0.5
    x, y = (rng.integers(-3, 4, (5, 7)).astype(kind) for _ in range(2))
    wide = y.astype("complex128")
    for pair in ((x, y), (x, 0), (0, y), (x, y[0]), (x[0], y), (x.T.copy().T, y), (x, 1), (2, y), (x, wide)):
        np.testing.assert_array_equal(select(condition, *pair), np.where(condition, *pair))
    np.testing.assert_array_equal(masked(condition, x), np.where(condition, x, 0))
    np.testing.assert_array_equal(masked(condition[0], x), np.where(condition[0], x, 0))
    assert select(np.array(True), np.array(1.5), np.array(2.5)) == 1.5


def test_choosing_by_bits_keeps_every_bit() -> None:
    x = np.array([nan, -0.0, inf], np.float32)
    chosen = select(np.array([True, True, False]), x, np.zeros(3, np.float32))
    assert np.isnan(chosen[0]) and np.signbit(chosen[1]) and chosen[2] == 0


def test_the_conjugate_of_a_real_tensor_is_the_tensor(place) -> None:
    for values in ([1.5, -2.0], [1, 2], [True, False]):
        x = of(values, place)
        assert x.conj() is x and torch.conj(x) is x
    z = torch.tensor([1 + 2j, -3j])
    assert z.conj().tolist() == [1 - 2j, 3j] and torch.conj(z[0]).item() == 1 - 2j


def test_complex_magnitudes_and_directions() -> None:
    z = torch.tensor([3 + 4j, 0j, complex(inf, 0), complex(1, -inf)])
    assert torch.equal(z.abs(), torch.tensor([5, 0, inf, inf])) and z[0].abs().dtype is torch.float32
    assert abs(z[0].to(torch.complex128)).dtype is torch.float64
    assert torch.allclose(z[:2].sgn(), torch.tensor([0.6 + 0.8j, 0j])) and z[2:].sgn().isnan().all()
    x = torch.tensor(3 + 4j, requires_grad=True)
    (x * x).abs().backward()
    assert abs(x.grad.item() - (6 + 8j)) < 1e-5


def test_complex_powers_of_zero() -> None:
    zero, one = torch.tensor([0j]), torch.tensor([1.0])
    assert (zero**0).tolist() == (zero**0j).tolist() == [1] and (zero**one).tolist() == [0]
    for found in (zero**zero, zero ** (one - 1), zero ** torch.tensor(0), 0**zero):
        assert found.isnan().all()


def test_what_is_too_large_on_the_way(place) -> None:
    assert torch.sub(of([6, 0], place, torch.uint8), 255, alpha=3).tolist() == [9, 3]
    assert torch.add(2, of([6], place, torch.int8), alpha=100).tolist() == [(602 + 128) % 256 - 128]
    assert (-(1e300 ** of([0.5], place))).tolist() == [-inf] and ((-1e300) ** of([0.5], place)).tolist() == [inf]
    assert torch.addcmul(of([4], place, torch.uint8), 200, of([3], place, torch.uint8), value=200).tolist() == [196]
    large = of([3e38], place)
    assert torch.addcmul(large, large, large, value=0).tolist() == torch.tensor([3e38]).tolist()
    assert torch.addcdiv(large, large, large / 1e38, value=1e-38).item() == pytest.approx(3e38)
    x = of([2.0], place).requires_grad_()
    (x ** -(2**63)).backward()
    assert x.grad.tolist() == [0]
    half = of([65504, -65504, 1.25], place, torch.float16)
    assert torch.round(half, decimals=1).tolist() == [65504, -65504, 1.2001953125]
    assert torch.round(half, decimals=-1).tolist()[2] == 0
    z = torch.tensor([complex(nan, inf), complex(-inf, 1)])
    assert z.nan_to_num(nan=2.0, posinf=3.0, neginf=4.0).tolist() == [2 + 3j, 4 + 1j]


def test_zeros_with_a_sign_are_chosen_and_filled(place) -> None:
    x, mask = of([1.0, 2.0], place), of([True, False], place)
    for found in (torch.where(mask, -0.0, x), torch.where(~mask, x, -0.0), x.masked_fill(mask, -0.0)):
        assert str(found[0].item()) == "-0.0" and found[1].item() == 2
    assert str(torch.where(mask, 0.0, x)[0].item()) == "0.0"
