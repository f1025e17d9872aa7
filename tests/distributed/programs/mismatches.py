"""Ranks that start different collectives in debug mode: each writes what it was told to a file of its own."""

from __future__ import annotations

import json
from pathlib import Path

import tritensor as torch
import tritensor.distributed as dist
from tritensor.errors import DistError

x, y = torch.zeros(3), torch.zeros(2, 2)
CASES = {
    "shape": (lambda: dist.all_reduce(x), lambda: dist.all_reduce(y)),
    "dtype": (lambda: dist.all_reduce(x), lambda: dist.all_reduce(x.double())),
    "operator": (lambda: dist.all_reduce(x), lambda: dist.barrier()),
    "reduction": (lambda: dist.all_reduce(x), lambda: dist.all_reduce(x, dist.ReduceOp.MAX)),
    "source": (lambda: dist.broadcast(x, 0), lambda: dist.broadcast(x, 1)),
    "asynchronous": (lambda: dist.all_reduce(x, async_op=True), lambda: dist.reduce(x, 0, async_op=True)),
}


def main():
    dist.init_process_group("mpi")
    rank = dist.get_rank()
    told = {}
    for name, (first, other) in CASES.items():
        try:
            work = (first if rank == 0 else other)()
            if work is not None:
                work.wait()
        except DistError as error:
            told[name] = str(error)
        dist.barrier()
    Path(f"{rank}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


main()
