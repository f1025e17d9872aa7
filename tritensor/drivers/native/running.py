"""Runs native code over a grid: forward, in another order, shared among threads, or in every way, and compares."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from ...errors import KernelError
from ...host.threads import in_pieces
from ..lines import arranged
from ..together import uncollected
from .loader import Code

_ALIGNMENT = 64


class _Room(threading.local):
    """Memory of a thread that its kernels use one after the other."""

    memory = np.empty(0, np.uint8)
    start = size = 0

    def address(self, nbytes: int) -> int:
        """The address of so many bytes, whose contents are left from before."""
        if nbytes > self.size:
            self.memory = np.empty(nbytes + _ALIGNMENT, np.uint8)
            start = self.memory.ctypes.data
            self.start, self.size = start + -start % _ALIGNMENT, nbytes
        return self.start


room = _Room()


def run(
    code: Code, words: array[int], table: array[int], grid: tuple[int, ...], together: bool, order: str, threads: int
) -> int | None:
    """Run all programs of a grid; returns the number of one in which a check has failed, or None.

    Args:
        words: the values, and for each the addresses that it may touch: the first, and the one behind the last.
        table: of all memory that addresses read from memory may touch, likewise, by address.
        together: programs wait for one another, so each has a thread of its own.
    """
    failed: list[int] = []
    contexts: list[array[int]] = []
    arguments, (spans, length) = words.buffer_info()[0], table.buffer_info()

    def part(begin: int, end: int) -> None:
        # the last word is that another program has failed, for which this one need not wait
        context = array("q", (0, room.address(code.scratch) if code.scratch else 0, spans, length // 2, len(failed)))
        contexts.append(context)
        if code.call(arguments, context.buffer_info()[0], begin, end, *grid):
            failed.append(context[0])
            for each in [*contexts]:
                each[4] = 1

    total = prod(grid)
    if together:
        own = [threading.Thread(target=part, args=(program, program + 1)) for program in range(total)]
        with uncollected():
            for thread in own:
                thread.start()
            for thread in own:
                thread.join()
    elif order in ("reverse", "shuffle"):
        for program in arranged(range(total), order):
            part(program, program + 1)
            if failed:
                break
    elif threads > 1 and total > 1:
        in_pieces(part, total, -(-total // threads))
    else:
        part(0, total)
    return min(failed, default=None)


def run_every_way(
    name: str, run: Callable[[str, int], int | None], arrays: Sequence[tuple[str, np.ndarray, Any]]
) -> int | None:
    """Run a launch forward, in reverse and in parts on threads, each on the arrays as they were before.

    Args:
        run: the launch, by order and number of threads.
        arrays: label, bytes and dtype of each array that it may change.

    Raises:
        KernelError: the results differ by more than roundings.
    """
    before, first = [data.copy() for _, data, _ in arrays], list[np.ndarray]()
    for order, threads in (("forward", 1), ("reverse", 1), ("forward", 4)):
        for (_, data, _), old in zip(arrays, before):
            data[:] = old
        if (failed := run(order, threads)) is not None:
            return failed
        first = first or [data.copy() for _, data, _ in arrays]
        for (label, data, dtype), other in zip(arrays, first):
            if count := _different(other, data, dtype):
                other_way = "on threads" if threads > 1 else order
                raise KernelError(
                    f"{name}: the result depends on the order in which programs run",
                    f"{count} elements of {label} are not the same forward and {other_way}",
                    remedy="let one program write each element, or use atomic operations; tritensor.cuda.simulate"
                    "(races=True) names the line",
                )
    return None


def _different(first: np.ndarray, second: np.ndarray, dtype: np.dtype) -> int:
    """How many elements of two arrays of bytes differ by more than roundings."""
    if np.array_equal(first, second):
        return 0
    dtype = dtype if dtype.kind != "c" else np.dtype(f"f{dtype.itemsize // 2}")
    x, y = first.view(dtype), second.view(dtype)
    if dtype.kind in "biu":
        return int((x != y).sum())
    tolerance = max(1e-4, 4 * float(ml_dtypes.finfo(dtype).eps))
    with np.errstate(all="ignore"):
        x, y = x.astype(np.float64), y.astype(np.float64)
        # a sum in another order is off by a share of its largest part, of which its result says nothing
        size = np.abs(x[np.isfinite(x)]).max(initial=0)
    return int((~np.isclose(x, y, tolerance, tolerance * size, equal_nan=True)).sum())
