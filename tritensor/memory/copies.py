"""Copies between host and devices, and among devices.

The host result of an unfinished copy is a `PendingArray`; the first access to the elements waits for the copy.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from ..drivers import ledger, selection
from ..drivers.allocator import DIRECT, PinnedBlock, is_pinned
from ..drivers.capture import capturing
from ..drivers.refusals import NO_READING, NO_SENDING, ONE_DEVICE, refuse, refused_by
from ..errors import ShapeError, UnsupportedError
from ..types import devices, layout
from .array import DeviceArray, form_of_new
from .buffer import empty, new
from .pending import PendingArray

if TYPE_CHECKING:
    from ..drivers import Stream
    from ..drivers.protocol import AbstractDriver
    from ..types.devices import device as Device

# Copies are split into pieces of this size, so that the host fills one while the device reads the previous one.
CHUNK = 4 << 20
_EMPTY = "make memory for a module by to_empty(device=...), or for a tensor by empty_like(x, device=...)"


def from_host(array: np.ndarray, device: Device, non_blocking: bool = False) -> DeviceArray:
    """A contiguous copy of a host array on a device.

    The array may be changed as soon as this returns, whatever `non_blocking` says: small or pageable sources have been
    copied to pinned memory by then, and large pinned ones are read by the device while the host waits.
    """
    result = empty(array.shape, array.dtype, device)
    _upload(result, array, non_blocking)
    return result


def constant(array: np.ndarray, device: Device) -> DeviceArray:
    """A copy on a device of a host array, to be read only.

    While the current stream is captured, another stream makes the copy, and the graph keeps it alive.
    """
    driver = None if device is devices.meta else selection.active() or selection.require()
    capture = None if driver is None else capturing(driver, device.index)
    if driver is None or capture is None:
        return from_host(array, device)
    # memory that captured work does not write: from the pool itself, an earlier kernel of the graph might get it too
    result = new(capture.pool.aside, form_of_new(array.shape, array.dtype, device))
    capture.kept[id(result.buffer)] = result.buffer
    block = driver.pinned.take(array.nbytes)
    staged = block.bytes[: array.nbytes]
    staged[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    driver.copy_h2d(result.data_ptr(), staged, capture.pool.source)
    driver.pinned.hold_until(block, driver.mark(capture.pool.source))
    return result


def to_host(array: DeviceArray, non_blocking: bool = False, into: np.ndarray | None = None) -> Any:
    """A contiguous copy on the host: an ndarray, or with `non_blocking` a PendingArray.

    Waits for every stream that is known to use the memory, and for nothing else. An array with gaps is copied with
    them, from its lowest element to its highest, and packed on the host; make a very sparse view contiguous first.

    Args:
        into: a contiguous host array of the same shape and dtype to copy a contiguous array to; if it is pinned, the
            device writes to it directly.
    """
    dtype, itemsize = array.dtype, array.dtype.itemsize
    low, high = layout.span(array.shape, array.strides, array.offset)
    nbytes = (high - low) * itemsize
    if array.device is devices.meta:
        raise UnsupportedError("Cannot copy out of meta tensor; no data!", remedy=_EMPTY)
    if nbytes == 0:
        return np.empty(array.shape, dtype)
    driver, stream = ready(array)
    refused_by(driver, stream.handle, *NO_READING)
    address = array.data_ptr() - (array.offset - low) * itemsize
    ledger.note("d2h", nbytes, non_blocking or (into is not None and is_pinned(into)))
    if non_blocking:
        block = driver.pinned.take(nbytes)
        raw = block.array((nbytes,), np.dtype(np.uint8))
        driver.copy_d2h(raw, address, stream.handle)
        mark = driver.mark(stream.handle)
        driver.pinned.hold_until(block, mark)  # the copy's target must exist even if the result is dropped unread
        array.buffer.record_stream(stream)
        return PendingArray(_laid_out(raw, array, low), driver, {stream: mark})
    raw = np.empty(nbytes, np.uint8) if into is None else into.reshape(-1).view(np.uint8)
    _download(driver, stream, raw, address)
    return np.asarray(_laid_out(raw, array, low), order="C")


def copy_across(array: DeviceArray, device: Device, non_blocking: bool = False) -> DeviceArray:
    """A copy on another CUDA device (or the same), with the same strides; the host does not wait.

    The current streams of both devices wait for each other, so the result is right with or without `non_blocking`.
    """
    low, high = layout.span(array.shape, array.strides, array.offset)
    packed = empty((high - low,), array.dtype, device)
    result = DeviceArray.over(packed.buffer, array.shape, array.strides, array.offset - low, array.dtype)
    if high > low:
        source = array.data_ptr() - (array.offset - low) * array.dtype.itemsize
        _copy_d2d(packed, source, array, packed.nbytes)
    return result


def copy_into(target: DeviceArray, source: np.ndarray | DeviceArray, non_blocking: bool = False) -> None:
    """Overwrite a contiguous device array with an array of the same shape and dtype: a host array, or a contiguous one
    on any CUDA device.

    Raises:
        ShapeError: shapes, dtypes or strides do not fit; the target is unchanged.
    """
    if target.shape != source.shape or target.dtype != source.dtype:
        raise ShapeError(
            "copy_into: the arrays differ",
            f"target {target.dtype.name}{list(target.shape)}, source {source.dtype.name}{list(source.shape)}",
        )
    if not target.is_contiguous() or (isinstance(source, DeviceArray) and not source.is_contiguous()):
        raise ShapeError("copy_into: arrays on a device must be contiguous")
    if target.size == 0:
        return
    if isinstance(source, DeviceArray):
        _copy_d2d(target, source.data_ptr(), source, target.nbytes)
    else:
        _upload(target, source, non_blocking)


def pin(array: np.ndarray) -> np.ndarray:
    """A contiguous copy in pinned host memory; the array itself where it is pinned already or there is no device."""
    driver = selection.active()
    if driver is None or is_pinned(array):
        return array
    result = driver.pinned.take(max(array.nbytes, 1)).array(array.shape, array.dtype)
    result[...] = array
    return result


def ready(array: DeviceArray) -> tuple[AbstractDriver, Stream]:
    """The current stream, for a copy of an array: it waits for every other stream that is known to use the memory."""
    buffer = array.buffer
    driver = buffer.arena.driver
    stream = driver.current_stream(array.device.index)
    queue = stream.handle
    if id(queue) in driver.captures:  # captured work does not wait for other streams; a replay as a whole does
        return driver, stream
    for arena in (buffer.arena, *buffer.users):
        if arena.queue is not queue:
            driver.wait(queue, driver.mark_behind(arena.queue))
    return driver, stream


def _upload(target: DeviceArray, source: np.ndarray, non_blocking: bool) -> None:
    if source.size == 0 or target.device is devices.meta:
        return
    driver, stream = ready(target)
    target.buffer.record_stream(stream)
    source = np.asarray(source, order="C")
    host = source.reshape(-1).view(np.uint8)
    pinned = is_pinned(source)
    ledger.note("h2d", host.nbytes, pinned)
    capture = driver.captures.get(id(stream.handle)) if driver.captures else None
    if capture is not None:
        if not (pinned and non_blocking):
            refuse(capture, *NO_SENDING)
        capture.hosts.append(source)
        driver.copy_h2d(target.data_ptr(), host, stream.handle)
        return
    if pinned and not non_blocking and host.nbytes > DIRECT:
        ledger.note("sync")
        driver.copy_h2d(target.data_ptr(), host, stream.handle)
        driver.mark_synchronize(driver.mark(stream.handle))
        return
    address = target.data_ptr()
    for start in range(0, host.nbytes, CHUNK):
        part = host[start : start + CHUNK]
        block = driver.pinned.take(part.nbytes)
        staged = block.bytes[: part.nbytes]
        staged[:] = part
        driver.copy_h2d(address + start, staged, stream.handle)
        driver.pinned.hold_until(block, driver.mark(stream.handle))


def _download(driver: AbstractDriver, stream: Stream, host: np.ndarray, address: int) -> None:
    """Copy to the host; into pageable memory by pinned blocks: the device fills one while the host reads another."""
    ledger.note("sync")
    if is_pinned(host):
        driver.copy_d2h(host, address, stream.handle)
        driver.mark_synchronize(driver.mark(stream.handle))
        return
    in_flight: deque[tuple[int, int, PinnedBlock, Any]] = deque()
    for start in range(0, host.nbytes, CHUNK):
        size = min(CHUNK, host.nbytes - start)
        block = driver.pinned.take(size)
        driver.copy_d2h(block.bytes[:size], address + start, stream.handle)
        in_flight.append((start, size, block, driver.mark(stream.handle)))
        if len(in_flight) > 2:
            _finish_piece(driver, host, *in_flight.popleft())
    for each in in_flight:
        _finish_piece(driver, host, *each)


def _finish_piece(
    driver: AbstractDriver, host: np.ndarray, start: int, size: int, block: PinnedBlock, mark: Any
) -> None:
    driver.mark_synchronize(mark)
    host[start : start + size] = block.bytes[:size]


def _copy_d2d(target: DeviceArray, address: int, source: DeviceArray, nbytes: int) -> None:
    if target.device is devices.meta:
        return
    if source.device is devices.meta:
        to_host(source)
    driver, stream = ready(source)
    other, target_stream = ready(target)
    if other is not driver:
        source.buffer.refuse()
    if stream is not target_stream:
        for each in (stream, target_stream):
            refused_by(driver, each.handle, *ONE_DEVICE)
    ledger.note("d2d", nbytes)
    stream.wait_stream(target_stream)  # earlier work may still use the target's memory
    places = target_stream.arena.heap.index, stream.arena.heap.index
    driver.copy_d2d(target.data_ptr(), address, nbytes, stream.handle, places)
    target_stream.wait_stream(stream)
    source.buffer.record_stream(stream)
    target.buffer.record_stream(target_stream)


def _laid_out(raw: np.ndarray, array: DeviceArray, low: int) -> np.ndarray:
    """A host array with the shape and strides of a device array over a copy of the bytes that it spans."""
    itemsize = array.dtype.itemsize
    strides = tuple(stride * itemsize for stride in array.strides)
    return np.ndarray(array.shape, array.dtype, raw, (array.offset - low) * itemsize, strides)
