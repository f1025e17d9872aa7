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
