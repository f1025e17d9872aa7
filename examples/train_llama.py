"""Pretrain a Llama 3 on many GPUs: fully sharded, in copies (HSDP), with tensor parallelism, with recomputation.

On GPUs, here 16 of two machines:

    python -m tritensor launch -n 8 --nodes 2 --node-rank 0 --master HOST:29500 examples/train_llama.py --size 8B

Before anybody rents them, what a step takes on 8 to 1,024 GPUs:

    python -m tritensor cluster --nodes 1,2,8,32,128 --card h100 --interconnect ib-400 examples/train_llama.py --size 8B

And on this machine's CPU, in two processes:

    python -m tritensor launch -n 2 examples/train_llama.py --size tiny --steps 20
"""

from __future__ import annotations

import argparse
import time

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.device_mesh import DeviceMesh, init_device_mesh
from tritensor.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from tritensor.distributed.tensor import Replicate, Shard
from tritensor.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from tritensor.nn import functional as F
from tritensor.utils.checkpoint import checkpoint

# layers, features, heads, heads of keys and values, features of the MLP, words, tokens of a sequence
SIZES = {
    "tiny": (2, 64, 4, 2, 128, 256, 64),
    "1B": (16, 2048, 32, 8, 8192, 128256, 8192),
    "8B": (32, 4096, 32, 8, 14336, 128256, 8192),
    "70B": (80, 8192, 64, 8, 28672, 128256, 8192),
}


class Attention(nn.Module):
    """Causal attention with fewer heads of keys and values than of queries, and rotated positions."""

    def __init__(self, dim: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.width = dim // heads
        self.wq, self.wo = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.wk, self.wv = (nn.Linear(dim, kv_heads * self.width, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        """(batch, sequence, features) to the same."""
        q, k, v = (each(x).unflatten(-1, (-1, self.width)).transpose(1, 2) for each in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(rotated(q, turns), rotated(k, turns), v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).flatten(2))


def rotated(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Rotary positions: pairs of features are turned by angles that grow along the sequence."""
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.w1, self.w3 = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, sequence, features) to the same."""
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    """Attention and MLP, each added to what comes in."""

    def __init__(self, dim: int, heads: int, kv_heads: int, hidden: int, recompute: bool) -> None:
        super().__init__()
        self.attention, self.feed_forward = Attention(dim, heads, kv_heads), FeedForward(dim, hidden)
        self.attention_norm, self.ffn_norm = nn.RMSNorm(dim, eps=1e-5), nn.RMSNorm(dim, eps=1e-5)
        self.recompute = recompute

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        """(batch, sequence, features) to the same."""
        return checkpoint(self.compute, x, turns, use_reentrant=False) if self.recompute else self.compute(x, turns)

    def compute(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        """What is computed again in the backward pass with --recompute."""
        x = x + self.attention(self.attention_norm(x), turns)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    """Words in, logits of the next words out."""

    def __init__(self, size: str, recompute: bool) -> None:
        super().__init__()
        layers, dim, heads, kv_heads, hidden, words, self.length = SIZES[size]
        self.width = dim // heads
        self.embedding = nn.Embedding(words, dim)
        self.layers = nn.ModuleList(Block(dim, heads, kv_heads, hidden, recompute) for _ in range(layers))
        self.norm, self.output = nn.RMSNorm(dim, eps=1e-5), nn.Linear(dim, words, bias=False)
        self.register_buffer("turns", torch.empty(self.length, self.width // 2, dtype=torch.complex64))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(batch, sequence) to (batch, sequence, words)."""
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.turns)
        return self.output(self.norm(x))

    def initialize(self) -> None:
        """First values, of the parts that this rank has."""
        with torch.no_grad():
            for p in self.parameters():
                own = p.to_local() if hasattr(p, "to_local") else p
                own.fill_(1.0) if p.ndim == 1 else own.normal_(0.0, 0.02)
            speeds = 500000.0 ** (-torch.arange(0, self.width, 2, device=self.turns.device) / self.width)
            angles = torch.outer(torch.arange(self.length, device=self.turns.device), speeds)
            self.turns.copy_(torch.polar(torch.ones_like(angles), angles))


def divide(model: Llama, mesh: DeviceMesh) -> None:
    """Tensor parallelism, with the sequence divided between blocks."""
    whole, rows = Replicate(), Shard(1)
    block = {
        "attention_norm": SequenceParallel(),
        "ffn_norm": SequenceParallel(),
        "attention": PrepareModuleInput(input_layouts=(rows, None), desired_input_layouts=(whole, None)),
        "feed_forward": PrepareModuleInput(input_layouts=(rows,), desired_input_layouts=(whole,)),
        **{f"attention.w{name}": ColwiseParallel() for name in "qkv"},
        "attention.wo": RowwiseParallel(output_layouts=rows),
        "feed_forward.w1": ColwiseParallel(),
        "feed_forward.w3": ColwiseParallel(),
        "feed_forward.w2": RowwiseParallel(output_layouts=rows),
    }
    for layer in model.layers:
        parallelize_module(layer, mesh, block)
    ends = {
        "embedding": RowwiseParallel(input_layouts=whole, output_layouts=rows),
        "norm": SequenceParallel(),
        "output": ColwiseParallel(input_layouts=rows, output_layouts=whole),
    }
    parallelize_module(model, mesh, ends)


def main() -> None:
    """Train on random words."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(SIZES), default="tiny")
    parser.add_argument("--batch", type=int, default=1, help="sequences of each rank at a time")
    parser.add_argument("--accumulate", type=int, default=1, help="times that a step adds gradients")
    parser.add_argument("--tp", type=int, default=1, help="ranks that divide each layer")
    parser.add_argument("--copies", type=int, default=1, help="copies of the model (HSDP)")
    parser.add_argument("--recompute", type=int, default=0, help="1: blocks are computed again in the backward pass")
    parser.add_argument("--compile", type=int, default=0, help="1: blocks are compiled")
    parser.add_argument("--steps", type=int, default=10)
    given = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    if device == "cuda":
        torch.cuda.set_device(dist.get_node_local_rank(0) % torch.cuda.device_count())
    shape = (given.copies, dist.get_world_size() // given.tp // given.copies, given.tp)
    mesh = init_device_mesh(device, shape, mesh_dim_names=("copies", "parts", "tp"))
    with torch.device("meta"):
        model = Llama(given.size, bool(given.recompute))
    if given.tp > 1:
        divide(model, mesh["tp"])
    data = mesh["copies", "parts"] if given.copies > 1 else mesh["parts"]
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        if given.compile:
            layer.compute = torch.compile(layer.compute)
        fully_shard(layer, mesh=data, mp_policy=policy)
    fully_shard(model, mesh=data, mp_policy=policy)
    model.to_empty(device=device)
    torch.manual_seed(dist.get_rank() // given.tp)
    model.initialize()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    words = model.output.out_features

    for step in range(given.steps):
        start = time.perf_counter()
        for micro in range(given.accumulate):
            tokens = torch.randint(0, words, (given.batch, model.length + 1), device=device)
            model.set_requires_gradient_sync(micro == given.accumulate - 1)
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()) / given.accumulate
            del logits
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item() * given.accumulate:.4f}, {time.perf_counter() - start:.2f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
