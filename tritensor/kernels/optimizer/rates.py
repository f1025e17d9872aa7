"""Numbers of a step that are computed on a device, so that a captured step reads the current ones at each replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...memory import buffer, copies
from ...memory.array import DeviceArray
from ...runtime.launch import DeviceFunction, Float64, kernel, launch
from ...tensors import Tensor
from ..blocks import block_size
from .multi_tensor import Batch

if TYPE_CHECKING:
    import triton.language as tl


@kernel
def rates_kernel(
    rates,
    table,
    lr,
    options,
    count,
    BODY: tl.constexpr,
    TAKES: tl.constexpr,
    KEPT: tl.constexpr,
    ROW: tl.constexpr,
    COLUMN: tl.constexpr,
    WIDTH: tl.constexpr,
    IN_MEMORY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Count a step of each tensor, and work out what its rule takes from the counts and options.

    Args:
        rates: count rows of ROW numbers.
        table: int64, count rows of WIDTH; from column COLUMN on the addresses of what is counted, float32 each: the
            steps, if anything, and what else the schedule keeps.
        lr: the rate, a float64, or with IN_MEMORY a pointer to it.
        options: float64, what BODY takes after the rate and the counts.
        BODY: the schedule; returns the new values of what is kept and the numbers, in one tuple.
        TAKES: for each of the counts whether BODY takes it; the first is the number of steps.
        KEPT: how many of its results are new counts. A block is a row of tensors; the grid is (ceil(count / BLOCK),).
    """
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    wide = tl.zeros((BLOCK,), tl.float64)
    if IN_MEMORY:
        rate = wide + tl.load(lr).to(tl.float64)
    else:
        rate = wide + lr
    counts = ()
    for position in tl.static_range(len(TAKES)):
        place = tl.load(table + index * WIDTH + COLUMN + position, mask=mask, other=0).to(tl.pointer_type(tl.float32))
        value = tl.load(place, mask=mask, other=1.0)
        if position == 0:
            value += 1
            tl.store(place, value, mask=mask)
        if TAKES[position]:
            counts = counts + (value.to(tl.float64),)  # type: ignore[assignment]  # noqa: RUF005
    found = BODY(rate, *counts, *options)
    for position in tl.static_range(KEPT):
        column = COLUMN + len(TAKES) - KEPT + position
        place = tl.load(table + index * WIDTH + column, mask=mask, other=0).to(tl.pointer_type(tl.float32))
        tl.store(place, (wide + found[position]).to(tl.float32), mask=mask)
    for position in tl.static_range(ROW):
        tl.store(rates + index * ROW + position, wide + found[KEPT + position], mask=mask)


class Given:
    """One number of a rule that was computed before, an element for each tensor; see `multi_tensor.Rates`."""

    counters: Sequence[Tensor] = ()

    def __init__(self, name: str, values: Tensor) -> None:
        self.values, self.columns = values, {name: 0}

    def compute(self, batch: Batch, table: DeviceArray, numbers: dict[str, float]) -> DeviceArray:
        """The elements of the batch's tensors."""
        members = self.values if batch.length == self.values.numel() else self.values[batch.members]
        found: DeviceArray = members.contiguous()._data.reshape((batch.length, 1))
        return found

    def read(self, found: DeviceArray, position: int) -> dict[str, float]:
        """One tensor's number, for the reference."""
        return dict(zip(self.columns, copies.to_host(found[position]).tolist(), strict=True))


class Schedule:
    """The counts in device memory, and the numbers of a step by a schedule; see `multi_tensor.Rates`.

    Args:
        body: the schedule.
        lr: a number, or one element on the parameters' device.
        options: the numbers that it takes after rate and counts.
        counters: for each parameter what is counted, each one float32 on its device.
        takes: for each of these whether the schedule takes it.
        names: the names of the rule's numbers.
    """

    def __init__(
        self,
        body: DeviceFunction,
        lr: float | Tensor,
        options: Sequence[float],
        counters: Sequence[Sequence[Tensor]],
        takes: tuple[bool, ...],
        names: Sequence[str],
    ) -> None:
        self.body, self.lr, self.options, self.takes = body, lr, options, takes
        self.counters = [each for row in counters for each in row]
        self.columns = {name: position for position, name in enumerate(names)}

    def compute(self, batch: Batch, table: DeviceArray, numbers: dict[str, float]) -> DeviceArray:
        """Count a step; the numbers, a row for each tensor."""
        rates = buffer.empty((batch.length, len(self.columns)), batch.compute.numpy, batch.device)
        lr: Any = self.lr
        in_memory, each, block = isinstance(lr, Tensor), len(self.takes), block_size(rates, 128)
        rows = [self.counters[position * each : (position + 1) * each] for position in batch.members]
        launch(
            rates_kernel,
            (-(-batch.length // block),),
            (rates, table, lr._data if in_memory else Float64(lr), tuple(map(Float64, self.options)), batch.length),
            {
                "BODY": self.body,
                "TAKES": self.takes,
                "KEPT": max(each - 1, 0),
                "ROW": len(self.columns),
                "COLUMN": batch.extra,
                "WIDTH": batch.rows.shape[1],
                "IN_MEMORY": in_memory,
                "BLOCK": block,
            },
            batch.device,
            name="rates",
            reaches=(("count",) * each, [tuple(counter._data for counter in row) for row in rows]),
        )
        for row in rows:
            for counter in row:
                counter._count_change()
        return rates

    def read(self, found: DeviceArray, position: int) -> dict[str, float]:
        """One tensor's numbers, for the reference."""
        return dict(zip(self.columns, copies.to_host(found[position]).tolist(), strict=True))
