"""The nccl backend over a binding of our own: device memory is host memory here (libcuda_stub.c), so MPI can reduce it.

Kernels do nothing on the stub, which leaves contiguous tensors in the dtypes that NCCL reduces by itself.
"""

from __future__ import annotations

import ctypes
import re
import sys
import types

import numpy as np
import pytest
from mpi4py import MPI

calls = []


class UniqueId:
    def __init__(self, content):
        self.as_bytes = content

    @staticmethod
    def from_bytes(content):
        return UniqueId(bytes(content))


def memory(span):
    facts = span.__cuda_array_interface__
    assert facts["version"] == 3
    assert facts["strides"] is None
    dtype = np.dtype(facts["typestr"])
    (count,) = facts["shape"]
    raw = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(facts["data"][0])
    return np.frombuffer(raw, dtype)


class Communicator:
    def __init__(self, size, rank, address):
        assert (size, rank) == (MPI.COMM_WORLD.size, MPI.COMM_WORLD.rank)
        assert address.as_bytes == bytes(range(128))
        self.world = MPI.COMM_WORLD.Dup()

    init = classmethod(lambda cls, size, rank, unique_id: cls(size, rank, unique_id))

    def _reduced(self, sent, op):
        total = np.zeros_like(sent)
        self.world.Allreduce(sent, total, getattr(MPI, {"AVG": "SUM"}.get(op, op)))
        return total / self.world.size if op == "AVG" else total

    def allreduce(self, sendbuf, recvbuf, op, *, stream):
        calls.append(("allreduce", op, stream))
        memory(recvbuf)[:] = self._reduced(memory(sendbuf).copy(), op)

    def reduce(self, sendbuf, recvbuf, op, root=None, *, stream):
        total = self._reduced(memory(sendbuf).copy(), op)
        if root == self.world.rank:
            memory(recvbuf)[:] = total

    def broadcast(self, sendbuf, recvbuf, root, *, stream):
        self.world.Bcast(memory(recvbuf), root)

    def allgather(self, sendbuf, recvbuf, *, stream):
        self.world.Allgather(memory(sendbuf).copy(), memory(recvbuf))

    def reduce_scatter(self, sendbuf, recvbuf, op, *, stream):
        rows = self._reduced(memory(sendbuf).copy(), op).reshape(self.world.size, -1)
        memory(recvbuf)[:] = rows[self.world.rank]


binding = types.ModuleType("nccl.core")
binding.Communicator, binding.UniqueId = Communicator, UniqueId
binding.get_unique_id = lambda: UniqueId(bytes(range(128)))
for name in ("SUM", "PROD", "MIN", "MAX", "AVG"):
    setattr(binding, name, name)
sys.modules["nccl"], sys.modules["nccl.core"] = types.ModuleType("nccl"), binding

import tritensor as torch  # noqa: E402
import tritensor.distributed as dist  # noqa: E402
from tritensor import cuda  # noqa: E402
from tritensor.distributed import ReduceOp  # noqa: E402


def refused(kind, words, function, *arguments):
    with pytest.raises(kind, match=re.escape(words)):
        function(*arguments)


def main():
    with cuda.simulate():
        refused(RuntimeError, "the devices are simulated", dist.init_process_group, "nccl")
    cuda.set_device(1)
    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    assert dist.get_backend() == "nccl"

    def own(values):
        return torch.tensor(values, device="cuda")

    x = own([1.0 + rank, 2.0])
    version = x._version
    assert dist.all_reduce(x) is None
    assert x.tolist() == [sum(range(1, size + 1)), 2.0 * size]
    assert x._version > version
    assert calls[0][2] not in (0, cuda.current_stream().cuda_stream), "a stream of its own"
    work = dist.all_reduce(x, ReduceOp.AVG, async_op=True)
    assert work.wait()
    assert work.is_completed()
    for op, expected in ((ReduceOp.MAX, size - 1), (ReduceOp.MIN, 0), (ReduceOp.PRODUCT, 0)):
        x = own([rank])
        dist.all_reduce(x, op)
        assert x.tolist() == [expected]
    x = own([rank == 0, True])
    dist.all_reduce(x, ReduceOp.PRODUCT)
    assert x.tolist() == [size == 1, True]
    x = own([1.0 + rank])
    dist.reduce(x, size - 1)
    assert x.tolist() == ([sum(range(1, size + 1))] if rank == size - 1 else [1.0 + rank])
    x = own([rank, 10 * rank])
    dist.broadcast(x, size - 1)
    assert x.tolist() == [size - 1, 10 * (size - 1)]
    parts = [own([0, 0]) for _ in range(size)]
    dist.all_gather(parts, own([rank, 7]))
    assert [part.tolist() for part in parts] == [[each, 7] for each in range(size)]
    x = own([0.0])
    dist.reduce_scatter(x, [own([float(part + rank)]) for part in range(size)])
    assert x.tolist() == [size * rank + sum(range(size))]
    dist.barrier()

    refused(RuntimeError, "No backend type associated with device type cpu", dist.all_reduce, torch.ones(1))
    refused(
        RuntimeError,
        "but the group is on cuda:1 and the tensor on cuda:0",
        dist.all_reduce,
        torch.ones(1, device="cuda:0"),
    )
    refused(ValueError, "Cannot use ReduceOp.BOR with NCCL", dist.all_reduce, own([1]), ReduceOp.BOR)
    refused(
        RuntimeError, "nccl does not reduce tritensor.int16", dist.all_reduce, torch.zeros(1, dtype=torch.int16).cuda()
    )
    if rank == 0:
        print(f"nccl on {size} ranks")
    dist.destroy_process_group()


main()
