"""Predicts how long NCCL takes for a collective: the latencies of its own tuner, and measured shares of bandwidths.

A ring of n ranks passes n - 1 parts (an all_reduce twice as many) over the slowest link; a tree halves the ranks. NCCL
chooses algorithm and protocol by the time that its tuner computes; so does this, with the same constants.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...cuda.profiling import Card
from ...errors import ArgumentError

# NCCL, src/graph/tuning.cc, microseconds by protocol (LL, LL128, Simple): of each call, of a step over NVLink and over
# the network.
_BASE = {"ring": (6.6, 14.0, 8.4), "tree": (6.8, 14.0, 8.4)}
_NVLINK = {"ring": (0.6, 1.9, 3.4), "tree": (0.6, 1.25, 4.0)}
_NETWORK = {"ring": (2.7, 4.0, 14.0), "tree": (5.0, 8.5, 14.0)}
# The same: what the protocols leave of the bandwidth, as half of the bytes of LL and an eighth of 128 are flags.
_SHARE = {"ring": (0.5, 0.92, 1.0), "tree": (0.5, 0.92, 0.9)}
# stas00/ml-engineering, network/benchmarks: all_reduce of 16 GB on 8 H200 368 of 450 GB/s, and on 4 nodes of 8 with
# 400 Gbit/s a card 365 of 400.
NVLINK_SHARE, NETWORK_SHARE = 0.82, 0.91


class Network(NamedTuple):
    """The links of a cluster: `nvlink` and `nic` in bytes a second of one card in one direction."""

    name: str
    per_node: int
    nvlink: float
    nic: float

    def seconds(self, operator: str, nbytes: int, ranks: Sequence[int]) -> float:
        """The predicted time of a collective.

        Args:
            operator: "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce" or "message", of two ranks.
            nbytes: of the largest tensor: all parts together of what is gathered or scattered, else of the tensor.
            ranks: of those that take part, in the job.
        """
        count = len(ranks)
        if count == 1:
            return 0.0
        nodes = len({rank // self.per_node for rank in ranks})
        together = -(-count // nodes)  # ranks on a machine, each with a card for the network
        network = NETWORK_SHARE * self.nic * together if nodes > 1 else math.inf
        nvlink = NVLINK_SHARE * self.nvlink if together > 1 else math.inf
        slowest = min(network, nvlink)
        twice = 2 if operator == "all_reduce" else 1
        passed = nbytes * twice * (count - 1) / count
        if operator in ("broadcast", "reduce", "message"):
            passed = nbytes
        times = []
        for protocol in range(3):
            ring = self._steps("ring", protocol, twice * (count - nodes), twice * (nodes - 1))
            times.append(ring + passed / (_SHARE["ring"][protocol] * slowest))
            if operator == "all_reduce":
                tree = self._steps("tree", protocol, 2 * (together - 1), 2 * math.ceil(math.log2(nodes)))
                times.append(tree + passed / (_SHARE["tree"][protocol] * slowest))
        return min(times)

    @staticmethod
    def _steps(algorithm: str, protocol: int, inside: float, between: float) -> float:
        """Seconds of latency of so many steps inside of machines and between them."""
        steps = _NVLINK[algorithm][protocol] * inside + _NETWORK[algorithm][protocol] * between
        return (_BASE[algorithm][protocol] + steps) * 1e-6


def network(interconnect: str, per_node: int, card: Card) -> Network:
    """The links of a cluster by the name of its network: its kind and Gbit/s of each card, as in "ib-400".

    >>> from tritensor.cuda.profiling import card
    >>> links = network("ib-400", 8, card("h100"))
    >>> round(2e9 * 7 / 8 / links.seconds("all_gather", 2 * 10**9, range(8)) / 1e9)  # GB/s of each of 8 cards
    367

    Raises:
        ArgumentError: the name has no number.
    """
    kind, _, number = interconnect.rpartition("-")
    try:
        gigabits = float(number)
    except ValueError:
        gigabits = 0.0
    if not kind or gigabits <= 0:
        raise ArgumentError(
            f"simulate: no interconnect is called {interconnect!r}",
            remedy='name its kind and the Gbit/s of each card: "ib-400", "roce-200", "efa-400"',
        )
    return Network(interconnect, per_node, card.nvlink, gigabits / 8 * 1e9)
