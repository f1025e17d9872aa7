"""Attention, normalisation of vectors to length one, and distances between vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import layout
from ..autograd import grad
from ..autograd.levels import alias
from ..autograd.mode import enable_grad, no_grad, recording
from ..autograd.tape import Gradient, Node, record
from ..dtypes import bfloat16, bool_, float16, float32, float64
from ..errors import DtypeError, ShapeError, explain
from ..kernels.matmul.attention import attend, attend_backward
from ..memory.lifted import Lifted
from ..operator import registry
from ..public import public
from ..tensor import Tensor, wrap
from . import ranges
from .activations import dropout
from .linear_algebra import matmul
from .normalization import softmax
from .properties import result_type
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

    On the CPU without dropout it is computed by blocks of scores. Elsewhere it is composed of other operators: scores
    and weights are tensors in memory, of shape (..., L, S).

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
        ShapeError: a mask together with is_causal, tensors of fewer than two dimensions, or shapes that do not fit.
    """
    if is_causal and attn_mask is not None:
        raise ShapeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ShapeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {query.ndim} "
            f"key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    factor = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    mask = None if attn_mask is None else attn_mask._data
    if not dropout_p and (attn_mask is None or not attn_mask._needs) and _in_blocks(query, key, value, mask):
        return _attention(query, key, value, attn_mask, factor, is_causal)
    return _composed(query, key, value, attn_mask, dropout_p, is_causal, factor)


def _composed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    factor: float,
) -> Tensor:
    """Attention of other operators, with scores and weights in memory."""
    # half of the factor each, as PyTorch, so that no node saves the caller's own tensors
    half = math.sqrt(abs(factor))
    scores = matmul(query * math.copysign(half, factor), (key * half).transpose(-2, -1))
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


# Fewer scores than this are left to the other operators.
_FEW = 1 << 14
_KINDS = {float16: float32, bfloat16: float32, float32: float32, float64: float64}


def _in_blocks(query: Tensor, key: Tensor, value: Tensor, mask: Any) -> bool:
    """Whether all are on the CPU, of one floating dtype and of shapes that fit without broadcasting; and large."""
    arrays = [each._data for each in (query, key, value)]
    if any(array.__class__ is not np.ndarray or array.ndim < 2 for array in arrays) or query.dtype not in _KINDS:
        return False
    if mask is not None and mask.__class__ is not np.ndarray:
        return False
    q, k, v = (array.shape for array in arrays)
    same = q[:-2] == k[:-2] == v[:-2] and q[-1] == k[-1] and k[-2] == v[-2]
    if not same or not query.dtype is key.dtype is value.dtype or math.prod(q[:-1]) * k[-2] < _FEW:
        return False
    if mask is None:
        return True
    scores = (*q[:-1], k[-2])
    fits = mask.ndim <= len(q) and all(m in (1, s) for m, s in zip(mask.shape[::-1], scores[::-1], strict=False))
    return fits and (mask.dtype == bool or mask.dtype == arrays[0].dtype)


def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, factor: float, causal: bool
) -> Tensor:
    """Attention by blocks of scores, and its node."""
    inputs = (query, key, value)
    q, k, v = (each._host_array() for each in inputs)
    result = wrap(attend(q, k, v, factor, _spread(attn_mask, q, k), causal, _KINDS[query.dtype].numpy))
    needs = [position for position, each in enumerate(inputs) if each._needs]
    if recording.enabled and needs:
        saved = (*inputs, result.detach(), attn_mask)
        versions = tuple([None if each is None else each._version for each in saved])
        backward = _Backward(factor, causal, needs)
        result._node = record(backward, tuple([inputs[position]._edge() for position in needs]), saved, versions)
        result._needs = True
    return result


def _spread(mask: Tensor | None, q: np.ndarray, k: np.ndarray) -> np.ndarray | None:
    """A mask in the scores' shape."""
    return None if mask is None else np.broadcast_to(mask._host_array(), (*q.shape[:-1], k.shape[-2]))


class _Backward(Gradient):
    """The gradients of attention, by blocks of scores, which are computed again."""

    name = "ScaledDotProductAttentionBackward0"

    def __init__(self, factor: float, causal: bool, needs: list[int]) -> None:
        self.factor, self.causal, self.needs = factor, causal, needs

    def run(self, node: Node, gradient: Any) -> list[Any]:
        """Those of the inputs that need one."""
        query, key, value, result, mask = node.saved
        if recording.enabled or isinstance(gradient._data, Lifted):  # to be differentiated again, or for each sample
            recorded, inputs = recording.enabled, [query, key, value]
            for position in self.needs:  # one tensor may be several inputs, whose gradients are apart
                inputs[position] = alias(inputs[position])
            with enable_grad():
                again = _composed(inputs[0], inputs[1], inputs[2], mask, 0.0, self.causal, self.factor)
            return list(grad(again, [inputs[at] for at in self.needs], gradient, create_graph=recorded))
        g, q, k, v, out = (each._host_array() for each in (gradient, query, key, value, result))
        kind = _KINDS[query.dtype].numpy
        found = attend_backward(g, q, k, v, out, self.factor, _spread(mask, q, k), self.causal, kind)
        return [wrap(found[position]) for position in self.needs]


@public(package=False)
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """`input` divided by its p-norm along `dim`, or by `eps` where that is larger.

    >>> import tritensor as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / norm(input, p, dim, keepdim=True).clamp_min(eps)


@public()
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; the two broadcast.

    >>> import tritensor as torch
    >>> torch.nn.functional.cosine_similarity(torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """
    common = result_type(x1, x2)
    if not common.is_floating_point:
        raise DtypeError(
            explain(
                f"expected common dtype to be floating point, yet common dtype is {common.legacy}",
                remedy="convert a tensor first, as in x1.float()",
            )
        )
    shape = layout.broadcast_shapes(tuple(x1.shape), tuple(x2.shape))
    units = []
    for x in (x1, x2):
        x = (x if x.is_floating_point() else x.to(common)).expand(shape)
        length = norm(x, 2, dim, keepdim=True).clone()
        with no_grad():  # as in PyTorch the gradient is that without the bound
            length.clamp_min_(eps)
        units.append(x / length)
    return (units[0] * units[1]).sum(dim)
