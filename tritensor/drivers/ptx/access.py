"""Instructions that access memory or exchange values between lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import KernelError
from .memory import WORDS, Memory
from .parse import Address, Immediate, Instruction, Kernel, Name, Operand, Vector
from .shared import Shared
from .state import Machine, Mask
from .table import Step, instruction, place, source, target, unknown
from .values import TYPES, Type, joined, pairs

__all__: list[str] = []


def _space(i: Instruction) -> str:
    for part in i.parts[1:]:
        if part.split("::")[0] in ("global", "shared", "local", "param"):
            return part.split("::")[0]
    raise KernelError(f"an address without its space: {i.name}", "cvta and generic addresses are not supported")


def _registers(operand: Operand) -> tuple[Operand, ...]:
    return operand.parts if isinstance(operand, Vector) else (operand,)


@instruction("ld")
def _load(i: Instruction, kernel: Kernel) -> Step:
    space, kind = _space(i), TYPES[i.parts[-1]]
    writes = [target(each, kind) for each in _registers(i.operands[0])]
    if space == "param":
        return _parameter(i, kernel, kind)
    return _loads(place(i.operands[1], 64 if space == "global" else 32), space, kind, writes)


def _loads(where: Callable[[Machine], np.ndarray], space: str, kind: Type, writes: list[Any]) -> Step:
    count = len(writes)
    nbytes = kind.size * count

    def run(m: Machine, mask: Mask) -> None:
        holder = m.memory if space == "global" else m.shared if space == "shared" else m.local
        words = holder.load(m, where(m), nbytes, mask)
        if count == 1:
            writes[0](m, kind.read(words), mask)
            return
        parts = np.ascontiguousarray(words)[..., None].view(kind.bits)
        for at, write in enumerate(writes):
            write(m, kind.read(np.ascontiguousarray(parts[..., at])), mask)

    return run


def _parameter(i: Instruction, kernel: Kernel, kind: Type) -> Step:
    write, address = target(i.operands[0], kind), i.operands[1]
    assert isinstance(address, Address) and isinstance(address.base, Name)
    names = [name for name, _ in kernel.parameters]
    at, skipped = names.index(address.base.text), 8 * address.offset
    width = 8 * kind.size

    def run(m: Machine, mask: Mask) -> None:
        bits = (m.values[at] >> skipped) & ((1 << width) - 1)
        write(m, kind.read(np.array([[bits]], kind.bits)), mask)

    return run


@instruction("st")
def _store(i: Instruction, kernel: Kernel) -> Step:
    space, kind = _space(i), TYPES[i.parts[-1]]
    where = place(i.operands[0], 64 if space == "global" else 32)
    reads = [source(each, kind) for each in _registers(i.operands[1])]
    nbytes = kind.size * len(reads)

    def run(m: Machine, mask: Mask) -> None:
        holder = m.memory if space == "global" else m.shared if space == "shared" else m.local
        parts = [kind.write(read(m)) for read in reads]
        if len(parts) > 1:
            parts = [joined(parts, WORDS[nbytes])]
        holder.store(m, where(m), parts[0], mask)

    return run


# ---- atomics --------------------------------------------------------------------------------------------------------

_ATOMIC: dict[str, Callable[..., np.ndarray]] = {
    "add": lambda old, b: old + b,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, b: b,
    "cas": lambda old, b, c: np.asarray(np.where(old == b, c, old)),
    "inc": lambda old, b: np.where(old >= b, old - old, old + 1),
    "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - 1),
}


@instruction("atom", "red")
def _atomic(i: Instruction, kernel: Kernel) -> Step:
    """Of numbers side by side, in vectors and in pairs, each changes atomically, the whole does not."""
    space, suffix = _space(i), i.parts[-1]
    packed = suffix in ("f16x2", "bf16x2")
    kind = TYPES[suffix[:-2] if packed else suffix]
    whole = TYPES["b32"] if packed else kind
    operator = next(_ATOMIC[part] for part in i.parts if part in _ATOMIC)
    returns = i.parts[0] == "atom"
    where = place(i.operands[returns], 64 if space == "global" else 32)
    groups = zip(*map(_registers, i.operands[1 + returns :]))
    reads = [[source(each, whole) for each in group] for group in groups]
    writes = [target(each, whole) for each in _registers(i.operands[0])] if returns else []
    if space != "global" and (packed or len(reads) > 1):
        raise unknown(i, kernel)

    def run(m: Machine, mask: Mask) -> None:
        active, address = m.full(mask), where(m)
        holder = m.memory if space == "global" else m.shared
        for at, each in enumerate(reads):
            bits = [np.broadcast_to(read(m), active.shape)[active] for read in each]
            olds = []
            for half in range(1 + packed):
                values = (
                    [kind.read(np.ascontiguousarray(pairs(value)[..., half])) for value in bits] if packed else bits
                )
                step = address + address.dtype.type(whole.size * at + kind.size * half)
                olds.append(_in_turns(m, holder, step, kind, operator, values, active))
            if writes:
                writes[at](m, whole.read(joined([kind.write(old) for old in olds], whole.bits)), active)

    return run


def _in_turns(
    m: Machine,
    holder: Memory | Shared,
    address: np.ndarray,
    kind: Type,
    operator: Callable[..., np.ndarray],
    values: list[np.ndarray],
    active: np.ndarray,
) -> np.ndarray:
    """Change memory, and return what was there; lanes that share an address take turns, in their order."""
    cells, at = holder.cells(m, address, kind.size, active)
    order = np.argsort(at, kind="stable")
    fresh = np.r_[True, np.diff(at[order]) != 0]
    turns = np.arange(len(at)) - np.maximum.accumulate(np.where(fresh, np.arange(len(at)), 0))
    result = np.zeros(len(at), kind.number)
    by_turn = order[np.argsort(turns, kind="stable")]
    ends = np.cumsum(np.bincount(turns))
    for chosen in np.split(by_turn, ends[:-1]):
        old = kind.read(cells[at[chosen]])
        new = kind.write(operator(old, *[value[chosen] for value in values]))
        m.wrote = m.wrote or bool((cells[at[chosen]] != new).any())
        cells[at[chosen]] = new
        result[chosen] = old
    spread = np.zeros(active.shape, kind.number)
    spread[active] = result
    return spread


# ---- asynchronous copies --------------------------------------------------------------------------------------------


class _Copies:
    """The copies of `cp.async` that have not landed, and how many groups each lane has closed: one number for all lanes
    as long as they agree."""

    def __init__(self, m: Machine) -> None:
        self.open: list[tuple[Mask, np.ndarray, np.ndarray]] = []  # lanes, addresses, words
        self.groups = np.zeros((1, 1), np.int32)
        self.closed: list[tuple[Mask, np.ndarray, np.ndarray, np.ndarray]] = []  # and the lanes' group numbers


def _copies(m: Machine) -> _Copies:
    found: _Copies | None = m.async_state.get("cp.async")
    if found is None:
        found = m.async_state["cp.async"] = _Copies(m)
    return found


@instruction("cp.async.ca", "cp.async.cg")
def _copy(i: Instruction, kernel: Kernel) -> Step:
    to, by, size = i.operands[:3]
    assert isinstance(size, Immediate)
    nbytes = size.bits
    shared, origin = place(to, 32), place(by)
    used = source(i.operands[3], TYPES["u32"]) if len(i.operands) > 3 else None

    def run(m: Machine, mask: Mask) -> None:
        valid = mask
        if used is not None:  # of no bytes: zeros, and the address is not looked at
            count = used(m)
            part = (count != 0) & (count != nbytes)
            if (part if mask is None else part & mask).any():
                m.fail("an asynchronous copy of a part of its bytes")
            some = count == nbytes
            valid = some if mask is None else some & mask
            valid = None if valid.all() else valid
        where = origin(m)
        if valid is None or valid.any():
            words = m.memory.load(m, where, nbytes, valid)
        else:
            words = np.zeros(where.shape, WORDS[nbytes])
        _copies(m).open.append((mask, shared(m), words))

    return run


@instruction("cp.async.commit_group")
def _commit(i: Instruction, kernel: Kernel) -> Step:
    def run(m: Machine, mask: Mask) -> None:
        copies = _copies(m)
        copies.groups = copies.groups + (1 if mask is None else mask)
        left: list[tuple[Mask, np.ndarray, np.ndarray]] = []
        for lanes, addresses, words in copies.open:
            closed, rest = (lanes, None) if mask is None else (m.full(lanes) & mask, m.full(lanes) & ~mask)
            if closed is None or closed.any():
                copies.closed.append((closed, addresses, words, copies.groups))
            if rest is not None and rest.any():
                left.append((rest, addresses, words))
        copies.open = left

    return run


@instruction("cp.async.wait_group", "cp.async.wait_all")
def _wait(i: Instruction, kernel: Kernel) -> Step:
    keep = i.operands[0].bits if i.operands and isinstance(i.operands[0], Immediate) else 0

    def run(m: Machine, mask: Mask) -> None:
        copies = _copies(m)
        if i.name.endswith("wait_all"):
            _commit(i, kernel)(m, mask)
        newest = copies.groups - keep
        left: list[tuple[Mask, np.ndarray, np.ndarray, np.ndarray]] = []
        for copy in copies.closed:
            lanes, addresses, words, groups = copy
            done = groups <= newest
            if mask is None and done.size == 1:
                if done:
                    m.shared.store(m, addresses, words, lanes)
                else:
                    left.append(copy)
                continue
            done = m.full(lanes) & m.full(mask) & done
            if done.any():
                m.shared.store(m, addresses, words, None if done.all() else done)
            if (rest := m.full(lanes) & ~done).any():
                left.append((rest, addresses, words, groups))
        copies.closed = left

    return run


# ---- between lanes --------------------------------------------------------------------------------------------------


@instruction("shfl.sync")
def _shuffle(i: Instruction, kernel: Kernel) -> Step:
    mode, kind = i.parts[2], TYPES["b32"]
    results = _registers(i.operands[0])
    write = target(results[0], kind)
    inside = target(results[1], TYPES["pred"]) if len(results) > 1 else None
    value, distance, limits = (source(operand, kind) for operand in i.operands[1:4])
    lane = np.arange(32, dtype=np.int64)
    constant = isinstance(i.operands[2], Immediate) and isinstance(i.operands[3], Immediate)

    def lanes_of(b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b, c = b.astype(np.int64) & 31, c.astype(np.int64)
        clamp, segment = c & 31, (c >> 8) & 31
        last, first = (lane & segment) | (clamp & ~segment), lane & segment
        if mode == "idx":
            picked = first | (b & ~segment)
        else:
            picked = {"up": lane - b, "down": lane + b, "bfly": lane ^ b}[mode]
        ok = picked >= last if mode == "up" else picked <= last
        return np.where(ok, picked, lane), ok

    fixed = None
    if constant:
        fixed = tuple(part.reshape(-1) for part in lanes_of(*(read(None) for read in (distance, limits))))  # type: ignore[arg-type]

    def run(m: Machine, mask: Mask) -> None:
        m.shared.synchronized_warps(m.whole_warps(mask))
        values = m.by_warp(value(m))
        if fixed is not None:
            picked, ok = fixed
            found = values.take(picked, axis=-1)
        else:
            picked, ok = lanes_of(m.by_warp(distance(m)), m.by_warp(limits(m)))
            found = np.take_along_axis(values, picked, -1)
        shape = m.blocks, m.threads
        write(m, found.reshape(shape), mask)
        if inside is not None:
            inside(m, np.broadcast_to(ok, found.shape).reshape(shape), mask)

    return run


_REDUCE = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@instruction("redux.sync")
def _reduce(i: Instruction, kernel: Kernel) -> Step:
    kind = TYPES[i.parts[-1]]
    fold = _REDUCE[i.parts[2]]
    write, value = target(i.operands[0], kind), source(i.operands[1], kind)

    def run(m: Machine, mask: Mask) -> None:
        m.whole_warps(mask)
        found = fold.reduce(m.by_warp(value(m)), axis=-1, keepdims=True)
        write(m, np.broadcast_to(found.astype(kind.number), (*found.shape[:2], 32)).reshape(m.blocks, m.threads), mask)

    return run


@instruction("vote.sync", "activemask")
def _vote(i: Instruction, kernel: Kernel) -> Step:
    mode = i.parts[1] if i.parts[0] == "activemask" else i.parts[2]
    negated = False
    holds: Callable[[Machine], np.ndarray] = lambda m: np.array([[True]])  # noqa: E731
    if i.parts[0] == "vote":
        operand = i.operands[1]
        if isinstance(operand, Name):
            raise KernelError(f"{kernel.name}: the simulated device does not know {i.name} of {operand.text}")
        holds = source(operand, TYPES["pred"])
    write = target(i.operands[0], TYPES["b32" if mode in ("ballot", "b32") else "pred"])
    powers = np.uint32(1) << np.arange(32, dtype=np.uint32)

    def run(m: Machine, mask: Mask) -> None:
        voting = m.by_warp(m.full(mask))
        votes = m.by_warp(holds(m)) & voting
        found: Any
        if mode in ("ballot", "b32"):
            found = (votes * powers).sum(-1, keepdims=True).astype(np.uint32)
        elif mode == "any":
            found = votes.any(-1, keepdims=True) ^ negated
        else:
            found = (votes | ~voting).all(-1, keepdims=True)
        write(m, np.broadcast_to(found, voting.shape).reshape(m.blocks, m.threads), mask)

    return run


@instruction("bar.warp.sync")
def _together(i: Instruction, kernel: Kernel) -> Step:
    return lambda m, mask: m.shared.synchronized_warps(m.whole_warps(mask))


@instruction("fence", "membar", "prefetch", "prefetchu", "nanosleep", "griddepcontrol", "discard")
def _nothing(i: Instruction, kernel: Kernel) -> Step:
    """What only orders or speeds up accesses, which happen one after the other here."""
    return lambda m, mask: None


@instruction("createpolicy")
def _policy(i: Instruction, kernel: Kernel) -> Step:
    write = target(i.operands[0], TYPES["b64"])
    return lambda m, mask: write(m, np.zeros((1, 1), np.uint64), mask)
