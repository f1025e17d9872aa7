"""Attention, normalisation of vectors to length one, and distances between vectors."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from ...autograd.levels import levels_of
from ...autograd.mode import no_grad
from ...errors import DeviceError, DeviceMismatchError, DtypeError, RangeError, ShapeError, UnsupportedError, require
from ...ground.arguments import check_tensor, wrong_type
from ...ground.public import public
from ...kernels.attention.family import attention, attention_weights, composed, quick_attention
from ...kernels.attention.reference import batch_of
from ...kernels.matmul.family import c_name, product_shape
from ...operators.generators import generator_of
from ...tensors import Tensor
from ...types import devices, layout
from ...types.dtypes import bool_, float32
from ..creation.predicates import result_type
from ..elementwise.activations import dropout
from ..matmul.linear_algebra import matmul
from ..reduction.reductions import norm
from .attention_bias import CausalBias

# The widest keys and values that the kernels take, and of float64, of which a wider block spills 1.4 KB a thread.
_WIDEST, _WIDEST_DOUBLE = 256, 128
# Fewer scores than this, of other operands than four-dimensional ones, are left to other operators on the CPU. As in
# PyTorch these save no query and no key of the caller's, which may change then.
_FEW = 1 << 11
_SCALES = frozenset((float, type(None)))


@public(package=False, autocast={"cpu": "lower", "cuda": "lower"})
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | CausalBias | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Scaled dot product attention: softmax(query @ key.T * scale) @ value.

    It is computed by blocks of scores, on the CPU and by kernels on a device, and scores as a whole are not in memory.
    They are where they are few and not of four dimensions, a gradient is differentiated again, a mask needs a gradient,
    keys or values on a device are wider than 256 (of float64, 128), or `nn.attention.sdpa_kernel` wants that.

    >>> import tritensor as torch
    >>> x = torch.tensor([[1., 0.], [0., 1.]])
    >>> torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    tensor([[1.0000, 0.0000],
            [0.3302, 0.6698]])

    Args:
        query, key, value: (..., L, E), (..., S, E) and (..., S, Ev); what comes before is broadcast.
        attn_mask: broadcasts to (..., L, S): boolean, true where a query uses a key, or floating, added to the scores;
            or a bias of `nn.attention.bias`. The result for a query that uses no key is zero.
        dropout_p: the share of weights set to zero, in every call; pass 0 outside of training.
        is_causal: query i uses the keys up to i only.
        scale: 1 / sqrt(E) unless given.
        enable_gqa: key and value may have fewer heads (their last dimension but two) than query, which divide its
            heads; neighbours among these share them.

    Raises:
        ShapeError: a mask together with is_causal, tensors of fewer than two dimensions, shapes that do not fit, heads
            that do not divide, or a probability outside 0 to 1. DtypeError: other dtypes than one floating one, or a
            mask of another. DeviceMismatchError: they are on several devices.
    """
    name, diagonal, mask = "scaled_dot_product_attention", 0 if is_causal else None, None
    plain = attn_mask is None and not dropout_p and scale.__class__ in _SCALES and ENABLED["flash"]
    if plain:
        given = query, key, value, scale, diagonal
        quick = quick_attention(*given, False, enable_gqa)  # checked in another call
        if quick is not None:
            return quick
    if isinstance(attn_mask, CausalBias):
        require(not is_causal, ValueError, "CausalBias should not be used with causal=True")
        diagonal = attn_mask.diagonal()
    else:
        mask = attn_mask
    _check_operands(name, query, key, value, mask)
    if is_causal and mask is not None:
        raise ShapeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    require(0 <= dropout_p <= 1, ShapeError, "dropout probability has to be between 0 and 1, but got {:g}", dropout_p)
    if scale is not None and isinstance(scale, (str, bytes)):
        raise wrong_type(name, "scale", "float", scale)
    factor = 1 / math.sqrt(query._data.shape[-1] or 1) if scale is None else float(scale)
    heads = 0
    if enable_gqa:
        query, key, value, mask, heads = _grouped(query, key, value, mask)
    scores = _shape_of_scores(query._data.shape, key._data.shape, value._data.shape)
    if isinstance(attn_mask, CausalBias):
        attn_mask.check(scores)
    elif mask is not None and (found := layout.broadcast_shapes(scores, tuple(mask.shape))) != scores:
        raise ShapeError(f"output with shape {list(scores)} doesn't match the broadcast shape {list(found)}")
    drawn: dict[str, Any] = {}
    if dropout_p and levels_of((query, key, value)):  # `vmap` says how samples draw
        out = matmul(dropout(attention_weights(query, key, mask, factor, diagonal), dropout_p), value)
        return out.flatten(-4, -3) if heads else out
    if dropout_p:
        seed, offset = generator_of(query.device).draw()
        drawn = {"p": dropout_p, "seed": seed, "offset": offset}
    on_device, fits = query.device is not devices.cpu, fits_kernels(query, key, value)
    if plain and enable_gqa and (quick := quick_attention(*given, True, True)) is not None:
        return quick
    few = not on_device and query._data.ndim != 4 and math.prod(scores) < _FEW and ENABLED["math"]
    if is_fused(on_device, fits, mask is not None and mask._needs) and not few:
        simple = not (on_device or drawn or mask is not None)
        quick = quick_attention(query, key, value, scale and factor, diagonal, True) if simple else None
        if quick is not None:
            out = quick
        else:
            out = attention(query, key, value, mask, scale=factor, diagonal=diagonal, **drawn)[0]
    else:
        out = composed(query, key, value, mask, factor, diagonal, **drawn)
    return out.flatten(-4, -3) if heads else out


