"""torchdiffeq: differential equations solved by several methods, and gradients through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torchdiffeq import odeint, odeint_adjoint, odeint_event


class Field(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.net(y**3)


def start() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal((4, 2), dtype=np.float32))


def case_methods(carry: Any) -> None:
    turn = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    times = torch.linspace(0, 2, 6)
    for method in ("dopri5", "dopri8", "bosh3", "adaptive_heun", "rk4", "euler", "midpoint", "explicit_adams"):
        options = {"step_size": 0.05} if method in ("rk4", "euler", "midpoint", "explicit_adams") else None
        # explicit Adams at this step grows each rounding by 500 from one of these times to the next, in PyTorch too
        until = times[:3] if method == "explicit_adams" else times
        found = odeint(lambda t, y: y @ turn, start(), until, method=method, options=options, rtol=1e-5)
        # dopri8 in float32 is off by 3e-4 from the exact solution between its steps with PyTorch, by 2e-4 here
        carry.check(method, found, atol=1e-3 if method == "dopri8" else 1e-4)


def case_gradients(carry: Any) -> None:
    field, y = carry.module("field", Field()), start().requires_grad_()
    found = odeint(field, y, torch.linspace(0, 1, 4), rtol=1e-5, atol=1e-6)
    found.square().mean().backward()
    carry.check("solution", found)
    carry.check("gradients", [y.grad, *(each.grad for each in field.parameters())])


def case_adjoint(carry: Any) -> None:
    field, y = carry.module("field", Field()), start().requires_grad_()
    times = torch.linspace(0, 1, 4, requires_grad=True)
    found = odeint_adjoint(field, y, times, rtol=1e-5, atol=1e-6)
    found.square().mean().backward()
    carry.check("solution", found)
    carry.check("gradients", [y.grad, times.grad, *(each.grad for each in field.parameters())])


def case_training(carry: Any) -> None:
    field, y, times = carry.module("field", Field()), start(), torch.linspace(0, 1, 5)
    turn = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    wanted = odeint(lambda t, y: (y**3) @ turn, y, times, method="rk4")
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (odeint(field, y, times, method="rk4") - wanted).abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    carry.check("losses", losses)


def case_tuple_and_event(carry: Any) -> None:
    def falls(t: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return state[1], torch.full_like(state[1], -9.8)

    height = (torch.tensor([10.0], requires_grad=True), torch.tensor([0.0]))
    when, states = odeint_event(falls, height, torch.tensor(0.0), event_fn=lambda t, state: state[0][0], atol=1e-7)
    when.backward()
    carry.check("when", when)
    carry.check("states", states, atol=1e-3)
    carry.check("gradient", height[0].grad)
