"""`torch.nn.attention.flex_attention`: attention with a function that changes scores, and one that masks them.

Only the blocks that a `BlockMask` keeps are computed. On a device the kernels of `scaled_dot_product_attention`
pass over its lists and call the functions, which `traced.py` writes for them. Otherwise, and of what cannot be traced,
rows of blocks that keep equally many are computed at once, their keys gathered: functions of a score run under `vmap`
on all scores of these rows; without one, the rows go to `scaled_dot_product_attention`, which holds no scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ... import settings
from ...autograd.levels import levels_of
from ...autograd.mode import recording
from ...autograd.precision import without_casts
from ...errors import ShapeError, UnsupportedError, require, warn
from ...functional.attention.attention import fits_kernels
from ...functional.creation.creation import as_tensor
from ...functional.elementwise.pointwise import where
from ...functional.views.joining import cat
from ...functional.window.filling import pad
from ...kernels.attention.family import attention
from ...kernels.attention.flexible import flexible
from ...kernels.attention.plan import Lists, Plan
from ...operators.autocasting import cast
from ...tensors import Tensor
from ...types.devices import cpu
from ...types.dtypes import float32
from .block_mask import (
    _DEFAULT_SPARSE_BLOCK_SIZE,
    SCORES,
    BlockMask,
    _score_mod_signature,
    and_masks,
    create_block_mask,
    create_mask,
    evaluated,
    noop_mask,
    or_masks,
    sliced,
)
from .block_mask import _mask_mod_signature as _mask_mod_signature  # for annotations of programs
from .traced import traced

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask"]
__all__ += ["create_mask", "flex_attention", "noop_mask", "or_masks"]

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
    score_mod: _score_mod_signature | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Scaled dot product attention with a function of each score, and with a mask of blocks.

    Time and memory follow the blocks that are kept. Functions that are elementwise operators of their arguments, and
    of elements of tensors at these as indices, are part of the kernels on a device, which hold no scores; tensors that
    need a gradient, float64, and sides of blocks that are no multiples of 16 are not for them. Otherwise the scores of
    a `score_mod` are in memory, and all of those that a gradient needs. The gradients are those of queries, keys,
    values and of tensors that `score_mod` reads.

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
        warn(
            "return_lse is deprecated and will be removed in v2.10. Use return_aux=AuxRequest(lse=True)", FutureWarning
        )
    wanted = AuxRequest(lse=return_lse) if return_aux is None else return_aux
    factor = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else float(scale)
    query, key, value = cast({"cpu": "lower", "cuda": "lower"}, query, key, value)
    key, value = (x.to(query.dtype).expand(query.shape[0], *x.shape[1:]) for x in (key, value))
    given = (query, key, value), block_mask, score_mod, factor, wanted
    found = without_casts(_in_kernels, *given)
    out, *aux = without_casts(_computed, *given) if found is None else found
    return out if not return_lse and return_aux is None else (out, aux[0] if return_lse else AuxOutput(*aux))


def _check(
    q: Tensor, k: Tensor, v: Tensor, mask: BlockMask | None, grouped: bool, options: dict[str, Any] | None
) -> None:
    devices, ranks = [x.device for x in (q, k, v)], [x.ndim for x in (q, k, v)]
    text = "Expected query, key, and value to {}, but got {} instead"
    require(devices.count(devices[0]) == 3, ValueError, text, "have the same device type", devices)
    require(min(ranks) >= 2, ValueError, text, "all be  at least 2 dimensional", ranks)
    text = "Expect query and key/value to have the same {} but got {} and {}."
    require(q.shape[-1] == k.shape[-1], ValueError, text, "embedding dimension", q.shape[-1], k.shape[-1])
    require(ranks == [4, 4, 4], UnsupportedError, "NYI: query, key, and value must be 4D tensors")
    (batch, heads, rows, _), (others, few, keys, _) = q.shape, k.shape
    remedy = " Try setting enable_gqa=True for GQA."
    require(grouped or heads == few, ValueError, text + remedy, "number of heads", heads, few)
    words = "Expect number of query heads to be a multiple of kv heads for GQA but got Hq={} and Hkv={}."
    require(heads % max(few, 1) == 0, ValueError, words, heads, few)
    require(v.shape[:3] == k.shape[:3], ValueError, "key and value have shapes {} and {}", k.shape, v.shape)
    words = "batch size, or non-none block_mask,"
    require(batch == others or mask is not None, ValueError, text, words, batch, others)
    require(others in (1, batch), ShapeError, "Bq and Bkv must broadcast. Got Bq={} and Bkv={}", batch, others)
    backend = (options or {}).get("BACKEND", "AUTO")
    require(backend in _BACKENDS, ValueError, "Invalid BACKEND value '{}'. Must be one of {}", backend, _BACKENDS)
    if mask is not None:
        require(mask.mask_mod is not sliced, ShapeError, "Cannot use mask_mod from a sliced BlockMask")
        text = "block_mask was created for block_mask.shape={} but got q_len={} and kv_len={}. Make one of these "
        text += "lengths, or take its upper left corner with block_mask._adjust(q_len, kv_len)"
        require(mask.seq_lengths == (rows, keys), ValueError, text, mask.shape, rows, keys)
        own, place = mask.shape[:-2], mask.kv_num_blocks.device
        fits = all(mine in (1, size) for mine, size in zip(own, (batch, heads)[2 - len(own) :]))
        require(fits, ShapeError, "block_mask has batch and heads {}, query {} and {}", own, batch, heads)
        text = "Expect q/k/v and block_mask to be on the same device but got {} and {}."
        require(q.device == place, ShapeError, text, q.device, place)


class _Rows:
    """The rows of blocks of one call, of each head of each sample, and which blocks they keep."""

    def __init__(
        self, q: Tensor, k: Tensor, size: tuple[int, int], blocks: list[Any], mask_mod: Callable[..., Tensor]
    ) -> None:
        self.size, self.mask_mod, self.device, self.keys = size, mask_mod, q.device, k.shape[2]
        self.limits = (q.shape[2], k.shape[2])
        shape = (*q.shape[:2], blocks[0].shape[2])
        self.batch, self.head, self.row = (each.reshape(-1) for each in np.indices(shape))
        share, columns = q.shape[1] // k.shape[1], -(-k.shape[2] // size[1])
        self.first = (self.batch * k.shape[1] + self.head // share) * columns  # block of keys
        spread = [np.broadcast_to(x, (*shape, *x.shape[3:])) for x in blocks]
        self.blocks = [x.reshape(len(self.row), *x.shape[3:]) for x in spread]

    def alike(self, most: int) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
        """Rows that keep equally many blocks, their columns, and how many of these `mask_mod` is asked about."""
        counts, indices, full, full_indices = self.blocks
        pairs, place = np.unique(np.stack([counts, full]), axis=1, return_inverse=True)
        for number, (some, whole) in enumerate(pairs.T.tolist()):
            rows = np.flatnonzero(place.reshape(-1) == number)
            columns = np.concatenate([indices[rows, :some], full_indices[rows, :whole]], 1)
            step = min(max(most // (max(some + whole, 1) * math.prod(self.size)), 1), len(rows))
            for first in range(0, len(rows), step):
                yield rows[first : first + step], columns[first : first + step], some

    def indices(self, rows: np.ndarray, columns: np.ndarray) -> list[tuple[Tensor, str]]:
        """The batch, heads, queries and keys of the scores in some blocks, with the names of their dimensions."""
        found = [(self.batch[rows], "n"), (self.head[rows], "n")]
        for places, size, limit, names in zip((self.row[rows][:, None], columns), self.size, self.limits, ("nq", "nk")):
            positions = (places[..., None].astype(np.int64) * size + np.arange(size)).reshape(len(rows), -1)
            found.append((np.minimum(positions, limit - 1), names))  # beyond the end, where nothing is to be read
        return [(as_tensor(array, device=self.device), names) for array, names in found]

    def kept(self, rows: np.ndarray, columns: np.ndarray, some: int, indices: list[tuple[Tensor, str]]) -> Any:
        """Which scores of some blocks are kept; None for all."""
        width, kept = self.size[1], None
        if some:
            *others, (keys, names) = indices
            kept = evaluated(self.mask_mod, "nqk", *others, (keys[:, : some * width], names))
            kept = pad(kept, (0, (columns.shape[1] - some) * width), value=True) if some < columns.shape[1] else kept
        if (columns == self.keys // width).any():  # a block that keys do not fill
            inside = (columns[..., None] * width + np.arange(width) < self.keys).reshape(len(rows), 1, -1)
            there = as_tensor(inside, device=self.device)
            kept = there if kept is None else kept & there
        return kept

    def are_causal(self) -> bool:
        """True if each query keeps the keys up to its own."""
        counts, indices, full, full_indices = self.blocks
        if self.size[0] != self.size[1] or self.limits[0] != self.limits[1]:
            return False
        columns, row = np.arange(full_indices.shape[1]), self.row[:, None]
        before = np.sort(np.where(columns < full[:, None], full_indices, len(columns)))
        lower = np.where(columns < row, columns, len(columns))
        if (counts != 1).any() or (indices[:, :1] != row).any() or (before != lower).any():
            return False
        rows = np.arange(len(row))
        given = self.indices(rows, row)
        return bool((self.kept(rows, row, 1, given) == (given[2][0].unsqueeze(-1) >= given[3][0].unsqueeze(-2))).all())


def _in_kernels(
    operands: tuple[Tensor, Tensor, Tensor],
    mask: BlockMask | None,
    score_mod: Callable[..., Any] | None,
    scale: float,
    wanted: AuxRequest,
) -> list[Any] | None:
    """As `_computed`, by kernels that call the functions and pass over the mask's lists; None where these cannot."""
    q, k, v = operands
    needs = recording.enabled and any(x._needs for x in operands)
    size = (0, 0) if mask is None else mask.BLOCK_SIZE
    if q.device is cpu or (score_mod is None and mask is None) or wanted.max_scores or (wanted.lse and needs):
        return None
    steps = [side & -side for side in size if side]  # of blocks whose sides are no multiples of 16, tiles are no parts
    if q.dtype.itemsize > 4 or min(steps, default=16) < 16 or not fits_kernels(*operands) or levels_of(operands):
        return None
    if settings.check.value or not q.numel() * k.numel() * v.numel():
        return None
    functions = traced(score_mod, None if mask is None else mask.mask_mod, q.device)
    if functions is None:
        return None

    def again(*operands: Tensor) -> Tensor:
        found: Tensor = _computed(operands, mask, score_mod, scale, AuxRequest())[0]  # type: ignore[arg-type]
        return found

    by_rows = None if mask is None else Lists(*mask.lists(False))
    by_columns = Lists(*mask.lists(True)) if mask is not None and needs else None
    versions = tuple([x._version for x in functions[3]])
    plan = Plan(*functions, q.shape[1], size, by_rows, by_columns, again, versions)
    out, logs = flexible(q.unflatten(1, (k.shape[1], -1)), k.unsqueeze(2), v.unsqueeze(2), scale=scale, plan=plan)
    logs = logs.flatten(1, 2).masked_fill(logs.flatten(1, 2) == math.inf, -math.inf) if wanted.lse else None
    return [out.flatten(1, 2), logs, None]


