"""Operators of FlagGems, most of which bear PyTorch's names: pointwise ones are kernels that it writes itself."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from ..declared import Case, fixed, half, integers, uniform
from ..declared import same as _same

Tensor = Any
PAIR = (3, 20)
FLAGS = fixed([[True, False, True, False]] * 3)


def same(path: str, *inputs: Any, **options: Any) -> Case:
    return _same(f"flag_gems.ops:{path}", *inputs, **options)


def in_place(path: str, *inputs: Any, **options: Any) -> Case:
    """A case of a function that writes to its first argument: PyTorch's method of that name."""
    name = path.partition(" as ")[0]
    return same(path, *inputs, reference=lambda x, *rest, **given: getattr(x, name)(*rest, **given), **options)


POINTWISE = [
    *[same(name, PAIR) for name in ("abs", "angle", "arcsinh", "atan", "ceil", "cos", "cosh", "erf", "exp", "exp2")],
    *[same(name, PAIR) for name in ("expm1", "neg", "reciprocal", "relu", "round", "sigmoid", "signbit", "sin")],
    *[same(name, PAIR)
         for name in ("square", "tan", "tanh", "silu", "relu6", "selu", "hardsigmoid", "softshrink", "celu")],
    *[same(name, PAIR) for name in ("isfinite", "isinf", "isnan", "isneginf", "elu", "softplus", "nan_to_num")],
    same("log_sigmoid", PAIR, reference=F.logsigmoid),
    *[same(name, uniform(3, 20, low=0.1)) for name in ("acos", "log", "log10", "logit", "rsqrt", "sqrt")],
    *[same(name, PAIR, PAIR)
         for name in ("add", "sub", "mul", "maximum", "minimum", "atan2", "hypot", "fmin", "copysign")],
    *[same(name, PAIR, PAIR)
         for name in ("eq", "ne", "ge", "gt", "le", "lt", "logaddexp", "true_divide", "floor_divide")],
    *[same(name, PAIR, PAIR) for name in ("logical_and", "logical_or", "logical_xor", "remainder", "isclose")],
    same("div_mode", PAIR, PAIR, reference="div", rounding_mode="trunc"),
    same("bitwise_and_tensor", integers(99, 3, 5), integers(99, 3, 5), reference="bitwise_and"),
    same("bitwise_or_tensor", integers(99, 3, 5), integers(99, 3, 5), reference="bitwise_or"),
    same("bitwise_left_shift", integers(99, 3, 5), integers(5, 3, 5)),
    same("bitwise_right_shift", integers(99, 3, 5), integers(5, 3, 5)),
    same("bitwise_not", integers(99, 3, 5)),
    same("logical_not", FLAGS),
    same("gelu", PAIR),
    same("gelu as gelu_tanh", half(3, 20), approximate="tanh", tolerance=5e-3),
    same("clamp", PAIR, -0.5, 0.5),
    same("clamp_tensor", PAIR, PAIR, PAIR, reference=lambda x, low, high: x.clamp(low, high)),
    same("pow_tensor_scalar", PAIR, 3.0, reference="pow"),
    same("pow_tensor_tensor", uniform(3, 20, low=0.1), PAIR, reference="pow"),
    same("lerp_tensor", PAIR, PAIR, PAIR, reference="lerp"),
    same("where_self", FLAGS, (3, 4), (3, 4), reference="where"),
    same("masked_fill", (3, 4), FLAGS, 2.5),
    same("addcmul", PAIR, PAIR, PAIR, value=0.5),
    same("addcdiv", PAIR, PAIR, uniform(3, 20, low=0.5), value=0.5),
    same("threshold", PAIR, 0.1, -2.0),
    same("prelu", (2, 5, 4), (5,)),
    same("glu", (3, 4, 10)),
    same("special_i0e", PAIR, reference=torch.special.i0e),
    same("special_i1", PAIR, reference=torch.special.i1),
    same("i0", PAIR),
    *[in_place(name, PAIR) for name in ("floor_", "sgn_", "sinh_", "asinh_")],
    same("hardswish_", PAIR, reference="hardswish"),
    in_place("log1p_", uniform(3, 20)),
    in_place("digamma_", uniform(3, 20, low=0.5, high=9)),
    in_place("arctanh_", uniform(3, 20, high=0.9)),
]  # fmt: skip

