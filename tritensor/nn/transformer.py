"""Layers of attention and feed-forward networks, stacks of them, and the encoder and decoder made of these."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from .. import functional as F
from ..autograd.mode import recording
from ..errors import ShapeError, explain, require, warn
from ..functional.attention.multi_head import additive_mask
from ..functional.creation.creation import full
from ..tensors import Tensor
from ..types import Device, Dtype
from . import init
from .activation import GELU, ReLU
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .multi_head import MultiheadAttention
from .normalization import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer"]
__all__ += ["TransformerEncoder", "TransformerEncoderLayer"]

Activation = str | Callable[[Tensor], Tensor]


def _activation_of(activation: Activation) -> Any:
    if not isinstance(activation, str):
        return activation
    require(activation in ("relu", "gelu"), RuntimeError, "activation should be relu/gelu, not {}", activation)
    return F.relu if activation == "relu" else F.gelu


class _Layer(Module):
    """Base of the layers: attentions and a feed-forward network, each with a residual connection and a norm."""

    _attentions: tuple[str, ...] = ("self_attn",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ) -> None:
        super().__init__()
        place: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **place))
        self.linear1 = Linear(d_model, dim_feedforward, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **place)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for block in blocks:
            setattr(self, f"norm{block}", LayerNorm(d_model, layer_norm_eps, **place))
        for block in blocks:
            setattr(self, f"dropout{block}", Dropout(dropout))
        self.activation = _activation_of(activation)

    def _around(self, number: int, x: Tensor, block: Callable[..., Tensor], *arguments: Any) -> Tensor:
        """A block with its residual connection, after its norm or before it."""
        norm = getattr(self, f"norm{number}")
        if self.norm_first:
            return x + block(norm(x), *arguments)
        return norm(x + block(x, *arguments))

    def _attend(self, number: int, x: Tensor, source: Tensor, mask: Any, padding: Any, causal: bool) -> Tensor:
        attention = getattr(self, self._attentions[number - 1])
        found = attention(
            x, source, source, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=causal
        )
        return getattr(self, f"dropout{number}")(found[0])

    # PyTorch's names of the blocks, which derived layers replace
    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Any, is_causal: bool = False) -> Tensor:
        return self._attend(1, x, x, attn_mask, key_padding_mask, is_causal)

    def _ff_block(self, x: Tensor) -> Tensor:
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return getattr(self, f"dropout{len(self._attentions) + 1}")(x)


class TransformerEncoderLayer(_Layer):
    """A transformer encoder layer: self-attention and a feed-forward network of two layers (Vaswani et al. 2017).

    >>> import tritensor as torch
    >>> layer = torch.nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> layer(torch.ones(3, 5, 8)).shape
    tritensor.Size([3, 5, 8])

    Args:
        d_model: features; nhead: heads, which divide them.
        dim_feedforward: features between the two layers.
        activation: "relu", "gelu", or a function or module, between the two layers.
        batch_first: inputs are (N, L, E) and not (L, N, E).
        norm_first: the norms come before attention and feed-forward network, and not after them.

    Raises:
        RuntimeError: no such activation. ValueError, AssertionError: as `MultiheadAttention`.
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The input's shape; the arguments are those of `MultiheadAttention`."""
        src_key_padding_mask = additive_mask(src_key_padding_mask, "src_key_padding_mask", src, src_mask, "src_mask")
        src_mask = additive_mask(src_mask, "src_mask", src, None, "")
        x = self._around(1, src, self._sa_block, src_mask, src_key_padding_mask, is_causal)
        return self._around(2, x, self._ff_block)


