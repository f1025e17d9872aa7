"""lion-pytorch: the optimizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from lion_pytorch import Lion


def case_steps(carry: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (torch.from_numpy(rng.standard_normal((32, size), dtype=np.float32)) for size in (8, 1))
    model = carry.module("model", torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)))
    optimizer = Lion(model.parameters(), lr=1e-2, weight_decay=1e-2)
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    carry.check("weights", dict(model.named_parameters()))
