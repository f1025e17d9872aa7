"""float32 products in parts of bfloat16: what is computed, what of infinities, how exactly, and what the compiler makes
of the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.errors import OutOfMemoryError
from tritensor.functional import linear
from tritensor.kernels.matmul import blocks as matmul_blocks
from tritensor.kernels.matmul import launch as matmul_launch
from tritensor.kernels.matmul.blocks import PARTS, Blocks
from tritensor.kernels.matmul.family import body_of
from tritensor.kernels.matmul.parts import parts_matmul_kernel, split_kernel
from tritensor.operators import registry
from tritensor.runtime.launch import compile_ahead
from tritensor.tensors import wrap
from tritensor.types import dtypes

from ..needs import HAS_TRITON
from .test_matmul_precision import by_ieee, on_tensor_cores

if not HAS_TRITON:
    pytest.skip("running kernels needs Triton", allow_module_level=True)

slow = pytest.mark.slow
# on one machine each; tiles of 64 are multiplied by wgmma
SLOWER = (("compiled", 64), ("native", 16))
WAYS = [("interpreter", 0), *(pytest.param(way, marks=pytest.mark.thorough) for way in SLOWER)]


@pytest.fixture(autouse=True)
def split_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul_blocks, "_PARTED_PRODUCTS", 1)
    monkeypatch.setattr(matmul_blocks, "_PARTED_EDGE", 5)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that products are launched with, their passes before and after excepted."""
    found: list[str] = []
    launch = matmul_launch.launch

    def noted(kernel: Any, *arguments: Any, **options: Any) -> Any:
        found.extend([kernel.__name__] * (kernel.__name__ != "finish_kernel"))
        return launch(kernel, *arguments, **options)

    monkeypatch.setattr(matmul_launch, "launch", noted)
    return found


@pytest.fixture(params=WAYS, ids=str)
def hopper(request: pytest.FixtureRequest) -> Iterator[str]:
    engine, block = request.param
    with torch.cuda.simulate(capability=(9, 0), engine=engine), settings.block(block):
        yield engine


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def flipped(x: Any) -> Any:
    """The same matrices with their columns side by side in memory."""
    return x.mT.contiguous().mT


