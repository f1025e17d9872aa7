"""The kernels behind matrix products: which is chosen for what, and that each computes what NumPy does."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.backends.cuda import matmul as switches
from tritensor.drivers import DeviceProperties
from tritensor.functional import linear
from tritensor.kernels.matmul import launch as matmul_launch
from tritensor.kernels.matmul.blocks import DESCRIBED, LONG, POINTERS, Blocks, Problem, choose
from tritensor.kernels.matmul.precision import product_for

from .interpreted_device import interpreted_device

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="simulated kernels need Triton")

H200 = DeviceProperties("H200", 9, 0, 0, 132)
B200 = DeviceProperties("B200", 10, 0, 0, 148)
A100 = DeviceProperties("A100", 8, 0, 0, 108, shared_memory_per_block_optin=166912)
L4 = DeviceProperties("L4", 8, 9, 0, 58, shared_memory_per_block_optin=101376)
RTX5090 = DeviceProperties("RTX 5090", 12, 0, 0, 170, shared_memory_per_block_optin=101376)


# ---- the choice ----------------------------------------------------------------------------------------------------


def square(size: int, product: str = "half", **more: Any) -> Problem:
    return Problem(product, size, size, size, itemsize=2 if product == "half" else 4, describable=True, **more)


def test_large_products_take_the_tiles_of_the_table() -> None:
    assert choose(square(8192), H200) == LONG[DESCRIBED["half"][0]]
    assert choose(square(2048), H200) == DESCRIBED["half"][0]
    assert choose(Problem("half", 65536, 128, 1024, describable=True), H200) == DESCRIBED["half"][1]
    assert choose(Problem("half", 64, 33792, 4096, describable=True), H200) == DESCRIBED["half"][3]
    assert choose(Problem("half", 64, 16384, 8192, describable=True), H200) == DESCRIBED["half"][4]
    assert choose(square(8192, "tf32"), H200) == DESCRIBED["tf32"][0]
    assert choose(square(8192, "tf32x3"), H200) == DESCRIBED["tf32x3"][0]
    assert choose(square(8192, "ieee"), H200) == POINTERS["ieee"][0]


def test_each_configuration_of_the_tables_is_chosen_for_some_product() -> None:
    """None is there for nothing; what is chosen on Hopper is one of those that the compiler's facts are known of."""
    sizes = [32, 64, 128, 256, 512, 1024, 2048, 4096, 16384, 33792]
    for product in DESCRIBED:
        chosen = {
            choose(Problem(product, rows, cols, depth, batches, 2 if product == "half" else 4, True), H200)
            for rows in sizes
            for cols in sizes
            for depth in (64, 512, 2048, 8192)
            for batches in (1, 33, 4096)
        }
        described = {blocks for blocks in chosen if blocks.kernel == "descriptors"}
        assert described == {
            *DESCRIBED[product],
            *(long for short, long in LONG.items() if short in DESCRIBED[product]),
        }


def test_a_fused_epilogue_is_computed_in_two_halves() -> None:
    for product in DESCRIBED:
        plain, fused = choose(square(8192, product), H200), choose(square(8192, product, epilogue=True), H200)
        assert fused.pieces == 2
        assert fused == plain._replace(pieces=2) or (product == "tf32" and fused.cols == 128)


def test_short_products_and_odd_layouts_are_read_through_pointers() -> None:
    assert choose(square(512), H200).kernel == choose(square(1024), H200).kernel == "pointers"
    assert choose(square(8192)._replace(describable=False), H200) == POINTERS["half"][0]


def test_descriptors_are_for_hopper_and_data_centre_blackwell() -> None:
    for device in (A100, L4, RTX5090):
        assert choose(square(8192), device).kernel == "pointers"
    assert choose(square(8192), B200).kernel == "descriptors"


