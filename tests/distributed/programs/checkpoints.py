"""A model and its optimizer, divided in some way, and a checkpoint folder of them: written or read, here or in PyTorch.

mpiexec -n 4 python checkpoints.py LIBRARY save|load|fail WAY FOLDER

Who saves also writes the whole values to FOLDER/whole.npz, which who loads compares with, bit by bit.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import numpy as np

LIBRARY, ACTION, WAY, FOLDER = sys.argv[1:]
torch = importlib.import_module(LIBRARY)
dist = importlib.import_module(f"{LIBRARY}.distributed")
dcp = importlib.import_module(f"{LIBRARY}.distributed.checkpoint")
states = importlib.import_module(f"{LIBRARY}.distributed.checkpoint.state_dict")
fully_shard = importlib.import_module(f"{LIBRARY}.distributed.fsdp").fully_shard
init_device_mesh = importlib.import_module(f"{LIBRARY}.distributed.device_mesh").init_device_mesh
parallel = importlib.import_module(f"{LIBRARY}.distributed.tensor.parallel")
DTensor = importlib.import_module(f"{LIBRARY}.distributed.tensor").DTensor
nn = torch.nn


class Model(nn.Module):
    """Layers whose rows do not divide by the ranks, with fewer rows than ranks, and buffers of no dimension."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(6, 10), nn.Linear(10, 6)
        self.norm, self.out, self.few = nn.BatchNorm1d(6), nn.Linear(6, 5), nn.Linear(5, 3)

    def forward(self, x):
        return self.few(self.out(self.norm(self.down(self.up(x).tanh()))))


def divided(model, ranks):
    if WAY == "plain":
        return
    if WAY in ("hsdp", "tp"):
        mesh = init_device_mesh("cpu", (ranks // 2, 2), mesh_dim_names=("first", "second"))
    else:
        mesh = init_device_mesh("cpu", (ranks,))
    if WAY == "tp":
        plan = {"up": parallel.ColwiseParallel(), "down": parallel.RowwiseParallel()}
        parallel.parallelize_module(model, mesh["second"], plan)
        mesh = mesh["first"]
    for each in (model.up, model.down, model.few):
        fully_shard(each, mesh=mesh)
    fully_shard(model, mesh=mesh)


class Application:
    """What PyTorch's tutorial saves: a model and an optimizer by their state dicts."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def state_dict(self):
        model, optimizer = states.get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optimizer}

    def load_state_dict(self, state):
        states.set_state_dict(
            self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"]
        )


def made(ranks):
    """The state to save, or one of zeros to load."""
    model, saves = Model(), ACTION == "save"
    with torch.no_grad():
        for number, each in enumerate(model.state_dict().values()):
            values = np.random.default_rng(number).standard_normal(tuple(each.shape)) * saves * 9
            each.copy_(torch.tensor(np.asarray(values)).to(each.dtype))
    divided(model, ranks)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.125 if saves else 0.5)
    for each in model.parameters():
        each.grad = each.detach().clone()
    optimizer.step()
    if not saves:
        optimizer.param_groups[0]["betas"] = (0.1, 0.2)
    x = torch.arange(6.0).reshape(2, 3) * saves
    more = {
        "plain": x,
        "view": torch.arange(40).reshape(5, 8)[:, 1::3] * saves,
        "half": x.to(torch.bfloat16),
        "many": [x + 1 * saves, {"a": 1 * saves}, "text" * saves],
        "numbers": [1, 2.5, None] if saves else [],
        "text": "text" * saves,
        "pair": (1, "a") if saves else None,
        "empty": torch.zeros(0, 3),
    }
    return {"app": Application(model, optimizer), "more": more, "step": 7 * saves}


def whole(value, name=""):
    """Every value by its name, tensors gathered."""
    if hasattr(value, "load_state_dict"):
        return whole(value.state_dict(), name)
    if isinstance(value, dict):
        return {key: each for k, v in value.items() for key, each in whole(v, f"{name}.{k}").items()}
    if isinstance(value, list) and any(isinstance(each, (dict, torch.Tensor)) for each in value):
        return whole(dict(enumerate(value)), name)
    if isinstance(value, DTensor):
        value = value.full_tensor()
    return {name: value.detach().float().numpy().copy() if isinstance(value, torch.Tensor) else np.array(repr(value))}


def failing(state):
    """What fails on one rank is raised on all, and nothing stays in the folder."""
    rank = dist.get_rank()
    bad = [{"unlike": torch.ones(2 + (rank == 1))}, {f"only on {rank}": (lambda: 0) if rank == 1 else 0}]
    for more, said in zip(bad, ("unlike", "only on 1 cannot be saved"), strict=True):
        message = ""
        try:
            dcp.save({**state, **more}, checkpoint_id=FOLDER)
        except RuntimeError as error:
            message = str(error)
        assert said in message, message
        dist.barrier()
        assert not list(Path(FOLDER).iterdir())
        dist.barrier()
    if rank == 0:
        print("failed on all ranks")


def main():
    if LIBRARY == "torch":
        rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group("gloo", init_method=f"file://{FOLDER}.meeting", rank=rank, world_size=ranks)
    else:
        dist.init_process_group("mpi")
    state = made(dist.get_world_size())
    if ACTION == "fail":
        failing(state)
    elif ACTION == "save":
        dcp.save(state, checkpoint_id=FOLDER)
        values = whole(state)
        if dist.get_rank() == 0:
            np.savez(Path(FOLDER) / "whole.npz", **values)
    else:
        plain = state["more"]["plain"]
        dcp.load(state, checkpoint_id=FOLDER)
        assert plain[0, 1] == 1 and state["more"]["plain"] is plain  # in place
        found, expected = whole(state), np.load(Path(FOLDER) / "whole.npz")
        assert set(found) == set(expected), set(found) ^ set(expected)
        different = [name for name, value in found.items() if value.tobytes() != expected[name].tobytes()]
        assert not different, {name: (found[name], expected[name]) for name in different}
        if dist.get_rank() == 0:
            print(f"{len(found)} values on {dist.get_world_size()} ranks")
    dist.destroy_process_group()


main()
