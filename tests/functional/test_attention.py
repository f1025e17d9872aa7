"""Attention and normalised vectors: gradients, masks and devices; values are compared with PyTorch's by `-m peer`."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import tritensor as torch
from tritensor.functional import attention
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


@pytest.mark.parametrize("given", ["nothing", "causal", "boolean", "floating"])
@pytest.mark.parametrize(("lead", "rows", "cols"), [((2, 3), 120, 70), ((), 1500, 700)])
def test_attention_by_blocks_agrees_with_other_operators(given, lead, rows, cols):
    """A block is some heads, or some queries of one head."""
    rng = np.random.default_rng(0)
    shapes = ((*lead, rows, 8), (*lead, cols, 8), (*lead, cols, 5), (*lead, rows, 5))
    q, k, v, grad = (torch.from_numpy(rng.standard_normal(shape)) for shape in shapes)
    mask = None
    if given == "boolean":
        mask = torch.from_numpy(rng.random((rows, cols)) < 0.5)
        mask[3] = False
    elif given == "floating":
        mask = torch.from_numpy(rng.standard_normal((rows, cols)))
        mask[3] = -math.inf
    found = []
    for way in (F.scaled_dot_product_attention, composed):
        inputs = [each.clone().requires_grad_() for each in (q, k, v)]
        out = way(*inputs, mask, is_causal=given == "causal")
        assert ("Attention" in str(out.grad_fn)) == (way is not composed)
        out.backward(grad)
        found.append([out.detach(), *(each.grad for each in inputs)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def composed(q, k, v, mask, is_causal):
    return attention._composed(q, k, v, mask, 0.0, is_causal, 1 / math.sqrt(q.shape[-1]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_attention_does_not_depend_on_the_number_of_threads(dtype):
    rng = np.random.default_rng(0)
    x = [torch.from_numpy(rng.standard_normal((5, 300, 16))).to(dtype).requires_grad_() for _ in range(3)]
    found, before = [], torch.get_num_threads()
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            out = F.scaled_dot_product_attention(*x)
            assert out.dtype is dtype
            parts = (out, *torch.autograd.grad(out.float().square().sum(), x))
            found.append([part.detach().float().numpy().tobytes() for part in parts])
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]
    exact = F.scaled_dot_product_attention(*(each.detach().double() for each in x))
    torch.testing.assert_close(out.detach().double(), exact, rtol=2e-2, atol=2e-3)


def test_attention_by_blocks_is_differentiated_twice_and_notices_changes(monkeypatch):
    monkeypatch.setattr(attention, "_FEW", 0)
    q, k, v = (torch.randn(3, 2, dtype=torch.float64, requires_grad=True) for _ in range(3))
    torch.autograd.gradcheck(F.scaled_dot_product_attention, (q, k, v))
    torch.autograd.gradgradcheck(F.scaled_dot_product_attention, (q, k, v))
    mask = torch.ones(3, 3, dtype=torch.bool)
    out = F.scaled_dot_product_attention(q, k.detach(), v, mask)
    mask[0, 0] = False
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


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


@pytest.mark.parametrize(
    ("one", "other", "dtype"),
    [
        (torch.int64, torch.float32, torch.float32),
        (torch.float16, torch.int64, torch.float16),
        (torch.float16, torch.float64, torch.float64),
        (torch.float16, torch.bfloat16, torch.float32),
    ],
)
def test_cosines_of_two_dtypes(device, one, other, dtype):
    x, y = torch.tensor([3, 4], dtype=one, device=device), torch.tensor([[4, 3], [3, -4]], dtype=other, device=device)
    found = F.cosine_similarity(x, y)
    assert found.dtype is dtype
    torch.testing.assert_close(found.cpu().double(), torch.tensor([0.96, -0.28]).double(), rtol=3e-3, atol=1e-3)


def test_cosines_at_the_edges(device):
    large = torch.tensor([[1e30, -2.0]], device=device)
    assert F.cosine_similarity(large, torch.ones(1, 2, device=device), 0).tolist() == [1, -1]
    tiny = torch.tensor([1e-9, 0.0], device=device, requires_grad=True)
    F.cosine_similarity(tiny, torch.tensor([3.0, 4.0], device=device), 0).backward()
    # the gradient passes the bound of the length, as PyTorch's does
    np.testing.assert_allclose(tiny.grad.tolist(), [5.4e7, 8e7], rtol=1e-5)
    for dtype, words in ((torch.int64, "Long"), (torch.bool, "Bool")):
        x = torch.ones(2, dtype=dtype, device=device)
        with pytest.raises(RuntimeError, match=f"expected common dtype to be floating point, yet .* is {words}"):
            F.cosine_similarity(x, x, 0)


@pytest.mark.parametrize("shape", [(3, 200), (2, 200, 3), (2, 2, 200, 200)])
def test_a_mask_that_does_not_fit_many_scores_is_refused(shape):
    x = torch.randn(2, 200, 8)
    if len(shape) == 4:
        assert F.scaled_dot_product_attention(x, x, x, torch.ones(shape, dtype=torch.bool)).shape == (2, 2, 200, 8)
        return
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        F.scaled_dot_product_attention(x, x, x, torch.ones(shape, dtype=torch.bool))


def test_a_tensor_that_is_all_three_inputs_has_one_gradient_at_each_order() -> None:
    """Its second derivatives were three times as large where attention is computed in blocks."""
    x = torch.randn(2, 128, 8, dtype=torch.float64, requires_grad=True)
    out = F.scaled_dot_product_attention(x, x, x).square().sum()
    (plain,) = torch.autograd.grad(out, x, retain_graph=True)
    (recorded,) = torch.autograd.grad(out, x, create_graph=True)
    np.testing.assert_allclose(recorded.detach().numpy(), plain.numpy(), rtol=1e-9, atol=1e-9)
