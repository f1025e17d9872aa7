"""Messages from one process to another, and what is made of collectives: `send`, `recv`, batches, coalesced ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from ..errors import ArgumentError, DistError, require
from ..operators.inplace import check_writable
from ..tensors import Tensor
from . import checks
from .checks import Call
from .collectives import all_gather, all_reduce, in_group
from .groups import default_group, ranks_of
from .process_group import ProcessGroup, Work, Works
from .reduction import ReduceOp

__all__ = ["P2POp", "all_gather_coalesced", "all_reduce_coalesced", "batch_isend_irecv", "irecv", "isend"]
__all__ += ["monitored_barrier", "recv", "send"]

_BOTH = "Can't specify both group_{0} and {0}"


def _peer(made: ProcessGroup, role: str, name: str, rank: int | None, group_rank: int | None) -> int | None:
    if rank is not None and group_rank is not None:
        raise ValueError(_BOTH.format(name))
    peer = next(ranks_of(made, **{name: rank, f"group_{name}": group_rank}), None)
    if peer == made.rank():
        raise ValueError(f"Invalid {role} rank: {role} rank should not be the same as the rank of the current process.")
    return peer


def _tensor(operator: str, x: object) -> None:
    if not isinstance(x, Tensor):
        raise ArgumentError(
            f"Invalid function argument. Expected parameter `tensor` of {operator} to be of type torch.Tensor, but got "
            f"{type(x).__name__}."
        )


def _text(call: Call, x: Tensor) -> np.ndarray:
    """The text before a message: room for its tag, its size, and what it is."""
    head = np.array([0, x.nbytes], np.int64).tobytes()
    what = f"{x.dtype} x {x.numel()}\x1f{call} at {checks.call_site()}"
    return checks.padded(head + what.encode("utf-8", "replace"))


@in_group
def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Start to send a tensor to one process; it must not be changed until `wait()` has returned.

    Args:
        tensor: of any device; the receiver's must have its dtype and number of elements.
        dst: the rank in the job of the receiver.
        group: None, for all processes.
        tag: which of its receives gets it: that with the same tag.
        group_dst: the receiver's rank in the group, instead.

    Raises:
        ValueError: no `init_process_group`, no receiver, or this process itself. RangeError: no such rank.
    """
    made = default_group(group)
    _tensor("isend", tensor)
    peer = _peer(made, "destination", "dst", dst, group_dst)
    if peer is None:
        raise ValueError("Must specify group_dst or dst")
    call = Call("send", 0, f"dst={made.ranks[peer]}, tag={tag}", tuple(tensor.shape), tensor.dtype)
    call = call._replace(peers=(made.ranks[peer],))
    operation = made.transport(tensor).send(tensor, peer, tag, _text(call, tensor))
    operation.begin()
    return made.started(call, operation, [tensor])


@in_group
def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Start to receive a tensor of one process; it is there when `wait()` has returned.

    Args:
        tensor: what to write to; the dtype and number of elements that are sent.
        src: the rank in the job of the sender; any unless given.
        group: None, for all processes.
        tag: only a message with this tag.
        group_src: the sender's rank in the group, instead.

    Raises:
        ValueError: no `init_process_group`, or this process itself. RangeError: no such rank.
    """
    made = default_group(group)
    _tensor("irecv", tensor)
    check_writable(tensor.detach())
    peer = _peer(made, "source", "src", src, group_src)
    whom = "any" if peer is None else made.ranks[peer]
    call = Call("recv", 0, f"src={whom}, tag={tag}", tuple(tensor.shape), tensor.dtype)
    others = tuple(rank for rank in made.ranks if rank != made.job.rank)
    call = call._replace(peers=others if peer is None else (made.ranks[peer],))
    wanted, site = f"{tensor.dtype} x {tensor.numel()}", checks.call_site()

    def check(text: np.ndarray, source: int) -> DistError | None:
        what, _, where = checks.text_of(text).partition("\x1f")
        if what == wanted:
            return None
        return DistError(
            f"Detected mismatch between messages on ranks. Rank {made.ranks[source]} sends {what}, but Rank "
            f"{made.job.rank} receives {wanted}.",
            f"rank {made.ranks[source]}: {where}",
            f"rank {made.job.rank}: {call} at {site}",
            remedy="give both tensors the same dtype and number of elements, or the messages different tags",
        )

    operation = made.transport(tensor).receive(tensor, peer, tag, check)
    operation.begin()
    return made.started(call, operation, [tensor])


@in_group
def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to one process, and wait until it may be changed again. As `isend`."""
    work = isend(tensor, dst, group, tag, group_dst)
    assert work is not None
    work.wait()


@in_group
def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor of one process, of any unless `src` is given; returns the rank of the sender. As `irecv`."""
    work = irecv(tensor, src, group, tag, group_src)
    assert work is not None
    work.wait()
    return default_group(group).ranks[work.source_rank()]


class P2POp:
    """One message of `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: what to send, or to write to.
        peer: the rank in the job of the other process.
        group: None, for all processes.
        tag: pairs a send with a receive.
        group_peer: the other's rank in the group, instead.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``isend`` or ``irecv``.")
        _tensor("P2POp", tensor)
        self.op, self.tensor, self.peer, self.group_peer = op, tensor, peer, group_peer
        self.group, self.tag = group, tag


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start several messages at once; returns their works. Raises ValueError for an empty list."""
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("p2p_op_list must be a non-empty list of P2POp")
    transport = default_group(p2p_op_list[0].group).transport(p2p_op_list[0].tensor)
    with transport.together():
        works = [each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer) for each in p2p_op_list]
    return [work for work in works if work is not None]


@in_group
def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Reduce several tensors of all processes, each as `all_reduce` does."""
    return _as_one([all_reduce(x, op, group, True) for x in tensors], async_op)


@in_group
def all_gather_coalesced(
    output_tensor_lists: Sequence[Sequence[Tensor]],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gather several tensors of all processes, each as `all_gather` does."""
    pairs = zip(output_tensor_lists, input_tensor_list, strict=True)
    return _as_one([all_gather(outputs, x, group, True) for outputs, x in pairs], async_op)


def _as_one(works: list[Work | None], async_op: bool) -> Work | None:
    """Some works as one, or None after all have ended."""
    require(bool(works), ArgumentError, "a coalesced collective needs at least one tensor")
    work = Works([each for each in works if each is not None])
    if async_op:
        return work
    work.wait()
    return None


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until every process has called this, and say which have not.

    Args:
        group: None, for all processes.
        timeout: how long to wait; as the group's unless given.
        wait_all_ranks: name all ranks that are missing, and not only the first.

    Raises:
        RuntimeError: some ranks did not come in time; rank 0 names them.
    """
    default_group(group).monitored_barrier(timeout, wait_all_ranks)