REDUCED = [
    *[same(name, (5, 20)) for name in ("sum", "mean", "prod", "max", "min", "argmax", "argmin", "amax", "trace")],
    same("all", FLAGS),
    same("any", FLAGS),
    same("count_nonzero", integers(3, 5, 20)),
    same("sum_dim", (5, 20), [1], reference="sum"),
    same("mean_dim", (3, 5, 20), [0, 2], reference="mean"),
    same("prod_dim", (5, 20), 1, reference="prod"),
    same("all_dim", FLAGS, 1, reference="all"),
    same("any_dim", FLAGS, 0, reference="any"),
    same("max_dim", (5, 20), 1, reference=lambda x, dim: tuple(x.max(dim))),
    same("min_dim", (5, 20), 0, reference=lambda x, dim: tuple(x.min(dim))),
    same("aminmax", (5, 20), reference=lambda x: tuple(x.aminmax())),
    same("argmax as argmax_dim", (5, 20), 1),
    same("var", (5, 20), [1], correction=1),
    same("std", (5, 20), [1], correction=1),
    same("var_mean", (5, 20), [1], correction=1),
    same("vector_norm", (5, 20), 2, [1], reference=torch.linalg.vector_norm),
    same("cumsum", (5, 20), 1),
    same("cumsum as cumsum_columns", (5, 20), 0),
    same("cummax", (5, 20), 1, reference=lambda x, dim: tuple(x.cummax(dim))),
    same("cummin", (5, 20), 1, reference=lambda x, dim: tuple(x.cummin(dim))),
    same("softmax", (5, 20), 1),
    same("softmax as softmax_columns", (5, 20), 0),
    same("log_softmax", (5, 20), 1),
    same("scaled_softmax_forward", half(1, 2, 16, 16), 0.5, tolerance=5e-3,
         reference=lambda x, by: (x * by).softmax(-1)),
    same("topk", (3, 20), 4, reference=lambda x, k: tuple(x.topk(k))),
    same("sort", (3, 16), reference=lambda x: tuple(x.sort())),
    same("mse_loss", PAIR, PAIR, 1, reference=lambda x, y, how: F.mse_loss(x, y)),
    same("soft_margin_loss", PAIR, fixed([[1.0, -1.0] * 10] * 3)),
    same("margin_ranking_loss", PAIR, PAIR, fixed([[1.0, -1.0] * 10] * 3), reference=F.margin_ranking_loss),
    same("nll_loss_forward", (5, 20), integers(20, 5), reference=lambda x, t: (F.nll_loss(x, t), torch.tensor(5.0))),
    same("dot", (40,), (40,)),
    same("vdot", (40,), (40,)),
    same("unique_consecutive", integers(3, 30), reference=lambda x: (torch.unique_consecutive(x),)),
    same("isin", integers(9, 3, 5), integers(9, 4)),
    same("quantile", (5, 20), 0.25, 1),
]  # fmt: skip


