"""Train as a published run did.

    python -m benchmarks.cluster.training NAME_OF_RUN [--steps 2]
    TRITENSOR_SIMULATE_CUDA=2 mpiexec -n 2 python -m benchmarks.cluster.training NAME_OF_RUN --tiny --steps 5

The first is for as many ranks as the run had. With --tiny the model and the mesh are made small, in the same structure,
for the ranks that there are; each step has the same batch, and rank 0 prints the loss, averaged over all data.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.device_mesh import DeviceMesh
from tritensor.distributed.tensor.parallel import loss_parallel
from tritensor.nn import functional as F

from .master import MasterAdamW
from .models import MPT, Llama, gated, model_of, rotated
from .parallel import divide_layers, is_sharded, mesh_of, part, recompute, shard
from .recipes import Recipe, recipe_of, runs

CLIP = 1.0
SEED = 20


def build(run: dict[str, Any], recipe: Recipe, mesh: DeviceMesh, device: str, compile: bool, whole: bool) -> Any:
    """The model of a run: made without memory, divided, given memory and then its first values."""
    with torch.device("meta"):
        model = model_of(run["model"]).to(recipe.parameters)
    parts = part(mesh, "tp")
    if parts is not None:
        divide_layers(model, parts, recipe)
    recompute(model, run["recompute"])
    if compile:
        compile_blocks(model, whole=run["recompute"] != "selective-op")
    if is_sharded(run, recipe):
        shard(model, part(mesh, "replicate", "shard"), run, recipe)
    model.to_empty(device=device)
    if isinstance(model, Llama):
        model.tie()
    torch.manual_seed(SEED)
    with torch.no_grad():
        model.initialize(whole)
    return model


def compile_blocks(model: Llama | MPT, whole: bool) -> None:
    """Compile each block as a whole, or what is in between the results that a block keeps."""
    turn, gate = torch.compile(rotated), torch.compile(gated)
    for layer in model.layers:
        if whole:
            layer.compute = torch.compile(layer.compute)
            continue
        layer.compute = torch.compiler.disable(layer.compute)  # products and attention are calls of their own
        layer.attention.rotated, layer.feed_forward.gated = turn, gate
        for norm in (layer.attention_norm, layer.ffn_norm):
            norm.forward = torch.compile(norm.forward)


def loss_of(model: nn.Module, tokens: torch.Tensor, targets: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    """The mean cross entropy of a micro batch; logits are not kept for longer."""
    logits = model(tokens)
    return F.cross_entropy((logits.float() if recipe.wide_loss else logits).flatten(0, 1), targets.flatten())


def row(vocab: int, length: int, seed: int) -> torch.Tensor:
    """One sequence of a batch, the same on all ranks that read it."""
    return torch.randint(0, vocab, (length,), generator=torch.Generator().manual_seed(seed))


class Data:
    """Micro batches of this rank: ranks with other parts of the same data have the same.

    Args:
        fixed: the same batch in each step.
    """

    def __init__(self, run: dict[str, Any], mesh: DeviceMesh, device: str, fixed: bool) -> None:
        data = part(mesh, "replicate", "shard")
        self.run, self.device, self.fixed = run, device, fixed
        self.rank, self.ranks = 0, 1
        for name in data.mesh_dim_names or () if data is not None else ():
            size = mesh[name].size()
            self.rank, self.ranks = self.rank * size + mesh[name].get_local_rank(), self.ranks * size

    def micro(self, step: int, micro: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens, and those that follow them."""
        shape, batch = self.run["model"], self.run["local_batch"]
        first = 0 if self.fixed else step * self.ranks * batch * self.run["accumulation"]
        first += (micro * self.ranks + self.rank) * batch
        rows = torch.stack([row(shape["vocab"], shape["sequence"] + 1, first + i) for i in range(batch)])
        rows = rows.to(self.device)
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


