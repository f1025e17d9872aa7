"""Runs a parsed kernel: registers, divergence, barriers, and the table of instructions.

A register is a NumPy array of bits with an element for each lane of a chunk of the grid, shaped (blocks, threads), or 1
in place of either where it is the same for all: parameters are (1, 1), block numbers (blocks, 1), thread numbers
(1, threads). Divergence is a map from basic block to the lanes that are to enter it. The lowest block runs first, so
lanes that took different branches meet again where the branches join.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..errors import KernelError, KernelMemoryError, TritensorError, explain
from .memory import Constants, Local, Memory, Shared
from .parse import Block, Immediate, Instruction, Kernel, Name, Operand, Register, Vector
from .values import TYPES, Type, bits_of

__all__ = ["Mask", "Machine", "instruction", "run", "source", "target", "typed"]

Mask = np.ndarray | None
Step = Callable[["Machine", Mask], None]
Builder = Callable[[Instruction, Kernel], Step]

_WARP = 32
#: Lanes in a chunk: 256 blocks of 128 threads were fastest, 64 nearly so; a single block takes 20 times as long a lane.
_LANES = 1 << 15
#: Bytes of shared memory in a chunk, which with what is known of each word takes three times as much.
_SHARED = 24 << 20

_builders: dict[str, Builder] = {}


def instruction(*names: str) -> Callable[[Builder], Builder]:
    """Register what builds the instructions whose names begin with these, up to a dot; the longest beginning decides."""

    def register(build: Builder) -> Builder:
        for name in names:
            _builders[name] = build
        return build

    return register


def build(i: Instruction, kernel: Kernel) -> Step:
    """The function that executes an instruction.

    Raises:
        KernelError: there is none.
    """
    for count in range(len(i.parts), 0, -1):
        builder = _builders.get(".".join(i.parts[:count]))
        if builder is not None:
            step = builder(i, kernel)
            return step if i.guard is None else _guarded(step, *i.guard)
    raise KernelError(
        explain(
            f"{kernel.name}: the simulated device does not know the instruction {i.name}",
            f"at {kernel.place(i.where)}",
            remedy="interpret the kernel: simulate(compiled=False)",
        )
    )


def _guarded(step: Step, slot: int, negated: bool) -> Step:
    def run(m: Machine, mask: Mask) -> None:
        active = m.predicate(slot, negated, mask)
        if active is None or active.any():
            step(m, active)

    return run


# ---- operands -------------------------------------------------------------------------------------------------------

_SPECIAL: dict[str, Callable[[Machine], np.ndarray]] = {
    **{f"%tid.{axis}": lambda m, at=at: m.tid[at] for at, axis in enumerate("xyz")},  # type: ignore[misc]
    **{f"%ntid.{axis}": lambda m, at=at: m.uniform((m.threads, 1, 1)[at]) for at, axis in enumerate("xyz")},  # type: ignore[misc]
    **{f"%ctaid.{axis}": lambda m, at=at: m.ctaid[at] for at, axis in enumerate("xyz")},  # type: ignore[misc]
    **{f"%nctaid.{axis}": lambda m, at=at: m.uniform(m.grid[at]) for at, axis in enumerate("xyz")},  # type: ignore[misc]
    "%laneid": lambda m: m.tid[0] % np.uint32(_WARP),
    "%warpid": lambda m: m.tid[0] // np.uint32(_WARP),
    "%clock": lambda m: m.uniform(m.now),
    "%clock64": lambda m: m.uniform(m.now).astype(np.uint64),
    "%globaltimer": lambda m: m.uniform(m.now).astype(np.uint64),
    "WARP_SZ": lambda m: m.uniform(_WARP),
}


def typed(name: str) -> Type:
    """The type that an instruction's name ends with."""
    return TYPES[name]


def source(operand: Operand, kind: Type) -> Callable[[Machine], np.ndarray]:
    """What reads an operand as numbers of a type."""
    read = kind.read
    if isinstance(operand, Register):
        slot = operand.slot
        if TYPES[operand.kind].size == kind.size or operand.kind == "pred":
            if kind.number is kind.bits:
                return lambda m: m.registers[slot]
            return lambda m: read(m.registers[slot])
        bits = kind.bits  # a wider register, of which the low bits are read; or a narrower one
        return lambda m: read(m.registers[slot].astype(bits))
    if isinstance(operand, Immediate):
        value = read(bits_of(operand.bits, kind))
        return lambda m: value
    if isinstance(operand, Name):
        text, bits = operand.text, kind.bits
        special = _SPECIAL.get(text)
        if special is not None:
            return lambda m: read(special(m).astype(bits, copy=False))
        return lambda m: read(m.variable(text).astype(bits, copy=False))
    raise KernelError(f"an operand that is no number: {operand!r}")


