"""Jobs that fail in the way that the first argument names. Rank 1 does it, unless a comment names another."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.utils.data import DataLoader, Dataset

CASES: dict[str, tuple[Callable[[int], object], bool]] = {}
TIMEOUT = timedelta(seconds=float(os.environ.get("SECONDS", "60")))
RANK, SIZE = (
    int(os.environ.get(name) or os.environ.get(other, "0"))
    for name, other in (("RANK", "PMI_RANK"), ("WORLD_SIZE", "PMI_SIZE"))
)
x = torch.ones(3)


def joined(function: Callable[[int], object]) -> Callable[[int], object]:
    """What ranks do after they have joined and called `all_reduce` once."""
    CASES[function.__name__] = function, True
    return function


def alone(function: Callable[[int], object]) -> Callable[[int], object]:
    """What ranks do before they join."""
    CASES[function.__name__] = function, False
    return function


# ---- one rank ends -------------------------------------------------------------------------------------------------


@alone
def raises_before_joining(rank):
    if rank == 1:
        raise ValueError("something is wrong here")  # there
    time.sleep(float(sys.argv[2]))
    dist.init_process_group(timeout=TIMEOUT)  # here


@joined
def raises(rank):
    if rank == 1:
        raise ValueError("something is wrong here")  # there
    dist.all_reduce(x)  # here


@joined
def raises_while_others_compute(rank):
    if rank == 1:
        raise ValueError("something is wrong here")  # there
    time.sleep(100)


@joined
def raises_in_backward(rank):
    model = nn.parallel.DistributedDataParallel(nn.Linear(3, 3))
    y = model(x)
    if rank == 1:
        y.register_hook(lambda grad: grad.reshape(7))  # there
    y.sum().backward()  # here


class Rows(Dataset):
    """Rows, of which one cannot be read."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5 and os.environ.get("BROKEN") == "1":
            raise ValueError("row 5 is broken")  # there
        return torch.ones(3) * index


@joined
def raises_in_a_worker(rank):
    os.environ["BROKEN"] = str(rank)
    for batch in DataLoader(Rows(), 2, num_workers=1):  # here
        dist.all_reduce(batch)  # last


@joined
def exits(rank):
    if rank == 1:
        end()
    for _ in range(3):
        dist.all_reduce(x)  # here


@joined
def exits_while_others_compute(rank):
    if rank == 1:
        end()
    time.sleep(100)


@joined
def exits_within_a_collective(rank):
    # rank 0 does not take part, so all others are within it
    if rank == 1:
        threading.Thread(target=lambda: (time.sleep(0.5), end()), daemon=True).start()
    if rank != 0:
        dist.all_reduce(x)  # here
    time.sleep(100)


@joined
def rank_0_ends(rank):
    if rank == 0:
        end()
    dist.all_reduce(x)  # here


def end():
    """End this process in the way that the second argument names."""
    how = sys.argv[2]
    if how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))
        time.sleep(100)
    if how == "destroy":
        dist.destroy_process_group()
        time.sleep(2)
        sys.exit(0)
    kind, _, status = how.rpartition("_")
    (os._exit if kind == "_exit" else sys.exit)(int(status))


# ---- one rank does not come ----------------------------------------------------------------------------------------


@joined
def sleeps(rank):
    if rank == 1:
        time.sleep(float(sys.argv[2]))
    dist.all_reduce(x)  # here
    print(f"[rank{rank}]: all is well")


@joined
def loops(rank):
    while rank == 1:
        pass
    dist.all_reduce(x)  # here


@joined
def waits_in_another_group(rank):
    groups = [dist.new_group([0, 1]), dist.new_group([0, 1])]
    for group in groups if rank == 0 else groups[::-1]:
        dist.all_reduce(x, group=group)  # here


@joined
def misses_a_barrier(rank):
    if rank == 1:
        time.sleep(100)
    dist.barrier(timeout=timedelta(seconds=1))  # here


@joined
def misses_a_monitored_barrier(rank):
    if rank == 1:
        time.sleep(100)
    dist.monitored_barrier(timeout=timedelta(seconds=1))  # here


@joined
def misses_what_is_awaited(rank):
    if rank == 1:
        time.sleep(100)
    work = dist.all_reduce(x, async_op=True)  # starts
    work.wait(timedelta(seconds=1))  # here


@joined
def leaves_what_was_started(rank):
    # and nobody waits for it
    if rank == 0:
        dist.all_reduce(x, async_op=True)  # here


@joined
def late_and_caught(rank):
    if rank == 1:
        time.sleep(1.0)
        dist.all_reduce(x)
        return
    work = dist.all_reduce(x, async_op=True)
    try:
        work.wait(timedelta(seconds=0.2))
    except dist.DistError as error:
        print(f"[rank{rank}]: caught {error}", flush=True)
    work.wait()


# ---- meeting -------------------------------------------------------------------------------------------------------


