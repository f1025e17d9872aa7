"""A rank of `benchmarks.distributed`, of tritensor or PyTorch: python -m benchmarks.ranks LIBRARY FOLDER

It needs nothing beside its library, since the interpreter that has PyTorch may have little else.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

RANKS = 2
SIZES = {"1 kB": 1 << 10, "16 kB": 1 << 14, "128 kB": 1 << 17, "1 MB": 1 << 20, "8 MB": 1 << 23, "64 MB": 1 << 26}
GATHERING = ("all_gather", "all_gather_into_tensor")
COLLECTIVES = ("all_reduce", *GATHERING, "reduce_scatter", "reduce_scatter_tensor", "broadcast")
DTYPES = ("float32", "bfloat16")
LAYERS, WIDTH, BATCH, PASSES = 8, 1024, 64, 3  # passes in one turn
DDP = f"DDP, {LAYERS} layers {WIDTH}x{WIDTH}, batch {BATCH}"
SHARDED = [f"FSDP2 step, {LAYERS} layers {WIDTH}x{WIDTH}, batch {batch}" for batch in (BATCH, 8 * BATCH)]


def collective(library: Any, name: str, kind: str, size: int) -> Callable[[], Any]:
    """One collective of zeros, whose sums stay what they are. Pages never written to would be quick to read."""
    dist = library.distributed
    dtype = getattr(library, kind)
    whole = library.zeros(size // dtype.itemsize, dtype=dtype).add_(0)
    part = library.zeros(whole.numel() // RANKS, dtype=dtype).add_(0)
    parts = [part.clone() for _ in range(RANKS)]
    return {
        "all_reduce": lambda: dist.all_reduce(whole),
        "broadcast": lambda: dist.broadcast(whole, 0),
        "all_gather": lambda: dist.all_gather(parts, part),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(whole, part),
        "reduce_scatter": lambda: dist.reduce_scatter(part, parts),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(part, whole),
    }[name]


def timed(library: Any, run: Callable[[], Any], count: int) -> list[float]:
    """The seconds until all ranks have run it so many times."""
    library.distributed.barrier()
    begin = time.perf_counter()
    for _ in range(count):
        run()
    library.distributed.barrier()
    return [time.perf_counter() - begin]


class Models:
    """A model by itself, and one in DistributedDataParallel: the seconds of their backward passes, and memory."""

    def __init__(self, library: Any) -> None:
        library.manual_seed(0)
        self.library = library
        self.x = library.randn(BATCH, WIDTH)
        model = self._model()
        before = self._peak(model)
        self.parallel = library.nn.parallel.DistributedDataParallel(model)
        self.growth = self._peak(self.parallel) - before
        self.plain = self._model()
        self.backward(self.plain)

    def _model(self) -> Any:
        nn = self.library.nn
        return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])

    def backward(self, model: Any) -> float:
        """The seconds of a backward pass, which starts at the same time in all ranks."""
        model.zero_grad()
        loss = model(self.x).sum()
        self.library.distributed.barrier()
        begin = time.perf_counter()
        loss.backward()
        return time.perf_counter() - begin

    def _peak(self, model: Any) -> int:
        """The most bytes of memory that the process has in some passes."""
        self.backward(model)
        Path("/proc/self/clear_refs").write_text("5")  # from here on the most is measured
        for _ in range(3):
            self.backward(model)
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

    def passes(self, count: int) -> list[float]:
        """The seconds of both models' passes, and the bytes that DistributedDataParallel needs."""
        seconds = [0.0, 0.0]
        for _ in range(count):
            for place, model in enumerate((self.plain, self.parallel)):
                seconds[place] += self.backward(model)
        return [*seconds, self.growth]


def sharded(library: Any, batch: int) -> Callable[[], Any]:
    """A training step of a model whose layers are divided by fully_shard."""
    fsdp = importlib.import_module(f"{library.__name__}.distributed.fsdp")
    mesh = library.distributed.init_device_mesh("cpu", (RANKS,))
    library.manual_seed(0)
    nn = library.nn
    model = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(LAYERS)])
    for layer in model:
        fsdp.fully_shard(layer, mesh=mesh)
    fsdp.fully_shard(model, mesh=mesh)
    optimizer, x = library.optim.AdamW(model.parameters(), lr=1e-4), library.randn(batch, WIDTH)

    def step() -> None:
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    return step


def made(library: Any, name: str) -> Callable[[int], list[float]]:
    """What a case's name stands for: a function from a number of runs to figures."""
    if name == DDP:
        return Models(library).passes
    if name in SHARDED:
        return partial(timed, library, sharded(library, int(name.rpartition(" ")[2])))
    what, kind, size = name.split(" ", 2)
    return partial(timed, library, collective(library, what, kind, SIZES[size]))


def work(name: str, folder: str) -> None:
    """A rank: does what the lines of its own pipe say; rank 0 answers on standard output."""
    library = importlib.import_module(name)
    library.set_num_threads(1)
    warnings.filterwarnings("ignore", category=FutureWarning)  # PyTorch has newer names for two collectives
    library.distributed.init_process_group("mpi" if name == "tritensor" else "gloo")
    rank = library.distributed.get_rank()
    with open(Path(folder) / str(rank), encoding="utf-8") as lines:
        present, run = "", None
        for line in lines:
            wanted, count = json.loads(line)
            if wanted != present:
                run = None  # whose memory is freed before the next is allocated
                present, run = wanted, made(library, wanted)
            assert run is not None
            found = run(count)
            if rank == 0:
                print(json.dumps(found), flush=True)
    library.distributed.destroy_process_group()


if __name__ == "__main__":
    work(*sys.argv[1:])
