"""Every collective, on the device that the first argument names; each rank checks what it gets."""

from __future__ import annotations

import os
import re
import sys

import numpy as np
import pytest

import tritensor as torch
import tritensor.distributed as dist
from tritensor.distributed import ReduceOp
from tritensor.errors import ArgumentError, DtypeError, RangeError, ShapeError

DEVICE = sys.argv[1]
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def own(rank, dtype=torch.float32, shape=(2, 3)):
    """What a rank brings: small different numbers."""
    count = int(np.prod(shape))
    values = (np.arange(count) + 2 * rank + 1).reshape(shape)
    return torch.tensor(values % 2 == 1 if dtype is torch.bool else values, dtype=dtype, device=DEVICE)


def host(x):
    return x.detach().cpu().to(torch.float64).numpy()


def everyone(size, dtype, shape=(2, 3)):
    return np.stack([host(own(rank, dtype, shape)) for rank in range(size)])


NUMPY = {
    ReduceOp.SUM: np.sum,
    ReduceOp.AVG: np.mean,
    ReduceOp.PRODUCT: np.prod,
    ReduceOp.MIN: np.min,
    ReduceOp.MAX: np.max,
}


def reduced(op, dtype, size, shape=(2, 3)):
    """The result by NumPy, rounded to the dtype."""
    total = NUMPY[op](everyone(size, dtype, shape), axis=0)
    return host(torch.tensor(total, dtype=torch.float64).to(dtype)) if dtype in FLOATS else total


def combinations():
    for dtype in FLOATS:
        for op in NUMPY:
            yield dtype, op
    for dtype in INTEGERS:
        for op in (ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX):
            yield dtype, op


def all_reduce(rank, size):
    for dtype, op in (*combinations(), (torch.int64, ReduceOp.PRODUCT)):
        x = own(rank, dtype)
        assert dist.all_reduce(x, op) is None
        np.testing.assert_allclose(host(x), reduced(op, dtype, size), rtol=1e-6, err_msg=f"{dtype} {op}")
    for op, expected in (
        (ReduceOp.BAND, np.bitwise_and),
        (ReduceOp.BOR, np.bitwise_or),
        (ReduceOp.BXOR, np.bitwise_xor),
    ):
        x = own(rank, torch.int32)
        dist.all_reduce(x, op)
        assert host(x).tolist() == expected.reduce(everyone(size, torch.int32).astype(np.int32), axis=0).tolist()


def booleans(rank, size):
    for op, expected in (
        (ReduceOp.SUM, "any"),
        (ReduceOp.MAX, "any"),
        (ReduceOp.PRODUCT, "all"),
        (ReduceOp.BAND, "all"),
    ):
        x = torch.tensor([rank == 0, True, False], device=DEVICE)
        dist.all_reduce(x, op)
        assert x.tolist() == [True if expected == "any" else size == 1, True, False]


def complex_numbers(rank, size):
    if DEVICE != "cpu":
        return
    x = torch.tensor([1 + 2j * rank], dtype=torch.complex64)
    dist.all_reduce(x)
    assert x.tolist() == [size + 2j * sum(range(size))]
    refused(DtypeError, "all_reduce does not support MAX on complex tensors", dist.all_reduce, x, ReduceOp.MAX)


def shapes_and_strides(rank, size):
    """Scalars, nothing at all, and views with gaps, whose other elements stay as they are."""
    for shape in ((), (0, 3), (1,)):
        x = own(rank, shape=shape)
        dist.all_reduce(x)
        np.testing.assert_array_equal(host(x), reduced(ReduceOp.SUM, torch.float32, size, shape))
    base = torch.zeros(4, 6, device=DEVICE)
    view = base[::2, 1:4]
    view.copy_(own(rank))
    dist.all_reduce(view.t())
    np.testing.assert_array_equal(host(view), reduced(ReduceOp.SUM, torch.float32, size))
    assert float(base.sum()) == float(view.sum())
    dist.broadcast(view, src=size - 1)


def no_tape(rank, size):
    """Parameters can be reduced; a tensor that a gradient needs knows that it was changed."""
    weight = torch.nn.Parameter(own(rank))
    dist.all_reduce(weight)
    assert weight.is_leaf
    x = own(rank).requires_grad_()
    y = x.exp()
    dist.all_reduce(y)
    refused(RuntimeError, "modified by an inplace operation", y.sum().backward)


def broadcast(rank, size):
    for source in range(size):
        for dtype in (*FLOATS, *INTEGERS, torch.bool):
            x = own(rank, dtype)
            dist.broadcast(x, source)
            np.testing.assert_array_equal(host(x), host(own(source, dtype)))


def reduce(rank, size):
    for root in range(size):
        for op in NUMPY:
            x = own(rank)
            dist.reduce(x, root, op)
            expected = reduced(op, torch.float32, size) if rank == root else host(own(rank))
            np.testing.assert_allclose(host(x), expected, rtol=1e-6)


def all_gather(rank, size):
    for dtype in (torch.bfloat16, torch.float32, torch.int64, torch.bool):
        parts = [torch.zeros(3, 2, dtype=dtype, device=DEVICE).t() for _ in range(size)]
        dist.all_gather(parts, own(rank, dtype))
        np.testing.assert_array_equal(np.stack([host(part) for part in parts]), everyone(size, dtype))
    for shape in ((size * 2, 3), (size, 2, 3)):
        whole = torch.zeros(*shape, device=DEVICE)
        dist.all_gather_into_tensor(whole, own(rank))
        np.testing.assert_array_equal(host(whole), everyone(size, torch.float32).reshape(shape))
    whole = torch.zeros(size, device=DEVICE)
    dist.all_gather_into_tensor(whole, own(rank, shape=()))
    np.testing.assert_array_equal(host(whole), everyone(size, torch.float32, ()))


