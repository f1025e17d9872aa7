"""The nccl backend over a binding of our own: device memory is host memory here (libcuda_stub.c), so MPI can reduce it.

Kernels do nothing on the stub, which leaves contiguous tensors in the dtypes that NCCL reduces by itself.
"""

from __future__ import annotations

import contextlib
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
        assert address.as_bytes == bytes(range(128))
        self.world = MPI.COMM_WORLD.Dup() if size > 1 else MPI.COMM_SELF

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

    def send(self, sendbuf, peer, *, stream):
        pending.append(self.world.Isend(memory(sendbuf).copy(), peer))

    def recv(self, recvbuf, peer, *, stream):
        pending.append(self.world.Irecv(memory(recvbuf), peer))

    def destroy(self):
        calls.append("destroyed")


pending = []


@contextlib.contextmanager
def group():
    yield
    MPI.Request.Waitall(pending)
    pending.clear()


binding = types.ModuleType("nccl.core")
binding.group = group
binding.Communicator, binding.UniqueId = Communicator, UniqueId
binding.get_unique_id = lambda: UniqueId(bytes(range(128)))
for name in ("SUM", "PROD", "MIN", "MAX", "AVG"):
    setattr(binding, name, name)
sys.modules["nccl"], sys.modules["nccl.core"] = types.ModuleType("nccl"), binding

import tritensor as torch  # noqa: E402
import tritensor.distributed as dist  # noqa: E402
from tritensor import cuda  # noqa: E402
from tritensor.distributed import ReduceOp  # noqa: E402
from tritensor.distributed.backends import nccl  # noqa: E402


def refused(kind, words, function, *arguments):
    with pytest.raises(kind, match=re.escape(words)):
        function(*arguments)


def main():
    # with a port NCCL's address travels through a store, and MPI knows nothing of it
    meet = {"init_method": f"tcp://127.0.0.1:{sys.argv[1]}"} if len(sys.argv) > 1 else {}
    dist.init_process_group(
        "nccl", rank=MPI.COMM_WORLD.rank, world_size=MPI.COMM_WORLD.size, device_id=torch.device("cuda:1"), **meet
    )
    assert cuda.current_device() == 1
    assert (dist.group.WORLD.host is None) is bool(meet)
    rank, size = dist.get_rank(), dist.get_world_size()
    assert dist.get_backend() == "nccl"
    # bfloat16, which the array interface cannot name
    halves = nccl._span(torch.empty(4, dtype=torch.bfloat16, device="cuda:1"))
    assert (*map(int, halves.__dlpack_device__()),) == (2, 1)
    assert type(halves.__dlpack__()).__name__ == "PyCapsule"

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
    parts = [own([0]) for _ in range(size)]
    dist.all_to_all(parts, [own([10 * rank + other]) for other in range(size)])
    assert [part.tolist() for part in parts] == [[10 * other + rank] for other in range(size)]
    parts = [own([0]) for _ in range(size)] if rank == 1 else None
    dist.gather(own([rank]), parts, dst=1)
    assert rank != 1 or [part.tolist() for part in parts] == [[other] for other in range(size)]
    x = own([0])
    dist.scatter(x, [own([other]) for other in range(size)] if rank == 0 else None)
    assert x.tolist() == [rank]
    x = own([0.0])
    other = size - 1 - rank
    for work in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, own([float(rank)]), other), dist.P2POp(dist.irecv, x, other)]
    ):
        work.wait()
    assert x.tolist() == [other]
    refused(RuntimeError, "nccl receives from one process", dist.recv, x)
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank})
    assert gathered == [{"rank": each} for each in range(size)]
    half = dist.new_group([0])
    assert dist.get_process_group_ranks(half) == [0] if rank == 0 else half == dist.GroupMember.NON_GROUP_MEMBER

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
