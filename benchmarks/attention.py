"""Attention and its gradients in float64 NumPy, and the statements that are compared with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]


def _parts(arrays: Arrays, causal: bool) -> tuple[np.ndarray, ...]:
    """Queries, keys, values and weights."""
    q, k, v = (arrays[name].astype(np.float64) for name in "qkv")
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return q, k, v, weights / weights.sum(-1, keepdims=True)


def exact_attention(causal: bool = False) -> Callable[[Arrays], np.ndarray]:
    """The results."""

    def exact(arrays: Arrays) -> np.ndarray:
        *_, v, weights = _parts(arrays, causal)
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