def fits_kernels(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """True if the kernels, or the CPU, take keys and values of these widths."""
    widest = _WIDEST_DOUBLE if query._data.dtype.itemsize == 8 else _WIDEST
    return query.device is devices.cpu or max(key._data.shape[-1], value._data.shape[-1]) <= widest


@lru_cache(4096)
def _shape_of_scores(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the scores; raises if those of queries, keys and values do not fit together."""
    scores = (*batch_of(q, k, v), *product_shape(q, (*k[:-2], k[-1], k[-2]))[-2:])
    product_shape(scores, v)
    return scores


def _check_operands(name: str, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    operands = {"query": query, "key": key, "value": value}
    for position, (each, x) in enumerate(operands.items()):
        check_tensor(name, each, position + 1, x)

    def listed(what: str, of: Any) -> str:
        told = [f"{each}.{what}: {of(x)}" for each, x in operands.items()]
        return f"{told[0]} {told[1]} and {told[2]} instead."

    q, k, v = query._data, key._data, value._data
    if not q.dtype == k.dtype == v.dtype:
        fact = "Expected query, key, and value to have the same dtype, but got "
        raise DtypeError(fact + listed("dtype", lambda x: c_name(x.dtype)), remedy="convert with .to(dtype)")
    if not query.device is key.device is value.device:
        fact = "Expected query, key, and value to have the same device type, but got "
        raise DeviceMismatchError(fact + listed("device", lambda x: x.device), remedy="move with .to(device)")
    if min(q.ndim, k.ndim, v.ndim) < 2:
        fact = "Expected query, key, and value to all be  at least 2 dimensional, but got "
        raise ShapeError(fact + listed("dim", lambda x: x.ndim))
    kind = query.dtype
    if kind.is_complex:
        raise UnsupportedError(f"\"softmax_lastdim_kernel_impl\" not implemented for '{kind.legacy}'")
    if not kind.is_floating_point:
        raise DtypeError(f"expected scalar type Float but found {query.dtype.legacy}", remedy="convert with .float()")
    if mask is None:
        return
    check_tensor(name, "attn_mask", 4, mask)
    if mask.dtype not in (bool_, float32, query.dtype):
        raise DtypeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{c_name(mask.dtype)} and  query.dtype: {c_name(query.dtype)} instead.",
            remedy="convert with .to(query.dtype)",
        )
    if mask.device is not query.device:
        raise DeviceMismatchError(
            f"Tensor on device {mask.device} is not on the expected device {query.device}!",
            remedy="move attn_mask with .to(query.device)",
        )


def _grouped(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Any, ...]:
    """Heads as a dimension of groups, whose members share keys and values; and how many heads there are."""
    least = min(query.ndim, key.ndim, value.ndim)
    if least < 3:
        raise RangeError(f"Dimension out of range (expected to be in range of [{-least}, {least - 1}], but got -3)")
    heads, few, some = (int(x.shape[-3]) for x in (query, key, value))
    for each in (few, some):
        if heads % each if each else heads:
            raise ShapeError(
                "Number of heads in key and value must divide the number of heads in query",
                f"query has {heads} heads, key {few}, value {some}",
                remedy="repeat the heads of key and value, or pass numbers that divide",
            )
    if few != some:
        key, value = key.repeat_interleave(heads // few, -3), value.repeat_interleave(heads // some, -3)
        few = heads
    if mask is not None and mask.ndim > 2:
        mask = mask.unflatten(-3, (few, -1)) if mask.shape[-3] == heads > 1 else mask.unsqueeze(-3)
    return query.unflatten(-3, (few, heads // max(few, 1))), key.unsqueeze(-3), value.unsqueeze(-3), mask, heads


@public(package=False)
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Normalises `input` along `dim`: divides by the p-norm, or by `eps` where that is larger.

    >>> import tritensor as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / norm(input, p, dim, keepdim=True).clamp_min(eps)


@public(autocast={"cuda": "float32"})
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine similarity of vectors, the cosine of their angle, along `dim`; the two broadcast.

    >>> import tritensor as torch
    >>> torch.nn.functional.cosine_similarity(torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """
    common = result_type(x1, x2)
    if not common.is_floating_point:
        raise DtypeError(
            f"expected common dtype to be floating point, yet common dtype is {common.legacy}",
            remedy="convert a tensor first, as in x1.float()",
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


ENABLED = dict.fromkeys(("cudnn", "flash", "mem_efficient", "math", "overrideable"), True)


def is_fused(on_device: bool, fits: bool, differentiates_mask: bool) -> bool:
    """True if attention is computed by blocks.

    Args:
        fits: the kernels take its sizes. differentiates_mask: of which the gradient is not computed by blocks.

    Raises:
        DeviceError: nothing that is enabled can compute it.
    """
    fused = ENABLED["flash"] or (on_device and (ENABLED["mem_efficient"] or ENABLED["cudnn"]))
    if ENABLED["math"]:
        return fused and fits
    remedy = "enable math as well, with sdpa_kernel([SDPBackend.MATH, ...])"
    if not fused:
        fact = "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both "
        raise DeviceError(fact + "the math kernel and the fused kernels.", remedy=remedy)
    if not fits or differentiates_mask:
        why = "a mask that requires a gradient" if differentiates_mask else "keys or values wider than 256"
        raise DeviceError("No available kernel. Aborting execution.", f"not by blocks: {why}", remedy=remedy)
    return True
