"""A function, instead of a program, in all processes of a node: `elastic_launch`, as notebooks start their jobs."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from ...multiprocessing import ProcessException, start_processes
from ..elastic.agent import Agent
from ..elastic.multiprocessing.errors import ProcessFailure, record

__all__ = ["LaunchConfig", "elastic_launch"]


@dataclass
class LaunchConfig:
    """A job's processes: as many on this node, in as many nodes, which `rdzv_configs["rank"]` numbers.

    `rdzv_endpoint` is HOST:PORT of rank 0, a free port of this machine if it is empty. `run_id` names the job,
    `max_restarts` says how often all are started again after a failure, and `start_method` is that of
    multiprocessing. What PyTorch's has besides is accepted.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: object = None
    run_id: str = "none"
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "static"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None


class elastic_launch:
    """`elastic_launch(config, function)(*args)` calls the function in all processes: what each returned, by rank.

    Raises:
        ValueError: a node does not know its rank or where rank 0 is. ChildFailedError: a process failed, in the last
            attempt, too.
    """

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any]) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        """Run the job on this node to its end."""
        config = self._config
        host, _, port = config.rdzv_endpoint.rpartition(":")
        if config.max_nodes > 1 and not (host and "rank" in config.rdzv_configs):
            raise ValueError("several nodes: pass rdzv_endpoint, HOST:PORT of rank 0, and rdzv_configs={'rank': ...}")
        every = [0] * config.nproc_per_node
        agent = _Calls(
            name=self._entrypoint.__name__,
            command=[],
            nproc=config.nproc_per_node,
            nnodes=config.max_nodes,
            node_rank=int(config.rdzv_configs.get("rank", 0)),
            host=host or "127.0.0.1",
            port=int(port) if host else 0,
            run_id=config.run_id,
            role=config.role,
            max_restarts=config.max_restarts,
            shutdown=10.0,
            log_dir="",
            redirects=every,
            tee=every,
            shown=[],
            function=self._entrypoint,
            arguments=args,
            method=config.start_method,
        )
        agent.run()
        return agent.results


@dataclass
class _Calls(Agent):
    """An agent whose workers are calls of a function."""

    function: Callable[..., Any] = print
    arguments: tuple[Any, ...] = ()
    method: str = "spawn"
    results: dict[int, Any] = field(default_factory=dict)

    def _workers(self, attempt: int, port: int, folder: Path) -> dict[int, ProcessFailure]:
        folder.mkdir()
        first = self.node_rank * self.nproc
        places = [self.environment(rank, attempt, port, folder / f"{rank}.json") for rank in range(self.nproc)]
        given = (self.function, self.arguments, places, str(folder))
        started = start_processes(_work, given, self.nproc, join=False, start_method=self.method)
        try:
            while not started.join(0.1):
                if self.stopped is None and (number := self._asked()):
                    self.stopped = number
                    for each in started.processes:
                        each.terminate()
        except ProcessException as error:
            index, ended = error.error_index, started.processes[error.error_index].exitcode
            return {first + index: ProcessFailure(index, error.pid, ended, str(folder / f"{index}.json"))}
        for rank in range(self.nproc):
            returned = folder / f"{rank}.pickle"
            there = returned.exists()  # not after sys.exit
            self.results[first + rank] = pickle.loads(returned.read_bytes()) if there else None
            returned.unlink(missing_ok=True)
        return {}

    def _asked(self) -> signal.Signals | None:
        """The signal that asks to end, if one came."""
        try:
            return self.events.get_nowait()
        except Empty:
            return None


def _work(index: int, function: Callable[..., Any], args: tuple[Any, ...], places: list[Any], folder: str) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # a fork has the launcher's handlers; Ctrl-C is left to the launcher
    os.environ.update(places[index])
    returned = record(function)(*args)
    Path(folder, f"{index}.pickle").write_bytes(pickle.dumps(returned))
