"""Capsules as other libraries make them, field by field, and a count of the calls of their deleters."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Old(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", Tensor),
    ]


_DELETER = ctypes.CFUNCTYPE(None, c_void_p)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
# What the structures refer to, by their address, until the deleter is called.
alive: dict[int, Any] = {}


@_DELETER
def _delete(address: int) -> None:
    _, _, called = alive.pop(address)
    called.append(address)


def name_of(capsule: Any) -> str:
    return _name(capsule).decode()


def read(capsule: Any) -> Any:
    """The structure in a capsule, which it keeps."""
    kind = Versioned if "versioned" in name_of(capsule) else Old
    found: Any = kind.from_address(_pointer(capsule, name_of(capsule).encode()))
    found.capsule = capsule
    return found


class Producer:
    """An array of another library, over memory at an address, of which every field can be chosen.

    Attributes:
        deleted: the addresses of the structures whose deleters were called.
        asked: the arguments of each call of `__dlpack__`.
    """

    def __init__(
        self,
        address: int | None,
        shape: Sequence[int] | None = (2, 3),
        strides: Sequence[int] | None = None,
        *,
        device: tuple[int, int] = (1, 0),
        code: int = 2,
        bits: int = 32,
        lanes: int = 1,
        ndim: int | None = None,
        offset: int = 0,
        version: tuple[int, int] | None = None,
        flags: int = 0,
        name: str | None = None,
        keeper: Any = None,
        takes: Sequence[str] = ("stream", "max_version", "dl_device", "copy"),
    ) -> None:
        self.fields = address, device[0], device[1], len(shape or ()) if ndim is None else ndim, code, bits, lanes
        self.shape, self.strides, self.offset, self.device = shape, strides, offset, device
        self.version, self.flags, self.name, self.keeper, self.takes = version, flags, name, keeper, takes
        self.deleted: list[int] = []
        self.asked: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        self.asked.append(options)
        if unknown := options.keys() - set(self.takes):
            raise TypeError(f"__dlpack__() got an unexpected keyword argument {unknown}")
        return self.capsule()

    def capsule(self) -> Any:
        """A capsule that frees nothing if it is never consumed."""
        shape, strides = (
            None if each is None else (c_int64 * max(len(each), 1))(*each) for each in (self.shape, self.strides)
        )
        null = ctypes.POINTER(c_int64)()
        pointers = [null if each is None else ctypes.cast(each, ctypes.POINTER(c_int64)) for each in (shape, strides)]
        tensor = Tensor(*self.fields, *pointers, self.offset)
        deleter = ctypes.cast(_delete, c_void_p).value
        if self.version is None:
            managed: Any = Old(tensor, None, deleter)
        else:
            managed = Versioned(*self.version, None, deleter, self.flags, tensor)
        address = ctypes.addressof(managed)
        kept = (self.name or ("dltensor" if self.version is None else "dltensor_versioned")).encode()
        alive[address] = (managed, (shape, strides, self.keeper, kept), self.deleted)
        return _new(address, kept, None)
