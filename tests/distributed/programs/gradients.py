"""Collectives with gradients on 2 ranks: results, and gradients by hand."""

from __future__ import annotations

import tritensor as torch
import tritensor.distributed as dist
from tritensor.distributed.nn import functional as F

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
assert size == 2


def own(add=0.0):
    return (torch.arange(2.0) + rank + add).requires_grad_()


def check(results, inputs, values, grads):
    """The results, and the gradients of their sums times 1 + rank, 2 + rank, ..."""
    results = results if isinstance(results, tuple) else (results,)
    assert [y.tolist() for y in results] == values[rank], (rank, results)
    loss = sum((y * (1 + rank + place)).sum() for place, y in enumerate(results))
    found = torch.autograd.grad(loss, inputs)
    assert [grad.tolist() for grad in found] == [[grad, grad] for grad in grads[rank]], (rank, found)


first, second = [0.0, 1.0], [1.0, 2.0]
x = own()
check(F.all_reduce(x), [x], [[[1.0, 3.0]]] * 2, [[3.0], [3.0]])
x = own()
check(F.broadcast(x, 1), [x], [[second]] * 2, [[0.0], [3.0]])
x = own()
check(F.reduce(x, 1), [x], [[[0.0, 0.0]], [[1.0, 3.0]]], [[2.0], [2.0]])
x = own()
check(F.gather(x, 1), [x], [[[0.0, 0.0]] * 2, [first, second]], [[2.0], [3.0]])
x = own()
check(F.all_gather(x), [x], [[first, second]] * 2, [[3.0], [5.0]])
xs = [own(), own(10.0)]
check(F.scatter(xs, 1), xs, [[second], [[11.0, 12.0]]], [[0.0, 0.0], [1.0, 2.0]])
xs = [own(), own(10.0)]
check(F.reduce_scatter(torch.zeros(2), xs), xs, [[[1.0, 3.0]], [[21.0, 23.0]]], [[1.0, 2.0]] * 2)
xs = [own(), own(10.0)]
check(F.all_to_all(xs, xs), xs, [[first, second], [[10.0, 11.0], [11.0, 12.0]]], [[1.0, 2.0], [2.0, 3.0]])
x = own()
y = F.all_to_all_single(torch.zeros(2), x)
assert y.tolist() == [[0.0, 1.0], [1.0, 2.0]][rank]
assert torch.autograd.grad((y * (1 + rank)).sum(), x)[0].tolist() == [1.0, 2.0]
if rank == 0:
    print("gradients pass through collectives")
dist.destroy_process_group()
