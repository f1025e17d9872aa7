"""Attention with several heads as a layer."""

from __future__ import annotations

from typing import Any

from ..errors import explain
from ..functional.attention.multi_head import multi_head_attention_forward
from ..tensors import Tensor
from ..types import Device, Dtype
from . import init
from .layer import Layer, add_parameters, declared
from .linear import NonDynamicallyQuantizableLinear

__all__ = ["MultiheadAttention"]


# What the function takes after query, key and value, up to the last projection.
_PASSED = ["embed_dim", "num_heads", "in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "add_zero_attn", "dropout"]


@declared(shown=())
class MultiheadAttention(Layer):
    """Multi-head attention: for each query the values, weighted by how well their keys match it (Vaswani et al. 2017).

    Queries, keys and values are projected; each head computes softmax(q @ k.T / sqrt(its features)) @ v with its share
    of the features, and the heads' results side by side are projected once more.

    >>> import tritensor as torch
    >>> attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.ones(3, 5, 8)
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape
    (tritensor.Size([3, 5, 8]), tritensor.Size([3, 5, 5]))

    Args:
        embed_dim: features of queries and results, shared out to the heads.
        dropout: the share of weights set to zero in training.
        bias: of the projections.
        add_bias_kv: add a learned key and value to each sequence.
        add_zero_attn: add a key and a value of zeros.
        kdim, vdim: features of keys and values, `embed_dim` unless given.
        batch_first: inputs are (N, L, E) and not (L, N, E).

    Raises:
        ValueError: sizes that are not positive. AssertionError: heads that do not divide the features.
    """

    embed_dim: int
    num_heads: int
    dropout: float = 0.0
    bias: bool = True
    add_bias_kv: bool = False
    add_zero_attn: bool = False
    kdim: int | None = None
    vdim: int | None = None
    batch_first: bool = False
    device: Any = None
    dtype: Any = None
    _init_only = ("bias", "add_bias_kv", "device", "dtype")

    def _prepare(self, bias: bool, add_bias_kv: bool, device: Device, dtype: Dtype) -> None:
        size, heads = self.embed_dim, self.num_heads
        if size <= 0 or heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={size} and num_heads={heads} instead"
            )
        if size % heads:
            words = "embed_dim must be divisible by num_heads"
            raise AssertionError(explain(words, f"{size} features cannot be shared out to {heads} heads"))
        self.head_dim = size // heads
        self.kdim = size if self.kdim is None else self.kdim
        self.vdim = size if self.vdim is None else self.vdim
        self._qkv_same_embed_dim = one = self.kdim == self.vdim == size
        shapes: Any = {
            f"{name}_proj_weight": None if one else (size, features)
            for name, features in (("q", size), ("k", self.kdim), ("v", self.vdim))
        }
        packed: Any = {"in_proj_weight": (3 * size, size) if one else None}
        shapes = packed | shapes if one else shapes | packed  # in PyTorch's order
        add_parameters(self, device, dtype, **shapes, in_proj_bias=(3 * size,) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(size, size, bias, device, dtype)
        more = (1, 1, size) if add_bias_kv else None
        add_parameters(self, device, dtype, bias_k=more, bias_v=more)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name, parameter in self._parameters.items():
            if parameter is not None and name.endswith("weight"):
                init.xavier_uniform_(parameter)
            elif parameter is not None and name != "in_proj_bias":
                init.xavier_normal_(parameter)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The result and the weights, None without `need_weights`.

        Args:
            query, key, value: (L, N, E), (S, N, kdim) and (S, N, vdim), N first with `batch_first`; or without N. If
                all three are one tensor, or key and value are, they are projected by one product.
            key_padding_mask: (N, S) or (S,), boolean, true where a key is not used, or floating, added to the scores.
            need_weights: False is faster, and needs no memory for the weights.
            attn_mask: (L, S) or (N * num_heads, L, S), as `key_padding_mask`.
            average_attn_weights: the mean of the heads' weights, (N, L, S), and not (N, num_heads, L, S).
            is_causal: the hint that `attn_mask` is the causal one, with which it is not read.

        Raises:
            AssertionError, ShapeError: shapes that do not fit.
        """
        passed: Any = [getattr(self, name) for name in _PASSED]
        passed += [self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask]
        passed += [not self._qkv_same_embed_dim, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        options: Any = {"average_attn_weights": average_attn_weights, "is_causal": is_causal}
        return multi_head_attention_forward(query, key, value, *passed, **options, batch_first=self.batch_first)
