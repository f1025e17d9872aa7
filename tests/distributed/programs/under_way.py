"""Collectives, messages and groups while others are under way."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

import tritensor as torch
import tritensor.distributed as dist

LARGE = 300_000  # elements: more than MPI sends before the receiver takes them


def messages_and_collectives(rank, size):
    """A sender waits until its message is taken, and the receiver for a collective, of the same group or another."""
    for group in (None, dist.new_group([0, 1])):
        x = torch.full((LARGE,), float(rank))
        if rank == 1:
            work = dist.irecv(x, 0, group)
            dist.barrier()
            assert work.wait()
            assert x[0].item() == x[-1].item() == 0
        else:
            if rank == 0:
                dist.send(x, 1, group)
            dist.barrier()


def coalesced(rank, size):
    """The work of a coalesced collective is that of all its parts, whose results may have gaps."""
    results = [torch.zeros(6)[::2] for _ in range(3)]
    for number, x in enumerate(results):
        x.fill_(float(10 * number + rank))
    work = dist.all_reduce_coalesced(results, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success()
    assert [x.tolist() for x in results] == [[10.0 * number * size + sum(range(size))] * 3 for number in range(3)]
    lists = [[torch.zeros(1) for _ in range(size)] for _ in range(3)]
    inputs = [torch.tensor([10.0 * number + rank]) for number in range(3)]
    work = dist.all_gather_coalesced(lists, inputs, async_op=True)
    results = work.get_future().wait()
    assert all(got is x for got, x in zip(results, [x for parts in lists for x in parts], strict=True))
    for number, parts in enumerate(lists):
        assert [x.item() for x in parts] == [10.0 * number + sender for sender in range(size)]


def groups_of_some(rank, size):
    """Groups that only their members make, twice and after one has been left, and then ones that all make."""
    if rank < 2:
        first, second = (dist.new_group([0, 1], use_local_synchronization=True) for _ in range(2))
        dist.destroy_process_group(first)
        third = dist.new_group([0, 1], use_local_synchronization=True)
        for number, group in enumerate((second, third)):
            x = torch.tensor([rank + number])
            dist.all_reduce(x, group=group)
            assert x.item() == 1 + 2 * number
            dist.destroy_process_group(group)
    group = dist.new_group(list(range(size)))
    dist.barrier(group)
    dist.destroy_process_group(group)


def group_while_a_collective_runs(rank, size):
    """One process waits for a collective before it makes a group, for which another waits already."""
    x = torch.ones(3)
    work = dist.all_reduce(x, async_op=True)
    if rank == 1:
        work.wait()
    dist.new_group([0, 1], use_local_synchronization=True)
    assert work.wait() and x.tolist() == [size] * 3


def inputs_in_gaps(rank, size):
    """What is gathered may lie between the elements of the result that it becomes."""
    for count in (5, LARGE):
        rows = torch.zeros(8, count)
        rows[1:3] = rank + 1
        parts = [torch.zeros(2, count) for _ in range(size)]
        parts[rank] = rows[::4]
        dist.all_gather(parts, rows[1:3])
        assert all((part == number + 1).all() for number, part in enumerate(parts)), count


def tags_that_are_none(rank, size):
    """A tag that MPI cannot send raises before anything is sent."""
    for function, tag in ((dist.isend, -1), (dist.irecv, 1 << 40)):
        with pytest.raises(ValueError, match=f"tag={tag} is none"):
            function(torch.ones(1), (rank + 1) % size, tag=tag)


def forked(rank, size):
    """A process that was forked from a rank ends without leaving the job."""
    if rank == 0:
        child = os.fork()
        if child == 0:
            raise SystemExit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    x = torch.ones(1)
    dist.all_reduce(x)
    assert x.item() == size


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    rank, size = dist.get_rank(), dist.get_world_size()
    for check in (
        messages_and_collectives,
        coalesced,
        groups_of_some,
        group_while_a_collective_runs,
        inputs_in_gaps,
        tags_that_are_none,
        forked,
    ):
        check(rank, size)
    dist.barrier()
    if rank == 0:
        print(f"all that was under way came on {size} ranks")
    dist.destroy_process_group()


main()
