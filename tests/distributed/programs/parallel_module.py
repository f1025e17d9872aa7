"""DistributedDataParallel against the same module on all data in one process; the argument names the device."""

from __future__ import annotations

import re
import sys
from collections import namedtuple

import numpy as np
import pytest

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.nn.parallel import DistributedDataParallel

DEVICE = sys.argv[1]
EACH = 3  # rows of every rank
TINY = 1e-4  # megabytes: buckets of 104 bytes, so that every layer has its own
Pair = namedtuple("Pair", ["first", "second"])


def host(x):
    return x.detach().cpu().to(torch.float64).numpy()


def rows(count, width=4, seed=7, dtype=torch.float32):
    """The same numbers in every process."""
    values = np.random.default_rng(seed).standard_normal((count, width))
    return torch.tensor(values, dtype=dtype, device=DEVICE)


def part(x, rank):
    return x[rank * EACH : (rank + 1) * EACH]


class Model(nn.Module):
    """Layers of different sizes, one used twice; a frozen parameter; a buffer that counts; maybe an idle branch."""

    def __init__(self, branches=False):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.again = nn.Linear(6, 6)
        self.head = nn.Linear(6, 2)
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
        self.register_buffer("calls", torch.zeros(1))
        if branches:
            self.left, self.right, self.nowhere = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, branch=None):
        self.calls.add_(1)
        x = self.first(x).relu()
        x = self.head(self.again(self.again(x).relu())) * self.frozen
        return x if branch is None else {"out": [getattr(self, branch)(x)]}


def models(rank, **options):
    """The wrapped module, which starts differently everywhere, and a copy of what all start with."""
    torch.manual_seed(100 + rank)
    branches = options.pop("branches", False)
    wrapped = DistributedDataParallel(Model(branches).to(DEVICE), **options)
    alone = Model(branches).to(DEVICE)
    alone.load_state_dict(wrapped.module.state_dict())
    return wrapped, alone


def compare(wrapped, alone, rtol=1e-5, atol=1e-6):
    for (name, mine), other in zip(wrapped.module.named_parameters(), alone.parameters(), strict=True):
        assert (mine.grad is None) == (other.grad is None), name
        if mine.grad is not None:
            np.testing.assert_allclose(host(mine.grad), host(other.grad), rtol=rtol, atol=atol, err_msg=name)


def same_everywhere(tensors):
    for x in tensors:
        copies = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(copies, x.detach())
        for copy in copies:
            assert torch.equal(copy.cpu(), copies[0].cpu())


def starts_equal(rank, size):
    wrapped, _ = models(rank)
    same_everywhere([*wrapped.module.parameters(), *wrapped.module.buffers()])
    assert list(wrapped.state_dict()) == [f"module.{name}" for name in wrapped.module.state_dict()]
    torch.manual_seed(rank)
    own = DistributedDataParallel(nn.Linear(2, 2).to(DEVICE), init_sync=False)
    copies = [torch.zeros(2, 2, device=DEVICE) for _ in range(size)]
    dist.all_gather(copies, own.module.weight.detach())
    assert size == 1 or not torch.equal(copies[0].cpu(), copies[1].cpu())


def equals_one_process(rank, size):
    for megabytes in (None, TINY):
        wrapped, alone = models(rank, bucket_cap_mb=megabytes)
        x = rows(EACH * size)
        for _ in range(2):
            (wrapped(part(x, rank)) ** 2).mean().backward()
            (alone(x) ** 2).mean().backward()
            compare(wrapped, alone)
            same_everywhere([p.grad for p in wrapped.parameters() if p.grad is not None])
        # a second pass added to what was there
        assert wrapped.module.first.weight.grad is not None


def trains_like_one_process(rank, size):
    wrapped, alone = models(rank, bucket_cap_mb=TINY)
    optimizers = [torch.optim.Adam(each.parameters(), lr=0.01) for each in (wrapped, alone)]
    for step in range(4):
        x = rows(EACH * size, seed=step)
        for each, optimizer, batch in zip((wrapped, alone), optimizers, (part(x, rank), x), strict=True):
            optimizer.zero_grad()
            (each(batch) ** 2).mean().backward()
            optimizer.step()
    for mine, other in zip(wrapped.parameters(), alone.parameters(), strict=True):
        np.testing.assert_allclose(host(mine), host(other), rtol=1e-4, atol=1e-5)
    same_everywhere(wrapped.parameters())


