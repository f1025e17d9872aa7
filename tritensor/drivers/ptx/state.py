"""The state of a running kernel: registers, the numbers of its lanes, and errors that name the source line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ...errors import KernelError, KernelMemoryError, explain
from .parse import Kernel
from .values import TYPES, holds_everywhere

WARP = 32
#: The lanes that execute an instruction, broadcastable to (blocks, threads); None for all.
Mask = np.ndarray | None


def wide_as(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A value of all lanes; NumPy takes 3 us to find that nothing is to be done."""
    return value if value.shape == shape else np.broadcast_to(value, shape)


class Machine:
    """A chunk of a launch.

    Args:
        numbers: the numbers of its blocks in the grid.
        values: the value of each parameter.
        seed: of the errors of approximate instructions.
        late: asynchronous copies and products land when they are waited for.
        counters: what counts (`counters.Counters`), or None.
    Attributes:
        order: of the global access that runs, where it is not that of its kind: "relaxed" of an atomic operation,
            "acquire" of a load that waits for other programs.
    """

    order = ""

    def __init__(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        numbers: np.ndarray,
        values: Sequence[Any],
        seed: int = 0,
        late: bool = False,
        counters: Any = None,
    ) -> None:
        self.kernel, self.grid, self.numbers, self.values = kernel, grid, numbers, values
        self.blocks, self.threads = len(numbers), kernel.threads
        self.seed, self.late, self.counters = seed, late, counters
        # set by `run`, of the classes in memory.py
        self.memory: Any
        self.constants: Any
        self.shared: Any
        self.local: Any
        self.registers: list[Any] = [None] * len(kernel.kinds)
        for slot, kind in kernel.undefined.items():
            self.registers[slot] = np.invert(np.zeros((1, 1), TYPES[kind].bits))
        rows = numbers.astype(np.uint32)[:, None]
        x, y, z = grid
        zero = np.zeros((1, 1), np.uint32)
        self.ctaid = (
            rows % np.uint32(x) if x > 1 else zero,
            rows // np.uint32(x) % np.uint32(y) if y > 1 else zero,
            rows // np.uint32(x * y) if z > 1 else zero,
        )
        self.tid = np.arange(self.threads, dtype=np.uint32)[None, :], zero, zero
        self.warps = np.broadcast_to(True, (self.blocks, -(-self.threads // WARP)))
        self.where = 0
        self.alone = False  # the blocks that others wait for do not run
        self.wrote, self.idle = False, 0  # global memory was changed since lanes last woke; how often it was not
        self.now = 1  # counts accesses to shared memory and barriers
        self.stalled: Mask = None  # lanes of the running block that have found nothing to do
        self.async_state: dict[str, Any] = {}  # what asynchronous instructions keep, by their kind

    # -- values

    def uniform(self, value: int) -> np.ndarray:
        """A 32-bit number that is the same for all lanes."""
        return np.array([[value & 0xFFFFFFFF]], np.uint32)

    def variable(self, name: str) -> np.ndarray:
        """The address of a variable, or the value of a parameter named as an operand."""
        kernel = self.kernel
        if name in kernel.shared:
            return self.uniform(kernel.shared[name])
        if name in kernel.local:
            return self.uniform(kernel.local[name])
        if name in self.constants.parameters:
            return self.uniform(self.constants.parameters[name])
        return np.array([[self.constants.address(name)]], np.uint64)

    def put(self, slot: int, bits: np.ndarray, mask: Mask) -> None:
        """Write a register for the lanes of a mask. Lanes that never wrote it hold ones, which is NaN as a float."""
        if mask is not None:
            old = self.registers[slot]
            if old is None:
                old = np.array([[True]]) if bits.dtype == np.bool_ else np.invert(np.zeros((1, 1), bits.dtype))
            bits = np.where(mask, bits, old)
        self.registers[slot] = bits

    def predicate(self, slot: int, negated: bool, mask: Mask) -> Mask:
        """The lanes of a mask in which a predicate holds; None for all lanes of the chunk."""
        value = self.registers[slot]
        if value is None:
            raise AttributeError
        value = ~value if negated else value
        if mask is None:
            return None if holds_everywhere(value) else value
        return value & mask

    def full(self, mask: Mask) -> np.ndarray:
        """A mask as booleans of all lanes."""
        shape = self.blocks, self.threads
        return np.ones(shape, np.bool_) if mask is None else wide_as(mask, shape)

    def whole_warps(self, mask: Mask) -> np.ndarray:
        """The warps, (blocks, warps), that execute an instruction that all lanes of a warp have to execute together."""
        if mask is None:
            return self.warps
        warps = self.full(mask).reshape(self.blocks, -1, WARP)
        whole = warps[:, :, 0]
        if (warps != whole[:, :, None]).any():
            self.fail("lanes of a warp do not reach it together", warps != whole[:, :, None])
        return whole

    def by_warp(self, value: np.ndarray) -> np.ndarray:
        """A value of all lanes as (blocks, warps, 32)."""
        return wide_as(value, (self.blocks, self.threads)).reshape(self.blocks, -1, WARP)

    # -- errors

    def fail(self, what: str, lanes: np.ndarray | None = None, memory: bool = False) -> NoReturn:
        """Raise an error for the instruction that runs; `lanes` are those it is about.

        Raises:
            KernelError, KernelMemoryError: always.
        """
        place = f"at {self.kernel.place(self.where)}"
        if lanes is not None:
            at = np.argwhere(np.asarray(lanes).reshape(len(lanes), -1))[0]
            thread = int(at[1]) if np.asarray(lanes).size > len(lanes) else None
            number = self.numbers[at[0] if len(lanes) > 1 else 0]
            place += f", program {number}" + ("" if thread is None else f", thread {thread}")
        kind = KernelMemoryError if memory else KernelError
        raise kind(explain(f"{'CUDA error: ' if memory else ''}{what} in {self.kernel.name}", place))

    # -- waiting

    def stall(self, mask: np.ndarray) -> None:
        """Note that lanes found nothing to do: others run before they try again."""
        self.stalled = mask if self.stalled is None else self.stalled | mask

    def passed(self, blocks: np.ndarray | None) -> None:
        """Note that a barrier was passed, by all blocks or by those given."""
        self.now += 1
        self.shared.synchronized(blocks)
