"""The processor as a device whose launches are noted, and none is run: what an operator would launch on arrays like
these, so that it can be launched again on any others. No array has contents here."""

# ruff: noqa: D102  the docstrings in protocol.py and simulator.py describe these methods

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import settings
from ..drivers.native.driver import NativeSimulator, engine
from ..errors import DeviceError
from ..memory.array import DeviceArray
from .native_entry import MOST, Launch, Value

if TYPE_CHECKING:
    from ..drivers.allocator import Arena
    from ..drivers.loading import LaunchRequest
    from ..drivers.streams import Stream


class _Given:
    """What stands for the memory of a call's array: an address, and a number of bytes behind it."""

    def __init__(self, arena: Arena, place: int, nbytes: int) -> None:
        self.arena, self.place, self.nbytes = arena, place, nbytes
        self.device, self.driver = arena.device, arena.driver
        self.address = (place + 1) << 48

    def record_stream(self, stream: Stream) -> None:
        """Nothing runs."""


class Noting(NativeSimulator):
    """The driver.

    Attributes:
        launches: those of the call, in order.
        nbytes: of each array that the call allocated, results among them; they follow the given arrays.
    """

    kind = "the processor, whose launches are noted"
    least_tile = 1

    def __init__(self) -> None:
        super().__init__(1)
        self.shadow = None
        self.launches: list[Launch] = []
        self.nbytes: list[int] = []
        self.given = 0
        self.places: dict[int, tuple[int, Any]] = {}  # by a buffer's id, and the buffer, so that no other has that
        self.stream = self.default_stream(0)
        self.stream.arena.poison = False

    def give(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        """An array in the place of one of the call's; strides count bytes."""
        steps = tuple([step // dtype.itemsize for step in strides])
        reach = dtype.itemsize + sum((size - 1) * step for size, step in zip(shape, strides))
        buffer = _Given(self.stream.arena, self.given, reach)
        self.places[id(buffer)] = self.given, buffer
        self.given += 1
        return DeviceArray.over(buffer, shape, steps, 0, dtype)

    def place(self, array: DeviceArray) -> int:
        """The place of an array's memory in the tuple."""
        buffer = array.buffer
        if id(buffer) not in self.places:
            self.places[id(buffer)] = self.given + len(self.nbytes), buffer
            self.nbytes.append(buffer.nbytes)
        return self.places[id(buffer)][0]

    def launch(self, stream: Stream, request: LaunchRequest) -> None:
        program, values = request.compiled(engine(settings.native_target.value), stream)
        code = program.kernel.code(True)
        if code is None or request.reaches or len(values) > MOST:
            raise DeviceError(f"{program.name}: {program.kernel.refusal or 'too many values'}")
        arrays, found = _arrays(request.arguments), list[Value]()
        for value, is_pointer in zip(values, program.pointers, strict=True):
            if is_pointer:
                array = arrays.pop(0)
                offset = value - array.buffer.address
                found.append(Value(self.place(array), offset, array.buffer.nbytes - offset))
            else:
                word = value if isinstance(value, int) else struct.unpack("<q", struct.pack("<d", value))[0]
                found.append(Value(-1, word, 0))
        self.launches.append(Launch(code, request.grid, found))

    def _refuse(self, *_: Any) -> Any:
        raise DeviceError("memory is read or written other than by kernels")

    fill = copy_h2d = copy_d2h = copy_d2d = submit = submit_to = _refuse  # type: ignore[assignment]


def _arrays(arguments: Sequence[Any]) -> list[DeviceArray]:
    found: list[DeviceArray] = []
    for value in arguments:
        if value.__class__ is tuple:
            found += _arrays(value)
        elif value.__class__ is DeviceArray:
            found.append(value)
    return found