def test_tiles_fit_the_shared_memory_of_the_device() -> None:
    t4 = DeviceProperties("T4", 7, 5, 0, 40, shared_memory_per_block_optin=65536)
    for device in (A100, L4, RTX5090, t4):
        for product in ("half", "tf32", "tf32x3", "ieee"):
            for size in (512, 2048, 8192):
                blocks = choose(square(size, product), device)
                stage = (blocks.rows + blocks.cols) * blocks.depth * (2 if product == "half" else 4)
                assert blocks.stages * stage <= device.shared_memory_per_block_optin
    assert (choose(square(8192), L4).stages, choose(square(8192), t4).stages) == (4, 2)
    assert choose(square(8192), RTX5090)[:3] == (128, 256, 32)
    assert choose(square(8192, "tf32x3"), A100)[:4] == (64, 128, 32, 8)
    assert choose(square(8192, "tf32"), B200)[:2] == (128, 128)


def test_deep_products_of_few_tiles_are_split() -> None:
    def split(*sizes: int, product: str = "half", batches: int = 1) -> int:
        return choose(Problem(product, *sizes, batches), H200).split

    assert split(64, 64, 65536) == 132
    assert split(256, 256, 65536) == 8  # 16 tiles for 132 processors
    assert split(64, 64, 2048) == 8  # 32 steps, four and more to a part
    assert split(64, 64, 512) == 1
    assert split(64, 64, 65536, batches=100) == 1
    assert split(64, 64, 65536, product="sum") == 1


@pytest.mark.parametrize("along", [True, False])
def test_few_rows_are_streamed(along: bool) -> None:
    for rows in (1, 2, 3, 4):
        for itemsize in (1, 2, 4, 8):
            blocks = choose(Problem("half", rows, 4096, 4096, itemsize=itemsize, along=along), H200)
            assert blocks.kernel == "streamed"
            assert blocks.rows >= rows
            vectors = blocks.cols * blocks.depth * itemsize // 16 // 128  # for each of 128 threads
            assert vectors in (1, 2, 4)
            assert blocks.split == 1 or not along
    assert choose(Problem("half", 1, 64, 65536, along=along), H200).split > 16
    # a short side of the large operand leaves no threads without work
    thin = Problem("half", 1, 100000, 2, along=True) if along else Problem("half", 1, 8, 100000)
    assert choose(thin, H200)[1:3] == ((256, 8) if along else (8, 256))
    assert choose(Problem("half", 5, 4096, 4096, along=along), H200)[:2] == (16, 64)


def test_forced_blocks_cut_in_every_way() -> None:
    with settings.block(8):
        assert choose(Problem("half", 99, 99, 99), H200) == Blocks(16, 16, 16, 4, 1, split=3)
        assert choose(Problem("half", 99, 99, 99, describable=True), H200) == Blocks(
            16, 16, 16, 4, 1, "descriptors", pieces=2
        )
        assert choose(Problem("half", 2, 99, 99), H200) == Blocks(2, 16, 16, 4, 1, "streamed", split=3)


# ---- precision of float32 ------------------------------------------------------------------------------------------


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


