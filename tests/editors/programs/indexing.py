"""Indexing, einsum, broadcasting and reductions, as in tutorials of tensors."""

import numpy as np

import tritensor as torch

data = [[1, 2], [3, 4]]
x_data = torch.tensor(data)
np_array = np.array(data)
x_np = torch.from_numpy(np_array)
x_ones = torch.ones_like(x_data)
x_rand = torch.rand_like(x_data, dtype=torch.float)
print(f"{x_ones.shape} {x_rand.dtype} {x_np.device}")

tensor = torch.ones(4, 4)
tensor[:, 1] = 0
print(tensor[0], tensor[:, 0], tensor[..., -1])
t1 = torch.cat([tensor, tensor, tensor], dim=1)
y1 = tensor @ tensor.T
y2 = tensor.matmul(tensor.T)
y3 = torch.rand_like(y1)
torch.matmul(tensor, tensor.T, out=y3)
z1 = tensor * tensor
print(torch.equal(y1, y2), t1.size(), z1.sum().item())
tensor.add_(5)
n = tensor.numpy()
np.add(n, 1, out=n)

x = torch.arange(24).reshape(2, 3, 4).float()
mask = x > 10
print(x[mask].mean(), x[1, ::2, [0, -1]], (~mask).any(dim=-1), mask.nonzero().shape)
rows, cols = torch.where(x[0] > 5)
print(rows.tolist(), cols.tolist(), torch.where(mask, x, -x)[0, 0])
values, indices = x.max(dim=-1)
smallest = x.min()
print(values.shape, indices.dtype, smallest.item(), x.argmax().item(), torch.max(x, -x).sum())
attention = torch.einsum("bid,bjd->bij", x, x)
outer = torch.einsum("i,j->ij", torch.arange(3.0), torch.arange(2.0))
print(attention.shape, outer.T.tolist())
gathered = torch.gather(x[0], 1, torch.tensor([[0], [1], [2]]))
scattered = torch.zeros(3, 5).scatter_(1, torch.tensor([[0, 1, 2, 0]]), x[0, :1])
print(gathered.squeeze(1), scattered.sum(1))
sorted_values, order = torch.sort(x.flatten(), descending=True)
top, where = torch.topk(x, k=2, dim=-1)
print(sorted_values[:3], order[0].item(), top.shape, where.max().item())
a, b, c = torch.unbind(x, dim=1)
first, *rest = torch.chunk(x, 3, dim=1)
print(a.shape, first.shape, len(rest), torch.stack((a, b, c)).permute(1, 0, 2).shape)
print(x.unsqueeze(0).expand(5, -1, -1, -1).shape, x.new_zeros(2).type(), -x[0, 0] ** 2 / 3 % 2 // 1)
m, s = x.mean(dim=(0, 2), keepdim=True), x.std(0)
normalized = (x - m) / (s + 1e-5)
print(normalized.shape, bool((normalized == normalized).all()), float(normalized.sum()) != 0.0, len(normalized))
for row in x[0]:
    print(" ".join(f"{v:.0f}" for v in row))
print(torch.unique(torch.tensor([1, 1, 2])), torch.bincount(torch.tensor([0, 1, 1])), torch.cdist(x, x).shape)
x[0, 0, 0] += 1
x[mask] = 0
x[:, None].sum().item()
big = torch.iinfo(torch.int64).max, torch.finfo(torch.float32).eps
print(big, torch.is_tensor(x), x.is_contiguous(), x.stride(), x.stride(0), 3 in torch.arange(4))