class TransformerDecoderLayer(_Layer):
    """A transformer decoder layer: self-attention, attention to the encoder's result, and a feed-forward network.

    >>> import tritensor as torch
    >>> layer = torch.nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> layer(torch.ones(3, 5, 8), torch.ones(3, 4, 8)).shape
    tritensor.Size([3, 5, 8])

    The arguments of the constructor are those of `TransformerEncoderLayer`.
    """

    _attentions = ("self_attn", "multihead_attn")

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        return self._attend(2, x, mem, attn_mask, key_padding_mask, is_causal)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The shape of `tgt`, which attends to itself and to `memory`; masks are those of `MultiheadAttention`."""
        x = self._around(1, tgt, self._sa_block, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        x = self._around(2, x, self._mha_block, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        return self._around(3, x, self._ff_block)


class _Stack(Module):
    """Base of the stacks: copies of a layer, with its weights, and a norm."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([deepcopy(layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def _run(self, x: Tensor, *inputs: Tensor, norm: bool = True, **options: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *inputs, **options)
        return self.norm(x) if norm and self.norm is not None else x

    def _is_causal(self, mask: Tensor | None, hint: bool | None, x: Tensor) -> bool:
        """The hint, or without one whether the mask is the causal one, for which the host waits for a device."""
        if hint is not None or mask is None:
            return bool(hint)
        length = x.shape[1 if x.ndim == 3 and self.layers[0].self_attn.batch_first else 0]
        causal = Transformer.generate_square_subsequent_mask(length, mask.device, mask.dtype)
        return mask.shape == causal.shape and bool((mask == causal).all())


class TransformerEncoder(_Stack):
    """A transformer encoder: copies of an encoder layer, one after another, and a norm.

    Args:
        encoder_layer: what is copied, with its weights.
        norm: a module for the result.
        enable_nested_tensor: let padded positions be zero before the norm, in evaluation without gradients and where
            only `src_key_padding_mask` is given, as in PyTorch. A warning names what in a layer prevents it.
        mask_check: only if each sequence is padded at its end.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)
        reason = _padding_stays(encoder_layer)
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        self.use_nested_tensor = enable_nested_tensor and not reason
        if enable_nested_tensor and reason:
            warn(
                explain(
                    "enable_nested_tensor is True, but padded positions will not be set to zero in evaluation",
                    f"encoder_layer{reason}",
                    remedy="pass enable_nested_tensor=False, which gives the same results",
                )
            )

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """The input's shape; without `is_causal` the mask is compared with the causal one. See `MultiheadAttention`."""
        src_key_padding_mask = padding = additive_mask(src_key_padding_mask, "src_key_padding_mask", src, mask, "mask")
        mask = additive_mask(mask, "mask", src, None, "")
        masks = {"src_mask": mask, "src_key_padding_mask": padding, "is_causal": self._is_causal(mask, is_causal, src)}
        padded = self._padded(src, padding) if mask is None else None
        if padded is None:
            return self._run(src, **masks)
        output = self._run(src, norm=False, **masks).masked_fill(padded.unsqueeze(-1), 0)
        return output if self.norm is None else self.norm(output)

    def _padded(self, src: Tensor, padding: Tensor | None) -> Tensor | None:
        """The positions that become zero, if there are any."""
        first = self.layers[0]
        if padding is None or not self.use_nested_tensor or first.training or src.ndim != 3:
            return None
        if recording.enabled and (src.requires_grad or any(each.requires_grad for each in first.parameters())):
            return None
        padded = padding != 0
        unaligned = self.mask_check and bool((padded[:, :-1] & ~padded[:, 1:]).any())
        return None if unaligned else padded


