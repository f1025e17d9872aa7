"""SyncBatchNorm against BatchNorm of all data in one process; the argument names the device."""

from __future__ import annotations

import sys

import numpy as np

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn

DEVICE = sys.argv[1]


def drawn(*shape, seed):
    return torch.tensor(np.random.default_rng(seed).normal(1, 2, shape), dtype=torch.float32)


def same(found, wanted, what):
    np.testing.assert_allclose(
        found.detach().cpu().numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-4, err_msg=what
    )


dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
ends = [0]
for each in range(size):
    ends.append(ends[-1] + (0 if each == 1 and size > 2 else 2 + each))  # one process may have no rows
mine = slice(ends[rank], ends[rank + 1])
for momentum, affine in ((0.1, True), (None, False)):
    plain = nn.BatchNorm2d(3, momentum=momentum, affine=affine)
    if affine:
        torch.nn.init.constant_(plain.weight, 1.5)
    layer = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(plain))[0].to(DEVICE)
    assert isinstance(layer, nn.SyncBatchNorm)
    plain = nn.BatchNorm2d(3, momentum=momentum, affine=affine)
    plain.load_state_dict(layer.state_dict())
    for step in range(2):
        x, grad = (drawn(ends[-1], 3, 2, 3, seed=seed + step) for seed in (1, 5))
        x = x + 1e6 * step  # where a mean in float32 is off by a part of a deviation
        whole = x.clone().requires_grad_()
        wanted = plain(whole)
        part = x[mine].to(DEVICE).requires_grad_()
        found = layer(part)
        wanted.backward(grad)
        found.backward(grad[mine].to(DEVICE))
        same(found, wanted[mine], "result")
        same(part.grad, whole.grad[mine], "gradient")
    for one, other in zip(layer.parameters(), plain.parameters(), strict=True):
        total = one.grad.clone()
        dist.all_reduce(total)
        same(total, other.grad, "parameter")
    for name, value in layer.state_dict().items():
        same(value, plain.state_dict()[name], name)
    same(layer.eval()(x.to(DEVICE)), plain.eval()(x), "evaluation")
dist.barrier()
if rank == 0:
    print(f"one batch on {size} ranks")
dist.destroy_process_group()
