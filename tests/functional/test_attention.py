"""Attention and normalised vectors: gradients, masks and devices; values are compared with PyTorch's by `-m peer`."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import tritensor as torch
from tritensor.nn import functional as F


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_a_weighted_mean_of_values(device, causal):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 3, size, 4)) for size in (5, 6, 6))
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(4)
    if causal:
        scores = np.where(np.tri(5, 6, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    found = F.scaled_dot_product_attention(*(torch.from_numpy(each).to(device) for each in (q, k, v)), is_causal=causal)
    np.testing.assert_allclose(found.cpu().numpy(), weights @ v, rtol=1e-10)


def test_a_query_without_keys_gets_zeros_and_its_gradient_no_nan():
    q, k, v = (torch.randn(3, 2, dtype=torch.float64, requires_grad=True) for _ in range(3))
    mask = torch.tensor([[True, True, False], [False, False, False], [True, True, True]])
    for given in (mask, torch.zeros(3, 3, dtype=torch.float64).masked_fill(~mask, -math.inf)):
        out = F.scaled_dot_product_attention(q, k, v, given)
        assert out[1].tolist() == [0, 0]
        torch.autograd.gradcheck(partial(F.scaled_dot_product_attention, attn_mask=given), (q, k, v))
    with pytest.raises(RuntimeError, match="Explicit attn_mask should not be set when is_causal=True"):
        F.scaled_dot_product_attention(q, k, v, mask, is_causal=True)


def test_attention_drops_weights():
    torch.manual_seed(0)
    ones = torch.ones(64, 8)
    dropped = F.scaled_dot_product_attention(ones, ones, ones, dropout_p=0.5)
    assert dropped.std() > 0 and abs(dropped.mean().item() - 1) < 0.2


def test_normalised_vectors(device):
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], device=device)
    torch.testing.assert_close(F.normalize(x), torch.tensor([[0.6, 0.8], [0.0, 0.0]], device=device))
    torch.testing.assert_close(F.cosine_similarity(x, x), torch.tensor([1.0, 0.0], device=device))
    pair = tuple(torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    torch.autograd.gradcheck(F.cosine_similarity, pair)
