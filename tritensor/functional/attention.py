"""Attention, normalisation of vectors to length one, and distances between vectors."""

from __future__ import annotations

import math

from .. import layout
from ..dtypes import bool_
from ..errors import ShapeError
from ..operator import registry
from ..public import public
from ..tensor import Tensor
from . import ranges
from .activations import dropout
from .linear_algebra import matmul
from .normalization import softmax
from .reductions import norm


@public(package=False)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(query @ key.T * scale) @ value: for each query the values, weighted by how well their keys match it.

    Composed of other operators: scores and weights are tensors in memory, of shape (..., L, S).

    >>> import tritensor as torch
    >>> x = torch.tensor([[1., 0.], [0., 1.]])
    >>> torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    tensor([[1.0000, 0.0000],
            [0.3302, 0.6698]])

    Args:
        query, key, value: (..., L, E), (..., S, E) and (..., S, Ev).
        attn_mask: broadcasts to (..., L, S): boolean, true where a query uses a key, or floating, added to the scores.
            The result for a query that uses no key is zero.
        dropout_p: the share of weights set to zero, in every call; pass 0 outside of training.
        is_causal: query i uses the keys up to i only.
        scale: 1 / sqrt(E) unless given.

    Raises:
        ShapeError: a mask together with is_causal, or shapes that do not fit.
    """
    if is_causal and attn_mask is not None:
        raise ShapeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = matmul(query * factor, key.transpose(-2, -1))
    if is_causal:
        # every query uses the first key, so no row is all -inf, and the treatment of such rows below is not needed
        rows, cols = (ranges.arange(size, device=query.device) for size in scores.shape[-2:])
        weights = softmax(registry["where"](cols <= rows.unsqueeze(1), scores, -math.inf), -1)
    elif attn_mask is None:
        weights = softmax(scores, -1)
    else:
        if attn_mask.dtype is bool_:
            scores = registry["where"](attn_mask, scores, -math.inf)
        else:
            scores = scores + attn_mask
        # the softmax of a row of -inf only is NaN, and so would be its gradient
        seen = (scores != -math.inf).any(-1, keepdim=True)
        weights = softmax(registry["where"](seen, scores, 0), -1)
        weights = registry["where"](seen, weights, 0)
    return matmul(dropout(weights, dropout_p) if dropout_p else weights, value)


@public(package=False)
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """`input` divided by its p-norm along `dim`, or by `eps` where that is larger.

    >>> import tritensor as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / norm(input, p, dim, keepdim=True).clamp_min(eps)


@public(package=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; the two broadcast.

    >>> import tritensor as torch
    >>> torch.nn.functional.cosine_similarity(torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """
    shape = layout.broadcast_shapes(tuple(x1.shape), tuple(x2.shape))
    x1, x2 = x1.expand(shape), x2.expand(shape)
    return (normalize(x1, 2, dim, eps) * normalize(x2, 2, dim, eps)).sum(dim)
