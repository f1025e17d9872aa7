"""The `nccl` backend: CUDA tensors go from GPU to GPU, in a stream of their own; the host does not wait.

NCCL's address travels through the store in which the processes met, or by MPI where mpiexec started them. One process
drives one GPU, the one that is current when the group is made (`cuda.set_device(distributed.get_node_local_rank())`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from ... import cuda
from ...autograd.mode import no_grad
from ...drivers.streams import Event, Stream
from ...errors import DeviceMismatchError, DistError, DtypeError
from ...functional.creation.creation import empty, zeros
from ...memory import copies
from ...operators.inplace import write
from ...tensors import Tensor
from ...types import devices, dtypes
from ..reduction import ReduceOp
from ..rows import Rows

_NCCL_OPERATORS = {
    ReduceOp.SUM: "SUM",
    ReduceOp.AVG: "AVG",
    ReduceOp.PRODUCT: "PROD",
    ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX",
}
_ON_BOOLEANS = {ReduceOp.SUM: "MAX", ReduceOp.PRODUCT: "MIN"}
# Kinds and sizes of the numbers that NCCL can reduce and the array interface can name; bfloat16 goes by DLPack.
_CARRIED = frozenset([("f", 2), ("f", 4), ("f", 8), ("i", 1), ("i", 4), ("i", 8), ("u", 1), ("u", 4), ("u", 8)])


class _Numbers:
    """Contiguous device memory of bfloat16 as NCCL's binding accepts it: the array interface has no name for these."""

    def __init__(self, x: Tensor) -> None:
        self._flat = x.detach().reshape(-1)

    def __dlpack__(self, **options: Any) -> Any:
        # the work is put into a stream that waits already, so the binding has to wait for nothing
        return self._flat.__dlpack__(**{**options, "stream": -1})

    def __dlpack_device__(self) -> Any:
        return self._flat.__dlpack_device__()


def _span(x: Tensor) -> Any:
    """Memory whose numbers are reduced."""
    return _Numbers(x) if x.dtype is dtypes.bfloat16 else _Span(x)


class _Span:
    """Contiguous device memory as NCCL's binding accepts it: `__cuda_array_interface__` of one dimension."""

    def __init__(self, x: Tensor, as_bytes: bool = False) -> None:
        kind = np.dtype(np.uint8) if as_bytes or x._data.dtype.kind == "b" else x._data.dtype
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (x._data.nbytes // kind.itemsize,),
            "typestr": kind.str,
            "data": (x.data_ptr(), False),
            "strides": None,
        }


class StreamOperation:
    """An operation in a stream: `finish()` makes the current stream wait for it; the host does not wait."""

    host_waits = False
    source = -1

    def begin(self) -> None:
        """It has begun."""

    def __init__(self, finish: Callable[[], None], used: Sequence[Tensor]) -> None:
        self._event = Event()
        self._finish: Callable[[], None] | None = finish
        # Held until the current stream waits: its next work is behind the operation then, and may have the memory. A
        # mark when the memory is freed would be behind all that was sent since.
        self._used = used

    def started(self, stream: Stream) -> None:
        """It is in the stream."""
        self._stream = stream
        self._event.record(stream)

    def __del__(self) -> None:
        for x in self._used:  # nothing has waited
            if not sys.is_finalizing():
                x._data.buffer.record_stream(self._stream)

    def done(self) -> bool:
        """True if it has ended."""
        return self._event.query()

    def finish(self) -> None:
        """Make the current stream wait for the result."""
        if self._finish is not None:
            finish, self._finish = self._finish, None
            cuda.current_stream(self._event.device).wait_event(self._event)
            finish()
            self._used = ()


