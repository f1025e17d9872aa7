"""The kernels behind matrix products, in simulation: that each computes what its reference does."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.functional import linear
from tritensor.kernels.matmul import launch as matmul_launch

from ..needs import needs_triton
from .interpreted_device import interpreted_device


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that products are launched with."""
    found: list[str] = []
    launch = matmul_launch.launch

    def noted(kernel: Any, *arguments: Any, **options: Any) -> Any:
        found.append(kernel.__name__)
        return launch(kernel, *arguments, **options)

    monkeypatch.setattr(matmul_launch, "launch", noted)
    return found


def drawn(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng((seed, *shape))
    return torch.from_numpy(rng.standard_normal(shape).astype(np.float32)).to(dtype)


def flipped(x: Any) -> Any:
    """The same matrices with their columns side by side in memory."""
    return x.mT.contiguous().mT


def simulated(block: int, capability: tuple[int, int] = (9, 0)) -> Any:
    """Devices on which small products are computed by descriptors: where the interpreter's tiles are chosen, or given
    ones."""
    return torch.cuda.simulate(capability=capability, engine=None if block else "interpreter")


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
    with simulated(block), settings.block(block):
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
    with simulated(block), settings.block(block):
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
        with simulated(block, capability), settings.block(block):
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

    with simulated(0):
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


@pytest.mark.sampled(8)
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
    "shapes", [((20, 100), (100, 24)), ((3, 20, 104), (3, 104, 24)), ((20, 70), (3, 70, 24))], ids=str
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_descriptors_split_the_depth(shapes: Any, dtype: Any, kernels: list[str]) -> None:
    """In three parts of 48, 32 or 16: the last one of 100 has 4, and of 70 in 16 the last has 6."""
    x, y, bias = drawn(shapes[0], dtype), drawn(shapes[1], dtype, 1), drawn((24,), dtype, 2)
    wide = 8 if dtype is torch.bfloat16 else 4
    with torch.cuda.simulate(capability=(9, 0)), settings.block(16):
        left, right = x.cuda(), y.cuda()
        close(left @ right, x @ y, 100)
        close(left @ flipped(right), x @ y, 100)
        if y.ndim == 2:
            close(linear(left, right.mT, bias.cuda(), activation="gelu"), linear(x, y.mT, bias, activation="gelu"), 100)
        described = "described_matmul_kernel" if shapes[0][-1] % wide == 0 else "matmul_kernel"
    assert set(kernels) == {described, "finish_kernel"}


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
@pytest.mark.parametrize("capability", [(9, 0), (8, 0)], ids=str)
def test_tiles_go_down_columns_of_a_group_of_rows(capability: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = []
    launch = matmul_launch.launch
    monkeypatch.setattr(
        matmul_launch,
        "launch",
        lambda kernel, grid, arguments, constants, *rest, **more: (
            groups.append(constants["GROUP"]) or launch(kernel, grid, arguments, constants, *rest, **more)
        ),
    )
    x, y = drawn((72, 16), torch.bfloat16), drawn((16, 40), torch.bfloat16, 1)
    with torch.cuda.simulate(capability=capability), settings.block(16):
        for rows in (64, 72):  # 4 processors: groups of 2 rows
            close(x[:rows].cuda() @ y.cuda(), x[:rows] @ y, 16)
            close(x[:32].cuda() @ y.cuda(), x[:32] @ y, 16)
    assert groups == [2, 0, 2, 0]


@needs_triton
def test_programs_go_from_tile_to_tile(kernels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    grids = []
    launch = matmul_launch.launch
    monkeypatch.setattr(
        matmul_launch,
        "launch",
        lambda kernel, grid, *rest, **more: grids.append(grid) or launch(kernel, grid, *rest, **more),
    )
    x, y = drawn((2, 40, 32), torch.bfloat16), drawn((2, 32, 40), torch.bfloat16, 1)
    with torch.cuda.simulate(capability=(9, 0)) as driver, settings.block(16):
        for processors, programs in ((5, 5), (9, 9), (10, 18), (100, 18)):
            driver._properties = dataclasses.replace(driver._properties, multi_processor_count=processors)
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
    with interpreted_device() as gpu, settings.block(16):
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


@needs_triton
@pytest.mark.parametrize("capability", [(9, 0), (8, 0)], ids=str)
def test_tf32_operands_are_copied_where_that_pays(
    capability: Any, kernels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matmul_launch, "_PRODUCTS_PER_COPY", 16)
    copies: list[Any] = []
    copy = matmul_launch.copy_into
    monkeypatch.setattr(matmul_launch, "copy_into", lambda out, x: copies.append(out.shape) or copy(out, x))
    rows, depth, cols = 40, 36, 48
    x, y, bias = (drawn(shape, torch.float32, 3) for shape in ((rows, depth), (depth, cols), (cols,)))
    torch.set_float32_matmul_precision("high")
    try:
        with simulated(0, capability):
            for left, wanted in ((x.cuda(), []), (flipped(x.cuda()), [(rows, depth)])):
                close(left @ flipped(y.cuda()), x @ y, depth)
                assert copies == (wanted if capability[0] == 9 else [])
                copies.clear()
                close(
                    linear(left, y.mT.cuda().contiguous(), bias.cuda(), activation="relu"), (x @ y + bias).relu(), depth
                )
                copies.clear()
                close(left @ y.cuda(), x @ y, depth)
                assert copies == ([*wanted, (cols, depth)] if capability[0] == 9 else [])
                copies.clear()
            close(x[:8].cuda() @ y.cuda(), x[:8] @ y, depth)  # each element of y in 8 products only
            close(x[:, :35].cuda() @ y[:35].cuda(), x[:, :35] @ y[:35], depth)  # lines of 140 bytes
            close(
                x.cuda().expand(2, rows, depth) @ y.cuda().expand(2, depth, cols), (x @ y).expand(2, rows, cols), depth
            )
            assert not copies
    finally:
        torch.set_float32_matmul_precision("highest")
