"""One launch for many tensors: the step of an optimizer on all of its parameters at once.

The kernel finds the tensors by a table in device memory, a row for each: the addresses of parameter, gradient and
state, how many elements there are, and which program is the row's first. A second table holds the row of
each program. Both stay on the device from step to step. In each step the host compares the addresses with those of the
step before; if a gradient's address has changed, the rows are sent again, in one copy through pinned memory.

Numbers that change from step to step (learning rate, corrections) are arguments. A captured step reads them from device
memory, a row for each tensor, because arguments are fixed when a graph is captured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ... import settings
from ...drivers.capture import capturing
from ...errors import ShapeError
from ...memory import buffer, copies
from ...memory.array import DeviceArray
from ...operators import copy_into
from ...operators.inplace import check_writable
from ...runtime.call import Call
from ...runtime.launch import DeviceFunction, Float64, device_function, kernel, launch
from ...tensors import Tensor
from ...types import devices, dtypes, formats
from .. import blocks

if TYPE_CHECKING:
    import triton.language as tl

# Bytes of the widest operand that one program moves; see `elementwise_kernel`.
_PROGRAM_BYTES = 4096
_INTERPRETED_BLOCK = 1 << 16

# Each is read of 1200 arrays in a step of 300 parameters: mapped, in half the time of a comprehension.
_DATA, _FORM, _OFFSET, _ADDRESS = map(attrgetter, ("_data", "form", "offset", "buffer.address"))

Arrays = Sequence[Sequence[DeviceArray]]
Entries = list[tuple[Tensor, ...]]


class Rates(Protocol):
    """Numbers of a step that are computed on the device, for each tensor or for all of them.

    Attributes:
        counters: as many tensors for each parameter, whose addresses are in the batch's table from column `extra` on.
        columns: the column of each number in what `compute` returns, by name.
    """

    counters: Sequence[Tensor]
    columns: dict[str, int]

    def compute(self, batch: Batch, table: DeviceArray, numbers: dict[str, float]) -> DeviceArray:
        """The numbers in device memory: a row for each tensor of the batch, or one number for all."""

    def read(self, found: DeviceArray, position: int) -> dict[str, float]:
        """The numbers of one tensor, for the reference; the host waits for them."""


@device_function
def update_block(places, numbers, index, mask, BODY: tl.constexpr, KINDS: tl.constexpr, COMPUTE: tl.constexpr):
    """One block of one tensor: load, BODY, store. `mask` is None where every index is inside."""
    values = ()
    for role in tl.static_range(len(places)):
        values = values + (tl.load(places[role] + index, mask=mask).to(COMPUTE),)  # type: ignore[assignment]  # noqa: RUF005
    results = BODY(*values, *numbers)
    for role in tl.static_range(len(places)):
        # the gradient, in place 1, is only read
        if role != 1:
            if len(places) == 2:
                result = results
            else:
                result = results[role - (1 if role > 1 else 0)]
            tl.store(places[role] + index, result.to(KINDS[role]), mask=mask)


@kernel
def multi_tensor_kernel(
    table,
    owners,
    numbers,
    rows,
    BODY: tl.constexpr,
    KINDS: tl.constexpr,
    COMPUTE: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROW: tl.constexpr,
    ALIGNED: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """`param, *state = BODY(param, grad, *state, *numbers)` for every element of every tensor.

    Args:
        table: int64, a row of WIDTH for each tensor: the addresses of param, grad and state, the number of elements,
            the first program of the tensor, and the addresses of its counters, if any.
        owners: int32, the row of each program.
        numbers: what BODY takes after the tensors; those that COLUMNS finds in memory are ignored.
        rows: pointer to the numbers in memory, ROW of them for each tensor (0: the same for all), or None.
        BODY: device function; returns the new param, or a tuple of it and the new state.
        KINDS: the dtypes of param, grad and state.
        COMPUTE: the dtype that they are converted to for BODY.
        COLUMNS: for each number its column in `rows`; -1 for an argument.
        ALIGNED: every address is divisible by 16.
        BLOCK: elements per program. The grid is (programs,), ceil(elements / BLOCK) of them for each tensor.
    """
    program = tl.program_id(0)
    tensor = tl.load(owners + program).to(tl.int64)
    row = table + tensor * WIDTH
    places = ()
    for role in tl.static_range(len(KINDS)):
        place = tl.load(row + role).to(tl.pointer_type(KINDS[role]))
        if ALIGNED:
            place = tl.multiple_of(place, 16)
        places = places + (place,)  # type: ignore[assignment]  # noqa: RUF005
    count = tl.load(row + len(KINDS))
    start = (program - tl.load(row + len(KINDS) + 1)) * BLOCK
    found = ()
    for position in tl.static_range(len(numbers)):
        if COLUMNS[position] < 0:
            found = found + (numbers[position],)  # type: ignore[assignment]  # noqa: RUF005
        else:
            found = found + (tl.load(rows + tensor * ROW + COLUMNS[position]).to(COMPUTE),)  # type: ignore[assignment]  # noqa: RUF005
    index = start + tl.arange(0, BLOCK)
    # two forms: a mask against a count that is known only here cuts vectors of 16 bytes down to single elements
    if start + BLOCK <= count:
        update_block(places, found, index, None, BODY, KINDS, COMPUTE)
    else:
        update_block(places, found, index, index < count, BODY, KINDS, COMPUTE)


class Batch:
    """The tensors of one launch: on one device, of the same dtypes, none of them in another one's memory."""

    def __init__(
        self,
        operator: Any,
        members: list[int],
        arrays: Arrays,
        counters: int,
        compute: dtypes.dtype,
        results: tuple[dtypes.dtype, ...],
    ) -> None:
        if not isinstance(operator.body, DeviceFunction):
            operator.body = device_function(operator.body, name=operator.name)
        first = arrays[0]
        self.operator, self.members, self.compute, self.results = operator, members, compute, results
        self.device, self.length = first[0].device, len(arrays)
        self.kinds = tuple(dtypes.of(array.dtype) for array in first)
        self.gaps = _have_gaps(first)
        self.aligned = self.gaps or all(array.data_ptr() & 15 == 0 for array in first)
        self.block = block_size(arrays, _PROGRAM_BYTES)
        sizes = [entry[0].size for entry in arrays]
        programs = [-(-size // self.block) for size in sizes]
        self.grid = (sum(programs),)
        roles = len(first)
        self.extra = roles + 2  # the column of the counters' addresses, for `Rates`
        self.rows = np.zeros((self.length, roles + 2 + counters), np.int64)
        self.rows[:, roles] = sizes
        self.rows[1:, roles + 1] = np.cumsum(programs)[:-1]
        self.owners = copies.constant(np.repeat(np.arange(self.length, dtype=np.int32), programs), self.device)
        self.table: DeviceArray | None = None
        self.addresses: list[int] = []

    def run(self, arrays: Arrays, addresses: list[int], numbers: dict[str, float], rates: Rates | None) -> None:
        """Change what the arrays (a tuple for each tensor) hold; `addresses` are theirs, then those of the counters."""
        if self.gaps:
            whole = [[_packed(array) for array in entry] for entry in arrays]
            places = [array.data_ptr() for entry in whole for array in entry]
            self._checked(whole, places + addresses[len(places) :], numbers, rates)
            for entry, packed in zip(arrays, whole, strict=True):
                for role, array in enumerate(entry):
                    if role != 1:
                        copy_into(array, packed[role])
        else:
            self._checked(arrays, addresses, numbers, rates)

    def _checked(self, arrays: Arrays, addresses: list[int], numbers: dict[str, float], rates: Rates | None) -> None:
        """Launch; in checked mode the reference reads copies made before, one tensor after the other."""
        if self.device is devices.meta:
            return
        captured = capturing(arrays[0][0].buffer.arena.driver, self.device.index) is not None
        table = self._table(addresses, captured)
        check = settings.check.value and not captured
        before = [[_packed(array) for array in entry] for entry in arrays] if check else []
        found = None if rates is None else rates.compute(self, table, numbers)
        if settings.debug.value < 2:
            self._launch(arrays, table, numbers, rates, found)
        else:
            from ...runtime.log import logged

            largest = max((entry[0] for entry in arrays), key=lambda array: array.size)
            shown: Any = _Logged(self, arrays, table, numbers, rates, found)
            facts = {"tensors": self.length, "elements": sum(entry[0].size for entry in arrays)}
            call = Call(shown, (), facts)
            call.outs = [largest]
            logged(call)
        for position, old in enumerate(before):
            from ...runtime.checking import compare_with_reference

            new = [arrays[position][0], *arrays[position][2:]]
            theirs = numbers if rates is None else {**numbers, **rates.read(found, position)}  # type: ignore[arg-type]
            call = Call(self.operator, (), theirs, self.device, self.compute, self.results)
            call.outs, call.arrays = new, old
            compare_with_reference(call)

    def _table(self, addresses: list[int], captured: bool) -> DeviceArray:
        """The rows on the device, sent there if an address has changed; a captured step has a table of its own."""
        if addresses == self.addresses and self.table is not None and not captured:
            return self.table
        roles = len(self.kinds)
        found = np.array(addresses, np.int64)
        self.rows[:, :roles] = found[: self.length * roles].reshape(self.length, roles)
        if len(found) > self.length * roles:
            self.rows[:, self.extra :] = found[self.length * roles :].reshape(self.length, -1)
        if captured:
            return copies.constant(self.rows, self.device)
        if self.table is None:
            self.table = buffer.empty(self.rows.shape, self.rows.dtype, self.device)
        copies.copy_into(self.table, self.rows)
        self.addresses = addresses
        return self.table

    def _launch(
        self, arrays: Arrays, table: DeviceArray, numbers: dict[str, float], rates: Rates | None, found: Any
    ) -> None:
        wrap = Float64 if self.compute is dtypes.float64 else float
        columns = {} if rates is None else rates.columns
        constants = {
            "BODY": self.operator.body,
            "KINDS": self.kinds,
            "COMPUTE": self.compute,
            "COLUMNS": tuple(columns.get(name, -1) for name in numbers),
            "ROW": 0 if found is None or found.ndim == 0 else found.shape[-1],
            "ALIGNED": self.aligned,
            "WIDTH": self.rows.shape[1],
            "BLOCK": self.block,
        }
        launch(
            multi_tensor_kernel,
            self.grid,
            (table, self.owners, tuple(map(wrap, numbers.values())), found),
            constants,
            self.device,
            name=self.operator.name,
            reaches=(self.operator.inputs, arrays),
        )


class _Logged:
    """A batch's launch, for the debug line."""

    def __init__(self, batch: Batch, arrays: Arrays, *rest: Any) -> None:
        self.batch, self.arrays, self.rest, self.name = batch, arrays, rest, batch.operator.name

    def launch(self, *_: Any) -> None:
        self.batch._launch(self.arrays, *self.rest)

    def cost(self, *_: Any) -> tuple[int, int]:
        """All but the gradient is read and written."""
        moved = sum(array.nbytes * (1 if role == 1 else 2) for entry in self.arrays for role, array in enumerate(entry))
        return moved, 0


def _have_gaps(entry: Sequence[DeviceArray]) -> bool:
    """True unless all arrays of a tensor have their elements in one order, without anything in between."""
    if all(array.is_contiguous() for array in entry):
        return False
    strides = entry[0].strides
    return any(array.strides != strides for array in entry) or not formats.is_dense(entry[0].shape, strides)


def _packed(array: DeviceArray) -> DeviceArray:
    """A contiguous copy."""
    result = buffer.empty(array.shape, array.dtype, array.device)
    copy_into(result, array)
    return result


def block_size(arrays: Arrays, nbytes: int) -> int:
    """Elements per program, of which the widest operand's take `nbytes` on a device."""
    largest, widest = max(entry[0].size for entry in arrays), max(array.itemsize for array in arrays[0])
    return blocks.block_size(arrays[0][0], nbytes // widest, interpreted=_INTERPRETED_BLOCK, count=largest)


class Tables:
    """The tables that an optimizer keeps on its devices from step to step, by a tag for each of its launches."""

    def __init__(self) -> None:
        self.splits: dict[Any, _Split] = {}

    def step(
        self,
        tag: Any,
        operator: Any,
        numbers: dict[str, float],
        entries: Entries,
        relocate: Callable[[], Entries],
        rates: Rates | None = None,
    ) -> None:
        """Change parameters and state in place, with one launch for each device and combination of dtypes.

        Args:
            tag: tells this call apart from the optimizer's other ones.
            operator, numbers: what is computed.
            entries: for each parameter (param, grad, *state).
            relocate: the entries with each state (and counter) on its parameter's device; called if anything changed.
            rates: numbers that are computed on the device.

        Raises:
            ShapeError: a gradient or a state tensor has another shape than its parameter.
            DeviceMismatchError: they are on different devices.
            Nothing has changed then.
        """
        split = self.splits.get(tag)
        roles, count = len(operator.inputs), len(entries)
        # one flat list: a step of 300 tensors checks 1200 arrays before its launch
        arrays = _arrays(entries, rates)
        try:
            forms, addresses = list(map(_FORM, arrays)), list(map(_ADDRESS, arrays))
            if any(map(_OFFSET, arrays)):
                addresses = [array.data_ptr() for array in arrays]
            driver = arrays[0].buffer.arena.driver
        except AttributeError:  # something is on the host
            split = None
        if split is None or split.forms != forms or split.driver is not driver or split.own != _own(addresses, entries):
            entries = relocate()
            arrays = _arrays(entries, rates)
            check_entries(operator, entries)
            addresses = [array.data_ptr() for array in arrays]
            split = _Split(operator, numbers, entries, arrays, addresses)
            if capturing(split.driver, arrays[0].device.index) is None:  # a capture's tables belong to its graph
                self.splits[tag] = split
        rows = list(zip(*[iter(arrays[: roles * count])] * roles, strict=True))
        for batch in split.batches:
            if batch.length == count:
                batch.run(rows, addresses, numbers, rates)
            else:
                places = [position * roles + role for position in batch.members for role in range(roles)]
                each = batch.rows.shape[1] - batch.extra
                start = roles * count
                places += [start + position * each + place for position in batch.members for place in range(each)]
                batch.run(
                    [rows[position] for position in batch.members],
                    [addresses[place] for place in places],
                    numbers,
                    rates,
                )
        params, _, *states = zip(*entries, strict=True)
        count_changes(chain(params, *states))


def _arrays(entries: Entries, rates: Rates | None) -> list[Any]:
    """The arrays of all tensors, entry by entry, and then those of the counters."""
    arrays = list(map(_DATA, chain.from_iterable(entries)))
    if rates is not None:
        arrays += [tensor._data for tensor in rates.counters]
    return arrays


def _own(addresses: list[int], entries: Entries) -> list[int]:
    """The addresses without those of the gradients, which may change with every step."""
    own = addresses.copy()
    roles = len(entries[0])
    del own[1 : roles * len(entries) : roles]
    return own


class _Split:
    """The division of a step's tensors into launches, for as long as their forms and own addresses stay."""

    def __init__(
        self,
        operator: Any,
        numbers: dict[str, float],
        entries: Entries,
        arrays: list[DeviceArray],
        addresses: list[int],
    ) -> None:
        self.driver = arrays[0].buffer.arena.driver
        self.forms = [array.form for array in arrays]
        self.own = _own(addresses, entries)
        roles = len(entries[0])
        rows = [arrays[start : start + roles] for start in range(0, roles * len(entries), roles)]
        groups: dict[Any, list[int]] = {}
        resolved: dict[Any, Any] = {}
        for position, found in enumerate(rows):
            gaps = _have_gaps(found)
            aligned = all(array.data_ptr() & 15 == 0 for array in found)
            # one with gaps is copied for its launch, which is a separate one
            key = (found[0].device, *(array.dtype for array in found), position if gaps else -1, gaps or aligned)
            groups.setdefault(key, []).append(position)
            if key not in resolved:
                resolved[key] = operator.resolve_dtypes(Call(operator, tuple(entries[position]), numbers))
        self.batches = [
            Batch(
                operator,
                members,
                [rows[position] for position in members],
                len(arrays) // len(entries) - roles,
                *resolved[key],
            )
            for key, whole in groups.items()
            for members in _apart(whole, rows)
        ]


def count_changes(tensors: Iterable[Tensor]) -> None:
    """`Tensor._count_change` for each, in a third of the time."""
    for tensor in tensors:
        counter = tensor._counter
        if counter is None:
            tensor._counter = [1]
        else:
            counter[0] += 1


def check_entries(operator: Any, entries: Entries) -> None:
    """`check_entry` for each."""
    for entry in entries:
        check_entry(operator, entry)


def check_entry(operator: Any, entry: Sequence[Tensor]) -> None:
    """Raise where a parameter, its gradient and its state do not fit together, or must not be changed."""
    param = entry[0]
    for name, tensor in zip(operator.inputs, entry, strict=True):
        if tuple(tensor._data.shape) != tuple(param._data.shape):  # of a DTensor those of its part
            raise ShapeError(
                f"The size of {name} {tuple(tensor.shape)} must match the size of param {tuple(param.shape)}",
                remedy="make a new optimizer: the state belongs to a parameter of another shape",
            )
    check_writable(param)
    operator.place(entry)
    if any(tensor.device is not param.device for tensor in entry):  # `place` lets CPU tensors without dimensions pass
        operator._refuse_mixed(entry)


def _apart(members: list[int], arrays: Sequence[Sequence[DeviceArray]]) -> list[list[int]]:
    """The members, divided so that none writes another's memory: these are stepped one after the other, in order."""
    spans = {
        position: [
            (array.data_ptr(), array.data_ptr() + array.nbytes)
            for array in (arrays[position][0], *arrays[position][2:])
        ]
        for position in members
    }
    flat = sorted(span for found in spans.values() for span in found)
    if len(members) == 1 or all(one[1] <= other[0] for one, other in pairwise(flat)):
        return [members]
    turns: list[list[int]] = []
    for position in members:
        turn = 0
        for earlier, before in enumerate(turns):
            meets = (
                low < there and here < high
                for each in before
                for here, there in spans[each]
                for low, high in spans[position]
            )
            if any(meets):
                turn = earlier + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(position)
    return turns
