"""A call of each listed function that exists, and of others, for tests of autocast: `call(library, x)` for a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Calls = dict[str, Callable[[Any, Any], Any]]


def _first(m: Any, x: Any, *shape: int) -> Any:
    """A tensor of another shape, of the dtype and on the device of x."""
    return m.ones(shape, dtype=x.dtype, device=x.device)


def _classes(m: Any, x: Any) -> Any:
    return m.tensor([0, 1, 2], device=x.device)


# what the lists of both types of devices cast to half precision
LOWER: Calls = {
    "mm": lambda m, x: m.mm(x, x),
    "matmul": lambda m, x: x @ x,
    "vectors": lambda m, x: x[0] @ x[0],
    "bmm": lambda m, x: m.bmm(x[None], x[None]),
    "addmm": lambda m, x: m.addmm(x, x, x),
    "addmm, scaled": lambda m, x: x.addmm(x, x, alpha=0.5),
    "linear": lambda m, x: m.nn.functional.linear(x, x, x[0]),
    "einsum": lambda m, x: m.einsum("ij,jk->ik", x, x),
    "inner": lambda m, x: m.inner(x, x),
    "conv1d": lambda m, x: m.nn.functional.conv1d(x[None], _first(m, x, 2, 3, 2)),
    "conv2d": lambda m, x: m.conv2d(_first(m, x, 1, 2, 4, 4), _first(m, x, 3, 2, 2, 2), _first(m, x, 3)),
    "conv3d": lambda m, x: m.conv3d(_first(m, x, 1, 1, 3, 3, 3), _first(m, x, 1, 1, 3, 3, 3), padding="same"),
    "conv_transpose2d": lambda m, x: m.conv_transpose2d(_first(m, x, 1, 2, 3, 3), _first(m, x, 2, 1, 2, 2)),
    "attention": lambda m, x: m.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "attention, masked": lambda m, x: m.nn.functional.scaled_dot_product_attention(
        x[None], x[None], x[None], attn_mask=m.ones(3, 3, dtype=m.bool, device=x.device)
    ),
}
# to float32
FLOAT32: Calls = {
    "mse_loss": lambda m, x: m.nn.functional.mse_loss(x, x),
    "l1_loss": lambda m, x: m.nn.functional.l1_loss(x, x, reduction="none"),
    "logits": lambda m, x: m.nn.functional.binary_cross_entropy_with_logits(x, x.sigmoid()),
    "nll_loss": lambda m, x: m.nn.functional.nll_loss(x, _classes(m, x)),
    "cross_entropy": lambda m, x: m.nn.functional.cross_entropy(x, _classes(m, x)),
    "cross_entropy, weighted": lambda m, x: m.nn.CrossEntropyLoss(x[0].abs())(x, _classes(m, x)),
    "cross_entropy, shares": lambda m, x: m.nn.functional.cross_entropy(x, x.abs()),
    "prod": lambda m, x: x.prod(),
    "prod, along": lambda m, x: m.prod(x, 0),
}
# to float32 on CUDA devices
FLOAT32_ON_CUDA: Calls = {
    "exp": lambda m, x: x.exp(),
    "torch.exp": lambda m, x: m.exp(x),
    "log": lambda m, x: x.abs().log(),
    "pow": lambda m, x: x**2,
    "pow, of a number": lambda m, x: 2**x,
    "pow, of tensors": lambda m, x: m.pow(x, x),
    "square": lambda m, x: x.square(),
    "rsqrt": lambda m, x: x.abs().rsqrt(),
    "reciprocal": lambda m, x: 1 / x,
    "softplus": lambda m, x: m.nn.functional.softplus(x),
    "sum": lambda m, x: x.sum(),
    "sum, along": lambda m, x: x.sum(0),
    "cumsum": lambda m, x: x.cumsum(0),
    "softmax": lambda m, x: m.nn.functional.softmax(x, dim=0),
    "log_softmax": lambda m, x: x.log_softmax(0),
    "norm": lambda m, x: x.norm(),
    "norm, of one": lambda m, x: x[0, :1].norm(),
    "logsumexp": lambda m, x: x.logsumexp(0),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, (3,)),
    "rms_norm": lambda m, x: m.nn.functional.rms_norm(x, (3,)),
    "group_norm": lambda m, x: m.nn.functional.group_norm(x, 1),
    "cosine_similarity": lambda m, x: m.nn.functional.cosine_similarity(x, x),
    "interpolate": lambda m, x: m.nn.functional.interpolate(x[None, None], scale_factor=2.0, mode="bilinear"),
    "nearest": lambda m, x: m.nn.functional.interpolate(x[None, None], scale_factor=2.0, mode="nearest-exact"),
    "native_layer_norm": lambda m, x: m.native_layer_norm(x, (3,), None, None, 1e-5)[1],
    "normalize": lambda m, x: m.nn.functional.normalize(x),
}
# to float32 on the CPU
FLOAT32_ON_CPU: Calls = {
    "local_response_norm": lambda m, x: m.nn.functional.local_response_norm(_first(m, x, 1, 2, 2, 2), 2),
    "adaptive_max_pool3d with indices": lambda m, x: m.nn.functional.adaptive_max_pool3d_with_indices(
        _first(m, x, 1, 2, 2, 2), 1
    )[0],
    "linalg.inv": lambda m, x: m.linalg.inv(x),
    "linalg.solve": lambda m, x: m.linalg.solve(x, x),
    "linalg.svdvals": lambda m, x: m.linalg.svdvals(x),
    "linalg.eigh": lambda m, x: m.linalg.eigh(x)[0],
    "linalg.cholesky_ex": lambda m, x: m.linalg.cholesky_ex(x)[0],
    "linalg.qr": lambda m, x: m.linalg.qr(x)[0],
    "linalg.cond": lambda m, x: m.linalg.cond(x),
    "avg_pool3d": lambda m, x: m.nn.functional.avg_pool3d(_first(m, x, 1, 2, 2, 2), 2),
    "max_pool3d": lambda m, x: m.nn.functional.max_pool3d(_first(m, x, 1, 2, 2, 2), 2),
    "adaptive_avg_pool3d": lambda m, x: m.nn.functional.adaptive_avg_pool3d(_first(m, x, 1, 2, 2, 2), 1),
    "adaptive_max_pool3d": lambda m, x: m.nn.functional.adaptive_max_pool3d(_first(m, x, 1, 2, 2, 2), 1),
    "fractional_max_pool2d": lambda m, x: m.nn.functional.fractional_max_pool2d(x[None, None], 2, output_size=2),
    "max_unpool1d": lambda m, x: m.nn.functional.max_unpool1d(x[:1, :1], m.tensor([[1]]), 2),
    "max_unpool2d": lambda m, x: m.nn.functional.max_unpool2d(x[:1, :1, None], m.tensor([[[1]]]), 2),
    "grid_sample": lambda m, x: m.nn.functional.grid_sample(
        x[None, None], _first(m, x, 1, 2, 2, 2), align_corners=False
    ),
    "grid_sampler_2d": lambda m, x: m.grid_sampler_2d(x[None, None], _first(m, x, 1, 2, 2, 2), 0, 0, False),
    "area of volumes": lambda m, x: m.nn.functional.interpolate(_first(m, x, 1, 1, 2, 2, 2), 3, mode="area"),
    "reflected": lambda m, x: m.nn.functional.pad(x, (1, 1), "reflect"),
    "replicated": lambda m, x: m.nn.functional.pad(_first(m, x, 1, 2, 2, 2), (1, 1, 1, 1, 1, 1), "replicate"),
}
# in the dtypes that they get
PLAIN: Calls = {
    "add": lambda m, x: x + x,
    "mul": lambda m, x: x * 2,
    "relu": lambda m, x: m.nn.functional.relu(x),
    "sigmoid": lambda m, x: x.sigmoid(),
    "gelu": lambda m, x: m.nn.functional.gelu(x),
    "mish": lambda m, x: m.nn.functional.mish(x),
    "nansum": lambda m, x: x.nansum(),
    "area": lambda m, x: m.nn.functional.interpolate(x[None, None], scale_factor=2.0, mode="area"),
    "native_group_norm": lambda m, x: m.native_group_norm(x, None, None, 3, 3, 1, 1, 1e-5)[2],
    "einsum of no sums": lambda m, x: m.einsum("i,j->ij", x[0], x[1]) if x.device.type == "cpu" else x,
    "logsigmoid": lambda m, x: m.nn.functional.logsigmoid(x),
    "sqrt": lambda m, x: x.abs().sqrt(),
    "mean": lambda m, x: x.mean(),
    "var": lambda m, x: x.var(),
    "max": lambda m, x: x.max(),
    "batch_norm": lambda m, x: m.nn.functional.batch_norm(x, m.ones_like(x[0]), m.ones_like(x[0])),
    "cat": lambda m, x: m.cat([x, x]),
    "dropout": lambda m, x: m.nn.functional.dropout(x),
    "avg_pool2d": lambda m, x: m.nn.functional.avg_pool2d(x[None], 2),
    "max_pool2d": lambda m, x: m.nn.functional.max_pool2d(x[None], 2),
    "circular": lambda m, x: m.nn.functional.pad(x, (1, 1), "circular"),
    "reflected": lambda m, x: m.nn.functional.pad(_first(m, x, 1, 2, 2, 2), (1, 1, 1, 1, 1, 1), "reflect"),
    "in place": lambda m, x: x.clone().pow_(2),
    "out": lambda m, x: m.mm(x, x, out=m.empty_like(x)),
    "where": lambda m, x: m.where(x > 0, x, 0),
    "embedding": lambda m, x: m.nn.functional.embedding(_classes(m, x), x),
}
# of a matrix of half precision and one of float32, to float32
WIDEST_ON_CUDA: Calls = {
    "dot": lambda m, x: x[0].dot(x[0].float()),
    "addcmul": lambda m, x: m.addcmul(x, x, x.float()),
    "scatter_add": lambda m, x: x.scatter_add(0, _classes(m, x)[None], x[:1].float()),
    "index_put": lambda m, x: m.index_put(x, (_classes(m, x),), x.float()),
    "grid_sample": lambda m, x: m.nn.functional.grid_sample(
        x[None, None], m.ones(1, 2, 2, 2, device=x.device), align_corners=False
    ),
}
WIDEST_ON_CPU: Calls = {
    "cat": lambda m, x: m.cat([x, x.float()]),
    "stack": lambda m, x: m.stack([x, x.float()]),
    "index_copy": lambda m, x: x.index_copy(0, m.tensor([0]), x[:1].float()),
}
UNLISTED_ON_CPU: Calls = {
    "mv": lambda m, x: x.mv(x[0]),
    "inner, of vectors": lambda m, x: m.inner(x[0], x[0]),
    "tensordot, of all dimensions": lambda m, x: m.tensordot(x, x, 2),
    "bilinear": lambda m, x: m.nn.functional.bilinear(x, x, _first(m, x, 2, 3, 3)),
    "dot": lambda m, x: x[0].dot(x[0]),
    **{name: call for name, call in FLOAT32_ON_CUDA.items() if name != "cosine_similarity"},
}
