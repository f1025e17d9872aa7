"""Evenly spaced numbers, computed on the device that holds them.

An element is `start + i * step`, in int64 where start and step are whole, in float64 otherwise, rounded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import dtypes
from ...operator import Operator, Shapes
from ...rules import REAL
from ...runtime.call import Call
from ...runtime.launch import Float64, Int64, kernel, launch
from ...tensor import Tensor, wrap
from ..blocks import block_size

if TYPE_CHECKING:
    import triton.language as tl

__all__ = ["Range", "arange", "linspace"]


class Range(Operator):
    """An operator without inputs: a vector of evenly spaced numbers."""

    family = "range"

    def __call__(self, *, dtype: dtypes.dtype, device: Any, **numbers: Any) -> Tensor:
        """A new vector."""
        return wrap(self.execute(Call(self, (), {**numbers, "dtype": dtype}, device, dtype, (dtype,)))[0])

    def allocate(self, call: Call) -> Shapes:
        """One output of `steps` elements."""
        return [((call.metadata["steps"],), call.results[0].numpy)]

    def launch(self, call: Call) -> None:
        """Each thread computes the elements that it stores."""
        out, count = call.outs[0], call.outs[0].size
        start, end = call.metadata["start"], call.metadata.get("end")
        step = call.metadata["step"] if end is None else (end - start) / max(count - 1, 1)
        whole = isinstance(start, int) and isinstance(step, int) and end is None
        number: type[Int64] | type[Float64] = Int64 if whole else Float64
        block = block_size(out, 1024, interpreted=1 << 14)
        launch(
            range_kernel,
            (-(-count // block),),
            (out, number(start), number(step), number(end or 0), count),
            {
                "WHOLE": whole,
                "CLOSED": end is not None,
                "OUT_DTYPE": call.compute,
                "INDEX64": count >= 1 << 30,
                "BLOCK": block,
            },
            out.device,
            name=self.name,
        )


@kernel
def range_kernel(
    out_ptr,
    start,
    step,
    end,
    count,
    WHOLE: tl.constexpr,
    CLOSED: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    INDEX64: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """out[i] = start + i * step for i below count.

    Args:
        start, step, end: as int64 where WHOLE, else as float64.
        CLOSED: the second half is counted from `end`, which is reached without rounding.
        INDEX64: whether positions need 64 bits.
    """
    first = tl.program_id(0)
    if INDEX64:
        first = first.to(tl.int64)
    index = first * BLOCK + tl.arange(0, BLOCK)
    if WHOLE:
        value = start + index.to(tl.int64) * step
    else:
        value = start + index.to(tl.float64) * step
    if CLOSED:
        value = tl.where((index < count // 2) | (index == 0), value, end - (count - 1 - index).to(tl.float64) * step)
    tl.store(out_ptr + index, value.to(OUT_DTYPE), mask=index < count)


def _range(reference: Any) -> Range:
    return Range(reference.__name__, reference, REAL)


@_range
def arange(*, start, step, steps, dtype):
    """start, start + step, start + 2 step, ..."""
    whole = isinstance(start, int) and isinstance(step, int)
    return _cast(start + np.arange(steps, dtype=np.int64 if whole else np.float64) * step, dtype)


@_range
def linspace(*, start, end, steps, dtype):
    """Numbers in equal steps from `start` to `end`, both included; of each half from its own end, as in PyTorch."""
    index, step = np.arange(steps, dtype=np.float64), (end - start) / max(steps - 1, 1)
    return _cast(np.where(index < max(steps // 2, 1), start + index * step, end - (steps - 1 - index) * step), dtype)


def _cast(numbers: np.ndarray, dtype: dtypes.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):  # numbers that do not fit are converted as on a device
        return numbers.astype(dtype.numpy)
