"""The models of published training runs: Llama and MPT, written as their sources write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F


@dataclass(frozen=True)
class Shape:
    """The sizes of a model, as `runs.json` gives them."""

    layers: int
    dim: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    sequence: int
    tied: bool = False

    @classmethod
    def of(cls, model: dict[str, Any]) -> Shape:
        """The sizes in the "model" of a run."""
        return cls(**{name: model[name] for name in cls.__dataclass_fields__})


def draw(param: Any, std: float, whole: bool) -> None:
    """Normal random numbers for a parameter.

    Args:
        whole: of a divided one draw all, and keep a part: the same numbers for any number of ranks.
    """
    nn.init.normal_(param.to_local() if not whole and hasattr(param, "to_local") else param, 0.0, std)


class Block(nn.Module):
    """One block: subclasses have `compute`, this says whether values in between are kept.

    Attributes:
        around: called with `compute` and its arguments: a checkpoint, to compute values again for the backward pass.
    """

    around: Callable[..., torch.Tensor] | None = None

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        """The block's output, by way of `around` if there is one."""
        return self.compute(*args) if self.around is None else self.around(self.compute, *args)

    compute: Callable[..., torch.Tensor]


# ---- Llama -----------------------------------------------------------------------------------------------------------


def rotations(head: int, length: int, theta: float = 500000.0) -> torch.Tensor:
    """The complex rotations of rotary embeddings: a row for each position, a column for each pair of features."""
    frequencies = 1.0 / theta ** (torch.arange(0, head, 2)[: head // 2].float() / head)
    angles = torch.outer(torch.arange(length).float(), frequencies)
    return torch.polar(torch.ones_like(angles), angles)


def rotated(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Queries or keys of (batch, length, heads, features), turned: pairs of features of a float32 copy are complex."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    turned = pairs * turns[: x.shape[1]].view(1, x.shape[1], 1, -1)
    return torch.view_as_real(turned).flatten(3).type_as(x)


def repeated(x: torch.Tensor, times: int) -> torch.Tensor:
    """Heads of keys or values, each as often as there are heads of queries for it."""
    if times == 1:
        return x
    batch, length, heads, features = x.shape
    wide = x[:, :, :, None, :].expand(batch, length, heads, times, features)
    return wide.reshape(batch, length, heads * times, features)


def gated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """What is in between the products of SwiGLU."""
    return F.silu(x) * y


class Attention(nn.Module):
    """Causal attention with fewer heads of keys and values than of queries."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.rotated = rotated
        self.head = shape.dim // shape.heads
        self.times = shape.heads // shape.kv_heads
        self.wq = nn.Linear(shape.dim, shape.heads * self.head, bias=False)
        self.wk = nn.Linear(shape.dim, shape.kv_heads * self.head, bias=False)
        self.wv = nn.Linear(shape.dim, shape.kv_heads * self.head, bias=False)
        self.wo = nn.Linear(shape.heads * self.head, shape.dim, bias=False)

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        """Attention of (batch, length, features); -1 is the number of heads, which tensor parallelism divides."""
        batch, length, _ = x.shape
        q, k, v = (each(x).view(batch, length, -1, self.head) for each in (self.wq, self.wk, self.wv))
        q, k = self.rotated(q, turns), self.rotated(k, turns)
        k, v = repeated(k, self.times), repeated(v, self.times)
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gated = gated
        self.w1 = nn.Linear(shape.dim, shape.ffn, bias=False)
        self.w2 = nn.Linear(shape.ffn, shape.dim, bias=False)
        self.w3 = nn.Linear(shape.dim, shape.ffn, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Two products to the wide side, and one back."""
        return self.w2(self.gated(self.w1(x), self.w3(x)))


class LlamaBlock(Block):
    """Attention and SwiGLU, each behind a norm and added to its input."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.RMSNorm(shape.dim, eps=1e-5), Attention(shape)
        self.ffn_norm, self.feed_forward = nn.RMSNorm(shape.dim, eps=1e-5), FeedForward(shape)

    def compute(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        x = x + self.attention(self.attention_norm(x), turns)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    """Llama 2 and 3, and what was made after them.

    With `tied` the output layer's weight is that of the embedding; `tie` makes it so again after parameters were
    replaced.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.tok_embeddings = nn.Embedding(shape.vocab, shape.dim)
        self.register_buffer("turns", rotations(shape.dim // shape.heads, shape.sequence), persistent=False)
        self.layers = nn.ModuleList([LlamaBlock(shape) for _ in range(shape.layers)])
        self.norm = nn.RMSNorm(shape.dim, eps=1e-5)
        self.output = nn.Linear(shape.dim, shape.vocab, bias=False)
        self.tie()

    def tie(self) -> None:
        """Let the output layer have the embedding's weight, if the model is such a one."""
        if self.shape.tied:
            self.output.weight = self.tok_embeddings.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits of (batch, length, words)."""
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x, self.turns)
        return self.output(self.norm(x))

    def initialize(self, whole: bool = False) -> None:
        """Give all parameters and buffers their first values; `whole` as of `draw`."""
        self.turns.copy_(rotations(self.shape.dim // self.shape.heads, self.shape.sequence))
        for module in self.modules():
            if isinstance(module, nn.RMSNorm):
                nn.init.ones_(module.weight)
        draw(self.tok_embeddings.weight, 0.02, whole)
        scale = 0.02 / (2 * self.shape.layers) ** 0.5
        for layer in self.layers:
            attention, feed_forward = layer.attention, layer.feed_forward
            for linear in (attention.wq, attention.wk, attention.wv, feed_forward.w1, feed_forward.w3):
                draw(linear.weight, 0.02, whole)
            for linear in (attention.wo, feed_forward.w2):
                draw(linear.weight, scale, whole)
        if not self.shape.tied:
            draw(self.output.weight, self.shape.dim**-0.5, whole)


# ---- MPT -------------------------------------------------------------------------------------------------------------


class MPTBlock(Block):
    """Attention from one product for queries, keys and values, and a GELU of four times the features."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.norm_1, self.norm_2 = nn.LayerNorm(shape.dim), nn.LayerNorm(shape.dim)
        self.Wqkv, self.out_proj = nn.Linear(shape.dim, 3 * shape.dim), nn.Linear(shape.dim, shape.dim)
        self.up_proj, self.down_proj = nn.Linear(shape.dim, shape.ffn), nn.Linear(shape.ffn, shape.dim)

    def compute(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        batch, length, features = x.shape
        parts = self.Wqkv(self.norm_1(x)).chunk(3, dim=-1)
        q, k, v = (each.view(batch, length, self.heads, -1).transpose(1, 2) for each in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out_proj(y.transpose(1, 2).reshape(batch, length, features))
        return x + self.down_proj(F.gelu(self.up_proj(self.norm_2(x))))


class MPT(nn.Module):
    """MPT of MosaicML's benchmarks: learned positions, biases everywhere, and the embedding as output layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.wte, self.wpe = nn.Embedding(shape.vocab, shape.dim), nn.Embedding(shape.sequence, shape.dim)
        self.layers = nn.ModuleList([MPTBlock(shape) for _ in range(shape.layers)])
        self.norm_f = nn.LayerNorm(shape.dim)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits of (batch, length, words)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.wte(tokens) + self.wpe(places)
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm_f(x), self.wte.weight)

    def initialize(self, whole: bool = False) -> None:
        """Give all parameters their first values; `whole` as of `draw`."""
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                nn.init.ones_(module.weight)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                draw(module.weight, 0.02, whole)
            elif isinstance(module, nn.Linear):
                draw(module.weight, 0.02, whole)
                nn.init.zeros_(module.bias)


def model_of(model: dict[str, Any]) -> Llama | MPT:
    """The model of a run; made within `torch.device("meta")` it has no memory yet."""
    shape = Shape.of(model)
    return MPT(shape) if model["positions"] == "learned" else Llama(shape)