def _normalised(x: Tensor, shape: list[int], w: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Means and deviations without the dimensions that PyTorch keeps."""
    y, mean, deviation = torch.native_layer_norm(x, shape, w, b, 1e-5)
    return y, mean.flatten(), deviation.flatten()


NORMS = [
    same("layer_norm", (4, 24), [24], (24,), (24,), reference=_normalised),
    same("group_norm", (2, 8, 10), (8,), (8,), 2, 8, 10, 2,
         reference=lambda *given: torch.native_group_norm(*given, 1e-5)),
    same("rms_norm", (4, 24), [24], (24,), reference=lambda x, shape, w: F.rms_norm(x, shape, w, 1e-5)),
    same("batch_norm", (4, 3, 5), (3,), (3,), (3,), uniform(3), True,
         reference=lambda *given: torch.native_batch_norm(*given, 0.1, 1e-5)),
    same("weight_norm_interface", (4, 6), (4, 1), 0, reference=lambda *given: torch._weight_norm_interface(*given)),
]  # fmt: skip

PRODUCTS = [
    same("mm", (20, 24), (24, 18), tolerance=1e-2),
    same("bmm", (2, 20, 24), (2, 24, 18), tolerance=1e-2),
    same("addmm", (18,), (20, 24), (24, 18), tolerance=1e-2),
    same("baddbmm", (2, 20, 18), (2, 20, 24), (2, 24, 18), tolerance=1e-2),
    same("mv", (20, 24), (24,)),
    same("addmv", (20,), (20, 24), (24,)),
    same("addr", (6, 8), (6,), (8,)),
    same("kron", (2, 3), (4, 2)),
    same("conv1d", (2, 3, 12), (4, 3, 3), tolerance=1e-2),
    same("conv2d", (2, 3, 8, 8), (4, 3, 3, 3), tolerance=1e-2),
    same("conv3d", (1, 2, 4, 4, 4), (3, 2, 2, 2, 2), tolerance=1e-2),
    same("_conv_depthwise2d", (1, 4, 6, 6), (4, 1, 3, 3), [3, 3], None, [1, 1], [0, 0], [1, 1],
         tolerance=1e-2, reference=lambda x, w, *_: F.conv2d(x, w, groups=4)),
    same("scaled_dot_product_attention", half(1, 2, 32, 64), half(1, 2, 32, 64), half(1, 2, 32, 64), tolerance=2e-2),
    same("avg_pool2d", (1, 2, 6, 6), 2),
    same("max_pool2d_with_indices", (1, 2, 6, 6), [2, 2],
         reference=lambda x, k: F.max_pool2d(x, k, return_indices=True)),
]  # fmt: skip

MOVED = [
    same("arange", 10, device="cuda", reference=lambda end, device: torch.arange(end)),
    same("full", [3, 4], 2.5, device="cuda", reference=lambda shape, value, device: torch.full(shape, value)),
    same("ones", [3, 4], device="cuda", reference=lambda shape, device: torch.ones(shape)),
    same("zeros", [3, 4], device="cuda", reference=lambda shape, device: torch.zeros(shape)),
    same("eye", 5, device="cuda", reference=lambda n, device: torch.eye(n)),
    same("linspace", 0, 1, 9, device="cuda", reference=lambda *given, device: torch.linspace(*given)),
    same("logspace", 0, 1, 9, device="cuda", reference=lambda *given, device: torch.logspace(*given)),
    *[same(name, (3, 4)) for name in ("zeros_like", "ones_like", "tril", "triu", "t_copy")],
    same("full_like", (3, 4), 2.5),
    same("cat", [(3, 4), (2, 4)], 0),
    same("stack", [(3, 4), (3, 4)], 1),
    same("hstack", [(3, 4), (3, 2)]),
    same("vstack", [(3, 4), (2, 4)]),
    same("flip", (3, 4), [0]),
    same("roll", (3, 4), [1], [1]),
    same("repeat", (3, 4), [2, 3], reference=lambda x, sizes: x.repeat(sizes)),
    same("tile", (3, 4), [2, 3]),
    same("repeat_interleave_self_int", (3, 4), 2, 1, reference="repeat_interleave"),
    same("pad", (3, 4), [1, 2, 0, 1]),
    same("reflection_pad1d", (2, 3, 8), [2, 1], reference=lambda x, by: F.pad(x, by, "reflect")),
    same("replication_pad1d", (2, 3, 8), [2, 1], reference=lambda x, by: F.pad(x, by, "replicate")),
    same("pixel_unshuffle", (1, 2, 4, 6), 2),
    same("diag", (5,)),
    same("diag_embed", (3, 5)),
    same("embedding", (9, 12), integers(9, 3, 4), reference=lambda w, i: F.embedding(i, w)),
    same("index_select", (6, 8), 1, integers(8, 5)),
    same("index_add", (6, 8), 0, fixed([0, 2, 5]), (3, 8)),
    same("index", (6, 8), [fixed([0, 2, 5]), fixed([1, 3, 7])], reference=lambda x, at: x[tuple(at)]),
    same("index_put", (6, 8), [fixed([0, 2, 5]), fixed([1, 3, 7])], (3,)),
    same("gather", (5, 8), 1, integers(8, 5, 3)),
    same("scatter", (5, 8), 1, fixed([[0, 2, 4]] * 5), (5, 3)),
    same("select_scatter", (5, 8), (8,), 0, 2),
    same("slice_scatter", (5, 8), (2, 8), 0, 1, 3),
    same("masked_select", (3, 4), FLAGS),
    same("masked_scatter", (3, 4), FLAGS, (12,)),
    same("nonzero", integers(2, 5, 8)),
    same("one_hot", integers(6, 9), 6),
    same("upsample_nearest2d", (1, 2, 4, 4), [8, 8], reference=lambda x, size: F.interpolate(x, size)),
    same("upsample_bicubic2d", (1, 2, 4, 4), [8, 8], False,
         reference=lambda x, size, _: F.interpolate(x, size, mode="bicubic")),
    same("upsample_linear1d", (1, 2, 8), [16], False,
         reference=lambda x, size, _: F.interpolate(x, size, mode="linear")),
    same("unfold_backward", (3, 4, 4), [3, 10], 1, 4, 2,
         reference=lambda g, s, d, k, t: torch.ops.aten.unfold_backward(g, s, d, k, t)),
    same("glu_backward", (3, 5), (3, 10), -1, reference=lambda *given: torch.ops.aten.glu_backward(*given)),
    same("sigmoid_backward", PAIR, uniform(3, 20), reference=lambda *given: torch.ops.aten.sigmoid_backward(*given)),
    same("tanh_backward", PAIR, uniform(3, 20), reference=lambda *given: torch.ops.aten.tanh_backward(*given)),
    same("softmax_backward", (5, 20), uniform(5, 20), 1, None,
         reference=lambda g, y, d, _: y * (g - (g * y).sum(d, True))),
    same("elu_backward", PAIR, 1.0, 1.0, 1.0, False, PAIR,
         reference=lambda *given: torch.ops.aten.elu_backward(*given)),
    same("nan_to_num as nan_to_num_of_infinity",
         fixed([1.0, float("inf"), float("nan"), -float("inf")]), 0.5, 2.0, -2.0),
]  # fmt: skip
