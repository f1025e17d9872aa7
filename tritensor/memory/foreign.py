"""Memory that tritensor and other libraries both use: DLPack's capsules, and arrays in memory of another owner.

NumPy makes the capsules and owns those that are taken. Its deleters are C code that may run in any thread, after the
interpreter's end, and for a capsule that nobody took. What NumPy does not know (bfloat16, float8, devices, flags) is
written into the capsule, or read from it, here. NumPy does not look at the memory, so an address may be that of a
device.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from math import prod
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import numpy as np

from ..drivers import selection
from ..drivers.allocator import Arena, Block
from ..errors import DeviceError, ExchangeError, explain
from ..types import dtypes, layout
from ..types.size import MOST_DIMS
from .array import DeviceArray
from .buffer import Buffer

Capsule = type(np.empty(0).__dlpack__())
# Before NumPy 2.1 there are only capsules without version and flags.
MAX_VERSION = (1, 0) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else None
# Kinds of devices whose memory the CPU reads (its own, pinned), and CUDA's (a device's, managed).
HOST, CUDA = (1, 3), (2, 13)
_KINDS = {"i": 0, "u": 1, "f": 2, "V": 4, "c": 5, "b": 6}
_CODES = {entry.numpy: _KINDS[entry.numpy.kind] for entry in dtypes.ALL}
_FLOAT8 = {"e4m3fn": 10, "e4m3fnuz": 11, "e5m2": 12, "e5m2fnuz": 13}
_CODES |= {entry.numpy: _FLOAT8[entry.name.removeprefix("float8_")] for entry in dtypes.FLOAT8}
_DTYPES = {(code, 8 * kind.itemsize): kind for kind, code in _CODES.items()}
_BYTES = {kind: np.dtype(f"<u{kind.itemsize}") for kind, code in _CODES.items() if code in (4, *_FLOAT8.values())}

# Buffers of devices that other libraries may write to: no fact about their elements is kept (`Tensor._remember`).
shared: WeakSet[Buffer] = WeakSet()


class _Tensor(ctypes.Structure):  # DLTensor, which a capsule of the old kind begins with
    _kinds: Any = c_void_p, c_int32, c_int32, c_int32, c_uint8, c_uint8, c_uint16, *[POINTER(c_int64)] * 2, c_uint64
    _names = "data", "type", "id", "ndim", "code", "bits", "lanes", "shape", "strides", "byte_offset"
    _fields_ = list(zip(_names, _kinds))


_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(c_void_p, py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
# Where it is in a capsule; in one of DLPack 1 the places of flags and major version, and two flags.
_PLACES, _FLAGS, _MAJOR, _READ_ONLY, _COPIED = {b"dltensor": 0, b"dltensor_versioned": 32}, 24, 0, 1, 2


def reachable(first: str, array: DeviceArray | None = None, error: type[Exception] = ExchangeError) -> Any:
    """The driver (of an array, or the one in use), or an error if other libraries cannot use its devices' memory."""
    found = array.buffer.driver if array.__class__ is DeviceArray else selection.require()
    if found.hidden:
        raise error(explain(first, found.hidden, remedy="copy it to host memory first with Tensor.cpu()"))
    return found


def _refuse(first: str, facts: dict[str, Any], *more: str) -> None:
    for fact, found in facts.items():
        if found:
            raise ExchangeError(first, fact, *more)


def _plain(address: int, shape: Any, steps: Any, dtype: np.dtype[Any], locked: bool, keeper: Any) -> np.ndarray:
    """An array of NumPy's over an address, its strides in bytes; of integers in place of what NumPy does not know."""
    kind = _BYTES.get(dtype, dtype).str
    facts = {"data": (address, locked), "shape": shape, "strides": steps, "typestr": kind, "version": 3}
    return np.asarray(SimpleNamespace(__array_interface__=facts, keeper=keeper))  # which is the array's base


def capsule_of(array: Any, versioned: bool, copied: bool) -> Any:
    """A capsule, of DLPack 1 or an old one, with an array; read-only memory only in one of DLPack 1."""
    dtype, plain, device = array.dtype, array, (1, 0)
    if array.__class__ is DeviceArray:
        shared.add(array.buffer)
        steps, device = tuple(step * dtype.itemsize for step in array.strides), (2, array.device.index or 0)
        plain = _plain(array.data_ptr(), array.shape, steps, dtype, False, array)
    elif dtype in _BYTES:
        plain = array.view(_BYTES[dtype])
    try:
        options = {"max_version": MAX_VERSION} if versioned and MAX_VERSION is not None else {}
        capsule: Any = plain.__dlpack__(**options)
    except (BufferError, RuntimeError) as error:
        words = explain("can't export the memory through DLPack.", str(error), remedy="clone() the tensor first")
        raise ExchangeError(words) from None
    pointer = _pointer_of(capsule, name := _name_of(capsule))
    if options:
        c_uint64.from_address(pointer + _FLAGS).value |= _COPIED * copied
    tensor = _Tensor.from_address(pointer + _PLACES[name])
    (tensor.type, tensor.id), tensor.code = device, _CODES[dtype]
    return capsule


