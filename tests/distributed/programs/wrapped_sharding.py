"""FullyShardedDataParallel and ZeroRedundancyOptimizer against one process, with state dicts of all kinds."""

from __future__ import annotations

import copy
from functools import partial

import tritensor as torch
import tritensor.distributed as dist
from tritensor.distributed.checkpoint.state_dict import get_optimizer_state_dict
from tritensor.distributed.fsdp import (
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)
from tritensor.distributed.fsdp.wrap import CustomPolicy, ModuleWrapPolicy, size_based_auto_wrap_policy
from tritensor.distributed.optim import ZeroRedundancyOptimizer

MIXED = MixedPrecision(param_dtype=torch.bfloat16)
CASES = {
    "whole": {},
    "policy": {"auto_wrap_policy": ModuleWrapPolicy({torch.nn.Linear})},
    "size": {"auto_wrap_policy": partial(size_based_auto_wrap_policy, min_num_params=30)},
    "custom": {"auto_wrap_policy": CustomPolicy(lambda m: isinstance(m, torch.nn.Tanh)), "sync_module_states": True},
    "grad op": {"sharding_strategy": ShardingStrategy.SHARD_GRAD_OP},
    "no shard": {"sharding_strategy": ShardingStrategy.NO_SHARD},
    "hybrid": {"sharding_strategy": ShardingStrategy.HYBRID_SHARD},
    "mixed": {"mixed_precision": MIXED, "auto_wrap_policy": ModuleWrapPolicy({torch.nn.Sequential})},
}


def made():
    torch.manual_seed(0)
    inner = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6).eval())
    return torch.nn.Sequential(inner, torch.nn.Tanh(), torch.nn.Linear(6, 3))


def same(a, b, close=1e-5):
    assert sorted(a) == sorted(b), (sorted(a), sorted(b))
    for name in a:
        assert torch.allclose(a[name], b[name], atol=close), name


def sharded(options, close):
    rank, count = dist.get_rank(), dist.get_world_size()
    one, inside = made(), made()
    mine = torch.optim.Adam(inside.parameters(), lr=1e-2)  # before the model is wrapped
    model = FullyShardedDataParallel(inside, **options)
    theirs = torch.optim.Adam(one.parameters(), lr=1e-2)
    x = torch.randn(2 * count, 4)
    for _ in range(3):
        one(x).square().mean().backward()
        with model.no_sync():
            (model(x[2 * rank : 2 * rank + 2]).float().square().mean() / 2).backward()
        (model(x[2 * rank : 2 * rank + 2]).float().square().mean() / 2).backward()
        norms = [float(model.clip_grad_norm_(0.5)), float(torch.nn.utils.clip_grad_norm_(one.parameters(), 0.5))]
        assert abs(norms[0] - norms[1]) < 10 * close, norms
        for each in (mine, theirs):
            each.step()
            each.zero_grad()
    same(model.state_dict(), one.state_dict(), close)
    with FullyShardedDataParallel.summon_full_params(model), torch.no_grad():
        same(dict(model.named_parameters()), dict(one.named_parameters()), close)
        for p in model.parameters():
            p.add_(1)
    full = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, full):
        state = model.state_dict()
        assert bool(state) == (rank == 0)
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        parts = {name: value.clone() for name, value in model.state_dict().items()}
        model.load_state_dict(parts)
    assert float(model.state_dict()["2.bias"].sum() - one.state_dict()["2.bias"].sum()) > 2.9
    model.load_state_dict(one.state_dict())
    same(model.state_dict(), one.state_dict(), 0)
    saved = FullyShardedDataParallel.optim_state_dict(model, mine)
    assert saved["state"]["2.weight"]["exp_avg"].shape == (3, 6)
    again = torch.optim.Adam(model.parameters(), lr=1e-2)
    again.load_state_dict(FullyShardedDataParallel.optim_state_dict_to_load(model, again, saved))
    with torch.no_grad():
        model(x)  # leaves whole parameters
    found = get_optimizer_state_dict(model, again)["state"]["2.weight"]["exp_avg"].full_tensor()
    assert torch.equal(found, saved["state"]["2.weight"]["exp_avg"])


def zero():
    one, model = made(), made()
    mine = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    theirs = torch.optim.Adam(one.parameters(), lr=0.1)
    schedules = [torch.optim.lr_scheduler.StepLR(each, 1, 0.5) for each in (mine, theirs)]

    def train():
        for _ in range(2):
            for net, each in ((model, mine), (one, theirs)):
                each.zero_grad()
                net(torch.ones(3, 4)).square().sum().backward()
                each.step()
            for each in schedules:
                each.step()
        same(model.state_dict(), one.state_dict())

    train()
    mine.consolidate_state_dict(to=1)
    if dist.get_rank() == 1:
        assert sorted(mine.state_dict()["state"]) == sorted(theirs.state_dict()["state"])
        assert mine.state_dict()["param_groups"][0]["lr"] == theirs.state_dict()["param_groups"][0]["lr"]
    mine.load_state_dict(copy.deepcopy(theirs.state_dict()))
    train()
    pair = [torch.nn.Parameter(torch.ones(7)) for _ in range(2)]
    for each, p in zip((mine, theirs), pair, strict=True):
        each.add_param_group({"params": [p], "lr": 0.3})
        each.zero_grad()
        p.square().sum().backward()
        each.step()
    assert torch.allclose(*pair)


def scaler():
    """One rank's infinite gradient lets all leave out the step."""
    model = FullyShardedDataParallel(torch.nn.Linear(3, 4))
    optimizer, scale = torch.optim.SGD(model.parameters(), lr=1.0), torch.amp.GradScaler("cpu")
    scale.scale(model(torch.ones(2, 3)).sum()).backward()
    if dist.get_rank() == 0:
        model.module.weight._grad.fill_(float("inf"))
    before = model.module.weight.full_tensor().clone()
    scale.step(optimizer)
    scale.update()
    assert torch.equal(before, model.module.weight.full_tensor())
    assert scale.get_scale() == 32768


dist.init_process_group("mpi")
for name, options in CASES.items():
    sharded(options, 3e-2 if name == "mixed" else 1e-5)
zero()
scaler()
if dist.get_rank() == 0:
    print("as one process", flush=True)
