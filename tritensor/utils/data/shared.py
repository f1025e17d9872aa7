"""Memory that a loader's worker process shares with the process that iterates.

A batch crosses without a pickle of its bytes: arrays are copied into shared memory, and a small message says where they
are. The receiver's tensors are views of that memory. When the last of them is gone the place is used for another batch,
so that a loader that runs for hours maps its memory once.

The memory has no name in any file system: it is gone when the last process that maps it is, however that ends. On Linux
the limit of /dev/shm, 64 MB in a container unless set, does not apply to it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import secrets
import struct
import tempfile
import weakref
from collections.abc import Callable
from io import BytesIO
from multiprocessing import reduction
from typing import Any

import numpy as np

from ...errors import AutogradError
from ...tensor import Tensor

__all__ = ["Arena", "Mapped", "Packed", "pack"]

_ALIGNMENT = 64
_SMALL = 512  # bytes; smaller arrays are part of the pickle
_KEPT = 8  # free places of a size that keep their pages
_COUNTS = struct.Struct("<QQ")  # of the pickle's bytes, and of the arrays
_REMOVE: int | None = getattr(mmap, "MADV_REMOVE", None)


class _Pickler(pickle.Pickler):
    """Pickles tensors and arrays of any strides so that their bytes go out of band."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Tensor) and value._node is not None:
            raise AutogradError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
                "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor "
                "before serializing (e.g., putting it on the queue)."
            )
        if type(value) is not np.ndarray or value.dtype.hasobject:
            return NotImplemented
        if value.dtype.isbuiltin == 2:  # a dtype of ml_dtypes, which has no buffer protocol
            return np.ndarray.view, (value.view(f"u{value.itemsize}"), value.dtype)
        if not value.flags.forc:
            order = sorted(range(value.ndim), key=lambda dim: -abs(value.strides[dim]))
            return np.transpose, (np.ascontiguousarray(value.transpose(order)), tuple(np.argsort(order).tolist()))
        return NotImplemented


