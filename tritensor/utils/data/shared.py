"""Memory that a loader's worker process shares with the process that iterates.

A batch crosses without a pickle of its bytes: arrays are copied into shared memory, and a small message says where they
are. The receiver's tensors are views of that memory. When the last of them is gone the place is used for another batch,
so that a loader that runs for hours maps its memory once.

The memory has no name in any file system: it is gone when the last process that maps it is, however that ends. On Linux
the limit of /dev/shm, 64 MB in a container unless set, does not apply to it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import multiprocessing
import os
import pickle
import secrets
import socket
import struct
import tempfile
import weakref
from collections.abc import Callable
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from ...errors import AutogradError
from ...tensors import Tensor

_ALIGNMENT = 64
_SMALL = 512  # bytes; smaller arrays are part of the pickle
_KEPT = 8  # free places of a size that keep their pages
_COUNTS = struct.Struct("<QQ")  # of the pickle's bytes, and of the arrays
_REMOVE: int | None = getattr(mmap, "MADV_REMOVE", None)


class _Pickler(pickle.Pickler):
    """Pickles tensors and arrays of any strides so that their bytes go out of band."""

    def reducer_override(self, value: object) -> Any:
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


def pack(value: object) -> Packed:
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


# ---- memory that two processes map ------------------------------------------------------------------------------


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
    try:
        os.ftruncate(descriptor, size)
        return mmap.mmap(descriptor, size), descriptor
    except BaseException:
        os.close(descriptor)
        raise


# ---- messages -------------------------------------------------------------------------------------------------


class Message(NamedTuple):
    """A message from a worker: of which task, what kind of message, the place of the batch, width and number of places
    of a segment that is to be mapped first; and bytes, such as a pickled error or, to a worker, a pickled task."""

    ticket: int = 0
    kind: int = 0
    place: int = 0
    width: int = 0
    places: int = 0
    more: bytes = b""


_HEAD = struct.Struct("<qBQQQQ")  # the last is the number of bytes that follow


class _Closing(socket.socket):
    """A socket that is closed by the garbage collector without a warning, and only once."""

    def __del__(self) -> None:
        self.close()


def connected() -> tuple[Any, Any]:
    """Two ends of a connection, the first for this process, the second for a worker.

    No `multiprocessing.Pipe` but on Windows: its finalizer closes the descriptor and does not note that, garbage is
    finalized in any order, and the pool's `close` then closed what has the number by then.
    """
    if os.name == "nt":
        return multiprocessing.Pipe()
    ours, theirs = socket.socketpair()
    mine = _Closing(fileno=ours.detach())
    for each in (mine, theirs):
        each.settimeout(None)  # whatever socket.setdefaulttimeout() says
    return mine, theirs


def send(connection: Any, message: Message, handle: Any = None) -> None:
    """Send a message, and with it the handle of the segment that it announces: all of it, or nothing if this raises."""
    data = _HEAD.pack(*message[:-1], len(message.more)) + message.more
    if os.name == "nt":
        connection.send_bytes(data + (handle or "").encode())
        return
    passed = [] if handle is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", handle))]
    connection.sendall(memoryview(data)[connection.sendmsg([data], passed) :])


def receive(connection: Any) -> tuple[Message, Any]:
    """The next message and the handle that came with it, or None.

    Raises:
        EOFError: the other end is closed. OSError: this process has no room for the handle.
    """
    if os.name == "nt":
        data = connection.recv_bytes()
        *numbers, length = _HEAD.unpack_from(data)
        end = _HEAD.size + length
        return Message(*numbers)._replace(more=data[_HEAD.size : end]), data[end:].decode() or None
    data, handles, _, _ = socket.recv_fds(connection, _HEAD.size, 1)
    try:
        *numbers, length = _HEAD.unpack(data + _exactly(connection, _HEAD.size - len(data)))
        message = Message(*numbers)._replace(more=_exactly(connection, length))
        if message.width and not handles:  # the system drops one for which there is no room here
            raise OSError(errno.EMFILE, f"{os.strerror(errno.EMFILE)}: no room for a worker's shared memory")
    except BaseException:
        for handle in handles:
            os.close(handle)
        raise
    return message, handles[0] if handles else None


def _exactly(stream: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = stream.recv(min(count, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _mapped(handle: Any, size: int) -> mmap.mmap:
    if os.name == "nt":
        return mmap.mmap(-1, size, tagname=handle)  # type: ignore[call-arg, unused-ignore]
    try:
        return mmap.mmap(handle, size)
    finally:
        os.close(handle)


# ---- segments -------------------------------------------------------------------------------------------------


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

    def give(self, packed: Packed, ticket: int, kind: int) -> None:
        """Write to a free place and send the message that it is there. If this raises, nothing was sent or kept."""
        width = max(1 << (packed.size - 1).bit_length(), mmap.PAGESIZE)
        free = self._free.setdefault(width, [])
        before, count, handle, place = len(self._places), 0, None, -1
        if not free:
            count = max(2, sum(segment.width == width for segment in self._places))
            memory, handle = _made(width * count)
        try:
            if count:
                self._places += [_Segment(memory, width, count, before)] * count
                free += range(before + count - 1, before - 1, -1)
            place = free.pop()
            its = self._places[place]
            start = its.start(place)
            with memoryview(its.memory) as whole:
                packed.write(whole[start : start + packed.size])
            send(self._connection, Message(ticket, kind, place, width if count else 0, count), handle)
        except BaseException:
            if count:
                free.clear()
                del self._places[before:]
            elif place >= 0:
                free.append(place)
            raise
        finally:
            with contextlib.suppress(Exception):  # the message may have been sent
                if isinstance(handle, int):
                    os.close(handle)

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

    def add(self, handle: Any, width: int, count: int) -> None:
        """Map a segment that the worker made."""
        segment = _Segment(_mapped(handle, width * count), width, count, len(self._places))
        self._places += [segment] * count

    def read(self, place: int) -> Any:
        """The value at a place, which is released when its last array is gone."""
        segment = self._places[place]
        lease = (ctypes.c_char * segment.width).from_buffer(segment.memory, segment.start(place))
        weakref.finalize(lease, _release, self.released.append, place).atexit = False
        return _unpacked(memoryview(lease).cast("B"))


def _release(append: Callable[[int], None], place: int) -> None:
    append(place)
