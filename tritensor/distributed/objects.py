"""Python objects between processes, as pickles: gathered, broadcast, scattered, sent.

A pickle can run code when it is read: exchange objects with processes that you trust alone.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import require
from ..functional.creation.creation import empty, tensor
from ..tensors import Tensor, wrap
from ..types import devices
from .collectives import all_gather, broadcast, gather, in_group, scatter
from .groups import default_group, ranks_of
from .points import recv, send
from .process_group import ProcessGroup

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list"]
__all__ += ["send_object_list"]


def _carried(group: ProcessGroup) -> devices.device:
    """The device of tensors that the group carries."""
    return devices.cuda(devices.current_index()) if group.lacks_cpu else devices.device("cpu")


def _pickled(value: object, group: ProcessGroup) -> Tensor:
    data = np.frombuffer(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL), np.uint8).copy()
    return wrap(data).to(_carried(group))


def _object(x: Tensor, size: int) -> Any:
    return pickle.loads(x.cpu()._host_array()[:size].tobytes())


def _sizes(x: Tensor, made: ProcessGroup) -> list[int]:
    """The sizes of the pickles of all processes."""
    own = tensor([x.numel()], device=x.device)
    sizes = [empty(1, dtype=own.dtype, device=x.device) for _ in range(made.size())]
    all_gather(sizes, own, made)
    return [int(size) for size in sizes]


def _bytes(count: int, like: Tensor) -> Tensor:
    return empty(count, dtype=like.dtype, device=like.device)


def _filled(x: Tensor, size: int) -> Tensor:
    if x.numel() == size:
        return x
    whole = _bytes(size, x)
    whole[: x.numel()].copy_(x)
    return whole


@in_group
def all_gather_object(object_list: list[Any], obj: object, group: ProcessGroup | None = None) -> None:
    """Gather the objects of all processes in every process.

    Args:
        object_list: a list with an entry for each process, which are overwritten by rank.
        obj: what this process gives; anything that can be pickled.
        group: None, for all processes.

    Raises:
        ValueError: the list has another number of entries.
    """
    made = default_group(group)
    text = "all_gather_object: object_list must have one entry per rank, {}; it has {}"
    require(len(object_list) >= made.size(), ValueError, text, made.size(), len(object_list))
    own = _pickled(obj, made)
    sizes = _sizes(own, made)
    parts = [_bytes(max(sizes), own) for _ in sizes]
    all_gather(parts, _filled(own, max(sizes)), made)
    for rank, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        object_list[rank] = _object(part, size)


@in_group
def gather_object(
    obj: object,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Gather the objects of all processes at rank `dst`.

    Args:
        obj: what this process gives; anything that can be pickled.
        object_gather_list: at `dst` a list with an entry for each process, which are overwritten; None elsewhere.
        dst: the rank in the job that gets them; the group's first unless given.
        group: None, for all processes.
        group_dst: its rank in the group, instead.
    """
    made = default_group(group)
    root = next(ranks_of(made, dst=dst, group_dst=group_dst), 0)
    if made.rank() == root and not object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    own = _pickled(obj, made)
    sizes = _sizes(own, made)
    parts = [_bytes(max(sizes), own) for _ in sizes] if made.rank() == root else None
    gather(_filled(own, max(sizes)), parts, group=made, group_dst=root)
    for rank, part in enumerate(parts or ()):
        assert object_gather_list is not None
        object_gather_list[rank] = _object(part, sizes[rank])


@in_group
def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: devices.device | str | None = None,
    group_src: int | None = None,
) -> None:
    """Broadcast a list of objects: overwrite the list of every process by that of rank `src`, of the same length.

    Args:
        object_list: what can be pickled, at `src`.
        src: the rank in the job whose objects are copied; the group's first unless given.
        group: None, for all processes.
        device: accepted; objects travel by what the group has.
        group_src: its rank in the group, instead.
    """
    made = default_group(group)
    root = next(ranks_of(made, src=src, group_src=group_src), 0)
    own = _pickled(list(object_list) if made.rank() == root else None, made)
    size = tensor([own.numel()] * max(1, len(object_list)), device=own.device)  # lists of other lengths are noticed
    broadcast(size, group=made, group_src=root)
    data = own if made.rank() == root else _bytes(int(size[0]), own)
    broadcast(data, group=made, group_src=root)
    if made.rank() != root:
        object_list[:] = _object(data, data.numel())


@in_group
def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Scatter the list of objects of rank `src`: give every process its object.

    Args:
        scatter_object_output_list: a list that is not empty; its first entry is overwritten.
        scatter_object_input_list: at `src` one object for each process.
        src: the rank in the job that has them; the group's first unless given.
        group: None, for all processes.
        group_src: its rank in the group, instead.
    """
    made = default_group(group)
    root = next(ranks_of(made, src=src, group_src=group_src), 0)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if made.rank() == root and len(scatter_object_input_list or ()) != made.size():
        raise ValueError(f"Argument scatter_object_input_list must have one object per rank, {made.size()}.")
    data = [_pickled(each, made) for each in scatter_object_input_list or ()] if made.rank() == root else []
    head = tensor([0, 0], device=_carried(made))
    sizes = [x.numel() for x in data]
    scatter(
        head,
        [tensor([size, max(sizes)], device=x.device) for size, x in zip(sizes, data, strict=True)] or None,
        group=made,
        group_src=root,
    )
    size, largest = head.tolist()
    own = _bytes(largest, wrap(np.zeros(0, np.uint8)).to(_carried(made)))
    scatter(own, [_filled(x, largest) for x in data] or None, group=made, group_src=root)
    scatter_object_output_list[0] = _object(own, size)


@in_group
def send_object_list(
    object_list: Sequence[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: devices.device | str | None = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to one process, which calls `recv_object_list`. As `send`."""
    made = default_group(group)
    data = _pickled(list(object_list), made)
    send(tensor([data.numel()], device=data.device), dst, made, group_dst=group_dst)
    send(data, dst, made, group_dst=group_dst)


@in_group
def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: devices.device | str | None = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive a list of objects from one process, any unless `src` is given; returns its rank."""
    made = default_group(group)
    size = tensor([0], device=_carried(made))
    sender = recv(size, src, made, group_src=group_src)
    data = _bytes(int(size), wrap(np.zeros(0, np.uint8)).to(_carried(made)))
    recv(data, sender, made)
    object_list[:] = _object(data, data.numel())
    return sender