def multiplied(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (torch.from_numpy(x).cuda() @ torch.from_numpy(y).cuda()).cpu().numpy()


def error(found: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    exact = x.astype(np.float64) @ y.astype(np.float64)
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


SHAPES = [
    ((72, 300), (300, 56)),  # in three parts of the depth
    ((20, 16), (16, 28)),  # lines of 28 become 32
    ((3, 20, 16), (3, 16, 24)),
    ((20, 16), (3, 16, 24)),
    ((3, 20, 16), (1, 16, 24)),
    ((2, 3, 20, 16), (2, 3, 16, 24)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_of_all_layouts_and_batches(shapes: Any, hopper: str, kernels: list[str]) -> None:
    x, y = drawn(*shapes[0]), drawn(*shapes[1], seed=1)
    left, right = torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()
    for first in (left, flipped(left)):
        for second in (right, flipped(right)):
            np.testing.assert_allclose((first @ second).cpu().numpy(), x @ y, rtol=1e-5, atol=2e-5)
    assert kernels == ["parts_matmul_kernel"] * 4


def test_a_bias_and_an_activation_are_fused(hopper: str, kernels: list[str]) -> None:
    x, weight = torch.from_numpy(drawn(20, 80)), torch.from_numpy(drawn(24, 80, seed=1))
    for shape in ((24,), (20, 24), (20, 1)):
        bias = torch.from_numpy(drawn(*shape, seed=2))
        found = linear(x.cuda(), weight.cuda(), bias.cuda(), activation="gelu").cpu().numpy()
        np.testing.assert_allclose(found, linear(x, weight, bias, activation="gelu").numpy(), rtol=1e-5, atol=2e-5)
    assert kernels == ["parts_matmul_kernel"] * 3


def test_gradients_are_products_in_parts(hopper: str, kernels: list[str]) -> None:
    """Beside the difference quotients of float64 sums."""
    x, weight, factors = drawn(20, 24), drawn(16, 24, seed=1), drawn(20, 16, seed=2)
    moved = [torch.from_numpy(each).cuda().requires_grad_() for each in (x, weight)]
    (linear(*moved) * torch.from_numpy(factors).cuda()).sum().backward()
    assert kernels == ["parts_matmul_kernel"] * 3
    exact = [each.astype(np.float64) for each in (x, weight)]
    for position, (row, col) in ((0, (3, 5)), (0, (19, 23)), (1, (0, 7)), (1, (15, 2))):
        ends = []
        for step in (-0.5, 0.5):
            changed = [each.copy() for each in exact]
            changed[position][row, col] += step
            ends.append(((changed[0] @ changed[1].T) * factors).sum())
        grad = moved[position].grad
        assert grad is not None
        np.testing.assert_allclose(float(grad[row, col].cpu()), ends[1] - ends[0], rtol=1e-5, atol=1e-5)


def test_infinite_and_the_largest_numbers_give_what_ieee_gives(hopper: str, kernels: list[str]) -> None:
    most = np.finfo(np.float32).max
    x, y = np.zeros((16, 32), np.float32), np.zeros((32, 16), np.float32)
    x[:, 0], y[0] = most, np.linspace(-0.9, 0.9, 16)  # rounds up to infinity in bfloat16
    x[1, 3], y[3] = np.inf, np.linspace(-7.3, 7, 16)  # small parts of either sign
    y[3, 5] = 0
    x[2, 4] = np.nan
    x[3, 5], x[3, 6], y[5], y[6] = -np.inf, np.inf, 1.1, np.linspace(-2, 2, 16)
    x[4, 7], x[5, 7], y[7] = most, -most, most
    x[:, 8], y[8, 3] = drawn(16), np.inf
    with np.errstate(all="ignore"):
        wanted = (x[:, :, None] * y[None]).sum(1)
    assert np.isnan(wanted).sum() > 16 < np.isinf(wanted).sum() and np.isfinite(wanted).sum() > 100
    np.testing.assert_allclose(multiplied(x, y), wanted, rtol=1e-6)
    assert kernels == ["parts_matmul_kernel"]


@pytest.mark.parametrize("exponents", [(0, 0), (50, 60), (-60, -50), (-20, 20)], ids=str)
def test_a_product_is_as_exact_as_in_float32(exponents: tuple[int, int], hopper: str) -> None:
    draw = np.random.default_rng(0)
    x, y = (
        (drawn(*shape) * 2.0 ** draw.uniform(*exponents, shape)).astype(np.float32) for shape in ((40, 200), (200, 24))
    )
    assert error(multiplied(x, y), x, y) <= 1.1 * error(by_ieee(x, y), x, y)


def test_split_numbers_add_up_to_what_was_split(hopper: str) -> None:
    draw = np.random.default_rng(0)
    bits = draw.integers(0, 1 << 32, (3, 20, 52), dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    x[0, 0, :4] = np.finfo(np.float32).max, -np.finfo(np.float32).max, np.inf, -np.inf
    moved = torch.from_numpy(x).cuda()
    parts = matmul_launch.split(moved._data, 3, 20, 52, (20 * 52, 52))
    assert parts.shape == (3, 3, 20, 56)
    large, *others = wrap(parts).cpu().double().numpy()[..., :52]
    finite = np.isfinite(x)
    np.testing.assert_array_equal(np.isnan(large), np.isnan(x))
    np.testing.assert_array_equal(large[np.isinf(x)], np.where(x > 0, np.inf, -np.inf)[np.isinf(x)])
    assert not any(each[~finite].any() for each in others)
    total, near = large + others[0] + others[1], np.where(finite, x, np.float32(0)).astype(np.float64)
    # below 2^-109 the last part is smaller than the smallest number of bfloat16
    exact = finite & (np.abs(near) >= 2.0**-109)
    np.testing.assert_array_equal(total[exact], near[exact])
    assert np.abs(np.where(finite, total, 0) - near).max() <= 2.0**-134


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("depth", [32, 512, 2048])
def test_cut_off_sums_are_as_accurate_as_float32(depth: int, positive: bool) -> None:
    """Emulated with tensor cores that do not round, as in `test_matmul_precision`."""
    x, y = drawn(40, depth), drawn(depth, 32)
    if positive:
        x, y = np.abs(x), np.abs(y)

    def parts(of: np.ndarray) -> tuple[Any, ...]:
        large = torch.from_numpy(of).bfloat16().float().numpy()
        middle = torch.from_numpy(of - large).bfloat16().float().numpy()
        return large, middle, of - large - middle

    total = np.zeros((40, 32), np.float32)
    for k in range(0, depth, PARTS[0].depth):
        left, right = parts(x[:, k : k + PARTS[0].depth]), parts(y[k : k + PARTS[0].depth])
        part = np.zeros_like(total)
        for i, j in ((2, 0), (0, 2), (1, 1), (1, 0), (0, 1), (0, 0)):
            part = on_tensor_cores(left[i], right[j], part)
        total = total + part
    assert error(total, x, y) <= 1.5 * error(by_ieee(x, y), x, y)


def test_without_memory_for_the_parts_tiles_are_split(kernels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = drawn(40, 32), drawn(32, 24)

    def refuse(*_: Any) -> None:
        raise OutOfMemoryError("there is none")

    monkeypatch.setattr(matmul_launch, "split", refuse)
    with torch.cuda.simulate(capability=(9, 0)), settings.block(16):
        np.testing.assert_allclose(multiplied(x, y), x @ y, rtol=1e-5, atol=2e-5)
    assert kernels == ["described_matmul_kernel"]


@pytest.mark.thorough
def test_programs_do_not_race() -> None:
    x, y = drawn(2, 72, 300), drawn(2, 300, 56)
    with torch.cuda.simulate(compiled=True, races=True), settings.block(64), settings.simulate_late(False):
        np.testing.assert_allclose(multiplied(x, y), x @ y, rtol=1e-5, atol=2e-5)
        halves = [torch.from_numpy(each[0, :, :296]).bfloat16() for each in (x, y.swapaxes(1, 2))]
        found = (halves[0].cuda() @ halves[1].cuda().mT).cpu().float().numpy()
        np.testing.assert_allclose(found, (halves[0] @ halves[1].mT).float().numpy(), rtol=2e-2, atol=2e-2)


# ---- compiled --------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("blocks", "flips", "batched", "epilogue", "split"),
    [
        (PARTS[0], (False, True), False, None, True),
        *(
            pytest.param(blocks, (x, y), batched, epilogue, split, marks=slow)
            for blocks in PARTS
            for x in (False, True)
            for y in (False, True)
            for batched, epilogue, split in ((False, None, False), (True, None, True), (False, "gelu", False))
        ),
    ],
    ids=str,
)
def test_every_configuration_is_fed_by_the_copy_engine(
    blocks: Blocks, flips: tuple[bool, bool], batched: bool, epilogue: str | None, split: bool
) -> None:
    count, steps = "i32" if batched else "i32:1", ("i32:16", "i32:16")
    parts, bias = "*bf16:16", ("*fp32:16",) if epilogue else ()
    signature = (
        *("*fp32:16", parts, parts, bias, "i32:16", "i32:16", "i32:16", count, count, count),
        *(steps, steps, steps, ("i32", "i32", "i32:1")),
    )
    constants = {
        "EPILOGUE": body_of(registry[epilogue]) if epilogue else None,
        "OUT_DTYPE": dtypes.float32,
        "X_FLIPPED": flips[0],
        "Y_FLIPPED": flips[1],
        "OUT_BATCHED": batched or split,
        "SPLIT": split,
        "BIAS_ROWS": False,
        "BLOCK_M": blocks.rows,
        "BLOCK_N": blocks.cols,
        "BLOCK_K": blocks.depth,
        "GROUP": 8,
    }
    facts = compile_ahead(parts_matmul_kernel, signature, constants, ("cuda", 90), blocks.warps, blocks.stages)
    assert facts.local_bytes == 0 and facts.registers <= 255 and facts.shared <= 232448
    ptx = facts.asm["ptx"]
    assert ptx.count("k16.f32.bf16.bf16") % 7 == 0 < ptx.count("cp.async.bulk.tensor.3d.shared")
    assert "cp.async.c" not in ptx


@pytest.mark.thorough
@pytest.mark.parametrize("width", [64, 1024])
def test_splitting_reads_and_writes_vectors(width: int) -> None:
    signature = ("*bf16:16", "*fp32:16", *("i32:16",) * 5, ("i32:16", "i32:16"))
    constants = {"HEIGHT": 1024 // width, "WIDTH": width}
    facts = compile_ahead(split_kernel, signature, constants, ("cuda", 90))
    assert facts.local_bytes == 0 and facts.registers <= 64
    ptx = facts.asm["ptx"]
    assert "ld.global.v4" in ptx and ptx.count("st.global.v4") == 3
