"""Shapes, views, indexing and joining, in PyTorch and tritensor side by side."""

from __future__ import annotations

import pytest

from .side_by_side import assert_same

pytestmark = pytest.mark.peer

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


@pytest.mark.parametrize("snippet", [f"r = {line}" for line in VIEWS.strip().split("\n")])
def test_same_result_or_error(snippet: str) -> None:
    assert_same(snippet)
