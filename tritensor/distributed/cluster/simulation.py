"""One rank of a cluster on this machine: `with simulate(nodes=16, gpus_per_node=8, card="h100") as cluster:`."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec

from ... import settings
from ...autograd import watched
from ...autograd.mode import recording
from ...cuda.profiling import Card
from ...cuda.profiling import card as card_of
from ...cuda.profiling.pricing import Price, Prices
from ...drivers.counted import CountedDevice
from ...drivers.current import use
from ...drivers.sizes import parse_memory
from ...drivers.streams import Stream
from ...errors import ArgumentError, DeviceError, DistError
from ...runtime.launch import Request
from .. import groups, traffic
from ..job import Job
from ..modules import Optimizer
from ..process_group import ProcessGroup
from .backend import CountedHost, CountedNccl
from .memory import CountedArena, Memory
from .network import Network, network
from .report import Event, Report

# The share of predicted speed that kernels had on a card: of 88 rows that were measured on an H200 the median of the
# predicted microseconds (benchmarks/budgets/sm_90.json) over the measured (benchmarks/results/nvidia-h200.json). In it
# is what data sheets do not say, above all the clock that a card's power allows; stragglers are not.
EFFICIENCY = 0.86
_kept: dict[str, Prices] = {}  # by card: a price holds for the process


class Cluster:
    """One rank of a cluster: what it has done, and what that takes there.

    Attributes:
        card: the card's figures. network: the links.
        rank, size: of the job. nodes, gpus_per_node: of the cluster.
        steps: how many have ended. last: behind how many the program is ended (`SystemExit`); 0 for none.
    """

    def __init__(self, nodes: int, gpus_per_node: int, card: Card, links: Network, rank: int) -> None:
        self.card, self.network, self.rank = card, links, rank
        self.nodes, self.gpus_per_node, self.size = nodes, gpus_per_node, nodes * gpus_per_node
        self.prices = _kept.setdefault(card.name, Prices(card))
        self.memory = Memory()
        self._events: list[Event] = []
        self._priced: Price | None = None
        self._began, self._sent_before = 0.0, 0
        self._step: Report | None = None
        self.steps, self.last = 0, 0
        self._pace: weakref.ref[Optimizer] | None = None  # of several optimizers the one whose steps are counted
        self.driver: CountedDevice
        self.sent: list[traffic.Collective] = []

    # -- what the device asks

    def price(self, driver: CountedDevice, stream: Stream, request: Request) -> tuple[str, float]:
        """The name and the seconds of a launch."""
        self._priced = found = self.prices.of(driver, stream, request)
        return found.name, found.seconds

    def passed(self, name: str, queue: object, start: float, seconds: float) -> None:
        """A stream did something."""
        phase = "optimizer" if self.memory.in_optimizer else "forward" if recording.current is None else "backward"
        self._events.append(Event(name, queue, start, seconds, phase, self._priced))
        self._priced = None

    # -- what `init_process_group` asks

    def job(self, limit: timedelta) -> tuple[Job, None]:
        """The job, of which this rank is here."""
        job = Job(self.rank, self.size, limit)
        job.counted, job.local_rank = True, self.rank % self.gpus_per_node
        return job, None

    def transports(self, made: ProcessGroup) -> tuple[CountedHost, CountedNccl]:
        """What carries tensors of the host and of the device in a group."""
        return CountedHost(made.rank(), made.size()), CountedNccl(self.driver, self.network, made.rank(), made.ranks)

    # -- steps

    def _before_step(self, optimizer: Optimizer, *_: object) -> None:
        for group in optimizer.param_groups:
            for p in group["params"]:
                self.memory.is_for(p._grad, "gradients")
        self.memory.in_optimizer = True

    def _after_step(self, optimizer: Optimizer, *_: object) -> None:
        self.memory.in_optimizer = False
        for group in optimizer.param_groups:
            for p in group["params"]:
                self.memory.is_for(p, "parameters")
                for value in optimizer.state.get(p, {}).values():
                    self.memory.is_for(value, "optimizer state")
        if self._pace is None or self._pace() is None:
            self._pace = weakref.ref(optimizer)
        if self._pace() is optimizer:
            self.end_step()

    def end_step(self) -> None:
        """A training step has ended: what was done since the last one is what `report` shows.

        An optimizer's step calls it, the first one's where there are several; a program without one does so itself.
        """
        self.driver.host = self.driver.now()  # as programs that read the loss once a step
        facts = self.size, self.nodes, self.card, self.network, self.driver, self.memory
        self._step = Report(facts, self._events, self.sent[self._sent_before :], self._began)
        self.driver.log = []
        self.steps += 1
        self._began, self._events, self._sent_before = self.driver.now(), [], len(self.sent)
        self.memory.begin(self.driver.heap(0).allocated)
        if self.steps == self.last:
            raise SystemExit(0)

    @property
    def report(self) -> Report:
        """The last step.

        Raises:
            DeviceError: none has ended.
        """
        if self._step is None:
            raise DeviceError(
                "simulate: no training step has ended",
                "a step ends with optimizer.step()",
                remedy="train at least two steps, the second without what is made once; or call cluster.end_step()",
            )
        return self._step


@contextmanager
def simulate(
    nodes: int = 1,
    gpus_per_node: int = 8,
    card: str = "h100",
    interconnect: str = "ib-400",
    rank: int = 0,
    memory: int | str | None = None,
    efficiency: float = EFFICIENCY,
) -> Iterator[Cluster]:
    """Run one rank of a cluster on this machine: memory, bytes sent and predicted time of a step, without a GPU.

    In the block the program finds one CUDA device and the variables of a launcher, and `init_process_group` joins it to
    a job of nodes * gpus_per_node ranks. Kernels are priced by what compiled ones ask of the card and not run,
    collectives are counted and not sent, and memory is addresses alone: models of any size are made on the device.
    Values are therefore not computed; a program whose steps depend on them goes another way than on a cluster.

    Args:
        nodes, gpus_per_node: the machines of the cluster.
        card: "a100", "h100", "h200" or "b200".
        interconnect: the network between machines and its Gbit/s of each card: "ib-400", "roce-200".
        rank: which rank is run.
        memory: of the card, in bytes or as "80GB"; its own unless given. More raises `OutOfMemoryError`.
        efficiency: the share of the predicted speed that kernels reach; 0.86 was measured on an H200. A run of the same
            model on one card gives a better one.

    >>> import tritensor as torch, tritensor.distributed as dist
    >>> with dist.simulate(nodes=2, gpus_per_node=8, card="h100", interconnect="ib-400") as cluster:
    ...     dist.init_process_group("nccl")
    ...     model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64, device="cuda"))
    ...     optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ...     for _ in range(2):
    ...         model(torch.ones(8, 64, device="cuda")).sum().backward()
    ...         optimizer.step()
    ...     dist.destroy_process_group()
    >>> cluster.report.ranks, cluster.report.sent["all_reduce"]
    (16, 31200)

    Raises:
        ArgumentError: no such card, interconnect or rank. DeviceError: Triton is not installed.
        RuntimeError: a process group is there already.
    """
    of = card_of(card)
    links = network(interconnect, gpus_per_node, of)
    if nodes < 1 or gpus_per_node < 1 or not 0 <= rank < nodes * gpus_per_node:
        raise ArgumentError(f"simulate: no rank {rank} in {nodes} nodes of {gpus_per_node} GPUs")
    if not efficiency > 0:
        raise ArgumentError(f"simulate: efficiency must be more than 0, got {efficiency}")
    if find_spec("triton") is None:
        raise DeviceError(
            "simulate: pricing kernels needs Triton, which is not installed",
            remedy="pip install 'tritensor[triton]' (Linux)",
        )
    if groups.is_initialized():
        raise DistError("simulate: this process has joined a job already", remedy="call destroy_process_group() first")
    cluster = Cluster(nodes, gpus_per_node, of, links, rank)
    size = of.memory if memory is None else parse_memory(memory)
    rates = of.dram, of.pcie
    driver = CountedDevice(size, of.compiled_for, of.name, cluster.price, cluster.passed, rates)
    driver.pose(multi_processor_count=of.multiprocessors, L2_cache_size=of.l2_size)
    driver.efficiency = efficiency
    driver.arena, driver.memory_in_use, driver.cluster = CountedArena, cluster.memory, cluster
    cluster.driver, cluster.memory.clock = driver, driver.now
    number = -id(cluster)  # hooks of programs have positive ones
    watched.before_steps[number], watched.behind_steps[number] = cluster._before_step, cluster._after_step
    with traffic.count_collectives() as cluster.sent, _environment(cluster), use(driver):
        try:
            yield cluster
        finally:
            del watched.before_steps[number], watched.behind_steps[number]
            if groups.is_initialized():
                groups.destroy_process_group()
            driver.close()
            settings.changed()


@contextmanager
def _environment(cluster: Cluster) -> Iterator[None]:
    """A launcher's variables."""
    local = cluster.rank % cluster.gpus_per_node
    told = {"RANK": cluster.rank, "WORLD_SIZE": cluster.size, "LOCAL_RANK": local}
    told |= {"LOCAL_WORLD_SIZE": cluster.gpus_per_node, "GROUP_RANK": cluster.rank // cluster.gpus_per_node}
    named = {name: str(value) for name, value in told.items()}
    named |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    before = {name: os.environ.get(name) for name in named}
    os.environ.update(named)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
