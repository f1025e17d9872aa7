"""What ranks send while they train, beside what one counted rank would: mpiexec -n N python counted.py KIND...

The ranks train on the CPU; then rank 0, and the last one, train as one rank of a simulated cluster of as many.
"""

from __future__ import annotations

import os
import sys
from collections import Counter

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.cluster import simulate
from tritensor.distributed.device_mesh import init_device_mesh
from tritensor.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from tritensor.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

LAUNCHED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(64, 160), nn.Linear(160, 64), nn.RMSNorm(64)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def train(kind, device):
    size = dist.get_world_size()
    torch.manual_seed(1)
    model = nn.Sequential(Block(), Block(), nn.Linear(64, 10)).to(device)
    if kind == "ddp":
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.05)
    elif kind == "tp":
        mesh = init_device_mesh(device, (size,))
        for block in model[:2]:
            parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    else:
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        shape, names = ((2, size // 2), ("copies", "parts")) if kind == "hsdp" else ((size,), ("parts",))
        mesh = init_device_mesh(device, shape, mesh_dim_names=names)
        for block in model[:2]:
            fully_shard(block, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with dist.count_collectives() as sent:
        for _ in range(2):
            for micro in range(2):
                if kind in ("fsdp", "hsdp"):
                    model.set_requires_gradient_sync(micro == 1)
                x = torch.ones(4, 64, device=device)
                nn.functional.cross_entropy(model(x), torch.zeros(4, dtype=torch.int64, device=device)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return Counter((each.operator, str(each.dtype), each.nbytes, each.ranks) for each in sent)


def main():
    kinds = sys.argv[1:]
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    real = {kind: train(kind, "cpu") for kind in kinds}
    dist.barrier()
    dist.destroy_process_group()
    if rank not in (0, size - 1):
        return
    for name in LAUNCHED:
        os.environ.pop(name, None)
    for kind in kinds:
        with simulate(nodes=1, gpus_per_node=size, card="h100", rank=rank):
            dist.init_process_group("nccl")
            counted = train(kind, "cuda")
        assert counted == real[kind], f"{kind}: counted {counted - real[kind]}, real {real[kind] - counted}"
        if rank == 0:
            total = sum(nbytes * count for (_, _, nbytes, _), count in counted.items())
            print(f"{kind} on {size} ranks: {sum(counted.values())} messages, {total} bytes, as counted", flush=True)


main()
