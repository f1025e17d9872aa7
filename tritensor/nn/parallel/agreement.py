"""Making the modules of all processes equal, and saying where they differ."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ... import distributed as dist
from ...autograd.mode import no_grad
from ...errors import DistError
from ...functional.creation.creation import tensor, zeros
from ...functional.views.joining import cat
from ...tensors import Tensor
from ...types.devices import device
from ...types.dtypes import dtype, int64, uint8
from .reducer import split

# Bytes of a text about a parameter, of which all processes send one if they differ.
_TEXT = 256


def check_same(parameters: Sequence[tuple[str, Tensor]], group: dist.ProcessGroup) -> None:
    """Raise in all processes unless all have the same parameters: names, shapes, dtypes, and whether they are trained.

    Raises:
        DistError: the message says what the first parameter that differs is in two processes.
    """
    facts = [
        f"{name} of shape {tuple(x.shape)}, {x.dtype}" + ("" if x.requires_grad else ", without a gradient")
        for name, x in parameters
    ]
    digests = [int.from_bytes(hashlib.sha256(fact.encode()).digest()[:7], "big") for fact in facts]
    place = parameters[0][1].device  # a group for GPUs sends nothing of the CPU
    counts = [int(count) for (count,) in _gathered([len(facts)], int64, group, place)]
    rows = _gathered(digests[: min(counts)], int64, group, place)
    other = [at for at in range(min(counts)) if len({row[at] for row in rows}) > 1]
    if not other and len(set(counts)) == 1:
        return
    at = other[0] if other else min(counts)
    own = facts[at] if at < len(facts) else "no parameter"
    texts = [
        bytes(row).rstrip(b"\0").decode("utf-8", "replace")
        for row in _gathered(own.encode()[:_TEXT].ljust(_TEXT, b"\0"), uint8, group, place)
    ]
    rank = next(rank for rank, text in enumerate(texts) if text != texts[0])
    words = "DDP expects same model across all ranks, but "
    if len(set(counts)) > 1:
        rank = next(rank for rank, count in enumerate(counts) if count != counts[0])
        words += f"Rank 0 has {counts[0]} params, while rank {rank} has inconsistent {counts[rank]} params."
    else:
        words += f"params[{at}] of rank {rank} appears not to match the same param in process 0."
    raise DistError(words, f"in rank 0 params[{at}] is {texts[0]}", f"in rank {rank} it is {texts[rank]}")


def _gathered(values: Sequence[int], kind: dtype, group: dist.ProcessGroup, place: device) -> list[list[int]]:
    """The integers of all processes, as many in each, by rank, sent from a device."""
    rows = [zeros(len(values), dtype=kind, device=place) for _ in range(dist.get_world_size(group))]
    dist.all_gather(rows, tensor(list(values), dtype=kind, device=place), group)
    return [row.tolist() for row in rows]


def broadcast(tensors: Sequence[Tensor], group: dist.ProcessGroup, limit: int, src: int = 0) -> None:
    """Copy tensors of one process to all, many in one message of up to `limit` bytes."""
    with no_grad():
        for positions in split(tensors, (limit,)):
            own = [tensors[position].detach() for position in positions]
            flat = own[0] if len(own) == 1 else cat([x.reshape(-1) for x in own])
            dist.broadcast(flat, group=group, group_src=src)
            start = 0
            for x in own if len(own) > 1 and dist.get_rank(group) != src else ():
                x.copy_(flat.narrow(0, start, x.numel()).reshape(x.shape))
                start += x.numel()
