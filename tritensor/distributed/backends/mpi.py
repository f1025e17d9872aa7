"""The `mpi` backend: host memory through mpi4py; CUDA tensors are copied to pinned host memory and back.

Every operation is started without blocking and then polled, in a loop that sleeps. That costs tens of microseconds more
than a blocking call, but a waiting process can be interrupted, notices that another one has left, gives up after a
timeout, and does not occupy a core when there are more processes than cores.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...autograd.mode import no_grad
from ...errors import DistError, DtypeError
from ...memory import copies
from ...memory.array import DeviceArray
from ...operators.inplace import write
from ...tensors import Tensor, wrap
from ...types import dtypes
from ..failure import launched
from ..liveness import complete, release
from ..reduce_op import ReduceOp

_MPI_OPERATORS = {
    ReduceOp.SUM: "SUM",
    ReduceOp.AVG: "SUM",
    ReduceOp.PRODUCT: "PROD",
    ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}
# Booleans are sent as bytes of 0 and 1, for which "any" and "all" are maximum and minimum.
_ON_BOOLEANS = {ReduceOp.SUM: "MAX", ReduceOp.PRODUCT: "MIN"}
_BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
_ends = False  # whether `_finalize` is registered
_FAREWELL = 1  # the tag of the message that a process sends when it leaves


class Operation:
    """An MPI operation that was started: `done()` returns whether it has ended, `finish()` writes its result to the
    tensors."""

    def __init__(self, request: Any, finish: Callable[[], None], keep: Any = None) -> None:
        self._request = request
        self._finish: Callable[[], None] | None = finish
        self._keep = keep  # memory that MPI uses meanwhile

    def done(self) -> bool:
        """True if it has ended; MPI makes progress only when it is called."""
        if self._request is not None and self._request.Test():
            self._request = None
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


def incoming(x: Tensor, array: np.ndarray) -> None:
    """Overwrite the tensor with `array`, unless that is the tensor's own memory."""
    array = array.astype(x._data.dtype, copy=False).reshape(x.shape)
    data = x._data
    if data.__class__ is not DeviceArray and np.may_share_memory(x._host_array(), array):
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
    """All processes that mpiexec started, numbered as MPI numbers them."""

    name = "mpi"
    host_waits = True  # results are there when an operation has ended, and not before

    def __init__(self, timeout: float) -> None:
        self.mpi = _load(timeout)
        world = self.mpi.COMM_WORLD
        self.rank, self.size = world.rank, world.size
        _check_launch(self.size)
        self.timeout = timeout
        self._sent: list[Any] = []

    def join(self) -> None:
        """Start to join the others."""
        # Two communicators of our own: user programs may use MPI too, and messages about leaving must not be mixed with
        # data.
        self._opening = [self.mpi.COMM_WORLD.Idup(), self.mpi.COMM_WORLD.Idup()]
        self.data, self.control = (communicator for communicator, _ in self._opening)

    def opened(self) -> bool:
        """True if all processes have joined; the communicators can be used from then on."""
        return all(request.Test() for _, request in self._opening)

    def connect(self, exchange: Callable[[str], list[str]]) -> None:
        """Exchange what the backend needs before the first collective; nothing for MPI."""

    # ---- failure ----------------------------------------------------------------------------------------------

    def abort(self) -> None:
        """End the whole job now, with exit status 1."""
        self.mpi.COMM_WORLD.Abort(1)

    def leave(self, sequence: int) -> None:
        """Tell all others that this process takes part in no collective after number `sequence`, and disconnect."""
        message = np.array([sequence], np.int64)
        self._sent.append(message)
        for rank in range(self.size):
            if rank != self.rank:
                self._sent.append(self.control.Isend(message, rank, _FAREWELL))
        for communicator in (self.data, self.control):
            communicator.Free()  # returns at once; messages that were sent still arrive

    def farewells(self) -> list[tuple[int, int]]:
        """The messages about leaving that have arrived since the last call: (rank, its last collective)."""
        found = []
        status = self.mpi.Status()
        while self.control.Iprobe(tag=_FAREWELL, status=status):
            message = np.zeros(1, np.int64)
            self.control.Recv(message, status.Get_source(), _FAREWELL)
            found.append((status.Get_source(), int(message[0])))
        return found

    def exchange(self, record: np.ndarray) -> tuple[Operation, np.ndarray]:
        """Start to send every process the bytes of every other; they are in the rows of the array afterwards."""
        rows = np.empty((self.size, record.size), np.uint8)
        return Operation(self.control.Iallgather(record, rows), _nothing, record), rows

    # ---- collectives ------------------------------------------------------------------------------------------

    def _reducible(self, array: np.ndarray, op: ReduceOp) -> tuple[np.ndarray, Any, Callable[[np.ndarray], np.ndarray]]:
        """The array in a dtype that MPI can reduce, MPI's operator, and a function to apply to the result."""
        kind = dtypes.of(array.dtype)
        name = _MPI_OPERATORS[op]
        if kind.name == "bool":
            array, name = array.view(np.uint8), _ON_BOOLEANS.get(op, name)
        elif kind.is_floating_point and kind.itemsize < 4:
            array = array.astype(np.float32)  # half precision is summed in single precision and rounded once
        after = self._average if op is ReduceOp.AVG else _as_it_is
        return array, getattr(self.mpi, name), after

    def _average(self, total: np.ndarray) -> np.ndarray:
        total /= self.size
        return total

    def all_reduce(self, x: Tensor, op: ReduceOp) -> Operation:
        """Start to reduce; every process gets the result in `x`."""
        array, operator, after = self._reducible(outgoing(x), op)
        request = self.data.Iallreduce(self.mpi.IN_PLACE, array, operator)
        return Operation(request, lambda: incoming(x, after(array)), array)

    def reduce(self, x: Tensor, root: int, op: ReduceOp) -> Operation:
        """Start to reduce; the root gets the result in `x`."""
        array, operator, after = self._reducible(outgoing(x), op)
        if self.rank != root:
            return Operation(self.data.Ireduce(array, None, operator, root), _nothing, array)
        request = self.data.Ireduce(self.mpi.IN_PLACE, array, operator, root)
        return Operation(request, lambda: incoming(x, after(array)), array)

    def broadcast(self, x: Tensor, root: int) -> Operation:
        """Start to copy the root's `x` to all."""
        array = outgoing(x)
        request = self.data.Ibcast(bytes_of(array), root)
        return Operation(request, _nothing if self.rank == root else lambda: incoming(x, array), array)

    def all_gather(self, parts: Sequence[Tensor], x: Tensor) -> Operation:
        """Start to give every process every `x`, in `parts` by rank."""
        array = outgoing(x)
        rows = np.empty((self.size, *array.shape), array.dtype)

        def finish() -> None:
            for part, row in zip(parts, rows, strict=True):
                incoming(part, row)

        return Operation(self.data.Iallgather(bytes_of(array), bytes_of(rows)), finish, (array, rows))

    def reduce_scatter(self, x: Tensor, parts: Sequence[Tensor], op: ReduceOp) -> Operation:
        """Start to reduce `parts`; every process gets the result of the part of its own number in `x`."""
        rows, operator, after = self._reducible(np.stack([outgoing(part) for part in parts]), op)
        own = np.empty_like(rows[0])
        request = self.data.Ireduce_scatter_block(rows, own, operator)
        return Operation(request, lambda: incoming(x, after(own).astype(x._data.dtype, copy=False)), (rows, own))

    def barrier(self) -> Operation:
        """Start to wait until all processes have started to."""
        return Operation(self.data.Ibarrier(), _nothing)


