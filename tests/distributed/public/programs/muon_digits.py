"""A network trained with the optimizer Muon, whose processes share the work and gather the parameters."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist

sys.path.insert(0, os.getcwd())
from muon import MuonWithAuxAdam


def main() -> None:
    """Train on random data, a part of it in each process."""
    dist.init_process_group("gloo")
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, 16))
    x, y = torch.randn(32, 16), torch.randint(0, 16, (32,))
    matrices = [each for each in model.parameters() if each.ndim == 2]
    others = [each for each in model.parameters() if each.ndim < 2]
    optimizer = MuonWithAuxAdam(
        [
            {"params": matrices, "use_muon": True, "lr": 0.02, "weight_decay": 0.01},
            {"params": others, "use_muon": False, "lr": 3e-3, "betas": (0.9, 0.95), "weight_decay": 0.0},
        ]
    )
    own = slice(dist.get_rank(), None, dist.get_world_size())
    for _ in range(5):
        loss = torch.nn.functional.cross_entropy(model(x[own]), y[own])
        optimizer.zero_grad()
        loss.backward()
        for each in model.parameters():
            dist.all_reduce(each.grad, op=dist.ReduceOp.SUM)
            each.grad /= dist.get_world_size()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"loss {total.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
