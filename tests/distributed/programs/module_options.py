"""DistributedDataParallel's options and what programs ask of it; the argument names the device."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import tracemalloc
import types

import numpy as np
import pytest

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.process_group import ProcessGroup
from tritensor.nn.parallel import DistributedDataParallel
from tritensor.nn.parallel.distributed import _MixedPrecision
from tritensor.utils.checkpoint import checkpoint

DEVICE = sys.argv[1]
TINY = 1e-4  # megabytes: buckets of 104 bytes


def host(x):
    return x.detach().cpu().to(torch.float64).numpy()


def rows(rank, step=0, width=4):
    values = np.random.default_rng(10 * step + rank).standard_normal((3, width))
    return torch.tensor(values, dtype=torch.float32, device=DEVICE)


class Model(nn.Module):
    """Layers of which only some inputs use the middle one, and of which one is never used."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.first, self.middle = nn.Linear(4, 6), nn.Linear(6, 6)
        self.never, self.last = nn.Linear(6, 6), nn.Linear(6, 2)
        self.register_buffer("calls", torch.zeros(1))
        self.to(DEVICE)

    def forward(self, x, middle=True):
        self.calls.add_(1)
        x = self.first(x).tanh()
        return self.last(self.middle(x) if middle else x)


def simple():
    torch.manual_seed(6)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).to(DEVICE)


def trained(wrapped, rank, size, passes=3, none=True, **options):
    """The parameters after some steps, and those of the same module trained on all data in this process."""
    alone = copy.deepcopy(wrapped.module)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1, momentum=0.5) for each in (wrapped, alone)]
    for step in range(passes):
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=none)
        (wrapped(rows(rank, step), **options) ** 2).mean().backward()
        (sum((alone(rows(other, step), **options) ** 2).mean() for other in range(size)) / size).backward()
        for optimizer in optimizers:
            optimizer.step()
    for mine, other in zip(wrapped.module.parameters(), alone.parameters(), strict=True):
        np.testing.assert_allclose(host(mine), host(other), rtol=1e-4, atol=1e-6)
    return alone


def gradients_as_views(rank, size):
    wrapped = DistributedDataParallel(simple(), gradient_as_bucket_view=True, bucket_cap_mb=TINY)
    for none in (True, False, False):
        trained(wrapped, rank, size, none=none)
        for bucket in wrapped.reducer.buckets:
            start = bucket.flat.data_ptr()
            for x in bucket.parameters:
                assert x.grad.data_ptr() == start and x.grad.shape == x.shape
                start += x.nbytes
    before = [x.grad for x in wrapped.parameters()]
    wrapped.zero_grad(set_to_none=False)
    with wrapped.no_sync():
        wrapped(rows(rank)).sum().backward()
    wrapped(rows(rank)).sum().backward()
    assert all(x.grad is each for x, each in zip(wrapped.parameters(), before, strict=True))
    idle = DistributedDataParallel(Model(), gradient_as_bucket_view=True, find_unused_parameters=True)
    trained(idle, rank, size)
    assert idle.module.never.weight.grad is None
    idle(rows(rank), middle=rank == 0).sum().backward()
    assert idle.module.middle.weight.grad.data_ptr() != 0


def the_same_graph_in_every_pass(rank, size):
    """Unused parameters are found in the first pass; a layer of two checkpoints gets two gradients."""
    for middle in (True, False):
        wrapped = DistributedDataParallel(Model(), static_graph=True, bucket_cap_mb=TINY)
        trained(wrapped, rank, size, middle=middle)
        before = dist.group.WORLD.sequence
        wrapped(rows(rank), middle=middle).sum().backward()
        assert dist.group.WORLD.sequence - before == len(wrapped.reducer.buckets) + 1  # and the buffers
    words = "Your training graph has changed in this iteration(.|\n)*"
    with pytest.raises(RuntimeError, match=rf"{words}rank {rank} got more gradients than before for: middle"):
        wrapped(rows(rank), middle=True).sum().backward()
    wrapped = DistributedDataParallel(Model(), static_graph=True)
    trained(wrapped, rank, size)
    with pytest.raises(RuntimeError, match=rf"{words}rank {rank} got no gradients for: middle.weight, middle.bias"):
        wrapped(rows(rank), middle=False).sum().backward()

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = simple()

        def forward(self, x):
            x = x.clone().requires_grad_()
            return checkpoint(self.inner, x, use_reentrant=True) + checkpoint(self.inner, 2 * x, use_reentrant=True)

    trained(DistributedDataParallel(Twice(), static_graph=True), rank, size)
    with pytest.raises(RuntimeError, match=r"ready only once. The gradient of inner\.\d\.\w+ came twice"):
        DistributedDataParallel(Twice())(rows(rank)).sum().backward()
    with pytest.warns(UserWarning, match="You've set static_graph to be True"):
        wrapped._set_static_graph()


