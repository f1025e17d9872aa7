"""Bytes on a simulated device, times ranks, of those of the parameters: divided, with gradients, with AdamW's state."""

from __future__ import annotations

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.device_mesh import init_device_mesh
from tritensor.distributed.fsdp import fully_shard

dist.init_process_group("cpu:gloo,cuda:nccl")
rank, size = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank)
mesh = init_device_mesh("cuda", (size,))
model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 257), nn.GELU(), nn.Linear(257, 64)) for _ in range(12)]).cuda()
whole = sum(p.nbytes for p in model.parameters())
for each in [*model, model]:
    fully_shard(each, mesh=mesh)
optimizer, x = torch.optim.AdamW(model.parameters()), torch.randn(2, 64, device="cuda")
shares = []


def note():
    shares.append((torch.cuda.memory_allocated() - x.nbytes) * size / whole)


note()
model(x).sum().backward()
note()
optimizer.step()
note()
optimizer.zero_grad()
model(x).sum().backward()
note()
if rank == 0:
    print(*shares)
dist.destroy_process_group()