# ---- results, in simulation ----------------------------------------------------------------------------------------


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that products are prepared with."""
    found: list[str] = []
    bind = matmul_launch.bind

    def noted(kernel: Any, *arguments: Any, **options: Any) -> Any:
        found.append(kernel.__name__)
        return bind(kernel, *arguments, **options)

    monkeypatch.setattr(matmul_launch, "bind", noted)
    monkeypatch.setattr(matmul_launch, "_products", {})
    return found


def drawn(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng((seed, *shape))
    return torch.from_numpy(rng.standard_normal(shape).astype(np.float32)).to(dtype)


def flipped(x: Any) -> Any:
    """The same matrices with their columns side by side in memory."""
    return x.mT.contiguous().mT


def close(result: Any, wanted: Any, depth: int) -> None:
    assert result.dtype is wanted.dtype and result.shape == wanted.shape
    bound = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[result.dtype] * max(depth, 1) ** 0.5 * 4
    found = result.cpu().double().numpy()
    np.testing.assert_allclose(found, wanted.double().numpy(), rtol=bound, atol=bound)


@needs_triton
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("sizes", [(20, 40, 24), (24, 8, 40)], ids=str)
def test_descriptors_take_all_four_transposes(sizes: Any, block: int, dtype: Any, kernels: list[str]) -> None:
    rows, depth, cols = sizes
    x, y = drawn((rows, depth), dtype), drawn((depth, cols), dtype, 1)
    wanted = x @ y
    with torch.cuda.simulate(capability=(9, 0)), settings.block(block):
        for left in (x.cuda(), flipped(x.cuda())):
            for right in (y.cuda(), flipped(y.cuda())):
                # rows side by side are steps of 16 bytes only where their number is a multiple of 8
                regular = left.is_contiguous() or rows % 8 == 0 or dtype is torch.float32
                close(left @ right, wanted, depth)
                assert kernels[-1] == ("described_matmul_kernel" if regular else "matmul_kernel")


BATCHES = [
    ((3, 20, 16), (3, 16, 24)),
    ((20, 16), (3, 16, 24)),
    ((3, 20, 16), (16, 24)),
    ((3, 20, 16), (1, 16, 24)),
    ((1, 20, 16), (3, 16, 24)),
    ((2, 3, 20, 16), (2, 3, 16, 24)),
    ((2, 1, 20, 16), (3, 16, 24)),
]


@needs_triton
@pytest.mark.parametrize("block", [0, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shapes", BATCHES, ids=str)
def test_descriptors_take_batches(shapes: Any, block: int, kernels: list[str]) -> None:
    x, y = drawn(shapes[0], torch.float32), drawn(shapes[1], torch.float32, 1)
    with torch.cuda.simulate(capability=(9, 0)), settings.block(block):
        close(x.cuda() @ y.cuda(), x @ y, 16)
        close(flipped(x.cuda()) @ flipped(y.cuda()), x @ y, 16)
    # two batch dimensions that are not one, in either operand, go through pointers
    assert kernels == ["matmul_kernel" if shapes[0] == (2, 1, 20, 16) else "described_matmul_kernel"] * 2


@needs_triton
@pytest.mark.parametrize("block", [0, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("activation", [None, "gelu"])
@pytest.mark.parametrize("bias", [None, (24,), (20, 24), (20, 1), (1,)], ids=str)
def test_every_kernel_fuses_bias_and_activation(bias: Any, activation: Any, block: int, kernels: list[str]) -> None:
    for rows, cols, capability, expected in (
        *((20, 24, (9, 0), "described_matmul_kernel"), (20, 24, (8, 0), "matmul_kernel")),
        *((3, 24, (9, 0), "matvec_kernel"), (20, 3, (9, 0), "matvec_kernel")),
    ):
        x, weight = drawn((rows, 80), torch.float32), drawn((cols, 80), torch.float32, 1)
        given = None
        if bias is not None:
            given = drawn(tuple(rows if size == 20 else cols if size == 24 else 1 for size in bias), torch.float32, 2)
        wanted = linear(x, weight, given, activation=activation)
        with torch.cuda.simulate(capability=capability), settings.block(block):
            moved = None if given is None else given.cuda()
            close(linear(x.cuda(), weight.cuda(), moved, activation=activation), wanted, 80)
        assert expected in kernels
        kernels.clear()


@needs_triton
@pytest.mark.parametrize("sizes", [(20, 0, 24), (20, 1, 24), (5, 3, 7), (17, 33, 18), (2, 0, 5), (1, 1, 5)], ids=str)
def test_what_no_descriptor_can_be_made_of_goes_through_pointers(sizes: Any, kernels: list[str]) -> None:
    rows, depth, cols = sizes
    x, y, bias = (
        drawn((rows, depth), torch.float32),
        drawn((depth, cols), torch.float32, 1),
        drawn((cols,), torch.float32),
    )
    with torch.cuda.simulate(capability=(9, 0)):
        close(x.cuda() @ y.cuda(), x @ y, depth)
        close(linear(x.cuda(), y.mT.cuda(), bias.cuda()), linear(x, y.mT, bias), depth)
    assert set(kernels) <= {"matmul_kernel", "matvec_kernel"}


@needs_triton
def test_misaligned_and_spread_operands_are_read_where_they_are(kernels: list[str]) -> None:
    memory, y = drawn((20 * 64 + 8,), torch.float32), drawn((32, 24), torch.float32, 1)

    def rows(of: Any, offset: int, pitch: int) -> Any:
        return of[offset : offset + 20 * pitch].reshape(20, pitch)[:, :32]

    with torch.cuda.simulate(capability=(9, 0)):
        # the same layout at another address is another product
        for offset, pitch, kernel in (
            (0, 64, "described"),
            (4, 48, "described"),
            (1, 64, ""),
            (0, 33, ""),
            (2, 64, ""),
        ):
            close(rows(memory.cuda(), offset, pitch) @ y.cuda(), rows(memory, offset, pitch) @ y, 32)
            assert kernels[-1] == f"{kernel}_matmul_kernel".strip("_")
        row = memory[:32].reshape(1, 32)
        close(row.cuda().expand(20, 32) @ y.cuda(), row.expand(20, 32) @ y, 32)
        assert kernels[-1] == "matmul_kernel"


@needs_triton
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.int8], ids=str)
@pytest.mark.parametrize("block", [0, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "shapes",
    [
        ((100,), (100, 30)),
        ((30, 100), (100,)),
        ((100,), (100,)),
        ((3, 100), (100, 30)),
        ((30, 100), (100, 4)),
        ((2, 1, 100), (2, 100, 20)),
        ((2, 3, 1, 20), (3, 20, 5)),
        ((30, 1), (1, 2)),
    ],
    ids=str,
)
def test_few_rows_or_columns_are_streamed(shapes: Any, block: int, dtype: Any, kernels: list[str]) -> None:
    x, y = ((drawn(shape, torch.float32, seed) * 3).to(dtype) for seed, shape in enumerate(shapes))
    wanted = np.matmul(x.double().numpy(), y.double().numpy())
    with torch.cuda.simulate(), settings.block(block):
        for left in (x.cuda(), flipped(x.cuda()) if x.ndim > 1 else x.cuda()):
            for right in (y.cuda(), flipped(y.cuda()) if y.ndim > 1 else y.cuda()):
                result = (left @ right).cpu()
                assert result.dtype is dtype
                if dtype.is_floating_point:
                    bound = 0.3 if dtype is torch.bfloat16 else 1e-4
                    np.testing.assert_allclose(result.double().numpy(), wanted, rtol=bound / 10, atol=bound)
                else:
                    exact = np.asarray(wanted).astype(np.int64).astype(result.numpy().dtype)
                    np.testing.assert_array_equal(result.numpy(), exact)
    assert set(kernels) <= {"matvec_kernel", "finish_kernel"}


@needs_triton
@pytest.mark.parametrize("shapes", [((70,), (70, 20)), ((20, 70), (70, 2)), ((2, 1, 70), (2, 70, 18))], ids=str)
def test_streamed_products_are_split(shapes: Any, kernels: list[str]) -> None:
    x, y = drawn(shapes[0], torch.float32), drawn(shapes[1], torch.float32, 1)
    with torch.cuda.simulate(), settings.block(16):
        close(x.cuda() @ y.cuda(), x @ y, 70)
    assert kernels == ["matvec_kernel", "finish_kernel"]


@needs_triton
@pytest.mark.parametrize(
    ("sizes", "capability"),
    [
        ((40, 32, 24), (9, 0)),
        ((20, 97, 24), (9, 0)),
        ((2, 96, 24), (9, 0)),
        ((20, 96, 24), (8, 0)),
    ],
    ids=str,
)
def test_results_do_not_depend_on_the_order_of_the_grid(sizes: Any, capability: Any) -> None:
    rows, depth, cols = sizes
    x, y = drawn((rows, depth), torch.float32), drawn((depth, cols), torch.float32, 1)
    with torch.cuda.simulate(capability=capability), settings.block(16):
        left, right = x.cuda(), y.cuda()
        results = []
        for order in ("forward", "reverse", "shuffle"):
            with settings.grid_order(order):
                results.append((left @ right).cpu().numpy().tobytes())
    assert results[0] == results[1] == results[2]


@needs_triton
def test_programs_go_from_tile_to_tile(kernels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    grids = []
    bind = matmul_launch.bind
    monkeypatch.setattr(
        matmul_launch,
        "bind",
        lambda kernel, grid, *rest, **more: grids.append(grid) or bind(kernel, grid, *rest, **more),
    )
    x, y = drawn((2, 40, 32), torch.bfloat16), drawn((2, 32, 40), torch.bfloat16, 1)
    with torch.cuda.simulate(capability=(9, 0)) as driver, settings.block(16):
        for processors, programs in ((5, 5), (9, 9), (10, 18), (100, 18)):
            driver._properties = dataclasses.replace(driver._properties, multi_processor_count=processors)
            matmul_launch._products.clear()
            close(x.cuda() @ y.cuda(), x @ y, 32)
            assert grids[-1] == (programs,)


@needs_triton
def test_a_tile_outside_of_its_array_is_neither_read_nor_written() -> None:
    """The sanitizer follows addresses through descriptors."""
    from tritensor.errors import KernelMemoryError
    from tritensor.kernels.matmul.descriptors import described_matmul_kernel
    from tritensor.runtime.launch import launch

    constants = {
        "EPILOGUE": None,
        "OUT_DTYPE": torch.float32,
        "PRODUCT": "ieee",
        "X_FLIPPED": False,
        "Y_FLIPPED": False,
        "OUT_BATCHED": False,
        "X_BATCHED": False,
        "Y_BATCHED": False,
        "BIAS_ROWS": False,
        "PIECES": 1,
        "BLOCK_M": 16,
        "BLOCK_N": 16,
        "BLOCK_K": 16,
        "GROUP": 8,
    }
    with torch.cuda.simulate(), settings.simulate_late(False):
        x, y, out = (torch.zeros(16, 16).cuda() for _ in range(3))
        for rows, pitch in ((17, 16), (16, 32)):
            arguments = (out._data, x._data, y._data, (), rows, 16, 16, 1, (0, 16), (0, pitch), (0, 16), (0, 0, 0))
            with pytest.raises(KernelMemoryError, match=r"argument 1 \(x_ptr"):
                launch(described_matmul_kernel, (2,), arguments, constants, x.device)


@needs_triton
@pytest.mark.parametrize("scratch", [0, 384])
def test_products_run_from_plain_numbers(scratch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are launched on a real device, first and repeated, with and without scratch memory for descriptors."""
    with interpreted_device(monkeypatch) as gpu, settings.block(16):
        gpu.scratch = scratch
        for shapes in (((40, 16), (16, 24)), ((20, 100), (100, 24)), ((2, 100), (100, 24)), ((3, 24, 16), (3, 16, 24))):
            x, y = drawn(shapes[0], torch.float32), drawn(shapes[1], torch.float32, 1)
            left, right = x.cuda(), y.cuda()
            for _ in range(3):
                close(left @ right, x @ y, shapes[0][-1])
        x, weight, bias = (drawn(shape, torch.float32) for shape in ((40, 16), (24, 16), (24,)))
        moved = x.cuda(), weight.cuda(), bias.cuda()
        allocated = torch.cuda.memory_allocated()
        for _ in range(3):
            close(linear(*moved), linear(x, weight, bias), 16)
        assert torch.cuda.memory_allocated() == allocated
        assert {name for name, _ in gpu.launches} >= {"matmul", "matmul_finish"}
        addresses = {values[-2:] for name, values in gpu.launches if name == "matmul"}
        assert addresses == {(0, 0)} if not scratch else all(first % 128 == 0 < first for first, _ in addresses)