@alone
def meets(rank):
    how, *rest = sys.argv[2:]
    given = {"timeout": TIMEOUT}
    if how == "tcp":
        given |= {"init_method": f"tcp://{rest[0]}:{rest[1]}", "rank": rank, "world_size": SIZE}
    if how == "file":
        given |= {"init_method": f"file://{rest[0]}", "rank": rank, "world_size": SIZE}
    if how == "store":
        store = dist.TCPStore(rest[0], int(rest[1]), is_master=rank == 0, timeout=TIMEOUT)
        given |= {"store": store, "rank": rank, "world_size": SIZE}
    dist.init_process_group(**given)  # here
    dist.all_reduce(x)
    print(f"[rank{rank}]: all is well")


@alone
def joins_and_waits_less(rank):
    # rank 0 gives up, while the others have more time
    dist.init_process_group(timeout=timedelta(seconds=3) if rank == 0 else TIMEOUT)  # here


@alone
def ends_before_joining(rank):
    if rank == 1:
        end()
    dist.init_process_group(timeout=TIMEOUT)  # here


@alone
def lacks_mpi(rank):
    if rank == 1 or sys.argv[2] == "all":
        sys.modules["mpi4py"] = None
    dist.init_process_group(timeout=TIMEOUT)  # here


# ---- ranks disagree ------------------------------------------------------------------------------------------------


@joined
def other_shape(rank):
    dist.all_reduce(torch.ones(3 + (rank == 1)))  # here


@joined
def other_dtype(rank):
    dist.all_reduce(x.double() if rank == 1 else x)  # here


@joined
def other_operator(rank):
    if rank == 1:
        dist.barrier()  # there
    dist.all_reduce(x)  # here


@joined
def other_reduction(rank):
    dist.all_reduce(x, dist.ReduceOp.MAX if rank == 1 else dist.ReduceOp.SUM)  # here


@joined
def other_source(rank):
    dist.broadcast(x, src=rank % 2)  # here


@joined
def other_order(rank):
    if rank == 1:
        dist.broadcast(x, src=0)  # there
    dist.all_reduce(x)  # here
    dist.broadcast(x, src=0)


@joined
def other_sizes(rank):
    outputs = [torch.ones(2 + (rank == 1)) for _ in range(SIZE)]
    dist.all_to_all(outputs, [torch.ones(2) for _ in range(SIZE)])  # here


@joined
def other_message(rank):
    y = {"dtype": x.long(), "size": torch.ones(4)}[sys.argv[2]]
    if rank == 1:
        dist.send(x, 0)  # there
    if rank == 0:
        dist.recv(y, 1)  # here
    dist.barrier()  # last


@joined
def message_of_a_rank_that_left(rank):
    if rank == 1:
        end()
    if rank == 0:
        dist.recv(x, 1)  # here
    dist.barrier()  # last


@joined
def message_to_a_rank_that_left(rank):
    if rank == 1:
        end()
    if rank == 0:
        dist.send(torch.ones(1_000_000), 1)  # here
    dist.barrier()  # last


@joined
def other_object_list(rank):
    dist.broadcast_object_list([None] * (2 + (rank == 1)))  # here


@joined
def short_object_list(rank):
    dist.all_gather_object([None] * (SIZE - (rank == 1)), "text")  # here


@joined
def other_group(rank):
    dist.new_group([0, 1] if rank == 1 else [0, 2])  # here


@joined
def other_group_alone(rank):
    # the others are expected to come, which do not
    if rank == 0:
        dist.new_group([0, 1], use_local_synchronization=True)  # here
    time.sleep(100)


@joined
def other_parameters(rank):
    models = {"number": nn.Linear(3, 3, bias=False), "shape": nn.Linear(3, 4), "dtype": nn.Linear(3, 3).double()}
    nn.parallel.DistributedDataParallel(models[sys.argv[2]] if rank == 1 else nn.Linear(3, 3))  # here


class Two(nn.Module):
    """Two layers, of which one may be left out."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, y, both):
        y = self.first(y)
        return self.second(y) if both else y


@joined
def other_parameters_used(rank):
    model = nn.parallel.DistributedDataParallel(Two())
    for _ in range(2):
        model(x, rank != 1).sum().backward()  # here


@joined
def other_buckets(rank):
    model = nn.Sequential(nn.Linear(300, 300), nn.Linear(300, 300))
    model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.1 if rank == 1 else 25)  # here
    model(torch.ones(300)).sum().backward()


@joined
def outside_of_the_group(rank):
    group = dist.new_group([0, 2])
    dist.all_reduce(x, group=group)  # here


@alone
def tensor_of_the_cpu(rank):
    dist.init_process_group("nccl", timeout=TIMEOUT)
    dist.all_reduce(x)  # here


# ---- start ---------------------------------------------------------------------------------------------------------


def work(rank, how):
    """What one rank does."""
    function, joins = CASES[how]
    if joins:
        dist.init_process_group(timeout=TIMEOUT)
        dist.all_reduce(x)
    function(rank)


def spawned(rank, arguments):
    """What a process of `spawn` does."""
    sys.argv = arguments
    os.environ["RANK"] = str(rank)
    work(rank, arguments[1])


if __name__ == "__main__":
    if "SPAWNS" in os.environ:
        torch.multiprocessing.spawn(spawned, (sys.argv,), nprocs=int(os.environ["SPAWNS"]))
    else:
        work(RANK, sys.argv[1])