def goes_on_beside_the_backward_pass(rank, size):
    """The last layer's gradients are on their way before those of the layers in front of it are known."""
    wrapped, _ = models(rank, bucket_cap_mb=TINY)
    counts = []

    def look(module, inputs, hidden):
        hidden.register_hook(lambda gradient: counts.append(dist.group.WORLD.sequence - before))

    wrapped.module.first.register_forward_hook(look)
    out = wrapped(rows(EACH)).sum()
    before = dist.group.WORLD.sequence
    out.backward()
    sent = dist.group.WORLD.sequence - before
    assert sent == len(wrapped.reducer.buckets) >= 3
    assert 1 <= counts[0] < sent, (counts, sent)


def without_sync(rank, size):
    wrapped, alone = models(rank, bucket_cap_mb=TINY)
    first, second = rows(EACH * size, seed=1), rows(EACH * size, seed=2)
    wrapped(part(first, rank))
    with wrapped.no_sync():
        wrapped(part(first, rank))  # still copies the buffers, after a pass that is to average
    before = dist.group.WORLD.sequence
    with wrapped.no_sync():
        (wrapped(part(first, rank)) ** 2).mean().backward()
    assert dist.group.WORLD.sequence == before
    local = Model().to(DEVICE)
    local.load_state_dict(alone.state_dict())
    (local(part(first, rank)) ** 2).mean().backward()
    np.testing.assert_allclose(host(wrapped.module.head.weight.grad), host(local.head.weight.grad), rtol=1e-5)
    assert wrapped.require_backward_grad_sync
    (wrapped(part(second, rank)) ** 2).mean().backward()
    for x in (first, second):
        (alone(x) ** 2).mean().backward()
    compare(wrapped, alone)


def unused_parameters(rank, size):
    """Each rank goes its own way: left in even ones, right in odd ones, and nowhere nobody."""
    wrapped, alone = models(rank, branches=True, find_unused_parameters=True, bucket_cap_mb=TINY)
    x = rows(EACH * size)
    for _ in range(2):
        branch = "left" if rank % 2 == 0 else "right"
        (wrapped(part(x, rank), branch=branch)["out"][0] ** 2).mean().backward()
        total = 0
        for other in range(size):
            total = total + (alone(part(x, other), branch="left" if other % 2 == 0 else "right")["out"][0] ** 2).mean()
        (total / size).backward()
        compare(wrapped, alone)
    assert wrapped.module.nowhere.weight.grad is None
    assert (wrapped.module.right.weight.grad is None) == (size == 1)
    wrapped.module.nowhere.weight.grad = torch.full((2, 2), 5.0, device=DEVICE)
    (wrapped(part(x, rank), branch="left")["out"][0] ** 2).mean().backward()
    assert wrapped.module.nowhere.weight.grad.tolist() == [[5.0, 5.0], [5.0, 5.0]]


def missing_gradients_are_named(rank, size):
    wrapped, _ = models(rank, branches=True)
    wrapped(rows(EACH), branch="left")["out"][0].sum().backward()
    words = re.escape("Expected to have finished reduction in the prior iteration before starting a new one.")
    names = rf"rank {rank} got no gradients for: right.weight, right.bias, nowhere.weight, nowhere.bias\n"
    for context in (torch.enable_grad(), wrapped.no_sync()):
        with pytest.raises(RuntimeError, match=rf"{words}(.|\n)*{names}(.|\n)*find_unused_parameters=True"), context:
            wrapped(rows(EACH), branch="left")


def a_parameter_in_two_passes_at_once(rank, size):
    wrapped, _ = models(rank, bucket_cap_mb=TINY)
    out = wrapped(rows(EACH))
    # the graph of a part is run on its own first, so the head is ready before the rest has begun
    wrapped.module.head(rows(EACH, 6)).sum().backward()
    with pytest.raises(RuntimeError, match=r"Expected to mark a variable ready only once. The gradient of head.weight"):
        out.sum().backward()


def buffers_follow_rank_0(rank, size):
    for follow in (True, False):
        wrapped, _ = models(rank, broadcast_buffers=follow)
        wrapped.module.calls.fill_(rank * 10)
        with torch.no_grad():
            wrapped(rows(EACH))
        assert wrapped.module.calls.item() == (0 if follow else rank * 10) + 1


def without_gradients(rank, size):
    wrapped, alone = models(rank)
    x = rows(EACH)
    with torch.no_grad():
        np.testing.assert_allclose(host(wrapped(x)), host(alone(x)), rtol=1e-6)
    wrapped(x)  # a forward pass whose gradients nobody asks for
    wrapped(x).sum().backward()
    alone(x).sum().backward()
    compare(wrapped, alone)