def outputs_outside_of_the_loss(rank, size):
    """With find_unused_parameters a pass ends with the gradients that came."""

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(4, 2), nn.Linear(4, 2)

        def forward(self, x):
            return self.left(x), self.right(x)

    wrapped = DistributedDataParallel(Two().to(DEVICE), find_unused_parameters=True)
    for _ in range(2):
        wrapped.zero_grad()
        wrapped(rows(rank))[0].sum().backward()
        expected = sum(host(rows(other)).sum(0) for other in range(size)) / size
        np.testing.assert_allclose(host(wrapped.module.left.weight.grad)[0], expected, rtol=1e-5)
        assert wrapped.module.right.weight.grad is None


def lower_precision(rank, size):
    half = _MixedPrecision(param_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16)
    wrapped = DistributedDataParallel(Model(), mixed_precision=half, find_unused_parameters=True)
    assert wrapped.module.calls.dtype is torch.bfloat16
    out = wrapped(rows(rank))
    assert out.dtype is torch.bfloat16
    out.float().sum().backward()
    alone = Model()
    (sum(alone(rows(other)).sum() for other in range(size)) / size).backward()
    assert wrapped.module.first.weight.dtype is wrapped.module.first.weight.grad.dtype is torch.float32
    found, expected = host(wrapped.module.first.weight.grad), host(alone.first.weight.grad)
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.05)
    assert not np.allclose(found, expected, rtol=1e-5)


def groups(rank, size):
    mesh = types.SimpleNamespace(ndim=1, get_group=lambda mesh_dim: (dist.group.WORLD, mesh_dim)[0])
    trained(DistributedDataParallel(simple(), device_mesh=mesh), rank, size)
    with pytest.raises(RuntimeError, match="Cannot specify both process_group and device_mesh arguments"):
        DistributedDataParallel(simple(), device_mesh=mesh, process_group=dist.group.WORLD)
    with pytest.raises(RuntimeError, match="Only 1D device mesh is supported, but got"):
        DistributedDataParallel(simple(), device_mesh=types.SimpleNamespace(ndim=2))


def parts_of_their_own(rank, size):
    """Gradients that are averaged with that of another parameter, and ones that are left to the program."""
    module = simple()
    named = [(name, x) for name, x in module.named_parameters() if name.startswith("2")]
    trained(
        DistributedDataParallel(module, delay_all_reduce_named_params=named, param_to_hook_all_reduce=module[0].weight),
        rank,
        size,
    )
    with pytest.raises(ValueError, match="need to be set at the same time"):
        DistributedDataParallel(simple(), delay_all_reduce_named_params=named)
    module = Model()
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, ["never.weight", "never.bias", "calls"])
    module.never.weight.data.fill_(float(rank))
    module.calls.fill_(rank)
    wrapped = DistributedDataParallel(module)
    trained(wrapped, rank, size)
    assert wrapped.module.never.weight[0, 0].item() == rank
    assert wrapped.module.calls.item() == rank + 3


