"""Learning rates and step counts in device memory, so that a captured step reads the current values at each replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...memory import buffer, copies
from ...memory.array import DeviceArray
from ...runtime.launch import Float64, kernel, launch
from ...tensor import Tensor
from ..blocks import block_size
from .multi_tensor import Batch

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

__all__ = ["AdamRates", "GivenRate", "adam_rates_kernel"]


class GivenRate:
    """A learning rate in device memory, the same for all tensors; see `multi_tensor.Rates`.

    Args:
        lr: one element on the parameters' device.
    """

    counters: Sequence[Tensor] = ()
    columns = {"lr": 0}  # noqa: RUF012

    def __init__(self, lr: Tensor) -> None:
        self.lr = lr

    def compute(self, batch: Batch, table: DeviceArray, numbers: dict[str, float]) -> DeviceArray:
        """The rate itself."""
        return self.lr._data.reshape(())

    def read(self, found: DeviceArray, position: int) -> dict[str, float]:
        """The rate, for the reference."""
        return {"lr": copies.to_host(found).item()}


@kernel
def adam_rates_kernel(
    rates,
    table,
    lr,
    beta1,
    beta2,
    decay,
    count,
    COLUMN: tl.constexpr,
    WIDTH: tl.constexpr,
    IN_MEMORY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Count a step of each tensor, and work out what Adam's step takes from the counts.

    Args:
        rates: count rows of the learning rate, the factor that shrinks the parameter, and both corrections.
        table: int64, count rows of WIDTH; column COLUMN is the address of the tensor's step count, a float32.
        lr: the rate, a float64, or with IN_MEMORY a pointer to it.
        beta1, beta2, decay: float64; the parameter shrinks by the factor 1 - lr * decay.
        BLOCK: tensors per program. The grid is (ceil(count / BLOCK),).
    """
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    counters = tl.load(table + index * WIDTH + COLUMN, mask=mask, other=0).to(tl.pointer_type(tl.float32))
    steps = tl.load(counters, mask=mask, other=0.0) + 1
    tl.store(counters, steps, mask=mask)
    if IN_MEMORY:
        rate = tl.load(lr).to(tl.float64)
    else:
        rate = lr
    # in double precision: 1 - beta2 ** step is a small difference, of which float32 leaves five digits
    wide = steps.to(tl.float64)
    tl.store(rates + index * 4, tl.zeros_like(wide) + rate, mask=mask)
    tl.store(rates + index * 4 + 1, tl.zeros_like(wide) + (1 - rate * decay), mask=mask)
    tl.store(rates + index * 4 + 2, 1 - libdevice.pow(tl.zeros_like(wide) + beta1, wide), mask=mask)
    tl.store(rates + index * 4 + 3, 1 - libdevice.pow(tl.zeros_like(wide) + beta2, wide), mask=mask)


class AdamRates:
    """Adam's step counts in device memory, and what follows from them; see `multi_tensor.Rates`.

    Args:
        lr: a number, or one element on the parameters' device.
        decay: times `lr`, the fraction by which a parameter shrinks in a step.
        counters: the step count of each parameter, one float32 on its device.
    """

    columns = {"lr": 0, "shrink": 1, "correction1": 2, "correction2": 3}  # noqa: RUF012

    def __init__(self, lr: float | Tensor, decay: float, counters: Sequence[Tensor]) -> None:
        self.lr, self.decay, self.counters = lr, decay, counters

    def compute(self, batch: Batch, table: DeviceArray, numbers: dict[str, float]) -> DeviceArray:
        """Count a step; the numbers, a row of four for each tensor."""
        rates = buffer.empty((batch.length, 4), batch.compute.numpy, batch.device)
        lr: Any = self.lr
        in_memory = isinstance(lr, Tensor)
        block = block_size(rates, 128)
        launch(
            adam_rates_kernel,
            (-(-batch.length // block),),
            (
                rates,
                table,
                lr._data if in_memory else Float64(lr),
                Float64(numbers["beta1"]),
                Float64(numbers["beta2"]),
                Float64(self.decay),
                batch.length,
            ),
            {"COLUMN": batch.extra, "WIDTH": batch.rows.shape[1], "IN_MEMORY": in_memory, "BLOCK": block},
            batch.device,
            name="adam_rates",
            reaches=(("step",), [(self.counters[position]._data,) for position in batch.members]),
        )
        for position in batch.members:
            self.counters[position]._count_change()
        return rates

    def read(self, found: DeviceArray, position: int) -> dict[str, float]:
        """One tensor's numbers, for the reference."""
        return dict(zip(self.columns, copies.to_host(found[position]).tolist(), strict=True))
