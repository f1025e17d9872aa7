"""Conversions between half precision and float32, which must give the bits of NumPy's and ml_dtypes' `astype`."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, settings
from tritensor.drivers import selection
from tritensor.host.copying import from_float32, to_float32

from ..needs import HAS_TRITON

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
COPIES = 2  # of the 65,536 values: more than the number of elements from which the fast conversions are used


@pytest.fixture(autouse=True)
def _no_warnings():
    with np.errstate(all="ignore"):
        yield


def edges() -> np.ndarray:
    """float32 numbers: all kinds, and those that lie on, just above and just below the middle of two halves."""
    rng = np.random.default_rng(0)
    kinds = [rng.integers(0, 1 << 32, 1 << 20, np.uint32)]
    for half in HALVES:
        values = np.arange(1 << 16, dtype=np.uint16).view(half).astype(np.float32)
        between = (values.astype(np.float64) + np.roll(values, -1)) / 2
        for number in (values, between.astype(np.float32)):
            bits = number.view(np.uint32)
            kinds += [bits - np.uint32(1), bits, bits + np.uint32(1)]
    scales = np.float32(10) ** rng.uniform(-9, 6, 1 << 18).astype(np.float32)
    kinds.append((rng.standard_normal(1 << 18).astype(np.float32) * scales).view(np.uint32))
    return np.concatenate(kinds).view(np.float32)


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("finite", [True, False])
def test_every_half_becomes_float32(half, finite) -> None:
    values = np.tile(np.arange(1 << 16, dtype=np.uint16), COPIES).view(half)
    values = values[np.isfinite(values.astype(np.float32))] if finite else values
    expected = values.astype(np.float32).view(np.uint32)
    np.testing.assert_array_equal(to_float32(values).view(np.uint32), expected)
    out = np.zeros(values.size, np.float32)
    assert to_float32(values, out) is out
    np.testing.assert_array_equal(out.view(np.uint32), expected)


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("finite", [True, False])
def test_float32_is_rounded_to_even(half, finite) -> None:
    values = edges()
    values = values[np.abs(values) < 65520] if finite else values
    expected = values.astype(half).view(np.uint16)
    np.testing.assert_array_equal(from_float32(values, half).view(np.uint16), expected)
    out = np.zeros(values.size, half)
    assert from_float32(values, half, out) is out
    np.testing.assert_array_equal(out.view(np.uint16), expected)


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("last", [1.0, np.nan, -np.inf, 65520.0, 65519.996])
def test_layouts(half, last) -> None:
    block = np.random.default_rng(1).standard_normal((40, 60, 20)).astype(np.float32)
    block[-1, -1, -1] = last
    out = np.zeros((40, 120, 20), half)[:, ::2]
    for values in (
        block,
        block.transpose(2, 0, 1),
        block[::2, ::-1],
        block[:, :, :1],
        np.broadcast_to(block, (2, 40, 60, 20)),
    ):
        small = from_float32(values, half)
        np.testing.assert_array_equal(small.view(np.uint16), values.astype(half).view(np.uint16))
        assert small.strides == values.astype(half).strides
        wide = to_float32(small)
        np.testing.assert_array_equal(wide.view(np.uint32), small.astype(np.float32).view(np.uint32))
    assert from_float32(block, half, out) is out
    np.testing.assert_array_equal(out.view(np.uint16), block.astype(half).view(np.uint16))


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_few_elements_and_other_dtypes(half) -> None:
    assert from_float32(np.float32([1, np.nan]), half).dtype == half
    assert to_float32(np.zeros((3, 0), half)).shape == (3, 0)
    assert to_float32(np.arange(3)).tolist() == [0, 1, 2]
    np.testing.assert_array_equal(from_float32(np.arange(1 << 14) / 3, half), (np.arange(1 << 14) / 3).astype(half))


@pytest.mark.skipif(not HAS_TRITON or bool(selection.lacks_native()), reason="native code needs Triton and llvmlite")
@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("target", ["", "avx2"])
def test_native_code_gives_the_same_bits(half, target) -> None:
    values = edges()
    with cuda.simulate(engine="native"), settings.native_target(target):
        found = torch.tensor(values, device="cuda").to(getattr(torch, half.name)).view(torch.int16).cpu().numpy()
    nan = np.isnan(values)
    np.testing.assert_array_equal(np.isnan(found.view(half)), nan)
    np.testing.assert_array_equal(found[~nan], values.astype(half).view(np.int16)[~nan])


@pytest.mark.skipif(not HAS_TRITON or bool(selection.lacks_native()), reason="native code needs Triton and llvmlite")
@pytest.mark.parametrize("target", ["", "avx2"])
def test_native_arithmetic_of_bfloat16_is_rounded_to_the_same_bits(target) -> None:
    """Of all numbers, NaNs of all bits among them, with some and with others."""
    half = HALVES[1]
    x = np.tile(np.arange(1 << 16, dtype=np.uint16), 8).view(half)
    y = np.repeat(np.uint16([0x3F81, 0x7FFF, 0xFFFF, 0x7F81, 0xFF80, 0x8001, 0x0080, 0xC2F7]), 1 << 16).view(half)
    wide = x.astype(np.float32), y.astype(np.float32)
    with cuda.simulate(engine="native"), settings.native_target(target):
        given = [torch.from_numpy(each.view(np.int16)).cuda().view(torch.bfloat16) for each in (x, y)]
        for name in ("add", "subtract", "multiply", "divide"):
            found = getattr(torch, name)(*given).view(torch.int16).cpu().numpy()
            exact = getattr(np, name)(*wide)
            np.testing.assert_array_equal(np.isnan(found.view(half)), np.isnan(exact))
            there = ~np.isnan(exact)
            np.testing.assert_array_equal(found[there], exact.astype(half).view(np.int16)[there])


@pytest.mark.skipif(not HAS_TRITON or bool(selection.lacks_native()), reason="native code needs Triton and llvmlite")
def test_native_sums_of_float32_that_are_nan_stay_so() -> None:
    """With bits that the rounding to bfloat16 would carry beyond the exponent."""
    x = np.uint32([0x7FFFFFFF, 0xFFFFFFFF, 0x7FBFFFFF, 0x3F800000] * 4).view(np.float32)
    added = torch.compile(lambda x: (x + x).to(torch.bfloat16))
    with cuda.simulate(engine="native"):
        found = [added(torch.tensor(x, device="cuda")).float().cpu().tolist() for _ in range(2)]
    np.testing.assert_array_equal(found, [[np.nan, np.nan, np.nan, 2.0] * 4] * 2)
