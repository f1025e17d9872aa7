"""Runs a parsed kernel: registers, divergence, barriers, and the table of instructions.

A register is a NumPy array of bits with an element for each lane of a chunk of the grid, shaped (blocks, threads), or 1
in place of either where it is the same for all: parameters are (1, 1), block numbers (blocks, 1), thread numbers
(1, threads). Divergence is a map from basic block to the lanes that are to enter it. The block that is first in the
order of `flow.ranks` runs first, so lanes that took different branches meet again where the branches join.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import KernelError, TritensorError
from ...host.threads import blas_on_one_thread
from .flow import ranks
from .memory import Constants, Local, Memory
from .parse import Block, Immediate, Instruction, Kernel, Name, reads
from .races import watched
from .shared import Shared
from .state import Machine, Mask
from .table import build

#: Lanes in a chunk. Of a softmax 64 and 256 blocks of 128 threads are fastest; one takes 20 times as long a lane.
_LANES = 1 << 15
#: Bytes of shared memory in a chunk, which with what is known of each word takes three times as much.
_SHARED = 24 << 20
#: Times in a row that lanes look again for what others are to write, while nothing is written: there may be a time-out.
_PATIENCE = 1000


class _Parked(NamedTuple):
    barrier: int
    wanted: int  # lanes that it is for; 0: all of the block
    after: int  # the basic block behind it
    lanes: np.ndarray
    where: int


class _Chunk(Machine):
    """A chunk of a launch, and which lanes are to enter which basic block next.

    Attributes:
        pending: by the number of a basic block, the lanes that enter it next.
        parked: lanes that wait at a barrier, with its number and how many it is for.
        asleep: as `pending`, of lanes that stalled.
        alive: lanes that have not returned; None: all.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.pending: dict[int, Mask] = {0: None}
        self.parked: list[_Parked] = []
        self.asleep: dict[int, np.ndarray] = {}
        self.alive: Mask = None

    def _rank(self, at: int) -> int:
        if not self.kernel.ranks:
            self.kernel.ranks = ranks(self.kernel)
        return self.kernel.ranks[at]

    def run(self) -> None:
        """Execute the chunk until all lanes have returned."""
        blocks = self.kernel.blocks
        while True:
            if not self.pending and not self._release():
                return
            at = next(iter(self.pending)) if len(self.pending) == 1 else min(self.pending, key=self._rank)
            mask = self.pending.pop(at)
            if mask is not None and mask.all():
                mask = None
            block = blocks[at]
            if block.steps is None:
                _prepare(self.kernel, at)
            try:
                for self.where, step in block.steps:  # type: ignore[union-attr]
                    step(self, mask)
                if self.counters is not None:
                    self.counters.executed(self, block, mask)
                block.end(self, mask)  # type: ignore[operator]
            except (AttributeError, TypeError, TritensorError) as error:
                self._explain(block, error)
                raise
            self.stalled = None

    def go(self, at: int, mask: Mask) -> None:
        """Let lanes enter a basic block next."""
        if self.stalled is not None:
            lanes = self.full(mask) & self.stalled
            if lanes.any():
                self.asleep[at] = self.asleep.get(at, False) | lanes
                mask = self.full(mask) & ~lanes
        if mask is not None and not mask.any():
            return
        if at in self.pending:
            other = self.pending[at]
            mask = None if mask is None or other is None else mask | other
        self.pending[at] = mask

    def leave(self, mask: Mask) -> None:
        """Let lanes return."""
        self.alive = self.full(self.alive) & ~self.full(mask)

    def park(self, barrier: int, count: int, after: int, mask: Mask) -> None:
        """Let lanes wait at a barrier; if all lanes of the chunk have come together, nothing waits."""
        if mask is None and self.alive is None and not count:
            self.passed(None)
            self.go(after, None)
        else:
            self.parked.append(_Parked(barrier, count, after, self.full(mask), self.where))

    def _release(self) -> bool:
        """Let lanes go on that wait for others; False if there are none.

        Raises:
            KernelError: they wait for what cannot happen.
        """
        alive = self.full(self.alive)
        waiting, self.parked = self.parked, []
        for barrier in sorted({each.barrier for each in waiting}):
            those = [each for each in waiting if each.barrier == barrier]
            arrived = np.sum([each.lanes.sum(1) for each in those], 0)
            done = (arrived == (those[0].wanted or alive.sum(1))) & (arrived > 0)
            if done.any():
                self.passed(done)
            for each in those:
                self.go(each.after, each.lanes & done[:, None])
                if (rest := each.lanes & ~done[:, None]).any():
                    self.parked.append(each._replace(lanes=rest))
        if self.pending:
            return True
        if self.asleep:
            self.idle = 0 if self.wrote else self.idle + 1
            self.wrote = False
            if self.async_state.get("woken") == self.now or self.idle > _PATIENCE:
                self.fail("a wait that never ends", next(iter(self.asleep.values())))
            self.async_state["woken"] = self.now
            self.pending, self.asleep = dict(self.asleep), {}
            return True
        if self.parked:
            self.where = self.parked[0].where
            self.fail("a barrier that not all threads of the block reach", self.parked[0].lanes)
        return False

    def _explain(self, block: Block, error: Exception) -> None:
        """Raise the error of a register that was read before it was written, if that is the cause."""
        if isinstance(error, TritensorError):
            return
        for i in block.instructions:
            if i.where == self.where:
                for slot in reads(i):
                    if place := self.async_state.get("flying", {}).get(slot):
                        self.fail(f"{i.name} reads sums (of products at {place}) that no wgmma.wait_group waits for")
                    if self.registers[slot] is None:
                        self.fail(f"{i.name} reads register {self.kernel.names[slot]}, which nothing has written,")