class Trainer:
    """A run that is about to train: its model, its optimizer and its data.

    Args:
        run: of `runs.json`.
        device: "cuda" or "cpu".
        lr: the learning rate, which decides neither time nor memory.
        fixed: the same batch in each step, and the same first parameters for any number of ranks.
        compile: compile blocks; as the run did unless given.
    """

    def __init__(
        self,
        run: dict[str, Any],
        device: str = "cuda",
        lr: float = 3e-4,
        fixed: bool = False,
        compile: bool | None = None,
    ) -> None:
        self.run, self.recipe = run, recipe_of(run)
        kind = run["parallel"]["kind"]
        mesh = mesh_of(run, self.recipe, device)
        compile = bool(run["compile"]) if compile is None else compile
        self.model = build(run, self.recipe, mesh, device, compile, whole=fixed)
        self.data = Data(run, mesh, device, fixed)
        self.parallel_loss = self.recipe.loss_parallel and part(mesh, "tp") is not None
        options: dict[str, Any] = {"lr": lr, "betas": (0.9, 0.95), "weight_decay": 0.1, **dict(self.recipe.optimizer)}
        self.master: MasterAdamW | None = None
        self.optimizer: Any = None
        if self.recipe.master:
            data, parts = part(mesh, "replicate", "shard"), part(mesh, "tp")
            ours, theirs = (None if m is None or m.size() == 1 else m.get_group() for m in (data, parts))
            self.master = MasterAdamW(self.model, ours, theirs, zero=kind.startswith("zero1"), **options)
        else:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), **options)
        self.sharded, self.copies = is_sharded(run, self.recipe), kind == "ddp" and dist.get_world_size() > 1
        if self.copies:
            self.model = nn.parallel.DistributedDataParallel(self.model)

    def _sync(self, last: bool) -> None:
        """Say whether gradients are reduced in the next micro step."""
        sync = last or not self.recipe.syncs_last
        if self.master is not None:
            self.master.last = sync
        elif self.sharded:
            self.model.set_requires_gradient_sync(sync)
        elif self.copies:
            self.model.require_backward_grad_sync = sync

    def step(self, number: int) -> torch.Tensor:
        """One step; returns the loss of this rank's data."""
        total: Any = None
        count = self.run["accumulation"]
        for micro in range(count):
            tokens, targets = self.data.micro(number, micro)
            self._sync(micro == count - 1)
            if self.parallel_loss:
                with loss_parallel():
                    loss = loss_of(self.model, tokens, targets, self.recipe) / count
                    loss.backward()
            else:
                loss = loss_of(self.model, tokens, targets, self.recipe) / count
                loss.backward()
            loss = loss.detach()
            loss = loss.to_local() if hasattr(loss, "to_local") else loss
            if self.recipe.reads_loss:
                loss.item()
            total = loss if total is None else total + loss
        if self.master is not None:
            self.master.wait()
            self.master.clip(CLIP)
            self.master.step()
        else:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP, foreach=True)
            self.optimizer.step()
            self.optimizer.zero_grad()
        return total


def start(device: str) -> None:
    """Join the other ranks, and choose a device."""
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    if device == "cuda":
        torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())


def train(
    run: dict[str, Any],
    steps: int = 2,
    on_step: Callable[[int, torch.Tensor], None] | None = None,
    **options: Any,
) -> None:
    """Train the model of a run as its source does.

    Args:
        run: of `runs.json`; this rank is one of as many as it had.
        steps: how many steps of the optimizer.
        on_step: called behind each, with its number and the loss of this rank's data.
        options: of `Trainer`.
    """
    start(options.get("device", "cuda"))
    trainer = Trainer(run, **options)
    for number in range(steps):
        loss = trainer.step(number)
        if on_step is not None:
            on_step(number, loss)


def tiny(run: dict[str, Any], ranks: int) -> dict[str, Any]:
    """The same run, small: two layers of 64 features, and a mesh of so many ranks."""
    kv_heads = 4 if run["model"]["kv_heads"] == run["model"]["heads"] else 2
    model = run["model"] | {
        "layers": 2,
        "dim": 64,
        "heads": 4,
        "kv_heads": kv_heads,
        "ffn": 128,
        "vocab": 256,
        "sequence": 32,
    }
    parallel, left = dict(run["parallel"]), ranks
    names = [name for name in ("tp", "dp_replicate", "dp_shard") if parallel[name] > 1] or ["dp_replicate"]
    for name in names:
        parallel[name] = left if name == names[-1] else min(2, left)
        left //= parallel[name]
    batch, accumulation = min(run["local_batch"], 2), min(run["accumulation"], 2)
    return run | {"model": model, "parallel": parallel, "local_batch": batch, "accumulation": accumulation}


def main() -> None:
    """Train a run, and print the loss of each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of a run in runs.json")
    parser.add_argument("--tiny", action="store_true", help="a small model, for the ranks that there are")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, help="compile blocks; as the run did")
    parser.add_argument("--batch", type=int, help="sequences of each rank in a micro batch")
    given = parser.parse_args()
    start(given.device)
    run = runs()[given.name]
    if given.tiny:
        run = tiny(run, dist.get_world_size())
    if given.batch is not None:
        run = run | {"local_batch": given.batch}

    def show(step: int, loss: torch.Tensor) -> None:
        mean = loss.detach().float().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.SUM)
        if dist.get_rank() == 0:
            print(f"step {step}: loss {mean.item() / dist.get_world_size():.5f}", flush=True)

    lr = 3e-3 if given.tiny else 3e-4
    train(run, given.steps, show, device=given.device, lr=lr, fixed=given.tiny, compile=given.compile)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
