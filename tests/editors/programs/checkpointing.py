"""Checkpoints: saved, loaded with `map_location`, resumed; and activations that are computed again."""

import os
import tempfile
from pathlib import Path

import tritensor as torch
from tritensor import nn
from tritensor.utils.checkpoint import checkpoint


class Deep(nn.Module):
    steps: torch.Tensor

    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if self.training and i % 2:
                x = checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)
            x = x.tanh()
        self.steps += 1
        return x * self.scale


def save_checkpoint(path, model, optimizer, epoch, **extra):
    state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict(), **extra}
    torch.save(state, path)


def load_checkpoint(path, model, optimizer=None):
    state = torch.load(path, map_location=torch.device("cpu"), weights_only=True)
    missing, unexpected = model.load_state_dict(state["model"], strict=False)
    assert not missing and not unexpected
    if optimizer is not None:
        optimizer.load_state_dict(state["optimizer"])
    return state["epoch"] + 1


model = Deep(4, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "last.pt"
    start_epoch = 0
    for epoch in range(start_epoch, 2):
        loss = model(torch.randn(5, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        save_checkpoint(path, model, optimizer, epoch, loss=loss.item())
    resumed = Deep(4, 3)
    start_epoch = load_checkpoint(path, resumed, torch.optim.AdamW(resumed.parameters()))
    print(f"resumed at {start_epoch}, {os.path.getsize(path)} bytes, {resumed.steps.item()} steps")
    for name, value in resumed.state_dict().items():
        assert torch.equal(value, model.state_dict()[name]), name
    torch.save(model.state_dict(), os.path.join(folder, "weights.pt"))
    weights = torch.load(os.path.join(folder, "weights.pt"), map_location=lambda storage, loc: storage)
    print({name: tuple(value.shape) for name, value in weights.items()})
    half = {name: value.half() for name, value in weights.items() if value.is_floating_point()}
    print(sum(value.element_size() * value.numel() for value in half.values()))
