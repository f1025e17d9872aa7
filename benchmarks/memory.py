"""Memory that operators on the CPU need beside their inputs and results.

    python -m benchmarks.memory [--only 'soft*'] [--dtype bfloat16] [--megabytes 64] [--limit 16]

One call of each registered operator, on the inputs of its derived tests made larger, and its backward pass. tracemalloc
counts what NumPy allocates, in all threads. A call may take its results and some blocks, which is the limit in
megabytes; more is marked OVER, and the exit status says whether anything was.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tritensor
from tests.declared.samples import Sample, dtypes_of, enlarged, has_samples, samples
from tritensor.errors import TritensorError
from tritensor.operators import Operator, registry
from tritensor.tensors import Tensor
from tritensor.types import dtypes

assert tritensor.nn.functional  # the public functions' modules declare what they need when they are imported

MEGABYTES, LIMIT = 64, 16  # of the largest input, and of the blocks that a call may take


@dataclass(frozen=True)
class Measured:
    """Bytes of a call's results, and the most that it had beside them and its inputs at any moment."""

    result: int
    beside: int

    @property
    def ratio(self) -> float:
        return (self.result + self.beside) / max(self.result, 1)


def measure(call: Callable[[], Any], inputs: list[Any]) -> Measured:
    """What `call` allocates; the tensors that it returns are its results, unless they are views of its inputs."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = new_bytes(call(), inputs)
        return Measured(result, max(tracemalloc.get_traced_memory()[1] - before - result, 0))
    finally:
        tracemalloc.stop()


def new_bytes(found: Any, inputs: list[Any]) -> int:
    arrays = [part._data for part in (found if isinstance(found, (tuple, list)) else [found])]
    given = [value._data for value in inputs if isinstance(value, Tensor)]
    return sum(array.nbytes for array in arrays if not any(np.may_share_memory(array, other) for other in given))


def calls_of(operator: Operator, dtype: dtypes.dtype, megabytes: int = MEGABYTES) -> Iterator[Sample]:
    """Large calls, the most usual ones first: of matrices, with inputs of one shape, square rather than narrow."""
    rng = np.random.default_rng(0)
    elements = (megabytes << 20) // dtype.itemsize

    def usual(pair: tuple[Sample, Sample]) -> tuple[bool, int, int]:
        shapes = [value.shape for value in pair[1].inputs if isinstance(value, np.ndarray)]
        largest = max(shapes, key=np.prod)
        return len(largest) == 2, shapes.count(largest), min(largest, default=0)

    # chosen while they are small: a thousand elements say how a call of millions would look
    pairs = [(each, few) for each in samples(operator, dtype, rng) for few in enlarged(each, 50_000, rng)]
    for sample, few in sorted(pairs, key=usual, reverse=True):
        shape = max((value.shape for value in few.inputs if isinstance(value, np.ndarray)), key=np.prod)
        for large in enlarged(sample, elements, rng):
            found = max((value.shape for value in large.inputs if isinstance(value, np.ndarray)), key=np.prod)
            if [a == b for a, b in zip(found, shape, strict=True)].count(False) == 1:
                yield large


def tensors(sample: Sample) -> list[Any]:
    return [tritensor.from_numpy(value) if isinstance(value, np.ndarray) else value for value in sample.inputs]


def operator_memory(
    operator: Operator, dtype: dtypes.dtype, megabytes: int = MEGABYTES
) -> tuple[Measured, Measured | None]:
    """The memory of one call, and of its backward pass if it has one."""
    for sample in calls_of(operator, dtype, megabytes):
        inputs = tensors(sample)
        try:
            if result_bytes(operator, sample, inputs) > megabytes << 23:
                continue  # sizes that are equal by chance were enlarged together
            for _ in range(3):  # native code is made at the second call and compared at the third, which takes memory
                operator(*inputs, **sample.metadata)
            forward = measure(partial(operator, *inputs, **sample.metadata), inputs)
        except (TritensorError, MemoryError):  # likewise
            continue
        return forward, backward_memory(operator, sample, inputs)
    raise LookupError(f"{operator.name}: no call can be made larger")


def result_bytes(operator: Operator, sample: Sample, inputs: list[Any]) -> int:
    """The size of a call's results, which are not computed; 0 where that is not known before."""
    try:
        found = operator(*[x.to("meta") if isinstance(x, Tensor) else x for x in inputs], **sample.metadata)
    except (TritensorError, NotImplementedError):
        return 0
    return sum(x.nbytes for x in (found if isinstance(found, tuple) else (found,)) if isinstance(x, Tensor))


def backward_memory(operator: Operator, sample: Sample, inputs: list[Any]) -> Measured | None:
    if not operator.differentiable:
        return None
    leaves = [inputs[position].requires_grad_() for position in sample.floating()]
    found = operator(*inputs, **sample.metadata)
    out = found[0] if isinstance(found, tuple) else found
    if not leaves or not out.requires_grad:
        return None
    grad = tritensor.ones_like(out)

    for _ in range(3):
        out.backward(grad, retain_graph=True)
    for leaf in leaves:
        leaf.grad = None

    def run() -> list[Any]:
        out.backward(grad)
        return [leaf.grad for leaf in leaves if leaf.grad is not None]

    return measure(run, inputs)


def line(name: str, measured: Measured, limit: int) -> str:
    verdict = "OVER" if measured.beside > limit << 20 else "ok"
    megabytes = [f"{count / 2**20:10.1f}" for count in (measured.result, measured.beside)]
    return f"{name:<40}{megabytes[0]}{megabytes[1]}{measured.ratio:8.2f}  {verdict}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="operators by name, as in 'soft*'")
    parser.add_argument("--dtype", default="float32", help="of the inputs, where the operator takes it")
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, help=f"of the largest input (default {MEGABYTES})")
    parser.add_argument("--limit", type=int, default=LIMIT, help=f"megabytes beside results (default {LIMIT})")
    options = parser.parse_args(arguments)
    names = [name for name in sorted(registry) if fnmatch.fnmatch(name, options.only) and has_samples(registry[name])]
    if not names:
        parser.error(f"--only {options.only!r} names no operator")
    print(f"{options.megabytes} MB in the largest input, {tritensor.get_num_threads()} threads; MB of a call\n")
    print(f"{'operator':<40}{'results':>10}{'beside':>10}{'peak/results':>14}")
    over, count = [], 0
    for name in names:
        accepted = {dtype.name: dtype for dtype in dtypes_of(registry[name])}
        dtype = accepted.get(options.dtype) or accepted[max(accepted)]
        title = name if dtype.name == options.dtype else f"{name}, {dtype.name}"
        parts = operator_memory(registry[name], dtype, options.megabytes)
        for word, measured in zip((title, f"{title}, backward"), parts, strict=True):
            if measured is not None:
                print(line(word, measured, options.limit), flush=True)
                count += 1
                if measured.beside > options.limit << 20:
                    over.append(word)
    print(f"\n{count - len(over)} of {count} need at most {options.limit} MB beside their results")
    if over:
        print(f"OVER: {', '.join(over)}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
