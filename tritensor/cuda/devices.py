"""Functions on devices: their properties, the current device and stream, memory and seeds."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..drivers import DeviceProperties, Stream, active, count, require
from ..drivers import ledger as _ledger
from ..drivers.allocator import Heap, readable
from ..drivers.refusals import NO_WAITING, refuse
from ..drivers.streams import submit_noted
from ..errors import ArgumentError
from ..operators.generators import Generator, generator_of
from ..tensors import Tensor
from ..types import Device, devices
from ..types.devices import ordinal

__all__ = ["can_device_access_peer", "current_device", "current_stream", "default_stream", "device", "device_count"]
__all__ += ["empty_cache", "get_device_capability", "get_device_name", "get_device_properties"]
__all__ += ["get_per_process_memory_fraction", "get_rng_state", "get_rng_state_all", "initial_seed", "is_available"]
__all__ += ["is_bf16_supported", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved"]
__all__ += ["mem_get_info", "memory_allocated", "memory_reserved", "memory_stats", "memory_summary"]
__all__ += ["reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_per_process_memory_fraction"]
__all__ += ["set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize"]


# -- devices


def is_available() -> bool:
    """True if there is a CUDA device, real or simulated; `python -m tritensor doctor` says why not."""
    return count() > 0


def device_count() -> int:
    """The number of CUDA devices; 0 without a driver."""
    return count()


def current_device() -> int:
    """The index of the current CUDA device, the one that "cuda" means in this thread.

    Raises:
        DeviceError: there is no device.
    """
    require()
    return devices.current_index()


def set_device(device: Device) -> None:
    """Make a device the current one in this thread, which "cuda" then means; a negative number changes nothing.

    Raises:
        DeviceError: no such device.
    """
    if not (isinstance(device, int) and device < 0):
        require().set_device(ordinal(device))


class device:
    """`with tritensor.cuda.device(1):` makes a device the current one in the block; None and -1 change nothing.

    >>> import tritensor.cuda
    >>> with tritensor.cuda.simulate(devices=2), tritensor.cuda.device(1):
    ...     tritensor.cuda.current_device()
    1

    Raises:
        DeviceError: no such device, when the block is entered.
    """

    def __init__(self, device: Device) -> None:
        self._device = None if isinstance(device, int) and device < 0 else device

    def __enter__(self) -> device:
        driver = require()
        before = devices.current_index()
        if self._device is not None:
            driver.set_device(ordinal(self._device))
        _blocks.before.append(before)
        return self

    def __exit__(self, *exception: object) -> None:
        before = _blocks.before.pop()
        if before != devices.current_index():
            require().set_device(before)


class _Blocks(threading.local):
    def __init__(self) -> None:
        self.before: list[int] = []  # the current devices from before the blocks that this thread is in


_blocks = _Blocks()


def get_device_name(device: Device = None) -> str:
    """The name of a device (the current one unless given); that of a simulated device contains the word."""
    return require().name(ordinal(device))


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """The compute capability of a device (the current one unless given), as in (9, 0)."""
    return require().capability(ordinal(device))


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Name, capability, memory, multiprocessors and more of a device (the current one unless given)."""
    return require().properties(ordinal(device))


def is_bf16_supported() -> bool:
    """True if the current device computes in bfloat16 (compute capability 8.0 and later)."""
    return get_device_capability() >= (8, 0)


def can_device_access_peer(device: Device, peer_device: Any) -> bool:
    """True if a device can read another's memory directly; copies between the two then skip the host.

    >>> import tritensor.cuda
    >>> with tritensor.cuda.simulate(devices=2):
    ...     tritensor.cuda.can_device_access_peer(0, 1), tritensor.cuda.can_device_access_peer(0, 0)
    (True, False)

    Raises:
        DeviceError: no such device.
    """
    return require().can_access_peer(ordinal(device), ordinal(peer_device))


# -- streams


def synchronize(device: Device = None) -> None:
    """Wait on the host for all work on a device (the current one unless given)."""
    driver, index = require(), ordinal(device)
    for capture in list(driver.captures.values()):
        if capture.stream.device.index == index:
            refuse(capture, *NO_WAITING)
    submit_noted()
    _ledger.note("sync")
    driver.synchronize(index)


def current_stream(device: Device = None) -> Stream:
    """The stream that receives this thread's work on a device (the current one unless given)."""
    driver = require()
    return driver.current_stream(driver.check(ordinal(device)))


def default_stream(device: Device = None) -> Stream:
    """The stream of a device (the current one unless given) that is current until another is made current."""
    return require().default_stream(ordinal(device))


def set_stream(stream: Stream | None) -> None:
    """Make a stream current on its device in this thread; None changes nothing. Prefer `with stream(...)`."""
    if stream is not None:
        submit_noted()
        stream.driver.set_current_stream(stream)


@contextmanager
def stream(stream: Stream | None) -> Iterator[Stream | None]:
    """Run the work of a block in a stream, with its device as the current one; None changes nothing.

    >>> import tritensor.cuda as cuda
    >>> with cuda.simulate():
    ...     side = cuda.Stream()
    ...     with cuda.stream(side):
    ...         cuda.current_stream() is side
    True
    """
    if stream is None:
        yield None
        return
    submit_noted()
    driver, index = stream.driver, devices.current_index()
    driver.set_device(stream.device.index)  # type: ignore[arg-type]
    before = driver.set_current_stream(stream)
    try:
        yield stream
        submit_noted()
    finally:
        driver.set_current_stream(before)
        driver.set_device(index)


# -- memory