def _computed(
    operands: tuple[Tensor, Tensor, Tensor], mask: BlockMask | None, score_mod: Any, scale: float, wanted: AuxRequest
) -> list[Any]:
    """The result, the logarithms and the largest scores; None for what is not wanted."""
    needs = recording.enabled and (score_mod is not None or any(x._needs for x in operands))
    fused = score_mod is None and not wanted.max_scores and not (wanted.lse and needs) and fits_kernels(*operands)
    (q, k, v), diagonal = operands, None
    wide = q.dtype if q.dtype.itemsize == 8 else float32
    (*lead, queries, _), keys = q.shape, k.shape[2]
    if not math.prod(lead) * queries * keys:
        none = q.new_full(q.shape[:3], -math.inf, dtype=wide)
        return [q.new_zeros((*q.shape[:3], v.shape[3])), *[none if each else None for each in wanted]]
    if mask is not None:
        size = (min(mask.BLOCK_SIZE[0], queries), min(mask.BLOCK_SIZE[1], keys))
        plan = _Rows(q, k, size, mask.on_host(), mask.mask_mod)
        diagonal = 0 if fused and plan.are_causal() else None
    if mask is None or diagonal is not None:
        size = (queries if fused else min(queries, _DEFAULT_SPARSE_BLOCK_SIZE), keys)
        ones = np.ones((1, 1, -(-queries // size[0]), 1), np.int64)
        plan = _Rows(q, k, size, [ones[..., 0] - 1, ones - 1, ones[..., 0], ones - 1], noop_mask)

    def in_blocks(x: Tensor, size: int) -> Tensor:
        return pad(x, (0, 0, 0, -x.shape[2] % size)).reshape(-1, size, x.shape[3])

    q, k, v = in_blocks(q, size[0]), in_blocks(k, size[1]), in_blocks(v, size[1])
    parts, order = [], []
    for rows, columns, some in plan.alike(SCORES << 40 if fused else SCORES):
        order.append(rows)
        here = q[as_tensor(rows, device=q.device)]
        if not columns.size:
            none = here.new_full(here.shape[:-1], -math.inf, dtype=wide)
            parts.append((here.new_zeros((*here.shape[:-1], v.shape[-1])), none, none))
            continue
        indices = plan.indices(rows, columns) if some or score_mod is not None else []
        kept = plan.kept(rows, columns, some, indices)
        places = as_tensor(plan.first[rows][:, None] + columns, device=q.device)
        there, values = (x[places].flatten(1, 2) for x in (k, v))
        if fused:
            out, logs = attention(here, there, values, kept, scale=scale, diagonal=diagonal)
            parts.append((out, logs.masked_fill(logs == math.inf, -math.inf) if wanted.lse else logs, logs))
            continue
        scores = here.to(wide) @ there.to(wide).mT * scale
        if score_mod is not None:
            scores = evaluated(score_mod, "nqk", (scores, "nqk"), *indices).to(wide)
        parts.append(_weighted(scores if kept is None else where(kept, scores, -math.inf), values, q.dtype, wanted))
    back = as_tensor(np.argsort(np.concatenate(order)), device=q.device)
    found = [cat(each)[back] if asked else None for each, asked in zip(zip(*parts), (True, *wanted))]
    return [x if x is None else x.reshape(*lead, -1, *x.shape[2:])[:, :, :queries] for x in found]


def _weighted(scores: Tensor, values: Tensor, kind: object, wanted: AuxRequest) -> tuple[Tensor, Tensor, Tensor]:
    """The values weighted by the softmax of their scores, the logarithms and the largest scores; queries that keep no
    key have zeros, and no NaN in gradients.
    """
    blind = (scores == -math.inf).all(-1, keepdim=True)
    seen = scores.masked_fill(blind, 0)
    weights = seen.softmax(-1).masked_fill(blind, 0)
    lse = seen.logsumexp(-1).masked_fill(blind.squeeze(-1), -math.inf) if wanted.lse else blind
    return (weights @ values.to(weights.dtype)).to(kind), lse, scores.amax(-1) if wanted.max_scores else lse
