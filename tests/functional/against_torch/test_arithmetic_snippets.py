"""Elementwise operators and the dtypes of their results, in PyTorch and tritensor side by side."""

from __future__ import annotations

import pytest

from .side_by_side import assert_same

pytestmark = pytest.mark.peer

ARITHMETIC = """
x + y
x + 1
1 + x
x + 1.5
x + True
x + 1j
x - y
1 - x
x * y
x * 2
x / y
x / 2
2 / x
x // y
x // 2
7 // x
x % y
x % 2
7 % x
x ** 2
2 ** x
x ** y
x ** 0.5
-x
+x
abs(x)
~m
~i
~x
-m
m - m
m + m
m * m
m + 1
m + 1.5
m * x
1 - m
m / 2
m & m
m | ~m
m ^ m
i & 3
i | k
i ^ i
x & y
i << 1
i >> 1
1 << k
i + 1
i + 1.5
i + k
i + s
i + x
i * 2.0
i / 2
i / k
i // 2
i % 3
i // k
i ** 2
i ** -1
2 ** k
i / 0
i // 0
i % 0
x / 0
x // 0
x % 0
u + 10
u + 300
u - 251
u * 2
-u
u + n
u + n.to(torch.int8)
n + i[0]
n + 1
n + 1.5
n / n
n // 2
h + 1
h + 1.5
h * h
h + b
h + v
b + 1
b * b
b + d
d + v
v + d
d + s
v + k
s + d
s + n
k + v
k + n
k + s
k / 2
s * torch.tensor(2.0, dtype=torch.float64)
torch.tensor(2.0, dtype=torch.float64) * n
torch.tensor(2.0, dtype=torch.float64) * h
z + 1
z * z
z + x[0, :2]
z + d[:2]
z / 2
z.abs()
x + z
x + v
x + torch.zeros(2)
x + torch.zeros(2, 1)
x + e
x + "a"
x + None
x + [1]
"a" + x
x * np.float32(2)
x + np.arange(3.0)
x + np.float64(2)
np.float64(2) * x
i + np.int64(2)
torch.add(x, y)
torch.add(x, y, alpha=2)
torch.add(i, 1, alpha=2)
torch.add(i, i, alpha=1.5)
torch.sub(x, y, alpha=2)
torch.mul(x, 2)
torch.div(x, y)
torch.div(x, y, rounding_mode="floor")
torch.div(x, y, rounding_mode="trunc")
torch.div(i, 2, rounding_mode="trunc")
torch.div(i, 2, rounding_mode="floor")
torch.div(x, y, rounding_mode="up")
torch.floor_divide(i, 2)
torch.remainder(i, 3)
torch.fmod(i, 3)
torch.fmod(x, y)
torch.pow(x, 2)
torch.pow(2, x)
torch.pow(i, 2)
torch.neg(i)
torch.abs(i)
torch.sign(x)
torch.sign(i)
torch.square(x)
torch.square(i)
torch.reciprocal(x)
torch.reciprocal(i)
torch.sqrt(x.abs())
torch.sqrt(i.abs())
torch.rsqrt(v)
torch.exp(x)
torch.exp(i)
torch.exp(m)
torch.exp2(x)
torch.expm1(x)
torch.log(v)
torch.log2(v)
torch.log10(v)
torch.log1p(v)
torch.log(torch.zeros(2))
torch.sin(x)
torch.cos(x)
torch.tan(x)
torch.asin(x)
torch.acos(x)
torch.atan(x)
torch.atan2(x, y)
torch.sinh(x)
torch.cosh(x)
torch.tanh(x)
torch.sigmoid(x)
torch.sigmoid(i)
torch.erf(x)
torch.floor(x)
torch.ceil(x)
torch.round(x)
torch.round(torch.tensor([0.5, 1.5, 2.5, -0.5]))
torch.trunc(x)
torch.frac(x)
torch.floor(i)
torch.maximum(x, y)
torch.minimum(x, y)
torch.maximum(x, i)
torch.maximum(o, torch.zeros(5))
torch.fmax(o, torch.zeros(5))
torch.clamp(x, 0, 1)
torch.clamp(x, min=0)
torch.clamp(x, max=1.0)
torch.clamp(i, 0.5, 2)
torch.clamp(x)
torch.clamp(x, 2, 1)
torch.clamp(x, min=y)
x.clamp(min=-1)
x.clip(0, 1)
torch.where(m, x, y)
torch.where(m, x, 0)
torch.where(m, 1, 0)
torch.where(m, 1.0, i)
torch.where(x > 0, x, i)
torch.where(m)
torch.where(x, x, y)
torch.logical_and(x, y)
torch.logical_or(m, m)
torch.logical_not(x)
torch.logical_xor(m, m)
torch.bitwise_and(i, 3)
torch.bitwise_not(m)
torch.bitwise_not(x)
torch.lerp(x, y, 0.5)
torch.relu(x)
x.relu()
torch.relu(i)
torch.nn.functional.relu(x)
torch.nn.functional.gelu(x)
torch.nn.functional.silu(x)
torch.nn.functional.elu(x)
torch.nn.functional.leaky_relu(x)
torch.nn.functional.softplus(x)
torch.nn.functional.softmax(x, 1)
torch.nn.functional.log_softmax(x, dim=0)
torch.softmax(x, 1)
torch.softmax(i, 1)
torch.softmax(x, 2)
x.softmax(-1)
x.log_softmax(-1)
torch.nn.functional.layer_norm(x, (3,))
torch.nn.functional.layer_norm(x, (2,))
torch.nn.functional.pad(x, (1, 2))
torch.nn.functional.pad(x, (1, -1, 0, 2), value=3.0)
torch.nn.functional.pad(w, (-1, -1))
torch.nn.functional.pad(i, (0, 1), "constant", 5)
torch.nn.functional.pad(x, (1,))
torch.nn.functional.pad(x, (1, 1, 1, 1, 1, 1))
torch.nn.functional.pad(x, (-2, -2))
torch.nn.functional.pad(x, (1, 2), mode="reflect")
torch.nn.functional.pad(x, (-1, 2), mode="reflect")
torch.nn.functional.pad(x, (3, 2), mode="circular")
torch.nn.functional.pad(x, (-1, 1), mode="circular")
torch.nn.functional.pad(x, (7, 1), mode="replicate")
torch.nn.functional.pad(x.reshape(2, 1, -1), (1, 1, 2, 0), mode="replicate")
torch.nn.functional.pad(x, (9, 0), mode="reflect")
torch.nn.functional.pad(x, (9, 0), mode="circular")
torch.nn.functional.pad(x, (1, 0), mode="mirror")
torch.nn.functional.pad(x, (1, 0), mode="reflect", value=1.0)
torch.meshgrid(v, v[1:], indexing="ij")
torch.meshgrid(v, g, indexing="ij")
torch.meshgrid(v, v[1:], s, indexing="xy")
torch.meshgrid([v, v[1:]])
torch.meshgrid(x, v)
torch.meshgrid(v, g, indexing="yx")
torch.broadcast_shapes((2, 1), (3,), 1)
torch.broadcast_shapes((2,), (3,))
torch.nansum(o[:1])
torch.nansum(torch.tensor([[1.0, float("nan")], [2.0, 3.0]]), 1, keepdim=True)
i.nansum()
torch.nansum(h, dtype=torch.float64)
torch.nn.functional.normalize(x)
torch.nn.functional.normalize(w, 1.0, 0)
torch.nn.functional.normalize(e)
torch.nn.functional.cosine_similarity(x, y)
torch.nn.functional.cosine_similarity(q, q[:, :1] + 1, -1)
torch.nn.functional.scaled_dot_product_attention(q, q, q)
torch.nn.functional.scaled_dot_product_attention(q, q[:, :2], q[:, :2], is_causal=True)
torch.nn.functional.scaled_dot_product_attention(w, y, y, scale=0.5)
torch.nn.functional.scaled_dot_product_attention(q, q, q, torch.tensor([True, False, True]))
torch.nn.functional.scaled_dot_product_attention(q, q, q, torch.tensor([[True], [False], [True]]).expand(3, 3))
torch.nn.functional.scaled_dot_product_attention(q, q, q, v)
torch.nn.functional.scaled_dot_product_attention(q, q, q, v, is_causal=True)
torch.nn.functional.scaled_dot_product_attention(q.repeat(2, 1, 1), q, q, enable_gqa=True)
torch.nn.functional.scaled_dot_product_attention(q.repeat(2, 1, 1), q, q[:1], enable_gqa=True, is_causal=True)
torch.nn.functional.scaled_dot_product_attention(q.repeat(2, 1, 1)[1:], q.repeat(2, 1, 1), q, enable_gqa=True)
torch.nn.functional.scaled_dot_product_attention(q[:, :2], q, q, is_causal=True, scale=-2.0)
torch.nn.functional.scaled_dot_product_attention(q, q[:1], q[:1], torch.ones(len(q), 1, 3))
torch.nn.functional.scaled_dot_product_attention(q, q, q, torch.ones(1, 1, 3, 3))
torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=1.0)
torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=2.0)
torch.nn.functional.scaled_dot_product_attention(q, q[..., :2], q)
torch.nn.functional.scaled_dot_product_attention(q, q, q.double())
torch.nn.functional.rms_norm(x, (3,))
torch.nn.functional.rms_norm(x, (3,), v, 0.1)
torch.nn.functional.rms_norm(x * 1e-4, (3,), v)
torch.nn.functional.rms_norm(h * 0.01, (3,))
torch.nn.functional.rms_norm(b * 0.01, (3,))
torch.nn.functional.rms_norm(h, (3,), v)
torch.nn.functional.rms_norm(x, (2,))
torch.nn.functional.rms_norm(i, (3,))
torch.rms_norm(w, (3,), v)
torch.nn.RMSNorm(3)(w)
torch.nn.functional.mse_loss(x, y)
torch.nn.functional.cross_entropy(x, torch.tensor([0, 2]))
torch.nn.functional.cross_entropy(x, torch.tensor([0, 3]))
torch.nn.functional.cross_entropy(x, torch.tensor([0.0, 1.0]))
torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 2]))
torch.nn.functional.one_hot(g)
w + 1
w * i
(w > 0).requires_grad
w.round()
w.sum()
w.argmax()
torch.sin(w)
"""


@pytest.mark.parametrize("snippet", [f"r = {line}" for line in ARITHMETIC.strip().split("\n")])
def test_same_result_or_error(snippet: str) -> None:
    assert_same(snippet)
