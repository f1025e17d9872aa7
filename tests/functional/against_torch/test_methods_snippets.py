"""What a tensor says of itself and becomes: sizes, conversions, dtypes, in PyTorch and tritensor side by side."""

from __future__ import annotations

import pytest

from .side_by_side import assert_same

pytestmark = pytest.mark.peer

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


@pytest.mark.parametrize("snippet", [f"r = {line}" for line in METHODS.strip().split("\n")])
def test_same_result_or_error(snippet: str) -> None:
    assert_same(snippet)