def _prepare(kernel: Kernel, at: int) -> None:
    """Make the steps of a basic block, and what ends it."""
    block = kernel.blocks[at]
    last = block.instructions[-1] if block.instructions else None
    ends = last is not None and last.parts[0] in _ENDS and last.name != "bar.warp.sync"
    plain = block.instructions[:-1] if ends else block.instructions
    steps = [(i.where, build(i, kernel)) for i in plain]
    following = at + 1 if at + 1 < len(kernel.blocks) else -1
    block.end = _ENDS[last.parts[0]](last, kernel, following) if ends and last else _falls(following)
    if ends and last:  # so that errors name the line
        steps.append((last.where, lambda m, mask: None))
    block.steps = steps


End = Callable[[Any, Mask], None]


def _falls(following: int) -> End:
    if following < 0:
        return _Chunk.leave
    return lambda m, mask: m.go(following, mask)


def _split(i: Instruction, taken: End, otherwise: End) -> End:
    """What ends a block with a guarded instruction: the lanes in which the predicate holds do one, others the other."""
    if i.guard is None:
        return taken
    slot, negated = i.guard

    def end(m: Machine, mask: Mask) -> None:
        lanes = m.predicate(slot, negated, mask)
        if m.counters is not None:
            m.counters.branch(m, lanes, mask)
        if lanes is None:
            taken(m, None)
            return
        rest = ~lanes if mask is None else mask & ~lanes
        if lanes.any():
            taken(m, lanes)
        if rest.any():
            otherwise(m, rest)

    return end


def _branch(i: Instruction, kernel: Kernel, following: int) -> End:
    assert isinstance(i.operands[0], Name)
    at = kernel.labels[i.operands[0].text]
    return _split(i, lambda m, mask: m.go(at, mask), _falls(following))


def _returns(i: Instruction, kernel: Kernel, following: int) -> End:
    return _split(i, _Chunk.leave, _falls(following))


def _waits(i: Instruction, kernel: Kernel, following: int) -> End:
    numbers = [operand.bits for operand in i.operands if isinstance(operand, Immediate)]
    barrier, count = (*numbers, 0, 0)[:2]
    if len(numbers) < len(i.operands) or i.name.split(".")[1] != "sync":
        raise KernelError(f"{kernel.name}: a barrier that the simulated device does not know", i.name)
    return _split(i, lambda m, mask: m.park(barrier, count, following, mask), _falls(following))


def _traps(i: Instruction, kernel: Kernel, following: int) -> End:
    return _split(i, lambda m, mask: m.fail("a trap was reached", m.full(mask)), _falls(following))


_ENDS: dict[str, Callable[[Instruction, Kernel, int], End]] = {
    "bra": _branch,
    "ret": _returns,
    "exit": _returns,
    "bar": _waits,
    "barrier": _waits,
    "trap": _traps,
}


def run(
    kernel: Kernel,
    grid: tuple[int, int, int],
    values: Sequence[int | bytes],
    memory: Memory,
    shared: int = 0,
    seed: int = 0,
    late: bool = False,
    counters: Any = None,
    numbers: np.ndarray | None = None,
    together: bool = False,
) -> None:
    """Execute a launch.

    Args:
        grid: blocks along x, y and z.
        values: the parameters as integers, floats by their bits; tensor maps as bytes.
        shared: bytes of dynamic shared memory.
        seed: of the errors of approximate instructions.
        late: asynchronous copies and products land when they are waited for.
        numbers: the blocks to execute, by number; all of them when left out.
        together: blocks wait for one another, so all are in one chunk. Those of a sample wait for nothing.

    Raises:
        KernelError: the kernel does what a card would not allow, or what is not defined.
        KernelMemoryError: it touches memory that is not its own.
    """
    from . import access, arithmetic, bits, conversions, hopper, matrices, tiles  # noqa: F401  these fill the table of instructions

    if len(values) != len(kernel.parameters):
        raise KernelError(f"{kernel.name}: takes {len(kernel.parameters)} parameters, and was passed {len(values)}")
    chunk = max(1, min(_LANES // kernel.threads, _SHARED // max(kernel.static_shared + shared, 1)))
    blocks = np.arange(math.prod(grid)) if numbers is None else numbers
    chunk = max(len(blocks), 1) if together else chunk
    constants = Constants(kernel, memory)
    for (name, _), value in zip(kernel.parameters, values, strict=True):
        if isinstance(value, bytes):
            constants.pass_map(name, value, memory)
    # OpenBLAS's threads would spin for 27 ms behind each product of more than 262,144 numbers that they take part in
    with np.errstate(all="ignore"), blas_on_one_thread:
        for start in range(0, len(blocks), chunk):
            machine = _Chunk(kernel, grid, blocks[start : start + chunk], values, seed, late, counters)
            machine.memory, machine.constants = memory, constants
            machine.alone = together and len(blocks) < math.prod(grid)
            machine.shared = Shared(machine, max(kernel.static_shared + shared, 1), watched(machine))
            machine.local = Local(machine, kernel.local_size)
            machine.run()
