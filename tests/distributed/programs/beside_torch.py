"""DistributedDataParallel with uneven inputs and communication hooks, in PyTorch or here: arguments LIBRARY and FOLDER.

Every rank writes what it has in the end to FOLDER/LIBRARY-RANK.npz.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import numpy as np

LIBRARY, FOLDER = sys.argv[1:]
torch = importlib.import_module(LIBRARY)
dist = importlib.import_module(f"{LIBRARY}.distributed")
hooks = importlib.import_module(f"{LIBRARY}.distributed.algorithms.ddp_comm_hooks.default_hooks")
sgd = importlib.import_module(f"{LIBRARY}.distributed.algorithms.ddp_comm_hooks.powerSGD_hook")
joining = importlib.import_module(f"{LIBRARY}.distributed.algorithms.join")
DistributedDataParallel = importlib.import_module(f"{LIBRARY}.nn.parallel").DistributedDataParallel
found = {}


def rows(count, width, seed):
    return torch.tensor(np.random.default_rng(seed).standard_normal((count, width)), dtype=torch.float32)


class Model(torch.nn.Module):
    """Layers of different shapes; one that only some inputs use; a buffer of every pass."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(12, 9), torch.nn.Linear(9, 7)
        self.rare, self.last = torch.nn.Linear(7, 7), torch.nn.Linear(7, 4)
        self.register_buffer("seen", torch.zeros(2))
        for number, parameter in enumerate(self.parameters()):
            values = np.random.default_rng(number).standard_normal(parameter.shape) / 3
            parameter.data.copy_(torch.tensor(values, dtype=torch.float32))

    def forward(self, x, rarely=True):
        self.seen[0] += x.sum().detach()
        self.seen[1] += 1
        x = self.second(self.first(x).tanh()).tanh()
        return self.last(self.rare(x).tanh() if rarely else x)


def note(name, model):
    for key, value in model.state_dict().items():
        found[f"{name} {key}"] = value.detach().numpy().copy()


def trained(
    name, counts, rank, before=lambda model: None, block=None, rarely=lambda step: True, joins=False, **options
):
    """Train on as many batches as `counts` says, and note the state."""
    model = DistributedDataParallel(Model(), **options)
    before(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with model.join(**(block or {}), enable=joins):
        for step in range(counts[rank]):
            optimizer.zero_grad()
            (model(rows(5, 12, 100 * step + rank), rarely=rarely(step)) ** 2).mean().backward()
            optimizer.step()
    note(name, model)


class Counter(joining.Joinable):
    """Counts the inputs of all ranks, as the tutorial of PyTorch's `Join` does."""

    def __init__(self):
        super().__init__()
        self.count, self.most = torch.zeros(1), 0.0

    def __call__(self):
        joining.Join.notify_join_context(self)
        one = torch.ones(1)
        dist.all_reduce(one)
        self.count += one

    def join_hook(self, **kwargs):
        return Shadow(self, kwargs["factor"])

    @property
    def join_device(self):
        return torch.device("cpu")

    @property
    def join_process_group(self):
        return dist.group.WORLD


class Shadow(joining.JoinHook):
    def __init__(self, counter, factor):
        self.counter, self.factor = counter, factor

    def main_hook(self):
        dist.all_reduce(torch.zeros(1))

    def post_hook(self, is_last_joiner):
        self.counter.most = self.counter.count.item() * self.factor if is_last_joiner else -1.0


def uneven(rank, size):
    counts = ([3, 5], [4, 2, 5])[size - 2]
    for by_all in (True, False):
        block = {"divide_by_initial_world_size": by_all}
        trained(f"uneven, by all: {by_all}", counts, rank, block=block, joins=True)
        unused = {"find_unused_parameters": True, "rarely": lambda step: (step + rank) % 2 == 0}
        trained(f"unused, by all: {by_all}", counts, rank, block=block, joins=True, **unused)
    trained("as views", counts, rank, joins=True, gradient_as_bucket_view=True)
    trained("with a hook", counts, rank, lambda m: m.register_comm_hook(None, hooks.allreduce_hook), joins=True)
    counter = Counter()
    with joining.Join([counter], factor=3):
        for _ in range(counts[rank]):
            counter()
    found["counter"] = np.array([counter.count.item(), counter.most])
    words = []
    model = DistributedDataParallel(Model())
    try:
        with model.join(throw_on_early_termination=True):
            for step in range(counts[rank]):
                model(rows(5, 12, step)).sum().backward()
    except RuntimeError as error:
        words.append(str(error))
    found["early"] = np.array(words)


def started(state, hook):
    """The hook, with the first Q drawn by NumPy: the numbers of generators differ."""

    def wrapper(own, bucket):
        index = bucket.index()
        if own.iter >= own.start_powerSGD_iter and index not in own.q_memory_dict:
            shapes = [(x.shape[0], x.numel() // x.shape[0]) for x in bucket.parameters()]
            rank = own.matrix_approximation_rank
            sent = [(n, m) for n, m in shapes if (n + m) * min(n, m, rank) * own.min_compression_rate < n * m]
            draws = [np.random.default_rng(m).standard_normal(m * min(n, m, rank)) for n, m in sent]
            own.q_memory_dict[index] = torch.tensor(np.concatenate(draws), dtype=torch.float32)
            own.p_memory_dict[index] = torch.zeros(sum(n * min(n, m, rank) for n, m in sent))
        return hook(own, bucket)

    return lambda model: model.register_comm_hook(state, wrapper)


def compressed(rank, size):
    counts = [6] * size
    trained("plain", counts, rank)
    trained("half", counts, rank, lambda m: m.register_comm_hook(None, hooks.fp16_compress_hook))
    wrapped = hooks.fp16_compress_wrapper(hooks.allreduce_hook)
    trained("wrapped", counts, rank, lambda m: m.register_comm_hook(None, wrapped))
    for columns in (1, 2, 3, 4):
        for feedback in (True, False):
            state = sgd.PowerSGDState(None, columns, 2, 1.1, use_error_feedback=feedback)
            trained(f"rank {columns}, {feedback}", counts, rank, started(state, sgd.powerSGD_hook))
            found[f"stats {columns} {feedback}"] = np.array(state.compression_stats())


def main():
    if LIBRARY == "torch":
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("mpi")
    rank, size = dist.get_rank(), dist.get_world_size()
    uneven(rank, size)
    compressed(rank, size)
    np.savez(Path(FOLDER) / f"{LIBRARY}-{rank}.npz", **found)
    dist.destroy_process_group()
    if LIBRARY == "torch":
        sys.stdout.flush()
        os._exit(0)


main()