def _padding_stays(layer: Any) -> str:
    """Names the first property of a layer for which PyTorch does not set padded positions to zero; empty if none."""
    if not isinstance(layer, TransformerEncoderLayer):
        return " is not a TransformerEncoderLayer"
    attention, activation = layer.self_attn, layer.activation
    reasons = {
        ".norm_first is True": layer.norm_first,
        ".self_attn.batch_first is False": not attention.batch_first,
        ".self_attn has keys or values of another size than queries": not attention._qkv_same_embed_dim,
        ".self_attn has no bias": attention.in_proj_bias is None,
        ".activation is neither relu nor gelu": not (
            activation in (F.relu, F.gelu) or isinstance(activation, (ReLU, GELU))
        ),
        ".norm1.eps differs from that of norm2": layer.norm1.eps != layer.norm2.eps,
        ".self_attn.num_heads is odd": attention.num_heads % 2,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


class TransformerDecoder(_Stack):
    """A transformer decoder: copies of a decoder layer, one after another, and a norm.

    Args:
        decoder_layer: what is copied, with its weights.
        norm: a module for the result.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The shape of `tgt`. Without the hint `tgt_is_causal` the mask is compared with the causal one."""
        masks: dict[str, Any] = {"tgt_mask": tgt_mask, "memory_mask": memory_mask}
        masks |= {"tgt_key_padding_mask": tgt_key_padding_mask, "memory_key_padding_mask": memory_key_padding_mask}
        causal = self._is_causal(tgt_mask, tgt_is_causal, tgt)
        return self._run(tgt, memory, **masks, tgt_is_causal=causal, memory_is_causal=memory_is_causal)


class Transformer(Module):
    """A transformer: an encoder of one sequence, and a decoder of another that attends to the encoder's result.

    >>> import tritensor as torch
    >>> model = torch.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> mask = torch.nn.Transformer.generate_square_subsequent_mask(4)
    >>> model(torch.ones(3, 5, 8), torch.ones(3, 4, 8), tgt_mask=mask).shape
    tritensor.Size([3, 4, 8])

    Args:
        custom_encoder, custom_decoder: modules in place of a `TransformerEncoder` and a `TransformerDecoder`; the other
            arguments are those of `TransformerEncoderLayer`.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ) -> None:
        super().__init__()
        options: Any = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        place: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        for name, custom, layer, stack, count in (
            ("encoder", custom_encoder, TransformerEncoderLayer, TransformerEncoder, num_encoder_layers),
            ("decoder", custom_decoder, TransformerDecoderLayer, TransformerDecoder, num_decoder_layers),
        ):
            if custom is None:
                norm = LayerNorm(d_model, layer_norm_eps, **place)
                custom = stack(layer(*options, **place), count, norm)
            setattr(self, name, custom)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The shape of `tgt`, (T, N, E), for a `src` of shape (S, N, E); N first with `batch_first`; or without N.

        Args:
            src_mask, tgt_mask, memory_mask: (S, S), (T, T) and (T, S), as for `MultiheadAttention`.
            src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask: (N, S), (N, T) and (N, S).
            src_is_causal, tgt_is_causal: hints that masks are causal ones; without them the masks are compared.

        Raises:
            ShapeError: numbers of sequences that differ, or of features that are not `d_model`.
        """
        dim = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[dim] != tgt.shape[dim]:
            fact = f"{src.shape[dim]} and {tgt.shape[dim]} sequences, as batch_first is {self.batch_first}"
            raise ShapeError("the batch number of src and tgt must be equal", fact)
        if not src.shape[-1] == tgt.shape[-1] == self.d_model:
            fact = f"{src.shape[-1]} and {tgt.shape[-1]} features, d_model is {self.d_model}"
            raise ShapeError("the feature number of src and tgt must be equal to d_model", fact)
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        masks: dict[str, Any] = {"tgt_mask": tgt_mask, "memory_mask": memory_mask}
        masks |= {"tgt_key_padding_mask": tgt_key_padding_mask, "memory_key_padding_mask": memory_key_padding_mask}
        hints: Any = {"tgt_is_causal": tgt_is_causal, "memory_is_causal": memory_is_causal}
        return self.decoder(tgt, memory, **masks, **hints)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Device = None, dtype: Dtype = None) -> Tensor:
        """The causal mask: zeros, and -inf above the diagonal."""
        return F.triu(full((sz, sz), float("-inf"), device=device, dtype=dtype), 1)
