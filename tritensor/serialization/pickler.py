"""Write the pickle of a checkpoint: protocol 2, with PyTorch's names.

Python's own pickler can only name classes that can be imported, and `torch` cannot be. This one writes PyTorch's names
for tensors, dtypes, devices and modules. It has its own stack, so Python's recursion does not limit nesting.
"""

from __future__ import annotations

import copyreg
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from ..errors import CheckpointError
from ..tensors import Tensor, wrap
from ..types import devices, dtypes
from ..types.size import Size
from . import numpy_objects
from .keys import KeyCheck
from .malformed import Malformed
from .storages import SavedStorage, SavedTensor, view_storage
from .tree import DEEPEST

# The path of a value in the object that is being saved: (the path of its container, its key or index there).
Place = tuple[Any, Any] | None
Children = Iterator[tuple[Any, Place]]
FUNCTIONS = (FunctionType, BuiltinFunctionType)
BATCH = 1000  # items that are on the reader's stack at a time, as Python's pickler has it

# The storage classes that `torch` has; tensors of other dtypes, the wide unsigned integers, have an untyped storage.
STORAGE_CLASSES = {entry.name: f"{entry.legacy}Storage" for entry in dtypes.LATTICE}


class Pickler:
    """Pickle one object; `storages` are then to be written as records, each under its position in the list."""

    def __init__(self) -> None:
        self.storages: list[SavedStorage] = []
        self._out = bytearray()
        self._memo: dict[Any, int] = {}
        self._keep: list[Any] = []  # an `id` is unique only while its object exists
        self._open: set[int] = set()
        self._keys: dict[Any, int] = {}
        self.has_objects = False
        self._key_check = KeyCheck()

    def dump(self, obj: Any) -> bytes:
        """The pickle of `obj`.

        Raises:
            CheckpointError: something in it is not data; the message says where it is.
        """
        self._out += b"\x80\x02"
        stack: list[Children] = [iter([(obj, None)])]
        while stack:
            for value, place in stack[-1]:
                if self._write_known(value):
                    continue
                writer = self._writer_of(value, place)
                stack.append(writer(self, value, place))
                if len(stack) > DEEPEST + 1:
                    raise _refuse(f"nests deeper than {DEEPEST} levels", place)
                break
            else:
                stack.pop()
        self._out += b"."
        return bytes(self._out)

    def _writer_of(self, value: object, place: Place) -> Callable[[Pickler, Any, Place], Children]:
        writer = WRITERS.get(type(value))
        if writer is not None:
            return writer
        if isinstance(value, Tensor):
            return Pickler._sparse if value.is_sparse else Pickler._tensor
        if isinstance(value, np.generic):
            return Pickler._numpy_scalar
        return Pickler._name if isinstance(value, (type, *FUNCTIONS)) else Pickler._object

    # Small pieces ------------------------------------------------------------------------------------------------

    def _put(self, key: Any) -> None:
        """Put the value just written into the memo, so that it is written once."""
        index = self._memo[key] = len(self._memo)
        self._out += b"q%c" % index if index < 256 else b"r" + index.to_bytes(4, "little")

    def _get(self, key: object) -> bool:
        index = self._memo.get(key)
        if index is None:
            return False
        self._out += b"h%c" % index if index < 256 else b"j" + index.to_bytes(4, "little")
        return True

    def _global(self, name: str) -> None:
        if not self._get(("name", name)):
            module, _, attribute = name.rpartition(".")
            self._out += f"c{module}\n{attribute}\n".encode()
            self._put(("name", name))

    def _text(self, value: str) -> None:
        if not self._get(value):  # a string is its own key here: no other key equals a string
            encoded = value.encode("utf-8", "surrogatepass")
            self._out += b"X" + len(encoded).to_bytes(4, "little") + encoded
            self._put(value)

    def _int(self, value: int) -> None:
        if 0 <= value < 256:
            self._out += b"K%c" % value
        elif 0 <= value < 65536:
            self._out += b"M" + struct.pack("<H", value)
        elif -(2**31) <= value < 2**31:
            self._out += b"J" + struct.pack("<i", value)
        else:
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            self._out += (
                b"\x8a" + bytes([len(data)]) if len(data) < 256 else b"\x8b" + struct.pack("<I", len(data))
            ) + data

    def _ints(self, values: tuple[int, ...]) -> None:
        self._out += b"("
        for value in values:
            self._int(value)
        self._out += b"t"

    def _bytes(self, value: bytes) -> None:
        if not self._get((bytes, value)):
            self._global("_codecs.encode")
            self._text(value.decode("latin-1"))
            self._text("latin1")
            self._out += b"\x86R"
            self._put((bytes, value))

    def _write_known(self, value: Any) -> bool:
        """Write a value that has no parts, or that was written before; False for all others."""
        kind = type(value)
        if kind is str:
            self._text(value)
        elif kind is int:
            self._int(value)
        elif kind is float:
            self._out += b"G" + struct.pack(">d", value)
        elif value is None:
            self._out += b"N"
        elif kind is bool:
            self._out += b"\x88" if value else b"\x89"
        elif kind is bytes:
            self._bytes(value)
        elif kind is dtypes.dtype:
            self._global(f"torch.{value.name}")
        else:
            return id(value) not in self._open and self._get(id(value))
        return True

    def _remember(self, value: object) -> None:
        self._put(id(value))
        self._keep.append(value)

    def _enter(self, value: object, place: Place) -> None:
        if id(value) in self._open:
            raise _refuse("contains itself", place, "save data without cycles")
        self._open.add(id(value))

    # Containers --------------------------------------------------------------------------------------------------

    def _list(self, value: list[Any], place: Place) -> Children:
        self._enter(value, place)
        self._out += b"]"
        self._remember(value)
        yield from self._batches(value, place, b"e")
        self._open.discard(id(value))

    def _batches(self, value: list[Any], place: Place, opcode: bytes) -> Children:
        for start in range(0, len(value), BATCH):
            self._out += b"("
            for index, item in enumerate(value[start : start + BATCH], start):
                if not self._write_known(item):
                    yield item, (place, index)
            self._out += opcode

    def _tuple(self, value: tuple[Any, ...], place: Place) -> Children:
        if not value:
            self._out += b")"
            return
        self._enter(value, place)
        self._out += b"(" if len(value) > 3 else b""
        for index, item in enumerate(value):
            if not self._write_known(item):
                yield item, (place, index)
        self._out += (b"t", b"\x85", b"\x86", b"\x87")[len(value) if len(value) <= 3 else 0]
        self._remember(value)
        self._open.discard(id(value))

    def _dict(self, value: dict[Any, Any], place: Place) -> Children:
        self._enter(value, place)
        self._out += b"}"
        self._remember(value)
        yield from self._items(value, place)
        self._open.discard(id(value))

    def _items(self, value: dict[Any, Any], place: Place) -> Children:
        items = list(value.items())
        for start in range(0, len(items), BATCH):
            self._out += b"("
            for key, item in items[start : start + BATCH]:
                if type(key) is str:
                    self._text(key)
                else:
                    self._check_key(key, (place, key))
                    if not self._write_known(key):
                        yield key, (place, key)
                if not self._write_known(item):
                    yield item, (place, key)
            self._out += b"u"

    def _check_key(self, key: int, place: Place) -> None:
        try:
            self._key_check.check(key)
        except Malformed as error:
            raise _refuse(f"is under a key that cannot be read back: {error.first}", place) from None

    def _ordered_dict(self, value: OrderedDict[Any, Any], place: Place) -> Children:
        self._enter(value, place)
        self._global("collections.OrderedDict")
        self._out += b")R"
        self._remember(value)
        yield from self._items(value, place)
        if value.__dict__:  # a module's state dict carries the versions of its modules here, as `_metadata`
            yield dict(value.__dict__), (place, "__dict__")
            self._out += b"b"
        self._open.discard(id(value))

    def _counter(self, value: Counter[Any], place: Place) -> Children:
        self._enter(value, place)
        self._global("collections.Counter")
        yield dict(value), place
        self._out += b"\x85R"
        self._remember(value)
        self._open.discard(id(value))

    def _set(self, value: set[Any] | frozenset[Any], place: Place) -> Children:
        self._enter(value, place)
        self._global(f"__builtin__.{type(value).__name__}")
        self._out += b"]"
        for item in value:
            self._check_key(item, place)
        yield from self._batches(list(value), place, b"e")
        self._out += b"\x85R"
        self._remember(value)
        self._open.discard(id(value))

    # Values with a constructor -----------------------------------------------------------------------------------

    def _complex(self, value: complex, place: Place) -> Children:
        self._global("__builtin__.complex")
        self._out += b"G" + struct.pack(">d", value.real) + b"G" + struct.pack(">d", value.imag) + b"\x86R"
        yield from ()

    def _bytearray(self, value: bytearray, place: Place) -> Children:
        self._global("__builtin__.bytearray")
        self._bytes(bytes(value))
        self._out += b"\x85R"
        self._remember(value)
        yield from ()

    def _size(self, value: tuple[int, ...], place: Place) -> Children:
        self._global("torch.Size")
        self._ints(value)
        self._out += b"\x85R"
        self._remember(value)
        yield from ()

    def _device(self, value: devices.device, place: Place) -> Children:
        self._global("torch.device")
        self._text(value.type)
        if value.index is None:
            self._out += b"\x85R"
        else:
            self._int(value.index)
            self._out += b"\x86R"
        self._remember(value)
        yield from ()

    # Objects of classes ------------------------------------------------------------------------------------------

    def _name(self, value: Any, place: Place) -> Children:
        from .objects import name_of

        try:
            self._global(name_of(value))
        except LookupError as error:
            kind = "class" if isinstance(value, type) else "function"
            raise _refuse(f"is a {kind} that cannot be found again: {error.args[0]}", place, _advice(value)) from None
        yield from ()

    def _object(self, value: Any, place: Place) -> Children:
        """What Python's own pickler writes for an object: how it is made, its attributes and its items."""
        from .objects import state_of

        self.has_objects = True
        reduce = copyreg.dispatch_table.get(type(value))
        try:
            reduced = reduce(value) if reduce else value.__reduce_ex__(2)
        except Exception as error:
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise _refuse(f"is a {kind}, which cannot be saved: {error}", place, _advice(value)) from error
        if isinstance(reduced, str):
            self._global(f"{value.__module__}.{reduced}")
            return
        function, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        new = getattr(function, "__name__", "") == "__newobj__"
        yield from self._parts(arguments[0] if new else function, place)
        yield from self._parts(tuple(arguments[1:] if new else arguments), place)
        self._out += b"\x81" if new else b"R"
        self._remember(value)
        if items is not None:
            yield from self._batches(list(items), place, b"e")
        if pairs is not None:
            yield from self._items(dict(pairs), place)
        if state is not None:
            yield from self._parts(state_of(value, state), place)
            self._out += b"b"

    def _parts(self, value: Any, place: Place) -> Children:
        if not self._write_known(value):
            yield value, place

    # NumPy -------------------------------------------------------------------------------------------------------

    def _numpy_dtype(self, value: np.dtype[Any], place: Place) -> None:
        if not numpy_objects.is_plain(value):
            raise _refuse(f"is a NumPy object of dtype {value}", place, numpy_objects.PLAIN)
        key = ("numpy dtype", value.str, value.type)
        if self._get(key):
            return
        self._global("numpy.dtype")
        if value.kind == "V":
            self._global(next(name for name, entry in numpy_objects.EXTENSIONS.items() if entry == value))
        else:
            self._text(value.str[1:])
        self._out += b"\x89\x88\x87R"
        if value.kind != "V":
            sizes = (value.itemsize, value.alignment, 8 * (value.kind == "U")) if value.kind in "SU" else (-1, -1, 0)
            self._out += b"(K\x03"
            self._text(value.str[0])
            self._out += b"NNN"
            for number in sizes:
                self._int(number)
            self._out += b"tb"
        self._put(key)

    def _numpy_array(self, value: np.ndarray, place: Place) -> Children:
        fortran = value.flags.f_contiguous and not value.flags.c_contiguous
        self._global("numpy._core.multiarray._reconstruct")
        self._global("numpy.ndarray")
        self._ints((0,))
        self._bytes(b"b")
        self._out += b"\x87R"
        self._remember(value)
        self._out += b"(K\x01"
        self._ints(value.shape)
        self._numpy_dtype(value.dtype, place)
        self._out += b"\x88" if fortran else b"\x89"
        self._bytes(value.tobytes("F" if fortran else "C"))
        self._out += b"tb"
        yield from ()

    def _numpy_scalar(self, value: np.generic, place: Place) -> Children:
        self._global("numpy._core.multiarray.scalar")
        self._numpy_dtype(value.dtype, place)
        self._bytes(value.tobytes())
        self._out += b"\x86R"
        self._remember(value)
        yield from ()

    # Tensors -----------------------------------------------------------------------------------------------------

    def _sparse(self, value: Tensor, place: Place) -> Children:
        """`_rebuild_sparse_tensor(layout, (indices, values, size, coalesced))`, without the flag."""
        self._global("torch._utils._rebuild_sparse_tensor")
        self._global("torch.serialization._get_layout")
        self._text("torch.sparse_coo")
        self._out += b"\x85R("
        for part in (wrap(value._data.indices), wrap(value._data.array), value.shape):
            yield part, place
        self._out += (b"\x88" if value.is_coalesced() else b"\x89") + b"t\x86R"
        self._remember(value)

    def _tensor(self, value: Tensor, place: Place) -> Children:
        saved = view_storage(value)
        if saved.is_parameter:
            self._global("torch._utils._rebuild_parameter")
        self._view(saved)
        if saved.is_parameter:
            self._out += b"\x88" if saved.requires_grad else b"\x89"
            self._no_hooks()
            self._out += b"\x87R"
        self._remember(value)
        yield from ()

    def _view(self, saved: SavedTensor) -> None:
        """`_rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)`, or `_v3` with the dtype.

        Of a meta tensor, which has no storage, `_rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad)`.
        """
        name = saved.dtype.name
        if saved.storage.location == "meta":
            self._global("torch._utils._rebuild_meta_tensor_no_storage")
            self._out += b"("
            self._global(f"torch.{name}")
            self._ints(saved.size)
            self._ints(saved.stride)
            self._out += b"\x88tR" if saved.requires_grad and not saved.is_parameter else b"\x89tR"
            return
        typed = name in STORAGE_CLASSES and saved.storage.nbytes % saved.dtype.itemsize == 0
        known = self._keys.get(saved.storage.key)
        if known is None:
            known = self._keys[saved.storage.key] = len(self.storages)
            saved.storage.type_name = name if typed else ""
            self.storages.append(saved.storage)
        # PyTorch uses the first description of a storage; a tensor of another dtype has to name its own dtype.
        typed = typed and self.storages[known].type_name == name
        self._global("torch._utils._rebuild_tensor_v2" if typed else "torch._utils._rebuild_tensor_v3")
        self._out += b"(("
        self._text("storage")
        self._global(f"torch.{STORAGE_CLASSES[name]}" if typed else "torch.storage.UntypedStorage")
        self._text(str(known))
        self._text(saved.storage.location)
        self._int(saved.storage.nbytes // saved.dtype.itemsize if typed else saved.storage.nbytes)
        self._out += b"tQ"
        self._int(saved.offset)
        self._ints(saved.size)
        self._ints(saved.stride)
        self._out += b"\x88" if saved.requires_grad and not saved.is_parameter else b"\x89"
        self._no_hooks()
        if not typed:
            self._global(f"torch.{name}")
        self._out += b"tR"

    def _no_hooks(self) -> None:
        self._global("collections.OrderedDict")
        self._out += b")R"


WRITERS: dict[type, Callable[[Pickler, Any, Place], Children]] = {
    list: Pickler._list,
    tuple: Pickler._tuple,
    dict: Pickler._dict,
    OrderedDict: Pickler._ordered_dict,
    Counter: Pickler._counter,
    set: Pickler._set,
    frozenset: Pickler._set,
    complex: Pickler._complex,
    bytearray: Pickler._bytearray,
    Size: Pickler._size,
    devices.device: Pickler._device,
    np.ndarray: Pickler._numpy_array,
}


def _refuse(fact: str, place: Place, remedy: str = "") -> CheckpointError:
    steps: list[str] = []
    while place is not None:
        place, key = place
        steps.insert(0, f"[{key!r:.60}]")
    if len(steps) > 12:
        steps[6:-6] = [" ... "]
    return CheckpointError(f"save: obj{''.join(steps)} {fact}", remedy=remedy or None)


def _advice(value: object) -> str:
    if isinstance(value, (type, *FUNCTIONS)):
        return "define it at the top of a module, or save its state_dict()"
    if hasattr(value, "state_dict"):
        return "save its state_dict()"
    return "save numbers, text, bytes, tensors, arrays, and lists, tuples, dicts and sets of them"
