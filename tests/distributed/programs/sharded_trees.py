"""Random trees of modules with random calls of fully_shard, beside the same in one process.

mpiexec -n 3 python sharded_trees.py FIRST_SEED COUNT DEVICE
"""

from __future__ import annotations

import copy
import random
import sys

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from tritensor.distributed.device_mesh import init_device_mesh
from tritensor.distributed.fsdp import fully_shard
from tritensor.distributed.tensor import Shard

FIRST, COUNT, DEVICE = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


class Sum(nn.Module):
    """Adds up what its modules make of one input; some are there and not used."""

    def __init__(self, parts, unused):
        super().__init__()
        self.parts, self.unused = nn.ModuleList(parts), nn.ModuleList(unused)

    def forward(self, x):
        return x + sum(each(x) for each in self.parts) / len(self.parts)


class Scale(nn.Module):
    """Has parameters of its own beside modules, and a buffer."""

    def __init__(self, inner, width):
        super().__init__()
        self.inner, self.factor = inner, nn.Parameter(torch.ones(width))
        self.register_buffer("shift", torch.full((width,), 0.1))

    def forward(self, x):
        return {"out": self.inner(x) * self.factor + self.shift}["out"]


class Twice(nn.Module):
    """Calls one module two times."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(torch.tanh(self.inner(x)))


def tree(draws, depth, width):
    kind = draws.choice(["linear", "norm", "sequence", "sum", "scale", "twice", "tied"]) if depth else "linear"
    below = lambda: tree(draws, depth - 1, width)  # noqa: E731
    if kind == "norm":
        return nn.LayerNorm(width)
    if kind == "sequence":
        return nn.Sequential(*[below() for _ in range(draws.randint(1, 3))])
    if kind == "sum":
        return Sum([below() for _ in range(draws.randint(1, 3))], [nn.Linear(2, 3)] * (draws.random() < 0.3))
    if kind == "scale":
        return Scale(below(), width)
    if kind == "twice":
        return Twice(below())
    if kind == "tied":  # one weight in two layers of one module
        first, second = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        second.weight = first.weight
        return nn.Sequential(first, nn.GELU(), second)
    made = nn.Sequential(nn.Linear(width, draws.choice([1, 5, 8]), bias=draws.random() < 0.5), nn.GELU())
    made.append(nn.Linear(made[0].out_features, width))
    return made


def divided(model, draws, meshes):
    """Calls fully_shard for some modules from the inside out, and for the model."""
    tied = {id(p) for m in model.modules() for p in m._parameters.values()}
    counts = dict.fromkeys(tied, 0)
    for module in model.modules():
        for param in module._parameters.values():
            counts[id(param)] += 1
    mesh = draws.choice(meshes)
    for module in [*model.modules()][:0:-1]:
        has = any(counts[id(p)] > 1 for p in module.parameters(recurse=False) if p is not None)
        if draws.random() < 0.4 and not has and not isinstance(module, nn.ModuleList):
            place = (lambda p: Shard(p.ndim - 1)) if draws.random() < 0.2 else None
            keeps = draws.choice([None, True, False])
            fully_shard(module, mesh=mesh, reshard_after_forward=keeps, shard_placement_fn=place)
    fully_shard(model, mesh=mesh)
    return mesh


def close(found, expected, what):
    difference = (found - expected).abs().max().item() if expected.numel() else 0.0
    size = max(1.0, expected.abs().max().item() if expected.numel() else 0.0)
    assert difference <= 3e-5 * size, f"{what} differs by {difference} of {size}"


def one(seed, meshes):
    draws = random.Random(seed)
    torch.manual_seed(seed)
    width = draws.choice([1, 3, 6])
    single = tree(draws, draws.randint(1, 3), width).to(DEVICE)
    for p in single.parameters():
        p.requires_grad_(draws.random() < 0.9)
    if not any(p.requires_grad for p in single.parameters()):
        next(single.parameters()).requires_grad_(True)
    model = copy.deepcopy(single)
    divided(model, draws, meshes)
    rank, size = dist.get_rank(), dist.get_world_size()
    optimizers = [torch.optim.SGD([p for p in m.parameters() if p.requires_grad], 0.1, 0.9) for m in (single, model)]
    names = [name for name, _ in single.named_parameters()]
    for step in range(3):
        x = torch.randn(2 * size, width, device=DEVICE)
        mine = x[2 * rank : 2 * rank + 2]
        if draws.random() < 0.2:
            with torch.no_grad():
                close(model(mine), single(mine), f"tree {seed}, step {step}: the result without gradients")
        result = model(mine)
        close(result, single(mine), f"tree {seed}, step {step}: the result")
        if not result.requires_grad:  # what requires grad is not used
            return
        result.square().mean().backward()
        single(x).square().mean().backward()
        assert [name for name, _ in model.named_parameters()] == names
        for name, p, q in zip(names, single.parameters(), model.parameters(), strict=True):
            assert (p.grad is None) is (q.grad is None), f"tree {seed}: {name} has a gradient in one"
            if p.grad is not None:
                close(q.grad.full_tensor(), p.grad, f"tree {seed}, step {step}: the gradient of {name}")
        norms = [torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5) for m in (single, model)]
        close(norms[1].full_tensor(), norms[0], f"tree {seed}, step {step}: the norm")
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    expected = single.state_dict()
    assert state.keys() == expected.keys()
    for name, value in expected.items():
        close(state[name], value, f"tree {seed}: {name} of the state dict")
    zeros = {name: torch.zeros_like(value) for name, value in expected.items()}
    set_model_state_dict(model, zeros, options=StateDictOptions(full_state_dict=True))
    assert not any(value.full_tensor().any() for value in model.state_dict().values() if hasattr(value, "full_tensor"))


def main():
    dist.init_process_group("cpu:gloo,cuda:nccl" if DEVICE == "cuda" else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    if DEVICE == "cuda":
        torch.cuda.set_device(rank % torch.cuda.device_count())
    meshes = [init_device_mesh(DEVICE, (size,))]
    if size == 4:
        meshes.append(init_device_mesh(DEVICE, (2, 2), mesh_dim_names=("replicate", "shard")))
    for seed in range(FIRST, FIRST + COUNT):
        try:
            one(seed, meshes)
        except BaseException:
            print(f"rank {rank} failed in tree {seed}", file=sys.stderr, flush=True)
            raise
    if rank == 0:
        print(f"{COUNT} trees on {size} ranks agree")
    dist.destroy_process_group()


main()
