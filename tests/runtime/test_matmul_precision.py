"""Precision of float32 products: its names, and how exact each is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tritensor as torch
from tritensor.backends.cuda import matmul as switches
from tritensor.kernels.matmul.precision import product_for


@pytest.fixture
def _default_precision() -> Iterator[None]:
    yield
    torch.set_float32_matmul_precision("highest")


@pytest.mark.usefixtures("_default_precision")
def test_names_of_precision_are_products() -> None:
    for name, product, allowed in (("highest", "tf32x3", False), ("high", "tf32", True), ("medium", "tf32", True)):
        torch.set_float32_matmul_precision(name)
        assert (switches.fp32_precision, switches.allow_tf32) == (product, allowed)
        assert torch.get_float32_matmul_precision() == name
        assert product_for((9, 0)) == product_for((8, 0)) == product
        assert product_for((7, 5)) == "ieee"
    for product, name in (("ieee", "highest"), ("tf32", "high"), ("tf32x3", "highest"), ("none", "highest")):
        switches.fp32_precision = product
        assert torch.get_float32_matmul_precision() == name
        assert product_for((9, 0)) == {"none": "tf32x3"}.get(product, product)
    for allowed in (True, False):
        switches.allow_tf32 = allowed
        assert switches.allow_tf32 is allowed
        assert torch.get_float32_matmul_precision() == ("high" if allowed else "highest")


@pytest.mark.usefixtures("_default_precision")
def test_what_is_no_precision_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Unknown precision: bf16"):
        switches.fp32_precision = "bf16"
    with pytest.raises(RuntimeError, match="set_allow_tf32_cublas expects a bool, but got int"):
        switches.allow_tf32 = 1
    with pytest.raises(RuntimeError, match="set_float32_matmul_precision expects a str, but got int"):
        torch.set_float32_matmul_precision(3)
    with pytest.raises(AttributeError, match="Unknown attribute allow_bf16"):
        switches.allow_bf16 = True
    with pytest.raises(AttributeError, match="Unknown attribute allow_bf16"):
        _ = switches.allow_bf16
    assert switches.fp32_precision == "tf32x3"


def nearest_tf32(x: np.ndarray) -> np.ndarray:
    """`cvt.rna.tf32`: 11 significant bits, ties away from zero."""
    return ((x.view(np.uint32).astype(np.uint64) + 0x1000) & 0xFFFFE000).astype(np.uint32).view(np.float32)


def towards_zero(x: np.ndarray, bits: int) -> np.ndarray:
    """float64 values cut off to so many significant bits."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.trunc(np.ldexp(mantissa, bits)), exponent - bits)


def on_tensor_cores(x: np.ndarray, y: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Steps of eight, their exact sum cut off to float32: no device is known to do worse."""
    for k in range(0, x.shape[1], 8):
        exact = total.astype(np.float64) + x[:, k : k + 8].astype(np.float64) @ y[k : k + 8].astype(np.float64)
        total = towards_zero(exact, 24).astype(np.float32)
    return total


def by_tf32x3(x: np.ndarray, y: np.ndarray, block: int = 32) -> np.ndarray:
    """What Triton makes of `tl.dot(..., input_precision="tf32x3")` in a loop over blocks."""
    total = np.zeros((len(x), y.shape[1]), np.float32)
    for k in range(0, x.shape[1], block):
        x_block, y_block = x[:, k : k + block], y[k : k + block]
        x_large, y_large = nearest_tf32(x_block), nearest_tf32(y_block)
        x_small, y_small = towards_zero(x_block - x_large, 11), towards_zero(y_block - y_large, 11)
        part = on_tensor_cores(x_small, y_large, np.zeros_like(total))
        part = on_tensor_cores(x_large, y_small, part)
        total = total + on_tensor_cores(x_large, y_large, np.nan_to_num(part, nan=0.0, posinf=np.inf, neginf=-np.inf))
    return total


def by_ieee(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """One fused multiply-add in float32 after the other."""
    total = np.zeros((len(x), y.shape[1]), np.float32)
    for k in range(x.shape[1]):
        total = (total + x[:, k : k + 1].astype(np.float64) * y[k : k + 1]).astype(np.float32)
    return total


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("depth", [32, 512, 2048])
def test_three_products_of_tf32_are_as_accurate_as_float32(depth: int, positive: bool) -> None:
    rng = np.random.default_rng(depth)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((40, depth), (depth, 32)))
    if positive:
        x, y = np.abs(x), np.abs(y)
    exact = x.astype(np.float64) @ y.astype(np.float64)

    def error(result: np.ndarray) -> float:
        return float(np.linalg.norm(result - exact) / np.linalg.norm(exact))

    assert error(by_tf32x3(x, y)) <= 1.5 * error(by_ieee(x, y))
    assert error(nearest_tf32(x).astype(np.float64) @ nearest_tf32(y)) > 10 * error(by_ieee(x, y))
