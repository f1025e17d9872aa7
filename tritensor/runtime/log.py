"""`TRITENSOR_DEBUG=2`: a line on stderr for every launch of an operator.

    tritensor: add float32[4096, 4096], float32[4096, 4096] -> float32[4096, 4096] on cuda:0: 61.2 us, 3.29 TB/s,
    68% of the device's 4.81 TB/s

(in one line). The device measures the time, and the host waits for it after each launch. On a simulated device it is
the time of the simulation, and no peak bandwidth is printed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..drivers.capture import capturing
from ..drivers.protocol import AbstractDriver, DeviceProperties
from ..ground.locks import lock
from ..memory.array import DeviceArray
from ..types import dtypes
from . import program

if TYPE_CHECKING:
    from .call import Call

# Operations (a fused multiply-add counts as two) per multiprocessor and clock, by compute capability: in float32, and
# in half precision on the tensor cores.
_PER_CLOCK = {
    (7, 0): (128, 1024),
    (8, 0): (128, 2048),
    (8, 6): (256, 1024),
    (8, 9): (256, 2048),
    (9, 0): (256, 4096),
    (10, 0): (256, 8192),
    (12, 0): (256, 2048),
}
# There is one observer of launches: while a thread's launch is timed, those of other threads wait.
_lock = lock()
# With fewer operations than this for each byte moved, memory bandwidth limits a launch on all of these devices.
_INTENSE = 8


def peak_bandwidth(device: DeviceProperties) -> float:
    """The peak bandwidth of the device's memory in bytes per second; 0 where it is not known.

    >>> peak_bandwidth(DeviceProperties("", 9, 0, 0, 132, memory_clock_rate=2619000, memory_bus_width=5120)) / 1e12
    3.35232
    """
    return 2 * device.memory_clock_rate * 1e3 * device.memory_bus_width / 8


def peak_flops(device: DeviceProperties, dtype: dtypes.dtype) -> float:
    """Peak operations per second on operands of this dtype, at the device's highest clock; 0 where it is not known.

    >>> properties = DeviceProperties("", 9, 0, 0, 132, clock_rate=1830000)
    >>> [round(peak_flops(properties, dtype) / 1e12) for dtype in (dtypes.bfloat16, dtypes.float32, dtypes.float64)]
    [989, 62, 0]
    """
    single, half = _PER_CLOCK.get((device.major, device.minor), (0, 0))
    width = {2: half, 4: single}.get(dtype.itemsize, 0) if dtype.is_floating_point else 0
    return width * device.multi_processor_count * device.clock_rate * 1e3


def logged(call: Call) -> None:
    """Launch a call's kernels and write a line to stderr."""
    operator, outs, arrays = call.operator, call.outs, call.arrays
    buffer, index = outs[0].buffer, outs[0].device.index
    driver = buffer.driver
    if capturing(driver, index) is not None:  # a captured launch does not run, so it has no time
        operator.launch(call)
        return
    queue = driver.current_stream(index).handle
    timer = _Timer(driver, queue)
    with _lock:
        program.observer, before = timer, program.observer
        try:
            operator.launch(call)
        finally:
            program.observer = before
    if timer.start is None or not any(out.size for out in outs):  # no kernel was launched
        return
    end = driver.mark(queue, timing=True)
    driver.mark_synchronize(end)
    seconds = max(driver.elapsed(timer.start, end), 1e-6) * 1e-3
    moved, operations = operator.cost(call)
    properties = driver.properties(index)
    if operations > _INTENSE * moved:
        kinds = [array.dtype for array in arrays if array.__class__ is DeviceArray]
        speed, unit, limit = operations / seconds, "FLOP/s", peak_flops(properties, dtypes.of(kinds[0]))
    else:
        speed, unit, limit = moved / seconds, "B/s", peak_bandwidth(properties)
    # a speed above the peak means that another limit applies (float32 products in tf32, operands in the cache); a peak
    # that is not known is 0
    known = 0 < speed <= limit
    share = f", {speed / limit:.0%} of the device's {scaled(limit)}{unit}" if known else ""
    names = ", ".join(
        _described(value) for value in [*arrays, *(f"{name}={value}" for name, value in call.metadata.items())]
    )
    results = ", ".join(map(_described, outs))
    sys.stderr.write(
        f"tritensor: {operator.name} {names} -> {results} on {outs[0].device}: {duration(seconds)}, "
        f"{scaled(speed)}{unit}{share}\n"
    )


class _Timer:
    """Starts at an operator's first launch, so that the host's work before it, mainly compiling, is not counted."""

    def __init__(self, driver: AbstractDriver, queue: Any) -> None:
        self.driver, self.queue = driver, queue
        self.start: Any = None

    def interpreted(self) -> None:
        if self.start is None:
            self.start = self.driver.mark(self.queue, timing=True)

    def launched(self, program: Any, grid: tuple[int, ...], values: list[int], arguments: Any) -> None:
        self.interpreted()


def _described(value: object) -> str:
    """`float32[2, 3]`, with the strides if the array is not contiguous; numbers as they are."""
    if value.__class__ is not DeviceArray:
        return str(value)
    strides = "" if value.is_contiguous() else f" (strides {', '.join(map(str, value.strides))})"
    return f"{dtypes.of(value.dtype).name}{list(value.shape)}{strides}"


def duration(seconds: float) -> str:
    """Three digits and a unit.

    >>> duration(6.42e-4), duration(0.0)
    ('642 us', '0 us')
    """
    unit, size = ("us", 1e-6) if seconds < 1e-3 else ("ms", 1e-3) if seconds < 1 else ("s", 1)
    return f"{seconds / size:.3g} {unit}"


def scaled(number: float) -> str:
    """Three digits and a prefix.

    >>> scaled(3.352e12), scaled(999.0), scaled(4e15)
    ('3.35 T', '999 ', '4e+03 T')
    """
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {prefix}"
    return f"{number:.3g} "