def _as_it_is(total: np.ndarray) -> np.ndarray:
    return total


def check_reduction(operator: str, x: Tensor, op: ReduceOp) -> None:
    """Raise for reductions without a meaning: the order of complex numbers, the bits of floating ones, the average of
    integers."""
    if x.is_complex() and op not in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT):
        raise DtypeError(f"{operator} does not support {op.name} on complex tensors")
    floating = x.is_complex() or x.is_floating_point()
    if floating and op in _BITWISE:
        raise DtypeError(f"Cannot use ReduceOp.{op.name} with {x.dtype} tensors; it is for integers and booleans")
    if not floating and op is ReduceOp.AVG:
        raise DtypeError(
            f"{operator} does not support AVG on {x.dtype} tensors",
            remedy="convert to a floating dtype, or use SUM and divide",
        )


def _load(timeout: float) -> Any:
    """mpi4py's MPI module. The first import starts MPI, which waits for all processes to do so.

    That wait cannot be interrupted, so after the timeout the process is ended, with a traceback of where it was.
    """
    waits = "mpi4py.MPI" not in sys.modules and launched()[1] > 1
    if waits:
        faulthandler.dump_traceback_later(timeout, exit=True)
    global _ends
    ours = False
    try:
        import mpi4py

        # MPI is finalized here, because mpi4py does it even when that would wait for a rank that is gone
        ours = "mpi4py.MPI" not in sys.modules and mpi4py.rc.finalize is None
        if ours:
            mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: there is no MPI library for it to load
        raise DistError(
            "Distributed package doesn't have MPI built in",
            f"{type(error).__name__}: {error}",
            remedy='install it with: pip install "tritensor[mpi]"',
        ) from error
    finally:
        if waits:
            faulthandler.cancel_dump_traceback_later()
    if not _ends:
        # before `failure` registers to leave, so it runs after that; where mpi4py finalizes MPI, it does so last
        _ends = True
        atexit.register(_finalize, MPI, ours)
    return MPI


def _finalize(mpi: Any, ours: bool) -> None:
    """End MPI with the process, if all ranks still can."""
    if complete() or not ours:
        release()
        if ours and not mpi.Is_finalized():
            mpi.Finalize()


def _check_launch(size: int) -> None:
    """Raise for a job that another launcher started: MPI then treats each process as a separate job."""
    wanted = os.environ.get("WORLD_SIZE", "1")
    if size == 1 and wanted.isdecimal() and int(wanted) > 1:
        raise DistError(
            f"WORLD_SIZE is {wanted}, but MPI knows of this process alone",
            remedy=f"start the program with: mpiexec -n {wanted} python ...",
        )
