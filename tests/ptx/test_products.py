"""Products of matrices, attention and convolutions in compiled simulation, beside the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product as product_of
from typing import Any

import numpy as np
import pytest

import tritensor
from tritensor import settings
from tritensor.drivers.compiled import CompiledSimulator
from tritensor.drivers.selection import require
from tritensor.kernels.attention import launch
from tritensor.nn import functional as F

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("compiling needs Triton", allow_module_level=True)

Tensors = tuple[tritensor.Tensor, ...]
SM_80, SM_90 = (8, 0), (9, 0)
# of a result's largest element: what rounding the result, and tf32 and bfloat16 operands within attention, leave
BOUNDS = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 2e-6, "tf32": 2e-3, "float64": 1e-14, "int8": 0.0}


@contextmanager
def precision_of(kind: str) -> Iterator[tritensor.dtype]:
    """The dtype of a kind; "tf32" is float32 with its products in tf32."""
    before = tritensor.get_float32_matmul_precision()
    tritensor.set_float32_matmul_precision("high" if kind == "tf32" else "highest")
    try:
        yield tritensor.float32 if kind == "tf32" else getattr(tritensor, kind)
    finally:
        tritensor.set_float32_matmul_precision(before)


def agree(
    function: Callable[..., Any],
    shapes: list[tuple[int, ...]],
    kind: str,
    capability: tuple[int, int],
    late: bool = False,
    uses: str = "",
    bound: float = 1,
) -> None:
    """Compute on the CPU and in compiled simulation, and require that the kernels use an instruction."""
    rng = np.random.default_rng(5)
    with precision_of(kind) as dtype, settings.simulate_late(late):
        whole = kind == "int8"
        values = [rng.integers(-9, 9, shape) if whole else rng.standard_normal(shape) for shape in shapes]
        inputs = [tritensor.tensor(value).to(dtype) for value in values]
        expected = function(*inputs)
        with tritensor.cuda.simulate(devices=1, capability=capability, compiled=True):
            ran = _instructions()
            results = function(*[x.cuda() for x in inputs])
            results = [result.cpu() for result in (results if isinstance(results, tuple) else (results,))]
    for result, wanted in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        got, reference = (x.detach().to(tritensor.float64).numpy() for x in (result, wanted))
        scale = BOUNDS[kind] * bound * max(np.abs(reference).max(), 1e-3)
        np.testing.assert_allclose(got, reference, rtol=0, atol=scale)
    assert any(name.startswith(uses) for name in ran), f"no {uses} was executed"


def _instructions() -> set[str]:
    """The names of the instructions in kernels that are loaded from now on."""
    driver = require()
    assert isinstance(driver, CompiledSimulator)
    ran: set[str] = set()
    load = driver.load

    def noting(index: int, compiled: Any, label: str) -> Any:
        loaded = load(index, compiled, label)
        ran.update(i.name for block in loaded.kernel.blocks for i in block.instructions)
        return loaded

    driver.load = noting  # type: ignore[method-assign]
    return ran


def product(layout: str = "nn") -> Callable[..., tritensor.Tensor]:
    """`x @ y`, with operands that are transposed as the letters say."""

    def compute(x: tritensor.Tensor, y: tritensor.Tensor) -> tritensor.Tensor:
        return (x.mT if layout[0] == "t" else x) @ (y.mT if layout[1] == "t" else y)

    return compute


def sizes(rows: int, depth: int, cols: int, layout: str, *batch: int) -> list[tuple[int, ...]]:
    left, right = (rows, depth), (depth, cols)
    return [
        (*batch, *(left[::-1] if layout[0] == "t" else left)),
        (*batch, *(right[::-1] if layout[1] == "t" else right)),
    ]


def attention(q: tritensor.Tensor, k: tritensor.Tensor, v: tritensor.Tensor, g: tritensor.Tensor) -> Tensors:
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[-1] != 64)
    out.backward(g)
    return out, q.grad, k.grad, v.grad


def convolution(x: tritensor.Tensor, weight: tritensor.Tensor) -> Tensors:
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    out = F.conv2d(x, weight, padding=1)
    out.backward(tritensor.ones_like(out))
    return out, x.grad, weight.grad


def test_products_by_fragments() -> None:
    agree(product("tn"), sizes(100, 72, 40, "tn"), "float16", SM_80, uses="mma.sync")
    agree(product("nt"), sizes(100, 72, 40, "nt"), "float32", SM_80, uses="mma.sync")


def test_products_by_warpgroups() -> None:
    agree(product("nn"), sizes(100, 72, 40, "nn"), "bfloat16", SM_90, uses="wgmma.mma_async")
    agree(product("tt"), sizes(100, 72, 40, "tt"), "float32", SM_90, late=True, uses="wgmma.mma_async")


@pytest.mark.parametrize("late", [False, True])
def test_products_by_copied_tiles(late: bool) -> None:
    with settings.block(64):
        agree(product("nn"), sizes(72, 200, 136, "nn", 2), "bfloat16", SM_90, late, "cp.async.bulk.tensor.3d")


def of_bytes(fast: bool) -> Callable[..., tritensor.Tensor]:
    """The product of float8 matrices and scales of their lines, and a bias."""

    def compute(x: tritensor.Tensor, y: tritensor.Tensor, a: tritensor.Tensor, b: tritensor.Tensor) -> Any:
        left, right = x.to(tritensor.float8_e4m3fn), y.to(tritensor.float8_e5m2).t()
        kind = tritensor.float32
        return tritensor._scaled_mm(left, right, a, b, b.reshape(-1), out_dtype=kind, use_fast_accum=fast)

    return compute


@pytest.mark.thorough
@pytest.mark.parametrize("late", [False, True])
def test_float8_by_warpgroups(late: bool) -> None:
    shapes = [(72, 208), (144, 208), (72, 1), (1, 144)]
    agree(of_bytes(fast=False), shapes, "float32", SM_90, late, uses="wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3")
    with settings.block(64):
        agree(of_bytes(fast=late), shapes, "float32", SM_90, late, uses="cp.async.bulk.tensor.2d")


@pytest.mark.thorough
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("width", [48, 64])
def test_attention_by_copied_tiles(width: int, late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_DESCRIBED_PRODUCTS", 0)
    agree(attention, [(1, 2, 150, width)] * 4, "float16", SM_90, late, "cp.async.bulk.tensor.2d", bound=2)


@pytest.mark.thorough
def test_attention_and_a_convolution() -> None:
    agree(attention, [(1, 2, 70, 32)] * 4, "float16", SM_90, uses="wgmma.mma_async", bound=2)
    agree(convolution, [(2, 16, 9, 8), (8, 16, 3, 3)], "float32", SM_80, uses="mma.sync", bound=2)


LAYOUTS = ("nn", "tn", "nt", "tt")


@pytest.mark.slow
@pytest.mark.parametrize("capability", [SM_80, SM_90])
@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_products(layout: str, kind: str, capability: tuple[int, int]) -> None:
    uses = "" if kind == "int8" else "mma.sync" if capability == SM_80 or kind == "float64" else "wgmma.mma_async"
    for late in (False, True):
        agree(product(layout), sizes(64, 64, 64, layout), kind, capability, late, uses)
        agree(product(layout), sizes(150, 72, 100, layout), kind, capability, late, uses)
        agree(product(layout), sizes(20, 24, 16, layout), kind, capability, late)
    agree(product(layout), sizes(50, 40, 60, layout, 3), kind, capability)
    agree(product(layout), sizes(16, 2048, 64, layout), kind, capability)  # split along the sum


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "tf32"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_products_by_copied_tiles(layout: str, kind: str, late: bool) -> None:
    bulk = "cp.async.bulk.tensor."
    agree(product(layout), sizes(520, 1000, 504, layout), kind, SM_90, late, bulk + "2d")
    agree(product(layout), sizes(264, 520, 504, layout, 5), kind, SM_90, late, bulk + "3d")


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("capability", [SM_80, SM_90])
@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "tf32"])
def test_all_of_attention_and_convolutions(
    kind: str, capability: tuple[int, int], late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width, least in product_of((32, 64, 128), (0, launch._DESCRIBED_PRODUCTS)):
        monkeypatch.setattr(launch, "_DESCRIBED_PRODUCTS", least)
        agree(attention, [(2, 2, 100, width)] * 4, kind, capability, late, bound=2)
    agree(convolution, [(2, 32, 14, 13), (48, 32, 3, 3)], kind, capability, late, bound=2)