class Packed:
    """A value as a pickle and the bytes of its arrays.

    Attributes:
        size: bytes that it takes in shared memory.
    """

    def __init__(self, value: Any) -> None:
        self._buffers: list[memoryview] = []
        file = BytesIO()
        _Pickler(file, 5, buffer_callback=self._keep).dump(value)
        self._pickle = file.getbuffer()
        self._starts: list[int] = []
        end = _COUNTS.size + 16 * len(self._buffers) + len(self._pickle)
        for buffer in self._buffers:
            start = -(-end // _ALIGNMENT) * _ALIGNMENT
            self._starts.append(start)
            end = start + len(buffer)
        self.size = end

    def _keep(self, buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if len(raw) < _SMALL:
            return True
        self._buffers.append(raw)
        return False

    def write(self, memory: memoryview) -> None:
        """Copy everything to shared memory."""
        lengths = [len(buffer) for buffer in self._buffers]
        head = _COUNTS.pack(len(self._pickle), len(lengths)) + np.array([self._starts, lengths], np.uint64).tobytes()
        memory[: len(head)] = head
        memory[len(head) : len(head) + len(self._pickle)] = self._pickle
        whole = np.frombuffer(memory, np.uint8)
        for start, buffer in zip(self._starts, self._buffers, strict=True):
            whole[start : start + len(buffer)] = np.frombuffer(buffer, np.uint8)


def pack(value: Any) -> Packed:
    """A value ready to be written to shared memory.

    Raises:
        AutogradError: it holds a tensor with a history. Whatever pickle raises for what it cannot pickle.
    """
    return Packed(value)


def _unpacked(memory: memoryview) -> Any:
    """The value that was written to shared memory; its large arrays are views of it."""
    length, count = _COUNTS.unpack_from(memory)
    begin = _COUNTS.size + 16 * count
    starts, lengths = np.frombuffer(memory[_COUNTS.size : begin], np.uint64).reshape(2, count).tolist()
    buffers = [memory[start : start + size] for start, size in zip(starts, lengths, strict=True)]
    return pickle.loads(memory[begin : begin + length], buffers=buffers)


# ---- segments -------------------------------------------------------------------------------------------------


def _made(size: int) -> tuple[mmap.mmap, Any]:
    """New shared memory without a name, and what another process needs to map it: a descriptor, on Windows a tag."""
    if os.name == "nt":
        tag = f"tritensor-{secrets.token_hex(16)}"
        return mmap.mmap(-1, size, tagname=tag), tag  # type: ignore[call-arg, unused-ignore]
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("tritensor-loader")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return mmap.mmap(descriptor, size), descriptor


def _send(connection: Any, handle: Any) -> None:
    if os.name == "nt":
        connection.send(handle)
    else:
        reduction.send_handle(connection, handle, None)  # type: ignore[arg-type]
        os.close(handle)


def _received(connection: Any, size: int) -> mmap.mmap:
    if os.name == "nt":
        return mmap.mmap(-1, size, tagname=connection.recv())  # type: ignore[call-arg, unused-ignore]
    descriptor = reduction.recv_handle(connection)
    try:
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)


class _Segment:
    """Shared memory of `count` places of `width` bytes; its first has the number `first` among all of a worker's."""

    def __init__(self, memory: mmap.mmap, width: int, count: int, first: int) -> None:
        self.memory, self.width, self.count, self.first = memory, width, count, first

    def start(self, place: int) -> int:
        return (place - self.first) * self.width


class Arena:
    """The worker's side: places for batches, in segments that double in number, each free or in use by the receiver."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._free: dict[int, list[int]] = {}  # the free places of each width, the one that was used last at the end
        self._places: list[_Segment] = []  # the segment of each place
        self._unsent: list[tuple[_Segment, Any]] = []

    def write(self, packed: Packed) -> tuple[int, int, int]:
        """Write to a free place; returns its number, and width and count of a segment that the receiver has to map."""
        width = max(1 << (packed.size - 1).bit_length(), mmap.PAGESIZE)
        free = self._free.setdefault(width, [])
        segment = None if free else self._grow(width, free)
        place = free.pop()
        its = self._places[place]
        start = its.start(place)
        with memoryview(its.memory) as memory:
            packed.write(memory[start : start + packed.size])
        return place, width if segment else 0, segment.count if segment else 0

    def _grow(self, width: int, free: list[int]) -> _Segment:
        count = max(2, sum(segment.width == width for segment in self._places))
        memory, handle = _made(width * count)
        segment = _Segment(memory, width, count, len(self._places))
        self._places += [segment] * count
        free += range(segment.first + count - 1, segment.first - 1, -1)
        self._unsent.append((segment, handle))
        return segment

    def send(self) -> None:
        """Hand new segments to the receiver, which has been told that they come."""
        while self._unsent:
            _send(self._connection, self._unsent.pop(0)[1])

    def release(self, places: list[int]) -> None:
        """Take places back. Those that are not needed soon give their memory to the system."""
        for place in places:
            segment = self._places[place]
            free = self._free[segment.width]
            free.append(place)
            if len(free) > _KEPT and _REMOVE is not None:
                oldest = free[-_KEPT - 1]
                its = self._places[oldest]
                its.memory.madvise(_REMOVE, its.start(oldest), its.width)


class Mapped:
    """The receiver's side: the memory of one worker.

    Attributes:
        released: places that hold no live array, for the worker to use again.
    """

    def __init__(self) -> None:
        self.released: list[int] = []
        self._places: list[_Segment] = []

    def receive(self, connection: Any, width: int, count: int) -> None:
        """Map a segment that the worker made."""
        segment = _Segment(_received(connection, width * count), width, count, len(self._places))
        self._places += [segment] * count

    def read(self, place: int) -> Any:
        """The value at a place, which is released when its last array is gone."""
        segment = self._places[place]
        lease = (ctypes.c_char * segment.width).from_buffer(segment.memory, segment.start(place))
        weakref.finalize(lease, _release, self.released.append, place).atexit = False
        return _unpacked(memoryview(lease).cast("B"))


def _release(append: Callable[[int], None], place: int) -> None:
    append(place)
