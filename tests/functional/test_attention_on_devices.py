"""The kernels of attention on a simulated device against the CPU's blocks: small tiles, so that all loops run."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tests.needs import needs_triton
from tritensor import settings
from tritensor.kernels.attention import launch as attention_launch
from tritensor.nn import functional as F
from tritensor.nn.attention import SDPBackend, sdpa_kernel

pytestmark = needs_triton
slow = pytest.mark.slow

# shapes of queries, keys and values; options
CASES: list[tuple[Any, ...]] = [
    ((20, 20), (35, 20), (35, 33), {}),
    ((33, 16), (52, 16), (52, 16), {"is_causal": True}),
    ((52, 16), (33, 16), (33, 16), {"is_causal": True}),
    ((20, 8), (50, 8), (50, 8), {"attn_mask": ("lower right", 20, 50)}),
    ((50, 8), (20, 8), (20, 8), {"attn_mask": ("lower right", 50, 20)}),
    ((4, 18, 16), (2, 20, 16), (2, 20, 16), {"enable_gqa": True, "is_causal": True}),
    ((4, 3, 16), (2, 20, 16), (2, 20, 16), {"enable_gqa": True, "attn_mask": (bool, 1, 20), "dropout_p": 0.4}),
    ((4, 18, 16), (2, 20, 16), (2, 20, 16), {"enable_gqa": True, "scale": -0.3}),
    ((2, 1, 5, 16), (2, 1, 35, 16), (2, 1, 35, 16), {"attn_mask": (bool, 2, 1, 5, 35)}),
    ((2, 2, 5, 16), (2, 2, 18, 16), (2, 2, 18, 16), {"attn_mask": (bool, 2, 1, 1, 18)}),
    ((2, 2, 18, 4), (1, 2, 7, 4), (2, 1, 7, 4), {"attn_mask": (float, 2, 18, 1), "scale": -0.5}),
    ((20, 16), (35, 16), (35, 16), {"dropout_p": 0.4}),
    ((2, 18, 16), (1, 18, 16), (1, 18, 16), {"dropout_p": 0.4, "is_causal": True, "enable_gqa": True}),
]


def drawn(case: Any, dtype: Any, device: str) -> list[Any]:
    """The result and its gradients."""
    *shapes, options = case
    rng = np.random.default_rng(0)
    operands = [torch.from_numpy(rng.standard_normal(shape)).to(dtype).to(device).requires_grad_() for shape in shapes]
    kind, *shape = options.get("attn_mask", (None,))
    mask: Any = None
    if kind is bool:
        mask = torch.from_numpy(rng.random(shape) < 0.6).to(device)
        mask[..., :1, :3] = False if len(shape) > 2 else mask[..., :1, :3]
    elif kind is float:
        mask = torch.from_numpy(rng.standard_normal(shape)).to(dtype).to(device)
        mask[..., 2:3, :] = -torch.inf
    elif kind:
        with np.errstate(all="ignore"):
            mask = torch.nn.attention.bias.causal_lower_right(*shape)
    torch.manual_seed(0)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        out = F.scaled_dot_product_attention(*operands, **{**options, "attn_mask": mask})
    grads = torch.autograd.grad(out.float().sin().sum(), operands)
    return [each.detach().cpu() for each in (out, *grads)]


@pytest.mark.sampled(1)
@pytest.mark.filterwarnings("ignore:Lower right causal bias")
@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float16, marks=slow), pytest.param(torch.bfloat16, marks=slow)]
)
@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_kernels_agree_with_blocks_on_the_cpu(case: Any, dtype: Any) -> None:
    wanted = drawn(case, dtype, "cpu")
    with torch.cuda.simulate(devices=1), settings.block(16):
        found = drawn(case, dtype, "cuda")
    rtol = {torch.float32: 2e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}[dtype]
    for mine, other in zip(found, wanted, strict=True):
        assert mine.stride() == other.stride()
        scale = float(other.double().abs().max())
        torch.testing.assert_close(mine.double(), other.double(), rtol=rtol, atol=rtol * scale)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "v_width", "causal"), list(product((16, 48, 64, 96, 128, 256), (64, 17), (False, True)))
)
def test_every_width_of_heads(width: int, v_width: int, causal: bool) -> None:
    case = ((2, 50, width), (2, 75, width), (2, 75, v_width), {"is_causal": causal})
    wanted = drawn(case, torch.float32, "cpu")
    with torch.cuda.simulate(devices=1), settings.block(32):
        found = drawn(case, torch.float32, "cuda")
    for mine, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, other, rtol=2e-5, atol=2e-5)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("given", ["causal", "mask", "dropout", "grouped"])
def test_nothing_of_the_scores_size_is_made(given: str) -> None:
    """2 x 256 x 256 scores of float32 are 512 KB, operands and results 32 KB each; a mask is read as it is."""
    with torch.cuda.simulate(devices=1):
        heads = 1 if given == "grouped" else 2
        q, k, v = (torch.randn(number, 256, 16, device="cuda").requires_grad_() for number in (2, heads, heads))
        mask = torch.ones(1, 256, dtype=torch.bool, device="cuda") if given == "mask" else None
        options = {"is_causal": given == "causal", "dropout_p": 0.1 * (given == "dropout"), "enable_gqa": heads == 1}
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        out = F.scaled_dot_product_attention(q, k, v, mask, **options)
        out.backward(torch.ones_like(out))
        used = torch.cuda.max_memory_allocated() - before
    assert used <= 8 * 2 * 256 * 16 * 4 <= 2 * 256 * 256 * 4 / 2


def test_backward_is_two_kernels_and_its_bits_are_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    launch = attention_launch.launch

    def noted(kernel: Any, *arguments: Any, **options: Any) -> Any:
        names.append(options["name"])
        return launch(kernel, *arguments, **options)

    monkeypatch.setattr(attention_launch, "launch", noted)
    with torch.cuda.simulate(devices=1), settings.block(16):
        first, second = (drawn(CASES[-1], torch.float32, "cuda") for _ in range(2))
    assert names == ["attention", "attention_queries", "attention_keys"] * 2
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_a_captured_graph_draws_new_weights_at_each_replay() -> None:
    with torch.cuda.simulate(devices=1):
        torch.manual_seed(0)
        x = torch.randn(2, 20, 8, device="cuda")
        F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
        results = []
        for _ in range(2):
            graph.replay()
            results.append(out.cpu())
        assert not torch.equal(*results)
        torch.manual_seed(0)
        F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
        graph.replay()
        again = out.cpu()
        torch.manual_seed(0)
        F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
        torch.testing.assert_close(again, F.scaled_dot_product_attention(x, x, x, dropout_p=0.5).cpu())
