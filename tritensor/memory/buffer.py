"""Buffers of device memory, and new arrays in them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import settings
from ..drivers import ledger, selection
from ..drivers.allocator import Arena, Block
from ..errors import DeviceError
from ..types import devices
from .array import DeviceArray, Form, form_of, form_of_new

if TYPE_CHECKING:
    from ..drivers import Stream
    from ..drivers.protocol import AbstractDriver
    from ..types.devices import device as Device


_make = object.__new__


class Buffer:
    """Memory of one device. When the last reference goes, the block returns to the arena of the stream it came from."""

    __slots__ = ("__weakref__", "address", "arena", "block", "nbytes")

    address: int
    arena: Arena
    block: Block
    nbytes: int  # the size of the request; the block may be larger

    @property
    def driver(self) -> AbstractDriver:
        """The driver that allocated the memory."""
        return self.arena.driver

    @property
    def device(self) -> Device:
        """The device that the memory is on."""
        return self.arena.device

    @property
    def users(self) -> list[Arena]:
        """The arenas of other streams that have used the memory."""
        return self.block.users or []

    def record_stream(self, stream: Stream) -> None:
        """Note that work of another stream uses the memory, so that it is not used again before that work is done."""
        arena = stream.arena
        if arena is not self.arena:
            if arena.driver is not self.arena.driver:
                self.refuse()
            if arena.kept is not None:
                arena.kept[id(self)] = self
            if arena not in self.users:
                self.block.users = [*self.users, arena]

    def refuse(self) -> None:
        """Raise for a use by another driver than the one that allocated the memory.

        Raises:
            DeviceError: always.
        """
        self.address + 0  # of a simulation that has ended: this raises an error that says so
        raise DeviceError(
            "CUDA error: invalid device context",
            f"a tensor on {self.device} belongs to another simulation, or to a device of the machine",
            remedy="copy it with .cpu() and .to(...), or use its simulation with `with simulation.share():`",
        )

    def __del__(self) -> None:
        block = self.block
        if block.users is None:  # the same as `Arena.give`, without the 60 ns of a call
            self.arena.heap.allocated -= block.size
            block.bin.append(block)
        else:
            self.arena.give(block)


class _Meta(Buffer):
    """The buffer of meta tensors: a number of bytes without an address."""

    __slots__ = ()

    def record_stream(self, stream: Stream) -> None:
        """No stream uses it."""

    def __del__(self) -> None:
        pass


def meta(form: Form) -> DeviceArray:
    """An array without memory, of a form of the device `meta`."""
    made: Any = _make(_Meta)
    made.address, made.arena, made.block, made.nbytes = 0, _nowhere, _nowhere, form.nbytes
    return DeviceArray(made, form)


# What meta tensors have for an arena, its block and its driver: nothing runs, and nothing is captured.
_nowhere = SimpleNamespace(device=devices.meta, users=None, captures={}, multi_processor_count=1)
_nowhere.driver, _nowhere.properties = _nowhere, lambda index: _nowhere
_nowhere.pick = lambda compiled, interpreted: compiled


def empty(
    shape: tuple[int, ...], dtype: np.dtype[Any], device: Device, strides: tuple[int, ...] | None = None
) -> DeviceArray:
    """Uninitialised memory for the current stream of a CUDA device; full of NaN where it is simulated, none on meta.

    Args:
        strides: row-major unless given; without gaps.

    Raises:
        DeviceError: no such device. OutOfMemoryError: not enough memory; the message lists the largest live buffers.
    """
    form = form_of_new(shape, dtype, device) if strides is None else form_of(shape, strides, dtype, device, 0)
    if device is devices.meta:
        return meta(form)
    driver = selection.active() or selection.require()
    stream = driver.current_stream(device.index)  # type: ignore[arg-type]
    arena = stream.arena
    array = new(arena, form)
    if arena.poison:
        block = array.buffer.block
        block.owner = weakref.ref(array.buffer)
        driver.fill(block.address, 0xFF if dtype.kind in "fcV" else 0xA5, block.size, stream.handle)
    return array


def new(arena: Arena, form: Form) -> DeviceArray:
    """A new array of a form from `form_of_new`, in uninitialised memory of an arena; it is not poisoned."""
    block = arena.take((form, ledger.call_site()) if settings.debug.value else form)
    # no constructors: calling one costs twice as much as setting the fields
    buffer: Buffer = _make(Buffer)
    buffer.address = block.address
    buffer.arena = arena
    buffer.block = block
    buffer.nbytes = form.nbytes
    array: DeviceArray = _make(DeviceArray)
    array.buffer, array.form, array.offset = buffer, form, 0
    if trace is not None:
        trace(array)
    return array


# Called with every new array while a call is traced (`runtime/trace.py`).
trace: Callable[[DeviceArray], None] | None = None
