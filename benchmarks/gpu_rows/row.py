"""What a row is: a case (a statement, its inputs, its float64 truth) of the size that is measured, the sizes that its
accuracy is checked at, the peers, and how it is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.cases import EPSILON, Case

# How a row is timed: the device's time, the host's time to enqueue, a copy between host and device, a fresh process.
DEVICE, HOST, TRANSFER, START = "device", "host", "transfer", "start"
SHORT = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
FLOATS, HALVES = 1 << 28, 1 << 29  # elements of one gigabyte

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Target:
    """What a row must reach (`gate`) and should reach (`goal`) beside one peer.

    The ratio is the peer's time over ours, or the share of the copy ceiling that is reached: more is better. With
    `below` it is our time over the peer's.
    """

    gate: float
    goal: float
    below: bool = False


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        case: the statement, on inputs of the size that is measured.
        small: the inputs' shapes in the check of accuracy.
        targets: by peer: torch or a variant of it, "ceiling" (of device memory), cupy.
        kind: DEVICE, HOST, TRANSFER or START.
        peers: what it is measured beside, with or without targets.
        statements: the statement by library, where it differs.
        prepares: what replaces the case's `prepare` for a variant of torch, by the peer's name.
        precision: of float32 products, as for `set_float32_matmul_precision`, if it is not the default.
        note: the switches that matter, for the reader.
        part: for the check of accuracy at the measured size: of each input the part that a part of the result depends
            on, and under "out" that part of the result.
        moved: bytes that one execution has to move, if they are not those of inputs and results.
        work: floating-point operations of one execution, if they are not one for each element.
        rotate: use several sets of inputs in turn, so that none is found in the L2 cache.
    """

    case: Case
    small: Shapes
    targets: Mapping[str, Target] = field(default_factory=dict)
    kind: str = DEVICE
    peers: tuple[str, ...] = ("torch",)
    statements: Mapping[str, str] = field(default_factory=dict)
    prepares: Mapping[str, Callable[..., dict[str, object]]] = field(default_factory=dict)
    precision: str | None = None
    note: str = ""
    part: Mapping[str, Any] = field(default_factory=dict)
    moved: Callable[[Shapes], int] | None = None
    work: Callable[[Shapes], int] | None = None
    rotate: bool = False

    @property
    def name(self) -> str:
        return self.case.name

    @property
    def small_case(self) -> Case:
        """The case of the size that accuracy is checked at."""
        return replace(self.case, inputs=self.small)

    def case_for(self, peer: str) -> Case:
        """The case as a peer runs it."""
        case = replace(self.case, prepare=self.prepares.get(peer, self.case.prepare))
        return replace(case, statement=self.statements.get(peer, case.statement))


def toy(row: Row, approximate: bool = False) -> Row:
    """The row at sizes that are small enough for Triton's interpreter.

    Args:
        approximate: float32 is computed as on a card, with its approximations and tf32, which torch on the CPU lacks.
    """
    most = {1: 2500, 2: 72}.get(max(map(len, row.case.inputs.values()), default=1), 8)

    def shrink(shapes: Shapes) -> dict[str, tuple[int, ...]]:
        return {name: tuple(min(size, most) for size in shape) for name, shape in shapes.items()}

    least = (2.0**-9 if row.precision == "high" else 4 * EPSILON) if approximate else 0.0
    case = replace(row.case, inputs=shrink(row.case.inputs), rounding=max(least, row.case.rounding))
    return replace(row, case=case, small=shrink(row.small))


def beside_torch(gate: float, goal: float, below: bool = False) -> dict[str, Target]:
    """The target of a row beside torch."""
    return {"torch": Target(gate, goal, below)}


def of_ceiling(gate: float, goal: float) -> dict[str, Target]:
    """The target of a row as a share of a copy's speed."""
    return {"ceiling": Target(gate, goal)}
