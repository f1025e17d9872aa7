"""Transports of a job of which one rank is there: they count messages, and put the time of these into streams.

Tensors of the device go the way of NCCL (`backends.nccl`), over a communicator that only counts, so copies and memory
around messages are those of a real job. Of small messages the result is as if all ranks sent the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod

import numpy as np

from ... import cuda
from ...autograd.mode import no_grad
from ...drivers.counted import CountedDevice
from ...tensors import Tensor
from ..backends.nccl import NcclBackend
from ..reduction import ReduceOp
from .network import Network

_SMALL = 1 << 16  # bytes; larger messages are of gradients and activations, whose values nothing looks at


class _Binding:
    """NCCL's binding and the communicator of a group, which only count."""

    SUM, AVG, PROD, MIN, MAX = "SUM", "AVG", "PROD", "MIN", "MAX"

    def __init__(
        self, driver: CountedDevice, network: Network, rank: int, ranks: Sequence[int], stream: cuda.Stream
    ) -> None:
        self.driver, self.network, self.rank, self.ranks, self.stream = driver, network, rank, ranks, stream
        self.size, self._depth = len(ranks), 0
        self._sizes: Counter[tuple[str, tuple[int, ...]]] = Counter()

    @contextmanager
    def group(self) -> Iterator[None]:
        """What is sent in the block is one operation."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self._begin_counted()

    def _put(self, operator: str, nbytes: int, ranks: Sequence[int] | None = None) -> None:
        self._sizes[operator, tuple(self.ranks if ranks is None else ranks)] += nbytes
        self._begin_counted()

    def _begin_counted(self) -> None:
        if self._depth == 0:
            for (operator, ranks), nbytes in self._sizes.items():
                seconds = self.network.seconds(operator, nbytes, ranks)
                self.driver.spend(self.stream.handle, operator, seconds)
            self._sizes.clear()

    def _numbers(self, span: object) -> np.ndarray:
        """The memory of a span, as far as its type has a name."""
        facts = getattr(span, "__cuda_array_interface__", None)
        if facts is None:
            x: Tensor = span._flat  # type: ignore[attr-defined]
            return self.driver.memory(x.data_ptr(), x._data.nbytes).view(x._data.dtype)
        kind = np.dtype(facts["typestr"])
        return self.driver.memory(facts["data"][0], prod(facts["shape"]) * kind.itemsize).view(kind)

    def _reduced(self, sent: np.ndarray, received: np.ndarray, op: str) -> None:
        if sent.nbytes <= _SMALL:
            received[:] = sent * sent.dtype.type(self.size) if op == "SUM" else sent

    def allreduce(self, sendbuf: object, recvbuf: object, op: str, *, stream: int) -> None:
        """Count it."""
        sent = self._numbers(sendbuf)
        self._reduced(sent, self._numbers(recvbuf), op)
        self._put("all_reduce", sent.nbytes)

    def reduce(self, sendbuf: object, recvbuf: object, op: str, root: int | None = None, *, stream: int) -> None:
        """Count it."""
        self._put("reduce", self._numbers(sendbuf).nbytes)

    def broadcast(self, sendbuf: object, recvbuf: object, root: int, *, stream: int) -> None:
        """Count it."""
        self._put("broadcast", self._numbers(sendbuf).nbytes)

    def allgather(self, sendbuf: object, recvbuf: object, *, stream: int) -> None:
        """Count it."""
        sent, received = self._numbers(sendbuf), self._numbers(recvbuf)
        if sent.nbytes <= _SMALL:
            received.reshape(self.size, -1)[:] = sent
        self._put("all_gather", received.nbytes)

    def reduce_scatter(self, sendbuf: object, recvbuf: object, op: str, *, stream: int) -> None:
        """Count it."""
        sent = self._numbers(sendbuf)
        self._reduced(sent.reshape(self.size, -1)[self.rank], self._numbers(recvbuf), op)
        self._put("reduce_scatter", sent.nbytes)

    def send(self, sendbuf: object, peer: int, *, stream: int) -> None:
        """Count it."""
        self._put("message", self._numbers(sendbuf).nbytes, (self.ranks[self.rank], self.ranks[peer]))

    def recv(self, recvbuf: object, peer: int, *, stream: int) -> None:
        """Nothing comes."""

    def destroy(self) -> None:
        """Nothing is held."""


class CountedNccl(NcclBackend):
    """NCCL of one rank among others that are not there."""

    def __init__(self, driver: CountedDevice, network: Network, rank: int, ranks: Sequence[int]) -> None:
        super().__init__(rank, len(ranks), _Binding)
        self.stream = cuda.Stream(self.device)
        self.nccl = self.communicator = _Binding(driver, network, rank, ranks, self.stream)


class _Done:
    host_waits, source = False, -1

    def __init__(self, finish: Callable[[], object] = lambda: None) -> None:
        self._finish = finish

    def done(self) -> bool:
        return True

    def finish(self) -> None:
        with no_grad():
            self._finish()


class CountedHost:
    """Tensors of the host, as if all ranks had the same."""

    host_waits = False

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def all_reduce(self, x: Tensor, op: ReduceOp) -> _Done:
        """The sum of equal tensors."""
        return _Done(lambda: x.mul_(self.size) if op is ReduceOp.SUM else None)

    def reduce(self, x: Tensor, root: int, op: ReduceOp) -> _Done:
        """The sum of equal tensors."""
        return self.all_reduce(x, op)

    def broadcast(self, x: Tensor, root: int) -> _Done:
        """The tensor as it is."""
        return _Done()

    def all_gather(self, parts: Sequence[Tensor], x: Tensor) -> _Done:
        """The tensor of this rank for each."""
        return _Done(lambda: [part.copy_(x) for part in parts])

    def reduce_scatter(self, x: Tensor, parts: Sequence[Tensor], op: ReduceOp) -> _Done:
        """The sum of equal tensors."""
        own, times = parts[self.rank], self.size if op is ReduceOp.SUM else 1
        return _Done(lambda: x.copy_(own * times))

    def gather(self, parts: Sequence[Tensor] | None, x: Tensor, root: int) -> _Done:
        """The tensor of this rank for each."""
        return self.all_gather(parts or (), x)

    def scatter(self, x: Tensor, parts: Sequence[Tensor] | None, root: int) -> _Done:
        """The part of this rank; of another's nothing comes."""
        return _Done(lambda: x.copy_(parts[self.rank]) if parts else None)

    def all_to_all(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> _Done:
        """What this rank would send to itself."""
        return _Done(lambda: outputs[self.rank].copy_(inputs[self.rank]))

    def send(self, *_: object) -> _Done:
        """Nobody is there to receive."""
        return _Done()

    receive = send

    def barrier(self) -> _Done:
        """All have come."""
        return _Done()

    def missing(self, *_: object) -> list[int]:
        """Nobody is missed."""
        return []

    def free(self) -> None:
        """Nothing is held."""
