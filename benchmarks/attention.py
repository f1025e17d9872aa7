"""Attention and its gradients in float64 NumPy, and the statements that are compared with them."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]


def _parts(arrays: Arrays, causal: bool, window: int = 0) -> tuple[np.ndarray, ...]:
    """Queries, keys, values and weights; neighbours among the heads of queries share keys. Queries see all keys, those
    up to their own, or of these the last `window`."""
    q, k, v = (arrays[name].astype(np.float64) for name in "qkv")
    k, v = (x.repeat(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        rows, keys = scores.shape[-2:]
        kept = np.tri(rows, keys) - (np.tri(rows, keys, -window) if window else 0)
        scores = np.where(kept > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return q, k, v, weights / weights.sum(-1, keepdims=True)


def exact_attention(causal: bool = False, window: int = 0) -> Callable[[Arrays], np.ndarray]:
    """The results."""

    def exact(arrays: Arrays) -> np.ndarray:
        *_, v, weights = _parts(arrays, causal, window)
        return np.asarray(weights @ v)

    return exact


def exact_gradients(causal: bool = False) -> Callable[[Arrays], tuple[np.ndarray, ...]]:
    """The gradients of queries, keys and values, for one of the results that is `g`."""

    def exact(arrays: Arrays) -> tuple[np.ndarray, ...]:
        q, k, v, weights = _parts(arrays, causal)
        g = arrays["g"].astype(np.float64)
        change = g @ v.swapaxes(-1, -2)
        change = weights * (change - (change * weights).sum(-1, keepdims=True)) / math.sqrt(q.shape[-1])
        return change @ k, change.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ g

    return exact


def _training(torch: Any, tensors: Mapping[str, Any], causal: bool) -> dict[str, object]:
    """`step()` is attention with its gradients."""
    leaves = [tensors[name].detach().requires_grad_() for name in "qkv"]

    def step() -> tuple[Any, ...]:
        for leaf in leaves:
            leaf.grad = None
        torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal).backward(tensors["g"])
        return tuple(leaf.grad for leaf in leaves)

    return {"step": step}


def training(causal: bool = False) -> Callable[..., dict[str, object]]:
    """What prepares the statement `step()`."""
    return partial(_training, causal=causal)


def _windowed(torch: Any, tensors: Mapping[str, Any], window: int) -> dict[str, object]:
    """`step()` is attention of the last keys up to each query's own, by `flex_attention`; its lists of blocks are made
    here, because budgets are counted where the numbers of `create_block_mask` are not all computed."""
    module = importlib.import_module(f"{torch.__name__}.nn.attention.flex_attention")
    q, k, v = (tensors[name] for name in "qkv")
    length, side = q.shape[-2], 128
    row, column = np.indices((-(-length // side),) * 2)
    far, near = (row - column + 1) * side - 1, (row - column) * side - side + 1  # keys that are so much before
    whole = (near >= 0) & (far < window) & ((row + 1) * side <= length)
    some = (far >= 0) & (near < window) & ~whole

    def listed(kept: np.ndarray) -> list[Any]:
        order = np.argsort(~kept, -1, kind="stable")
        return [torch.from_numpy(x.astype(np.int32)[None, None]).to(q.device) for x in (kept.sum(-1), order)]

    mask = module.BlockMask.from_kv_blocks(
        *listed(some),
        *listed(whole),
        BLOCK_SIZE=side,
        mask_mod=lambda b, h, q, k: (q >= k) & (q - k < window),
        seq_lengths=(length, length),
        compute_q_blocks=False,
    )
    run = module.flex_attention
    if torch.__name__ == "torch" and q.is_cuda:
        run = torch.compile(run)
    return {"step": lambda: run(q, k, v, block_mask=mask)}


def windowed(window: int) -> Callable[..., dict[str, object]]:
    """What prepares the statement `step()`."""
    return partial(_windowed, window=window)
