"""What fully_shard and DTensors refuse, on 2 ranks."""

from __future__ import annotations

import pytest

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.device_mesh import init_device_mesh
from tritensor.distributed.fsdp import fully_shard
from tritensor.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from tritensor.distributed.tensor.parallel import ColwiseParallel, parallelize_module


def two(width=4):
    return nn.Sequential(nn.Linear(width, width), nn.Linear(width, width))


def refused(kind, words, call):
    with pytest.raises(kind, match=words) as caught:
        call()
    return str(caught.value)


def of_modules(mesh, rank):
    model = two()
    model[1].weight = model[0].weight
    fully_shard(model[0], mesh=mesh)
    refused(RuntimeError, "the parameter weight of Linear is in another group already", lambda: fully_shard(model))
    model = fully_shard(two(), mesh=mesh)
    refused(RuntimeError, "was called for FSDPSequential before", lambda: fully_shard(model, mesh=mesh))
    model[0].weight = nn.Parameter(torch.zeros(4, 4))
    refused(RuntimeError, "parameter 0.weight of shape .* came after", lambda: model(torch.ones(1, 4)))
    model = fully_shard(two(), mesh=mesh)
    model(torch.ones(1, 4)).sum().backward()
    model[0].weight = nn.Parameter(torch.zeros(4, 4))
    words = refused(RuntimeError, "parameter weight of Linear has changed", lambda: model(torch.ones(1, 4)))
    assert "it was (4, 4) as [Shard(dim=0)]" in words
    model = fully_shard(two(4 + rank), mesh=mesh)
    words = refused(dist.DistError, "has divided other parameters than rank", lambda: model(torch.ones(1, 4 + rank)))
    assert "(5, 5)" in words and "(4, 4)" in words
    model = fully_shard(two(), mesh=mesh)
    model.unshard()
    model(torch.ones(1, 4)).sum().backward()
    inner = fully_shard(two(), mesh=mesh)
    inner(torch.ones(1, 4))
    outer = fully_shard(nn.Sequential(inner, nn.Linear(4, 4)), mesh=mesh)
    refused(RuntimeError, "already been lazily initialized", lambda: outer(torch.ones(1, 4)))
    refused(ValueError, "containers that do not implement forward", lambda: fully_shard(nn.ModuleList([two()])))
    scalar = nn.Module()
    scalar.factor = nn.Parameter(torch.tensor(1.0))
    refused(ValueError, "doesn't support scalar parameters. Change factor", lambda: fully_shard(scalar, mesh=mesh))
    refused(
        NotImplementedError, "only support nn.Linear", lambda: parallelize_module(nn.GELU(), mesh, ColwiseParallel())
    )
    with pytest.warns(UserWarning, match="'layers.*' could not be resolved"):
        parallelize_module(two(), mesh, {"layers.*": ColwiseParallel()})
    refused(AssertionError, "FSDP does not support deepcopy", lambda: __import__("copy").deepcopy(model))


def of_what_was_gathered(mesh, rank):
    """What was gathered is gathered again if the parts have changed: by an evaluation, or for layers left out."""

    class Stops(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.count = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)]), 3

        def forward(self, x):
            for layer in self.layers[: self.count]:
                x = layer(x)
            return x

    model = Stops()
    for each in [*model.layers, model]:
        fully_shard(each, mesh=mesh, reshard_after_forward=False)
    x = torch.ones(1, 4)
    model(x).sum().backward()
    for count in (1, 2):
        model.count = count
        with torch.no_grad():
            model(x)
        model.reshard()
        for layer in model.layers[:count]:
            layer._fsdp_state.group.reshard()
        with torch.no_grad():
            for p in model.parameters():
                p.zero_()
        model.count = 3
        assert not model(x).any()
        for layer in model.layers:
            layer.reshard()
        with torch.no_grad():
            for p in model.parameters():
                p.fill_(1.0)


def of_tensors(mesh, rank):
    x = distribute_tensor(torch.arange(14.0).reshape(7, 2), mesh, [Shard(0)])
    for call in (x.numpy, x.tolist):
        refused(RuntimeError, "is not supported for tensor subclasses", call)
    refused(RuntimeError, "this rank's part", lambda: DTensor.from_local(torch.ones(()), mesh, [Partial()]).item())
    refused(RuntimeError, "got mixed torch.Tensor and DTensor", lambda: x + torch.ones(7, 2))
    refused(RuntimeError, "got mixed torch.Tensor and DTensor", lambda: x.copy_(torch.ones(7, 2)))
    refused(
        RuntimeError,
        "same length as `device_mesh.ndim`",
        lambda: distribute_tensor(torch.ones(2), mesh, [Shard(0)] * 2),
    )
    refused(RuntimeError, "leaf tensors", lambda: distribute_tensor(torch.ones(2, requires_grad=True) * 2, mesh))
    refused(RuntimeError, "placements is needed", lambda: x.redistribute(mesh))
    p = nn.Parameter(x)
    refused(RuntimeError, "a leaf Variable that requires grad", lambda: p.add_(1))
    refused(TypeError, "is a DTensor, but got Tensor", lambda: setattr(p, "grad", torch.ones(7, 2)))
    assert isinstance(p, nn.Parameter) and isinstance(p, DTensor) and not isinstance(x, nn.Parameter)
    assert x.redistribute(placements=[Replicate()]).sum().item() == 91


def main():
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2,))
    of_modules(mesh, dist.get_rank())
    of_tensors(mesh, dist.get_rank())
    of_what_was_gathered(mesh, dist.get_rank())
    if dist.get_rank() == 0:
        print("all was refused")
    dist.destroy_process_group()


main()
