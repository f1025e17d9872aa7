"""How the models of published runs are divided among ranks: tensor parallelism, and fully sharded parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tritensor as torch
from tritensor.distributed.device_mesh import DeviceMesh, init_device_mesh
from tritensor.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from tritensor.distributed.tensor import Replicate, Shard
from tritensor.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from tritensor.utils.checkpoint import checkpoint

from .models import MPT, Llama
from .recipes import Recipe
from .selective import contexts

SHARDED = ("fsdp", "hsdp", "fsdp+tp")


def is_sharded(run: dict[str, Any], recipe: Recipe) -> bool:
    """Whether parameters are fully sharded; KempnerForge also does that among one rank, beside tensor parallelism."""
    return run["parallel"]["kind"] in SHARDED or (run["parallel"]["kind"] == "tp" and not recipe.master)


def mesh_of(run: dict[str, Any], recipe: Recipe, device: str) -> DeviceMesh:
    """The ranks of a run: copies ("replicate"), shards ("shard"), parts of layers ("tp"), where there are several."""
    parallel = run["parallel"]
    sizes = {"replicate": parallel["dp_replicate"], "shard": parallel["dp_shard"], "tp": parallel["tp"]}
    kept = {name: size for name, size in sizes.items() if size > 1 or (name == "shard" and is_sharded(run, recipe))}
    kept = kept or {"replicate": 1}
    return init_device_mesh(device, tuple(kept.values()), mesh_dim_names=tuple(kept))


def part(mesh: DeviceMesh, *names: str) -> DeviceMesh | None:
    """The dimensions of a mesh that have these names; None if there are none."""
    kept = tuple(name for name in names if name in (mesh.mesh_dim_names or ()))
    if not kept:
        return None
    return mesh if kept == mesh.mesh_dim_names else mesh[kept if len(kept) > 1 else kept[0]]


def divide_layers(model: Llama | MPT, mesh: DeviceMesh, recipe: Recipe) -> None:
    """Tensor parallelism with sequences divided between layers, as torchtitan, KempnerForge and nanotron have it."""
    assert isinstance(model, Llama), "no source divides the layers of MPT"
    gathered = Replicate()
    plan: dict[str, Any] = {
        "attention_norm": SequenceParallel(),
        "attention": PrepareModuleInput(
            input_layouts=(Shard(1), None), desired_input_layouts=(gathered, None), use_local_output=True
        ),
        "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
        "ffn_norm": SequenceParallel(),
        "feed_forward": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(gathered,)),
        "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1)),
    }
    for name in ("attention.wq", "attention.wk", "attention.wv", "feed_forward.w1", "feed_forward.w3"):
        plan[name] = ColwiseParallel()
    for layer in model.layers:
        parallelize_module(layer, mesh, plan)
    ends: dict[str, Any] = {"norm": SequenceParallel()}
    if recipe.divided_embedding:
        ends["tok_embeddings"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
    else:
        ends["tok_embeddings"] = PrepareModuleOutput(output_layouts=gathered, desired_output_layouts=Shard(1))
    if recipe.loss_parallel:
        ends["output"] = ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)
    else:
        ends["output"] = ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())
    parallelize_module(model, mesh, ends)
    model.tie()


def shard(model: Any, mesh: Any, run: dict[str, Any], recipe: Recipe) -> None:
    """A unit of `fully_shard` for each block, and one or three for the rest."""
    reshard = run["reshard_after_forward"] is not False
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=recipe.reduce)
    options: dict[str, Any] = {"mesh": mesh, "mp_policy": policy}
    last = len(model.layers) - 1
    if recipe.ends:
        fully_shard(model.tok_embeddings, reshard_after_forward=reshard, **options)
    for place, layer in enumerate(model.layers):
        fully_shard(layer, reshard_after_forward=reshard and not (recipe.keeps_last and place == last), **options)
    if recipe.ends:
        fully_shard([model.norm, model.output], reshard_after_forward=False, **options)
    fully_shard(model, reshard_after_forward=None if recipe.keeps_root else reshard, **options)


def again(function: Callable[..., torch.Tensor], *args: torch.Tensor) -> torch.Tensor:
    """The result of a block whose values in between are computed again for the backward pass."""
    return checkpoint(function, *args, use_reentrant=False)


def selected(function: Callable[..., torch.Tensor], *args: torch.Tensor) -> torch.Tensor:
    """The same, but attention and every second product are kept."""
    return checkpoint(function, *args, use_reentrant=False, context_fn=contexts)


def recompute(model: Llama | MPT, kind: str) -> None:
    """Let blocks be computed again, all or every second one ("selective blocks": the share is not published)."""
    every = {"none": 0, "full": 1, "every other layer": 2, "selective blocks": 2, "selective-op": 1}[kind]
    for place, layer in enumerate(model.layers):
        if every and place % every == 0:
            layer.around = selected if kind == "selective-op" else again
