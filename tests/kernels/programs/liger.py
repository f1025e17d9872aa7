"""Kernels of Liger-Kernel: norms, activations, losses, rotations and attention, with their gradients."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from ..declared import Case, against, called, fixed, integers, logarithms, named, uniform

Tensor = Any


def rms(x: Tensor, eps: float = 1e-6) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def apply(path: str, name: str, *args: Any) -> Any:
    """Liger's autograd function of a name, applied."""
    return named(f"liger_kernel.ops.{path}:{name}.apply")(*args)


def case(path: str, *rest: Any, **options: Any) -> Case:
    return called(f"liger_kernel.ops.{path}", *rest, **options)


CASES_1 = [
    case("rms_norm:LigerRMSNormFunction.apply as rms_norm", lambda x, w: rms(x) * w, "x w",
         more=(1e-06, 0.0, "llama", False, True,), x=(3, 5, 20), w=(20,)),
]  # fmt: skip


@against(lambda x, w: rms(x) * w, "x w", x=(40, 24), w=(24,))
def rms_norm_in_blocks(x: Tensor, w: Tensor) -> Tensor:
    return _Blocks.apply(x, w)


class _Blocks(torch.autograd.Function):
    """Liger's second pair of kernels, which it takes for thousands of short rows, for a few."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        import liger_kernel.ops.rms_norm as ops
        import triton

        y, r = torch.empty_like(x), torch.empty(len(x), device=x.device)
        ops._block_rms_norm_forward_kernel[(triton.cdiv(len(x), 16),)](
            y, y.stride(0), x, x.stride(0), w, w.stride(0), r, r.stride(0), *x.shape, 1e-6, 0.0,
            casting_mode=-1, elementwise_affine=True, BLOCK_SIZE=32, BLOCK_ROW=16,
        )  # fmt: skip
        ctx.save_for_backward(x, w, r)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        import liger_kernel.ops.rms_norm as ops
        import triton.language as tl

        x, w, r = ctx.saved_tensors
        dx, dw = torch.empty_like(x), torch.empty(2, len(w), device=x.device)
        ops._block_rms_norm_backward_kernel[(2,)](
            dy, dy.stride(0), dx, dx.stride(0), x, x.stride(0), tl.float32,
                 w, w.stride(0), r, r.stride(0), dw, dw.stride(0),
            *x.shape, 0.0, casting_mode=-1, elementwise_affine=True, COMPUTE_DW=True, BLOCK_SIZE=32, BLOCK_ROW=16,
        )  # fmt: skip
        return dx, dw.sum(0)


CASES_2 = [
    case("layer_norm:LigerLayerNormFunction.apply as layer_norm", lambda x, w, b: F.layer_norm(x, (24,), w, b, 1e-05),
         "x w b", more=(1e-05,), x=(3, 4, 24), w=(24,), b=(24,)),
    case("group_norm:LigerGroupNormFunction.apply as group_norm", lambda x, w, b: F.group_norm(x, 2, w, b, 1e-05),
         "x w b", more=(6, 2, 1e-05,), x=(2, 6, 10), w=(6,), b=(6,)),
    case("fused_add_rms_norm:LigerFusedAddRMSNormFunction.apply as fused_add_rms_norm",
         lambda x, r, w: (rms(x + r) * w, x + r), "x r w", more=(1e-06, 0.0, "llama", False,), x=(3, 4, 24),
         r=(3, 4, 24), w=(24,)),
]  # fmt: skip


@against(
    lambda x, w, scale, shift: rms(x) * w * (1 + scale[:, None]) + shift[:, None],
    "x w scale shift", x=(2, 5, 16), w=(16,), scale=(2, 16), shift=(2, 16),
)  # fmt: skip
def modulated_rms_norm(x: Tensor, w: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    function = "LigerModulatedRMSNormFunction"
    return apply("modulated_rms_norm", function, x, w, scale, shift, 1e-6, 0.0, "llama", False)


def poly(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return w[0] * rms(x**3) + w[1] * rms(x**2) + w[2] * rms(x) + b


CASES_3 = [
    case("poly_norm:LigerPolyNormFunction.apply as poly_norm", poly, "x w b", more=(1e-06, False,), x=(5, 24), w=(3,),
         b=()),
    case("dyt:LigerDyTFunction.apply as dynamic_tanh", lambda x, a, g, b: torch.tanh(a * x) * g + b, "x a g b",
         x=(3, 4, 24), a=(1,), g=(24,), b=(24,)),
    case("geglu:LigerGELUMulFunction.apply as geglu", lambda a, b: F.gelu(a, approximate="tanh") * b, "a b",
         a=(3, 4, 20), b=(3, 4, 20)),
    case("swiglu:LigerSiLUMulFunction.apply as swiglu", lambda a, b: F.silu(a) * b, "a b", a=(3, 4, 20), b=(3, 4, 20)),
    case("swiglu:LigerFusedGateUpSiLUMulFunction.apply as swiglu_of_both", lambda y: F.silu(y[..., :20]) * y[..., 20:],
         "y", y=(12, 40)),
]  # fmt: skip


@against(
    lambda a, b: (F.silu(a) * b, b * torch.sigmoid(a) * (1 + a * (1 - torch.sigmoid(a))), F.silu(a)),
    a=(3, 40),
    b=(3, 40),
)
def swiglu_in_tiles(a: Tensor, b: Tensor) -> Tensor:
    from liger_kernel.ops import swiglu as ops

    c, da, db = torch.empty_like(a), a.clone(), b.clone()
    ops._swiglu_forward_kernel_tiled[(3, 3)](a, b, c, a.stride(0), 1.0, n_cols=40, BLOCK_SIZE=16)
    ops._swiglu_backward_kernel_tiled[(3, 3)](torch.ones_like(a), da, db, a.stride(0), 1.0, n_cols=40, BLOCK_SIZE=16)
    return c, da, db


CASES_4 = [
    case("relu_squared:LigerReLUSquaredFunction.apply as relu_squared", lambda x: F.relu(x).square(), "x",
         x=(3, 4, 20)),
    case("softmax:LigerSoftmaxFunction.apply as softmax", lambda x: F.softmax(x, -1), "x", x=(3, 4, 20)),
]  # fmt: skip


@against(lambda x, dy: (F.softmax(x, -1), _softmax_gradient(x, dy)), x=(3, 40), dy=(3, 40))
def softmax_in_blocks(x: Tensor, dy: Tensor) -> Tensor:
    from liger_kernel.ops import softmax as ops

    y, dx = torch.empty_like(x), torch.empty_like(x)
    ops._softmax_multi_block_forward_kernel[(3,)](y, y.stride(0), x, x.stride(0), 40, BLOCK_SIZE=16, num_warps=1)
    ops._softmax_multi_block_backward_kernel[(3,)](
        dy, dy.stride(0), y, y.stride(0), dx, dx.stride(0), 40, BLOCK_SIZE=16, num_warps=1
    )
    return y, dx


def _softmax_gradient(x: Tensor, dy: Tensor) -> Tensor:
    y = F.softmax(x, -1)
    return y * (dy - (y * dy).sum(-1, keepdim=True))


def sparse_maximum(x: Tensor) -> Tensor:
    ordered = x.sort(-1, descending=True).values
    places = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    sums = ordered.cumsum(-1)
    count = (1 + places * ordered > sums).sum(-1, keepdim=True)
    return F.relu(x - (sums.gather(-1, count - 1) - 1) / count)


CASES_5 = [
    case("sparsemax:LigerSparsemaxFunction.apply as sparsemax", sparse_maximum, "x", more=(-1,), x=(5, 20)),
]  # fmt: skip


@against(lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), "x", x=(6, 30), t=integers(30, 6))
def cross_entropy(x: Tensor, t: Tensor) -> Tensor:
    found = apply("cross_entropy", "LigerCrossEntropyFunction", x * 1, t, None, -100, 0.0, 0.1, "mean")
    return found[0]


CASES_6 = [
    case("cross_entropy:LigerCrossEntropyFunction.apply as cross_entropy_weighted",
         lambda x, t, w: F.cross_entropy(5 * torch.tanh(x / 5), t, w, reduction="sum"),
         more=(-100, 0.0, 0.0, "sum", 5.0,), first=True, x=(6, 30), t=integers(30, 6), w=uniform(30, low=0.5)),
    case("fused_linear_cross_entropy:LigerFusedLinearCrossEntropyFunction.apply as linear_cross_entropy",
         lambda x, w, t, b: F.cross_entropy(x @ w.T + b, t), "x w b", 0.003, first=True, x=(6, 8), w=(30, 8),
         t=integers(30, 6), b=(30,)),
]  # fmt: skip


def jensen_shannon(x: Tensor, t: Tensor, beta: float = 0.3) -> Tensor:
    middle = torch.log(beta * t.exp() + (1 - beta) * x.exp())
    parts = beta * t.exp() * (t - middle) + (1 - beta) * x.exp() * (x - middle)
    return parts.sum() / len(x)


CASES_7 = [
    case("jsd:LigerJSDFunction.apply as jsd", jensen_shannon, "x", more=(None, 0.3,), x=logarithms(5, 20),
         t=logarithms(5, 20)),
    case("fused_linear_jsd:LigerFusedLinearJSDFunction.apply as linear_jsd",
         lambda x, w, t, v: jensen_shannon(F.log_softmax(x @ w.T, -1), F.log_softmax(t @ v.T, -1), 0.5), "x w", 0.003,
         x=(6, 8), w=(20, 8), t=(6, 8), v=(20, 8)),
    case("kl_div:LigerKLDivLossFunction.apply as kl_divergence",
         lambda x, t: F.kl_div(x, t.exp(), reduction="batchmean"), "x", more=("batchmean", True,), x=logarithms(5, 20),
         t=logarithms(5, 20)),
]  # fmt: skip


@against(
    lambda x, w, t: F.kl_div(F.log_softmax(x @ w.T, -1), t.exp(), reduction="batchmean"),
    "x w", 3e-3, x=(6, 8), w=(20, 8), t=logarithms(6, 20),
)  # fmt: skip
def linear_kl_divergence(x: Tensor, w: Tensor, t: Tensor) -> Tensor:
    return apply("fused_linear_kl_div", "LigerFusedLinearKLDivFunction", x, w, t.exp())


@against(lambda p, q: 0.5 * (p.exp() - q.exp()).abs().sum() / len(p), p=logarithms(5, 20), q=logarithms(5, 20))
def total_variation(p: Tensor, q: Tensor) -> Tensor:
    return apply("tvd", "LigerTVDLossFunction", p.exp(), q.exp())


def _both_losses(x: Tensor, y: Tensor, t: Tensor) -> Tensor:
    return F.cross_entropy(x, t, reduction="none"), 0.5 * (x.softmax(-1) - y.softmax(-1)).abs().sum(-1)


CASES_8 = [
    case("fused_ce_tvd:LigerFusedCETVDFunction.apply as cross_entropy_and_variation", _both_losses, "x", x=(5, 20),
         y=(5, 20), t=integers(20, 5)),
]  # fmt: skip


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos[:, None] + torch.cat([-second, first], -1) * sin[:, None]


@against(
    lambda q, k, a: (rotated(q, _twice(a).cos(), _twice(a).sin()), rotated(k, _twice(a).cos(), _twice(a).sin())),
    "q k", q=(2, 4, 3, 16), k=(2, 2, 3, 16), a=(2, 3, 8),
)  # fmt: skip
def rope(q: Tensor, k: Tensor, a: Tensor) -> Tensor:
    return apply("rope", "LigerRopeFunction", q, k, _twice(a).cos(), _twice(a).sin())


def _twice(angles: Tensor) -> Tensor:
    return torch.cat([angles, angles], -1)


def _sections(a: Tensor) -> Tensor:
    """The angles of three axes, of which each gives a part of the columns."""
    return _twice(torch.cat([a[0, ..., :2], a[1, ..., 2:5], a[2, ..., 5:]], -1))


@against(
    lambda q, k, a: (rotated(q, _sections(a).cos(), _sections(a).sin()),
         rotated(k, _sections(a).cos(), _sections(a).sin())),
    "q k", q=(2, 4, 3, 16), k=(2, 2, 3, 16), a=(3, 2, 3, 8),
)  # fmt: skip
def multimodal_rope(q: Tensor, k: Tensor, a: Tensor) -> Tensor:
    return apply("qwen2vl_mrope", "LigerQwen2VLMRopeFunction", q, k, _twice(a).cos(), _twice(a).sin(), [2, 3, 3])


def _as_complex(x: Tensor, a: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(a), a)[None, :, None]).flatten(3)


@against(lambda q, k, a: (_as_complex(q, a), _as_complex(k, a)), "q k", q=(2, 3, 4, 16), k=(2, 3, 2, 16), a=(3, 8))
def llama4_rope(q: Tensor, k: Tensor, a: Tensor) -> Tensor:
    return apply("llama4_rope", "LigerLlama4RopeFunction", q, k, torch.polar(torch.ones_like(a), a))


CASES_9 = [
    case("experimental.embedding:LigerEmbeddingFunction.apply as embedding", lambda w, i: F.embedding(i, w), "w",
         w=(9, 12), i=integers(9, 4, 3)),
]  # fmt: skip


def residuals(v: Tensor, q: Tensor, w: Tensor) -> Tensor:
    scores = (rms(v) * w * q).sum(-1)
    return (v * scores.softmax(0)[..., None]).sum(0)


CASES_10 = [
    case("attn_res:LigerAttnResFunction.apply as attention_of_residuals", residuals, "v q w", more=(1e-06,),
         v=(3, 2, 4, 16), q=(16,), w=(16,)),
]  # fmt: skip


def tokens_attend(x: Tensor, w: Tensor) -> Tensor:
    later = torch.ones(8, 8).triu(1).bool()
    return F.conv2d(x.masked_fill(later, -1e9).softmax(-1), w, padding=1).masked_fill(later, 0)


CASES_11 = [
    case("multi_token_attention:LigerMultiTokenAttentionFunction.apply as multi_token_attention", tokens_attend, "x w",
         more=(None, 1, 1,), x=(2, 2, 8, 8), w=(2, 2, 3, 3)),
]  # fmt: skip


def neighbours(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    n = q.shape[2]
    far = (torch.arange(n)[:, None] - torch.arange(n)).abs() > 1
    scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(far, float("-inf"))
    return scores.softmax(-1) @ v


CASES_12 = [
    case("fused_neighborhood_attention:LigerFusedNeighborhoodAttentionFunction.apply as neighbourhood_attention",
         neighbours, "q k v", 0.02, more=(3, 1, None,), q=(1, 2, 16, 16), k=(1, 2, 16, 16), v=(1, 2, 16, 16)),
]  # fmt: skip


def _log_likelihood(x: Tensor, i: Tensor) -> Tensor:
    return F.log_softmax(x[:, :-1] / 0.9, -1).gather(-1, i[..., None])[..., 0]


@against(_log_likelihood, x=(2, 5, 20), i=integers(20, 2, 4))
def selective_log_softmax(x: Tensor, i: Tensor) -> Tensor:
    from liger_kernel.ops.grpo_loss import fused_selective_log_softmax

    return fused_selective_log_softmax(x, i, 0.9)


def policy(x: Tensor, old: Tensor, ref: Tensor, i: Tensor, a: Tensor, whole: bool = False) -> Tensor:
    logp = _log_likelihood(x, i)
    ratio = ((logp - old).mean(-1, keepdim=True) if whole else logp - old).exp()
    loss = -torch.minimum(ratio * a[:, None], ratio.clamp(0.8, 1.2) * a[:, None])
    return (loss + 0.04 * ((ref - logp).exp() - (ref - logp) - 1)).expand(logp.shape)


POLICY = {"x": (2, 5, 20), "old": logarithms(2, 4), "ref": logarithms(2, 4), "i": integers(20, 2, 4), "a": (2,)}


def _grpo(level: str, x: Tensor, old: Tensor, ref: Tensor, i: Tensor, a: Tensor) -> Tensor:
    found = apply(
        "grpo_loss", "GrpoLossFunction", x, old, ref, i, a, torch.ones(2, 4, device=x.device), 0.9, 0.04, 0.2, 0.2,
        False, "grpo", None, False, level,
    )  # fmt: skip
    return found[0]


@against(policy, "x", **POLICY)
def policy_loss(x: Tensor, old: Tensor, ref: Tensor, i: Tensor, a: Tensor) -> Tensor:
    return _grpo("token", x, old, ref, i, a)


@against(lambda x, old, ref, i, a: policy(x, old, ref, i, a, True), "x", **POLICY)
def policy_loss_of_sequences(x: Tensor, old: Tensor, ref: Tensor, i: Tensor, a: Tensor) -> Tensor:
    return _grpo("sequence", x, old, ref, i, a)


def experts(x: Tensor, up: Tensor, down: Tensor, i: Tensor, w: Tensor) -> Tensor:
    found = torch.zeros_like(x)
    for token in range(len(x)):
        for place in range(i.shape[1]):
            expert = int(i[token, place])
            gate, value = (up[expert] @ x[token]).chunk(2)
            found[token] = found[token] + w[token, place] * (down[expert] @ (F.silu(gate) * value))
    return found


@against(
    experts, "x up down w", 2e-2,
    x=(4, 32), up=(3, 64, 32), down=(3, 32, 32), w=uniform(4, 2),
    i=fixed([[0, 1], [1, 2], [2, 0], [1, 0]]),
)  # fmt: skip
def mixture_of_experts(x: Tensor, up: Tensor, down: Tensor, i: Tensor, w: Tensor) -> Tensor:
    return apply("fused_moe", "LigerFusedMoEFunction", x, up, down, i.int(), w)


CASES_13 = [
    case("mlp:LigerMLPFunction.apply as mlp_with_descriptors",
         lambda x, g, u, d: F.linear(F.silu(F.linear(x, g)) * F.linear(x, u), d), "x g u d", 0.02, x=(1, 64, 32),
         g=(32, 32), u=(32, 32), d=(32, 32)),
]  # fmt: skip


def coefficients(x: Tensor, phi: Tensor, b: Tensor, a: Tensor, c: Tensor, d: Tensor) -> Tensor:
    flat = x.flatten(1)
    mix = rms(flat) @ phi
    pre = torch.sigmoid(mix[:, :4] * a + b[:4]) + 1e-4
    post = torch.sigmoid(mix[:, 4:8] * c + b[4:8]) * 2.0
    made = ((mix[:, 8:] * d + b[8:]).view(-1, 4, 4)).softmax(-1) + 1e-6
    made = made / (made.sum(-2, keepdim=True) + 1e-6)
    for _ in range(2):
        made = made / (made.sum(-1, keepdim=True) + 1e-6)
        made = made / (made.sum(-2, keepdim=True) + 1e-6)
    return pre, post, made


CASES_14 = [
    case("mhc:LigerMHCCoeffsFunction.apply as connection_coefficients", coefficients, "x phi b a c d", 0.02,
         more=(True, 3, 1e-06, 0.0001, 1e-06, 2.0,), x=(6, 4, 16), phi=(64, 24), b=(24,), a=(), c=(), d=()),
    case("mhc:LigerMHCPreFunction.apply as connection_before", lambda x, h: (x * h[..., None]).sum(1), "x h",
         x=(6, 4, 16), h=(6, 4)),
    case("mhc:LigerMHCPostResFunction.apply as connection_after", lambda x, f, h, r: r @ x + f[:, None] * h[..., None],
         "x f h r", x=(6, 4, 16), f=(6, 16), h=(6, 4), r=(6, 4, 4)),
]  # fmt: skip


@against(lambda x, g: x * g, x=(5, 20), g=(1,))
def element_mul(x: Tensor, g: Tensor) -> Tensor:
    from liger_kernel.ops.utils import element_mul_kernel

    element_mul_kernel[(5,)](x, x.stride(0), g, 20, BLOCK_SIZE=32)
    return x


@against(lambda x, t: F.cross_entropy(x, t, reduction="none"), "x", x=(6, 30), t=integers(30, 6))
def vocabulary_parallel(x: Tensor, t: Tensor) -> Tensor:
    return apply(
        "vocab_parallel_cross_entropy",
        "LigerVocabParallelCEFunction",
        x[:, None] * 1,
        t[:, None],
        None,
        -100,
        0.0,
        "megatron",
        "none",
    )[:, 0]
