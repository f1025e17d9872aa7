"""Changes in place, assignment, gradients and modes, in PyTorch and tritensor side by side."""

from __future__ import annotations

import pytest

from .side_by_side import assert_same

pytestmark = pytest.mark.peer

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


@pytest.mark.parametrize("snippet", STATEMENTS.strip().split("\n"))
def test_same_result_or_error(snippet: str) -> None:
    assert_same(snippet)
