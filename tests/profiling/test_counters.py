"""What counters make of address patterns, masks and blocks that are written down here."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tritensor.drivers.ptx.counters import Counters
from tritensor.drivers.ptx.parse import parse


def machine(blocks: int = 1, threads: int = 32) -> SimpleNamespace:
    return SimpleNamespace(blocks=blocks, threads=threads)


def lanes(step: int, threads: int = 32, base: int = 4096) -> np.ndarray:
    return (base + step * np.arange(threads, dtype=np.uint64))[None, :]


@pytest.mark.parametrize("degree", [1, 2, 4, 8, 16, 32])
def test_words_of_one_bank_conflict(degree: int) -> None:
    counted = Counters()
    counted.shared_access(machine(), "load", lanes(4 * degree), 4, None)
    assert (counted.wavefronts, counted.least) == (degree, 1)


@pytest.mark.parametrize(
    ("addresses", "nbytes", "wavefronts", "least"),
    [
        (lanes(0), 4, 1, 1),  # all lanes read one word
        (lanes(12), 4, 1, 1),  # an odd step meets every bank
        (lanes(8), 8, 2, 2),  # half warps of 128 bytes
        (lanes(16), 16, 4, 4),  # quarter warps
        (lanes(32), 16, 8, 4),  # every second 16 bytes: two lanes of a quarter meet in a bank
        (lanes(128), 16, 32, 4),  # rows of 128 bytes: all eight lanes of a quarter do
        (lanes(2), 2, 1, 1),  # halves: pairs of lanes share a word
    ],
)
def test_wavefronts(addresses: np.ndarray, nbytes: int, wavefronts: int, least: int) -> None:
    counted = Counters()
    counted.shared_access(machine(), "store", addresses, nbytes, None)
    assert (counted.wavefronts, counted.least) == (wavefronts, least)


def test_lanes_that_are_masked_do_not_conflict() -> None:
    counted = Counters()
    counted.shared_access(machine(), "load", lanes(128), 4, np.arange(32)[None, :] < 3)
    counted.shared_access(machine(), "load", lanes(128), 4, np.zeros((1, 32), bool))
    assert (counted.wavefronts, counted.least) == (3, 1)


@pytest.mark.parametrize(
    ("step", "nbytes", "base", "sectors", "needed"),
    [
        (4, 4, 4096, 4, 128),
        (4, 4, 4100, 5, 128),  # one element off
        (16, 16, 4096, 16, 512),
        (8, 4, 4096, 8, 128),  # every second element: half of each sector
        (32, 4, 4096, 32, 128),
        (128, 4, 4096, 32, 128),
        (0, 4, 4096, 1, 4),
        (-4, 4, 8188, 4, 128),  # backwards
    ],
)
def test_sectors(step: int, nbytes: int, base: int, sectors: int, needed: int) -> None:
    addresses = (base + step * np.arange(32, dtype=np.int64))[None, :].astype(np.uint64)
    counted = Counters()
    counted.global_access(machine(), "load", addresses, nbytes, None)
    counted.finish()
    assert counted.requested == {"load": sectors} and counted.needed == {"load": needed}
    assert counted.sectors["load"].tolist() == [sectors] and counted.sectors["store"].tolist() == [0]


def test_sectors_that_a_block_asks_for_twice_are_unique_once() -> None:
    """Four loads at steps of four elements ask for four times the sectors; the first cache has them."""
    counted, one = Counters(), machine(blocks=2, threads=64)
    for offset in range(4):
        addresses = lanes(16, 64) + np.uint64(4 * offset) + np.array([[0], [1 << 20]], np.uint64)
        counted.global_access(one, "load", addresses, 4, None)
    counted.finish()
    assert counted.needed["load"] == 2 * 64 * 16
    assert counted.requested["load"] == 4 * 2 * 64 * 16 // 32
    assert counted.sectors["load"].tolist() == [2 * 64 * 16 // 32]


def test_addresses_that_all_blocks_share_count_for_each() -> None:
    counted, several = Counters(), machine(blocks=8, threads=64)
    counted.global_access(several, "store", lanes(4, 64), 4, np.arange(64)[None, :] < 40)
    counted.finish()
    assert counted.requested["store"] == 8 * (4 + 1) and counted.needed["store"] == 8 * 40 * 4
    assert counted.sectors["store"].tolist() == [8 * 5]


def test_sectors_by_buffer_and_chunk() -> None:
    """Buffers may begin within a sector; blocks of another chunk are other blocks."""
    counted = Counters([4096, 8192 + 16])
    for _ in range(3):
        one = machine()
        counted.global_access(one, "load", lanes(4), 4, None)
        counted.global_access(one, "load", lanes(4, base=8192 + 16), 4, None)
    counted.finish()
    assert counted.blocks == 3
    assert counted.sectors["load"].tolist() == [3 * 4, 3 * 5]


def test_tiles_of_the_copy_engine() -> None:
    rows = 8192 + 16 + np.array([[0], [1040]]) + np.arange(-16, 144, 16)  # at two places in a sector
    taken = np.broadcast_to(abs(np.arange(10) - 4.5) < 4, rows.shape)  # but for the first and last 16 bytes of 160
    counted = Counters()
    counted.bulk_access(machine(2), "load", 1, rows, taken, 16)
    counted.finish()
    assert counted.requested["load"] == 5 + 4 and counted.needed["load"] == 256
    assert counted.sectors["load"].tolist() == [9]


BODY = """
.version 9.4
.target sm_90a
.visible .entry k(.param .u64 k_param_0)
.reqntid 64
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<3>;
	ld.param.b64 %rd1, [k_param_0];
	ld.global.b32 %r1, [%rd1];
	shl.b32 %r8, %r1, 16;
	ld.global.b32 %r2, [%rd1+4];
	add.s32 %r3, %r8, %r2;
	add.s32 %r4, %r3, %r2;
	ld.global.b32 %r5, [%rd1+8];
	ld.global.b32 %r6, [%rd1+12];
$L__LOOP:
	fma.rn.f32 %r7, %r5, %r6, %r4;
	ret;
}
"""


def test_instructions_of_blocks_and_the_loads_they_wait_for() -> None:
    first, second = parse(BODY).blocks[:2]
    counted, three = Counters(), machine(3, 64)
    mask = np.zeros((3, 64), bool)
    mask[0, 40], mask[2, :] = True, True
    counted.executed(three, first, None)
    counted.executed(three, second, mask)
    counted.finish()
    assert counted.warps["ld.global.b32"] == 4 * 3 * 2 and counted.lanes["add.s32"] == 2 * 3 * 64
    assert counted.warps["fma.rn.f32"] == 1 + 2 and counted.lanes["fma.rn.f32"] == 1 + 64
    # the two loads before the sum at once, and the two of the first block in the second
    assert counted.waits == 2


def test_warps_that_branch_both_ways() -> None:
    counted, two = Counters(), machine(2, 64)
    taken = np.zeros((2, 64), bool)
    taken[0, :32], taken[1, 5] = True, True
    counted.branch(two, taken, None)
    assert (counted.branches, counted.divergent) == (4, 1)
    counted.branch(two, None, None)
    assert (counted.branches, counted.divergent) == (8, 1)


def test_atomics_ask_for_sectors_as_stores_do() -> None:
    counted = Counters()
    counted.global_access(machine(), "atomic", lanes(4), 4, None)
    counted.finish()
    assert counted.requested["atomic"] == 4 and counted.sectors["store"].tolist() == [4]