def buckets(rank, size):
    wrapped = DistributedDataParallel(simple(), bucket_cap_mb_list=[TINY, 1])
    assert [each.positions for each in wrapped.reducer.buckets] == [[3, 2, 1], [0]]
    trained(wrapped, rank, size)
    skipping = DistributedDataParallel(
        Model(), find_unused_parameters=True, skip_all_reduce_unused_params=True, bucket_cap_mb=TINY
    )
    trained(skipping, rank, size)
    before = dist.group.WORLD.sequence
    skipping(rows(rank)).sum().backward()
    unused = [bucket for bucket in skipping.reducer.buckets if set(bucket.positions) <= {4, 5}]
    assert len(unused) == 1
    assert dist.group.WORLD.sequence - before == len(skipping.reducer.buckets) - 1 + 1  # and the buffers
    with pytest.warns(FutureWarning, match="The `check_reduction` argument in `DistributedDataParallel` module"):
        DistributedDataParallel(simple(), check_reduction=True)
    module = Model()
    module.calls.fill_(rank)
    assert DistributedDataParallel(module, forward_sync_buffers=False).module.calls.item() == 0
    module.calls.fill_(rank)
    assert DistributedDataParallel(module, broadcast_buffers=False).module.calls.item() == rank


def what_libraries_do(rank, size):
    wrapped = DistributedDataParallel(Model(), find_unused_parameters=True)
    facts = wrapped._get_ddp_logging_data()
    assert (facts["world_size"], facts["rank"], facts["module_name"]) == (size, rank, "Model")
    assert facts["can_set_static_graph"] and not facts["static_graph"]
    with wrapped.no_sync():
        loss = wrapped(rows(rank)).sum()
    wrapped.require_backward_grad_sync = wrapped.require_forward_param_sync = True
    wrapped.reducer._rebuild_buckets()
    wrapped.reducer.prepare_for_backward([])  # as accelerate and Lightning do, to average this pass after all
    loss.backward()
    wrapped.reducer._delay_all_reduce()
    alone = Model()
    (sum(alone(rows(other)).sum() for other in range(size)) / size).backward()
    np.testing.assert_allclose(host(wrapped.module.first.weight.grad), host(alone.first.weight.grad), rtol=1e-4)
    assert wrapped.will_sync_module_buffers()
    wrapped(rows(rank)).sum().backward()
    wrapped(rows(rank), middle=False).sum().backward()
    assert not wrapped._get_ddp_logging_data()["can_set_static_graph"]
    again = copy.deepcopy(wrapped)
    again.zero_grad()
    trained(again, rank, size)
    if DEVICE == "cpu":
        trained(pickle.loads(pickle.dumps(DistributedDataParallel(simple(), static_graph=True))), rank, size)


def parameters_that_differ(rank, size):
    module = simple()
    module[2].bias.requires_grad_(rank == 0)
    found = r"rank 0 params\[3\] is 2.bias of shape \(2,\), tritensor.float32\n"
    found += r"  in rank 1 it is 2.bias of shape \(2,\), tritensor.float32, without a gradient"
    with pytest.raises(dist.DistError, match=r"params\[3\] of rank 1 appears not to match(.|\n)*" + found):
        DistributedDataParallel(module)
    words = r"Rank 0 has 2 params, while rank 1 has inconsistent 1 params(.|\n)*rank 1 it is no parameter"
    with pytest.raises(dist.DistError, match=words):
        DistributedDataParallel(nn.Linear(2, 2, bias=rank == 0).to(DEVICE))


def modules_that_change(rank, size):
    changes = [
        lambda module: setattr(module[0], "weight", nn.Parameter(module[0].weight.detach().clone())),
        lambda module: module[0].register_parameter("more", nn.Parameter(torch.ones(1, device=DEVICE))),
        lambda module: module[0].weight.requires_grad_(),
    ]
    for change, name in zip(changes, ("0.weight", "0.more", "0.weight"), strict=True):
        module = simple()
        module[0].weight.requires_grad_(change is not changes[2])
        wrapped = DistributedDataParallel(module)
        change(module)
        words = (
            rf"parameters of the module have changed after it was wrapped.\n  on rank {rank}, {name} is a new tensor"
        )
        with pytest.raises(RuntimeError, match=words):
            wrapped(rows(rank))
        with wrapped.no_sync():
            wrapped(rows(rank))
    wrapped = DistributedDataParallel(simple())
    wrapped.requires_grad_(False)
    wrapped(rows(rank))
    lazy = nn.Sequential(nn.Linear(2, 2), nn.LazyLinear(2)).to(DEVICE)
    with pytest.raises(RuntimeError, match="Modules with uninitialized parameters can't be used with"):
        DistributedDataParallel(lazy)


