"""Facts of a kernel that decide how it is translated: what is needed, what overlaps, what is consecutive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass

from .elements import constant, is_elementwise, register
from .parse import Block, Operation, Unknown, Value
from .values import Vectors

__all__ = ["Buffer", "Facts", "Sink", "Write", "is_costly", "is_lazy"]

VIEWS = ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape", "tt.addptr", "tt.bitcast")
_LAZY = {
    *VIEWS,
    "tt.make_range",
    "tt.load",
    "arith.constant",
    "tt.join",
    "tt.split",
    "tt.cat",
    "tt.gather",
    "ub.poison",
}
_COSTLY = {"tt.load", "arith.divf", "tt.precise_divf", "arith.remf", "tt.precise_sqrt", "tt.extern_elementwise"}
_COSTLY |= {"arith.divsi", "arith.remsi", "arith.divui", "arith.remui", "tt.gather"}
_SAME_INDEX = ("tt.addptr", "tt.load", "tt.bitcast")


@dataclass(eq=False)
class Buffer:
    """Scratch memory that holds a tensor: dimension `inner` innermost, which the first write decides, or the last.

    Attributes:
        kind: LLVM's type of an element.
        shared: it may be the memory of another buffer: of the branch that was taken.
    """

    pointer: str
    shape: tuple[int, ...]
    kind: str
    inner: int | None = None
    shared: bool = False

    @property
    def innermost(self) -> int:
        """The dimension whose elements are consecutive."""
        return len(self.shape) - 1 if self.inner is None else self.inner

    @property
    def is_rows(self) -> bool:
        """True if that is the last dimension."""
        return self.innermost == len(self.shape) - 1


@dataclass
class Write:
    """A sink: a value that is written to a buffer."""

    value: Value
    buffer: Buffer


#: what makes a nest of loops: operations that store, reduce or assert, and writes to buffers
Sink = Operation | Write


def needs_of(sink: Sink) -> list[Value]:
    """The values that a sink evaluates."""
    return [sink.value] if isinstance(sink, Write) else sink.operands


def is_lazy(operation: Operation) -> bool:
    """True if the operation is evaluated where its results are needed."""
    tensor = bool(operation.results) and operation.result.shape is not None
    return tensor and (operation.name in _LAZY or is_elementwise(operation.name))


def is_costly(operation: Operation) -> bool:
    """True if reading a value back from the first cache takes less time than computing it again."""
    return operation.name in _COSTLY or (operation.name.startswith("math.") and operation.name != "math.absf")


class Facts(Vectors):
    """A kernel while it is translated."""

    def __init__(self, function: Operation, fma: bool, apart: bool) -> None:
        super().__init__(fma)
        self.function, self.apart = function, apart
        self.scalars: dict[Value, str] = {}
        self.buffers: dict[Value, Buffer] = {}
        # tensors to which each round of a loop adds one number: what they are at first, and the sum so far
        self.progressions: dict[Value, tuple[Value, str]] = {}
        self.roots: dict[Value, Value] = {}
        self.done: set[Operation] = set()
        self._slopes: dict[tuple[Value, int], int | None] = {}

    def root(self, value: Value) -> Value:
        """The pointer that a pointer is computed from."""
        if value not in self.roots:
            self.roots[value] = self._find_root(value)
        return self.roots[value]

    def _find_root(self, value: Value) -> Value:
        owner = value.owner
        if value in self.progressions:
            return self.root(self.progressions[value][0])
        if isinstance(owner, Block):
            parent = owner.parent
            if parent is not None and parent.name in ("scf.for", "scf.while"):
                return self.root(parent.operands[2 * (parent.name == "scf.for") + value.position])
            return value
        if owner.name in VIEWS:
            return self.root(owner.operands[0])
        if owner.name == "scf.for":
            return self.root(owner.operands[3 + value.position])
        if owner.name == "arith.select" and value.shape is not None:
            x, y = map(self.root, owner.operands[1:])
            if x is not y:
                raise Unknown("a choice between pointers of two arguments")
            return x
        if owner.name == "tt.int_to_ptr" or (
            value.shape is None and owner.name in ("tt.load", "arith.select", "scf.if")
        ):
            return value
        raise Unknown(f"pointers made by {owner.name}")

    def overlap(self, x: Value, y: Value) -> bool:
        """True if memory of two pointers may be the same: of arguments it is not, in code for arrays that are apart."""
        roots = self.root(x), self.root(y)
        arguments = all(isinstance(each.owner, Block) and each.owner.parent is self.function for each in roots)
        return roots[0] is roots[1] or not (self.apart and arguments)

    def needed(self, value: Value, without: Set[Operation], kept: Set[Value] = frozenset()) -> bool:
        """True if an operation that is not written yet, and not among `without`, evaluates a value.

        It does not where it reads what is made of the value from memory: from a buffer, or of `kept`.
        """
        seen = {value}
        waiting = [value]
        while waiting:
            for user in waiting.pop().users:
                if user in self.done or user in without:
                    continue
                if not is_lazy(user):
                    return True
                more = [
                    each for each in user.results if each not in self.buffers and each not in kept and each not in seen
                ]
                seen.update(more)
                waiting += more
        return False

    def reach(self, values: Iterable[Value]) -> dict[Operation, None]:
        """The operations that evaluating values evaluates, in order."""
        found: dict[Operation, None] = {}
        seen: set[Value] = set()

        def visit(value: Value) -> None:
            if value in seen or value in self.buffers or value in self.scalars:
                return
            seen.add(value)
            owner = value.owner
            if value in self.progressions:
                visit(self.progressions[value][0])
            elif isinstance(owner, Operation):
                for operand in owner.operands if is_lazy(owner) else ():
                    visit(operand)
                found[owner] = None

        for value in values:
            visit(value)
        return found

    def at_own_index(self, values: Iterable[Value], suspect: Callable[[Value], bool]) -> bool:
        """True if evaluating values at an index reads the suspects among what they are made of at that index only."""
        seen: set[tuple[Value, bool]] = set()

        def visit(value: Value, same: bool) -> bool:
            if (value, same) in seen or value in self.scalars:
                return True
            seen.add((value, same))
            owner = value.owner
            if not same and suspect(value):
                return False
            if value in self.progressions:
                return visit(self.progressions[value][0], same)
            if value in self.buffers or isinstance(owner, Block) or not is_lazy(owner):
                return True
            same = same and (is_elementwise(owner.name) or owner.name in _SAME_INDEX)
            return all(visit(each, same) for each in owner.operands)

        return all(visit(value, True) for value in values)

    def uniform(self, value: Value) -> tuple[str, str] | None:
        """The number that all elements of a tensor are, and its type, if that is known."""
        owner = value.owner
        if value in self.scalars:
            return self.scalars[value], register(value.element)
        if isinstance(owner, Block):
            return None
        if owner.name == "arith.constant":
            return constant(owner), register(value.element)
        return self.uniform(owner.operands[0]) if owner.name in VIEWS[:3] or owner.name == "tt.reshape" else None

    def added(self, argument: Value, value: Value) -> Value | None:
        """What a round of a loop adds to a tensor that it carries, if it adds one number to all elements."""
        owner = value.owner
        if argument.shape is None or isinstance(owner, Block) or owner.name not in ("tt.addptr", "arith.addi"):
            return None
        x, y = owner.operands
        if owner.name == "arith.addi" and y is argument:
            x, y = y, x
        source = y.owner
        while isinstance(source, Operation) and source.name in ("tt.broadcast", "tt.expand_dims", "tt.reshape"):
            source = source.operands[0].owner
        known = isinstance(source, Operation) and source.name in ("arith.constant", "tt.splat")
        return y if x is argument and known else None

    def slope(self, value: Value, dim: int) -> int | None:
        """By how many elements a pointer or an integer grows along a dimension; None if that is not known."""
        key = value, dim
        if key not in self._slopes:
            self._slopes[key] = None
            self._slopes[key] = self._find_slope(value, dim)
        return self._slopes[key]

    def _find_slope(self, value: Value, dim: int) -> int | None:
        if value in self.progressions:
            return self.slope(self.progressions[value][0], dim)
        owner = value.owner
        if value.shape is None or value.shape[dim] == 1:
            return 0
        if isinstance(owner, Block) or value in self.buffers:
            return None
        name, operands = owner.name, owner.operands
        if name in ("tt.splat", "arith.constant"):
            return 0
        if name == "tt.make_range":
            return 1
        if name == "tt.broadcast":
            return self.slope(operands[0], dim)
        if name == "tt.expand_dims":
            return self.slope(operands[0], dim - (dim > owner.integer("axis")))
        if name == "tt.trans":
            return self.slope(operands[0], owner.integers("order")[dim])
        if name == "tt.reshape":  # of which only those that add and drop dimensions of size 1 are followed
            kept, source = ([at for at, size in enumerate(each.sizes) if size > 1] for each in (value, operands[0]))
            same = [value.sizes[at] for at in kept] == [operands[0].sizes[at] for at in source]
            return self.slope(operands[0], source[kept.index(dim)]) if same else None
        if any(each.shape not in (None, value.shape) for each in operands):
            return None
        slopes = [self.slope(each, dim) for each in operands]
        if name in ("arith.extsi", "arith.extui", "arith.trunci", "tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr"):
            return slopes[0]
        if all(slope == 0 for slope in slopes):
            return 0 if is_elementwise(name) or name == "tt.addptr" else None
        if name in ("tt.addptr", "arith.addi", "arith.subi"):
            x, y = slopes
            return None if x is None or y is None else x - y if name == "arith.subi" else x + y
        if name == "arith.muli":
            for slope, other in zip(slopes, reversed(operands), strict=True):
                factor = self.uniform(other)
                if slope is not None and factor is not None and factor[0][0] != "%":
                    return slope * int(factor[0])
        return None
