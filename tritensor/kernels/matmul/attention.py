"""Attention on the CPU: softmax(q @ k.T * factor) @ v and its gradients, by blocks of scores that stay in a cache.

A block is some heads, or some queries of one head. The scores as a whole are never in memory; backward computes them
again.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any

import numpy as np

from ...threads import in_pieces
from .host import places

__all__ = ["attend", "attend_backward"]

ndarray = np.ndarray
# Scores of a block: 1 MB of float32.
_SCORES = 1 << 18


def _share(batch: tuple[int, ...], scores: int, run: Callable[[Any], None]) -> None:
    """Call `run` with indices of heads, of as many at a time as their scores fill a block."""

    def heads(start: int, stop: int) -> None:
        for place in places(batch, start, stop) if batch else ((),):
            run(place)

    in_pieces(heads, prod(batch), max(_SCORES // scores, 1))


def _weights(q: ndarray, k: ndarray, mask: ndarray | None, first: int, causal: bool) -> tuple[ndarray, ndarray]:
    """exp(scores - a number for each query) of queries from `first` on, and its sums along the keys."""
    scores = np.matmul(q, k.mT)
    if causal:
        rows, cols = scores.shape[-2:]
        scores[..., np.arange(cols) > np.arange(first, first + rows)[:, None]] = -inf
    elif mask is not None and mask.dtype == bool:
        np.copyto(scores, -inf, where=~mask)
    elif mask is not None:
        np.add(scores, mask, out=scores)
    top = scores.max(-1, keepdims=True)
    if mask is not None:
        top[top == -inf] = 0  # a query without keys: its weights are zeros
    np.exp(np.subtract(scores, top, out=scores), out=scores)
    total = scores.sum(-1, keepdims=True)
    if mask is not None:
        total[total == 0] = 1
    return scores, total


def _part(mask: ndarray | None, place: Any, rows: slice) -> ndarray | None:
    return None if mask is None else mask[place][..., rows, :]


def attend(q: ndarray, k: ndarray, v: ndarray, factor: float, mask: ndarray | None, causal: bool, kind: Any) -> ndarray:
    """Attention of arrays of one dtype, whose batches are equal; computed in `kind`.

    Args:
        mask: None or of the scores' shape: boolean, or added to the scores.
        causal: query i uses the keys up to i.
    """
    count, keys = q.shape[-2], k.shape[-2]
    out = np.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
    step = max(min(_SCORES // keys, count), 1)
    blocks = -(-count // step)
    batch = (*q.shape[:-2], blocks) if blocks > 1 else q.shape[:-2]

    def run(place: Any) -> None:
        first, heads = 0, place
        if blocks > 1:
            *rest, block = place
            first, heads = block.start * step, tuple(rest)
        rows = slice(first, first + step)
        scaled = q[heads][..., rows, :].astype(kind, copy=False) * kind.type(factor)
        weights, total = _weights(scaled, k[heads].astype(kind, copy=False), _part(mask, heads, rows), first, causal)
        found = np.matmul(weights, v[heads].astype(kind, copy=False))
        out[heads][..., rows, :] = np.divide(found, total, out=found)

    _share(batch, step * keys, run)
    return out


def attend_backward(
    grad: ndarray,
    q: ndarray,
    k: ndarray,
    v: ndarray,
    out: ndarray,
    factor: float,
    mask: ndarray | None,
    causal: bool,
    kind: Any,
) -> tuple[ndarray, ndarray, ndarray]:
    """The gradients of q, k and v, from that of the result and the result."""
    count, keys = q.shape[-2], k.shape[-2]
    step = max(min(_SCORES // keys, count), 1)
    results = np.empty(q.shape, q.dtype), np.empty(k.shape, k.dtype), np.empty(v.shape, v.dtype)

    def run(place: Any) -> None:
        key, value = k[place].astype(kind, copy=False), v[place].astype(kind, copy=False)
        grad_key, grad_value = np.zeros(key.shape, kind), np.zeros(value.shape, kind)
        for first in range(0, count, step):
            rows = slice(first, first + step)
            here, query, result = (each[place][..., rows, :].astype(kind, copy=False) for each in (grad, q, out))
            scaled = query * kind.type(factor)
            weights, total = _weights(scaled, key, _part(mask, place, rows), first, causal)
            np.divide(weights, total, out=weights)
            grad_value += np.matmul(weights.mT, here)
            grad_scores = np.matmul(here, value.mT)
            np.subtract(grad_scores, np.vecdot(here, result)[..., None], out=grad_scores)
            np.multiply(grad_scores, weights, out=grad_scores)
            grad_key += np.matmul(grad_scores.mT, scaled)
            found = np.matmul(grad_scores, key)
            results[0][place][..., rows, :] = np.multiply(found, kind.type(factor), out=found)
        results[1][place], results[2][place] = grad_key, grad_value

    _share(q.shape[:-2], step * keys, run)
    return results