def dtypes(rank, size):
    """Parameters of several dtypes go in buckets of their own."""

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.ones(3, dtype=torch.float64))
            self.b = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
            self.c = nn.Parameter(torch.ones(3, dtype=torch.float64))

        def forward(self, x):
            return (self.a * x + self.b.to(torch.float64) * x + self.c * self.a * x).sum()

    wrapped = DistributedDataParallel(Mixed().to(DEVICE))
    assert sorted(len(bucket.positions) for bucket in wrapped.reducer.buckets) == [1, 2]
    wrapped(torch.full((3,), rank + 1.0, dtype=torch.float64, device=DEVICE)).backward()
    mean = (size + 1) / 2
    assert wrapped.module.a.grad.tolist() == [2 * mean] * 3
    assert wrapped.module.b.grad.dtype is torch.bfloat16
    np.testing.assert_allclose(host(wrapped.module.b.grad), [mean] * 3, rtol=1e-2)


def inputs_are_moved(rank, size):
    if DEVICE == "cpu":
        with pytest.raises(
            ValueError, match="DistributedDataParallel device_ids and output_device arguments only work"
        ):
            DistributedDataParallel(nn.Linear(4, 2), device_ids=[0])
        return
    seen = []

    class Look(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x, more):
            seen.extend([x.device, more["pair"].first[0].device, more["pair"].second])
            return x * self.weight

    wrapped = DistributedDataParallel(Look().to(DEVICE), device_ids=[0])
    wrapped(torch.ones(2), more={"pair": Pair((torch.ones(1),), "text")})
    assert seen == [torch.device("cuda:0"), torch.device("cuda:0"), "text"]
    for wrong in ([0, 0], ["cuda:1"]):
        with pytest.raises((ValueError, RuntimeError)):
            DistributedDataParallel(nn.Linear(4, 2).to(DEVICE), device_ids=wrong)
    spread = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).to(DEVICE))
    with pytest.raises(ValueError, match="input module must be on the same type of devices"):
        DistributedDataParallel(spread)


def modules_that_differ(rank, size):
    with pytest.raises(
        RuntimeError, match="not needed when a module doesn't have any parameters that require a gradient"
    ):
        DistributedDataParallel(nn.ReLU())
    if size == 1:
        return
    with pytest.raises(dist.DistError, match="DDP expects same model across all ranks, but Rank 0 has 2 params, while"):
        DistributedDataParallel(nn.Linear(2, 2, bias=rank == 0).to(DEVICE))
    shape = r"but params\[1\] of rank 1 appears not to match(.|\n)*it is bias of shape \(\d,\), tritensor.float32"
    module = nn.Linear(2, 2)
    module.bias = nn.Parameter(torch.zeros(2 if rank == 0 else 3))
    module.to(DEVICE)
    with pytest.raises(dist.DistError, match=shape):
        DistributedDataParallel(module)


def on_devices(rank, size):
    """A group that sends nothing of the CPU, and a module on two devices."""
    if DEVICE != "cuda":
        return
    torch.manual_seed(rank)
    spread = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2).to("cuda:1"))
    spread[0].to("cuda:0").register_forward_hook(lambda module, args, out: out.to("cuda:1"))
    wrapped = DistributedDataParallel(spread, process_group=dist.new_group(backend="nccl"))
    x = rows(size * EACH)
    wrapped(part(x, rank)).sum().backward()
    total = host(x).sum(0) / size
    expected = (host(spread[1].weight).sum(0)[:, None] * total, np.full(2, EACH))
    for found, value in zip((spread[0].weight.grad, spread[1].bias.grad), expected, strict=True):
        np.testing.assert_allclose(host(found), value, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match=r"only work with single-device.*\{cuda:0, cuda:1\}"):
        DistributedDataParallel(spread, device_ids=[0])


def main():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedDataParallel(nn.Linear(2, 2))
    dist.init_process_group("mpi")
    rank, size = dist.get_rank(), dist.get_world_size()
    for check in (
        starts_equal,
        equals_one_process,
        trains_like_one_process,
        goes_on_beside_the_backward_pass,
        without_sync,
        unused_parameters,
        missing_gradients_are_named,
        a_parameter_in_two_passes_at_once,
        buffers_follow_rank_0,
        without_gradients,
        dtypes,
        inputs_are_moved,
        modules_that_differ,
        on_devices,
    ):
        check(rank, size)
    dist.barrier()
    if rank == 0:
        print(f"one model on {size} ranks")
    dist.destroy_process_group()


main()
