"""Different numbers of inputs on every rank: `DistributedDataParallel.join` and `Join` against one process."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.algorithms.join import Join, Joinable, JoinHook
from tritensor.nn.parallel import DistributedDataParallel

DEVICE = sys.argv[1]


def host(x):
    return x.detach().cpu().numpy()


def rows(step, rank):
    values = np.random.default_rng(100 * step + rank).standard_normal((3, 4))
    return torch.tensor(values, dtype=torch.float32, device=DEVICE)


class Model(nn.Module):
    """Two layers, one that only some inputs use, and a buffer that counts."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.rare = nn.Linear(4, 5), nn.Linear(5, 5)
        self.last = nn.Linear(5, 2)
        self.register_buffer("calls", torch.zeros(1))
        self.to(DEVICE)

    def forward(self, x, rarely=True):
        self.calls.add_(1)
        x = self.first(x).tanh()
        return self.last(self.rare(x) if rarely else x)


def counts(size):
    """How many batches each rank has: rank 1 has the most, the last one none."""
    return [2, 4, 0][:size]


def trains_as_one_process(rank, size):
    """A rank without inputs counts as one with gradients of zeros, or not at all."""
    for by_all in (True, False):
        for options in ({}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 1e-4}, {"static_graph": True}):
            wrapped, alone = DistributedDataParallel(Model(), **options), Model()
            optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (wrapped, alone)]
            with wrapped.join(divide_by_initial_world_size=by_all):
                for step in range(counts(size)[rank]):
                    optimizers[0].zero_grad()
                    (wrapped(rows(step, rank)) ** 2).mean().backward()
                    optimizers[0].step()
            for step in range(max(counts(size))):
                active = [other for other in range(size) if counts(size)[other] > step]
                optimizers[1].zero_grad()
                losses = [(alone(rows(step, other)) ** 2).mean() for other in active]
                (sum(losses) / (size if by_all else len(active))).backward()
                optimizers[1].step()
            for mine, other in zip(wrapped.parameters(), alone.parameters(), strict=True):
                np.testing.assert_allclose(
                    host(mine), host(other), rtol=1e-4, atol=1e-6, err_msg=str((by_all, options))
                )
            assert wrapped.module.calls.item() == 4  # of the last rank to end, whose buffers all take
            wrapped(rows(0, rank)).sum().backward()  # and on as before


def parameters_that_some_inputs_use(rank, size):
    wrapped = DistributedDataParallel(Model(), find_unused_parameters=True)
    seen = []
    with wrapped.join():
        for step in range(counts(size)[rank]):
            wrapped.zero_grad()
            wrapped(rows(step, rank), rarely=step == 0).sum().backward()
            seen.append(wrapped.module.rare.weight.grad is not None)
    # for a rank that has ended, what any has used before counts as used by it, as in PyTorch
    assert seen == [True, *[size == 3] * 3][: counts(size)[rank]]


def without_averages_now_and_then(rank, size):
    """Passes of `no_sync` are none to take part in."""
    wrapped = DistributedDataParallel(Model())
    with wrapped.join():
        for step in range(counts(size)[rank]):
            with wrapped.no_sync():
                wrapped(rows(step, rank)).sum().backward()
            wrapped(rows(step, rank)).sum().backward()


def early_termination(rank, size):
    words = f"Rank {rank} exhausted all inputs." if counts(size)[rank] == min(counts(size)) else "Detected at least one"
    wrapped = DistributedDataParallel(Model())

    def train():
        with wrapped.join(throw_on_early_termination=True):
            for step in range(counts(size)[rank]):
                wrapped(rows(step, rank)).sum().backward()

    with pytest.raises(RuntimeError, match=words):
        train()


def without_joining(rank, size):
    wrapped = DistributedDataParallel(Model())
    before = dist.group.WORLD.sequence
    with wrapped.join(enable=False):
        wrapped(rows(0, rank)).sum().backward()
    assert dist.group.WORLD.sequence - before == 2  # the buffers, and a bucket
    with pytest.raises(ZeroDivisionError), wrapped.join():
        1 / 0  # noqa: B018


class Counter(Joinable):
    """Counts the inputs of all ranks."""

    def __init__(self):
        super().__init__()
        self.count, self.last = torch.zeros(1, device=DEVICE), None

    def __call__(self):
        Join.notify_join_context(self)
        one = torch.ones(1, device=DEVICE)
        dist.all_reduce(one)
        self.count += one

    def join_hook(self, **kwargs):
        return CounterHook(self, kwargs.get("told"))

    @property
    def join_device(self):
        return self.count.device

    @property
    def join_process_group(self):
        return dist.group.WORLD


class CounterHook(JoinHook):
    def __init__(self, counter, told):
        self.counter, self.told = counter, told

    def main_hook(self):
        dist.all_reduce(torch.zeros(1, device=DEVICE))

    def post_hook(self, is_last_joiner):
        self.counter.last = self.told if is_last_joiner else None


def objects_of_a_program(rank, size):
    counters = [Counter(), Counter()]
    with Join(counters, told="last"):
        for _ in range(counts(size)[rank]):
            for counter in counters:
                counter()
    latest = counts(size)[rank] == max(counts(size))
    assert counters[0].last == ("last" if latest else None)
    if latest:
        assert counters[0].count.item() == sum(counts(size))
    with pytest.raises(ValueError, match="requires at least one joinable"):
        Join([])
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (Joinable,), {"__init__": lambda self: None})()


def main():
    dist.init_process_group("mpi")
    rank, size = dist.get_rank(), dist.get_world_size()
    for check in (
        trains_as_one_process,
        parameters_that_some_inputs_use,
        without_averages_now_and_then,
        early_termination,
        without_joining,
        objects_of_a_program,
    ):
        check(rank, size)
    dist.barrier()
    if rank == 0:
        print(f"joined on {size} ranks")
    dist.destroy_process_group()


main()
