"""`flex_attention` by kernels: functions that are traced, lists of blocks, and what is left to other operators."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tritensor
from tritensor.kernels.attention import launch as attention_launch
from tritensor.nn.attention import flex_attention as flex
from tritensor.nn.attention.traced import traced

from ..needs import needs_triton
from .test_flex_attention import HEADS, NAMES, agree, block_mask, functions, gradients, operands, tables

pytestmark = needs_triton


def more(torch):
    """Functions whose operators, slopes and rounding of integers the others lack."""
    return {
        "integers": lambda s, b, h, q, k: torch.clamp(s, -1, 1) + (q - k) // 8 + (q - k) % 3 * 0.5 - (k - q) % -4,
        "operators": lambda s, b, h, q, k: (
            torch.sigmoid(s) * torch.exp(-s * s)
            + s.abs().log1p()
            + torch.minimum(s, s.sin()) / (2 + s.cos())
            - (s**2 + 1).rsqrt()
            + torch.where(torch.logical_and(q > k, ~(s > 0)), s.erf(), torch.maximum(s, s.expm1()))
        ),
    }


def in_kernels(name, few=2, size=16, dtype=tritensor.float32):
    """The names of kernels, and the results of the device and of the CPU with their gradients."""
    names, results = [], []
    launch = attention_launch.launch

    def noted(*arguments, **options):
        names.append(options["name"])
        return launch(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention_launch, "launch", noted)
        for device in ("cuda", "cpu"):
            q, k, v, weight = operands(tritensor, few, False, device, np.float32)
            kind = dtype if device == "cuda" else tritensor.float32
            q, k, v = (x.to(dtype).to(kind).requires_grad_() for x in (q, k, v))
            learned = [x.float() if x.is_floating_point() else x for x in tables(tritensor, device=device)]
            known = functions(tritensor, *learned)
            score_mod, mask = known[name] if name in known else (more(tritensor)[name], known["causal"][1])
            own = block_mask(flex, name, mask, size, device)
            out = flex.flex_attention(q, k, v, score_mod, own, enable_gqa=True)
            found = gradients(out.float(), weight, q, k, v)
            with tritensor.no_grad():
                call = functools.partial(flex.flex_attention, return_aux=flex.AuxRequest(lse=True))
                logs = call(q, k, v, score_mod, own, enable_gqa=True)[1].lse
            results.append([out.detach().cpu().float().numpy(), logs.cpu().numpy(), *found])
    return names, results


KERNELS = ["attention", "attention_queries", "attention_keys", "attention"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("few", [2, HEADS])
@pytest.mark.parametrize("name", [*NAMES[1:], "integers", "operators"])
def test_functions_are_part_of_the_kernels(name, few):
    with tritensor.cuda.simulate(compiled=False):
        names, results = in_kernels(name, few)
    assert names == KERNELS
    agree(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["capped window", "learned of a batch", "blind", "integers", "operators"])
def test_functions_are_part_of_compiled_kernels(name):
    with tritensor.cuda.simulate(compiled=True, races=True):
        names, results = in_kernels(name)
        assert names == KERNELS
        agree(*results, rtol=1e-4, atol=5e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("size", [(32, 16), (16, 48), 128])
def test_blocks_of_other_sizes_by_copied_tiles(size):
    with tritensor.cuda.simulate(compiled=True, races=True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention_launch, "_DESCRIBED_PRODUCTS", 0)
        names, results = in_kernels("heads", size=size, dtype=tritensor.float16)
    assert names == KERNELS
    agree(*results, rtol=1e-2, atol=1e-2)


@pytest.mark.thorough
def test_what_is_not_traced():
    """It is computed by other operators, and raises what the functions raise."""
    with tritensor.cuda.simulate(compiled=False):
        x = tritensor.randn(1, 1, 20, 8, device="cuda")
        learned = tritensor.ones(1, device="cuda", requires_grad=True)
        place = x.device
        assert traced(lambda s, b, h, q, k: s * learned[h], None, place) is None
        with tritensor.no_grad():
            assert traced(lambda s, b, h, q, k: s * learned[h], None, place) is not None
        for function in (
            lambda s, b, h, q, k: s if q > k else -s,
            lambda s, b, h, q, k: s + x[b, h, q, k].half(),
            lambda s, b, h, q, k: tritensor.lgamma(s),
            lambda s, b, h, q, k: s + x.double()[b, h, q, k],
            lambda s, b, h, q, k: s + x[b, h, q],
            lambda s, b, h, q, k: float(s),
            lambda s, b, h, q, k: tritensor.cat([s, s]),
        ):
            assert traced(function, None, place) is None
        assert flex.flex_attention(x, x, x, lambda s, b, h, q, k: s * learned[h]).requires_grad
        with pytest.raises(ZeroDivisionError):
            flex.flex_attention(x, x, x, lambda s, b, h, q, k: s / (1 // 0))
        table = tritensor.zeros(20, device="cuda")
        out = flex.flex_attention(x.requires_grad_(), x, x, lambda s, b, h, q, k: s + table[k])
        table += 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()


@pytest.mark.thorough
def test_gradients_of_gradients_of_traced_functions():
    results = []
    with tritensor.cuda.simulate(compiled=False):
        for device in ("cuda", "cpu"):
            q, k, v, _ = operands(tritensor, HEADS, True, device, np.float32)
            mask = block_mask(flex, "causal", lambda b, h, q, k: q >= k, device=device)
            out = flex.flex_attention(q, k, v, lambda s, b, h, q, k: tritensor.tanh(s), mask)
            (first,) = tritensor.autograd.grad(out.sin().sum(), q, create_graph=True)
            again = tritensor.autograd.grad((first**2).sum(), (q, k, v))
            results.append([x.detach().cpu().numpy() for x in (out, first, *again)])
    agree(*results, rtol=1e-4, atol=1e-5)
