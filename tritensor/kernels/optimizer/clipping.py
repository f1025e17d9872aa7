"""The norm of many tensors on a device as of one vector, and their scaling, in three launches for all of them.

The kernels find the tensors by a table in device memory, a row of address and size for each. A program takes every
`programs`-th block of one tensor; sums go to a place of its own and are added up in a fixed order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...memory import buffer, copies
from ...memory.array import DeviceArray
from ...runtime.launch import device_function, kernel, launch
from ...tensors import Tensor, wrap
from ...types import dtypes
from .multi_tensor import block_size

if TYPE_CHECKING:
    import triton.language as tl

ORDERS = {1.0: "sum", 2.0: "squares", math.inf: "largest"}
_BYTES = 16 << 10  # read by a program at a time: four vectors of 16 bytes for each of 256 threads
_WARPS = 8
_MOST_PROGRAMS = 64  # for one tensor: the many tensors of a model fill a device


@device_function
def share(table, KIND: tl.constexpr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr):
    """The program's tensor: where it begins, how many elements it has, the first of the program's blocks and the step
    to its next, and where the blocks that lie inside end."""
    row = table + tl.program_id(1).to(tl.int64) * 2
    place = tl.load(row).to(tl.pointer_type(KIND))
    if ALIGNED:
        place = tl.multiple_of(place, 16)
    count = tl.load(row + 1)
    first = tl.program_id(0).to(tl.int64) * BLOCK
    return place, count, first, tl.num_programs(0).to(tl.int64) * BLOCK, count // BLOCK * BLOCK


@device_function
def added(total, x, ORDER: tl.constexpr):
    """The running values of a norm after a block, for each lane."""
    if ORDER == "squares":
        return total + x * x
    elif ORDER == "sum":
        return total + tl.abs(x)
    else:
        size = tl.abs(x)
        return tl.where((size > total) | (size != size), size, total)  # NaN is kept


@kernel
def norm_kernel(
    table,
    out_ptr,
    KIND: tl.constexpr,
    COMPUTE: tl.constexpr,
    ORDER: tl.constexpr,
    ALIGNED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """out[tensor, program]: the contribution of the program's blocks of the tensor to a norm.

    Args:
        table: int64, (tensors, 2): addresses and numbers of elements.
        ORDER: "squares", "sum" (of absolute values) or "largest".
        ALIGNED: every address is divisible by 16. The grid is (programs, tensors).
    """
    place, count, first, step, whole = share(table, KIND, ALIGNED, BLOCK)
    total = tl.zeros((BLOCK,), COMPUTE)
    # blocks that lie inside first: a mask against a number from memory cuts vectors of 16 bytes down to single elements
    for start in range(first, whole, step):
        total = added(total, tl.load(place + start + tl.arange(0, BLOCK)).to(COMPUTE), ORDER)
    if tl.program_id(0) == 0:
        index = whole + tl.arange(0, BLOCK)
        total = added(total, tl.load(place + index, mask=index < count, other=0).to(COMPUTE), ORDER)
    if ORDER == "largest":
        found = tl.max(tl.where(total == total, total, 0.0), 0)
        found = tl.where(tl.sum((total != total).to(tl.int32), 0) > 0, float("nan"), found)
    else:
        found = tl.sum(total, 0)
    tl.store(out_ptr + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0), found)


@kernel
def scale_kernel(
    table, factor_ptr, KIND: tl.constexpr, COMPUTE: tl.constexpr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr
):
    """Multiply every element of every tensor by the number at `factor_ptr`; the rest is as for `norm_kernel`."""
    place, count, first, step, whole = share(table, KIND, ALIGNED, BLOCK)
    factor = tl.load(factor_ptr).to(COMPUTE)
    for start in range(first, whole, step):
        block = place + start + tl.arange(0, BLOCK)
        tl.store(block, (tl.load(block).to(COMPUTE) * factor).to(KIND))
    if tl.program_id(0) == 0:
        index = whole + tl.arange(0, BLOCK)
        x = tl.load(place + index, mask=index < count).to(COMPUTE)
        tl.store(place + index, (x * factor).to(KIND), mask=index < count)


class Gathered:
    """Contiguous tensors of one dtype on one CUDA device, without overlaps, and the table of their addresses."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = tensors
        self.arrays = [tensor._data for tensor in tensors]
        first = self.arrays[0]
        self.device, self.dtype = first.device, dtypes.of(first.dtype)
        self.compute = dtypes.float64 if self.dtype is dtypes.float64 else dtypes.float32
        addresses = [array.data_ptr() for array in self.arrays]
        largest = max(array.size for array in self.arrays)
        self.block = block_size([(array,) for array in self.arrays], _BYTES)
        self.programs = min(max(-(-largest // self.block), 1), _MOST_PROGRAMS)
        rows = np.array([addresses, [array.size for array in self.arrays]], np.int64).T
        self.table = copies.constant(np.ascontiguousarray(rows), self.device)
        self.aligned = all(address & 15 == 0 for address in addresses)

    def launch(self, kernel: Any, name: str, *arguments: DeviceArray, **constants: Any) -> None:
        """Run a kernel over all of them, with device arrays as its arguments after the table."""
        constants |= {"KIND": self.dtype, "COMPUTE": self.compute, "ALIGNED": self.aligned, "BLOCK": self.block}
        launch(
            kernel,
            (self.programs, len(self.arrays)),
            (self.table, *arguments),
            constants,
            self.device,
            warps=_WARPS,
            name=name,
            reaches=(("gradient",), [(array,) for array in self.arrays]),
        )

    def norm(self, order: float) -> Tensor:
        """The norm of all elements, for an order of `ORDERS`, in the tensors' dtype."""
        parts = buffer.empty((len(self.arrays), self.programs), self.compute.numpy, self.device)
        self.launch(norm_kernel, "clip_norm", parts, ORDER=ORDERS[order])
        found = wrap(parts)
        total = found.amax() if order == math.inf else found.sum()
        return (total.sqrt() if order == 2 else total).to(self.dtype)

    def scale(self, factor: Tensor) -> None:
        """Multiply all of them in place by a number on their device."""
        self.launch(scale_kernel, "clip_scale", factor._data)
        for tensor in self.tensors:
            tensor._count_change()


def gather(tensors: Sequence[Tensor]) -> list[Gathered] | None:
    """Tensors by device and dtype; None where some are on the CPU, empty, not contiguous, or passed twice."""
    groups: dict[Any, list[Tensor]] = {}
    seen = set()
    for tensor in tensors:
        data = tensor._data
        if data.__class__ is not DeviceArray or not (data.size and data.is_contiguous()) or data.buffer.address in seen:
            return None
        seen.add(data.buffer.address)
        groups.setdefault((data.device, data.dtype), []).append(tensor)
    # a grid's second dimension is at most 65,535
    return [Gathered(group) for group in groups.values()] if 1 < len(seen) < 1 << 16 else None
