"""denoising-diffusion-pytorch: the networks, the loss with given noise, and the steps of sampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from denoising_diffusion_pytorch import GaussianDiffusion, GaussianDiffusion1D, Unet, Unet1D


def given(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))


def unet(**options: Any) -> Unet:
    return Unet(dim=8, dim_mults=(1, 2), attn_dim_head=8, attn_heads=2, flash_attn=False, **options)


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: each.grad for name, each in model.named_parameters() if each.grad is not None}


def case_unet(carry: Any) -> None:
    model = carry.module("model", unet())
    found = model(given(2, 3, 16, 16), torch.tensor([3, 70]))
    found.square().mean().backward()
    carry.check("found", found)
    carry.check("gradients", gradients(model))


def case_loss(carry: Any) -> None:
    for objective in ("pred_noise", "pred_v", "pred_x0"):
        diffusion = GaussianDiffusion(unet(), image_size=16, timesteps=100, objective=objective)
        diffusion = carry.module(objective, diffusion)
        noise = carry.tensor(f"{objective} noise", torch.randn(2, 3, 16, 16))
        loss = diffusion.p_losses(given(2, 3, 16, 16).tanh(), torch.tensor([3, 70]), noise=noise)
        loss.backward()
        carry.check(f"{objective} loss", loss)
        carry.check(f"{objective} gradients", gradients(diffusion))


def case_schedules(carry: Any) -> None:
    for schedule in ("linear", "cosine", "sigmoid"):
        diffusion = GaussianDiffusion(unet(), image_size=16, timesteps=50, beta_schedule=schedule)
        kept = ("betas", "posterior_variance", "loss_weight", "sqrt_recip_alphas_cumprod")
        carry.check(schedule, {name: getattr(diffusion, name) for name in kept})


def case_sampling(carry: Any) -> None:
    diffusion = GaussianDiffusion(unet(), image_size=16, timesteps=20, sampling_timesteps=4, beta_schedule="linear")
    diffusion = carry.module("model", diffusion).eval()
    mean, variance, _, start = diffusion.p_mean_variance(given(2, 3, 16, 16), torch.tensor([9, 9]))
    carry.check("step", [mean, variance, start])
    found = diffusion.sample(batch_size=2)
    carry.check("shape", list(found.shape))
    carry.check("finite", bool(found.isfinite().all()))
    carry.check("range", bool((found.min() >= 0) & (found.max() <= 1)))


def case_training(carry: Any) -> None:
    diffusion = GaussianDiffusion(unet(), image_size=16, timesteps=100)
    diffusion = carry.module("model", diffusion)
    noise = carry.tensor("noise", torch.randn(4, 3, 16, 16))
    optimizer = torch.optim.Adam(diffusion.parameters(), lr=1e-3, betas=(0.9, 0.99))
    losses = []
    for _ in range(3):
        loss = diffusion.p_losses(given(4, 3, 16, 16).tanh(), torch.tensor([3, 20, 55, 90]), noise=noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    carry.check("losses", losses)


def case_sequences(carry: Any) -> None:
    model = Unet1D(dim=8, dim_mults=(1, 2), channels=4, attn_dim_head=8, attn_heads=2)
    diffusion = carry.module("model", GaussianDiffusion1D(model, seq_length=16, timesteps=50, objective="pred_v"))
    noise = carry.tensor("noise", torch.randn(2, 4, 16))
    loss = diffusion.p_losses(given(2, 4, 16).tanh(), torch.tensor([5, 40]), noise=noise)
    loss.backward()
    carry.check("loss", loss)
    carry.check("gradients", gradients(diffusion))
