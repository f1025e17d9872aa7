"""The `mpi` backend: host memory through mpi4py; CUDA tensors are copied to pinned host memory and back.

Every operation is started without blocking and then polled, in a loop that sleeps. That costs tens of microseconds more
than a blocking call, but a waiting process can be interrupted, notices that another one has left, gives up after a
timeout, and does not occupy a core when there are more processes than cores.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...autograd.mode import no_grad
from ...errors import DistError
from ...memory import copies
from ...memory.array import DeviceArray
from ...operators.inplace import write
from ...tensors import Tensor, wrap
from ..checks import MESSAGE_SIZE
from ..reduction import ReduceOp
from . import sliced

# Tags: of the message that a process sends when it leaves, of `missing`, and how many messages may be under way.
_FAREWELL, _MONITOR, _TAGS = 1, 2, 1 << 20


class Operation:
    """An MPI operation: `begin()` starts it, `done()` returns whether it has ended, `finish()` writes its result to the
    tensors.

    Args:
        start: starts it and returns MPI's request.
        finish: called once, after it has ended.
        keep: memory that MPI uses meanwhile.
    """

    host_waits = True  # results are there when it has ended, and not before

    def __init__(self, start: Callable[[], Any], finish: Callable[[], None], keep: object = None) -> None:
        self._start: Callable[[], Any] | None = start
        self._request: Any = None
        self._finish: Callable[[], None] | None = finish
        self._keep = keep

    def begin(self) -> None:
        """Start it."""
        if self._start is not None:
            start, self._start = self._start, None
            self._request = start()

    def done(self) -> bool:
        """True if it has ended; MPI makes progress only when it is called, and so do reductions in slices."""
        if self._start is not None:
            return False
        if self._request is not None:
            if self._request.Test():
                self._request = None
            else:
                sliced.advance()
        return self._request is None

    def finish(self) -> None:
        """Use the result, once; only after it has ended."""
        if self._finish is not None:
            finish, self._finish, self._keep = self._finish, None, None
            finish()


def _nothing() -> None:
    pass


def outgoing(x: Tensor) -> np.ndarray:
    """The elements as a contiguous host array: a CPU tensor's own memory if it is contiguous, else a copy."""
    with no_grad():
        data = x.detach().contiguous()._data
    if data.__class__ is DeviceArray:
        waiting = copies.to_host(data, non_blocking=True)  # into pinned memory, which MPI then reads and writes
        return waiting if isinstance(waiting, np.ndarray) else waiting.wait()
    return wrap(data)._host_array()


def landing(x: Tensor, apart: Sequence[np.ndarray]) -> np.ndarray:
    """A contiguous host array for a tensor's result: its own memory, or new if that has gaps, is on a device or is
    shared with one of the arrays `apart`."""
    if x._data.__class__ is not DeviceArray:
        array = x._host_array()
        if array.flags.c_contiguous and not any(np.may_share_memory(array, each) for each in apart):
            return array
    return np.empty(tuple(x.shape), x._data.dtype)


def _is_memory_of(x: Tensor, array: np.ndarray) -> bool:
    """True if a contiguous array is a host tensor's own memory; an array that lies in a tensor's gaps is not."""
    own = x._host_array()
    return own.flags.c_contiguous and own.__array_interface__["data"][0] == array.__array_interface__["data"][0]


