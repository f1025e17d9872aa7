"""torch-optimizer: steps of its optimizers on a small model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch_optimizer


def steps(carry: Any, name: str, make: Any, graph: bool = False) -> None:
    rng = np.random.default_rng(0)
    x, y = (torch.from_numpy(rng.standard_normal((32, size), dtype=np.float32)) for size in (8, 1))
    torch.manual_seed(1)  # of some weights roundings decide where Shampoo goes
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    model = carry.module(name, model)
    optimizer = make(model.parameters())
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward(create_graph=graph)
        optimizer.step()
        losses.append(loss.item())
    near = 5e-3 if name == "Shampoo" else 1e-4  # whose roots of singular matrices have few digits
    carry.check(f"{name} losses", losses, atol=near)
    carry.check(f"{name} weights", dict(model.named_parameters()), atol=near)


def case_adaptive(carry: Any) -> None:
    for name in ("AdaBelief", "AdaBound", "AdaMod", "AdamP", "DiffGrad", "NovoGrad", "QHAdam", "RAdam", "Yogi"):
        steps(carry, name, lambda weights, name=name: getattr(torch_optimizer, name)(weights, lr=1e-2))


def case_layerwise(carry: Any) -> None:
    steps(carry, "Lamb", lambda weights: torch_optimizer.Lamb(weights, lr=1e-2, weight_decay=1e-2))
    steps(carry, "LARS", lambda weights: torch_optimizer.LARS(weights, lr=1e-1, weight_decay=1e-2, momentum=0.9))


def case_momentum(carry: Any) -> None:
    def make(name: str) -> Any:
        extra = {"momentum": 0.9} if name in ("SGDP", "SGDW", "QHM", "PID") else {}
        return lambda weights: getattr(torch_optimizer, name)(weights, lr=1e-2, **extra)

    for name in ("SGDP", "SGDW", "AggMo", "QHM", "PID", "AccSGD"):
        steps(carry, name, make(name))


def case_second_order(carry: Any) -> None:
    steps(carry, "Shampoo", lambda weights: torch_optimizer.Shampoo(weights, lr=1e-1))
    steps(carry, "MADGRAD", lambda weights: torch_optimizer.MADGRAD(weights, lr=1e-2))
    steps(carry, "Apollo", lambda weights: torch_optimizer.Apollo(weights, lr=1e-2))


def case_lookahead(carry: Any) -> None:
    def make(weights: Any) -> Any:
        return torch_optimizer.Lookahead(torch_optimizer.Yogi(weights, lr=1e-2), k=3, alpha=0.5)

    steps(carry, "Lookahead", make)
    steps(carry, "Ranger", lambda weights: torch_optimizer.Ranger(weights, lr=1e-2, k=3))


def case_state(carry: Any) -> None:
    weight = torch.nn.Parameter(torch.from_numpy(np.random.default_rng(0).standard_normal((4, 3), dtype=np.float32)))
    first = torch_optimizer.Adafactor([weight], lr=1e-2, relative_step=False, scale_parameter=True)
    rates = torch.optim.lr_scheduler.ExponentialLR(first, 0.9)
    for position in range(4):
        if position == 2:
            state = first.state_dict()
            first = torch_optimizer.Adafactor([weight], lr=1e-2, relative_step=False)
            first.load_state_dict(state)
            rates = torch.optim.lr_scheduler.ExponentialLR(first, 0.9)
        first.zero_grad()
        (weight**4).sum().backward()
        first.step()
        rates.step()
    carry.check("weight", weight)
    carry.check("rate", rates.get_last_lr())
