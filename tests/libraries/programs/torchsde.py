"""torchsde: stochastic differential equations along a given Brownian path, their gradients, and their statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torchsde


class Process(torch.nn.Module):
    sde_type = "ito"

    def __init__(self, noise_type: str = "diagonal", sde_type: str = "ito", size: int = 3) -> None:
        super().__init__()
        self.noise_type, self.sde_type = noise_type, sde_type
        self.drift = torch.nn.Sequential(torch.nn.Linear(size, 8), torch.nn.Tanh(), torch.nn.Linear(8, size))
        self.spread = torch.nn.Linear(size, size)

    def f(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.drift(y)

    def g(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return 0.3 * self.spread(y).sigmoid()


class Path(torchsde.BaseBrownian):
    """A Brownian path known at the ends of equal steps."""

    def __init__(self, steps: torch.Tensor, width: float) -> None:
        super().__init__()
        self.values = torch.cat([torch.zeros_like(steps[:1]), steps.cumsum(0)])
        self.width = width

    def at(self, t: Any) -> torch.Tensor:
        return self.values[min(round(float(t) / self.width), len(self.values) - 1)]

    def __call__(self, ta: Any, tb: Any = None, return_U: bool = False, return_A: bool = False) -> torch.Tensor:
        return self.at(ta) if tb is None else self.at(tb) - self.at(ta)

    def __repr__(self) -> str:
        return "Path"

    dtype = property(lambda self: self.values.dtype)
    device = property(lambda self: self.values.device)
    shape = property(lambda self: self.values.shape[1:])
    levy_area_approximation = "none"

    def size(self) -> torch.Size:
        return self.shape


def given(steps: int = 20) -> tuple[torch.Tensor, Path]:
    rng = np.random.default_rng(0)
    y = torch.from_numpy(rng.standard_normal((4, 3), dtype=np.float32))
    return y, Path(torch.from_numpy(rng.standard_normal((steps, 4, 3), dtype=np.float32)) / steps**0.5, 1 / steps)


def case_methods(carry: Any) -> None:
    times = torch.tensor([0.0, 0.5, 1.0])
    for kind, methods in (("ito", ("euler", "milstein")), ("stratonovich", ("euler_heun", "heun", "midpoint"))):
        process = carry.module(kind, Process(sde_type=kind))
        y, path = given()
        for method in methods:
            carry.check(method, torchsde.sdeint(process, y, times, bm=path, method=method, dt=0.05))


def case_gradients(carry: Any) -> None:
    process, (y, path) = carry.module("process", Process()), given()
    y.requires_grad_()
    found = torchsde.sdeint(process, y, torch.tensor([0.0, 1.0]), bm=path, method="euler", dt=0.05)
    found[-1].square().mean().backward()
    carry.check("gradients", [y.grad, *(each.grad for each in process.parameters())])


def case_adjoint(carry: Any) -> None:
    process, (y, path) = carry.module("process", Process(sde_type="stratonovich")), given()
    y.requires_grad_()
    times = torch.tensor([0.0, 1.0])
    options = {"method": "midpoint", "adjoint_method": "midpoint", "dt": 0.05}
    found = torchsde.sdeint_adjoint(process, y, times, bm=path, **options)
    found[-1].square().mean().backward()
    carry.check("solution", found)
    carry.check("finite", [bool(each.grad.isfinite().all()) for each in process.parameters()])


def case_brownian(carry: Any) -> None:
    path = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(2000, 2), entropy=7)
    first, second, whole = path(0.0, 0.3), path(0.3, 1.0), path(0.0, 1.0)
    carry.check("sums", first + second - whole)
    carry.check("repeats", path(0.0, 0.3) - first)
    carry.check("mean", whole.mean(0), atol=0.15)
    carry.check("deviation", whole.std(0), atol=0.15, rtol=0)
    path = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 3), levy_area_approximation="space-time")
    found = torchsde.sdeint(Process(sde_type="stratonovich"), torch.ones(4, 3), [0.0, 1.0], bm=path, dt=0.1)
    carry.check("shape", list(found.shape))
    carry.check("finite", bool(found.isfinite().all()))


def case_statistics(carry: Any) -> None:
    class Returns(torchsde.SDEIto):
        def __init__(self) -> None:
            super().__init__(noise_type="diagonal")

        def f(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return -y

        def g(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.full_like(y, 0.5)

    found = torchsde.sdeint(Returns(), torch.ones(4000, 1), torch.tensor([0.0, 1.0]), dt=0.1, method="srk")
    carry.check("mean", found[-1].mean(), atol=0.05, rtol=0)
    carry.check("deviation", found[-1].std(), atol=0.05, rtol=0)
