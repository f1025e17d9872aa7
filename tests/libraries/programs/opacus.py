"""opacus: gradients of each sample, private training without noise, and the accountants."""

from __future__ import annotations

from typing import Any

import numpy as np
import opacus
import torch
from opacus.accountants import GaussianAccountant, RDPAccountant
from opacus.accountants.utils import get_noise_multiplier
from opacus.grad_sample import GradSampleModule
from opacus.layers import DPMultiheadAttention
from opacus.validators import ModuleValidator
from torch.utils.data import DataLoader, TensorDataset


def convolutions() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.GroupNorm(2, 4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 36, 3),
    )


def points(count: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((count, 1, 6, 6), dtype=np.float32))
    return x, torch.from_numpy(rng.integers(0, 3, count))


def case_samples(carry: Any) -> None:
    model = GradSampleModule(carry.module("model", convolutions()))
    x, y = points()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    carry.check("samples", {name: each.grad_sample for name, each in model.named_parameters()})
    carry.check("whole", {name: each.grad for name, each in model.named_parameters()})


def case_layers(carry: Any) -> None:
    class Tagger(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.norm = torch.nn.Embedding(10, 8), torch.nn.LayerNorm(8)
            self.attention, self.out = DPMultiheadAttention(8, 2, batch_first=True), torch.nn.Linear(8, 2)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x = self.norm(self.embedding(tokens))
            return self.out(self.attention(x, x, x, need_weights=False)[0].mean(1))

    model = GradSampleModule(carry.module("model", Tagger()))
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, 10, (4, 5)))
    model(tokens).logsumexp(-1).sum().backward()
    carry.check("samples", {name: each.grad_sample for name, each in model.named_parameters()})


def case_private(carry: Any) -> None:
    for clipping in ("flat", "per_layer"):
        model = carry.module(clipping, convolutions())
        bound = 0.5 if clipping == "flat" else [0.5] * 6
        private, optimizer, loader = opacus.PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(TensorDataset(*points()), batch_size=4),
            noise_multiplier=0.0,
            max_grad_norm=bound,
            clipping=clipping,
            poisson_sampling=False,
        )
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(private(x), y).backward()
            optimizer.step()
        carry.check(f"{clipping} weights", dict(model.named_parameters()))


def case_engine(carry: Any) -> None:
    model, engine = convolutions(), opacus.PrivacyEngine(accountant="rdp")
    private, optimizer, loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-2),
        data_loader=DataLoader(TensorDataset(*points(40)), batch_size=8),
        target_epsilon=5.0,
        target_delta=1e-3,
        epochs=2,
        max_grad_norm=1.0,
    )
    carry.check("noise", optimizer.noise_multiplier)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(private(x), y).backward()
            optimizer.step()
    carry.check("epsilon", engine.get_epsilon(1e-3))
    carry.check("finite", all(bool(each.isfinite().all()) for each in model.parameters()))


def case_accountants(carry: Any) -> None:
    for accountant in (RDPAccountant(), GaussianAccountant()):
        for _ in range(50):
            accountant.step(noise_multiplier=1.1, sample_rate=0.02)
        carry.check(type(accountant).__name__, accountant.get_epsilon(delta=1e-5))
    options = {"target_epsilon": 3.0, "target_delta": 1e-5, "sample_rate": 0.02, "steps": 100}
    carry.check("noise", get_noise_multiplier(accountant="rdp", **options))


def case_validator(carry: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4))
    carry.check("errors", len(ModuleValidator.validate(model, strict=False)))
    fixed = ModuleValidator.fix(model)
    carry.check("fixed", [type(each).__name__ for each in fixed])
    carry.check("valid", ModuleValidator.is_valid(fixed))
