"""What rows of transformers have in common: a layer of an encoder, with equal weights in each library."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from benchmarks.training import Arrays

__all__ = ["encoder_layer", "encoder_work", "exact_encoder_layer", "exact_gpt2_block", "gpt2_block"]


def encoder_layer(torch: Any, tensors: Mapping[str, Any]) -> dict[str, object]:
    """`step()` is forward and backward of a layer in training, with dropout; `out()` is its result in evaluation."""
    x = tensors["x"].detach().requires_grad_()
    width = x.shape[-1]
    layer = torch.nn.TransformerEncoderLayer(width, max(width // 64, 1), 4 * width, batch_first=True)
    rng = np.random.default_rng(0)
    for name, parameter in layer.named_parameters():
        if parameter.ndim > 1:
            drawn = rng.standard_normal(tuple(parameter.shape), dtype=np.float32)
            parameter.data.copy_(torch.from_numpy(drawn * np.float32(parameter.shape[1] ** -0.5)))
        elif name.endswith("bias"):
            parameter.data.zero_()
    layer.to(x.device, x.dtype)
    grad = tensors["g"]

    def step() -> None:
        layer.zero_grad()
        x.grad = None
        layer(x).backward(grad)

    def out() -> Any:
        with torch.no_grad():
            found = layer.eval()(x)
        layer.train()
        return found.double() + 16  # relative errors of elements next to zero say nothing

    return {"step": step, "out": out}


def exact_encoder_layer(arrays: Arrays) -> np.ndarray:
    """The layer's result in float64, by tritensor: the tests compare its layers with their formulas."""
    import tritensor

    wide = {name: tritensor.from_numpy(array.astype(np.float64)) for name, array in arrays.items()}
    found: Any = encoder_layer(tritensor, wide)["out"]
    return np.asarray(found().numpy())


def gpt2_block(torch: Any, tensors: Mapping[str, Any]) -> dict[str, object]:
    """`out()` is a block of GPT-2 with heads of 32: attention, and the layers behind it, each after a norm and added;
    `step()` is forward and backward, with the same result."""
    x, F = tensors["x"], torch.nn.functional
    batch, tokens, width = x.shape
    rng = np.random.default_rng(0)
    row, wide = (width,), 4 * width
    sizes: list[tuple[int, ...]] = [row, row, (3 * width, width), (3 * width,), (width, width), row]
    sizes += [row, row, (wide, width), (wide,), (width, wide), row]
    drawn = [rng.standard_normal(size, dtype=np.float32) * np.float32(size[-1] ** -0.5) for size in sizes]
    parameters = [torch.from_numpy(array).to(x.dtype).requires_grad_() for array in drawn]
    norm_w, norm_b, qkv_w, qkv_b, out_w, out_b, norm2_w, norm2_b, up_w, up_b, down_w, down_b = parameters

    def block() -> Any:
        h = F.linear(F.layer_norm(x, (width,), norm_w, norm_b), qkv_w, qkv_b)
        q, k, v = (part.view(batch, tokens, width // 32, 32).transpose(1, 2) for part in h.split(width, 2))
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).contiguous()
        h = x + F.linear(h.view(batch, tokens, width), out_w, out_b)
        up = F.linear(F.layer_norm(h, (width,), norm2_w, norm2_b), up_w, up_b)
        return h + F.linear(F.gelu(up, approximate="tanh"), down_w, down_b)

    def step() -> Any:
        for parameter in parameters:
            parameter.grad = None
        found = block()
        found.backward(tensors["g"])
        return found

    def out() -> Any:
        with torch.no_grad():
            return block()

    return {"out": out, "step": step}


def exact_gpt2_block(arrays: Arrays) -> np.ndarray:
    """The block's result in float64, by tritensor: the tests compare its functions with their formulas."""
    import tritensor

    wide = {name: tritensor.from_numpy(array.astype(np.float64)) for name, array in arrays.items()}
    found: Any = gpt2_block(tritensor, wide)["out"]
    return np.asarray(found().numpy())


def encoder_work(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Floating-point operations of a step: the products of forward, and twice as many in backward."""
    *rows, width = shapes["x"]
    return 6 * prod(rows) * (12 * width * width + 2 * rows[-1] * width)
