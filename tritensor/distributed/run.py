"""Starting a program in several processes: `torchrun`'s options, and what they mean for `python -m tritensor launch`.

Each process finds its place in RANK, LOCAL_RANK, WORLD_SIZE and others, and the address of rank 0 in MASTER_ADDR and
MASTER_PORT. Nodes are told their ranks: each runs the launcher with the same options but for `--node-rank`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import uuid
from collections.abc import Sequence
from typing import Any

from ..cuda import device_count
from .elastic.agent import Agent, say
from .elastic.multiprocessing.errors import record

__all__ = ["get_args_parser", "main", "nodes_rank", "parse_args", "run"]

_STREAMS = "LOCAL_RANK:N,..., or N for all, where N is 1 for stdout, 2 for stderr, 3 for both"
_OPTIONS: tuple[tuple[str, object, str], ...] = (  # spellings, the long one first; default, of the type; help
    ("--nnodes", "1:1", "number of nodes: N, or MIN:MAX, of which MAX counts"),
    ("--nproc-per-node -n", "1", "workers on this node: a number, auto, cpu, or gpu for one for each CUDA device"),
    ("--node-rank", -1, "rank of this node, from 0; needed with more than one"),
    ("--master-addr", "", "address of rank 0's node"),
    ("--master-port", 0, "port of rank 0; a free one on one node, else 29500, unless given"),
    ("--master", "", "HOST:PORT, for the two options above"),
    ("--standalone", False, "one node, with a free port"),
    ("--rdzv-backend", "static", "static or c10d, which do the same here: nodes are told their ranks"),
    ("--rdzv-endpoint", "", "HOST:PORT, as --master"),
    ("--rdzv-id", "", "name of the job"),
    ("--rdzv-conf", "", "accepted"),
    ("--max-restarts", 0, "how often all workers are started again after a failure, on one node"),
    ("--monitor-interval", 0.1, "accepted: a worker's end is noticed at once"),
    ("--role", "default", "ROLE_NAME of the workers, and before their lines with --tee"),
    ("--log-dir", "", "folder for what --redirects and --tee write, and for recorded errors"),
    ("--redirects -r", "0", f"streams that go to files instead: {_STREAMS}"),
    ("--tee -t", "0", f"streams that go to files, too, with the worker's name before each line: {_STREAMS}"),
    ("--local-ranks-filter", "", "local ranks whose output is shown, as 0,1; all unless given"),
    ("--module -m", False, "the program is a module's name, as for python -m"),
    ("--no-python", False, "the program is not Python's"),
    ("--local-addr", "", "accepted"),
    ("--run-path", False, "accepted: the program is always run within its interpreter"),
    ("--start-method", "spawn", "accepted"),
    ("--shutdown-timeout", 10.0, "seconds between SIGTERM and SIGKILL"),
)


def add_option(parser: argparse.ArgumentParser, names: str, default: object, told: str) -> None:
    """Add an option, spelled with - and with _, whose default the variable PET_NAME has."""
    long, *short = names.split()
    name = long[2:].replace("-", "_")
    start: Any = os.environ.get(f"PET_{name.upper()}", default)
    how: dict[str, Any] = {"type": type(default)}
    if isinstance(default, bool):
        how, start = {"action": "store_true"}, start not in (False, "", "0")
    parser.add_argument(*dict.fromkeys([*short, long, f"--{name}"]), dest=name, default=start, help=told, **how)


def get_args_parser() -> argparse.ArgumentParser:
    """The options of `torchrun`; the environment has their defaults, as PET_NPROC_PER_NODE for --nproc-per-node."""
    parser = argparse.ArgumentParser(
        description="Run a program in several processes, each of which finds its rank in the environment. The defaults "
        "of options are read from PET_NNODES, PET_NPROC_PER_NODE and so on."
    )
    for names, default, told in _OPTIONS:
        add_option(parser, names, default, told)
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments, options too")
    return parser


def parse_args(args: Sequence[str] | None = None) -> argparse.Namespace:
    """The options from words, by default those of the command line."""
    return get_args_parser().parse_args(args)


def run(options: argparse.Namespace) -> None:
    """Run the program that options name in all processes of this node, until they have ended.

    Raises:
        ValueError: the options make no sense. ChildFailedError: a process failed, in the last attempt, too.
    """
    agent = _agent(options)
    if agent.nproc > 1 and "OMP_NUM_THREADS" not in os.environ:
        say(f"OMP_NUM_THREADS=1 in each of {agent.nproc} workers; set the variable for another number of threads")
    agent.run()


@record
def main(args: Sequence[str] | None = None) -> None:
    """Run the program that words name, by default those of the command line; see `run`."""
    run(parse_args(args))


def nodes_rank(options: argparse.Namespace, nnodes: int) -> int:
    """The rank of this node.

    Raises:
        ValueError: the options do not say it, or it is too large.
    """
    rank = int(options.node_rank) if nnodes > 1 else max(0, int(options.node_rank))
    if not 0 <= rank < nnodes:
        given = "nothing; nodes do not find their ranks by themselves" if rank < 0 else rank
        raise ValueError(f"--node-rank: expected the rank of this node, from 0 to {nnodes - 1}, got {given}")
    return rank


def _agent(options: argparse.Namespace) -> Agent:
    """What the options mean."""
    script, nproc = options.training_script, _workers(options.nproc_per_node)
    nnodes = _numbers("--nnodes", options.nnodes, r"(\d+:)?[1-9]\d*", "N or MIN:MAX")[-1]
    node_rank, (host, port) = nodes_rank(options, nnodes), _address(options, nnodes)
    outside = options.no_python and not options.run_path
    there = shutil.which(script) if outside else options.module or os.path.exists(script)
    _check(there, f"there is no {'program' if outside else 'file'} {script!r}")
    _check(not (outside and options.module), "--no-python and --module exclude each other")
    _check(options.rdzv_backend in ("static", "c10d"), f"--rdzv-backend: no static or c10d: {options.rdzv_backend!r}")
    _check(min(options.max_restarts, options.shutdown_timeout) >= 0, "--max-restarts, --shutdown-timeout: at least 0")
    _check(nnodes == 1 or not options.standalone, f"--standalone: for one node, not for {nnodes}")
    _check(nnodes == 1 or not options.max_restarts, "--max-restarts: nodes cannot agree yet on starting again; pass 0")
    log_dir = "" if options.log_dir in (None, os.devnull) else options.log_dir
    _check(not os.path.isfile(log_dir), f"--log-dir: {log_dir!r} is a file")
    python = [sys.executable, "-m", "tritensor", "run", *["-m"] * bool(options.module)]
    legacy = [] if getattr(options, "use_env", True) else ["--local-rank=${local_rank}"]
    return Agent(
        name=script,
        command=[*([] if outside else python), script, *legacy, *options.training_script_args],
        nproc=nproc,
        nnodes=nnodes,
        node_rank=node_rank,
        host=host,
        port=port,
        run_id=options.rdzv_id or (str(uuid.uuid4()) if nnodes == 1 else "none"),
        role=options.role,
        max_restarts=options.max_restarts,
        shutdown=options.shutdown_timeout,
        log_dir=log_dir,
        redirects=_streams("--redirects", options.redirects, nproc),
        tee=_streams("--tee", options.tee, nproc),
        shown=_numbers("--local-ranks-filter", options.local_ranks_filter or "", r"|\d+(,\d+)*", "numbers, as 0,1"),
    )


def _check(holds: object, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _numbers(option: str, text: str, form: str, expected: str) -> list[int]:
    _check(re.fullmatch(form, text), f"{option}: expected {expected}, got {text!r}")
    return [int(number) for number in re.findall(r"\d+", text)]


def _workers(text: str) -> int:
    """The number of processes on this node."""
    devices = device_count() if text in ("auto", "gpu") else 0
    help = "`python -m tritensor doctor` says why, --simulate-cuda N simulates devices"
    _check(devices or text != "gpu", f"--nproc-per-node gpu: Cuda is not available; {help}")
    if text in ("auto", "cpu", "gpu"):
        return devices or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    return _numbers("--nproc-per-node", text, r"0*[1-9]\d*", "a number, auto, cpu or gpu")[0]


def _address(options: argparse.Namespace, nnodes: int) -> tuple[str, int]:
    """Where rank 0 is found; the port is 0 where each attempt is to have a free one."""
    if options.standalone:
        return "127.0.0.1", 0
    host, port = options.master_addr, int(options.master_port or 0)
    if given := options.master or options.rdzv_endpoint:
        found = re.fullmatch(r"(?:\[(.+)\]|([^:]+))(?::(\d+))?", given)
        _check(found, f"--{'master' if options.master else 'rdzv-endpoint'}: expected HOST:PORT, got {given!r}")
        host, port = (found[1] or found[2], int(found[3] or port)) if found else (host, port)
    _check(host or nnodes == 1, "--master-addr: expected the address of rank 0's node, or --master HOST:PORT")
    _check(0 <= port < 1 << 16, f"--master-port: expected a number below 65536, got {port}")
    return host or "127.0.0.1", port or (29500 if nnodes > 1 else 0)


def _streams(option: str, text: str, nproc: int) -> list[int]:
    """The streams that an option names, for each local rank."""
    found = _numbers(option, text, r"[0-3]|\d+:[0-3](,\d+:[0-3])*", _STREAMS)
    ranks = dict(zip(found[::2], found[1::2])) if len(found) > 1 else {}
    return [ranks.get(rank, 0) if ranks else found[0] for rank in range(nproc)]
