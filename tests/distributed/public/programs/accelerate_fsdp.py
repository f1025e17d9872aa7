"""A small model sharded by accelerate, trained, saved, loaded and trained on; the plugin comes of the environment."""

from __future__ import annotations

import sys

import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.utils.data import DataLoader, TensorDataset


class Block(torch.nn.Module):
    """A layer that is gathered by itself."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm, self.linear = torch.nn.LayerNorm(size), torch.nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A residual step."""
        return x + torch.tanh(self.linear(self.norm(x)))


class Model(torch.nn.Module):
    """Three blocks and a head."""

    _no_split_modules = ("Block",)

    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.Sequential(*[Block(10) for _ in range(3)])
        self.head = torch.nn.Linear(10, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.head(self.blocks(x))


def main() -> None:
    """Train by the options `VERSION [KEY=VALUE ...]` of the plugin."""
    options = {"fsdp_version": int(sys.argv[1]), "auto_wrap_policy": "transformer_based_wrap"}
    options |= dict(each.split("=") for each in sys.argv[2:])
    accelerator = Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin(**options), gradient_accumulation_steps=2)
    torch.manual_seed(1)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x = torch.randn(64, 10)
    loader = DataLoader(TensorDataset(x, x.argmax(1) % 3), batch_size=4, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    def train() -> None:
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    print(f"norm {float(norm):.4f}", flush=True)
                optimizer.step()
                optimizer.zero_grad()
            print(f"loss {float(accelerator.gather(loss.detach()).mean()):.5f}", flush=True)

    def sums() -> list[str]:
        if options["fsdp_version"] == 1:
            with FullyShardedDataParallel.summon_full_params(model):
                state = {name: value.detach().clone() for name, value in model.named_parameters()}
        else:
            state = accelerator.get_state_dict(model)
        return [f"state {name} {float(value.abs().sum()):.4f}" for name, value in state.items()]

    train()
    if options.get("state_dict_type") == "FULL_STATE_DICT":
        accelerator.save_state("kept")
        before = sums()
        train()
        accelerator.load_state("kept")
        assert sums() == before
    train()
    state = sums()
    if accelerator.is_main_process:
        print("\n".join(state), flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
