"""Forms of calls that only some functions take: arguments by name, memory formats, views of another dtype."""

from __future__ import annotations

import pytest

from .side_by_side import assert_same

pytestmark = pytest.mark.peer

BY_NAME = """
torch.zeros(size=(2, 3))
torch.zeros(size=[2])
torch.zeros(size=3)
torch.zeros(2, size=(2,))
torch.zeros(size=(2, "a"))
torch.zeros((2,), 3)
torch.zeros(2.0)
torch.ones(size=(2,), dtype=torch.int64)
torch.empty(size=(2, 0))
torch.full(size=(2,), fill_value=1)
torch.full(3, 1)
torch.rand(size=(2,)).shape
torch.randn(size=(2,), dtype=torch.float64).dtype
torch.randint(high=5, size=(2,)).shape
x.new_zeros(size=(2,))
x.new_ones(2, requires_grad=True)
x.new_empty(size=(0, 2))
x.new_full((2,), 1, requires_grad=True)
i.new_full((2,), 1, requires_grad=True)
x.new_tensor([1, 2], requires_grad=True)
x.view(size=(3, 2))
x.reshape(shape=(3, 2))
torch.reshape(x, shape=(3, 2))
x.expand(size=(2, 2, 3))
x.expand(2, 3, implicit=False)
x.permute(dims=(1, 0))
torch.permute(x, dims=(1, 0))
x.repeat(repeats=(1, 2))
x.tile(dims=(2,))
torch.tile(x, dims=(1, 2))
x.sum_to_size(size=(1, 3))
torch.flip(x, dims=(0,))
torch.flip(x, dims=[0, -1])
x.flip(dims=(0,))
x.flip(dims=0)
x.flip((0,), dims=(0,))
x.flip((0, 0))
x.flip(5)
torch.scalar_tensor(1, requires_grad=True)
torch.scalar_tensor(1, dtype=torch.int64, requires_grad=True)
torch.scalar_tensor("a")
x.type("torch.DoubleTensor")
x.type("torch.LongTensor")
x.type("torch.BFloat16Tensor")
x.type("torch.ComplexDoubleTensor")
x.type("torch.Tensor")
d.type(torch.Tensor)
x.type("torch.FloatTensor") is x
x.type("float")
x.type("FloatTensor")
x.type(float)
x.type(3)
x.type(torch.float64, True)
w.type("torch.DoubleTensor")
"""

FORMATS = """
q.t()
torch.zeros(2, 3, 4, 5).clone(memory_format=torch.channels_last).stride()
torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last).stride()
torch.zeros(2, 3, 4, 5).double(memory_format=torch.channels_last).stride()
torch.zeros(2, 3, 4, 5).cpu(memory_format=torch.channels_last).stride()
torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last).is_contiguous()
torch.zeros(1, 2, 3, 4, 5).contiguous(memory_format=torch.channels_last_3d).stride()
torch.zeros(2, 1, 4, 4).clone(memory_format=torch.channels_last).stride()
torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()
torch.empty(2, 3, 4, memory_format=torch.channels_last)
torch.empty(2, 3, memory_format=torch.preserve_format)
torch.zeros(2, 3, memory_format=torch.contiguous_format)
x.clone(memory_format=torch.channels_last)
x.clone(memory_format=1)
x.clone(torch.contiguous_format)
x.T.clone().stride()
x.T.clone(memory_format=torch.contiguous_format).stride()
x.T.contiguous(memory_format=torch.preserve_format)
x.contiguous(memory_format=torch.preserve_format) is x
x.T.double().stride()
x.T.double(memory_format=torch.contiguous_format).stride()
q.permute(2, 0, 1)[1:3].clone().stride()
q.permute(2, 0, 1)[1:3].half().stride()
q[:, :1].expand(2, 5, 4).clone().stride()
torch.zeros_like(x.T).stride()
torch.ones_like(q.permute(2, 0, 1), dtype=torch.int64).stride()
torch.full_like(x.T, 2).stride()
torch.full_like(x.T, 2)
torch.rand_like(x.T).stride()
torch.randn_like(x.T, memory_format=torch.contiguous_format).stride()
torch.randint_like(x.T, 5).stride()
torch.empty_like(q[:, :, 1:3]).stride()
torch.tensor(x.T).stride()
x.T.flip(0).stride()
(x.T.clone() + 0).sum()
w.T.clone()
w.T.double()
w.T.contiguous()
"""


BITS = """
x.view(torch.int32)
x.view(dtype=torch.int32)
x.view(torch.float32) is x
x.view(torch.uint8)
x.view(torch.float64)
q.view(torch.float64).shape
q.view(torch.complex64)
q.view(torch.int64)
x.T.view(torch.int32)
x.T.view(torch.int16)
x.T.view(torch.float64)
q[..., ::2].view(torch.int16)
q[..., 1:3].view(torch.int64)
q[..., 2:].view(torch.int64)
q[::2].view(torch.int64).stride()
q[:, :, :2].view(torch.float64).stride()
q[:, :, 1:].view(torch.float64)
s.view(torch.int32)
s.view(torch.int16)
s.view(torch.float64)
m.view(torch.uint8)
u.view(torch.int8)
h.view(torch.int16)
b.view(torch.int16)
d.view(torch.int16)
n.view(torch.float32).view(torch.int32)
e.view(torch.int16).shape
e.view(torch.float64)
torch.zeros(0).view(torch.float64)
torch.zeros(3, 0).view(torch.float64)
torch.zeros(3, 0).view(torch.int16)
x[:1].expand(3, 3).view(torch.int16).stride()
x[:, :1].expand(2, 3).view(torch.int16)
z.view(torch.float32)
x.view("float32")
x.view(float)
q.view(float)
q.view(int)
x.view(np.int32)
x.view(torch.int32, 3)
x.view(dtype=torch.int32, size=(1,))
x.view(None)
w.view(torch.int32)
w.view(torch.float32)
w.view(torch.float16)
(w * 2).view(torch.float32).grad_fn
q[:, :, 2:].view(torch.int64).storage_offset()
q[:, :, 2:].view(torch.int16).storage_offset()
"""


@pytest.mark.parametrize("snippet", [line for line in (BY_NAME + FORMATS + BITS).splitlines() if line])
def test_a_call(snippet: str) -> None:
    assert_same(f"r = {snippet}")


BATCHED = """
r = torch.autograd.grad(w * 2, w, torch.stack([x, y]), is_grads_batched=True)
r = torch.autograd.grad((w * 2).sum(), w, torch.ones(3), is_grads_batched=True)
r = torch.autograd.grad(w * 2, w, x, is_grads_batched=True)
r = torch.autograd.grad(w * 2, w, None, is_grads_batched=True)
r = torch.autograd.grad(w * w, w, torch.stack([x, y]), create_graph=True, is_grads_batched=True)
"""


@pytest.mark.parametrize("snippet", [line for line in BATCHED.splitlines() if line])
def test_gradients_in_a_batch(snippet: str) -> None:
    assert_same(snippet)