def target(operand: Operand, kind: Type) -> Callable[[Machine, np.ndarray, Mask], None]:
    """What writes numbers of a type to a register, for the lanes of a mask."""
    if isinstance(operand, Name):  # `_`
        return lambda m, value, mask: None
    assert isinstance(operand, Register)
    slot, write, wide = operand.slot, kind.write, TYPES[operand.kind]
    if wide.size == kind.size or operand.kind == "pred":

        def put(m: Machine, value: np.ndarray, mask: Mask) -> None:
            m.put(slot, write(value), mask)

    else:  # a wider register takes the value with its sign, if it has one
        number = np.dtype(f"i{wide.size}") if np.dtype(kind.number).kind == "i" else np.dtype(wide.bits)

        def put(m: Machine, value: np.ndarray, mask: Mask) -> None:
            narrow = value if number.kind == "i" else write(value)
            m.put(slot, narrow.astype(number).view(wide.bits), mask)

    return put


# ---- the machine ----------------------------------------------------------------------------------------------------


class Machine:
    """A chunk of a launch.

    Args:
        numbers: the numbers of its blocks in the grid.
        values: the value of each parameter.
        seed: of the errors of approximate instructions.
        late: asynchronous copies and products land when they are waited for.
        counters: what counts (`counters.Counters`), or None.
    """

    def __init__(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        numbers: np.ndarray,
        values: Sequence[int],
        memory: Memory,
        shared: int,
        constants: Constants,
        seed: int = 0,
        late: bool = False,
        counters: Any = None,
    ) -> None:
        self.kernel, self.grid, self.numbers, self.values = kernel, grid, numbers, values
        self.blocks, self.threads = len(numbers), kernel.threads
        self.memory, self.constants, self.seed, self.late, self.counters = memory, constants, seed, late, counters
        self.registers: list[Any] = [None] * len(kernel.kinds)
        rows = numbers.astype(np.uint32)[:, None]
        x, y, z = grid
        zero = np.zeros((1, 1), np.uint32)
        self.ctaid = (
            rows % np.uint32(x) if x > 1 else zero,
            rows // np.uint32(x) % np.uint32(y) if y > 1 else zero,
            rows // np.uint32(x * y) if z > 1 else zero,
        )
        self.tid = np.arange(self.threads, dtype=np.uint32)[None, :], zero, zero
        self.shared = Shared(self, max(kernel.static_shared + shared, 1))
        self.local = Local(self, kernel.local_size)
        self.where = 0
        self.now = 1  # counts accesses to shared memory and barriers
        self.pending: dict[int, Mask] = {0: None}
        self.parked: list[
            tuple[int, int, int, np.ndarray]
        ] = []  # barrier, lanes that it is for (0: all), next block, lanes
        self.alive: Mask = None  # lanes that have not returned; None: all
        self.stalled: Mask = None  # lanes of the running block that have found nothing to do
        self.asleep: dict[int, np.ndarray] = {}  # as `pending`, of lanes that stalled
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
            return None if value.all() else value
        return value & mask

    def full(self, mask: Mask) -> np.ndarray:
        """A mask as booleans of all lanes."""
        shape = self.blocks, self.threads
        return np.ones(shape, np.bool_) if mask is None else np.broadcast_to(mask, shape)

    def whole_warps(self, mask: Mask) -> np.ndarray:
        """Which warps, (blocks, warps), execute an instruction that all lanes of a warp have to execute together."""
        warps = self.full(mask).reshape(self.blocks, -1, _WARP)
        whole = warps[:, :, 0]
        if mask is not None and (warps != whole[:, :, None]).any():
            self.fail("lanes of a warp do not reach it together", warps != whole[:, :, None])
        return whole

    def by_warp(self, value: np.ndarray) -> np.ndarray:
        """A value of all lanes as (blocks, warps, 32)."""
        return np.broadcast_to(value, (self.blocks, self.threads)).reshape(self.blocks, -1, _WARP)

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

    # -- control

    def run(self) -> None:
        """Execute the chunk until all lanes have returned."""
        blocks = self.kernel.blocks
        while True:
            if not self.pending and not self._release():
                return
            at = min(self.pending)
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

    def stall(self, mask: np.ndarray) -> None:
        """Note that lanes found nothing to do: others run before they try again."""
        self.stalled = mask if self.stalled is None else self.stalled | mask

    def park(self, barrier: int, count: int, after: int, mask: Mask) -> None:
        """Let lanes wait at a barrier; if all lanes of the chunk have come together, nothing waits."""
        if mask is None and self.alive is None and not count:
            self.passed(None)
            self.go(after, None)
        else:
            self.parked.append((barrier, count, after, self.full(mask)))

    def passed(self, blocks: np.ndarray | None) -> None:
        """Note that a barrier was passed, by all blocks or by those given."""
        self.now += 1
        self.shared.synchronized(blocks)

    def _release(self) -> bool:
        """Let lanes go on that wait for others; False if there are none.

        Raises:
            KernelError: they wait for what cannot happen.
        """
        moved = False
        alive = self.full(self.alive)
        for barrier in sorted({each[0] for each in self.parked}):
            those = [each for each in self.parked if each[0] == barrier]
            arrived = sum(each[3].sum(1) for each in those)
            wanted = those[0][1] or alive.sum(1)
            done = (arrived == wanted) & (arrived > 0)
            if done.any():
                moved = True
                self.passed(done)
                for each in those:
                    self.parked.remove(each)
                    ready = each[3] & done[:, None]
                    self.go(each[2], ready)
                    if not ready.all() and (rest := each[3] & ~done[:, None]).any():
                        self.parked.append((*each[:3], rest))
        if moved:
            return True
        if self.asleep:
            if self.async_state.get("woken") == self.now:
                self.fail("a wait that never ends", next(iter(self.asleep.values())))
            self.async_state["woken"] = self.now
            self.pending, self.asleep = dict(self.asleep), {}
            return True
        if self.parked:
            self.fail(
                "a barrier that not all threads of the block reach",
                alive & ~sum(e[3] for e in self.parked).astype(bool),
            )
        return False

    def _explain(self, block: Block, error: Exception) -> None:
        """Raise the error of a register that was read before it was written, if that is the cause."""
        if isinstance(error, TritensorError):
            return
        for i in block.instructions:
            if i.where == self.where:
                for register in _registers(i):
                    if self.registers[register.slot] is None:
                        name = self.kernel.names[register.slot]
                        self.fail(f"{i.name} reads register {name}, which nothing has written,")


