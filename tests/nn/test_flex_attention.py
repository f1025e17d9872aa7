"""`flex_attention`: functions of scores, masks of blocks, gradients and devices; PyTorch's results by `-m peer`."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import tritensor
from tritensor.nn.attention import flex_attention as flex
from tritensor.nn.attention.block_mask import AT_ONCE

from ..needs import needs_triton

HEADS, ROWS, KEYS = 4, 37, 37


def tables(torch, requires_grad=False, device="cpu"):
    """What functions of scores read: a bias of each head and distance, slopes, a matrix, and documents."""
    rng = np.random.default_rng(1)
    floats = rng.standard_normal((HEADS, ROWS + KEYS)), rng.random(HEADS), rng.standard_normal((2, 1, ROWS, KEYS))
    found = [torch.from_numpy(each).to(device).requires_grad_(requires_grad) for each in floats]
    return *found, torch.from_numpy(rng.integers(0, 3, (2, ROWS)).cumsum(-1)).to(device)


def functions(torch, bias, slopes, matrix, documents):
    """Functions of scores and masks, by name."""
    window = lambda b, h, q, k: (q >= k) & (q - k < 9)  # noqa: E731
    document = lambda b, h, q, k: documents[b, q] == documents[b, k]  # noqa: E731
    return {
        "nothing": (None, None),
        "causal": (None, lambda b, h, q, k: q >= k),
        "relative": (lambda score, b, h, q, k: score + (q - k), None),
        "alibi": (lambda score, b, h, q, k: score + (k - q) * torch.exp2(-(h + 1) * 8.0 / HEADS), None),
        "capped window": (lambda score, b, h, q, k: torch.tanh(score / 2) * 2, window),
        "learned": (lambda score, b, h, q, k: score * slopes[h] + bias[h, q - k + KEYS], None),
        "learned of a batch": (lambda score, b, h, q, k: score + matrix[b][0][q][k], document),
        "documents": (None, document),
        "prefix": (None, lambda b, h, q, k: (k < 5) | (q >= k)),
        "heads": (None, lambda b, h, q, k: (q >= k) & (q - k < 3 + 9 * h)),
        "blind": (lambda score, b, h, q, k: torch.where(q < 20, score, -float("inf")), lambda b, h, q, k: k > 30 - 4 * q),
    }


NAMES = list(functions(tritensor, *tables(tritensor)))


def operands(torch, few=HEADS, requires_grad=False, device="cpu", dtype=np.float64):
    rng = np.random.default_rng(0)
    shapes = (2, HEADS, ROWS, 8), (2, few, KEYS, 8), (2, few, KEYS, 6), (2, HEADS, ROWS, 6)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    return [torch.from_numpy(each).to(device).requires_grad_(requires_grad) for each in arrays]


def block_mask(flex, name, mask, size=16, device="cpu"):
    own = {"documents": (2, None), "heads": (None, HEADS), "learned of a batch": (2, HEADS)}.get(name, (None, None))
    return mask and flex.create_block_mask(mask, *own, ROWS, KEYS, device=device, BLOCK_SIZE=size)


def dense(torch, q, k, v, score_mod, mask):
    """The same without blocks, of broadcast indices."""
    b, h, rows, keys = (
        torch.arange(size, device=q.device).reshape(-1, *(1,) * (3 - dim)) for dim, size in enumerate((2, HEADS, ROWS, KEYS))
    )
    k, v = (x.repeat_interleave(HEADS // x.shape[1], 1) for x in (k, v))
    scores = q @ k.mT / math.sqrt(8)
    if score_mod is not None:
        scores = score_mod(scores, b, h, rows, keys)
    if mask is not None:
        scores = scores.masked_fill(~mask(b, h, rows, keys), -math.inf)
    blind = (scores == -math.inf).all(-1, keepdim=True)
    seen = scores.masked_fill(blind, 0)
    logs = seen.logsumexp(-1).masked_fill(blind[..., 0], -math.inf)
    return seen.softmax(-1).masked_fill(blind, 0) @ v, logs, scores.amax(-1)


def gradients(out, weight, *tensors):
    (out * weight).sum().backward()
    return [None if each.grad is None else each.grad.cpu().numpy() for each in tensors]


def agree(found, wanted, **tolerance):
    for own, other in zip(found, wanted, strict=True):
        assert (own is None) == (other is None)
        if own is not None:
            np.testing.assert_allclose(own, other, **{"rtol": 1e-9, "atol": 1e-9, **tolerance})


@pytest.mark.parametrize("few", [HEADS, 2])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "learned of a batch"])
def test_blocks_agree_with_all_scores(name, few):
    results = []
    for blocks in (True, False):
        q, k, v, weight = operands(tritensor, few, requires_grad=True)
        learned = tables(tritensor, requires_grad=True)
        score_mod, mask = functions(tritensor, *learned)[name]
        if blocks:
            call = functools.partial(flex.flex_attention, enable_gqa=True, score_mod=score_mod)
            call = functools.partial(call, q, k, v, block_mask=block_mask(flex, name, mask))
            with tritensor.no_grad():
                quick, aux = call(return_aux=flex.AuxRequest(True, True))
            out = call()
            agree([quick], [out.detach()])
        else:
            out, *aux = dense(tritensor, q, k, v, score_mod, mask)
        logs, largest = (x.detach().numpy() for x in aux)
        results.append([out.detach().numpy(), logs, largest, *gradients(out, weight.detach(), q, k, v, *learned[:3])])
    agree(*results)


def test_a_gradient_goes_through_the_logarithms():
    results = []
    for blocks in (True, False):
        q, k, v, _ = operands(tritensor, requires_grad=True)
        mask = functions(tritensor, *tables(tritensor))["causal"][1]
        if blocks:
            own = block_mask(flex, "causal", mask)
            _, logs = deprecated(q, k, v, block_mask=own)
            with tritensor.no_grad():  # the kernels have them, too
                agree([flex.flex_attention(q, k, v, block_mask=own, return_aux=flex.AuxRequest(lse=True))[1].lse], [logs.detach()])
        else:
            logs = dense(tritensor, q, k, v, None, mask)[1]
        results.append(gradients(logs, 1, q, k))
    agree(*results)


def deprecated(*args, **options):
    flex._deprecated.cache_clear()
    with pytest.warns(FutureWarning, match="return_lse is deprecated"):
        return flex.flex_attention(*args, return_lse=True, **options)


@needs_triton
@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_devices_agree_with_the_cpu(name):
    results = []
    with tritensor.cuda.simulate():
        for device in ("cpu", "cuda"):
            q, k, v, weight = operands(tritensor, 2, True, device, np.float32)
            learned = tables(tritensor, True, device)
            learned = [x.float().detach().requires_grad_() for x in learned[:3]] + [learned[3]]
            score_mod, mask = functions(tritensor, *learned)[name]
            own = block_mask(flex, name, mask, device=device)
            out = flex.flex_attention(q, k, v, score_mod, own, enable_gqa=True)
            found = gradients(out, weight.detach(), q, k, v, *learned[:3])
            results.append([out.detach().cpu().numpy(), *found])
    agree(*results, rtol=1e-4, atol=1e-5)
