"""Attention with several heads and the projections around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import ShapeError, warn
from ...ground.public import public
from ...tensors import Tensor
from ...types.dtypes import bool_
from ..creation.likeness import zeros_like
from ..elementwise.activations import dropout
from ..matmul.linear_algebra import linear
from ..rowwise.normalization import softmax
from ..views.joining import cat
from ..window.filling import pad
from .attention import scaled_dot_product_attention


def _require(fits: bool, words: str) -> None:
    if not fits:
        raise AssertionError(words)


def _size(x: Tensor) -> str:
    return f"torch.Size({list(x.shape)})"


def additive_mask(mask: Tensor | None, name: str, like: Tensor, other: Tensor | None, other_name: str) -> Any:
    """A mask that is added to scores: a boolean one as zeros, and -inf where it is true.

    Args:
        like: a tensor of the dtype of the scores.
        other: another mask, which has to be of the same dtype, or there is a warning.

    Raises:
        AssertionError: the mask is of integers.
    """
    if mask is None:
        return None
    floating = mask.is_floating_point()
    _require(floating or mask.dtype is bool_, f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype is not mask.dtype:
        warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.")
    return mask if floating else zeros_like(mask, dtype=like.dtype).masked_fill_(mask, -math.inf)


def _pieces(x: Tensor, sizes: Sequence[int], dim: int) -> Sequence[Tensor]:
    """`split`; a piece that is all of it is `x`, to which its gradient goes without a copy."""
    return [x] if len(sizes) == 1 else x.split(sizes, dim)


def _check_ranks(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Any, heads: int) -> bool:
    """True if there is a batch; raises where the numbers of dimensions do not fit together."""
    rank = query.ndim
    _require(rank in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor")
    first = f"For {'batched' if rank == 3 else 'unbatched'} ({rank}-D) `query`, expected"
    _require(
        key.ndim == value.ndim == rank,
        f"{first} `key` and `value` to be {rank}-D but found {key.ndim}-D and {value.ndim}-D tensors respectively",
    )
    for name, each, fits, wanted in (
        ("key_padding_mask", padding, (rank - 1,), f"`None` or {rank - 1}-D"),
        ("attn_mask", mask, (2, 3), "`None`, 2-D or 3-D"),
    ):
        if each is not None and each.ndim not in fits:
            raise AssertionError(f"{first} `{name}` to be {wanted} but found {each.ndim}-D tensor instead")
    if rank == 2 and mask is not None and mask.ndim == 3:
        shape = (heads, query.shape[0], key.shape[0])
        _require(mask.shape == shape, f"Expected `attn_mask` shape to be {shape} but got {_size(mask)}")
    return rank == 3


def _projected(inputs: Sequence[Tensor], heads: int, weights: Any, bias: Tensor | None) -> list[Tensor]:
    """Query, key and value as (..., heads, features of a head): one product for those of them that are one tensor.

    Args:
        weights: one matrix with the rows of all three, or a matrix for each.
    """
    query, key, value = inputs
    width = query.shape[-1]
    if isinstance(weights, Tensor):
        counts = [3] if query is key is value else [1, 2] if key is value else [1, 1, 1]
        matrices = _pieces(weights, [width * count for count in counts], 0)
    else:
        counts, matrices = [1, 1, 1], weights
        for name, x, matrix in zip(("query", "key", "value"), inputs, weights, strict=True):
            _require(matrix is not None, f"use_separate_proj_weight is True but {name[0]}_proj_weight is None")
            wanted = (width, x.shape[-1])
            fits = matrix.shape == wanted
            _require(fits, f"expecting {name} weights shape of {wanted}, but got {_size(matrix)}")
    shifts: Any = [None] * 3 if bias is None else _pieces(bias, [width * count for count in counts], 0)
    found: list[Tensor] = []
    for x, count, matrix, shift in zip(inputs, counts, matrices, shifts, strict=False):
        product = linear(x, matrix, shift).unflatten(-1, (count * heads, width // heads))
        found += _pieces(product, [heads] * count, 2)
    return found


def _heads(name: str, x: Tensor, given: Tensor | None, batch: int, heads: int, size: int) -> Tensor:
    """Keys or values of heads as (N, heads, S, features), those that are given if there are any."""
    if given is None:
        return x
    for dim, wanted in ((0, batch * heads), (2, size)):
        found = given.shape[dim]
        _require(found == wanted, f"expecting static_{name}.size({dim}) of {wanted}, but got {found}")
    return given.unflatten(0, (batch, heads))


def _scores_mask(mask: Tensor | None, batch: int, heads: int, rows: int, cols: int) -> Tensor | None:
    """An additive mask that broadcasts to (N, heads, L, S)."""
    if mask is None:
        return None
    wanted = (rows, cols) if mask.ndim == 2 else (batch * heads, rows, cols)
    if mask.shape != wanted:
        words = f"The shape of the {mask.ndim}D attn_mask is {_size(mask)}, but should be {wanted}."
        raise ShapeError(words, f"{rows} queries, {cols} keys, {batch} in the batch, {heads} heads")
    return mask if mask.ndim == 2 else mask.unflatten(0, (batch, heads))


def _with_padding(mask: Tensor | None, padding: Tensor, shape: tuple[int, int]) -> Tensor:
    """An additive mask that also hides the keys that are padding, by an additive mask of (N, S)."""
    for dim, wanted in enumerate(shape):
        found = padding.shape[dim]
        _require(found == wanted, f"Expected key_padded_mask.shape[{dim}] to be {wanted}, but got {found}")
    unseen = padding.unsqueeze(1).unsqueeze(1)
    return unseen if mask is None else mask + unseen


def _weights(q: Tensor, k: Tensor, mask: Tensor | None, dropout_p: float) -> Tensor:
    """The weights of the keys for each query, (N, heads, L, S)."""
    scores = q * math.sqrt(1 / q.shape[-1]) @ k.transpose(-2, -1)
    weights = softmax(scores if mask is None else scores + mask, -1)
    return dropout(weights, dropout_p) if dropout_p else weights


@public(package=False)
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    *,
    batch_first: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention with given parameters; see `nn.MultiheadAttention.forward` for masks, weights and errors.

    Args:
        query, key, value: (L, N, E), (S, N, Ek) and (S, N, Ev), or without N.
        embed_dim_to_check: E, which `num_heads` has to divide.
        in_proj_weight, in_proj_bias: (3 E, E), of the projections of query, key and value, and (3 E,).
        bias_k, bias_v: (1, 1, E), a key and a value that are added to each sequence.
        use_separate_proj_weight: take the matrices of the three next arguments, of (E, E), (E, Ek) and (E, Ev).
        static_k, static_v: (N * num_heads, S, E / num_heads) in place of the projected keys and values.
        batch_first: N is the first dimension of query, key and value. PyTorch has this in the layer alone.
    """
    batched = _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        batch_first = False
        ones = {id(each): each.unsqueeze(1) for each in (query, key, value)}  # one tensor for those that are one
        query, key, value = ones[id(query)], ones[id(key)], ones[id(value)]
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    lead, width = (0, 1) if batch_first else (1, 0), query.shape[-1]
    batch, rows, others, cols = (x.shape[dim] for x in (query, key) for dim in lead)
    key_padding_mask = additive_mask(key_padding_mask, "key_padding_mask", query, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise ShapeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    is_causal = is_causal and key_padding_mask is None and not need_weights
    attn_mask = None if is_causal else additive_mask(attn_mask, "attn_mask", query, None, "")
    fits = width == embed_dim_to_check
    _require(fits, f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    size = width // num_heads
    _require(size * num_heads == width, f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        fits, sizes = key.shape[:2] == value.shape[:2], (_size(key[..., 0]), _size(value[..., 0]))
        _require(fits, f"key's sequence and batch dims {sizes[0]} do not match value's {sizes[1]}")
    else:
        _require(key.shape == value.shape, f"key shape {_size(key)} does not match value shape {_size(value)}")
        _require(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
    if others != batch:
        words = f"shape '[{cols}, {batch * num_heads}, {size}]' is invalid for input of size {cols * others * width}"
        raise ShapeError(words, f"the query has {batch} sequences, the key has {others}")
    attn_mask = _scores_mask(attn_mask, batch, num_heads, rows, cols)
    _require(bias_v is None or bias_k is not None, "bias_v is set but bias_k is None")
    _require(bias_k is None or bias_v is not None, "bias_k is set but bias_v is None")

    order = (0, 2, 1, 3) if batch_first else (1, 2, 0, 3)
    matrices = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    parts = _projected((query, key, value), num_heads, matrices, in_proj_bias)
    q, k, v = (each.permute(order) for each in parts)
    more = 0
    if bias_k is not None and bias_v is not None:
        _require(static_k is None, "bias cannot be added to static key.")
        _require(static_v is None, "bias cannot be added to static value.")
        shape, more = (1, num_heads, 1, size), 1
        k, v = (cat([x, b.view(shape).expand(batch, -1, -1, -1)], 2) for x, b in ((k, bias_k), (v, bias_v)))
    k = _heads("k", k, static_k, batch, num_heads, size)
    v = _heads("v", v, static_v, batch, num_heads, size)
    if add_zero_attn:
        k, v = (pad(each, (0, 0, 0, 1)) for each in (k, v))
        more += 1
    if more:
        attn_mask, key_padding_mask = (
            each if each is None else pad(each, (0, more)) for each in (attn_mask, key_padding_mask)
        )
    if key_padding_mask is not None:
        attn_mask = _with_padding(attn_mask, key_padding_mask, (batch, k.shape[2]))
    dropout_p = dropout_p if training else 0.0

    weights: Tensor | None = None
    if need_weights:
        weights = _weights(q, k, attn_mask, dropout_p)
        out = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        out = scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    out = out.permute((0, 2, 1, 3) if batch_first else (2, 0, 1, 3)).flatten(2)
    out = linear(out, out_proj_weight, out_proj_bias)
    if batched:
        return out, weights
    return out.squeeze(1), None if weights is None else weights.squeeze(0)
