"""x-transformers: decoders and encoders with their options, autoregressive loss, and greedy generation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import x_transformers
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper


def tokens(count: int = 2, length: int = 16) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(0, 32, (count, length)))


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: each.grad for name, each in model.named_parameters() if each.grad is not None}


def case_decoder(carry: Any) -> None:
    model = TransformerWrapper(num_tokens=32, max_seq_len=16, attn_layers=Decoder(dim=32, depth=2, heads=2))
    model = carry.module("model", model)
    found = model(tokens())
    found.logsumexp(-1).mean().backward()
    carry.check("found", found)
    carry.check("gradients", gradients(model))


def case_encoder(carry: Any) -> None:
    layers = Encoder(dim=32, depth=2, heads=2, ff_glu=True, use_rmsnorm=True, rotary_pos_emb=True, attn_flash=True)
    model = TransformerWrapper(num_tokens=32, max_seq_len=16, attn_layers=layers)
    model = carry.module("model", model).eval()
    mask = torch.arange(16) < torch.tensor([[16], [9]])
    found = model(tokens(), mask=mask, return_embeddings=True)
    carry.check("found", found[mask])


def case_options(carry: Any) -> None:
    for name, options in {
        "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 1},
        "relative": {"rel_pos_bias": True},
        "few keys": {"attn_kv_heads": 1, "attn_qk_norm": True},
        "residuals": {"sandwich_norm": True, "ff_swish": True, "ff_glu": True},
        "macaron": {"macaron": True, "shift_tokens": 1},
    }.items():
        layers = Decoder(dim=32, depth=2, heads=2, attn_dim_head=16, **options)
        model = TransformerWrapper(num_tokens=32, max_seq_len=16, attn_layers=layers)
        carry.check(name, carry.module(name, model).eval()(tokens()))


def case_training(carry: Any) -> None:
    layers = Decoder(dim=32, depth=1, heads=2, rotary_pos_emb=True)
    model = AutoregressiveWrapper(TransformerWrapper(num_tokens=32, max_seq_len=16, attn_layers=layers))
    model = carry.module("model", model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(tokens())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    carry.check("losses", losses)


def case_generate(carry: Any) -> None:
    layers = Decoder(dim=32, depth=2, heads=2, rotary_pos_emb=True)
    model = AutoregressiveWrapper(TransformerWrapper(num_tokens=32, max_seq_len=32, attn_layers=layers))
    model = carry.module("model", model).eval()
    carry.check("tokens", model.generate(tokens(2, 4), 8, temperature=0.0, cache_kv=True))
    carry.check("without cache", model.generate(tokens(2, 4), 8, temperature=0.0, cache_kv=False))


def case_sequence_to_sequence(carry: Any) -> None:
    model = x_transformers.XTransformer(
        dim=32,
        enc_num_tokens=32,
        enc_depth=1,
        enc_heads=2,
        enc_max_seq_len=16,
        dec_num_tokens=32,
        dec_depth=1,
        dec_heads=2,
        dec_max_seq_len=16,
        tie_token_emb=True,
    )
    model = carry.module("model", model)
    loss = model(tokens(), tokens().flip(1), mask=torch.ones(2, 16, dtype=torch.bool))
    loss.backward()
    carry.check("loss", loss)
    carry.check("gradients", gradients(model))