def reduce_scatter(rank, size):
    whole = np.stack([np.stack([host(own(7 * sender + part)) for part in range(size)]) for sender in range(size)])
    for op in NUMPY:
        expected = NUMPY[op](whole, axis=0)[rank]
        out = torch.zeros(2, 3, device=DEVICE)
        dist.reduce_scatter(out, [own(7 * rank + part) for part in range(size)], op)
        np.testing.assert_allclose(host(out), expected, rtol=1e-5)
        for shape in ((size * 2, 3), (size, 2, 3)):
            out = torch.zeros(2, 3, device=DEVICE)
            dist.reduce_scatter_tensor(
                out, torch.tensor(whole[rank].reshape(shape), dtype=torch.float32, device=DEVICE), op
            )
            np.testing.assert_allclose(host(out), expected, rtol=1e-5)


def in_the_background(rank, size):
    tensors = [own(rank) * (k + 1) for k in range(5)]
    works = [dist.all_reduce(x, async_op=True) for x in tensors]
    works.append(dist.barrier(async_op=True))
    for work in reversed(works):
        assert work.wait()
        assert work.wait()
        assert work.is_completed()
    for k, x in enumerate(tensors):
        np.testing.assert_allclose(host(x), reduced(ReduceOp.SUM, torch.float32, size) * (k + 1), rtol=1e-6)
    assert "all_reduce #" in repr(works[0])
    for _ in range(20):  # nobody waits for these; their memory must live on
        dist.all_reduce(torch.ones(1000, device=DEVICE), async_op=True)
    dist.barrier()


def refused(kind, words, function, *arguments):
    with pytest.raises(kind, match=re.escape(words)):
        function(*arguments)


def bad_input(rank, size):
    """Refused before anything is sent, so the ranks stay in step."""
    x = own(rank)
    wide = torch.zeros(3, device=DEVICE).expand(2, 3)
    before = dist.group.WORLD.sequence
    refused(TypeError, "Expected parameter `tensor` of all_reduce to be of type torch.Tensor", dist.all_reduce, [1.0])
    refused(ArgumentError, "op must be a ReduceOp", dist.all_reduce, x, "sum")
    refused(ShapeError, "more than one element of the written-to tensor", dist.all_reduce, wide)
    refused(DtypeError, "does not support AVG", dist.all_reduce, own(rank, torch.bool), ReduceOp.AVG)
    refused(DtypeError, "Cannot use ReduceOp.BXOR with", dist.all_reduce, x, ReduceOp.BXOR)
    refused(RangeError, f"src={size} is no rank of this job", dist.broadcast, x, size)
    refused(RangeError, "dst=-1 is no rank", dist.reduce, x, -1)
    refused(ShapeError, "must have one tensor per rank", dist.all_gather, [x] * (size + 1), x)
    refused(ArgumentError, "List[torch.Tensor]", dist.all_gather, x, x)
    refused(ShapeError, "the tensors differ", dist.all_gather, [torch.zeros(3, 2, device=DEVICE)] * size, x)
    refused(DtypeError, "the tensors differ", dist.reduce_scatter, x, [own(rank, torch.float64)] * size)
    refused(ShapeError, f"must hold {size} parts", dist.all_gather_into_tensor, torch.zeros(5, 3, device=DEVICE), x)
    refused(DtypeError, f"must hold {size} parts", dist.reduce_scatter_tensor, x, own(rank, torch.int64, (2 * size, 3)))
    refused(ValueError, "Invalid process group specified: 'group'", dist.all_reduce, x, ReduceOp.SUM, "group")
    if DEVICE == "cpu":
        fixed = np.zeros(3, np.float32)
        fixed.flags.writeable = False
        refused(ShapeError, "read-only", dist.broadcast, torch.as_tensor(fixed))
    assert dist.group.WORLD.sequence == before
    np.testing.assert_array_equal(host(x), host(own(rank)))


def the_group(rank, size):
    assert dist.is_initialized()
    assert dist.get_backend() == "mpi"
    assert dist.get_node_local_rank() == rank
    assert dist.group.WORLD.checked is (DEVICE != "cpu")
    assert repr(dist.group.WORLD) == f"<ProcessGroup 0 mpi, rank {rank} of {size}>"
    refused(ValueError, "trying to initialize the default process group twice!", dist.init_process_group)
    dist.destroy_process_group()
    assert not dist.is_initialized()
    assert dist.group.WORLD is None
    # what a launcher says is known; without one more than one process need an address
    wrong_size, wrong_rank = (
        ("world_size=", "rank=") if "PMI_RANK" in os.environ else ("variable RANK", "variable MASTER_ADDR")
    )
    refused(ValueError, wrong_size, dist.init_process_group, "mpi", None, None, size + 1)
    refused(ValueError, wrong_rank, dist.init_process_group, "mpi", None, None, size, rank + size)
    dist.init_process_group("MPI", "env://", world_size=size, rank=rank)
    assert dist.group.WORLD.sequence == 0


def main():
    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    for check in (
        all_reduce,
        booleans,
        complex_numbers,
        shapes_and_strides,
        no_tape,
        broadcast,
        reduce,
        all_gather,
        reduce_scatter,
        in_the_background,
        bad_input,
        the_group,
        all_reduce,
    ):
        check(rank, size)
    dist.barrier()
    if rank == 0:
        print(f"all collectives on {size} ranks")
    dist.destroy_process_group()


main()
