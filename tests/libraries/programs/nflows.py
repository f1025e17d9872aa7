"""nflows: the density of flows, their inverses, training, and samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from nflows import distributions, flows, transforms
from nflows.nn.nets import ResidualNet


def points(count: int = 32, size: int = 4) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal((count, size), dtype=np.float32))


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: each.grad for name, each in model.named_parameters() if each.grad is not None}


def autoregressive() -> flows.Flow:
    layers: list[Any] = []
    for _ in range(2):
        layers.append(transforms.ReversePermutation(features=4))
        layers.append(transforms.MaskedAffineAutoregressiveTransform(features=4, hidden_features=8))
    return flows.Flow(transforms.CompositeTransform(layers), distributions.StandardNormal([4]))


def case_autoregressive(carry: Any) -> None:
    flow = carry.module("flow", autoregressive())
    found = flow.log_prob(points())
    (-found.mean()).backward()
    carry.check("found", found)
    carry.check("gradients", gradients(flow))
    with torch.no_grad():
        noise = flow.transform_to_noise(points())
        carry.check("noise", noise)
        carry.check("back", flow._transform.inverse(noise)[0] - points(), atol=1e-3)


def case_samples(carry: Any) -> None:
    flow = carry.module("flow", autoregressive())
    found, densities = flow.sample_and_log_prob(500)
    carry.check("shapes", [list(found.shape), list(densities.shape)])
    carry.check("same density", flow.log_prob(found) - densities, atol=1e-3)
    carry.check("batched", list(flow.sample(30, batch_size=10).shape))


def case_real_nvp(carry: Any) -> None:
    flow = flows.SimpleRealNVP(features=4, hidden_features=8, num_layers=2, num_blocks_per_layer=1)
    flow = carry.module("flow", flow)
    found = flow.log_prob(points())
    found.sum().backward()
    carry.check("found", found)
    carry.check("gradients", gradients(flow))


def case_splines(carry: Any) -> None:
    def net(inputs: int, outputs: int) -> torch.nn.Module:
        return ResidualNet(inputs, outputs, hidden_features=8, num_blocks=1)

    layers = [
        transforms.PiecewiseRationalQuadraticCouplingTransform(
            torch.tensor([0, 1, 0, 1]), net, num_bins=5, tails="linear", tail_bound=3.0
        ),
        transforms.LULinear(4),
        transforms.RandomPermutation(4),
        transforms.ActNorm(4),
    ]
    flow = flows.Flow(transforms.CompositeTransform(layers), distributions.StandardNormal([4]))
    flow = carry.module("flow", flow)
    found = flow.log_prob(points())
    found.mean().backward()
    carry.check("found", found)
    carry.check("gradients", gradients(flow), atol=1e-3)


def case_conditional(carry: Any) -> None:
    base = distributions.ConditionalDiagonalNormal([4], torch.nn.Linear(3, 8))
    layer = transforms.MaskedAffineAutoregressiveTransform(features=4, hidden_features=8, context_features=3)
    flow = carry.module("flow", flows.Flow(layer, base))
    context = points(8, 3)
    carry.check("found", flow.log_prob(points(8), context=context))
    carry.check("shape", list(flow.sample(5, context=context).shape))


def case_training(carry: Any) -> None:
    flow = carry.module("flow", autoregressive())
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -flow.log_prob(inputs=points() * 2 + 1).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    carry.check("losses", losses)