def _registers(i: Instruction) -> list[Register]:
    found: list[Register] = []
    waiting: list[Any] = [*i.operands]
    while waiting:
        operand = waiting.pop()
        if isinstance(operand, Register):
            found.append(operand)
        elif isinstance(operand, Vector):
            waiting.extend(operand.parts)
        elif hasattr(operand, "base"):
            waiting.extend((operand.base, *operand.rest))
    return found


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


End = Callable[[Machine, Mask], None]


def _falls(following: int) -> End:
    if following < 0:
        return Machine.leave
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
    return _split(i, Machine.leave, _falls(following))


def _waits(i: Instruction, kernel: Kernel, following: int) -> End:
    numbers = [operand.bits for operand in i.operands if isinstance(operand, Immediate)]
    barrier, count = (*numbers, 0, 0)[:2]
    if len(numbers) < len(i.operands) or i.name.split(".")[1] != "sync":
        raise KernelError(explain(f"{kernel.name}: a barrier that the simulated device does not know", i.name))
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
    values: Sequence[int],
    memory: Memory,
    shared: int = 0,
    seed: int = 0,
    late: bool = False,
    counters: Any = None,
    numbers: np.ndarray | None = None,
) -> None:
    """Execute a launch.

    Args:
        grid: blocks along x, y and z.
        values: the parameters as integers, floats by their bits.
        shared: bytes of dynamic shared memory.
        seed: of the errors of approximate instructions.
        late: asynchronous copies and products land when they are waited for.
        numbers: the blocks to execute, by number; all of them when left out.

    Raises:
        KernelError: the kernel does what a card would not allow, or what is not defined.
        KernelMemoryError: it touches memory that is not its own.
    """
    from . import access, arithmetic  # noqa: F401  these fill the table of instructions

    if len(values) != len(kernel.parameters):
        raise KernelError(
            explain(f"{kernel.name}: takes {len(kernel.parameters)} parameters, and was passed {len(values)}")
        )
    chunk = max(1, min(_LANES // kernel.threads, _SHARED // max(kernel.static_shared + shared, 1)))
    blocks = np.arange(math.prod(grid)) if numbers is None else numbers
    constants = Constants(kernel, memory)
    with np.errstate(all="ignore"):
        for start in range(0, len(blocks), chunk):
            machine = Machine(
                kernel, grid, blocks[start : start + chunk], values, memory, shared, constants, seed, late, counters
            )
            machine.run()
