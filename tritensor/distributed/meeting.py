"""How the processes of a job find each other: by the variables of a launcher, an address, or a file.

All of these end in a store, whose address rank 0 opens and the others connect to. `join` waits in it until all ranks
are there, and says which are missing when time is up.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlparse

from ..errors import DistError, DistNetworkError, DistStoreError
from . import launchers, server
from .store import FileStore, PrefixStore, Store, TCPStore, connect, own_address

__all__ = ["open_rendezvous", "register_rendezvous_handler", "rendezvous"]

# How long a rank waits before it says on stderr for whom.
_PATIENCE = 15.0
# Where an agent of torchrun keeps MASTER_PORT for itself, rank 0 takes one of the next ports.
_CANDIDATES = 16
_handlers: dict[str, Callable[..., Iterator[tuple[Store, int, int]]]] = {}
# Stores by address: a program that joins twice keeps its store, whose address may be taken for a while otherwise.
_stores: dict[tuple[str, int], TCPStore] = {}
_held: list[TCPStore] = []


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[tuple[Store, int, int]]]) -> None:
    """Add a way to meet, for addresses that begin with `scheme://`.

    Args:
        scheme: the name before `://`.
        handler: called with the address; yields a store, the rank and the number of processes.

    Raises:
        RuntimeError: there is one for this scheme.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[tuple[Store, int, int]]:
    """Meet the other processes at an address: `env://`, `tcp://host:port` or `file:///path`.

    Args:
        url: may say `?rank=` and `&world_size=`.
        rank: the rank of this process, if the address or a launcher does not say it.
        world_size: likewise.
        kwargs: `timeout`, a timedelta.

    Returns:
        An iterator, whose first value is a store, the rank and the number of processes.

    Raises:
        RuntimeError: no such scheme. ValueError: something that the scheme needs is not known.
    """
    parts = urlparse(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    rank = rank if rank != -1 else int(query.get("rank", -1))
    world_size = world_size if world_size != -1 else int(query.get("world_size", -1))
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    if rank != -1 or world_size != -1:
        url += f"{'&' if parts.query else '?'}rank={rank}&world_size={world_size}"
    return _handlers[parts.scheme](url, **kwargs)


def _needed(scheme: str, name: str, what: str, value: int) -> int:
    if value == -1:
        raise ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {what} {name} missing")
    return value


def _numbers(scheme: str, url: str) -> tuple[int, int, bool]:
    query = {name: values[-1] for name, values in parse_qs(urlparse(url).query).items()}
    rank = _needed(scheme, "parameter", "rank", int(query.get("rank", -1)))
    return rank, _needed(scheme, "parameter", "world size", int(query.get("world_size", -1))), "served" in query


def _tcp(url: str, timeout: timedelta = timedelta(minutes=5)) -> Iterator[tuple[Store, int, int]]:
    parts = urlparse(url)
    if not parts.port:
        raise ValueError("Error initializing torch.distributed using tcp:// rendezvous: port number missing")
    rank, size, served = _numbers("tcp", url)
    yield store_at(parts.hostname or "localhost", parts.port, rank == 0 and not served, timeout), rank, size


def _file(url: str, timeout: timedelta = timedelta(minutes=5)) -> Iterator[tuple[Store, int, int]]:
    path = urlparse(url).path
    if not path:
        raise ValueError("Error initializing torch.distributed using file:// rendezvous: path missing")
    rank, size, _ = _numbers("file", url)
    yield FileStore(path.removeprefix("/") if os.name == "nt" else path, size, timeout), rank, size


def _env(url: str, timeout: timedelta = timedelta(minutes=5)) -> Iterator[tuple[Store, int, int]]:
    query = {name: int(values[-1]) for name, values in parse_qs(urlparse(url).query).items()}
    launch = launchers.launched()
    for name, variable in (("rank", "RANK"), ("world_size", "WORLD_SIZE")):
        if query.get(name, -1) == -1 and not launch.launcher:
            raise ValueError(
                "Error initializing torch.distributed using env:// rendezvous: environment variable "
                f"{variable} expected, but not set"
            )
    rank, size = (
        own if query.get(name, -1) == -1 else query[name]
        for name, own in (("rank", launch.rank), ("world_size", launch.size))
    )
    host, port = launchers.address(launch)
    yield store_at(host, port, rank == 0, timeout), rank, size


for _scheme, _handler in (("tcp", _tcp), ("file", _file), ("env", _env)):
    register_rendezvous_handler(_scheme, _handler)


def store_at(host: str, port: int, opens: bool, timeout: timedelta) -> TCPStore:
    """The store at an address, which rank 0 opens there.

    Raises:
        DistNetworkError: the port is taken, or no rank 0 answers there in time.
    """
    if (host, port) in _stores:
        return _stores[host, port]
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        _stores[host, port] = made = _beside_an_agent(host, port, opens, timeout)
    else:
        _stores[host, port] = made = TCPStore(host, port, is_master=opens, timeout=timeout)
    return made


def _beside_an_agent(host: str, port: int, opens: bool, timeout: timedelta) -> TCPStore:
    job = f"{os.environ.get('TORCHELASTIC_RUN_ID')}/{port}/{os.environ.get('TORCHELASTIC_RESTART_COUNT')}"
    limit = time.monotonic() + timeout.total_seconds()
    for candidate in (*range(port + 1, port + 1 + _CANDIDATES),) if opens else ():
        with contextlib.suppress(DistNetworkError):
            made = TCPStore(host, candidate, is_master=True, timeout=timeout)
            made.set("tritensor/job", job)
            return made
    while not opens and time.monotonic() < limit:
        for candidate in range(port + 1, port + 1 + _CANDIDATES):
            with contextlib.suppress(DistNetworkError):
                made = TCPStore(host, candidate, timeout=timedelta(seconds=0.05))
                made.set_timeout(timedelta(seconds=1))
                with contextlib.suppress(DistStoreError):
                    if made.get("tritensor/job").decode() == job:
                        made.set_timeout(timeout)
                        return made
                made.close()
        time.sleep(0.1)
    raise DistNetworkError(
        f"no store of rank 0 at {host}, ports {port + 1} to {port + _CANDIDATES}",
        f"an agent has MASTER_PORT {port} for itself",
        remedy="choose a MASTER_PORT whose next ports are free",
    )


def open_rendezvous() -> str:
    """Open a store in this process and return its address, for `init_process_group(init_method=address, rank=...,
    world_size=...)` in others: Ray's actors, or processes that a scheduler of one's own starts.

    The store lives as long as this process.

    >>> open_rendezvous()                                                                   # doctest: +SKIP
    'tcp://10.0.0.7:40123?served=1'
    """
    made = TCPStore("0.0.0.0", 0, is_master=True)
    _held.append(made)
    return f"tcp://{own_address()}:{made.port}?served=1"


def join(store: Store, rank: int, size: int, timeout: timedelta, by: str) -> PrefixStore:
    """Wait in a store until all ranks are there; returns the part of it that is theirs.

    Raises:
        DistStoreError: some did not come in time. DistError: two have the same rank, or sizes differ.
    """
    store.joins += 1  # a program may join, leave and join again
    own = PrefixStore(f"job{store.joins}", store)
    if (known := own.compare_set("size", "", str(size)).decode()) != str(size):
        raise DistError(
            f"init_process_group: rank {rank} says that there are {size} processes, another rank says {known}",
            *((by,) if by else ()),
            remedy="give all ranks the same WORLD_SIZE, and each job its own MASTER_PORT",
        )
    fact = [socket.gethostname(), os.getpid()]
    if own.add(f"joined/{rank}", 1) != 1:
        own.set_timeout(timedelta(seconds=1))
        with contextlib.suppress(DistStoreError):
            fact = json.loads(own.get(f"rank/{rank}"))
        raise DistError(
            f"init_process_group: another process has joined as rank {rank}",
            f"process {fact[1]} on {fact[0]}",
            *((by,) if by else ()),
            remedy="give each process its own rank, and each job its own MASTER_PORT",
        )
    own.set(f"rank/{rank}", json.dumps(fact))
    _await(own, rank, size, timeout)
    facts = [json.loads(value) for value in own.multi_get([f"rank/{other}" for other in range(size)])]
    if rank == 0:  # what the server tells MPI
        base = _base(store)
        base.multi_set(["pmi/size", "pmi/mapping"], [str(size), _mapping([host for host, _ in facts])])
        own.set("complete", "1")
    own.wait(["complete"], timeout)
    return own


def _await(own: PrefixStore, rank: int, size: int, timeout: timedelta) -> None:
    keys = [f"rank/{other}" for other in range(size)]
    limit, told = time.monotonic() + timeout.total_seconds(), False
    while True:
        left = limit - time.monotonic()
        with contextlib.suppress(DistStoreError):
            own.wait(keys, timedelta(seconds=max(0.0, left if told else min(left, _PATIENCE))))
            return
        missing = [other for other, key in enumerate(keys) if not own.check([key])]
        shown = ", ".join(map(str, missing[:8])) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        waits = f"rank {rank} of {size} waits in init_process_group for rank{'s' * (len(missing) > 1)} {shown}"
        if left > _PATIENCE:
            told = True
            sys.stderr.write(f"[rank{rank}]: {waits}\n")
            continue
        raise DistStoreError(
            f"Timed out after {int(timeout.total_seconds())} seconds waiting for clients. {size - len(missing)}/{size} "
            "clients joined.",
            waits,
            remedy="start all ranks, or give init_process_group(timeout=...) more time",
        )


def _mapping(hosts: list[str]) -> str:
    """Which rank is on which machine, as PMI writes it: runs of (machine, 1, ranks)."""
    numbers: dict[str, int] = {}
    runs: list[list[int]] = []
    for host in hosts:
        number = numbers.setdefault(host, len(numbers))
        if runs and runs[-1][0] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return f"(vector,{','.join(f'({number},1,{count})' for number, count in runs)})"


def _base(store: Store) -> Store:
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return store


@contextlib.contextmanager
def started_by(store: Store, rank: int) -> Iterator[None]:
    """The environment in which MPICH starts as `rank` of those that have joined in a store.

    Raises:
        DistError: no process of ours serves the store.
    """
    base = _base(store)
    if not isinstance(base, TCPStore) or os.name != "posix":
        raise DistError(f"MPI cannot be started by {base!r}", remedy="start the job with mpiexec")
    mine = {"PMI_PORT": f"{base.reached}:{base.port}", "PMI_ID": str(rank)}
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(("PMI_", "PMIX_", "OMPI_"))}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name in mine:
            os.environ.pop(name, None)
        os.environ.update(hidden)


def life_of(store: Store, rank: int) -> socket.socket:
    """A connection that tells the other ranks of a job, by the store's server, when this one is gone."""
    base = _base(store)
    assert isinstance(base, TCPStore)
    link = connect(base.reached, base.port, base.timeout.total_seconds())
    link.sendall(server.packed([b"lives", str(base.joins).encode(), str(rank).encode()]))
    return link
