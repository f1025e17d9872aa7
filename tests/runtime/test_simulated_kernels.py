"""What kernels compute in simulation, against NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from tritensor import drivers
from tritensor.errors import KernelError
from tritensor.memory import copies
from tritensor.runtime.launch import Float64, Int64, device_function, kernel, launch
from tritensor.types import devices, dtypes

if TYPE_CHECKING:
    import triton.language as tl

pytest.importorskip("triton")

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
X = np.linspace(-3, 5, 37, dtype=np.float32)


@pytest.fixture(autouse=True)
def device():
    with drivers.simulate(devices=1):
        yield devices.cuda(0)


def on_device(array, dtype=None):
    return copies.from_host(np.ascontiguousarray(array, dtype), devices.cuda(0))


def zeros(shape, dtype=np.float32):
    return on_device(np.zeros(shape, dtype))


def run(function, grid, arguments, **constants):
    launch(function, grid, arguments, constants, devices.cuda(0))


@device_function
def square(x):
    return x * x


@kernel
def apply_kernel(out_ptr, in_ptr, count, BODY: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    tl.store(out_ptr + index, BODY(tl.load(in_ptr + index, mask=mask)), mask=mask)


def applied(body, x, out_dtype=None, block=16):
    out = zeros(x.shape, out_dtype or x.dtype)
    run(apply_kernel, (-(-x.size // block),), (out, on_device(x), x.size), BODY=body, BLOCK=block)
    return copies.to_host(out)


# ---- the language ---------------------------------------------------------------------------------


@kernel
def loop_kernel(out_ptr, in_ptr, count, step, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, BLOCK):
        index = start.to(tl.int64) + tl.arange(0, BLOCK)
        total += tl.load(in_ptr + index, mask=index < count, other=0.0)
    rounds = 0
    while rounds < step:
        total = total * 2
        rounds += 1
    if step > 2:
        total = -total
    for part in tl.static_range(2):
        total += part
    tl.store(out_ptr, tl.sum(total, 0))


@pytest.mark.parametrize("step", [0, 1, 3])
def test_loops_with_run_time_bounds(step):
    x = np.arange(37, dtype=np.float32)
    out = zeros(1)
    run(loop_kernel, (1,), (out, on_device(x), 37, step), BLOCK=8)
    total = x.sum() * 2**step
    assert copies.to_host(out)[0] == (-total if step > 2 else total) + 8


@kernel
def typed_kernel(single_ptr, double_ptr, long_ptr, single, double, long, FLAG: tl.constexpr, TYPE: tl.constexpr):
    scale = 0.1
    tl.store(single_ptr, single + scale)
    tl.store(double_ptr, double)
    if FLAG:
        tl.store(long_ptr, (long * 3).to(TYPE))


def test_numbers_arrive_with_their_types():
    single, double, long = zeros(1), zeros(1, np.float64), zeros(1, np.int64)
    run(typed_kernel, (1,), (single, double, long, 0.1, Float64(0.1), Int64(2**40)), FLAG=True, TYPE=dtypes.int64)
    assert copies.to_host(single)[0] == np.float32(0.1) + np.float32(0.1)
    assert copies.to_host(double)[0] == 0.1
    assert copies.to_host(long)[0] == 3 * 2**40
    run(typed_kernel, (1,), (single, double, long, 1e300, Float64(1e300), Int64(1)), FLAG=False, TYPE=dtypes.int64)
    assert copies.to_host(single)[0] == np.inf
    assert copies.to_host(long)[0] == 3 * 2**40


@kernel
def constants_kernel(out_ptr, options, in_ptr):
    value = tl.load(in_ptr)
    if options[0] == "negate":
        value = -value
    if options[1]:
        value = value + 1
    if options[2] is None:
        value = value * 2
    tl.store(out_ptr, value)


def test_strings_bools_and_none_are_constants():
    out = zeros(1)
    run(constants_kernel, (1,), (out, ("negate", True, None), on_device([3.0], np.float32)))
    assert copies.to_host(out)[0] == -4
    run(constants_kernel, (1,), (out, ("keep", False, 5), on_device([3.0], np.float32)))
    assert copies.to_host(out)[0] == 3


@kernel
def dot_kernel(out_ptr, x_ptr, y_ptr, SIZE: tl.constexpr):
    row, col = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    place = row * SIZE + col
    total = tl.dot(tl.load(x_ptr + place), tl.load(y_ptr + place), out_dtype=tl.float32)
    tl.store(out_ptr + place, total)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BFLOAT16], ids=str)
def test_dot(dtype):
    generator = np.random.default_rng(0)
    x, y = ((generator.standard_normal((16, 16)) * 4).astype(dtype) for _ in range(2))
    out = zeros((16, 16))
    run(dot_kernel, (1,), (out, on_device(x), on_device(y)), SIZE=16)
    expected = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(copies.to_host(out), expected, rtol=1e-5, atol=1e-4)


@device_function
def add_bfloat(x):
    y = x + x.to(tl.bfloat16)
    return tl.where(y > x, y, -y) * x


@device_function
def through_bfloat(x):
    return x.to(tl.bfloat16).to(tl.float32)


def test_bfloat16_arithmetic_rounds_after_every_operation():
    x = X.astype(BFLOAT16)
    y = x + x
    assert np.array_equal(applied(add_bfloat, x), np.where(y > x, y, -y) * x)


def test_casts_to_bfloat16_round_to_nearest_even():
    x = np.array([1.00390625, 1.01171875, 3.3895314e38, -1e-40, np.inf, np.nan, 0.1], np.float32)
    assert np.array_equal(applied(through_bfloat, x), x.astype(BFLOAT16).astype(np.float32), equal_nan=True)
    assert np.array_equal(applied(square, X[:5], BFLOAT16), (X[:5] * X[:5]).astype(BFLOAT16))


@device_function
def negated(x):
    return -x * 3


@pytest.mark.sampled(4)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [BFLOAT16, *map(np.dtype, ("f2", "f4", "f8", "i2"))], ids=str)
def test_a_negated_zero_has_the_other_sign(dtype, compiled):
    """In Triton 3.6, too, where -x is 0 - x."""
    x = np.array([0.0, -0.0, 3.5, -1.25], dtype)
    with drivers.simulate(devices=1, compiled=compiled):
        found = applied(negated, x)
    assert found.tobytes() == (-x * np.array(3, dtype)).tobytes()


@device_function
def truncated(x):
    return x.to(tl.bfloat16, fp_downcast_rounding="rtz").to(tl.float32)


@device_function
def through_float8(x):
    return x.to(tl.float8e5).to(tl.float32)


def test_other_roundings_and_types():
    x = np.array([1.0078, -1.9999, 0.1], np.float32)
    assert np.array_equal(applied(truncated, x), (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32))
    exact = np.array([1.25, -0.5, 3.5, 0.0], np.float32)
    assert np.array_equal(applied(through_float8, exact), exact)


SCALE = 3
STORED = dtypes.float32


@device_function
def with_module_constants(x):
    y = tl.minimum(tl.maximum(-x * SCALE, -2.0), 4.0)
    return (y + tl.rsqrt(tl.abs(x) + 1)).to(STORED)


@device_function
def with_a_list(x):
    parts = [part * SCALE for part in (x, x)]
    return parts[0] + parts[1]


def test_names_inside_a_comprehension_are_found():
    assert np.array_equal(applied(with_a_list, X), X * 3 + X * 3)


def test_constants_of_the_module_and_numbers_beside_nan():
    x = np.array([-1.0, 2.0, np.nan, 0.25], np.float32)
    expected = np.fmin(np.fmax(-x * 3, -2), 4) + 1 / np.sqrt(np.abs(x) + 1)
    assert np.array_equal(applied(with_module_constants, x), expected, equal_nan=True)


@device_function
def library(x):
    y = libdevice.tanh(x) + libdevice.log1p(tl.abs(x)) * libdevice.erf(x)  # noqa: F821 - given to every kernel
    return tl.where(libdevice.isnan(y), 0.0, libdevice.pow(y, 2.0))  # noqa: F821


def test_the_mathematics_library_is_there_in_simulation():
    from math import erf

    expected = (np.tanh(X) + np.log1p(np.abs(X)) * np.vectorize(erf)(X)) ** 2
    np.testing.assert_allclose(applied(library, X), expected, rtol=2e-6)
    with pytest.raises(KernelError, match="libdevice takes float32 and float64, not bf16"):
        applied(library, X.astype(BFLOAT16))


@kernel
def truth_kernel(out_ptr, x_ptr):
    index = tl.arange(0, 4)
    x = tl.load(x_ptr + index)
    y = tl.load(x_ptr + 3 - index)
    tl.store(out_ptr + index, x + y)


def test_bools_add_modulo_two_as_on_a_device():
    out = zeros(4, bool)
    run(truth_kernel, (1,), (out, on_device([True, True, False, True])))
    assert copies.to_host(out).tolist() == [False, True, True, False]


@device_function
def welford(mean, square, count, other_mean, other_square, other_count):
    total = count + other_count
    share = other_count / tl.maximum(total, 1.0)
    delta = other_mean - mean
    return mean + delta * share, square + other_square + delta * delta * count * share, total


@kernel
def welford_kernel(mean_ptr, var_ptr, x_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    x = tl.load(x_ptr + row[:, None] * COLS + col[None, :])
    mean, square, count = tl.reduce((x, tl.zeros_like(x), tl.full(x.shape, 1.0, tl.float32)), 1, welford)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, square / count)


def test_reduce_with_a_combine_function_of_several_values():
    x = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32) + 100
    mean, var = zeros(4), zeros(4)
    run(welford_kernel, (1,), (mean, var, on_device(x)), ROWS=4, COLS=64)
    np.testing.assert_allclose(copies.to_host(mean), x.mean(1), rtol=1e-6)
    np.testing.assert_allclose(copies.to_host(var), x.astype(np.float64).var(1), rtol=1e-3)


@device_function
def compose(scale, shift, next_scale, next_shift):
    return scale * next_scale, shift * next_scale + next_shift


@kernel
def folds_kernel(out_ptr, x_ptr, SIZE: tl.constexpr):
    index = tl.arange(0, SIZE)
    place = index[:, None] * SIZE + index[None, :]
    x = tl.load(x_ptr + place)
    tl.store(out_ptr + index, tl.sum(x, 0))
    tl.store(out_ptr + SIZE + index, tl.max(x, 1))
    tl.store(out_ptr + 2 * SIZE + index, tl.argmax(x, 1).to(tl.float32))
    tl.store(out_ptr + 3 * SIZE + index, tl.argmin(x, 0).to(tl.float32))
    tl.store(out_ptr + 4 * SIZE, tl.sum(x))
    tl.store(out_ptr + 4 * SIZE + 1, tl.min(tl.min(x, 0, keep_dims=True)))
    tl.store(out_ptr + 5 * SIZE + index, tl.sum(tl.cumsum(x, 1, reverse=True), 0))
    scale, shift = tl.associative_scan((x, x), 1, compose)
    tl.store(out_ptr + 6 * SIZE + index, tl.sum(shift, 0))
    scale, shift = tl.associative_scan((x, x), 0, compose, reverse=True)
    tl.store(out_ptr + 7 * SIZE + index, tl.sum(scale, 0))


def test_folds_and_scans():
    x = np.random.default_rng(2).uniform(0.5, 1.5, (8, 8)).astype(np.float32)
    x[3, 2] = x[3, 5] = 2.0  # a tie
    out = zeros((8, 8))
    run(folds_kernel, (1,), (out, on_device(x)), SIZE=8)
    got = copies.to_host(out)
    np.testing.assert_allclose(got[0], x.sum(0), rtol=1e-6)
    assert np.array_equal(got[1], x.max(1))
    assert np.array_equal(got[2], x.argmax(1))
    assert np.array_equal(got[3], x.argmin(0))
    np.testing.assert_allclose(got[4, :2], [x.sum(), x.min()], rtol=1e-6)
    np.testing.assert_allclose(got[5], x[:, ::-1].cumsum(1)[:, ::-1].sum(0), rtol=1e-5)
    shift, rows = np.zeros(8, np.float64), []
    for column in x.T:
        shift = shift * column + column
        rows.append(shift)
    np.testing.assert_allclose(got[6], np.sum(rows, 1), rtol=1e-5)
    np.testing.assert_allclose(got[7], x[::-1].cumprod(0)[::-1].sum(0), rtol=1e-5)


@kernel
def philox_kernel(out_ptr, seed, SIZE: tl.constexpr):
    index = tl.arange(0, SIZE)
    tl.store(out_ptr + index, tl.randint(seed, index))
    high = tl.umulhi(index.to(tl.uint64) * 0x9E3779B97F4A7C15, (index + 77).to(tl.uint64) * 0xBF58476D1CE4E5B9)
    tl.store(out_ptr + SIZE + index, (high >> 16).to(tl.int32, bitcast=False))


def test_wide_products_keep_their_upper_half():
    out = zeros((2, 64), np.int32)
    run(philox_kernel, (1,), (out, 12345), SIZE=64)
    got = copies.to_host(out)
    exact = [(i * 0x9E3779B97F4A7C15 % 2**64) * ((i + 77) * 0xBF58476D1CE4E5B9 % 2**64) >> 80 for i in range(64)]
    assert got[1].tolist() == [((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000 for value in exact]
    assert len(set(got[0].tolist())) == 64


@device_function
def chained(x):
    return tl.where(0 < x < 1, x, 0.0)


@device_function
def branching(x):
    if x > 0:
        x = -x
    return x


@pytest.mark.parametrize(("body", "match"), [(chained, "chained comparison"), (branching, "must be one value")])
def test_code_that_python_would_misread_is_refused(body, match):
    with drivers.simulate(engine="interpreter"), pytest.raises(KernelError, match=match):
        applied(body, X)


@device_function
def inside(x, low, high, FLIP: tl.constexpr = False):
    within = x > low and x < high
    if FLIP or (not FLIP and low > high):
        within = not within
    return tl.where(within or x == 0.0, x, 0.0)


@device_function
def inside_unit(x):
    return inside(x, 0.0, 1.0) + inside(x, 1.0, 0.0) + inside(x, 0.0, 1.0, FLIP=True)


def test_boolean_operators_work_element_by_element():
    within = (X > 0) & (X < 1)
    expected = np.where(within, X, 0) + X + np.where(~within, X, 0)
    assert np.array_equal(applied(inside_unit, X), expected)