def incoming(x: Tensor, array: np.ndarray) -> None:
    """Overwrite the tensor with `array`, unless that is the tensor's own memory."""
    array = array.astype(x._data.dtype, copy=False).reshape(x.shape)
    data = x._data
    if data.__class__ is not DeviceArray and _is_memory_of(x, array):
        changed = x._counter = x._counter or [0]
        changed[0] += 1
    elif data.__class__ is DeviceArray and data.is_contiguous():
        copies.copy_into(data, array)
        changed = x._counter = x._counter or [0]
        changed[0] += 1
    else:
        with no_grad():
            write(x, wrap(array).to(x.device))


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array as bytes, for operations that only copy."""
    return array.reshape(-1).view(np.uint8)


class MpiBackend:
    """Some or all processes that MPI connects, numbered by their ranks in a group."""

    host_waits = True

    def __init__(self, mpi: Any, communicators: Sequence[Any]) -> None:
        self.mpi = mpi
        # our own: user programs may use MPI too, and texts and messages must not be mixed with data
        self.data, self.control, self.messages = communicators
        self.rank, self.size = self.data.rank, self.data.size
        self._sent: list[Any] = []
        self._messages = self._exchanges = 0

    def part(self, ranks: Sequence[int], number: int) -> MpiBackend:
        """The backend of some of the processes, which all call this now; `number` is of these alone."""
        members = self.control.group.Incl(list(ranks))
        first = self.control.Create_group(members, number % 30000 + 2)
        return MpiBackend(self.mpi, [first, first.Dup(), first.Dup()])

    def greet(self, to: int, source: int, tag: int) -> Callable[[], bool]:
        """Send a message to one process and receive one of another; returns what says that both are through."""
        mine, theirs = np.zeros(1, np.uint8), np.zeros(1, np.uint8)
        requests = [self.control.Isend(mine, to, tag), self.control.Irecv(theirs, source, tag)]
        return _Both(*requests).Test

    def missing(self, poll: Callable[..., None], timeout: float) -> list[int] | None:
        """Rank 0 waits until all others have called this, and tells them which of them did not.

        Args:
            poll: waits until the function that it is given returns true; raises DistError when time is up.
            timeout: how long rank 0 waits, in seconds.
        """
        names = np.full(self.size, -1, np.int64)
        if self.rank:
            self._sent.append(self.control.Isend(np.zeros(1, np.uint8), 0, _MONITOR))
            poll(self.control.Irecv(names, 0, _MONITOR).Test, 2 * timeout)
        else:
            byte = np.zeros(1, np.uint8)
            awaited = {rank: self.control.Irecv(byte, rank, _MONITOR) for rank in range(1, self.size)}
            arrived: set[int] = set()

            def all_there() -> bool:
                arrived.update(rank for rank, request in awaited.items() if rank not in arrived and request.Test())
                return len(arrived) == len(awaited)

            with contextlib.suppress(DistError):
                poll(all_there, timeout)
            absent = sorted(set(awaited) - arrived)
            names[: len(absent)] = absent
            for rank in arrived:
                self._sent.append(self.control.Isend(names, rank, _MONITOR))
            for rank in absent:
                awaited[rank].Cancel()
        return [int(rank) for rank in names if rank >= 0]

    together = contextlib.nullcontext  # messages that are started in it may be sent as one

    # ---- messages ---------------------------------------------------------------------------------------------

    def send(self, x: Tensor, to: int, tag: int, text: np.ndarray) -> Operation:
        """Sends a tensor to one process, behind a text that says what it is."""
        array = outgoing(x)
        self._messages += 1
        text_tag = self._text_tag(tag)
        own_tag = 2 * (self._messages % _TAGS) + 1  # odd, and told in the text: several may be under way
        text = text.copy()
        text[:8] = np.frombuffer(np.int64(own_tag).tobytes(), np.uint8)

        def start() -> Any:
            first = self.messages.Isend(text, to, text_tag)
            return _Both(first, self.messages.Isend(bytes_of(array), to, own_tag))

        return Operation(start, _nothing, (array, text))

    def _text_tag(self, tag: int) -> int:
        """The tag of the text before a message: twice the program's, which leaves the odd ones to data."""
        most = self.mpi.COMM_WORLD.Get_attr(self.mpi.TAG_UB) // 2
        if not 0 <= tag <= most:
            raise ValueError(f"tag={tag} is none of this MPI library, whose tags are here from 0 to {most}")
        return 2 * tag

    def receive(self, x: Tensor, source: int | None, tag: int, check: Callable[..., DistError | None]) -> _Receiving:
        """Receives a tensor of one process, of any if `source` is None; `check` looks at its text."""
        return _Receiving(self, x, source, self._text_tag(tag), check)

    # ---- leaving ----------------------------------------------------------------------------------------------

    def abort(self) -> None:
        """End the whole job now, with exit status 1."""
        self.mpi.COMM_WORLD.Abort(1)

    def farewell(self, sequences: dict[str, int]) -> None:
        """Tell all others the number of the last collective of this process in each group."""
        message = np.frombuffer(json.dumps(sequences).encode(), np.uint8)
        self._sent.append(message)
        for rank in range(self.size):
            if rank != self.rank:
                self._sent.append(self.control.Isend(message, rank, _FAREWELL))

    def free(self) -> None:
        """Disconnect."""
        for communicator in (self.data, self.messages):
            sliced.forget(communicator)
        for communicator in (self.data, self.control, self.messages):
            communicator.Free()  # returns at once; messages that were sent still arrive

    def farewells(self) -> dict[int, dict[str, int]]:
        """The messages about leaving that have arrived since the last call, by rank."""
        found = {}
        status = self.mpi.Status()
        while self.control.Iprobe(tag=_FAREWELL, status=status):
            message = np.zeros(status.Get_count(self.mpi.BYTE), np.uint8)
            self.control.Recv(message, status.Get_source(), _FAREWELL)
            found[status.Get_source()] = json.loads(message.tobytes())
        return found

    def exchange(self, record: np.ndarray) -> tuple[Operation, np.ndarray]:
        """What sends every process the bytes of every other; they are in the rows of the array afterwards."""
        rows = np.empty((self.size, record.size), np.uint8)
        return Operation(lambda: self.control.Iallgather(record, rows), _nothing, record), rows

    # ---- collectives ------------------------------------------------------------------------------------------

    def _by_mpi(self, array: np.ndarray, op: ReduceOp) -> tuple[np.ndarray, Any, int]:
        """What MPI reduces, its operator, and what to divide the result by."""
        array, op = sliced.as_numbers(array, op)
        if sliced.is_half(array.dtype):
            array = array.astype(np.float32)  # half precision is summed in single precision and rounded once
        return array, getattr(self.mpi, sliced.OPERATORS[op][0]), self.size if op is ReduceOp.AVG else 1

    def _by_slices(self, slices: list[np.ndarray], own: np.ndarray, takers: Sequence[int], op: ReduceOp) -> Any:
        """Start a reduction in which every rank combines its own slice."""
        own, op = sliced.as_numbers(own, op)
        slices = [each.view(own.dtype) for each in slices]
        return sliced.Reduction(self.data, self._next_tag(), slices, own, takers, op)

    def _next_tag(self) -> int:
        self._exchanges += 1  # when data are sent, in the same order in all processes
        return 2 * self._exchanges % (1 << 15)

    def all_reduce(self, x: Tensor, op: ReduceOp) -> Operation:
        """Reduces; every process gets the result in `x`."""
        return self._reduce(x, range(self.size), op)

    def reduce(self, x: Tensor, root: int, op: ReduceOp) -> Operation:
        """Reduces; the root gets the result in `x`."""
        return self._reduce(x, [root], op)

    def _reduce(self, x: Tensor, takers: Sequence[int], op: ReduceOp) -> Operation:
        """Reduces; one process or all get the result in `x`."""
        array, takes, count = outgoing(x), self.rank in takers, 1
        start: Callable[[], Any]
        if self.size > 1 and sliced.is_large(array.nbytes // self.size, array.dtype):
            slices = sliced.slices(array, self.size)
            own = slices[self.rank] if takes else np.empty_like(slices[self.rank])
            start = partial(self._by_slices, slices, own, takers, op)
        else:
            array, operator, count = self._by_mpi(array, op)
            if len(takers) == self.size:
                start = partial(self.data.Iallreduce, self.mpi.IN_PLACE, array, operator)
            elif takes:
                start = partial(self.data.Ireduce, self.mpi.IN_PLACE, array, operator, takers[0])
            else:
                start = partial(self.data.Ireduce, array, None, operator, takers[0])
        return Operation(start, (lambda: incoming(x, _divided(array, count))) if takes else _nothing, array)

    def broadcast(self, x: Tensor, root: int) -> Operation:
        """Copies the root's `x` to all."""
        array = outgoing(x)
        finish = _nothing if self.rank == root else lambda: incoming(x, array)
        return Operation(lambda: self.data.Ibcast(bytes_of(array), root), finish, array)

    def all_gather(self, parts: Sequence[Tensor], x: Tensor) -> Operation:
        """Gives every process every `x`, in `parts` by rank."""
        array = outgoing(x)
        if self.size > 1 and sliced.is_large(array.nbytes, np.dtype(np.float32), stages=1):
            landings = [array if rank == self.rank else landing(part, [array]) for rank, part in enumerate(parts)]
            others = [(rank, bytes_of(row)) for rank, row in enumerate(landings) if rank != self.rank]
            sent = [(rank, bytes_of(array)) for rank, _ in others]
            return Operation(
                lambda: sliced.Messages(self.data, self._next_tag()).exchange(sent, others),
                lambda: _all_incoming(parts, landings),
                (array, landings),
            )
        rows = np.empty((self.size, *array.shape), array.dtype)
        start = partial(self.data.Iallgather, bytes_of(array), bytes_of(rows))
        return Operation(start, lambda: _all_incoming(parts, rows), (array, rows))

    def reduce_scatter(self, x: Tensor, parts: Sequence[Tensor], op: ReduceOp) -> Operation:
        """Reduces `parts`; every process gets the result of the part of its own number in `x`."""
        arrays = [outgoing(part) for part in parts]
        if self.size > 1 and sliced.is_large(arrays[0].nbytes, arrays[0].dtype, stages=1):
            result = landing(x, arrays[: self.rank] + arrays[self.rank + 1 :])
            start = partial(self._by_slices, [each.reshape(-1) for each in arrays], result.reshape(-1), [], op)
            return Operation(start, lambda: incoming(x, result), arrays)
        rows, operator, count = self._by_mpi(np.stack(arrays), op)
        own = np.empty_like(rows[0])
        return Operation(
            lambda: self.data.Ireduce_scatter_block(rows, own, operator),
            lambda: incoming(x, _divided(own, count)),
            (rows, own),
        )

    def gather(self, parts: Sequence[Tensor] | None, x: Tensor, root: int) -> Operation:
        """Gives the root every `x`, in `parts` by rank."""
        array = outgoing(x)
        if parts is None:
            return Operation(lambda: self.data.Igather(bytes_of(array), None, root), _nothing, array)
        rows = np.empty((self.size, *array.shape), array.dtype)
        start = partial(self.data.Igather, bytes_of(array), bytes_of(rows), root)
        return Operation(start, lambda: _all_incoming(parts, rows), (array, rows))

    def scatter(self, x: Tensor, parts: Sequence[Tensor] | None, root: int) -> Operation:
        """Gives every process its part of those of the root, in `x`."""
        own = np.empty(tuple(x.shape), x._data.dtype)
        rows = None if parts is None else bytes_of(np.stack([outgoing(part) for part in parts]))
        return Operation(lambda: self.data.Iscatter(rows, bytes_of(own), root), lambda: incoming(x, own), (rows, own))

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Operation:
        """Gives every process the input of its own number of all, in `outputs` by rank; they may differ in size."""
        kind = inputs[0]._data.dtype if inputs else np.dtype(np.uint8)
        pieces = [bytes_of(outgoing(x)) for x in inputs]
        sent = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        received = np.empty(sum(y.numel() for y in outputs), kind)
        places = np.cumsum([0, *(y.numel() for y in outputs)])
        counts = [y.numel() * kind.itemsize for y in outputs]

        def finish() -> None:
            for y, start in zip(outputs, places, strict=False):
                incoming(y, received[start : start + y.numel()])

        outward, inward = (sent, [piece.size for piece in pieces]), (bytes_of(received), counts)
        return Operation(lambda: self.data.Ialltoallv(outward, inward), finish, (sent, received))

    def barrier(self) -> Operation | None:
        """Waits for all processes: the exchange of texts before each collective does."""
        return None


def _all_incoming(parts: Sequence[Tensor], rows: Iterable[np.ndarray]) -> None:
    for part, row in zip(parts, rows, strict=True):
        incoming(part, row)


class _Both:
    """Two requests as one."""

    def __init__(self, *requests: Any) -> None:
        self._requests = list(requests)

    def Test(self) -> bool:
        """True if both have ended."""
        self._requests = [request for request in self._requests if not request.Test()]
        return not self._requests


class _Receiving(Operation):
    """A message that is awaited: its text first, which says what follows."""

    def __init__(
        self, backend: MpiBackend, x: Tensor, source: int | None, tag: int, check: Callable[..., DistError | None]
    ) -> None:
        super().__init__(self._first, self._take)
        self._backend, self._x, self._tag, self._check = backend, x, tag, check
        self.communicator = backend.messages
        self.source = -1 if source is None else source
        self._error: DistError | None = None
        self._array = self._text = np.empty(0, np.uint8)
        self._status = backend.mpi.Status()
        self._follows = True

    def _first(self) -> Any:
        self._text = np.empty(MESSAGE_SIZE, np.uint8)
        source = self._backend.mpi.ANY_SOURCE if self.source < 0 else self.source
        sliced.running.append(self)  # its sender waits until this rank has asked for what follows
        return self._backend.messages.Irecv(self._text, source, self._tag)

    def done(self) -> bool:
        """True if the message is here."""
        if self._follows and self._request is not None and self._request.Test(self._status):
            self._follows = False
            sliced.running.remove(self)
            self.source = self._status.Get_source()
            own_tag, size = (int(number) for number in self._text[:16].view(np.int64))
            self._error = self._check(self._text[16:], self.source)
            kind = np.dtype(np.uint8) if self._error is not None else self._x._data.dtype
            self._array = np.empty(size // kind.itemsize, kind)
            self._request = self._backend.messages.Irecv(bytes_of(self._array), self.source, own_tag)
        return not self._follows and super().done()

    Test = done

    def _take(self) -> None:
        if self._error is not None:
            raise self._error
        incoming(self._x, self._array)


def _divided(total: np.ndarray, count: int) -> np.ndarray:
    if count > 1:
        sliced.divide(total, count)
    return total
