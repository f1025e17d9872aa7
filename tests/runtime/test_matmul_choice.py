"""Which kernel and which blocks a matrix product takes, by its size, layout and device."""

from __future__ import annotations

from typing import Any

import pytest

from tritensor import settings
from tritensor.drivers import DeviceProperties
from tritensor.kernels.matmul.blocks import DESCRIBED, LONG, PARTS, POINTERS, Blocks, Problem, choose, group_of

H200 = DeviceProperties("H200", 9, 0, 0, 132)
B200 = DeviceProperties("B200", 10, 0, 0, 148)
A100 = DeviceProperties("A100", 8, 0, 0, 108, shared_memory_per_block_optin=166912)
L4 = DeviceProperties("L4", 8, 9, 0, 58, shared_memory_per_block_optin=101376)
RTX5090 = DeviceProperties("RTX 5090", 12, 0, 0, 170, shared_memory_per_block_optin=101376)


def square(size: int, product: str = "half", **more: Any) -> Problem:
    return Problem(product, size, size, size, itemsize=2 if product == "half" else 4, describable=True, **more)


def test_large_products_take_the_tiles_of_the_table() -> None:
    assert choose(square(8192), H200) == LONG[DESCRIBED["half"][0]]
    assert choose(square(2048), H200) == LONG[DESCRIBED["half"][0]]
    assert choose(Problem("half", 65536, 128, 1024, describable=True), H200) == DESCRIBED["half"][1]
    assert choose(Problem("half", 64, 33792, 4096, describable=True), H200) == DESCRIBED["half"][3]
    assert choose(Problem("half", 64, 16384, 8192, describable=True), H200) == DESCRIBED["half"][4]
    assert choose(square(8192, "tf32"), H200) == DESCRIBED["tf32"][0]
    assert choose(square(8192, "tf32x3"), H200) == PARTS[0]
    assert choose(square(8192, "tf32x3", room=False), H200) == DESCRIBED["tf32x3"][0]
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
        whole = {*DESCRIBED[product], *(long for short, long in LONG.items() if short in DESCRIBED[product])}
        described = {blocks for blocks in chosen if blocks.kernel == "descriptors"}
        assert {blocks for blocks in described if blocks.split == 1} == whole
        parts = {blocks._replace(split=1) for blocks in described if blocks.split > 1}
        assert parts <= {blocks._replace(pieces=2) for blocks in DESCRIBED[product]}
        assert bool(parts) is ("eighth" not in product)  # whose scales belong to whole sums


def test_float32_is_split_on_hopper_where_each_element_is_in_enough_products() -> None:
    assert choose(square(1024, "tf32x3"), H200) == PARTS[1]
    for problem in (
        square(1023, "tf32x3"),
        Problem("tf32x3", 128, 8192, 8192, itemsize=4, describable=True),
        square(8192, "tf32x3")._replace(describable=False),
    ):
        assert choose(problem, H200).kernel != "parts"
    assert choose(square(8192, "tf32x3"), B200).kernel == "descriptors"
    assert choose(square(256, "tf32x3", batches=64), H200).kernel == "parts"


def test_a_fused_epilogue_is_computed_in_two_halves() -> None:
    for product in DESCRIBED:
        plain, fused = (choose(square(8192, product, epilogue=each, room=False), H200) for each in (False, True))
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


def test_descriptors_split_where_large_tiles_of_parts_are_much_faster() -> None:
    def cut(*sizes: int, product: str = "half", **more: Any) -> tuple[Any, ...]:
        itemsize = 2 if product == "half" else 4
        blocks = choose(Problem(product, *sizes, itemsize=itemsize, describable=True, **more), H200)
        return blocks.kernel, *blocks[:2], blocks.split

    assert cut(1024, 1024, 8192) == ("descriptors", 128, 256, 4)
    assert cut(256, 256, 32768) == ("descriptors", 128, 128, 33)  # 16 of 64x64 in whole sums would use 16 processors
    assert cut(3072, 768, 8192) == ("descriptors", 128, 256, 3)  # two waves of thirds
    assert cut(512, 512, 8192, product="tf32x3") == ("parts", 128, 128, 8)
    assert cut(64, 8192, 8192)[3] == 1  # bound by memory either way
    assert cut(1024, 1022, 8192)[3] == 1  # lines of parts of 4,088 bytes
    assert cut(2048, 2048, 8192)[3] == 1


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


@pytest.mark.parametrize("blocks", [*DESCRIBED["half"], *LONG.values(), *DESCRIBED["tf32x3"], PARTS[0]], ids=str)
def test_programs_that_run_at_once_share_operands(blocks: Blocks) -> None:
    """The lines of both operands that 132 tiles in a row read, at 8192 cubed: no more than with groups of 8."""
    row_tiles, col_tiles = 8192 // blocks.rows, 8192 // blocks.cols

    def lines(group: int) -> int:
        read = 0
        for first in range(0, row_tiles * col_tiles, 132):
            rows, cols = set(), set()
            for tile in range(first, min(first + 132, row_tiles * col_tiles)):  # as `kernel.tile_position`
                top = tile // (group * col_tiles) * group
                height, inside = min(row_tiles - top, group), tile % (group * col_tiles)
                rows.add(top + inside % height)
                cols.add(inside // height)
            read += len(rows) * blocks.rows + len(cols) * blocks.cols
        return read

    assert lines(group_of(blocks, 132)) <= 1.02 * lines(8)
    if blocks[:2] == (128, 256):
        assert lines(16) < 0.86 * lines(8)
