"""Futures of collectives, and communication hooks of DistributedDataParallel; the argument names the device."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.algorithms import ddp_comm_hooks
from tritensor.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, default_hooks, powerSGD_hook
from tritensor.futures import Future, collect_all
from tritensor.nn.parallel import DistributedDataParallel

DEVICE = sys.argv[1]
TINY = 1e-4  # megabytes: a bucket for every layer


def host(x):
    return x.detach().cpu().to(torch.float64).numpy()


def model(megabytes=TINY, **options):
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
    return DistributedDataParallel(layers.to(DEVICE), bucket_cap_mb=megabytes, **options)


def gradients(wrapped, rank, step=0):
    x = np.random.default_rng(10 * step + rank).standard_normal((4, 6))
    wrapped.zero_grad()
    (wrapped(torch.tensor(x, dtype=torch.float32, device=DEVICE)) ** 2).mean().backward()
    return [host(x.grad) for x in wrapped.parameters()]


def near(found, expected, atol=1e-6):
    for each, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(each, other, rtol=1e-5, atol=atol)


def futures_of_collectives(rank, size):
    x = torch.full((3,), rank + 1.0, device=DEVICE)
    work = dist.all_reduce(x, async_op=True)
    future = work.get_future()
    doubled = future.then(lambda done: done.value()[0] * 2)
    assert doubled.wait().tolist() == [size * (size + 1.0)] * 3
    assert future.done() and future.value()[0] is x and work.result()[0] is x
    parts = [torch.zeros(1, device=DEVICE) for _ in range(size)]
    gathered = dist.all_gather(parts, torch.full((1,), float(rank), device=DEVICE), async_op=True).get_future()
    summed = dist.all_reduce(torch.ones(1, device=DEVICE), async_op=True).get_future()
    both = collect_all([gathered, summed])
    while not both.done():
        pass
    assert [x.item() for x in gathered.value()] == list(range(size))
    assert summed.value()[0].item() == size
    failing = dist.barrier(async_op=True).get_future().then(lambda done: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        failing.wait()


def what_a_hook_sees(rank, size):
    seen = []

    def hook(state, bucket):
        seen.append((state, bucket.index(), bucket.is_last(), bucket.parameters()))
        for x, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
            assert gradient.shape == x.shape
        bucket.gradients()[0].fill_(7.0)
        assert bucket.buffer()[: bucket.parameters()[0].numel()].tolist() == [7.0] * bucket.parameters()[0].numel()
        future = Future()
        future.set_result(bucket.buffer() * 0 + rank)
        return future

    wrapped = model()
    wrapped.register_comm_hook("state", hook)
    for each in gradients(wrapped, rank):
        assert (each == rank).all()  # nothing was averaged
    count = len(wrapped.reducer.buckets)
    assert [(state, index, last) for state, index, last, _ in seen] == [
        ("state", index, index == count - 1) for index in range(count)
    ]
    assert [id(x) for *_, found in seen for x in found] == [id(x) for x in [*wrapped.parameters()][::-1]]
    with pytest.raises(RuntimeError, match="register_comm_hook or register_builtin_comm_hook can only be called once"):
        wrapped.register_comm_hook(None, hook)
    with pytest.raises(TypeError, match="Communication hook must be callable"):
        model().register_comm_hook(None, 1)
    wrong = model()
    wrong.register_comm_hook(None, lambda state, bucket: bucket.buffer())
    with pytest.raises(TypeError, match=r"callback must return a torch.futures.Future object, but got"):
        gradients(wrong, rank)


def averages_in_other_dtypes(rank, size):
    expected = gradients(model(), rank)
    hooks = [(default_hooks.allreduce_hook, 1e-6), (default_hooks.fp16_compress_hook, 1e-3)]
    hooks += [(default_hooks.bf16_compress_hook, 1e-2)]
    hooks += [(default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 1e-3)]
    hooks += [(default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook), 1e-2)]
    for view in (False, True):
        for hook, tolerance in hooks:
            wrapped = model(gradient_as_bucket_view=view)
            wrapped.register_comm_hook(None, hook)
            near(gradients(wrapped, rank), expected, tolerance)
            assert {x.grad.dtype for x in wrapped.parameters()} == {torch.float32}
    for kind in dist.BuiltinCommHookType:
        wrapped = model()
        wrapped._register_builtin_comm_hook(kind)
        near(gradients(wrapped, rank), expected, 1e-3)
    for kind in DDPCommHookType:
        wrapped = model()
        ddp_comm_hooks.register_ddp_comm_hook(kind, wrapped, dist.group.WORLD)
        near(gradients(wrapped, rank), expected, 1e-2)  # PowerSGD averages as they are at first


def low_rank(rank, size):
    """What one pass loses is in the next: all results and the present error are all averages."""
    for batched in (False, True):
        for columns in (1, 2, 4):
            state = powerSGD_hook.PowerSGDState(None, columns, 2, 1.1)
            hook = powerSGD_hook.batched_powerSGD_hook if batched else powerSGD_hook.powerSGD_hook
            wrapped, plain = model(), model()
            wrapped.register_comm_hook(state, hook)
            near(gradients(wrapped, rank, 0), gradients(plain, rank, 0))
            near(gradients(wrapped, rank, 1), gradients(plain, rank, 1))
            for _ in range(2):
                gradients(wrapped, rank, state.iter)
            state.error_dict.clear()
            found = [gradients(wrapped, rank, step) for step in range(4)]
            assert state.iter == 8
            expected = [gradients(plain, rank, step) for step in range(4)]
            for bucket in wrapped.reducer.buckets:
                error = state.error_dict[bucket.index].clone()
                dist.all_reduce(error, dist.ReduceOp.AVG)
                total = sum(np.concatenate([step[place].ravel() for place in bucket.positions]) for step in found)
                whole = sum(np.concatenate([step[place].ravel() for place in bucket.positions]) for step in expected)
                np.testing.assert_allclose(total + host(error)[: total.size], whole, rtol=1e-4, atol=1e-5)
            rate, before, after = state.compression_stats()
            assert rate == before / after and before == 6 * sum(x.numel() for x in plain.parameters())
            again = pickle.loads(pickle.dumps(state))
            assert again.process_group is None and again.iter == 8 and again.rng.randint(9) == state.rng.randint(9)


def exact_where_the_rank_is(rank, size):
    """Averages of gradients of one example each have a rank of at most `size`."""
    state = powerSGD_hook.PowerSGDState(dist.group.WORLD, size, 0, 0.5, use_error_feedback=False, warm_start=False)
    wide, plain = (DistributedDataParallel(nn.Linear(9, 8, bias=False).to(DEVICE)) for _ in range(2))
    wide.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    draw = np.random.default_rng(rank)
    x, weight = (torch.tensor(draw.standard_normal((1, n)), dtype=torch.float32, device=DEVICE) for n in (9, 8))
    for each in (wide, plain):
        (each(x) * weight).sum().backward()
    near([host(wide.module.weight.grad)], [host(plain.module.weight.grad)], 1e-5)
    with pytest.raises(ValueError, match=r"Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start`"):
        powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=1)


def in_half_precision(rank, size):
    state = powerSGD_hook.PowerSGDState(None, 1, 2)
    wrapped = model()
    wrapped.register_comm_hook(state, default_hooks.fp16_compress_wrapper(powerSGD_hook.powerSGD_hook))
    for step in range(4):
        assert all(np.isfinite(each).all() for each in gradients(wrapped, rank, step))
    assert state.q_memory_dict[1].dtype is torch.float16


def with_uneven_inputs(rank, size):
    """A rank without inputs runs the hook, too, and with it all its collectives."""
    state = powerSGD_hook.PowerSGDState(None, 1, 2, 1.1)
    wrapped = model()
    wrapped.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    with wrapped.join():
        for step in range(3 + 2 * rank):
            gradients(wrapped, rank, step)
    assert state.iter == 3 + 2 * (size - 1)


def main():
    dist.init_process_group("mpi")
    rank, size = dist.get_rank(), dist.get_world_size()
    for check in (
        futures_of_collectives,
        what_a_hook_sees,
        averages_in_other_dtypes,
        low_rank,
        exact_where_the_rank_is,
        in_half_precision,
        with_uneven_inputs,
    ):
        check(rank, size)
    dist.barrier()
    if rank == 0:
        print(f"hooks on {size} ranks")
    dist.destroy_process_group()


main()