def gradients_with_a_graph(rank, size):
    """Their averages have none; what the graph saved stays as it was."""
    for megabytes in (None, TINY / 10):
        wrapped = DistributedDataParallel(simple(), bucket_cap_mb=megabytes)
        (wrapped(rows(rank)) ** 2).mean().backward(create_graph=True)
        alone = simple()
        (sum((alone(rows(other)) ** 2).mean() for other in range(size)) / size).backward()
        for mine, other in zip(wrapped.parameters(), alone.parameters(), strict=True):
            assert not mine.grad.requires_grad
            np.testing.assert_allclose(host(mine.grad), host(other.grad), rtol=1e-4, atol=1e-6)


def sparse_gradients(rank, size):
    """They are averaged, and left, as dense ones."""
    wrapped = DistributedDataParallel(nn.Embedding(4, 2, sparse=True).to(DEVICE))
    wrapped(torch.tensor([0, rank], device=DEVICE)).sum().backward()
    grad = wrapped.module.weight.grad
    assert not grad.is_sparse
    np.testing.assert_allclose(host(grad[0]), [(size + 1) / size] * 2, rtol=1e-6)


def after_a_pass_that_fails(rank, size):
    """What a failing pass has queued is forgotten."""
    wrapped = DistributedDataParallel(simple(), find_unused_parameters=True)

    def fail(gradient):
        raise ZeroDivisionError

    x = rows(rank).requires_grad_()
    x.register_hook(fail)
    with pytest.raises(ZeroDivisionError):
        wrapped(x).sum().backward()
    torch.ones(1, requires_grad=True).sum().backward()


def moves_on_while_gradients_come(rank, size):
    calls = []
    before, ProcessGroup.progress = ProcessGroup.progress, lambda group: (calls.append(1), before(group))[1]
    wrapped = DistributedDataParallel(simple(), bucket_cap_mb=TINY / 10)
    wrapped(rows(rank)).sum().backward()
    ProcessGroup.progress = before
    assert len(calls) >= 2


def memory(rank, size):
    """Above the gradients at most two buckets, and nothing with gradients that are views of them."""
    layers = [nn.Linear(100, 100) for _ in range(40)]  # 40 kB each
    module, x = nn.Sequential(*layers), torch.ones(2, 100)
    total, megabytes = sum(x.nbytes for x in module.parameters()), 0.2
    spent = {}
    for name, view in (("copies", False), ("views", True)):
        wrapped = DistributedDataParallel(module, gradient_as_bucket_view=view, bucket_cap_mb=megabytes)
        for _ in range(2):
            module.zero_grad()
            tracemalloc.start()
            wrapped(x).sum().backward()
            spent[name] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            if view:
                spent[name] += total  # which the first pass has left
        wrapped.reducer.ignore()
    module.zero_grad()
    tracemalloc.start()
    module(x).sum().backward()
    alone = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(wrapped.reducer.buckets) >= 8 and total < alone
    assert spent["copies"] - alone < 2.2 * megabytes * 2**20, spent
    assert spent["views"] - alone < 0.2 * megabytes * 2**20 + 2 * 40_000, spent


def the_signature(rank, size):
    names = "module device_ids output_device dim broadcast_buffers init_sync process_group bucket_cap_mb "
    names += "find_unused_parameters check_reduction gradient_as_bucket_view static_graph "
    names += "delay_all_reduce_named_params param_to_hook_all_reduce mixed_precision device_mesh "
    names += "skip_all_reduce_unused_params bucket_cap_mb_list batched_grad_copy forward_sync_buffers"
    assert list(inspect.signature(DistributedDataParallel).parameters) == names.split()


def main():
    dist.init_process_group("mpi")
    rank, size = dist.get_rank(), dist.get_world_size()
    for check in (
        gradients_as_views,
        the_same_graph_in_every_pass,
        outputs_outside_of_the_loss,
        lower_precision,
        groups,
        parts_of_their_own,
        buckets,
        what_libraries_do,
        parameters_that_differ,
        modules_that_change,
        gradients_with_a_graph,
        sparse_gradients,
        after_a_pass_that_fails,
        moves_on_while_gradients_come,
        the_signature,
        *([memory] if DEVICE == "cpu" else []),
    ):
        check(rank, size)
    dist.barrier()
    if rank == 0:
        print(f"options on {size} ranks")
    dist.destroy_process_group()


main()
