"""Jobs in which rank 1 goes away in a way that Python does not notice, or only seems to."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import tritensor as torch
import tritensor.distributed as dist

how, *when = sys.argv[1:]


def leave():
    if how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))
        time.sleep(60)
    os._exit(int(how))


def leave_soon():
    time.sleep(0.5)
    leave()


dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
x = torch.ones(3)
dist.all_reduce(x)

if how == "late":
    # longer than the others wait for a rank that is gone
    if rank == 1:
        time.sleep(7)
    dist.all_reduce(x)
    dist.destroy_process_group()
elif how == "raises":
    if rank == 1:
        raise ValueError("something is wrong here")
    dist.all_reduce(x)
elif how == "forks":
    # the others must not take a process that rank 1 forked for rank 1, nor its end for that of rank 1
    if rank == 1:
        child = os.fork()
        if child == 0:
            time.sleep(0.5 if "ends" in when else 8)
            os._exit(0)
        if "ends" not in when:
            os._exit(0)
        os.waitpid(child, 0)
    dist.all_reduce(x)
elif "after leaving" in when:
    dist.destroy_process_group()
    if rank == 1:
        leave()
    time.sleep(1.5)
    if rank == 0:
        print("the others went on", flush=True)
elif "after all" in when:
    # a common end of programs, to save the time of tidying up
    if rank == 1 or "each" in when:
        leave()
    time.sleep(1.5)
elif "inside" in when:
    # rank 0 does not take part, so all others are within the collective when rank 1 goes
    if rank == 1:
        threading.Thread(target=leave_soon, daemon=True).start()
    if rank != 0:
        dist.all_reduce(x)
    time.sleep(60)
elif "while others compute" in when:
    if rank == 1:
        leave()
    time.sleep(60)
elif "caught" in when:
    if rank == 1:
        leave()
    try:
        dist.all_reduce(x)
    except dist.DistError as error:
        # longer than a rank that has not been told may take
        time.sleep(6)
        print(f"rank {rank} saved its model: {str(error).splitlines()[0]}", flush=True)
    os._exit(7)
else:
    if rank == 1:
        leave()
    for _ in range(3):
        dist.all_reduce(x)

if how == "late" and rank == 0:
    print("all is well")