class NcclBackend:
    """The processes of a group, each with one real GPU."""

    host_waits = False

    def __init__(self, rank: int, size: int, binding: object = None) -> None:
        self.nccl: Any = binding or _load()
        self.rank, self.size = rank, size
        self.device = devices.cuda(devices.current_index())
        self._open = 0
        self._together: list[Any] = []

    def connect(self, exchange: Callable[[str], list[str]]) -> None:
        """Make NCCL's communicator; `exchange` gives all processes the texts of all."""
        address = self.nccl.get_unique_id().as_bytes.hex() if self.rank == 0 else ""
        address = exchange(address)[0]
        with cuda.device(self.device):
            self.stream = cuda.Stream(self.device)
            self.communicator = self.nccl.Communicator.init(
                self.size, self.rank, self.nccl.UniqueId.from_bytes(bytes.fromhex(address))
            )

    @property
    def together(self) -> Any:
        """Messages that are started in it are one operation."""
        return self.nccl.group

    def free(self) -> None:
        """Disconnect, when what runs has ended."""
        self.stream.synchronize()
        self.communicator.destroy()

    # ---- collectives ------------------------------------------------------------------------------------------

    def _dense(self, x: Tensor) -> Tensor:
        """The elements on our device, contiguous: the tensor itself if it is that, else a copy."""
        if not x.is_cuda:
            raise DistError(
                f"No backend type associated with device type {x.device.type}",
                remedy='move the tensor to the GPU, or use the backend "mpi"',
            )
        if x.device != self.device:
            raise DeviceMismatchError(
                f"Expected all tensors to be on the same device, but the group is on {self.device} and the tensor "
                f"on {x.device}",
                remedy="call cuda.set_device(...) before init_process_group",
            )
        with no_grad():
            return x.detach().contiguous()

    def _reducible(self, x: Tensor, op: ReduceOp) -> tuple[Tensor, Any]:
        """The elements in a dtype that NCCL can reduce, and NCCL's operator."""
        if op not in _NCCL_OPERATORS:
            raise ValueError(f"Cannot use ReduceOp.{op.name} with NCCL")
        name = _NCCL_OPERATORS[op]
        dense = self._dense(x)
        kind = dense._data.dtype
        if kind.kind == "b":
            name = _ON_BOOLEANS.get(op, name)
        elif dense.dtype is not dtypes.bfloat16 and (kind.kind, kind.itemsize) not in _CARRIED:
            raise DtypeError(f"nccl does not reduce {x.dtype} tensors", remedy="convert to another dtype")
        return dense, getattr(self.nccl, name)

    def _start(
        self, used: Sequence[Tensor], work: Callable[[int], None], finish: Callable[[], None]
    ) -> StreamOperation:
        """Put work in our stream, after the present work of the current one; `used` is memory that it needs until it
        ends."""
        operation = StreamOperation(finish, used)
        self._together.append((work, operation))
        if self._open == 0:
            self._begin()
        return operation

    def _begin(self) -> None:
        begun, self._together = self._together, []
        if not begun:
            return
        self.stream.wait_stream(cuda.current_stream(self.device))
        with cuda.device(self.device), self.nccl.group() if len(begun) > 1 else nullcontext():
            for work, _ in begun:
                work(self.stream.cuda_stream)
        for _, operation in begun:
            operation.started(self.stream)

    @contextmanager
    def coalesced(self) -> Iterator[None]:
        """What is started in the block is one operation of NCCL, whose steps between machines are waited for once."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if self._open == 0:
                self._begin()

    def all_reduce(self, x: Tensor, op: ReduceOp) -> Any:
        """Start to reduce; every process gets the result in `x`."""
        dense, operator = self._reducible(x, op)
        span = _span(dense)
        return self._start(
            [dense],
            lambda stream: self.communicator.allreduce(span, span, operator, stream=stream),
            lambda: _overwrite(x, dense),
        )

    def reduce(self, x: Tensor, root: int, op: ReduceOp) -> Any:
        """Start to reduce; the root gets the result in `x`."""
        dense, operator = self._reducible(x, op)
        span = _span(dense)
        return self._start(
            [dense],
            lambda stream: self.communicator.reduce(span, span, operator, root=root, stream=stream),
            lambda: _overwrite(x, dense) if self.rank == root else None,
        )

    def broadcast(self, x: Tensor, root: int) -> Any:
        """Start to copy the root's `x` to all."""
        dense = self._dense(x)
        span = _Span(dense, as_bytes=True)
        return self._start(
            [dense],
            lambda stream: self.communicator.broadcast(span, span, root, stream=stream),
            lambda: _overwrite(x, dense),
        )

    def all_gather(self, parts: Sequence[Tensor], x: Tensor) -> Any:
        """Start to give every process every `x`, in `parts` by rank."""
        dense = self._dense(x)
        whole = parts.whole if isinstance(parts, Rows) else None
        rows = empty(self.size, *x.shape, dtype=x.dtype, device=x.device) if whole is None else whole

        def finish() -> None:
            if whole is not None:
                _overwrite(whole, whole)
                return
            for rank, part in enumerate(parts):
                _overwrite(part, rows[rank])

        sent, received = _Span(dense, as_bytes=True), _Span(rows, as_bytes=True)
        return self._start(
            [dense, rows], lambda stream: self.communicator.allgather(sent, received, stream=stream), finish
        )

    def reduce_scatter(self, x: Tensor, parts: Sequence[Tensor], op: ReduceOp) -> Any:
        """Start to reduce `parts`; every process gets the result of the part of its own number in `x`."""
        if isinstance(parts, Rows):
            joined = parts.whole
        else:
            joined = empty(self.size, *x.shape, dtype=x.dtype, device=x.device)
            for rank, part in enumerate(parts):
                copies.copy_into(joined[rank]._data, self._dense(part)._data)
        rows, operator = self._reducible(joined, op)
        own = x if x.is_contiguous() else empty(x.shape, dtype=x.dtype, device=x.device)
        sent, received = _span(rows), _span(own)
        return self._start(
            [rows, own],
            lambda stream: self.communicator.reduce_scatter(sent, received, operator, stream=stream),
            lambda: _overwrite(x, own),
        )

    def _messages(self, sent: Sequence[tuple[Tensor, int]], received: Sequence[tuple[Tensor, int]]) -> Any:
        """Start to send tensors to processes and to receive others, as one operation."""
        outward = [(self._dense(x), rank) for x, rank in sent]
        inward = [(self._dense(x), rank) for x, rank in received]

        def work(stream: int) -> None:
            with self.nccl.group():
                for x, rank in outward:
                    self.communicator.send(_Span(x, as_bytes=True), rank, stream=stream)
                for x, rank in inward:
                    self.communicator.recv(_Span(x, as_bytes=True), rank, stream=stream)

        def finish() -> None:
            for (x, _), (result, _) in zip(received, inward, strict=True):
                _overwrite(x, result)

        return self._start([x for x, _ in (*outward, *inward)], work, finish)

    def gather(self, parts: Sequence[Tensor] | None, x: Tensor, root: int) -> Any:
        """Start to give the root every `x`, in `parts` by rank."""
        return self._messages([(x, root)], [(part, rank) for rank, part in enumerate(parts or ())])

    def scatter(self, x: Tensor, parts: Sequence[Tensor] | None, root: int) -> Any:
        """Start to give every process its part of those of the root, in `x`."""
        return self._messages([(part, rank) for rank, part in enumerate(parts or ())], [(x, root)])

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Any:
        """Start to give every process the input of its own number of all, in `outputs` by rank."""
        sent, received = ([(x, rank) for rank, x in enumerate(xs)] for xs in (inputs, outputs))
        return self._messages(sent, received)

    def send(self, x: Tensor, to: int, tag: int, text: object) -> Any:
        """Start to send a tensor to one process."""
        return self._messages([(x, to)], [])

    def receive(self, x: Tensor, source: int | None, tag: int, check: object) -> Any:
        """Start to receive a tensor of one process."""
        if source is None:
            raise DistError("recv: nccl receives from one process", remedy="give src, or use the backend gloo")
        made = self._messages([], [(x, source)])
        made.source = source
        return made

    def barrier(self) -> Any:
        """Start to wait for all processes."""
        return self.all_reduce(zeros(1, device=self.device), ReduceOp.SUM)


def _overwrite(x: Tensor, result: Tensor) -> None:
    """Copy a result to its tensor, unless it was computed there."""
    if not (x.is_contiguous() and result.dtype is x.dtype):
        with no_grad():
            write(x, result.to(x.dtype))
        return
    if result.data_ptr() != x.data_ptr():
        copies.copy_into(x._data, result._data)
    changed = x._counter = x._counter or [0]
    changed[0] += 1


def _load() -> Any:
    try:
        import nccl.core as binding
    except ImportError as error:
        raise DistError(
            "Distributed package doesn't have NCCL built in",
            f"{type(error).__name__}: {error}",
            remedy='pip install "tritensor[nccl]"; or use the backend "mpi"',
        ) from error
    return binding
