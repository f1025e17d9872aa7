"""Collectives of arrays that are cut into slices, and of smaller ones beside them; each rank compares with NumPy.

The elements are integers of as many bits as their dtype has, so that sums are exact in float32 and have to be rounded.
"""

from __future__ import annotations

import numpy as np

import tritensor as torch
import tritensor.distributed as dist
from tritensor.distributed import ReduceOp
from tritensor.distributed.backends import sliced

sliced._LEAST_PART = 1 << 12  # small arrays are sent in as many parts as large ones
HALVES = {torch.bfloat16: 256, torch.float16: 2048}
SIZES = (0, 1, 7, 70_001)  # the last one is cut into slices
FLOATING = (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX)
NUMPY = {
    ReduceOp.SUM: np.add,
    ReduceOp.AVG: np.add,
    ReduceOp.PRODUCT: np.multiply,
    ReduceOp.MIN: np.minimum,
    ReduceOp.MAX: np.maximum,
    ReduceOp.BXOR: np.bitwise_xor,
}
RANK, RANKS = 0, 1


def brought(rank, count, dtype, op=ReduceOp.SUM):
    """What a rank brings, as an array of the dtype."""
    generator = np.random.default_rng((rank, count))
    if dtype is torch.bool:
        return generator.random(count) < 0.7
    most = HALVES.get(dtype, 1000) if op is not ReduceOp.PRODUCT else 16
    numbers = generator.integers(1, most, count)
    found = torch.tensor(numbers if op is not ReduceOp.PRODUCT else numbers / 8).to(dtype).numpy()
    if dtype in HALVES and count > 1000:
        found[[3, 500]] = np.inf
        found[[4, -1]] = np.nan if rank else 1
        found[5] = 60000
    return found


def expected(arrays, op):
    """NumPy's result: in float32 for halves, and rounded once."""
    dtype = arrays[0].dtype
    wide = [array.astype(np.float32) if dtype.itemsize == 2 else array for array in arrays]
    with np.errstate(all="ignore"):
        total = NUMPY[op].reduce(wide)
        return (total / np.float32(len(arrays)) if op is ReduceOp.AVG else total).astype(dtype)


def same(x, array):
    found = x.numpy()
    assert found.dtype == array.dtype
    wide = np.float32 if array.dtype.itemsize == 2 else array.dtype
    np.testing.assert_array_equal(found.astype(wide), array.astype(wide))


def reductions():
    cases = [(dtype, op, count) for dtype in HALVES for op in FLOATING for count in SIZES]
    cases += [(torch.float32, op, 800_003) for op in (ReduceOp.AVG, ReduceOp.MIN)]
    cases += [(torch.int64, ReduceOp.SUM, 400_001), (torch.int32, ReduceOp.BXOR, 800_001)]
    cases += [(torch.bool, ReduceOp.SUM, 3_200_001), (torch.complex64, ReduceOp.AVG, 400_001)]
    for dtype, op, count in cases:
        arrays = [brought(rank, count, dtype, op) for rank in range(RANKS)]
        total = expected(arrays, op)
        x = torch.tensor(arrays[RANK])
        dist.all_reduce(x, op)
        same(x, total)
        x, root = torch.tensor(arrays[RANK]), RANKS - 1
        dist.reduce(x, root, op)
        same(x, total if root == RANK else arrays[RANK])
        whole = torch.tensor(arrays[RANK][: count // RANKS * RANKS])
        out = torch.empty(count // RANKS, dtype=dtype)
        own = slice(RANK * len(out), (RANK + 1) * len(out))
        dist.reduce_scatter_tensor(out, whole, op)
        same(out, total[own])
        dist.reduce_scatter_tensor(whole[own], whole, op)  # in place
        same(whole[own], total[own])


def gathers():
    for dtype in (torch.bfloat16, torch.int64):
        for count in (0, 3, 200_001):
            arrays = [brought(rank, count, dtype) for rank in range(RANKS)]
            whole = torch.empty(RANKS, count, dtype=dtype)
            dist.all_gather_into_tensor(whole, torch.tensor(arrays[RANK]))
            same(whole, np.stack(arrays))
            whole = torch.zeros(RANKS, count, dtype=dtype)
            whole[RANK] = torch.tensor(arrays[RANK])
            dist.all_gather_into_tensor(whole, whole[RANK])  # in place
            same(whole, np.stack(arrays))
            parts = [torch.zeros(count, 2, dtype=dtype)[:, 1] for _ in range(RANKS)]  # with gaps
            dist.all_gather(parts, torch.tensor(arrays[RANK]))
            for part, array in zip(parts, arrays, strict=True):
                same(part, array)
            x = torch.tensor(arrays[RANK])
            others = [torch.zeros(count, dtype=dtype) for _ in range(RANKS)]
            others[RANK - 1] = x  # what this rank sends is written over
            dist.all_gather(others, x)
            same(x, arrays[RANK - 1])


def gaps():
    """Views of which the memory between their elements stays as it is."""
    for dtype in HALVES:
        arrays = [brought(rank, 90_000, dtype).reshape(300, 300) for rank in range(RANKS)]
        base = torch.full((300, 600), 7, dtype=dtype)
        view = base[:, ::2].t()
        view.copy_(torch.tensor(arrays[RANK]))
        dist.all_reduce(view)
        same(view, expected(arrays, ReduceOp.SUM))
        same(base[:, 1::2], np.full((300, 300), 7, arrays[0].dtype))
        dist.reduce_scatter(view, [torch.tensor(arrays[RANK]).t()] * RANKS)
        same(view, expected(arrays, ReduceOp.SUM).T)


def several_at_once():
    """The ranks do not wait for the same operation first, and none may need another's next call to end."""
    large, small, halves = (torch.full((count,), RANK + 1.0) for count in (800_000, 3, 100_000))
    halves = halves.bfloat16()
    total = sum(range(1, RANKS + 1))
    if RANK == 0:
        works = [dist.all_reduce(x, async_op=True) for x in (large, halves)]
        dist.all_reduce(small)
        for work in reversed(works):
            assert work.wait()
    else:
        for x in (large, halves, small):
            dist.all_reduce(x)
    for x in (large, small, halves):
        assert x.min() == x.max() == total
    dist.all_reduce(halves, async_op=True)  # nobody waits for this one


def main():
    global RANK, RANKS
    dist.init_process_group()
    RANK, RANKS = dist.get_rank(), dist.get_world_size()
    for check in (reductions, gathers, gaps, several_at_once):
        check()
    dist.destroy_process_group()
    assert not sliced.running
    if RANK == 0:
        print(f"large arrays on {RANKS} ranks")


main()
