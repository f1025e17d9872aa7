"""Counts what collectives send: a list of them with bytes, ranks and the line of the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

from .checks import Call, call_site

__all__ = ["Collective", "count_collectives"]


class Collective(NamedTuple):
    """One collective or point-to-point message of this rank.

    Attributes:
        operator: its name. dtype: of the numbers; None for a barrier.
        nbytes: of this rank's own tensor: of the part that is gathered, of the sum that is scattered, else of all.
        ranks: how many take part. group: the name of the group.
        site: the line of the program.
    """

    operator: str
    dtype: Any
    nbytes: int
    ranks: int
    group: str
    site: str

    @property
    def sent(self) -> int:
        """Bytes that a rank sends: (ranks - 1) times its part, as in a ring; of an all_reduce twice its share."""
        others = self.ranks - 1
        if self.operator.startswith(("all_gather", "reduce_scatter", "gather", "scatter")):
            return others * self.nbytes
        if self.operator.startswith("all_reduce"):
            return 2 * others * self.nbytes // self.ranks
        return self.nbytes * others // self.ranks if self.operator.startswith("all_to_all") else self.nbytes


_open: list[list[Collective]] = []


def note(call: Call, ranks: int, group: str) -> None:
    """Add a collective to the open lists."""
    if not _open or call.dtype is None:
        return
    count = prod(call.shape) if call.shape is not None else sum(call.sizes[0]) if call.sizes else 0
    found = Collective(call.operator, call.dtype, count * call.dtype.itemsize, ranks, group, call_site())
    for each in _open:
        each.append(found)


@contextmanager
def count_collectives() -> Iterator[list[Collective]]:
    """List the collectives and messages that this process starts in the block, on any device.

    >>> import tritensor as torch, tritensor.distributed as dist
    >>> with dist.simulate(gpus_per_node=4), dist.count_collectives() as sent:
    ...     dist.init_process_group("nccl")
    ...     dist.all_reduce(torch.ones(8, device="cuda"))
    >>> [(each.operator, each.nbytes, each.ranks, each.sent) for each in sent]
    [('all_reduce', 32, 4, 48)]
    """
    found: list[Collective] = []
    _open.append(found)
    try:
        yield found
    finally:
        _open.remove(found)
