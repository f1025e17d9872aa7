"""`python -m tritensor tune`: from and up to which size native code is quicker than NumPy on this machine.

Both compute in one process and take turns, block by block, on one thread. A ratio is the least time of native code
divided by the least time of NumPy, of whole calls. What is found is kept beside the compiled kernels
(`runtime/tuned.py`) and used from then on in place of what the operators' declarations say.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isqrt, log
from typing import Any

import numpy as np

from .. import settings
from ..drivers.selection import lacks_native
from ..host.threads import get_num_threads, set_num_threads
from ..operators import Operator, registry
from ..runtime import tuned
from ..runtime.choice import ALWAYS, NEVER, available
from ..tensors import Tensor, wrap
from ..types import dtypes

SIZES = (10, 1000, 30_000, 1_000_000)
KINDS = (dtypes.float32, dtypes.bfloat16, dtypes.float16)
Work = Callable[[], Any]

#: of NumPy's time, that native code may take to be called quicker
_QUICKER = 0.95


def drawn(kind: dtypes.dtype, *shape: int, seed: int = 0) -> Tensor:
    """Numbers from 0.1 to 3."""
    return wrap(np.random.default_rng(seed).uniform(0.1, 3, shape).astype(np.float32)).to(kind)


@contextmanager
def _noted() -> Iterator[list[bool]]:
    """Whether native code was installed for a call, or ran on a list of arrays, each time."""
    from ..runtime import native_replay, native_rows

    made: list[bool] = []
    install, run = native_replay._Work.install, native_rows.Rows.run

    def noted(self: native_replay._Work, compute: Work) -> None:
        made.append(hasattr(compute, "kept"))
        install(self, compute)

    def ran(self: native_rows.Rows, arrays: tuple[np.ndarray, ...]) -> None:
        made.append(True)
        run(self, arrays)

    native_replay._Work.install, native_rows.Rows.run = noted, ran
    try:
        yield made
    finally:
        native_replay._Work.install, native_rows.Rows.run = install, run


def _least(work: Work, wanted: str, seconds: float) -> float:
    """The least seconds of a call in a block, after calls in which native code is made."""
    with settings.native_cpu(wanted):
        for _ in range(4):
            work()
        start = time.perf_counter()
        work()
        number = max(int(1e-3 / (time.perf_counter() - start)), 1)
        times: list[float] = []
        while not times or sum(times) < seconds:
            start = time.perf_counter()
            for _ in range(number):
                work()
            times.append(time.perf_counter() - start)
    return min(times) / number


def measure(work: Work, blocks: int) -> dict[str, Any]:
    """Both sides in turns: their times and the ratio, or that native code was refused."""
    sides = dict[str, float]()
    with _noted() as made:
        for turn in range(blocks):
            for name in ("force", "0")[:: -1 if turn % 2 else 1]:
                sides[name] = min(sides.get(name, 1e9), _least(work, name, 0.01))
    row = {"native_us": round(sides["force"] * 1e6, 2), "numpy_us": round(sides["0"] * 1e6, 2)}
    return {**row, "ratio": round(sides["force"] / sides["0"], 2)} if True in made else {"refused": True}


def _ratios(operator: Operator, kind: dtypes.dtype, blocks: int) -> list[float] | None:
    """The ratio for each size; None where it cannot be called with matrices alone."""
    found = []
    for size in SIZES:
        width = min(isqrt(size), 1024)
        inputs = [drawn(kind, max(size // width, 1), width, seed=seed) for seed in range(len(operator.inputs))]
        for metadata in ({}, {"dim": 1}):
            with np.errstate(all="ignore"):
                try:
                    operator(*inputs, **metadata)
                except Exception:  # what such a call lacks, each operator says in its own words
                    continue
                found.append(measure(lambda: operator(*inputs, **metadata), blocks).get("ratio", 9.0))  # noqa: B023
                break
        else:
            return None
    return found


def range_of(ratios: Sequence[float]) -> tuple[int, int]:
    """The range of sizes with the largest gain, with limits half way to those beyond."""
    gains = [log(_QUICKER / max(ratio, 1e-3)) for ratio in ratios]
    ends = range(1, len(gains) + 1)
    gain, start, end = max((sum(gains[start:end]), start, end) for end in ends for start in range(end))
    if gain <= 0:
        return NEVER
    low = isqrt(SIZES[start - 1] * SIZES[start]) if start else ALWAYS[0]
    return low, isqrt(SIZES[end - 1] * SIZES[end]) if end < len(SIZES) else ALWAYS[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 0, or 1 where there is no native code."""
    parser = argparse.ArgumentParser(
        prog="python -m tritensor tune",
        description="Measure from and up to which size native code is quicker than NumPy for tensors of the CPU, and "
        "keep it for this machine. It takes about ten minutes, and wants nothing else to run.",
    )
    parser.add_argument("--only", default="*", help="names of operators, with * and ?")
    parser.add_argument("--blocks", type=int, default=2, help="how often the two take turns")
    options = parser.parse_args(arguments)
    if not available():
        print(f"There is no native code here: {lacks_native() or 'Triton is not installed'}", file=sys.stderr)
        return 1
    found, number = dict[str, tuple[tuple[int, int], ...]](), get_num_threads()
    set_num_threads(1)
    try:
        for name, operator in registry.items():
            if operator.native is None or not fnmatch.fnmatch(name, options.only):
                continue
            lines = [_ratios(operator, kind, options.blocks) for kind in KINDS]
            if None in lines:
                continue
            found[name] = tuple([range_of(line) for line in lines if line is not None])
            shown = [" ".join(f"{ratio:5.2f}" for ratio in line) for line in lines if line is not None]
            print(f"{name:32} {'  |  '.join(shown)}", flush=True)
    finally:
        set_num_threads(number)
        print(f"{len(found)} operators: {tuned.keep(found)}")
    return 0
