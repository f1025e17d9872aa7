"""Kernels of flash-linear-attention: recurrences by steps and by chunks, attention, and what its layers use."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from ..declared import Begun, Case, called, given, half, integers, named, uniform, unit

Tensor = Any


def call(path: str, *args: Any, **options: Any) -> Any:
    """A function of the library by its module and name, called."""
    return named(f"fla.{path}")(*args, **options)


def case(path: str, *rest: Any, **options: Any) -> Begun:
    return called(f"fla.{path}", *rest, **options)


def recurrence(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
    scale: float | None = None,
    u: Tensor | None = None,
    a: Tensor | None = None,
    b: Tensor | None = None,
) -> Tensor:
    """What all of them compute, step by step, of (batch, time, head, channel): decayed states, delta rules."""
    state = torch.zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3], dtype=q.dtype)
    decay = decay[..., None] if decay is not None and decay.ndim == 3 else decay  # one number a head
    outputs = []
    for t in range(q.shape[1]):
        kt, vt = k[:, t], v[:, t]
        if u is not None:  # what is new counts with a weight of its own
            seen = state + (u * kt)[..., None] * vt[..., None, :]
            outputs.append((q[:, t, ..., None] * seen).sum(-2))
        before = state
        if decay is not None:
            state = state * decay[:, t, ..., None].exp()
        if a is not None and b is not None:
            state = state + b[:, t, ..., None] * (a[:, t, ..., None] * before).sum(-2, keepdim=True)
        if beta is not None:
            vt = (vt - (state * kt[..., None]).sum(-2)) * beta[:, t, :, None]
        state = state + kt[..., None] * vt[..., None, :]
        if u is None:
            outputs.append((q[:, t, ..., None] * state).sum(-2))
    return torch.stack(outputs, 1) * (q.shape[3] ** -0.5 if scale is None else scale)


def negative(*shape: int) -> Any:
    """Logarithms of decays."""
    return uniform(*shape, low=-1.0, high=-0.05)


STEPS = {"q": (1, 6, 2, 16), "k": (1, 6, 2, 16), "v": (1, 6, 2, 16)}
CHUNK = {"q": (1, 40, 2, 32), "k": unit(1, 40, 2, 32), "v": (1, 40, 2, 32)}
HALVES = {"q": half(1, 40, 2, 32), "k": half(1, 40, 2, 32, scale=0.17), "v": half(1, 40, 2, 32)}


def by_steps(path: str, gradients: str, **rest: Any) -> Case:
    """A case of a recurrence, of short inputs and those of the rest, by their names in `recurrence`."""
    return case(path, gradients, 0.01, first=True, **{**STEPS, **rest})(recurrence)


def by_chunks(path: str, gradients: str = "", **rest: Any) -> Case:
    return case(path, gradients, 0.03, first=True, **{**CHUNK, **rest})(recurrence)


CASES_1 = [
    by_steps("ops.gla:fused_recurrent_gla as gla_by_steps", "q k v decay", decay=negative(1, 6, 2, 16)),
    by_steps("ops.simple_gla:fused_recurrent_simple_gla as simple_gla_by_steps", "q k v", decay=negative(1, 6, 2)),
]


def retained(q: Tensor) -> Tensor:
    heads = torch.arange(q.shape[2], dtype=q.dtype)
    return (1 - 2 ** (-5 - heads)).log()[:, None].expand(*q.shape[:3], 1)


CASES_2 = [
    case("ops.retention:fused_recurrent_retention as retention_by_steps", "q k v", 0.01, first=True, **STEPS)(
        lambda q, k, v: recurrence(q, k, v, retained(q))
    ),
    by_steps(
        "ops.linear_attn:fused_recurrent_linear_attn as linear_attention_by_steps",
        "q k v",
        options={"normalize": False},
    ),
]


DELTA = {**STEPS, "k": unit(1, 6, 2, 16), "beta": uniform(1, 6, 2)}


CASES_3 = [by_steps("ops.delta_rule:fused_recurrent_delta_rule as delta_rule_by_steps", "q k v beta", **DELTA)]


@given("", 0.01, **DELTA, decay=negative(1, 6, 2))(recurrence)
def gated_delta_rule_by_steps(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor) -> Tensor:
    return call("ops.gated_delta_rule:fused_recurrent_gated_delta_rule", q, k, v, decay, beta=beta)[0]


@given("", 0.01, **DELTA, decay=negative(1, 6, 2, 16))(recurrence)
def kda_by_steps(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor) -> Tensor:
    return call("ops.kda:fused_recurrent_kda", q, k, v, decay, beta)[0]


def gated(x: Tensor, g: Tensor) -> Tensor:
    state, found = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        state = g[:, t].exp() * state + x[:, t]
        found.append(state)
    return torch.stack(found, 1)


CASES_4 = [
    case("ops.hgrn:fused_recurrent_hgrn as hgrn_by_steps", "x g", first=True, x=(2, 10, 16), g=negative(2, 10, 16))(
        gated
    ),
    case("ops.hgrn:chunk_hgrn as hgrn_by_chunks", "x g", first=True, x=(2, 40, 16), g=negative(2, 40, 16))(gated),
    by_steps(
        "ops.rwkv6:fused_recurrent_rwkv6 as rwkv6_by_steps", "q k v decay u", decay=negative(1, 6, 2, 16), u=(2, 16)
    ),
]


LOW_RANK = {**STEPS, "w": negative(1, 6, 2, 16), "a": unit(1, 6, 2, 16)}


@given("", 0.01, **LOW_RANK)(lambda q, k, v, w, a: recurrence(q, k, v, w, a=a, b=-a * 0.5, scale=1.0))
def rwkv7_by_steps(q: Tensor, k: Tensor, v: Tensor, w: Tensor, a: Tensor) -> Tensor:
    return call("ops.rwkv7:fused_recurrent_rwkv7", q, w, k, v, a, -a * 0.5, 1.0)[0]


@given("", 0.01, **LOW_RANK)(lambda q, k, v, w, a: recurrence(q, k, v, w, a=a, b=-a * 0.5))
def dplr_by_steps(q: Tensor, k: Tensor, v: Tensor, w: Tensor, a: Tensor) -> Tensor:
    path = "ops.generalized_delta_rule.dplr.fused_recurrent:fused_recurrent_dplr_delta_rule"
    return call(path, q, k, v, a, -a * 0.5, w)[0]


@given("", 0.01, **LOW_RANK)(lambda q, k, v, w, a: recurrence(q, k, v, a=a, b=-a * 0.5))
def iplr_by_steps(q: Tensor, k: Tensor, v: Tensor, w: Tensor, a: Tensor) -> Tensor:
    path = "ops.generalized_delta_rule.iplr.fused_recurrent:fused_recurrent_iplr_delta_rule"
    return call(path, q, k, v, a, -a * 0.5)[0]


CASES_5 = [
    by_chunks("ops.gla:chunk_gla as gla_by_chunks", "q k v decay", decay=negative(1, 40, 2, 32)),
    by_chunks("ops.simple_gla:chunk_simple_gla as simple_gla_by_chunks", "q k v decay", decay=negative(1, 40, 2)),
    by_chunks("ops.simple_gla:parallel_simple_gla as simple_gla_in_parallel", "q k v decay", decay=negative(1, 40, 2)),
    case("ops.retention:fused_chunk_retention as retention_by_chunks", "", 0.03, first=True, **CHUNK)(
        lambda q, k, v: recurrence(q, k, v, retained(q))
    ),
    by_chunks("ops.linear_attn:chunk_linear_attn as linear_attention_by_chunks", options={"normalize": False}),
]


@given("q k v beta", 0.05, **HALVES, beta=uniform(1, 40, 2))(recurrence)
def delta_rule_by_chunks(q: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    return call("ops.delta_rule:chunk_delta_rule", q, k, v, beta.to(q.dtype))[0]


CASES_6 = [
    by_chunks(
        "ops.gated_delta_rule:chunk_gated_delta_rule as gated_delta_rule_by_chunks",
        "q k v decay beta",
        decay=negative(1, 40, 2),
        beta=uniform(1, 40, 2),
    ),
    by_chunks("ops.rwkv6:chunk_rwkv6 as rwkv6_by_chunks", decay=negative(1, 40, 2, 32), u=(2, 32)),
    by_chunks("ops.kda:chunk_kda as kda_by_chunks", decay=negative(1, 40, 2, 32), beta=uniform(1, 40, 2)),
]


@given("", 0.03, **CHUNK, w=negative(1, 40, 2, 32), a=unit(1, 40, 2, 32))(
    lambda q, k, v, w, a: recurrence(q, k, v, w, a=a, b=-a * 0.5)
)
def dplr_by_chunks(q: Tensor, k: Tensor, v: Tensor, w: Tensor, a: Tensor) -> Tensor:
    return call("ops.generalized_delta_rule.dplr.chunk:chunk_dplr_delta_rule", q, k, v, a, -a * 0.5, w)[0]


def attended(q: Tensor, k: Tensor, v: Tensor, g: Tensor | None = None) -> Tensor:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if g is not None:
        sums = g.cumsum(1).transpose(1, 2)
        scores = scores + sums[..., None] - sums[..., None, :]
    later = torch.ones(scores.shape[-2:]).triu(1).bool()
    return (scores.masked_fill(later, float("-inf")).softmax(-1) @ v).transpose(1, 2)


CASES_7 = [
    case("ops.attn.parallel:parallel_attn as attention", "q k v", 0.03, **CHUNK)(attended),
    case(
        "ops.forgetting_attn.parallel:parallel_forgetting_attn as forgetting_attention",
        "q k v g",
        0.03,
        **CHUNK,
        g=negative(1, 40, 2),
    )(attended),
]


def second_order(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    scores = (1 + scores + scores.square() / 2).tril()
    return (scores @ v / (scores.sum(-1, keepdim=True) + 1e-6)).transpose(1, 2)


CASES_8 = [
    case("ops.based:parallel_based as based", "q k v", 0.03, q=(1, 40, 2, 16), k=(1, 40, 2, 16), v=(1, 40, 2, 32))(
        second_order
    ),
    case("ops.utils.cumsum:chunk_global_cumsum as cumulative_sum", s=(2, 40, 3))(lambda s: s.cumsum(1)),
    case("ops.utils.cumsum:chunk_global_cumsum as cumulative_sum_of_vectors", s=(2, 40, 3, 8))(lambda s: s.cumsum(1)),
    case("ops.utils.cumsum:chunk_local_cumsum as local_sum", more=(16,), s=(2, 48, 3))(
        lambda s: s.view(2, 3, 16, 3).cumsum(2).view(2, 48, 3)
    ),
    case("ops.utils.cumsum:chunk_local_cumsum as local_sum_of_vectors", more=(16,), s=(2, 48, 3, 8))(
        lambda s: s.view(2, 3, 16, 3, 8).cumsum(2).view(2, 48, 3, 8)
    ),
]


@given(x=(6, 20), dy=(6, 20))(
    lambda x, dy: (F.softmax(x, -1), F.softmax(x, -1) * (dy - (F.softmax(x, -1) * dy).sum(-1, True)))
)
def softmax(x: Tensor, dy: Tensor) -> Tensor:
    y = call("ops.utils.softmax:softmax_fwd", x)
    return y, call("ops.utils.softmax:softmax_bwd", y, dy)


CASES_9 = [
    case("ops.utils.logsumexp:logsumexp_fwd as logsumexp", x=(6, 40))(lambda x: x.logsumexp(-1)),
    case("ops.utils.matmul:matmul as matmul", "", 0.01, a=(20, 24), b=(24, 18))(lambda a, b: a @ b),
    case("ops.utils.matmul:addmm as addmm", "", 0.01, x=(20, 18), a=(20, 24), b=(24, 18))(lambda x, a, b: x + a @ b),
    case("ops.utils.pooling:mean_pooling as mean_pooling", "x", more=(8,), x=(1, 32, 2, 16))(
        lambda x: x.view(1, 4, 8, 2, 16).mean(2)
    ),
]


@given("x", x=(8, 6))(lambda x: torch.stack([F.pad(x[:3], (0, 0, 2, 0)), x[3:8]]))
def unpack_sequence(x: Tensor) -> Tensor:
    return call("ops.utils.pack:unpack_sequence", x, torch.tensor([0, 3, 8], device=x.device, dtype=torch.int32))


@given("", 0.01, x=(1, 16, 1, 16))(
    lambda x: torch.linalg.inv(torch.eye(16, dtype=x.dtype) + _lower(x)[0, :, 0])[None, :, None]
)
def solve_triangular(x: Tensor) -> Tensor:
    return call("ops.utils.solve_tril:solve_tril", _lower(x))


def _lower(x: Tensor) -> Tensor:
    return (0.3 * x[:, :, 0]).tril(-1)[:, :, None]


CASES_10 = [
    case("modules.norm.layernorm:layer_norm as layer_norm", "x w b", x=(2, 5, 32), w=(32,), b=(32,))(
        lambda x, w, b: F.layer_norm(x, (32,), w, b, 1e-05)
    ),
    case("modules.norm.layernorm:rms_norm as rms_norm", "x w", more=(None,), x=(2, 5, 32), w=(32,))(
        lambda x, w: F.rms_norm(x, (32,), w, 1e-05)
    ),
]


@given("x r w", x=(2, 5, 32), r=(2, 5, 32), w=(32,))(lambda x, r, w: (F.rms_norm(x + r, (32,), w, 1e-05), x + r))
def rms_norm_of_sum(x: Tensor, r: Tensor, w: Tensor) -> Tensor:
    return call("modules.norm.layernorm:rms_norm", x, w, None, r, prenorm=True)


CASES_11 = [
    case(
        "modules.norm.fused_norm_gate:rms_norm_gated as rms_norm_gated",
        "x g w",
        more=(None,),
        x=(2, 5, 32),
        g=(2, 5, 32),
        w=(32,),
    )(lambda x, g, w: F.rms_norm(x, (32,), w, 1e-06) * F.silu(g)),
]


@given("x w z", x=(2, 5, 32), w=(32,), z=(2, 5, 32))(lambda x, w, z: F.rms_norm(x, (32,), w, 1e-06) * F.silu(z))
def norm_before_gate(x: Tensor, w: Tensor, z: Tensor) -> Tensor:
    return call("modules.norm.layernorm_gated:rmsnorm_fn", x, w, None, z)


CASES_12 = [
    case("modules.norm.l2norm:l2norm as l2_norm", "x", x=(2, 5, 3, 32))(
        lambda x: x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-06)
    ),
    case("modules.activations.ops:swish as swish", "x", x=(2, 5, 20))(lambda x: F.silu(x)),
    case("modules.activations.ops:sigmoid as sigmoid", "x", x=(2, 5, 20))(lambda x: torch.sigmoid(x)),
    case("modules.activations.ops:logsigmoid as log_sigmoid", "x", more=(16.0,), x=(2, 5, 20))(
        lambda x: F.logsigmoid(x) / 16.0
    ),
    case("modules.activations.ops:swiglu as swiglu", "x y", x=(2, 5, 20), y=(2, 5, 20))(lambda x, y: F.silu(x) * y),
    case(
        "modules.activations.ops:swiglu_linear as swiglu_linear",
        "x y w b",
        0.01,
        x=(2, 5, 20),
        y=(2, 5, 20),
        w=(12, 20),
        b=(12,),
    )(lambda x, y, w, b: F.linear(F.silu(x) * y, w, b)),
    case("modules.activations.ops:elu_p1 as elu_plus_one", "x", x=(2, 5, 20))(lambda x: F.elu(x) + 1),
]


def turned(x: Tensor, a: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    cos, sin = a.cos()[None, :, None], a.sin()[None, :, None]
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


@given("x", x=(2, 6, 3, 16), a=(6, 8))(turned)
def rotary(x: Tensor, a: Tensor) -> Tensor:
    return call("modules.rotary.ops:rotary_embedding", x, a.cos(), a.sin())


CASES_13 = [
    case("modules.token_shift:token_shift as token_shift", "x", x=(2, 6, 20))(
        lambda x: F.pad(x, (0, 0, 1, 0))[:, :-1] - x
    ),
    case(
        "modules.causal_conv1d.ops:causal_conv1d as causal_convolution",
        "x w b",
        0.01,
        options={"activation": "silu"},
        first=True,
        x=(2, 10, 16),
        w=(16, 4),
        b=(16,),
    )(lambda x, w, b: F.silu(F.conv1d(F.pad(x.transpose(1, 2), (3, 0)), w[:, None], b, groups=16)).transpose(1, 2)),
    case(
        "modules.fused_cross_entropy.ops:cross_entropy_loss as cross_entropy",
        "x",
        first=True,
        x=(6, 30),
        t=integers(30, 6),
    )(lambda x, t: F.cross_entropy(x, t, reduction="none")),
    case(
        "modules.fused_linear_cross_entropy.ops:fused_linear_cross_entropy_loss as linear_cross_entropy",
        "x w",
        0.01,
        x=(8, 16),
        t=integers(30, 8),
        w=(30, 16),
    )(lambda x, t, w: F.cross_entropy(x @ w.T, t)),
    case(
        "modules.fused_kl_div.ops:fused_kl_div_loss as kl_divergence",
        "x w",
        0.01,
        x=(8, 16),
        y=(8, 16),
        w=(30, 16),
        v=(30, 16),
    )(lambda x, y, w, v: F.kl_div(F.log_softmax(x @ w.T, -1), F.softmax(y @ v.T, -1), reduction="batchmean")),
    case("ops.common.gate:fused_beta_sigmoid as beta_of_sigmoid", "x", x=(2, 5, 4))(lambda x: torch.sigmoid(x)),
    case("ops.gated_delta_rule.gate:fused_gdn_gate as gate_of_delta_rule", "g a b", g=(2, 5, 4), a=(4,), b=(4,))(
        lambda g, a, b: -a.exp() * F.softplus(g + b)
    ),
    case("ops.rwkv7.fused_k_update:fused_k_rwkv7 as key_update", "k a ka", k=(2, 6, 32), a=(2, 6, 32), ka=(32,))(
        lambda k, a, ka: k * (1 + (a - 1) * ka)
    ),
]


@given("x d", 0.01, x=(2, 6, 32), d=(2, 6, 32), w=(6, 1, 1, 32))(
    lambda x, d, w: tuple(x + d * each for each in w.unbind())
)
def six_mixtures(x: Tensor, d: Tensor, w: Tensor) -> Tensor:
    return call("ops.rwkv7.fused_addcmul:fused_addcmul_rwkv7", x, d, *w.unbind())
