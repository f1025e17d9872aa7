"""Tells a shadow what interpreted kernels access, and finds the line of a kernel that runs."""

from __future__ import annotations

import sys
from types import FrameType
from typing import NoReturn

import numpy as np
from triton._C.libtriton import interpreter as memory
from triton.runtime import interpreter

from ...drivers.lines import place_of
from ...drivers.shadow import Shadow
from ...errors import KernelError, explain

_SELF = __name__.rpartition(".")[0]


def here(frame: FrameType | None = None) -> str:
    """The line of the kernel that runs, or ran in a frame: `kernel.py:91`."""
    found = []
    frame = frame or sys._getframe(1)
    ends = (f"{_SELF}.run", "run"), (f"{_SELF}.turns", "_one")
    while frame is not None and (frame.f_globals.get("__name__"), frame.f_code.co_name) not in ends:
        if not frame.f_globals.get("__name__", "").startswith((f"{_SELF}.", "triton.")):
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return place_of(found)


def raised_at(error: BaseException) -> str:
    """The line of the kernel in which an error was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return here(trace.tb_frame if trace else None)


class _Accesses:
    """The accesses of one program: addresses, its number, and what raises an error about them."""

    def __init__(self, program: Watching, pointer: interpreter.TensorHandle, active: np.ndarray) -> None:
        self.program = program
        self.addresses = pointer.data[active].astype(np.int64)
        x, y, z = program.grid_idx
        number = x + program.grid_dim[0] * (y + program.grid_dim[1] * z)
        self.programs = np.full(len(self.addresses), number, np.int32)
        self.nbytes = max(1, pointer.get_element_ty().primitive_bitwidth // 8)
        self.line = here()
        if (wrong := self.addresses % self.nbytes != 0).any():
            self.fail(f"CUDA error: misaligned address of {self.nbytes} bytes", wrong)

    def fail(self, text: str, wrong: np.ndarray) -> NoReturn:
        place = f"at {self.line}, program {self.program.grid_idx}"
        raise KernelError(explain(f"{text} in {self.program.name}", place))


class Watching:
    """The part of a builder that tells a shadow of accesses, which are checked to be allowed before."""

    shadow: Shadow | None = None
    name = ""
    grid_idx: tuple[int, int, int]
    grid_dim: tuple[int, int, int]

    def note_read(self, pointer: interpreter.TensorHandle, active: np.ndarray, volatile: bool) -> None:
        """Tell of a load."""
        if self.shadow is None:
            return
        each = _Accesses(self, pointer, active)
        if volatile:
            self.shadow.meet(each)
        else:
            self.shadow.read(each, each.nbytes)

    def note_write(self, pointer: interpreter.TensorHandle, active: np.ndarray, data: np.ndarray) -> None:
        """Tell of a store, before it is done."""
        if self.shadow is None:
            return
        each, kind = _Accesses(self, pointer, active), np.dtype(f"u{data.dtype.itemsize}")
        where, count = each.addresses.astype(np.uint64), len(each.addresses)
        old = memory.load(where, np.ones(count, np.bool_), np.zeros(count, kind), kind)
        self.shadow.write(each, old, data[active])

    def note_update(
        self, pointer: interpreter.TensorHandle, active: np.ndarray, rest: tuple[object, ...], order: str = ""
    ) -> None:
        """Tell of an atomic operation; among its arguments is the order that it makes."""
        if self.shadow is None:
            return
        each = _Accesses(self, pointer, active)
        order = "relaxed" if any("RELAXED" in str(value) for value in rest) else order
        self.shadow.update(each, each.nbytes, order)
