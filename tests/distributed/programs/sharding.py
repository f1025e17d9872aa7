"""A Llama-like model that is divided in some way, beside the same in one process: losses, gradients, norms, parameters.

mpiexec -n 4 python sharding.py DEVICE CASE...
"""

from __future__ import annotations

import itertools
import os
import sys
from functools import partial

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.device_mesh import init_device_mesh
from tritensor.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard
from tritensor.distributed.tensor import Replicate, Shard
from tritensor.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from tritensor.nn import functional as F
from tritensor.utils.checkpoint import checkpoint

DEVICE, CASES = sys.argv[1], sys.argv[2:]
STEPS, BATCH, LENGTH, WORDS = int(os.environ.get("STEPS", "20")), 2, 8, 17


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.wo = nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (each(x).view(batch, length, -1, x.shape[-1] // self.heads) for each in (self.wq, self.wk, self.wv))
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.w1, self.w3 = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.w2 = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention, self.feed_forward = Attention(width, heads), FeedForward(width, hidden)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    def __init__(self, layers=4, width=16, heads=4, hidden=24):
        super().__init__()
        self.tok_embeddings = nn.Embedding(WORDS, width)
        self.layers = nn.ModuleList([Block(width, heads, hidden) for _ in range(layers)])
        self.norm, self.output = nn.RMSNorm(width), nn.Linear(width, WORDS, bias=False)

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def filled(model):
    """The same parameters on all ranks."""
    torch.manual_seed(1)
    for p in model.parameters():
        nn.init.normal_(p, 1.0 if p.ndim == 1 else 0.0, 0.2)
    return model


def batch(step, count):
    draws = torch.Generator().manual_seed(step)
    return [torch.randint(0, WORDS, (BATCH * count, LENGTH), generator=draws).to(DEVICE) for _ in range(2)]


def loss_of(model, tokens, targets):
    with loss_parallel():
        loss = F.cross_entropy(model(tokens).float().flatten(0, 1), targets.flatten())
        return loss.full_tensor() if hasattr(loss, "full_tensor") else loss


def whole(x):
    return x.full_tensor() if hasattr(x, "full_tensor") else x


def blocks_of(model):
    return [*model.layers, model]


# ---- cases: each returns the model, the ranks with other data, and how near it has to be -----------------------------


def shard(model, **options):
    for each in blocks_of(model):
        fully_shard(each, **options)
    return model, dist.get_rank(), dist.get_world_size(), 5e-5


def fsdp(mesh):
    return shard(filled(Llama()).to(DEVICE), mesh=mesh)


def keeps(mesh):
    """Whole parameters stay between forward and backward."""
    return shard(filled(Llama()).to(DEVICE), mesh=mesh, reshard_after_forward=False)


def uneven(mesh):
    """Rows that do not fit the ranks, and ranks without any."""
    return shard(filled(Llama(2, 3, 1, 5)).to(DEVICE), mesh=mesh)


def second_dimension(mesh):
    place = lambda p: Shard(1) if p.ndim > 1 else None  # noqa: E731
    return shard(filled(Llama()).to(DEVICE), mesh=mesh, shard_placement_fn=place)


def offload(mesh):
    found = shard(filled(Llama()), mesh=mesh, offload_policy=CPUOffloadPolicy(pin_memory=False))
    assert all(p.device.type == "cpu" for p in found[0].parameters())
    return found


def mixed(mesh):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return *shard(filled(Llama()).to(DEVICE), mesh=mesh, mp_policy=policy)[:3], 6e-2


def meta(mesh):
    with torch.device("meta"):
        model = Llama()
    found = shard(model, mesh=mesh)
    model.to_empty(device=DEVICE)
    filled(model)
    return found


def several(mesh):
    """One group for two modules, and a block that is not divided by itself."""
    model = filled(Llama()).to(DEVICE)
    fully_shard(model.layers[0], mesh=mesh)
    fully_shard([model.norm, model.output], mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, dist.get_rank(), dist.get_world_size(), 5e-5


def prefetching(mesh):
    found = shard(filled(Llama()).to(DEVICE), mesh=mesh)
    blocks = blocks_of(found[0])
    for first, second in itertools.pairwise(blocks):
        first.set_modules_to_forward_prefetch([second])
        second.set_modules_to_backward_prefetch([first])
    return found


def overlap(mesh):
    """From the second pass on, a group is on its way before the one that runs before it begins to compute."""
    found = shard(filled(Llama()).to(DEVICE), mesh=mesh)
    model, events = found[0], []
    for number, layer in enumerate(model.layers):
        (group,) = layer._groups(False)
        own, arrived = group.gather, layer.feed_forward

        def gather(own=own, group=group, number=number):
            if not (group.whole or group._gathering):
                events.append(("gathers", number))
            own()

        group.gather = gather
        arrived.register_forward_hook(lambda *_, number=number: events.append(("computes", number)))
    for _ in range(2):
        events.clear()
        loss_of(model, *batch(0, 1)).backward()
    forward = events[: events.index(("computes", len(model.layers) - 1))]
    for number in range(1, len(model.layers) - 1):
        assert forward.index(("gathers", number + 1)) < forward.index(("computes", number)), events
    model.zero_grad()
    return found


def computed_again(mesh):
    """Blocks are computed again for their gradients, in either way; the hooks of sharding run then, too."""
    model = filled(Llama()).to(DEVICE)
    for number, layer in enumerate(model.layers):
        layer.attention.forward = partial(checkpoint, layer.attention.forward, use_reentrant=number % 2 == 0)
    found = shard(model, mesh=mesh)
    model.layers = Again(model.layers)
    return found


class Again(nn.ModuleList):
    """Modules that are computed again as a whole."""

    def __iter__(self):
        for number, layer in enumerate(self._modules.values()):
            yield partial(checkpoint, layer, use_reentrant=number % 2 == 1)


def hsdp(mesh):
    size = dist.get_world_size()
    mesh = init_device_mesh(mesh.device_type, (size // 2, 2), mesh_dim_names=("replicate", "shard"))
    return shard(filled(Llama()).to(DEVICE), mesh=mesh)


def divided(model, mesh, sequence):
    """Tensor parallelism; with `sequence` norms compute on parts of sequences, and logits stay divided."""
    col, row = ColwiseParallel, RowwiseParallel
    plan = {"attention.wq": col(), "attention.wk": col(), "attention.wv": col(), "attention.wo": row()}
    plan |= {"feed_forward.w1": col(), "feed_forward.w3": col(), "feed_forward.w2": row()}
    ends = {"tok_embeddings": row(input_layouts=Replicate()), "output": col(output_layouts=Replicate())}
    if sequence:
        to_all = {"input_layouts": (Shard(1),), "desired_input_layouts": (Replicate(),)}
        plan |= {"attention_norm": SequenceParallel(), "ffn_norm": SequenceParallel()}
        plan |= {"attention": PrepareModuleInput(**to_all), "feed_forward": PrepareModuleInput(**to_all)}
        plan |= {name: row(output_layouts=Shard(1)) for name in ("attention.wo", "feed_forward.w2")}
        ends = {"tok_embeddings": row(input_layouts=Replicate(), output_layouts=Shard(1)), "norm": SequenceParallel()}
        ends["output"] = col(input_layouts=Shard(1), use_local_output=False)
    for layer in model.layers:
        parallelize_module(layer, mesh, plan)
    return parallelize_module(model, mesh, ends)


def tp(mesh):
    return divided(filled(Llama()).to(DEVICE), mesh, False), 0, 1, 5e-5


def sequence(mesh):
    return divided(filled(Llama()).to(DEVICE), mesh, True), 0, 1, 5e-5


def compiled(mesh):
    """Blocks that are compiled with the collectives in them."""
    found = sequence(mesh)
    for layer in found[0].layers:
        layer.forward = torch.compile(layer.forward)
    return found


def tp_fsdp(mesh):
    size = dist.get_world_size()
    mesh = init_device_mesh(mesh.device_type, (size // 2, 2), mesh_dim_names=("dp", "tp"))
    model = divided(filled(Llama()).to(DEVICE), mesh["tp"], True)
    for each in blocks_of(model):
        fully_shard(each, mesh=mesh["dp"])
    return model, mesh["dp"].get_local_rank(), size // 2, 5e-5


KNOWN = {each.__name__: each for each in (fsdp, keeps, uneven, second_dimension, offload, mixed, meta, several)}
KNOWN |= {each.__name__: each for each in (prefetching, overlap, computed_again, hsdp, tp, sequence, compiled, tp_fsdp)}


class Halved:
    """A model that computes with its parameters in bfloat16."""

    def __init__(self, model):
        self.model = model

    def __call__(self, tokens):
        halves = {name: p.bfloat16() for name, p in self.model.named_parameters()}
        return torch.func.functional_call(self.model, halves, (tokens,))


def optimizer_of(name, model):
    """Adam divides gradients by their sizes, which makes of a rounding in half precision a step."""
    if name == "mixed":
        return torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    return torch.optim.AdamW(model.parameters(), lr=3e-3)


def compared(name, mesh):
    """Train both, and compare them."""
    model, place, count, close = KNOWN[name](mesh)
    one = filled(Llama(2, 3, 1, 5) if name == "uneven" else Llama()).to(DEVICE)
    mine, theirs = optimizer_of(name, model), optimizer_of(name, one)
    for step in range(STEPS):
        tokens, targets = batch(step, count)
        rows = slice(place * BATCH, (place + 1) * BATCH)
        halves = 2 if step % 4 == 3 and isinstance(model, FSDPModule) else 1
        for half in range(halves):
            if halves > 1:
                model.set_requires_gradient_sync(half == 1)
            loss = loss_of(model, tokens[rows][half::halves], targets[rows][half::halves]) / halves
            loss.backward()
        for rank in range(count if name == "mixed" else 0):  # what each rank computes in half precision
            part = slice(rank * BATCH, (rank + 1) * BATCH)
            for half in range(halves):
                loss_of(Halved(one), tokens[part][half::halves], targets[part][half::halves]).div(
                    count * halves
                ).backward()
        if name != "mixed":
            loss_of(one, tokens, targets).backward()
        for (name_of, p), q in zip(one.named_parameters(), model.parameters(), strict=True):
            difference = ((p.grad - whole(q.grad).to(DEVICE)).abs().max() / p.grad.abs().max().clamp(min=1.0)).item()
            assert difference <= close, f"{name}, step {step}: the gradient of {name_of} differs by {difference}"
        norms = [whole(torch.nn.utils.clip_grad_norm_(each.parameters(), 0.5)).item() for each in (model, one)]
        assert abs(norms[0] - norms[1]) <= close * 10, f"{name}, step {step}: the norms are {norms}"
        for optimizer in (mine, theirs):
            optimizer.step()
            optimizer.zero_grad()
        if step == STEPS // 2:  # parameters and state go on from a state dict
            saved = {key: value.clone() for key, value in model.state_dict().items()}
            state = mine.state_dict()
            mine = optimizer_of(name, model)
            mine.load_state_dict(state)
            model.load_state_dict(saved)
    worst = 0.0
    for p, q in zip(one.parameters(), model.parameters(), strict=True):
        worst = max(worst, (p - whole(q).to(DEVICE)).abs().max().item())
    assert worst <= 20 * close, f"{name}: parameters differ by {worst}"
    return worst


def main():
    dist.init_process_group("cpu:gloo,cuda:nccl" if DEVICE == "cuda" else "gloo")
    if DEVICE == "cuda":
        torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    mesh = init_device_mesh(DEVICE, (dist.get_world_size(),))
    for name in CASES or KNOWN:
        worst = compared(name, mesh)
        if dist.get_rank() == 0:
            print(f"{name}: as one process, within {worst:.1e}", flush=True)
    dist.destroy_process_group()


main()
