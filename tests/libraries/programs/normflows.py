"""normflows: the density of flows, steps of training, and samples."""

from __future__ import annotations

from typing import Any

import normflows as nf
import numpy as np
import torch


def points(count: int = 32) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal((count, 2), dtype=np.float32))


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: each.grad for name, each in model.named_parameters() if each.grad is not None}


def real_nvp() -> nf.NormalizingFlow:
    layers: list[Any] = []
    for _ in range(3):
        layers.append(nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 8, 8, 2], init_zeros=False)))
        layers.append(nf.flows.Permute(2, mode="swap"))
    return nf.NormalizingFlow(nf.distributions.base.DiagGaussian(2), layers)


def case_real_nvp(carry: Any) -> None:
    flow = carry.module("flow", real_nvp())
    found = flow.log_prob(points())
    found.mean().backward()
    carry.check("found", found)
    carry.check("gradients", gradients(flow))
    with torch.no_grad():
        z, determinant = flow.inverse_and_log_det(points())
        carry.check("inverse", [z, determinant])
        carry.check("back", flow.forward(z) - points())


def case_training(carry: Any) -> None:
    flow = carry.module("flow", real_nvp())
    optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3, weight_decay=1e-5)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = flow.forward_kld(points() * 2 + 1)
        if not (torch.isnan(loss) | torch.isinf(loss)):
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    carry.check("losses", losses)
    carry.check("weights", dict(flow.named_parameters()))


def case_samples(carry: Any) -> None:
    flow = carry.module("flow", real_nvp())
    found, densities = flow.sample(500)
    carry.check("shapes", [list(found.shape), list(densities.shape)])
    carry.check("same density", flow.log_prob(found) - densities, atol=1e-3)
    flow = nf.NormalizingFlow(flow.q0, list(flow.flows), nf.distributions.TwoMoons())
    carry.check("finite", bool(flow.reverse_kld(num_samples=50).isfinite()))
    carry.check("target", nf.distributions.TwoMoons().log_prob(points()))


def case_splines(carry: Any) -> None:
    layers: list[Any] = []
    for _ in range(2):
        layers.append(nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8))
        layers.append(nf.flows.LULinearPermute(2))
    flow = nf.NormalizingFlow(nf.distributions.DiagGaussian(2, trainable=False), layers)
    flow = carry.module("flow", flow)
    found = flow.log_prob(points())
    found.mean().backward()
    carry.check("found", found)
    carry.check("gradients", gradients(flow))


def case_planar(carry: Any) -> None:
    layers = [nf.flows.Planar((2,)), nf.flows.Radial((2,)), nf.flows.Planar((2,))]
    for position, layer in enumerate(layers):
        found, determinant = carry.module(f"layer{position}", layer)(points())
        carry.check(f"layer{position}", [found, determinant])


def case_glow(carry: Any) -> None:
    bases, merges, levels = [], [], []
    for level in range(2):
        levels.append([nf.flows.GlowBlock(3 * 2 ** (3 - level), 8), nf.flows.Squeeze()])
        shape = (6, 8, 8) if level else (24, 4, 4)
        bases.append(nf.distributions.ClassCondDiagGaussian(shape, 3))
        if level:
            merges.append(nf.flows.Merge())
    flow = nf.MultiscaleFlow(bases, levels, merges)
    rng = np.random.default_rng(0)
    x, y = torch.from_numpy(rng.random((4, 3, 16, 16), dtype=np.float32)), torch.tensor([0, 1, 2, 0])
    flow.log_prob(x, y)
    found = carry.module("flow", flow).log_prob(x, y)
    found.sum().backward()
    carry.check("found", found)
    carry.check("shape", list(flow.sample(2, y=torch.tensor([0, 1]))[0].shape))