def taken(capsule: Any) -> tuple[Any, bool, bool]:
    """The array in a capsule, which is consumed; whether it must not be written, and whether it was copied for this."""
    first, flags = "from_dlpack(): cannot take the memory of the capsule", 0
    name = (type(capsule) is Capsule and _name_of(capsule)) or b""
    fact = "it was consumed before" if name.startswith(b"used_") else f"it is {capsule!r}"
    _refuse(first, {f"{fact}; there can be one 'dltensor' or 'dltensor_versioned', used once": name not in _PLACES})
    pointer = _pointer_of(capsule, name)
    if _PLACES[name]:
        flags, major = (c_uint32.from_address(pointer + place).value for place in (_FLAGS, _MAJOR))
        _refuse(first, {f"its version is {major}, and only 1 is known": major != 1})
    tensor = _Tensor.from_address(pointer + _PLACES[name])
    kind, code, rank = tensor.type, tensor.code, tensor.ndim
    dtype: Any = _DTYPES.get((code, tensor.bits)) if tensor.lanes == 1 else None
    facts = {
        f"its device is of type {kind}; there are the CPU (1, 3) and CUDA devices (2, 13)": kind not in HOST + CUDA,
        f"no dtype has elements of code {code} with {tensor.bits} bits and {tensor.lanes} lanes": dtype is None,
        f"it has {rank} dimensions; there can be {MOST_DIMS}": not 0 <= rank <= MOST_DIMS,
        f"it has {rank} dimensions and no sizes": rank and not tensor.shape,
    }
    _refuse(first, facts)
    index = None if kind in HOST else reachable(first).check(tensor.id)
    shape = tuple(tensor.shape[:rank]) if rank else ()
    steps = [step * dtype.itemsize for step in tensor.strides[:rank]] if rank and tensor.strides else None
    address, locked = tensor.data and tensor.data + tensor.byte_offset, bool(flags & _READ_ONLY)
    tensor.type, tensor.ndim, tensor.code, tensor.bits = 1, 0, 1, 8  # a byte of the host, which NumPy does not look at
    try:
        asked = SimpleNamespace(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: (1, 0))
        owner = np.from_dlpack(asked)  # which consumes the capsule, and calls its deleter in the end
    finally:
        tensor.type, tensor.ndim, tensor.code, tensor.bits = kind, rank, code, 8 * dtype.itemsize
    return array_over(first, address or 0, shape, steps, dtype, index, locked, owner), locked, bool(flags & _COPIED)


def array_over(
    first: str, address: int, shape: Any, steps: Any, dtype: np.dtype, index: int | None, locked: bool, keeper: Any
) -> Any:
    """An array over an owner's memory on the host, or the device of that index; steps are strides in bytes, or None."""
    size, some, shape = dtype.itemsize, 0 not in shape, tuple(shape)
    steps = tuple([step * size for step in layout.contiguous_strides(shape)] if steps is None or not some else steps)
    count = prod(n or 1 for n in shape) if len(steps) == len(shape) and min(shape, default=0) >= 0 else 1 << 62
    end = address + sum((n - 1) * step for n, step in zip(shape, steps))
    facts = {
        "no tensor can have its shape": count * size >= 1 << 62,
        "a stride is negative, and tensors have none: copy the array first": min(steps, default=0) < 0,
        "its elements are not aligned": any(s % size for s in steps) or (index is not None and address % size),
        f"there is no memory at {address:#x}, or as far as it reaches": some and not 0 < address <= end < 1 << 62,
    }
    _refuse(first, facts, f"sizes {[*shape]}, strides {[*steps]} in bytes")
    if index is None:
        return _plain(address, shape, steps, dtype, locked, keeper).view(dtype)
    driver, strides = selection.require(), tuple(step // size for step in steps)
    arena = _Borrowed(driver.heap(index), driver.current_stream(index).handle)
    arena.keeper, nbytes = keeper, layout.span(shape, strides, 0)[1] * size
    buffer: Buffer = object.__new__(Buffer)
    buffer.address, buffer.arena, buffer.nbytes, buffer.block = address, arena, nbytes, Block(address, nbytes, [])
    buffer.block.users = []
    shared.add(buffer)
    return DeviceArray.over(buffer, shape, strides, 0, dtype)


class _Borrowed(Arena):
    """Where one buffer of another library returns to: its owner is dropped when the work that uses it is done."""

    __slots__ = ("keeper",)
    keeper: Any

    def give(self, block: Block) -> None:
        if not sys.is_finalizing():
            with suppress(DeviceError):  # the device is lost, and all its work with it
                for each in (self, *(block.users or ())):
                    self.driver.pinned.hold_until(self.keeper, self.driver.mark_behind(each.queue), counted=False)
                self.keeper = None
                self.driver.pinned.finish_copies()
