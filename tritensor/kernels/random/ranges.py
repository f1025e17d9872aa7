"""Evenly spaced numbers, computed on the device that holds them.

An element is `start + i * step`, in int64 where start and step are whole, in float64 otherwise, rounded once. Between
two bounds the second half is counted from the end: `end - j * step`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...operators import Operator, Shapes
from ...operators.rules import REAL
from ...runtime.call import Call
from ...runtime.launch import Float64, Int64, kernel, launch
from ...tensors import Tensor, wrap
from ...types import devices, dtypes
from ..addressing import block_index
from ..blocks import block_size

if TYPE_CHECKING:
    import triton.language as tl


class Range(Operator):
    """An operator without inputs: a vector of evenly spaced numbers."""

    family = "range"
    about = "Each thread computes the elements that it stores."

    def __call__(self, *, dtype: dtypes.dtype, device: devices.device, **numbers: Any) -> Tensor:
        """A new vector."""
        return wrap(self.execute(Call(self, (), {**numbers, "dtype": dtype}, device, dtype, (dtype,)))[0])

    def allocate(self, call: Call) -> Shapes:
        """One output of `steps` elements."""
        return [((call.metadata["steps"],), call.results[0].numpy)]

    def launch(self, call: Call) -> None:
        """Each thread computes the elements that it stores."""
        out, count = call.outs[0], call.outs[0].size
        start, end = call.metadata["start"], call.metadata.get("end")
        step = call.metadata["step"] if end is None else (end - start) / (count - 1) if count > 1 else 0.0
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
    index = block_index(BLOCK, INDEX64)
    if WHOLE:
        value = start + index.to(tl.int64) * step
    else:
        value = start + index.to(tl.float64) * step
    if CLOSED:
        rest = (count - 1 - index).to(tl.float64)
        value = tl.where((index < count // 2) | (count == 1), value, end - rest * step)
    tl.store(out_ptr + index, value.to(OUT_DTYPE), mask=index < count)


def _range(reference: Any) -> Range:
    return Range(reference.__name__, reference, REAL)


@_range
def arange(*, start, step, steps, dtype: dtypes.dtype):
    """start, start + step, start + 2 step, ..."""
    whole = isinstance(start, int) and isinstance(step, int)
    return _cast(start + np.arange(steps, dtype=np.int64 if whole else np.float64) * step, dtype)


@_range
def linspace(*, start, end: complex, steps, dtype: dtypes.dtype):
    """Numbers in equal steps from `start` to `end`, both included."""
    return _cast(spaced(start, end, steps, dtype.numpy), dtype)


def spaced(start: Any, end: Any, steps: int, kind: np.dtype) -> np.ndarray:
    """The numbers of `linspace`, in double precision."""
    work: Any = np.complex128 if kind.kind == "c" else np.float64
    if steps == 1:
        return np.full(1, start, work)
    with np.errstate(all="ignore"):
        first, last = work(start), work(end)
        step, index = (last - first) / work(max(steps - 1, 1)), np.arange(steps).astype(work)
        return np.where(index.real < steps // 2, first + step * index, last - step * (steps - 1 - index))


def _cast(numbers: np.ndarray, dtype: dtypes.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):  # numbers that do not fit are converted as on a device
        return numbers.astype(dtype.numpy)
