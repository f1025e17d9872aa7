"""`torch.nn.attention.flex_attention`: attention whose scores a Python function changes, and another one masks.

What is computed follows the blocks that a `BlockMask` keeps: rows of blocks that keep equally many are computed at
once, their keys gathered. Functions of a score run under `vmap` on all scores of these rows; without one, the rows go
to the kernels of `scaled_dot_product_attention`, which hold no scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...autograd.mode import recording
from ...errors import ShapeError, UnsupportedError, require, warn
from ...functional.attention.attention import fits_kernels
from ...functional.creation.creation import as_tensor
from ...functional.elementwise.pointwise import where
from ...functional.views.joining import cat
from ...functional.window.filling import pad
from ...kernels.attention.family import attention
from ...tensors import Tensor
from ...types.dtypes import float32
from .block_mask import (
    _DEFAULT_SPARSE_BLOCK_SIZE,
    AT_ONCE,
    BlockMask,
    Score,
    and_masks,
    create_block_mask,
    create_mask,
    evaluated,
    noop_mask,
    or_masks,
    sliced,
)

__all__ = ["_DEFAULT_SPARSE_BLOCK_SIZE", "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks"]
__all__ += ["create_block_mask", "create_mask", "flex_attention", "noop_mask", "or_masks"]

FlexKernelOptions = dict[str, Any]
_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False  # programs set it; functions run as Python in any case
_BACKENDS = ("AUTO", "TRITON", "FLASH", "TRITON_DECODE")


class AuxRequest(NamedTuple):
    """Asks `flex_attention` for more results: the logarithms of the sums of exponentials, and the largest scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The results that an `AuxRequest` asked `flex_attention` for; None for the rest."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Score | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Scaled dot product attention with a function of each score, and with a mask of blocks.

    Time and memory follow the blocks that are kept. With a `score_mod` their scores are in memory, and all of those
    that a gradient needs; without one they never are. The gradients are those of queries, keys, values and of tensors
    that `score_mod` reads.

    >>> import tritensor as torch
    >>> from tritensor.nn.attention.flex_attention import flex_attention
    >>> x = torch.eye(2).reshape(1, 1, 2, 2)
    >>> flex_attention(x, x, x, score_mod=lambda score, b, h, q, kv: torch.where(q >= kv, score, -torch.inf))
    tensor([[[[1.0000, 0.0000],
              [0.3302, 0.6698]]]])

    Args:
        query, key, value: (B, heads, L, E), (B, heads, S, E) and (B, heads, S, Ev).
        score_mod: called as score_mod(score, b, h, q_idx, kv_idx) with tensors of no dimension, under `vmap`.
        block_mask: which scores are kept; a query of which none is has zeros as result.
        scale: 1 / sqrt(E) unless given.
        enable_gqa: key and value may have fewer heads than query, which divide its heads.
        return_lse: use return_aux.
        kernel_options: for PyTorch's sake.
        return_aux: what to return besides, as an `AuxOutput`.

    Raises:
        ValueError: shapes, devices or numbers of heads that do not fit together or do not fit the mask.
        ShapeError: the mask was sliced, or has a batch or heads of its own. UnsupportedError: not four dimensions.
    """
    _check(query, key, value, block_mask, enable_gqa, kernel_options)
    if return_lse:
        require(return_aux is None, ValueError, "Cannot specify both return_lse and return_aux. Use return_aux")
        _deprecated()
    wanted = AuxRequest(lse=return_lse) if return_aux is None else return_aux
    factor = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else float(scale)
    key, value = (x.to(query.dtype).expand(query.shape[0], *x.shape[1:]) for x in (key, value))
    out, lse, largest = _computed((query, key, value), block_mask, score_mod, factor, wanted)
    if return_aux is not None:
        return out, AuxOutput(lse, largest)
    return (out, lse) if return_lse else out


@cache
def _deprecated() -> None:
    warn("return_lse is deprecated and will be removed in v2.10. Use return_aux=AuxRequest(lse=True)", FutureWarning)


def _check(q: Tensor, k: Tensor, v: Tensor, mask: BlockMask | None, grouped: bool, options: Any) -> None:
    devices = [x.device for x in (q, k, v)]
    text = "Expected query, key, and value to have the same device type, but got {} instead"
    require(devices.count(devices[0]) == 3, ValueError, text, devices)
    ranks = [x.ndim for x in (q, k, v)]
    text = "Expected query, key, and value to all be  at least 2 dimensional, but got dimensions {} instead"
    require(min(ranks) >= 2, ValueError, text, ranks)
    text = "Expect query and key/value to have the same embedding dimension but got E={} and E={}."
    require(q.shape[-1] == k.shape[-1], ValueError, text, q.shape[-1], k.shape[-1])
    require(ranks == [4, 4, 4], UnsupportedError, "NYI: query, key, and value must be 4D tensors")
    (batch, heads, rows, _), (others, few, keys, _) = q.shape, k.shape
    text = "Expect query and key/value to have the same number of heads but got Hq={} and Hkv={}. "
    require(grouped or heads == few, ValueError, text + "Try setting enable_gqa=True for GQA.", heads, few)
    text = "Expect number of query heads to be a multiple of kv heads for GQA but got Hq={} and Hkv={}."
    require(heads % max(few, 1) == 0, ValueError, text, heads, few)
    require(v.shape[:3] == k.shape[:3], ValueError, "key and value have shapes {} and {}", k.shape, v.shape)
    if batch != others:
        text = "Expect query and key/value to have the same batch size, or non-none block_mask, but got block_mask="
        require(mask is not None, ValueError, text + "None, Bq={}, and Bkv={}.", batch, others)
        text = "Bq and Bkv must broadcast. Got Bq={} and Bkv={}"
        require(others == 1, ShapeError, text, batch, others)
    backend = (options or {}).get("BACKEND", "AUTO")
    require(backend in _BACKENDS, ValueError, "Invalid BACKEND value '{}'. Must be one of {}", backend, _BACKENDS)
    if mask is None:
        return
    require(mask.mask_mod is not sliced, ShapeError, "Cannot use mask_mod from a sliced BlockMask")
    text = "block_mask was created for block_mask.shape={} but got q_len={} and kv_len={}. "
    remedy = "Make one of these lengths, or take its upper left corner with block_mask._adjust(q_len, kv_len)"
    require(mask.seq_lengths == (rows, keys), ValueError, text + remedy, mask.shape, rows, keys)
    own = mask.shape[:-2]
    fits = all(mine in (1, size) for mine, size in zip(own, (batch, heads)[2 - len(own) :]))
    require(fits, ShapeError, "block_mask has batch and heads {}, query {} and {}", own, batch, heads)
    place = mask.kv_num_blocks.device
    text = "Expect q/k/v and block_mask to be on the same device but got {} and {}."
    require(q.device == place, ShapeError, text, q.device, place)


class _Blocks:
    """One call: its operands in blocks, as (batch, heads, rows of blocks, heads that share keys, positions, width).

    Where the mask has a batch or heads of its own, these are among the rows of blocks: `free` names the others.
    """

    def __init__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: BlockMask | None, size: tuple[int, int], blocks: list[Any]
    ) -> None:
        self.size, self.mask_mod, self.device = size, noop_mask if mask is None else mask.mask_mod, q.device
        (self.batch, self.heads, self.rows, _), (few, self.keys) = q.shape, k.shape[1:3]
        own = blocks[0].shape
        self.free = "".join([name for name, count in zip("bh", own) if count == 1])
        self.order = sorted((0, 1), key=lambda dim: own[dim] != 1)
        self.group = self.heads // few if own[1] == 1 else 1
        self.q = self._laid_out(q, size[0], self.group)
        self.k, self.v = (self._laid_out(x, size[1], 1) for x in (k, v))
        self.of = np.unravel_index(np.arange(math.prod(own)), own)  # batch, head and row of each row of blocks
        share, columns = self.heads // few, -(-self.keys // size[1])
        self.base = (self.of[0] * (few if own[1] > 1 else 1) + self.of[1] // share) * columns
        self.blocks: list[Any] = [x if x is None else x.reshape(len(self.base), *x.shape[3:]) for x in blocks]

    def _laid_out(self, x: Tensor, size: int, group: int) -> Tensor:
        """An operand in blocks."""
        x = pad(x, (0, 0, 0, -x.shape[2] % size)) if x.shape[2] % size else x
        x = x.unflatten(1, (-1, group)).unflatten(3, (-1, size)).permute(*self.order, 3, 2, 4, 5)
        return x.flatten(len(self.free), 2)

    def laid_back(self, x: Tensor) -> Tensor:
        """A result as (batch, heads, queries, ...)."""
        heads = self.heads // self.group
        sizes = [(self.batch, heads)[dim] for dim in self.order]
        x = x.unflatten(len(self.free), (*sizes[len(self.free) :], -1))
        x = x.permute(self.order.index(0), self.order.index(1), 3, 2, *range(4, x.ndim))
        return x.flatten(1, 2).flatten(2, 3)[:, :, : self.rows]

    def alike(self, limited: bool) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
        """Rows of blocks that keep equally many, their columns, and how many of these `mask_mod` is asked about."""
        counts, indices, full, full_indices = self.blocks
        full = counts * 0 if full is None else full
        pairs, place = np.unique(np.stack([counts, full]), axis=1, return_inverse=True)
        for number, (some, all_of) in enumerate(pairs.T.tolist()):
            rows = np.flatnonzero(place.reshape(-1) == number)
            columns = indices[rows, :some]
            if all_of:
                columns = np.concatenate([columns, full_indices[rows, :all_of]], 1)
            scores = self.q[..., 0, :, :, 0].numel() * max(columns.shape[1], 1) * self.size[1]
            step = max(1, AT_ONCE // scores) if limited else len(rows)
            for first in range(0, len(rows), step):
                yield rows[first : first + step], columns[first : first + step], some

    def indices(self, rows: np.ndarray, columns: np.ndarray) -> list[tuple[Tensor, str]]:
        """The batch, heads, queries and keys of the scores in some blocks, with the names of their dimensions."""
        b, h = self.of[0][rows], self.of[1][rows][:, None]
        found = [(np.arange(self.batch), "b") if "b" in self.free else (b, "n")]
        found += [(np.arange(self.heads).reshape(-1, self.group), "hg") if "h" in self.free else (h, "ng")]
        for places, size, most, names in (
            (self.of[2][rows][:, None], self.size[0], self.rows, "nq"),
            (columns, self.size[1], self.keys, "nk"),
        ):
            positions = (places[..., None].astype(np.int64) * size + np.arange(size)).reshape(len(rows), -1)
            found.append((np.minimum(positions, most - 1), names))  # beyond the end, where nothing is to be read
        return [(as_tensor(array, device=self.device), names) for array, names in found]

    def kept(self, rows: np.ndarray, columns: np.ndarray, some: int, indices: list[tuple[Tensor, str]]) -> Any:
        """Which scores of some blocks are kept, as far as they differ; None for all."""
        width, kept = self.size[1], None
        if some:
            *others, (keys, names) = indices
            kept = evaluated(self.mask_mod, f"{self.free}ngqk", *others, (keys[:, : some * width], names))
            kept = kept[tuple([slice(None) if step else slice(0, 1) for step in kept.stride()])]
            kept = pad(kept, (0, (columns.shape[1] - some) * width), value=True) if some < columns.shape[1] else kept
        if self.keys % width and (columns == self.keys // width).any():
            inside = (columns[..., None] * width + np.arange(width) < self.keys).reshape(len(rows), 1, 1, -1)
            kept = (
                as_tensor(inside, device=self.device) if kept is None else kept & as_tensor(inside, device=self.device)
            )
        return kept

    def picked(self, x: Tensor, places: np.ndarray) -> Tensor:
        """Rows of blocks of a tensor; itself if these are all of them."""
        dim = len(self.free)
        if len(places) == x.shape[dim] and (places == np.arange(len(places))).all():
            return x
        return x.index_select(dim, as_tensor(places, device=self.device))

    def gathered(self, x: Tensor, rows: np.ndarray, columns: np.ndarray) -> Tensor:
        """The keys or values in some columns of each row of blocks."""
        dim = len(self.free)
        x = self.picked(x, (self.base[rows][:, None] + columns).reshape(-1))
        return x.unflatten(dim, columns.shape).transpose(dim + 1, dim + 2).flatten(dim + 2, dim + 3)

    def is_causal(self) -> bool:
        """True if each query keeps the keys up to its own, of one mask for the whole batch and all heads."""
        counts, indices, full, full_indices = self.blocks
        if self.size[0] != self.size[1] or self.rows != self.keys or len(self.free) < 2 or full is None:
            return False
        count = np.arange(len(counts))
        before, columns = count < count[:, None], full_indices.shape[1]
        if columns != len(count) or (counts != 1).any() or (indices[:, 0] != count).any() or (full != count).any():
            return False
        if (np.sort(np.where(before, full_indices, columns)) != np.where(before, count, columns)).any():
            return False
        indices = self.indices(count, count[:, None])
        kept = self.kept(count, count[:, None], 1, indices)
        wanted = indices[2][0].unsqueeze(-1) >= indices[3][0].unsqueeze(-2)
        return kept.shape[:2] == (1, 1) and kept.shape[3] == 1 and bool((kept[0, 0, :, 0] == wanted).all())


def _computed(
    operands: tuple[Tensor, Tensor, Tensor], mask: BlockMask | None, score_mod: Any, scale: float, wanted: AuxRequest
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The result, the logarithms and the largest scores."""
    needs = recording.enabled and (score_mod is not None or any(x._needs for x in operands))
    fused = score_mod is None and not wanted.max_scores and not (wanted.lse and needs) and fits_kernels(*operands)
    q, k, v = operands
    wide = q.dtype if q.dtype.itemsize == 8 else float32
    if not min(*q.shape[:3], k.shape[2]):
        none = q.new_full(q.shape[:3], -math.inf, dtype=wide)
        lse, largest = (none if each else None for each in wanted)
        return q.new_zeros((*q.shape[:3], v.shape[3])), lse, largest
    diagonal = None
    if mask is not None:
        size = (min(mask.BLOCK_SIZE[0], q.shape[2]), min(mask.BLOCK_SIZE[1], k.shape[2]))
        blocks = _Blocks(q, k, v, mask, size, mask.on_host())
        diagonal = 0 if fused and blocks.is_causal() else None
    if mask is None or diagonal is not None:
        high = q.shape[2] if fused else min(q.shape[2], _DEFAULT_SPARSE_BLOCK_SIZE)
        ones = np.ones((1, 1, -(-q.shape[2] // high)), np.int64)
        blocks = _Blocks(q, k, v, None, (high, k.shape[2]), [ones - 1, ones[..., None] - 1, ones, ones[..., None] - 1])
    parts, order = [], []
    for rows, columns, some in blocks.alike(not fused):
        order.append(rows)
        queries = blocks.picked(blocks.q, rows)
        if not columns.size:
            none = queries.new_full(queries.shape[:-1], -math.inf, dtype=wide)
            parts.append((queries.new_zeros((*queries.shape[:-1], v.shape[-1])), none, none))
            continue
        indices = blocks.indices(rows, columns) if some or score_mod is not None else []
        kept = blocks.kept(rows, columns, some, indices)
        keys, values = (blocks.gathered(x, rows, columns) for x in (blocks.k, blocks.v))
        if fused:
            out, logs = attention(queries, keys, values, kept, scale=scale, diagonal=diagonal)
            logs = logs.masked_fill(logs == math.inf, -math.inf) if wanted.lse else logs
            parts.append((out, logs, logs))
            continue
        scores = queries.to(wide).flatten(-3, -2) @ keys.squeeze(-3).to(wide).mT * scale
        scores = scores.unflatten(-2, (blocks.group, -1))
        names = f"{blocks.free}ngqk"
        if score_mod is not None:
            scores = evaluated(score_mod, names, (scores, names), *indices)
        parts.append(_weighted(scores if kept is None else where(kept, scores, -math.inf), values, q.dtype, wanted))
    back = np.argsort(np.concatenate(order))
    found: list[Any] = [None] * 3
    for place, each in enumerate(zip(*parts)):
        if (True, *wanted)[place]:
            found[place] = blocks.laid_back(blocks.picked(cat(each, len(blocks.free)), back))
    return found[0], found[1], found[2]


def _weighted(scores: Tensor, values: Tensor, kind: Any, wanted: AuxRequest) -> tuple[Tensor, Tensor, Tensor]:
    """The values weighted by the softmax of their scores, the logarithms and the largest scores; queries that keep no
    key have zeros, and no NaN in gradients.
    """
    blind = (scores == -math.inf).all(-1, keepdim=True)
    seen = scores.masked_fill(blind, 0)
    weights = seen.softmax(-1).masked_fill(blind, 0)
    out = (weights.flatten(-3, -2) @ values.squeeze(-3).to(weights.dtype)).unflatten(-2, scores.shape[-3:-1])
    lse = seen.logsumexp(-1).masked_fill(blind.squeeze(-1), -math.inf) if wanted.lse else blind.squeeze(-1)
    return out.to(kind), lse, scores.amax(-1) if wanted.max_scores else lse