def _heap(device: Device) -> Heap | None:
    driver = active()
    return None if driver is None else driver.heap(ordinal(device))


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total bytes of a device (the current one unless given); memory of all processes counts as used."""
    return require().memory_info(ordinal(device))


def memory_allocated(device: Device = None) -> int:
    """Bytes of the blocks that live tensors use on a device; 0 without a driver."""
    heap = _heap(device)
    return 0 if heap is None else heap.allocated


def max_memory_allocated(device: Device = None) -> int:
    """The peak of `memory_allocated` since the start or `reset_peak_memory_stats`; 0 without a driver."""
    heap = _heap(device)
    return 0 if heap is None else heap.peak


def memory_reserved(device: Device = None) -> int:
    """Bytes allocated from a device, in use or cached; 0 without a driver."""
    heap = _heap(device)
    return 0 if heap is None else heap.reserved


def max_memory_reserved(device: Device = None) -> int:
    """The peak of `memory_reserved` since the start or `reset_peak_memory_stats`; 0 without a driver."""
    heap = _heap(device)
    return 0 if heap is None else heap.peak_reserved


def reset_peak_memory_stats(device: Device = None) -> None:
    """Reset the peaks to the present values; does nothing without a driver."""
    heap = _heap(device)
    if heap is not None:
        heap.peak, heap.peak_reserved = heap.allocated, heap.reserved


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Limit this process to a part of a device's memory, so that other processes can use the rest.

    >>> import tritensor as torch
    >>> with torch.cuda.simulate(memory="1MB"):
    ...     torch.cuda.set_per_process_memory_fraction(0.5)
    ...     try:
    ...         torch.empty(600_000, dtype=torch.uint8, device="cuda")
    ...     except torch.cuda.OutOfMemoryError:
    ...         torch.cuda.get_per_process_memory_fraction()
    0.5

    Raises:
        ArgumentError: `fraction` is not a float. ValueError: it is not between 0 and 1.
    """
    if not isinstance(fraction, float):
        raise ArgumentError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    require().heap(ordinal(device)).fraction = fraction


def get_per_process_memory_fraction(device: Device = None) -> float:
    """The fraction that `set_per_process_memory_fraction` set for a device; 1.0 by default."""
    return require().heap(ordinal(device)).fraction


def memory_stats(device: Device = None) -> dict[str, int]:
    """The allocator's counters: bytes in use and reserved, now and at most; live buffers; requests to the driver."""
    heap = _heap(device)
    return {} if heap is None else heap.stats()


def memory_summary(device: Device = None) -> str:
    """The counters and the largest live tensors of a device, for reading.

    >>> import tritensor.cuda
    >>> with tritensor.cuda.simulate():
    ...     print(tritensor.cuda.memory_summary())
    cuda:0 Simulated CUDA device
      in use now 0 bytes, at most 0 bytes
      held now 0 bytes, at most 0 bytes
      0 live buffers, 0 requests to the driver, of which 0 were made twice
    """
    driver = require()
    index = ordinal(device)
    found = driver.heap(index).stats()
    lines = [
        f"cuda:{index} {driver.name(index)}",
        f"  in use now {readable(found['allocated'])}, at most {readable(found['allocated_peak'])}",
        f"  held now {readable(found['reserved'])}, at most {readable(found['reserved_peak'])}",
        f"  {found['live_buffers']} live buffers, {found['driver_allocations']} requests to the driver, of which "
        f"{found['retries']} were made twice",
    ]
    largest = sorted(driver.heap(index).live(), key=lambda block: -block.nbytes)[:10]
    return "\n".join([*lines, *(f"  live: {readable(block.nbytes)}, {block.label()}" for block in largest)])


def empty_cache() -> None:
    """Return cached memory that no tensor uses to the devices and the host; does nothing without a driver."""
    driver = active()
    if driver is not None:
        for capture in list(driver.captures.values()):
            refuse(capture, "memory is handed back by waiting for the device", "call it before or after the capture")
        driver.empty_cache()


# -- random numbers


def _generator(device: Device) -> Generator:
    return generator_of(devices.cuda(ordinal(device)))


def manual_seed(seed: int) -> None:
    """Seed the current device's default generator."""
    generator_of(devices.cuda(devices.current_index())).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the default generators of all CUDA devices."""
    for index in range(max(device_count(), 1)):
        generator_of(devices.cuda(index)).manual_seed(seed)


def seed() -> int:
    """Seed the current device's default generator with a non-deterministic number, and return it."""
    return generator_of(devices.cuda(devices.current_index())).seed()


def seed_all() -> None:
    """Seed the default generators of all CUDA devices with one non-deterministic number."""
    manual_seed_all(seed())


def initial_seed() -> int:
    """The seed of the current device's default generator."""
    return generator_of(devices.cuda(devices.current_index())).initial_seed()


def get_rng_state(device: Device = None) -> Tensor:
    """The state of a device's default generator (the current device's unless given), on the CPU."""
    return _generator(device).get_state()


def set_rng_state(new_state: Tensor, device: Device = None) -> None:
    """Set the state of a device's default generator to one that `get_rng_state` returned."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[Tensor]:
    """The states of all devices' default generators, by ordinal, on the CPU."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Set the states of all devices' default generators to those that `get_rng_state_all` returned.

    Raises:
        DeviceError: more states than devices. ArgumentError, ShapeError: an invalid state. Then no generator changes.
    """
    states = list(new_states)
    for index, state in enumerate(states):
        Generator(devices.cuda(require().check(index))).set_state(state)
    for index, state in enumerate(states):
        set_rng_state(state, index)
