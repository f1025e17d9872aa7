"""What one step of a rank takes: memory, messages, time, and what is in the way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ...cuda.profiling import Card
from ...cuda.profiling.pricing import Price
from ...drivers.allocator import readable
from ...drivers.counted import CountedDevice, replayed
from ...runtime.log import duration
from .. import traffic
from .memory import Memory
from .network import Network

# Names of what is on its way between ranks, in streams.
_MESSAGES = ("all_", "reduce", "broadcast", "message")


class Event(NamedTuple):
    """What a stream did: its name, stream, start and seconds, and which pass of training ran."""

    name: str
    stream: object
    start: float
    seconds: float
    phase: str
    price: Price | None


class Report:
    """One step of a rank.

    Attributes:
        ranks: of the job. card, network: their names.
        seconds: the predicted time of the step.
        peak_memory: bytes in use at most; `reserved_memory` with what the allocator keeps.
        memory: bytes at the peak by kind. memory_lines: the same by kind and line, the largest first.
        memory_over_time: pairs of seconds and bytes in use.
        collectives: what this rank sent, in order.
        sent: bytes that this rank sent, by collective.
        computing, communicating: seconds in which kernels ran, and messages were on their way.
        exposed: seconds in which kernels waited for messages, by the name of the message.
        bounds: seconds of kernels by what bounds them. kernels: seconds by kernel.
        products: seconds of kernels that use tensor cores.
        mfu: the share of the card's operations that the forward pass and twice as many for gradients are; what is
            computed again does not count. hfu: the share of all operations of tensor cores.
    """

    def __init__(
        self,
        facts: tuple[int, int, Card, Network, CountedDevice, Memory],
        events: Sequence[Event],
        sent: Sequence[traffic.Collective],
        start: float,
    ) -> None:
        self.ranks, self.nodes, card, network, driver, memory = facts
        self.card, self.network, self.capacity = card.name, network.name, driver.total_memory(0)
        self.seconds = driver.now() - start
        self.peak_memory, self.reserved_memory = memory.peak, memory.reserved
        self.memory, self.memory_lines = memory.by_kind(), memory.by_line()
        self.memory_over_time = [(time - start, nbytes) for time, nbytes in memory.over_time]
        self.collectives = list(sent)
        self.sent: Counter[str] = Counter()
        for each in sent:
            self.sent[each.operator] += each.sent
        self.events, self._log = events, driver.log
        self.exposed: defaultdict[str, float] = defaultdict(float)
        self.bounds, self.kernels = (defaultdict[str, float](float) for _ in range(2))
        self.communicating = self.computing = self.products = forward = operations = 0.0
        computes = {event.stream for event in events if event.price is not None}  # others wait for the order alone
        for event in events:
            if event.price is not None:
                self.computing += event.seconds
                self.bounds[event.price.bound.partition(",")[0]] += event.seconds
                self.kernels[event.name] += event.seconds
                operations += event.price.operations
                self.products += event.seconds * (event.price.operations > 0)
                forward += event.price.operations * (event.phase == "forward")
            elif event.name.startswith("waits for "):
                message = event.name.removeprefix("waits for ")
                if event.stream in computes and message.startswith(_MESSAGES):
                    self.exposed[message] += event.seconds
            elif not event.name.startswith("copy"):
                self.communicating += event.seconds
        self._most = card.tensor["bf16"]
        most = self._most * self.seconds if self.seconds else 1.0
        self.mfu, self.hfu = 3 * forward / most, operations / most
        self.operations = operations

    def seconds_at(self, efficiency: float) -> float:
        """The predicted time of the step, if kernels reach another share of their predicted speed."""
        return replayed(self._log, efficiency)

    @property
    def in_the_way(self) -> list[tuple[str, float]]:
        """What the step's time goes to besides products at the speed of tensor cores: names and shares of the step."""
        found: defaultdict[str, float] = defaultdict(float)
        for name, seconds in self.exposed.items():
            found[f"waiting for {name}"] += seconds
        found["kernels that multiply no matrices"] = self.computing - self.products
        spare = self.products - self.operations / self._most
        found["products below the speed of tensor cores"] = max(spare, 0.0)
        idle = self.seconds - self.computing - sum(self.exposed.values())
        if idle > 0.01 * self.seconds:
            found["no kernel runs"] += idle
        ordered = sorted(found.items(), key=lambda row: -row[1])
        return [(name, seconds / self.seconds) for name, seconds in ordered if seconds and self.seconds]

    def __str__(self) -> str:
        lines = [
            f"{self.ranks} x {self.card} on {self.nodes} node{'s' * (self.nodes > 1)}, {self.network}: "
            f"{duration(self.seconds)} a step, predicted; MFU {self.mfu:.1%}, HFU {self.hfu:.1%}",
            f"memory: {readable(self.peak_memory)} at most of {readable(self.capacity)} "
            f"({readable(self.reserved_memory)} with what the allocator keeps)",
            *(f"  {readable(nbytes):>11}  {kind}" for kind, nbytes in self.memory.items()),
            "lines with most of it:",
            *(f"  {readable(nbytes):>11}  {kind} at {site}" for kind, site, nbytes in self.memory_lines[:6]),
            f"sent: {readable(sum(self.sent.values()))} in {len(self.collectives)} messages",
        ]
        by_line: Counter[tuple[str, str]] = Counter()
        for each in self.collectives:
            by_line[each.operator, each.site] += each.sent
        lines += [f"  {readable(n):>11}  {operator} at {site}" for (operator, site), n in by_line.most_common(6)]
        waits = sum(self.exposed.values())
        lines += [
            f"time: kernels {duration(self.computing)}, messages {duration(self.communicating)}, of which kernels wait "
            f"for {duration(waits)}",
            "in the way:",
            *(f"  {share:6.1%}  {name}" for name, share in self.in_the_way[:6]),
            "nothing was measured: times are predicted from published figures (docs/cluster.md has their errors)",
        ]
        return "\n".join(lines)
