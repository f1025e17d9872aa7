"""One rank fails in the way that the first argument names, while the others wait for it."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

how = sys.argv[1]
if how == "early exit" and os.environ.get("PMI_RANK") == "1":
    sys.exit(0)

import tritensor as torch  # noqa: E402
import tritensor.distributed as dist  # noqa: E402
from tritensor.distributed import failure, launchers  # noqa: E402

if how == "before" and launchers.launched().rank == 1:
    raise ValueError("something is wrong here")

dist.init_process_group(timeout=timedelta(seconds=2 if how in ("early exit", "sleeps", "late") else 60))
rank = dist.get_rank()
dist.all_reduce(torch.ones(3))

if rank == 1:
    if how == "raises":
        raise ValueError("something is wrong here")
    if how == "hook":

        def own(kind, error, trace):
            print("my own hook:", error, file=sys.stderr)

        failure.unwatch()
        sys.excepthook = own
        failure.watch(dist.group.WORLD.job)
        raise ValueError("something is wrong here")
    if how == "exits":
        sys.exit(0)
    if how == "destroys":
        dist.destroy_process_group()
        time.sleep(60)
    if how == "sleeps":
        time.sleep(60)
    if how == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "is killed":
        Path("pid").write_text(str(os.getpid()))
        time.sleep(60)
if how == "last":
    # rank 0 is late; that the others have left already is no failure, because they took part in everything
    if rank == 0:
        time.sleep(1)
    dist.broadcast(torch.ones(3), src=1)
    if rank == 0:
        print("all is well")
    sys.exit(0)
if how == "late":
    work = dist.all_reduce(torch.ones(3), async_op=True) if rank == 0 else None
    if work is not None:
        try:
            work.wait(timedelta(seconds=0.2))
        except dist.DistError as error:
            print(error, flush=True)
    else:
        time.sleep(1)
        dist.all_reduce(torch.ones(3))
    sys.exit(0)
for _ in range(3):
    dist.all_reduce(torch.ones(3))
