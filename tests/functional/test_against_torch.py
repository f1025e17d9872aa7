"""Small pieces of code, run with PyTorch and with tritensor side by side. Run with `pytest -m peer`.

Each snippet is evaluated twice, with `torch` standing for one library and then for the other, over the same operands.
The results must agree in value, dtype, shape and requires_grad, or both must raise the same built-in type of error.
Where they may differ, `DIFFERENT` says why.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import tritensor

pytestmark = pytest.mark.peer
reference = pytest.importorskip("torch")

# What the snippets find: made with creation functions that both libraries have.
OPERANDS = {
    "x": "torch.tensor([[1.5, -2.25, 3.0], [0.0, 4.5, -0.5]])",
    "y": "torch.tensor([[0.5, 2.0, -1.0], [3.0, -4.0, 0.25]])",
    "w": "torch.tensor([[1.5, -2.25, 3.0], [0.5, 4.5, -0.5]], requires_grad=True)",
    "d": "torch.tensor([1.25, -2.5, 0.5], dtype=torch.float64)",
    "h": "torch.tensor([1.5, -2.0, 0.25], dtype=torch.float16)",
    "b": "torch.tensor([1.5, -2.0, 0.25], dtype=torch.bfloat16)",
    "i": "torch.tensor([[3, -7, 2], [5, 4, -1]])",
    "n": "torch.tensor([1, 2, 3], dtype=torch.int32)",
    "u": "torch.tensor([250, 3, 7], dtype=torch.uint8)",
    "m": "torch.tensor([[True, False, True], [False, False, True]])",
    "v": "torch.tensor([1.0, 2.0, 4.0])",
    "s": "torch.tensor(2.5)",
    "k": "torch.tensor(3)",
    "e": "torch.zeros(0, 3)",
    "q": "torch.arange(24.0).reshape(2, 3, 4)",
    "z": "torch.tensor([1 + 2j, -3j])",
    "o": "torch.tensor([float('nan'), float('inf'), -float('inf'), 0.0, 1.0])",
    "g": "torch.tensor([0, 2, 1])",
}

CREATION = """
torch.tensor(1)
torch.tensor(1.0)
torch.tensor(True)
torch.tensor(1j)
torch.tensor([])
torch.tensor([[]])
torch.tensor([1, 2.5])
torch.tensor([True, 2])
torch.tensor([True, 2.5])
torch.tensor([1, 2j])
torch.tensor((1, 2, 3))
torch.tensor([[1, 2], (3, 4)])
torch.tensor(range(3))
torch.tensor([1, 2], dtype=torch.float16)
torch.tensor([1.7, -2.7], dtype=torch.int64)
torch.tensor([0.0, 2.0], dtype=torch.bool)
torch.tensor([1.1], dtype=torch.float64)
torch.tensor([s, s])
torch.tensor([k, k])
torch.tensor(s)
torch.tensor(w.detach())
torch.tensor([1.0], requires_grad=True)
torch.tensor([1], requires_grad=True)
torch.tensor([[1, 2], [3]])
torch.tensor([[1, 2], 3])
torch.tensor([1, [2]])
torch.tensor("abc")
torch.tensor(["a", "b"])
torch.tensor(None)
torch.tensor([None])
torch.tensor([1, None])
torch.tensor({})
torch.tensor({1: 2})
torch.tensor(object())
torch.tensor(2**63)
torch.tensor([2**63])
torch.tensor(-2**63)
torch.tensor(2**64)
torch.tensor(300, dtype=torch.uint8)
torch.tensor([300], dtype=torch.uint8)
torch.tensor(-1, dtype=torch.uint8)
torch.tensor(1, dtype="float32")
torch.tensor(1, dtype=float)
torch.tensor(1, dtype=int)
torch.tensor(1.5, dtype=bool)
torch.tensor(1, device="gpu")
torch.tensor(1, 2)
torch.tensor(np.float32(1.5))
torch.tensor(np.float64(1.5))
torch.tensor(np.int32(3))
torch.tensor(np.bool_(True))
torch.tensor([np.float64(1.5)])
torch.tensor([np.float32(1.5)])
torch.tensor([np.int32(1), np.int32(2)])
torch.tensor(np.arange(3))
torch.tensor(np.arange(3, dtype=np.int8))
torch.tensor(np.arange(6.0)[::-1].copy())
torch.tensor(np.arange(6.0)[::2])
torch.tensor([np.arange(2), np.arange(2)])
torch.tensor(np.array(["a"]))
torch.tensor(np.array([object()]))
torch.as_tensor([1, 2])
torch.as_tensor([1.5])
torch.as_tensor(np.arange(3.0))
torch.as_tensor(np.arange(3.0), dtype=torch.float32)
torch.as_tensor(x)
torch.as_tensor(3)
torch.from_numpy(np.arange(3))
torch.from_numpy(np.float32(3))
torch.from_numpy([1])
torch.from_numpy(np.arange(3)[::-1])
torch.from_numpy(np.array(["a"]))
torch.from_numpy(np.arange(3, dtype=np.uint16))
torch.from_numpy(np.zeros((0, 3)))
torch.zeros(2, 3)
torch.zeros((2, 3))
torch.zeros([2, 3])
torch.zeros(())
torch.zeros([])
torch.zeros(0)
torch.zeros(2, 0, 3)
torch.zeros(2, dtype=torch.int32)
torch.zeros(2, dtype=torch.bool)
torch.zeros(-1)
torch.zeros(2, -1)
torch.zeros(2.0)
torch.zeros("2")
torch.zeros(None)
torch.zeros(x.shape)
torch.zeros(*x.shape)
torch.zeros(torch.Size([2, 1]))
torch.zeros(k)
torch.zeros(2, requires_grad=True)
torch.zeros(2, dtype=torch.int64, requires_grad=True)
torch.ones(2, 3)
torch.ones(3, dtype=torch.float64)
torch.ones(3, dtype=torch.complex64)
torch.ones(2, dtype=torch.uint8)
torch.ones((2,), device="cpu")
torch.full((2,), 3)
torch.full((2,), 3.0)
torch.full((2,), True)
torch.full((2,), 1j)
torch.full((2,), 3, dtype=torch.float16)
torch.full((), 7)
torch.full((2,), 2.7, dtype=torch.int32)
torch.full((2, 2), s)
torch.full((2,), float("nan"))
torch.full(2, 3)
torch.full((-2,), 3)
torch.full((2,), "a")
torch.full((2,), 300, dtype=torch.uint8)
torch.full((2,), -1, dtype=torch.uint8)
torch.full((2,), float("nan"), dtype=torch.int32)
torch.tensor([1, "a"])
torch.tensor([[1], "a"])
torch.tensor([1, {}])
torch.tensor([1, []])
torch.tensor([[], [1]])
torch.tensor([[[1], [2]], [[1], [2, 3]]])
torch.tensor([np.arange(2), np.arange(3)])
torch.tensor({1, 2})
torch.tensor([10**400])
torch.tensor([1e400])
torch.tensor([v, v])
torch.tensor([1e10], dtype=torch.int32)
torch.tensor([float("nan")], dtype=torch.int32)
torch.tensor([-256], dtype=torch.uint8)
torch.tensor([-255], dtype=torch.uint8)
torch.tensor([-1.5], dtype=torch.uint8)
torch.tensor([2**63], dtype=torch.uint64)
torch.tensor([2**63], dtype=torch.float32)
torch.tensor([1j], dtype=torch.float32)
torch.tensor([70000.0], dtype=torch.float16)
torch.tensor(np.array([300]), dtype=torch.uint8)
torch.full((2,), None)
torch.empty(2, 0)
torch.empty(0)
torch.empty(3).shape
torch.empty((2, 3)).dtype
torch.arange(5)
torch.arange(5.0)
torch.arange(1, 5)
torch.arange(1, 5, 2)
torch.arange(5, 1, -1)
torch.arange(0, 1, 0.25)
torch.arange(0.0, 1.0, 0.1)
torch.arange(1, 2, 0.1)
torch.arange(5, dtype=torch.float32)
torch.arange(5, dtype=torch.int32)
torch.arange(0)
torch.arange(3, 3)
torch.arange(5, 1)
torch.arange(1, 5, -1)
torch.arange(1, 5, 0)
torch.arange(-3)
torch.arange(0, 3, requires_grad=True)
torch.arange(0., 3., requires_grad=True)
torch.arange(float("nan"))
torch.arange(float("inf"))
torch.arange("a")
torch.arange(start=1, end=4)
torch.arange(end=4)
torch.arange(k)
torch.arange(2.5)
torch.arange(0, 10, 3, dtype=torch.float16)
torch.linspace(0, 1, 5)
torch.linspace(0, 10, 3)
torch.linspace(1, 1, 1)
torch.linspace(5, 1, 3)
torch.linspace(0, 1, 0)
torch.linspace(0, 1, 1)
torch.linspace(0, 1, -1)
torch.linspace(0, 10, 5, dtype=torch.int64)
torch.linspace(0, 10, 4, dtype=torch.int64)
torch.linspace(0, 1, 3, dtype=torch.float64)
torch.linspace(-1, 1, steps=4)
torch.logspace(0, 2, 3)
torch.logspace(0, 2, 3, base=2)
torch.eye(3)
torch.eye(2, 3)
torch.eye(3, 2, dtype=torch.int32)
torch.eye(0)
torch.eye(-1)
torch.eye(2, dtype=torch.bool)
torch.zeros_like(x)
torch.zeros_like(i)
torch.zeros_like(m)
torch.zeros_like(x, dtype=torch.int8)
torch.zeros_like(w)
torch.zeros_like(w, requires_grad=True)
torch.zeros_like([1])
torch.ones_like(i)
torch.ones_like(e)
torch.ones_like(s)
torch.full_like(x, 2)
torch.full_like(i, 2.7)
torch.full_like(m, 1)
torch.empty_like(e)
torch.scalar_tensor(2)
torch.scalar_tensor(2, dtype=torch.int64)
x.new_zeros(2)
x.new_zeros((2, 1))
i.new_ones(2, 2)
i.new_full((2,), 7)
i.new_full((2,), 7.5)
h.new_tensor([1, 2])
i.new_tensor([1.7])
m.new_empty(0)
x.new_zeros(-1)
torch.Tensor([1, 2])
torch.Tensor([[1, 2], [3, 4]])
torch.Tensor(2, 0)
torch.Tensor()
torch.Tensor((1, 2))
torch.Tensor(1.5)
torch.Tensor("a")
torch.Tensor(v)
torch.Tensor(i)
torch.Tensor(np.arange(3.0))
torch.Tensor(torch.Size([0, 2]))
"""

VIEWS = """
x.view(3, 2)
x.view(-1)
x.view((6,))
x.view(-1, 2)
x.view(2, -1, 1)
x.view(4)
x.view(-1, -1)
x.view(-2, 3)
x.view(5, -1)
x.view()
s.view(1)
s.view(())
s.view(1, 1)
s.view(-1)
e.view(-1)
e.view(0)
e.view(3, 0)
e.view(-1, 0)
x.t().view(6)
x.t().view(3, 2)
x.view(2.0, 3)
x.view(None)
x.view("a")
x.view(torch.int32)
x.view(torch.uint8)
x.view(torch.float16)
x.reshape(3, 2)
x.reshape(-1)
x.reshape((3, -1))
x.reshape([6])
x.t().reshape(6)
x.reshape(7)
x.reshape(-1, 4)
x.reshape(0, -1)
e.reshape(-1)
e.reshape(0, 5)
e.reshape(-1, 0)
s.reshape(())
s.reshape(1, 1)
x.reshape(torch.Size([6]))
x.reshape(-3, 2)
x.reshape(k, 2)
x.reshape()
s.reshape()
torch.reshape(x, (3, 2))
torch.reshape(x, (-1,))
q.flatten()
q.flatten(1)
q.flatten(0, 1)
q.flatten(1, 1)
q.flatten(-2)
q.flatten(2, 1)
q.flatten(5)
s.flatten()
e.flatten()
torch.flatten(q, start_dim=1, end_dim=2)
q.unflatten(2, (2, 2))
q.unflatten(-1, (-1, 2))
q.unflatten(2, (3, 2))
x.permute(1, 0)
x.permute((1, 0))
x.permute(-1, 0)
x.permute(0)
x.permute(0, 0)
x.permute(0, 2)
x.permute(0, 1, 2)
s.permute()
s.permute(())
torch.permute(q, (2, 0, 1))
q.permute(2, 0, 1).stride()
x.transpose(0, 1)
q.transpose(-1, 0)
q.transpose(0, 3)
s.transpose(0, -1)
s.transpose(0, 1)
x.t()
s.t()
v.t()
q.t()
x.T
x.mT
q.mT
v.mT
q.swapaxes(0, 1)
q.swapdims(0, 2)
q.movedim(0, 2)
q.movedim((0, 1), (2, 0))
q.movedim((0, 0), (1, 2))
q.movedim(0, (1, 2))
q.moveaxis(0, -1)
v.expand(2, 3)
v.expand(2, -1)
v.expand(-1)
v.expand(-1, 3)
v.expand(4)
v.expand(2)
v.expand(2, 2)
v.expand(0, 3)
x.expand(3)
s.expand(2, 2)
s.expand(())
v.expand((2, 3))
v.expand(2, 3).stride()
v.expand_as(x)
x.expand_as(v)
torch.broadcast_to(v, (2, 3))
v.broadcast_to((2, 3))
torch.broadcast_tensors(v, s)
torch.broadcast_tensors(v, torch.zeros(2, 1))
torch.broadcast_tensors(v, torch.zeros(2))
x.unsqueeze(0)
x.unsqueeze(-1)
x.unsqueeze(2)
x.unsqueeze(3)
x.unsqueeze(-4)
s.unsqueeze(0)
s.unsqueeze(1)
x.unsqueeze(0).squeeze()
x.unsqueeze(0).squeeze(0)
x.squeeze(0)
x.squeeze(5)
x.unsqueeze(0).unsqueeze(0).squeeze((0, 1))
x.squeeze((0, 0))
s.squeeze()
s.squeeze(0)
s.squeeze(1)
s.squeeze(-2)
torch.squeeze(x, 0)
torch.unsqueeze(x, dim=1)
x.narrow(1, 0, 2)
x.narrow(1, 1, 2)
x.narrow(1, -2, 1)
x.narrow(1, 2, 2)
x.narrow(1, 4, 0)
x.narrow(1, 3, 0)
x.narrow(1, -4, 1)
x.narrow(2, 0, 1)
x.narrow(1, 0, -1)
s.narrow(0, 0, 1)
x.select(0, 1)
x.select(1, -1)
x.select(0, 2)
x.select(0, -3)
x.select(2, 0)
s.select(0, 0)
torch.select(x, 1, 0)
x.split(1)
x.split(2, 1)
x.split(2, dim=-1)
x.split([1, 2], 1)
x.split([1, 1], 1)
x.split([3, 0], 1)
x.split([4, -1], 1)
x.split(0)
x.split(-1)
x.split(5)
e.split(2)
e.split(0)
s.split(1)
torch.split(v, 2)
x.chunk(2)
x.chunk(2, 1)
x.chunk(5, 1)
x.chunk(0)
x.chunk(-1)
e.chunk(2)
torch.arange(10).chunk(4)
torch.arange(5).chunk(4)
x.unbind()
x.unbind(1)
x.unbind(-1)
e.unbind()
s.unbind()
x.unbind(2)
torch.unbind(x, dim=1)
x.view_as(torch.zeros(3, 2))
x.view_as(torch.zeros(3))
x.reshape_as(torch.zeros(6))
x.is_contiguous()
x.t().is_contiguous()
x[:, 1].is_contiguous()
x.t().contiguous().is_contiguous()
x.stride()
x.stride(0)
x.stride(2)
x.t().stride()
q[:, ::2].stride()
x.storage_offset()
x[1].storage_offset()
x.T[1:].storage_offset()
x[1, 1:].storage_offset()
x[0]
x[-1]
x[1, 2]
x[2]
x[-3]
x[0, 3]
x[0, 0, 0]
x[:]
x[...]
x[..., 0]
x[0, ...]
x[..., ...]
x[None]
x[:, None]
x[..., None]
x[None, ..., None]
x[1:]
x[:-1]
x[:, ::2]
x[:, 5:]
x[:, -10:2]
x[:, 2:1]
x[::-1]
x[::0]
x[:, 1:3:1]
x[0.0]
x["a"]
x[1.0:]
x[k]
x[True]
x[False]
x[None, 0, :, None]
s[...]
s[None]
s[0]
s[:]
s[()]
x[()]
e[0]
e[:, 0]
e[0:0]
x[torch.tensor(1)]
x[torch.tensor(1):]
x[np.int64(1)]
x[np.int64(0):np.int64(1)]
x[(0, 1)]
x[[0, 1]]
x[[0, 1], [1, 2]]
x[:, g]
x[m]
x[m.t()]
x[torch.tensor([0, 5])]
x[torch.tensor([0.0])]
x[u]
x[-1:, -1]
q[0, :, 1:3]
q[..., 1, :]
q[:, [0, 2]]
q[torch.tensor([0, 1]), :, torch.tensor([1, 2])]
w[0]
w.view(6)
w.t()
w[:, 1:]
w.expand(2, 2, 3)
w.unsqueeze(0)
w.detach()
w[0].grad_fn.name()
w.view(6).is_leaf
w.is_leaf
"""

METHODS = """
x.shape
x.size()
x.size(0)
x.size(-1)
x.size(2)
x.size(dim=1)
x.dim()
x.ndim
x.ndimension()
x.numel()
x.nelement()
x.element_size()
x.itemsize
x.nbytes
x.dtype
x.device
x.is_cuda
x.is_floating_point()
i.is_floating_point()
z.is_complex()
u.is_signed()
x.requires_grad
w.requires_grad
x.grad
x.grad_fn
x.get_device()
x.type()
i.type()
m.type()
x.type(torch.float64)
x.is_pinned()
len(x)
len(s)
len(e)
list(v)
list(s)
bool(s)
bool(x)
bool(e)
bool(torch.tensor(0.0))
int(s)
int(k)
float(k)
float(x)
complex(s)
int(torch.tensor([2.5]))
[10, 20, 30, 40][k]
[10, 20, 30][s]
range(k)
k.__index__()
s.item()
k.item()
torch.tensor([[3]]).item()
x.item()
e.item()
m[0, 0].item()
x.tolist()
s.tolist()
i.tolist()
e.tolist()
h.tolist()
2.5 in x
7 in x
"a" in x
f"{s:.3f}"
f"{k:d}"
hash(x) == hash(x)
x.detach().requires_grad
w.detach().requires_grad
w.clone().requires_grad
x.clone()
x.contiguous() is x
x.to(torch.float64)
x.to("cpu") is x
x.to(torch.float32) is x
x.to(i)
x.to("cpu", torch.int32)
x.to([1])
x.to("gpu")
x.float() is x
x.double()
x.half()
x.bfloat16()
x.int()
x.long()
x.short()
x.char()
x.abs().byte()
x.bool()
i.float()
m.int()
m.float()
w.double().requires_grad
w.int().requires_grad
x.type_as(i)
x.cpu() is x
x.numpy().tolist()
w.numpy()
w.detach().numpy().tolist()
w.numpy(force=True).tolist()
np.asarray(x).tolist()
np.asarray(x, dtype=np.float64).dtype.name
x.requires_grad_()
i.requires_grad_()
(w * 2).requires_grad_(False)
(w * 2).requires_grad
(w * 2).is_leaf
w.retain_grad()
x.retain_grad()
x.register_hook(print)
x.data.requires_grad
w.data.requires_grad
x.backward()
w.backward()
(w * 2).backward()
(i * 2).sum().backward()
torch.is_tensor(x)
torch.is_tensor(1)
x == y
x != y
x < y
x <= y
x > y
x >= y
x == 1.5
x == i
x == "a"
x == None
x < "a"
m == 1
i > 2.5
x.equal(x.clone())
torch.equal(x, y)
torch.equal(i, i.float())
torch.equal(x, v)
torch.allclose(x, x + 1e-9)
torch.isclose(x, y)
torch.isnan(o)
torch.isinf(o)
torch.isfinite(o)
o.isnan()
torch.isnan(i)
torch.is_floating_point(x)
torch.numel(x)
"""

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

REDUCTIONS = """
x.sum()
x.sum(0)
x.sum(1, keepdim=True)
x.sum((0, 1))
x.sum([1])
x.sum(dim=-1)
x.sum(2)
x.sum((0, 0))
x.sum(())
x.sum(dtype=torch.float64)
i.sum()
i.sum(dtype=torch.float32)
m.sum()
u.sum()
n.sum()
h.sum()
e.sum()
e.sum(0)
e.sum(1)
s.sum()
s.sum(0)
s.sum(1)
torch.sum(x, dim=1)
torch.sum(x, 1, True)
x.prod()
x.prod(1)
i.prod()
x.mean()
x.mean(0)
x.mean((0, 1), keepdim=True)
i.mean()
i.mean(dtype=torch.float32)
e.mean()
h.mean()
x.var()
x.var(0)
x.var(1, unbiased=False)
x.var(dim=1, correction=0)
x.std()
x.std(1, keepdim=True)
i.std()
s.var()
x.max()
x.max(1)
x.max(1)[1]
x.max(1).values
x.max(0, keepdim=True).indices
x.max(dim=1)
x.min()
x.min(1)
x.max(y)
x.min(y)
e.max()
e.max(0)
e.max(1)
e.min()
i.max()
m.max()
o.max()
o.min()
x.amax()
x.amax(1)
x.amax((0, 1))
x.amin(0, keepdim=True)
e.amax(0)
x.argmax()
x.argmax(1)
x.argmax(dim=0, keepdim=True)
x.argmin(1)
e.argmax()
o.argmax()
s.argmax()
m.argmax()
x.any()
x.any(1)
x.all()
x.all(0)
x.all(dim=1, keepdim=True)
i.any()
m.all(1)
u.any()
u.all()
e.any()
e.all()
x.logsumexp(1)
torch.logsumexp(x, 0, keepdim=True)
x.norm()
x.norm(1)
x.norm(2, 1)
x.norm(float("inf"))
x.norm(dim=1)
i.norm()
x.cumsum(0)
x.cumsum(1)
x.cumsum(2)
x.cumsum(1, dtype=torch.float64)
i.cumsum(0)
m.cumsum(1)
x.cumsum()
torch.count_nonzero(x)
torch.var_mean(x, 1)
x @ y
x @ y.t()
x @ v
v @ v
v @ x.t()
s @ v
x @ i
i @ i.t()
d @ v
q @ q.transpose(1, 2)
x.matmul(y.t())
x.mm(y.t())
x.mm(v)
torch.matmul(q, torch.ones(4))
torch.mm(x, y)
torch.bmm(q, q.transpose(1, 2))
torch.bmm(x, y)
torch.dot(v, v)
torch.dot(x, y)
torch.dot(v, d)
torch.mv(x, v)
torch.outer(v, v)
m @ m.t()
torch.nn.functional.linear(x, y)
torch.nn.functional.linear(x, y, torch.ones(2))
torch.nn.functional.linear(x, y, torch.ones(3))
torch.cat([x, y])
torch.cat([x, y], 1)
torch.cat([x, y], dim=-1)
torch.cat([x, i])
torch.cat([x, v])
torch.cat([x, e])
torch.cat([torch.zeros(0), x])
torch.cat([])
torch.cat([x, y], 2)
torch.cat((x,))
torch.cat([s, s])
torch.cat([x, 1])
torch.concat([x, y])
torch.stack([x, y])
torch.stack([x, y], -1)
torch.stack([x, y], 2)
torch.stack([x, y], 3)
torch.stack([x, v])
torch.stack([])
torch.stack([s, s])
torch.stack([i, x])
torch.nn.functional.embedding(torch.tensor([[0, 1], [1, 1]]), x)
torch.nn.functional.embedding(torch.tensor([[0, 1], [1, 1]]), x, 1)
torch.nn.functional.embedding(torch.tensor([0, 1, 1]), x, None, 1.5)
torch.nn.functional.embedding(torch.tensor([0, 1, 1]), x, None, 1.5, 1.0)
torch.nn.functional.embedding(torch.tensor([0, 1, 1]), x, None, 1.5, float("inf"))
torch.nn.functional.embedding(torch.tensor([0, 1, 1]), x, None, None, 2.0, True)
torch.nn.functional.embedding(torch.tensor([0]), i.reshape(2, -1), max_norm=1.0)
x.gather(1, torch.tensor([[0, 2], [1, 1]]))
x.gather(1, torch.tensor([[3]]))
x.gather(1, torch.tensor([0]))
x.gather(1, torch.tensor([[0.0]]))
torch.gather(x, 0, torch.tensor([[0, 1, 0]]))
x.index_select(1, g)
x.index_select(1, torch.tensor([3]))
x.index_select(2, g)
torch.index_select(x, 0, torch.tensor([1]))
x.masked_fill(m, 7)
x.masked_fill(m, 7.5)
i.masked_fill(m, 7.5)
i.masked_fill(m, 7)
x.masked_fill(i, 7)
x.masked_fill(m, v)
x.masked_select(m)
torch.zeros(2, 3).scatter_add(1, torch.tensor([[0, 2]]), torch.ones(1, 2))
torch.zeros(3).scatter_add(0, g, v)
torch.zeros(3).scatter_add(0, torch.tensor([3]), v)
torch.zeros(3).scatter_add(0, g, i[0])
torch.zeros(3).scatter(0, g, v)
torch.zeros(3).scatter(0, g, 2.0)
v.sort()
v.sort(descending=True)
x.argsort(1)
x.topk(2)
x.topk(4)
x.flip(0)
x.flip((0, 1))
x.roll(1, 0)
v.repeat(2)
v.repeat(2, 2)
x.repeat(2)
x.tile((2,))
v.repeat_interleave(2)
x.tril()
x.triu(1)
x.nonzero()
torch.nonzero(m)
torch.take(x, g)
x.argwhere()
"""

# Statements; the value compared is what `r` is afterwards.
STATEMENTS = """
r = x; r += 1
r = x; r *= y
r = x; r -= v
r = v; r += x
r = x; r /= 2
r = i; r /= 2
r = i; r += 1.5
r = i; r *= 2
r = i; r //= 2
r = x; r **= 2
r = i; r += x
r = u; r += 10
r = m; r += 1
r = m; r &= m
r = h; r += 1.5
r = h; r += d
r = s; r += 1
r = x; r += "a"
r = x; r.add_(y, alpha=2)
r = x; r.mul_(2).sub_(1)
r = x; r.clamp_(0, 1)
r = x; r.zero_()
r = x; r.fill_(3)
r = x; r.fill_(s)
r = x; r.fill_(v)
r = u; r.fill_(300)
r = u; r.fill_(-1)
r = i; r.fill_(2.7)
r = x; r.copy_(y)
r = x; r.copy_(v)
r = x; r.copy_(i)
r = v; r.copy_(x)
r = i; r.copy_(x)
r = x; r.copy_([1])
r = x; r.exp_()
r = i; r.exp_()
r = x; r.relu_()
r = x; r.neg_()
r = x; r.sqrt_()
r = x; r[0] = 1
r = x; r[0] = v
r = x; r[:, 1] = torch.tensor([7.0, 8.0])
r = x; r[:, 1] = v
r = x; r[0] = x
r = x; r[m] = 0
r = x; r[m] = torch.tensor([1.0, 2.0, 3.0])
r = x; r[m] = torch.tensor([1.0, 2.0])
r = x; r[g[:2] * 0] = 5
r = x; r[:, g] = y
r = x; r[0] = "a"
r = x; r[0] = [1, 2, 3]
r = x; r[2] = 1
r = x; r[5:] = 1
r = x; r[...] = 4
r = s; r[...] = 4
r = s; r[()] = 4
r = i; r[0] = 2.7
r = i; r[0] = True
r = x; r[0, 0] = k
r = x; r[None] = 1
r = x; r[:, ::2] = 0
r = x; r[True] = 0
r = x; r[torch.tensor([0, 1]), torch.tensor([0, 5])] = 1
r = v; r.expand(2, 3).add_(1)
r = x; r.t()[0] = 9
r = x; r.view(-1)[::2] = 9
r = x; r.masked_fill_(m, -1)
r = w; r += 1
r = w; r[0] = 1
r = w; r.view(6)[0] = 1
r = w; r.zero_()
r = w; r.detach().zero_()
r = w * 1; r += 1
r = w * 1; r[0] = 5
r = x; r += w
r = x; r[0] = w[0]
r = x; r.requires_grad = True
r = i; r.requires_grad = True
r = w * 1; r.requires_grad = False
r = x; r.grad = y
r = x; r.grad = v
r = x; r.grad = i
r = x; r.grad = 1
r = x; r.data = y * 2
r = x; r.data = 3
r = x; r.shape = (6,)
r = x; r.dtype = torch.float64
r = (w * 1); r.detach_()
r = (w * 1)[0]; r.detach_()
w.sum().backward(); r = w.grad
(w * w).sum().backward(); r = w.grad
w.sum().backward(); w.sum().backward(); r = w.grad
(w.t() @ w).sum().backward(); r = w.grad
w[0].sum().backward(); r = w.grad
w.max().backward(); r = w.grad
w.amax(1).sum().backward(); r = w.grad
w.abs().sum().backward(); r = w.grad
w.clamp(0, 3).sum().backward(); r = w.grad
w.relu().sum().backward(); r = w.grad
w.std().backward(); r = w.grad
w.softmax(1)[:, 0].sum().backward(); r = w.grad
w.prod().backward(); r = w.grad
w.norm().backward(); r = w.grad
w.expand(4, 2, 3).sum().backward(); r = w.grad
w.double().sum().backward(); r = w.grad
w.mean((0, 1)).backward(); r = w.grad
w[m].sum().backward(); r = w.grad
w[:, g].cumsum(1).sum().backward(); r = w.grad
torch.where(m, w, 2 * w).sum().backward(); r = w.grad
torch.cat([w, w * 2]).sum().backward(); r = w.grad
torch.stack([w, w]).mean().backward(); r = w.grad
(w / 2).backward(x); r = w.grad
(w / 2).backward(v); r = w.grad
t = w.sum(); t.backward(); t.backward(); r = 0
t = w.sum(); t.backward(retain_graph=True); t.backward(); r = w.grad
t = w * w; t.mul_(2); t.sum().backward(); r = w.grad
t = w.exp(); t.mul_(2); t.sum().backward(); r = w.grad
t = w * 2; t.retain_grad(); t.sum().backward(); r = t.grad
r = torch.autograd.grad(w.sum(), w)
r = torch.autograd.grad(w.sum(), x)
r = torch.autograd.grad(w, w)
r = torch.autograd.grad((w ** 3).sum(), w, create_graph=True)[0]
t = torch.autograd.grad((w ** 3).sum(), w, create_graph=True)[0]; r = torch.autograd.grad(t.sum(), w)[0]
with torch.no_grad(): r = w * 2
with torch.no_grad(): w += 1; r = w
r = torch.no_grad()(lambda: w * 2)()
torch.set_default_dtype(torch.float64); r = [torch.tensor(1.5), torch.zeros(1), torch.arange(2.0), k / 2]
torch.set_default_dtype(torch.float16); r = torch.tensor([1.5])
torch.set_default_dtype(torch.int32); r = 0
torch.set_default_dtype("float32"); r = 0
a, c = x; r = c
r = [row.sum().item() for row in x]
r = sum(v)
r = max(v)
r = sorted(v.tolist())
import copy; r = copy.copy(x)
import copy; r = copy.deepcopy(w)
import copy; r = copy.deepcopy(w * 2)
import pickle; r = pickle.loads(pickle.dumps(x))
r = x.shape + (1,)
r = x.shape[1:]
r = x.shape.numel()
r = x.shape == (2, 3)
r = torch.Size([2, 3]) + torch.Size([1])
r = torch.Size([2]) * 2
r = torch.promote_types(torch.int8, torch.uint8)
r = torch.promote_types(torch.uint16, torch.int8)
r = torch.result_type(i, 1.5)
r = torch.can_cast(torch.float32, torch.int32)
r = torch.can_cast(torch.int32, torch.float32)
r = torch.float32 == torch.float
r = torch.long.is_signed
r = torch.float32.itemsize
r = torch.iinfo(torch.uint8).max
r = torch.iinfo(torch.float32)
r = torch.finfo(torch.int32)
r = torch.finfo(torch.float16).max
r = torch.finfo().eps
r = torch.finfo(torch.float32).resolution
r = torch.iinfo(torch.int64).min
r = repr(torch.iinfo(torch.int8))
r = repr(torch.finfo(torch.float16))
r = repr(torch.finfo(torch.bfloat16))
r = repr(torch.finfo(torch.float64))
r = repr(torch.finfo(torch.float32))
r = torch.get_default_dtype()
r = torch.device("cuda:1")
r = str(torch.device("cuda", 1))
r = repr(torch.device("cpu"))
r = repr(torch.device("cuda:0"))
r = torch.device("cuda").index
r = torch.device(1)
r = torch.device("cpu", -1)
r = torch.device("cuda:-1")
r = torch.device("cuda:01")
r = torch.device("cuda:")
r = torch.device("cuda:x")
r = torch.device("gpu")
r = torch.device("CUDA:0")
r = torch.device("")
r = torch.device("cuda:0", 1)
r = torch.device(type="cuda", index=1)
r = torch.device(torch.device("cuda:1"))
r = torch.device(None)
r = torch.device(1.5)
r = torch.device([])
r = torch.device()
r = torch.device("cuda") == torch.device("cuda:0")
r = torch.device("cuda:1") == "cuda:1"
r = torch.device("cuda:1") in {torch.device("cuda", 1)}
r = torch.device(-1)
"""

# Snippet -> why the libraries may differ there.
NO_SIZES = "no sizes are the empty shape, so that x.reshape(*shape) works for every shape"
BIT_CAST = "view(dtype) is not offered"
KERNEL = "PyTorch's NotImplementedError comes from its dispatcher; a DtypeError is a RuntimeError, as that one is"
DIFFERENT: dict[str, str] = {
    "r = x.view()": NO_SIZES,
    "r = x.reshape()": NO_SIZES,
    "r = s.reshape()": NO_SIZES,
    "r = s.permute()": NO_SIZES,
    "r = x.view(torch.int32)": BIT_CAST,
    "r = x.view(torch.uint8)": BIT_CAST,
    "r = x.view(torch.float16)": BIT_CAST,
    "r = q.movedim(0, (1, 2))": "one message for all dims that do not match, the one PyTorch has for two tuples",
    "r = x[..., ...]": "two ellipses mean nothing; NumPy and the array API refuse them",
    'r = x["a"]': "the IndexError that PyTorch raises for every other bad index, not the accident of this one",
    "r = w[0].grad_fn.name()": "one view operator for integers and slices",
    "r = x & y": KERNEL,
    "r = torch.bitwise_not(x)": KERNEL,
    "r = torch.softmax(i, 1)": KERNEL,
    "r = torch.nn.functional.rms_norm(i, (3,))": KERNEL,
    "r = m @ m.t()": KERNEL,
    "t = w.sum(); t.backward(); t.backward(); r = 0": "a graph is freed as a whole, whatever its nodes saved",
    "r = torch.device(1)": "a device can be named where there is none; PyTorch does that for 'cuda:1' too",
    "r = torch.tensor([v, v])": "tensors of one shape are stacked, as arrays are",
    "r = torch.tensor([[], [1]])": "PyTorch looks at the first row only and drops the number",
}

SNIPPETS = [
    *(
        f"r = {line}"
        for text in (CREATION, VIEWS, METHODS, ARITHMETIC, REDUCTIONS)
        for line in text.strip().split("\n")
    ),
    *STATEMENTS.strip().split("\n"),
]
KINDS = (
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    ZeroDivisionError,
    NotImplementedError,
    AssertionError,
    RuntimeError,
)


def run(library: Any, snippet: str) -> Any:
    """What the snippet makes of fresh operands, or the error."""
    scope: dict[str, Any] = {"torch": library, "np": np}
    for name, text in OPERANDS.items():
        scope[name] = eval(text, scope)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(snippet, scope)
    except Exception as error:
        return error
    finally:
        library.set_default_dtype(library.float32)
    return scope["r"]


def facts(value: Any) -> Any:
    """A value of either library in terms that can be compared."""
    if isinstance(value, (tritensor.Tensor, reference.Tensor)):
        flat = value.detach().reshape(-1).tolist()
        return ("tensor", name(value.dtype), tuple(value.shape), value.requires_grad, flat)
    if isinstance(value, (tritensor.dtype, reference.dtype)):
        return name(value)
    if isinstance(value, (tritensor.device, reference.device)):
        return (value.type, value.index)
    if isinstance(value, str):
        return value.replace("tritensor.", "torch.")
    if isinstance(value, (tuple, list)):
        return [facts(part) for part in value]
    if isinstance(value, (bool, int, float, complex, type(None), range)):
        return value
    return type(value).__name__


def name(dtype: Any) -> str:
    return str(dtype).split(".")[1]


def alike(ours: Any, theirs: Any, tolerance: float) -> bool:
    """Equal, numbers within a tolerance."""
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(alike(a, b, tolerance) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, float) and isinstance(theirs, float):
        both_nan = math.isnan(ours) and math.isnan(theirs)
        return both_nan or ours == theirs or math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(ours, complex) and isinstance(theirs, complex):
        return abs(ours - theirs) <= tolerance
    return type(ours) is type(theirs) and ours == theirs


def kind(error: Exception) -> str:
    return next((entry.__name__ for entry in KINDS if isinstance(error, entry)), type(error).__name__)


def difference(snippet: str) -> str | None:
    """What differs between the libraries, None if nothing does."""
    ours, theirs = run(tritensor, snippet), run(reference, snippet)
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        if isinstance(ours, Exception) and isinstance(theirs, Exception):
            same = isinstance(ours, next((entry for entry in KINDS if isinstance(theirs, entry)), type(theirs)))
            if same:
                return None
        return f"{describe(ours)}\n    torch: {describe(theirs)}"
    first, second = facts(ours), facts(theirs)
    half = "float16" in str(first) or "bfloat16" in str(first)
    return None if alike(first, second, 1e-3 if half else 2e-6) else f"{first}\n    torch: {second}"


def describe(result: Any) -> str:
    if isinstance(result, Exception):
        return f"{kind(result)}: {str(result).splitlines()[0] if str(result) else ''}"
    return str(facts(result))


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_same_result_or_error(snippet: str) -> None:
    found = difference(snippet)
    if snippet in DIFFERENT:
        assert found is not None, f"no longer different; take it out of DIFFERENT ({DIFFERENT[snippet]})"
    else:
        assert found is None, found
