"""How the sources of published runs train, as far as it decides time or memory: read in their code."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tritensor as torch

RUNS = Path(__file__).with_name("runs.json")


def runs(excluded: bool = False) -> dict[str, dict[str, Any]]:
    """The published runs by name; with `excluded`, also those that no program here can repeat."""
    found = json.loads(RUNS.read_text(encoding="utf-8"))
    return {run["name"]: run for run in found if excluded or run["excluded"] is None}


@dataclass(frozen=True)
class Recipe:
    """What the training code of a source does.

    Attributes:
        parameters: the dtype of parameters, or of their shards; optimizer states have it, too.
        reduce: in which gradients are averaged among ranks.
        wide_loss: the loss is computed from a float32 copy of the logits.
        loss_parallel: with tensor parallelism, the words of logits stay divided among ranks.
        divided_embedding: with tensor parallelism, so do the words of the embedding.
        ends: units of `fully_shard` for the embedding and for norm and head, and not one root unit for all three.
        keeps_root: the root unit is not resharded after forward.
        keeps_last: neither is the last block.
        syncs_last: gradients are reduced in the last of several micro steps; the others keep whole gradients.
        reads_loss: the host reads the loss of every micro step.
        optimizer: options of AdamW.
        master: bfloat16 parameters with float32 gradients and a float32 copy, as in nanotron.
    """

    parameters: torch.dtype = torch.float32
    reduce: torch.dtype = torch.float32
    wide_loss: bool = False
    loss_parallel: bool = False
    divided_embedding: bool = True
    ends: bool = False
    keeps_root: bool = True
    keeps_last: bool = False
    syncs_last: bool = False
    reads_loss: bool = False
    optimizer: tuple[tuple[str, bool], ...] = (("foreach", True),)
    master: bool = False


_FUSED, _SINGLE = (("fused", True),), (("foreach", False),)

# torchtitan reads the logits of a model that returned float32 in April 2024, and makes the copy in the loss since then.
_TORCHTITAN = Recipe(wide_loss=True, loss_parallel=True, keeps_last=True)

RECIPES = {
    "pytorch/torchtitan": _TORCHTITAN,
    "pytorch/ao": _TORCHTITAN,
    # `model.to(bfloat16)`: states are bfloat16, there is no copy. The token embedding is whole on each rank of tensor
    # parallelism, and logits are gathered. FSDP2 is told to reshard the root, too.
    "KempnerInstitute/KempnerForge": Recipe(
        parameters=torch.bfloat16,
        divided_embedding=False,
        keeps_root=False,
        syncs_last=True,
        reads_loss=True,
        optimizer=_FUSED,
    ),
    # Composer reduces in every micro step: whole gradients of 30 billion parameters would not fit an A100 of 40 GB.
    "mosaicml/llm-foundry": Recipe(optimizer=_SINGLE),
    "foundation-model-stack/fms-fsdp": Recipe(reduce=torch.bfloat16),
    "jzhang38/TinyLlama": Recipe(reduce=torch.bfloat16, syncs_last=True, optimizer=_SINGLE),
    "huggingface/nanotron": Recipe(
        parameters=torch.bfloat16,
        wide_loss=True,
        loss_parallel=True,
        syncs_last=True,
        optimizer=_FUSED,
        master=True,
    ),
}


def recipe_of(run: dict[str, Any]) -> Recipe:
    """How a run was trained: by its source, and by what the run itself says."""
    recipe = RECIPES[run["source"]["repository"]]
    if run["reduce_dtype"] == "bf16":
        recipe = replace(recipe, reduce=torch.bfloat16)
    if run["optimizer"]["fused"]:
        recipe = replace(recipe, optimizer=_FUSED)
    if run["name"] == "torchao-llama3-8b-b200-8-bf16":  # torchtitan of August 2025
        recipe = replace(recipe, ends=True, keeps_last=False)
    return recipe
