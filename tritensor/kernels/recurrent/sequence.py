"""All steps of equal sequences in one launch: the programs of a cooperative grid wait for one another in each step.

A program keeps a tile of the weight for all steps, in shared memory where it is compiled, and reads in each step the
states before, which the other programs wrote. If its tile has all inputs, it computes the gates of its own states.
Where that would be too many inputs, as of the gradients of gates, it writes its sums to memory; behind a barrier each
program adds up the sums of some states. Of 1024 units and 64 rows in bfloat16, 8 MB a step come out of the level-2
cache that way, where tiles of all inputs would read 32 MB of gradients.
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import copy_into
from ...runtime.launch import Kernel, device_function, kernel, launch
from ...types import dtypes
from ..blocks import forced_block, power_of_two
from ..matmul.kernel import sum_of_products
from ..matmul.launch import arithmetic
from ..matmul.precision import product_for
from .kernel import gradient_inputs, state_gates, state_gradients, state_inputs

if TYPE_CHECKING:
    import triton.language as tl

# Lines of the weight in a tile, of which tensor cores take 64 at once; rows of the batch; and parts of the inputs.
_LINES, _ROWS, _PARTS = (64, 128), (16, 32, 64, 128), (1, 2, 4, 8, 16)
_LEAST = 16  # lines, rows and depth of Triton's products
_WARPS = 8
_SPARE = 16 << 10  # bytes of shared memory beside the tiles
# A clock of an H200 brings a multiprocessor 64 bytes of the level-2 cache, and all of them about 3000. Sums that are
# written and read cost a barrier more, which is three times the latency of that cache.
_BYTES, _ALL_BYTES, _BARRIER = 64, 3000, 1500
# KB of the weight in a tile, of sums that are apart and of whole gates, by the capability and the kind of products. A
# tile is loaded into registers first, of which twice as much spills 8 to 480 bytes. Tensor cores of other capabilities
# do not read a tile where it is kept.
_KEPT = {(9, "half"): (128, 128), (9, "tf32"): (128, 128), (9, "tf32x3"): (128, 0)}
_KEPT |= {(10, "half"): (64, 64), (10, "tf32"): (128, 64)}


@device_function
def _all_arrive(counter_ptr: tl.tensor, arrivals: tl.tensor):
    """Wait until all programs have come here: the counter holds how often one has."""
    tl.debug_barrier()
    tl.atomic_add(counter_ptr, 1, sem="release")
    while tl.atomic_add(counter_ptr, 0, sem="acquire") < arrivals:
        pass
    tl.debug_barrier()


@device_function
def _tile(lines: tl.tensor, PARTS: tl.constexpr, LINES: tl.constexpr, DEPTH: tl.constexpr, ROWS: tl.constexpr):
    """The first line, the inputs and the rows of the batch that the program multiplies, and their part of the sums."""
    index, tiles = tl.program_id(0), tl.cdiv(lines, LINES)
    part, tile = index % PARTS, index // PARTS
    k = part * DEPTH + tl.arange(0, DEPTH)
    return tile % tiles * LINES, k, (tile // tiles * ROWS + tl.arange(0, ROWS))[None, :], part


@device_function
def _product(
    weight: tl.tensor,
    x_ptr: tl.tensor,
    known: tl.tensor,
    k: tl.tensor,
    row: tl.tensor,
    depth: tl.tensor,
    TOTAL: tl.constexpr,
    PRODUCT: tl.constexpr,
):
    """The product of a tile of the weight and rows of x, of which so many are known and the others 0."""
    there = (row < known) & (k[:, None] < depth)
    x = tl.load(x_ptr + row.to(tl.int64) * depth + k[:, None], mask=there, other=0)
    return sum_of_products(weight, x, tl.zeros((weight.shape[0], x.shape[1]), TOTAL), PRODUCT)


@device_function
def _sums(parts_ptr: tl.tensor, place: tl.tensor, size: tl.tensor, mask: tl.tensor, PARTS: tl.constexpr):
    """What each part of the inputs gives: all is read before anything is added."""
    found = (tl.load(parts_ptr + place, mask=mask, other=0),)
    for part in tl.static_range(1, PARTS):
        found = found + (tl.load(parts_ptr + part * size + place, mask=mask, other=0),)  # type: ignore[assignment] # noqa: RUF005
    return found


@device_function
def _all_sums(
    parts_ptr: tl.tensor, state: tl.tensor, count: tl.tensor, units: tl.tensor, GATES: tl.constexpr, PARTS: tl.constexpr
):
    """The sums of each gate of some states."""
    place, mask = state // units * (GATES * units) + state % units, state < count * units
    size = count * (GATES * units)
    found = (_sums(parts_ptr, place, size, mask, PARTS),)
    for gate in tl.static_range(1, 4):
        found = found + (_sums(parts_ptr, place + (gate % GATES) * units, size, mask, PARTS),)  # type: ignore[assignment] # noqa: RUF005
    return found


@device_function
def _added(found: tl.tuple, PARTS: tl.constexpr):
    total = found[0]
    for part in tl.static_range(1, PARTS):
        total += found[part]
    return total


@partial(kernel, cooperative=True)
def sequence_kernel(
    outs: tl.tuple,
    x_ptr: tl.tensor,
    first_ptr: tl.tensor,
    cells: tl.tuple,
    weight_ptr: tl.tensor,
    biases: tl.tuple,
    scratch: tl.tuple,
    sizes: tl.tuple,
    MODE: tl.constexpr,
    GATES: tl.constexpr,
    TOTAL: tl.constexpr,
    PRODUCT: tl.constexpr,
    REVERSE: tl.constexpr,
    PARTS: tl.constexpr,
    LINES: tl.constexpr,
    DEPTH: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """All steps: gates of x + state @ weight.T + bias, and the new states.

    Args:
        outs: pointers to the results: states; the cells, or what the reset gate multiplies; gates.
        x_ptr: the gates' part that the input gives.
        first_ptr: the states before the first step. cells: for LSTM the same pointer to cells.
        weight_ptr: (GATES * units, units), contiguous.
        biases: a pointer to the bias, if there is one.
        scratch: pointers to sums, (PARTS, count, GATES * units), and to a counter, which is 0.
        sizes: the numbers of steps, of rows of each step, and of units.
        MODE: "lstm", "gru", "tanh" or "relu".
        REVERSE: the last step comes first.
        PARTS, LINES, DEPTH, ROWS: parts of the inputs, and the tile that a program multiplies.
        BLOCK: states that a program computes at once; 0: those of its tile, whose lines are four gates of some units.
    """
    steps, count, units = sizes
    UNITS: tl.constexpr = LINES if BLOCK else LINES // 4
    lines = units if BLOCK == 0 else GATES * units
    first, k, row, part = _tile(lines, PARTS, UNITS, DEPTH, ROWS)
    each = tl.arange(0, LINES)
    line, gate = (first + each % UNITS)[:, None], (each // UNITS)[:, None]
    there = (line < lines) & (gate < GATES) & (k[None, :] < units)
    place = (gate * units + line).to(tl.int64) * units + k[None, :]
    weight = tl.load(weight_ptr + place, mask=there, other=0)
    programs, states = tl.num_programs(0), count * units
    back = (2 * REVERSE - 1) * states  # from a state to that of the step before
    for step in range(steps):
        at = tl.cast(steps - 1 - step if REVERSE else step, tl.int64) * count
        before, known = (outs[0] + back, first_ptr - at * units), at + (step > 0) * count
        kept = before
        if MODE == "lstm":
            kept = outs[1] + back, cells[0] - at * units
        x = tl.where(step == 0, first_ptr, outs[0] + (at * units + back))
        if BLOCK == 0:
            col = (first + tl.arange(0, UNITS))[:, None]
            own = at + row, col, (row < count) & (col < units)
            inputs = state_inputs(x_ptr, before, kept, biases, own, known, units, TOTAL, MODE, GATES)
            total = _product(weight, x, count, k, row, units, TOTAL, PRODUCT)
            low, high = tl.split(tl.permute(tl.reshape(total, (2, 2, UNITS, ROWS)), (2, 3, 1, 0)))
            sum0, sum1 = tl.split(low)
            sum2, sum3 = tl.split(high)
            state_gates((sum0, sum1, sum2, sum3), inputs, outs, own, units, MODE, GATES)
        else:
            total = _product(weight, x, count, k, row, units, TOTAL, PRODUCT)
            parts = scratch[0] + (part * count + row) * lines + line
            tl.store(parts, total, mask=(row < count) & (line < lines))
            _all_arrive(scratch[1], (2 * step + 1) * programs)
            for start in range(tl.program_id(0) * BLOCK, states, programs * BLOCK):
                state = start + tl.arange(0, BLOCK)
                which = at + state // units, state % units, state < states
                sums = _all_sums(scratch[0], state, count, units, GATES, PARTS)
                inputs = state_inputs(x_ptr, before, kept, biases, which, known, units, TOTAL, MODE, GATES)
                totals = _added(sums[0], PARTS), _added(sums[1], PARTS), _added(sums[2], PARTS), _added(sums[3], PARTS)
                state_gates(totals, inputs, outs, which, units, MODE, GATES)
        _all_arrive(scratch[1], (step + 1) * (programs if BLOCK == 0 else 2 * programs))


@partial(kernel, cooperative=True)
def sequence_backward_kernel(
    outs: tl.tuple,
    grads: tl.tuple,
    product_ptr: tl.tensor,
    weight_ptr: tl.tensor,
    kept: tl.tuple,
    carried_ptr: tl.tensor,
    scratch: tl.tuple,
    sizes: tl.tuple,
    MODE: tl.constexpr,
    GATES: tl.constexpr,
    TOTAL: tl.constexpr,
    PRODUCT: tl.constexpr,
    REVERSE: tl.constexpr,
    PARTS: tl.constexpr,
    LINES: tl.constexpr,
    DEPTH: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """All steps' gradients: of states, which are grad + product @ weight of the step after, then of the gates.

    Args:
        outs: pointers to the results: the gradients of the gates; of GRU also those of the product.
        grads: a pointer to the gradients of the states, if there are any.
        product_ptr: which of `outs` comes from the states by the weight, (GATES * units, units) and contiguous.
        kept: pointers to gates (or, with one gate, to states); to cells, or what is reset; to the cells or states
            before; and to the gradients of cells, if there are any.
        carried_ptr: what goes to the step before without the product; zeros at first.
        scratch: pointers to sums, (PARTS, count, units), and to a counter, which is 0.
        REVERSE: the last step comes first here. The other arguments are those of `sequence_kernel`.
    """
    steps, count, units = sizes
    depth = GATES * units
    first, k, row, part = _tile(units, PARTS, LINES, DEPTH, ROWS)
    line = (first + tl.arange(0, LINES))[:, None]
    there = (line < units) & (k[None, :] < depth)
    weight = tl.load(weight_ptr + k[None, :].to(tl.int64) * units + line, mask=there, other=0)
    programs, states = tl.num_programs(0), count * units
    back = (2 * REVERSE - 1) * count
    for step in range(steps):
        at = tl.cast(steps - 1 - step if REVERSE else step, tl.int64) * count
        carried, known, x = carried_ptr - at * units, (step > 0) * count, product_ptr + (at + back) * depth
        total = _product(weight, x, known, k, row, depth, TOTAL, PRODUCT)
        tl.store(scratch[0] + (part * count + row) * units + line, total, mask=(row < count) & (line < units))
        _all_arrive(scratch[1], (2 * step + 1) * programs)
        for start in range(tl.program_id(0) * BLOCK, states, programs * BLOCK):
            state = start + tl.arange(0, BLOCK)
            own = at + state // units, state % units, state < states
            sums = _sums(scratch[0], state, states, state < states, PARTS)
            inputs = gradient_inputs(grads, kept, carried, own, units, TOTAL, MODE, GATES)
            state_gradients(_added(sums, PARTS), inputs, outs, carried, own, units, MODE, GATES)
        _all_arrive(scratch[1], (2 * step + 2) * programs)


class Tiles(NamedTuple):
    """How a product is shared out: parts of the inputs, the tile of a program, and the number of programs.

    Attributes:
        apart: sums are written and read again, behind a barrier of their own.
    """

    parts: int
    lines: int
    depth: int
    rows: int
    programs: int
    apart: bool = True


@lru_cache(256)
def tiles_for(
    gates: int, units: int, count: int, forward: bool, nbytes: int, kept: tuple[int, int], programs: int, shared: int
) -> Tiles | None:
    """The tiles that take least time of the level-2 cache and of barriers; None where they do not fit.

    Args:
        count: rows of a step.
        nbytes: that an element of a tile takes of shared memory.
        kept: bytes of a tile of the weight at the most, of sums that are apart and of whole gates.
        programs: that there may be, with so much shared memory each.

    >>> tiles_for(4, 1024, 64, True, 2, (131072, 131072), 132, 232448)
    Tiles(parts=1, lines=64, depth=1024, rows=32, programs=128, apart=False)
    >>> tiles_for(4, 1024, 64, False, 2, (131072, 131072), 132, 232448)
    Tiles(parts=8, lines=128, depth=512, rows=32, programs=128, apart=True)
    """
    best, least = None, float("inf")
    for parts, high, wide in product(_PARTS, _LINES, _ROWS):
        apart, lines, depth = _product_of(gates, units, forward, parts if kept[1] else 2)
        deep = max(power_of_two(-(-depth // parts)), _LEAST)
        tiles = Tiles(parts, high, deep, wide, parts * -(-lines // high) * -(-count // wide), apart)
        most, own, sums = kept[not apart], deep * wide * nbytes, 4 * high * wide
        if tiles.programs > programs or high * deep * nbytes > most or own > most // 2:
            continue
        if max(high * deep * nbytes + own, sums) > shared - _SPARE:
            continue
        moved = tiles.programs * own + apart * 8 * parts * lines * count
        clocks = own / _BYTES + moved / _ALL_BYTES + apart * _BARRIER
        if clocks < least:
            best, least = tiles, clocks
    return best


def _product_of(gates: int, units: int, forward: bool, parts: int) -> tuple[bool, int, int]:
    """Whether sums are apart, and the lines and depth of the product: a tile of whole gates has always four."""
    if not forward:
        return True, units, gates * units
    apart = parts > 1 or gates == 1
    return apart, (gates if apart else 4) * units, units


def launch_sequence(
    sequence: Kernel, mode: str, gates: int, arguments: tuple[Any, ...], sizes: tuple[int, ...], reverse: bool
) -> bool:
    """Launch one of the kernels for all steps; False if the device or the sizes do not allow it.

    Args:
        arguments: those before `scratch`.
        sizes: the rows of each step.
    """
    forward = sequence is sequence_kernel
    weight: DeviceArray = arguments[3 + forward]
    driver, index = weight.buffer.driver, weight.device.index or 0
    capability = driver.capability(index)
    kind, total, multiplied = arithmetic(dtypes.of(weight.dtype), product_for(capability))
    steps, count, units = len(sizes), sizes[0], weight.shape[1]
    kept = _KEPT.get((capability[0], kind))
    # of lines that are not aligned some tiles spill 8 to 16 bytes on sm_100
    if sizes[-1] != count or kept is None or (units % 16 and capability[0] > 9):
        return False
    device = driver.properties(index)
    # of three products of tf32 a tile is kept in two parts
    nbytes = weight.itemsize * (2 if kind == "tf32x3" else 1)
    # lines that are not aligned are loaded element by element
    apart, whole = ((each << 10) // (1 if units % 16 == 0 else 4 if nbytes == 2 else 2) for each in kept)
    limits = (apart, whole), device.multi_processor_count, device.shared_memory_per_block_optin
    sizes_of = gates, units, count, forward
    tiles = driver.pick(tiles_for(*sizes_of, nbytes, *limits), _forced(*sizes_of, 32 * limits[1]))
    if tiles is None or 2 * steps * tiles.programs >= 1 << 31:
        return False
    block = 0
    if tiles.apart:
        block = power_of_two(-(-count * units // tiles.programs))
        block = driver.pick(min(max(block, 32 * _WARPS), 128 * _WARPS), block)
    constants = {"MODE": mode, "GATES": gates, "TOTAL": total, "PRODUCT": multiplied, "REVERSE": reverse}
    constants |= dict(zip(("PARTS", "LINES", "DEPTH", "ROWS"), tiles[:4], strict=True)) | {"BLOCK": block}
    lines = gates * units if forward else units
    sums = buffer.empty((tiles.parts, count, lines) if tiles.apart else (0,), total.numpy, weight.device)
    counter = buffer.empty((1,), dtypes.int32.numpy, weight.device)
    copy_into(counter, 0)
    given = (*arguments, (sums, counter), (steps, count, units))
    label = f"recurrent_{mode}_sequence{'' if forward else '_backward'}"
    launch(sequence, (tiles.programs,), given, constants, weight.device, warps=_WARPS, stages=1, name=label)
    return True


def _forced(gates: int, units: int, count: int, forward: bool, programs: int) -> Tiles | None:
    """For the interpreter one tile of all, or small ones where `settings.block` asks for them."""
    forced, depth = forced_block() or 1 << 20, units if forward else gates * units
    deep = min(power_of_two(depth), max(forced // 2, 1))
    parts = -(-depth // deep)
    apart, lines, _ = _product_of(gates, units, forward, parts)
    high, rows = (min(power_of_two(size), max(forced // 8, 1 if apart else 4)) for size in (lines, count))
    tiles = Tiles(parts, high, deep, rows, parts * -(-lines // high) * -(-count // rows), apart)
    return tiles if tiles.programs <= programs else None
