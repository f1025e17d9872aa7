"""einops: rearranging, reducing and repeating, products, packing, and the layers."""

from __future__ import annotations

from typing import Any

import einops
import numpy as np
import torch
from einops.layers.torch import EinMix, Rearrange, Reduce


def images() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 8, 8), dtype=np.float32))


def case_rearrange(carry: Any) -> None:
    x = images()
    carry.check("channels last", einops.rearrange(x, "b c h w -> b h w c"))
    carry.check("patches", einops.rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4))
    carry.check("list", einops.rearrange([x[0], x[1]], "b c h w -> (b h) w c"))
    carry.check("repeat", einops.repeat(x, "b c h w -> b c (h 2) (w k)", k=3))
    carry.check("shape", einops.parse_shape(x, "b _ h w"))
    x.requires_grad_()
    einops.rearrange(x, "b c h w -> b (c h w)")[:, ::3].square().sum().backward()
    carry.check("gradient", x.grad)


def case_reduce(carry: Any) -> None:
    x = images()
    for how in ("mean", "max", "min", "sum", "prod"):
        carry.check(how, einops.reduce(x, "b c (h 2) (w 2) -> b c h w", how))
    carry.check("any", einops.reduce(x > 1, "b c h w -> b c", "any"))
    carry.check("function", einops.reduce(x, "b c h w -> b c 1 1", torch.logsumexp))


def case_einsum_and_pack(carry: Any) -> None:
    x = images()
    carry.check("attention", einops.einsum(x, x, "b c i d, b c j d -> b c i j"))
    packed, shapes = einops.pack([x, x[:, 0], x[:, :, :, 0]], "b *")
    carry.check("packed", packed)
    carry.check("unpacked", einops.unpack(packed, shapes, "b *"))


def case_layers(carry: Any) -> None:
    model = torch.nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
        torch.nn.Linear(48, 12),
        EinMix("b n (heads d) -> b n heads k", weight_shape="heads d k", bias_shape="heads k", heads=3, d=4, k=5),
        Reduce("b n heads k -> b (heads k)", "mean"),
    )
    model = carry.module("model", model)
    found = model(images())
    found.square().mean().backward()
    carry.check("found", found)
    carry.check("gradients", [each.grad for each in model.parameters()])


def case_attention(carry: Any) -> None:
    layer = carry.module("layer", torch.nn.Linear(8, 24))
    x = images()[:, 0]
    q, k, v = einops.rearrange(layer(x), "b n (three h d) -> three b h n d", three=3, h=2)
    weights = torch.softmax(einops.einsum(q, k, "b h i d, b h j d -> b h i j") / 2, -1)
    found = einops.rearrange(einops.einsum(weights, v, "b h i j, b h j d -> b h i d"), "b h n d -> b n (h d)")
    found.sum().backward()
    carry.check("found", found)
    carry.check("gradient", layer.weight.grad)
