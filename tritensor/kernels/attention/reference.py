"""Attention on the CPU: softmax(q @ k.T * factor + mask) @ v and its gradients, by blocks of scores in a cache.

A block is some queries of some heads. The scores as a whole are never in memory; backward computes them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf, prod
from typing import Any

import numpy as np

from ...host.copying import converted
from ...host.threads import blas_on_one_thread, in_pieces, quietly
from ...types import layout
from ..matmul.reference import places
from ..random.reference import draw_dropout
from ..scratch import ones

ndarray = np.ndarray
# Scores of a block: 1 MB of float32.
_SCORES = 1 << 18
# Queries of a block before a diagonal: the keys behind it are left out.
_QUERIES = 128
# Of fewer scores the largest are found in any case, and operands of fewer elements read as they lie.
FEW = 1 << 12
# Exponentials of scores up to this, and their sums, are numbers of float32 with all their digits.
_SMALL = 60


def batch_of(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The batch of queries, keys and values of these shapes."""
    return layout.broadcast_shapes(*[shape[:-2] for shape in shapes])


def is_shared(batch: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> bool:
    """True if the last dimension of a batch shares keys and values."""
    return bool(batch) and batch[-1] > 1 and all(len(shape) < 3 or shape[-3] == 1 for shape in (k, v))


def _step(count: int, keys: int, diagonal: int | None) -> int:
    """The number of queries in a block."""
    step = max(min(_SCORES // max(keys, 1), count), 1)
    return step if diagonal is None else min(step, _QUERIES)


def _end(first: int, step: int, keys: int, diagonal: int | None) -> int:
    """Up to which key the queries of a block see."""
    return keys if diagonal is None else min(max(first + step + diagonal, 0), keys)


def is_one_block(batch: Sequence[int], count: int, keys: int, diagonal: int | None) -> bool:
    """True if `attend` computes all scores of a batch as one block."""
    return _step(count, keys, diagonal) == count and prod(batch) * count * keys <= _SCORES


def _share(batch: tuple[int, ...], scores: int, run: Callable[[Any], None]) -> None:
    """Call `run` with indices of a batch, of as many at a time as their scores fill a block."""
    if 0 < prod(batch) * scores <= _SCORES and batch[0] == 1:
        with blas_on_one_thread:
            quietly(run, (0, *[slice(None)] * (len(batch) - 1)))
        return

    def some(start: int, stop: int) -> None:
        for place in places(batch, start, stop):
            run(place)

    in_pieces(some, prod(batch), max(_SCORES // max(scores, 1), 1))


def _scores(scaled: ndarray, across: ndarray, mask: ndarray | None, first: int, diagonal: int | None) -> ndarray:
    """The scores of queries from `first` on; -inf where they do not see a key. `across`: a column for each key."""
    scores = np.matmul(scaled, across)
    rows, cols = scores.shape[-2:]
    if mask is not None and mask.dtype == bool:
        scores = np.where(mask, scores, scores.dtype.type(-inf))  # a seventh of the time of np.copyto(where=)
    elif mask is not None:
        np.add(scores, mask, out=scores)
    if diagonal is not None and first + diagonal < cols - 1:
        begin = max(first + diagonal + 1, 0)
        behind = scores[..., begin:]
        np.fmin(behind, _behind(rows, cols - begin, first + diagonal - begin, scores.dtype), out=behind)
    return scores


@lru_cache(maxsize=64)
def _behind(rows: int, cols: int, diagonal: int, kind: np.dtype) -> ndarray:
    """-inf behind a diagonal, and NaN before it, which `np.fmin` leaves out in a third of the time of `np.where`."""
    return np.where(np.tri(rows, cols, diagonal, bool), kind.type(np.nan), kind.type(-inf))


def _operand(x: ndarray, kind: np.dtype) -> ndarray:
    """A part of an operand in the dtype to compute in: as it is, unless products would read it slowly."""
    return x if x.dtype == kind and (x.strides[-1] == x.itemsize or x.size < FEW) else converted(x, kind)


def _are_small(scaled: ndarray, across: ndarray) -> bool:
    """True if no product of a query and a key is so large that its exponential needs the largest one subtracted."""
    row = ones((1, scaled.shape[-1]), scaled.dtype)
    return bool((np.square(scaled) @ row[0]).max() * (row @ np.square(across)).max() < _SMALL**2)


def _with_column(x: ndarray, column: np.ndarray | int, kind: np.dtype) -> ndarray:
    """A matrix with one more column: its product with another adds a number to each row, which is a pass less."""
    out = np.empty((*x.shape[:-1], x.shape[-1] + 1), kind)
    out[..., :-1], out[..., -1] = x, column
    return out


def _across(x: ndarray, kind: np.dtype, ones: int = 0) -> ndarray:
    """A copy with a column for each row, and as many rows of ones. Products with it take 40 us where those with a
    transposed matrix take 64, of 16 heads with 64 rows of 32."""
    out = np.empty((*x.shape[:-2], x.shape[-1] + ones, x.shape[-2]), kind)
    out[..., : x.shape[-1], :], out[..., x.shape[-1] :, :] = x.mT, 1
    return out


def _kept(shape: tuple[int, ...], batch: tuple[int, ...], place: Any, rows: slice, dropout: Any, kind: Any) -> ndarray:
    """The factors of the weights: those of the operator `dropout`, for weights with rows of a multiple of 8.

    Args:
        shape: of the weights, of heads, queries and keys. batch, place: the sizes of the batch, and which heads of it.
        rows: the queries. dropout: seed, offset, threshold, factor, and the numbers of queries and keys.
    """
    seed, offset, threshold, factor, count, keys = dropout
    groups = -(-keys // 8)
    whole = np.ones((shape[-2], groups * 8), kind)
    heads = np.arange(prod(batch)).reshape(batch)[place].reshape(-1)
    drawn = [
        draw_dropout(whole, seed, offset, threshold, factor, kind, (h * count + rows.start) * groups) for h in heads
    ]
    return np.stack(drawn).reshape(*shape[:-1], -1)[..., : shape[-1]]


def attended(
    operands: Sequence[Any], factor: float, first: int, diagonal: int | None, kept: Any, kind: np.dtype
) -> tuple[ndarray, ndarray]:
    """Attention of a block of queries, the first of which is number `first`, and the column of logsumexp; see `attend`.

    Args:
        kept: None, or a function of the weights' shape: what they are multiplied by.
    """
    q, k, v, mask = operands
    scaled, across = _operand(q, kind) * kind.type(factor), _across(k, kind)
    scores = _scores(scaled, across, mask, first, diagonal)
    end, top = k.shape[-2], kind.type(0)
    if end and not (scores.size >= FEW and (mask is None or mask.dtype == bool) and _are_small(scaled, across)):
        top = np.maximum.reduce(scores, -1, keepdims=True)
        if np.fmin.reduce(top, None) == -inf:
            top[top == -inf] = 0  # a query without keys: its weights are zeros
        np.subtract(scores, top, out=scores)
    weights = np.exp(scores, out=scores)
    total = np.matmul(weights, ones((end, 1), kind))
    logs = np.log(total)
    logs += top
    if not np.logical_and.reduce(total, None):
        blind = total == 0
        logs[blind], total[blind] = inf, 1
    if kept is not None:
        np.multiply(weights, kept(weights.shape), out=weights)
    found = np.matmul(weights, _operand(v, kind))
    return np.divide(found, total, out=found), logs


def attend(
    operands: Sequence[Any],
    out: ndarray,
    logsumexp: ndarray,
    factor: float,
    diagonal: int | None,
    dropout: Any,
    kind: np.dtype,
) -> None:
    """Attention of arrays with one batch, of at least one dimension, computed in `kind`.

    Args:
        operands: queries, keys, values, and None or a mask of the scores' shape: boolean, or added to the scores.
        out, logsumexp: written: the results and, of shape (..., queries), the logarithms of the sums of exponentials,
            which are infinite for a query that sees no key.
        diagonal: None, or query i sees the keys up to i + diagonal.
        dropout: None, or what `_kept` takes.
    """
    q, k, v, mask = operands
    batch, count, keys = q.shape[:-2], q.shape[-2], k.shape[-2]
    step = _step(count, keys, diagonal)

    def run(place: Any) -> None:
        block, *heads = place
        rows, heads = slice(block * step, block * step + step), tuple(heads)
        end = _end(rows.start, step, keys, diagonal)
        part = None if mask is None else mask[heads][..., rows, :end]
        parts = q[heads][..., rows, :], k[heads][..., :end, :], v[heads][..., :end, :], part
        kept = None if dropout is None else lambda shape: _kept(shape, batch, heads, rows, dropout, kind)
        found, logs = attended(parts, factor, rows.start, diagonal, kept, kind)
        out[heads][..., rows, :], logsumexp[heads][..., rows] = found, logs[..., 0]

    if out.size:
        _share((-(-count // step), *batch), step * keys, run)
    else:
        logsumexp[...] = inf


def attend_backward(
    known: Sequence[ndarray],
    operands: Sequence[Any],
    results: Sequence[ndarray],
    factor: float,
    diagonal: int | None,
    dropout: Any,
    kind: np.dtype,
) -> None:
    """The gradients of queries, keys and values in `results`, from that of the results, the results, and logsumexp.

    Where those of keys and values have a batch that ends with 1, its last dimension, of two or more, shares them.
    """
    (grad, out, logsumexp), (q, k, v, mask) = known, operands
    batch, count, keys = q.shape[:-2], q.shape[-2], k.shape[-2]
    shared = results[1].shape[-3] < q.shape[-3]
    together = batch[-1] if shared else 1
    step = _step(count, keys * together, diagonal)

    def run(place: Any) -> None:
        one = (*place, slice(None, 1)) if shared else place
        key, (keys_across, values_across) = _operand(k[one], kind), (_across(each[one], kind, 1) for each in (k, v))
        grad_key, grad_value = (np.zeros(each[one].shape, kind) for each in (k, v))
        for first in range(0, count, step):
            rows, end = slice(first, first + step), _end(first, step, keys, diagonal)
            here, query, result = (_operand(each[place][..., rows, :], kind) for each in (grad, q, out))
            part = None if mask is None else mask[place][..., rows, :end]
            scaled = query * kind.type(factor)
            less = _with_column(scaled, -_operand(logsumexp[place][..., rows], kind), kind)
            weights = _scores(less, keys_across[..., :end], part, first, diagonal)
            np.exp(weights, out=weights)
            delta = np.vecdot(here, result)
            if dropout is None:
                dropped, change = weights, np.matmul(_with_column(here, -delta, kind), values_across[..., :end])
            else:
                factors = _kept(weights.shape, batch, place, rows, dropout, kind)
                dropped, change = weights * factors, np.matmul(here, values_across[..., :-1, :end])
                np.subtract(np.multiply(change, factors, out=change), delta[..., None], out=change)
            np.multiply(change, weights, out=change)
            for total, left, right in ((grad_value, dropped, here), (grad_key, change, scaled)):
                if shared:  # the heads' queries are summed by one product
                    left, right = (x.reshape(*x.shape[:-3], 1, -1, x.shape[-1]) for x in (left, right))
                total[..., :end, :] += np.matmul(left.mT, right)
            found = np.matmul(change, key[..., :end, :])
            results[0][place][..., rows, :] = np.multiply(found, kind.type(factor), out=found)
        results[1][one], results[2][one] = grad_key, grad_value

    _share(batch[:-1] if shared else batch, together * step * keys, run)
