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
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlparse

from ..errors import DistError, DistNetworkError, DistStoreError
from . import launchers, server
from .liveness import machine
from .store import FileStore, PrefixStore, Store, TCPStore, connect, own_address, receive

__all__ = ["open_rendezvous", "register_rendezvous_handler", "rendezvous"]

# How long a rank waits before it says on stderr for whom.
_PATIENCE, _LOOK = 15.0, 0.5
_handlers: dict[str, Callable[..., Iterator[tuple[Store, int, int]]]] = {}
# Stores by address and process: who joins twice meets the others in the same store, though some have not left it yet.
_stores: dict[tuple[str, int, int], TCPStore] = {}
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
    path = path.removeprefix("/") if os.name == "nt" else path
    yield _kept((path, 0), lambda: FileStore(path, size, timeout)), rank, size


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


def _kept(address: tuple[str, int], make: Callable[[], TCPStore]) -> TCPStore:
    """The store of this process at an address, made if there is none or if it has ended."""
    key = (*address, os.getpid())
    with contextlib.suppress(KeyError, DistNetworkError):
        _stores[key].check([])
        return _stores[key]
    _stores[key] = made = make()
    return made


def store_at(host: str, port: int, opens: bool, timeout: timedelta) -> TCPStore:
    """The store at an address, which rank 0 opens there.

    Raises:
        DistNetworkError: the port is taken, or no rank 0 answers there in time.
    """

    def make() -> TCPStore:
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            return _beside_an_agent(host, port, opens, timeout)
        try:
            return TCPStore(host, port, is_master=opens, timeout=timeout)
        except DistNetworkError:
            if opens:  # of a job before, in a process that goes on, as that which has started this one
                with contextlib.suppress(DistNetworkError):
                    made = TCPStore(host, port, timeout=timedelta(0))
                    made.set_timeout(timeout)
                    return made
            raise

    return _kept((host, port), make)


def _beside_an_agent(host: str, port: int, opens: bool, timeout: timedelta) -> TCPStore:
    """The store where an agent of torchrun keeps MASTER_PORT for itself: at one of some ports that follow from it."""
    job = f"{os.environ.get('TORCHELASTIC_RUN_ID')}/{port}/{os.environ.get('TORCHELASTIC_RESTART_COUNT')}"
    ports = [launchers.port_of(f"{job}/{number}") for number in range(8)]
    limit = time.monotonic() + timeout.total_seconds()
    while time.monotonic() < limit:
        for candidate in ports:
            with contextlib.suppress(DistNetworkError, DistStoreError):
                made = TCPStore(host, candidate, is_master=opens, timeout=timedelta(seconds=1 if opens else 0.05))
                if opens:
                    made.set("tritensor/job", job)
                made.set_timeout(timedelta(seconds=1))
                if made.get("tritensor/job").decode() == job:
                    made.set_timeout(timeout)
                    return made
        time.sleep(0.05)
    raise DistNetworkError(
        f"no store of rank 0 at {host}, ports {', '.join(map(str, ports))}",
        f"torchrun's agent has MASTER_PORT {port} for itself, so rank 0 opens one of these",
        remedy="let the machines reach each other at these ports, or start with python -m tritensor launch",
    )


def open_rendezvous() -> str:
    """Open a store in this process and return its address, at which others join by `init_process_group`.

    They call `init_process_group(init_method=address, rank=..., world_size=...)`: Ray's actors, for example.

    The store lives as long as this process.

    >>> open_rendezvous()                                                                   # doctest: +SKIP
    'tcp://10.0.0.7:40123?served=1'
    """
    made = TCPStore("0.0.0.0", 0, is_master=True)
    _held.append(made)
    return f"tcp://{own_address()}:{made.port}?served=1"


class Meeting(NamedTuple):
    """What a rank has when all are there: its job's part of a store, a connection on which the store's server tells
    which ranks are gone, and all ranks' machines."""

    store: PrefixStore
    life: socket.socket
    hosts: Sequence[str]


def join(store: Store, rank: int, size: int, timeout: timedelta, by: str, started: str) -> Meeting:
    """Wait in a store until all ranks are there.

    Args:
        by: the launcher's variables, for messages.
        started: the job for which MPI was started in this process, if it was.

    Raises:
        DistStoreError: some did not come in time. DistError: two have the same rank, sizes differ, or MPI, which can be
            started once in a process, was started for other jobs.
    """
    place = PrefixStore("tritensor", store)
    base, path = place.path()
    if not isinstance(base, TCPStore):
        raise TypeError(
            f"Expected store to be a TCPStore, FileStore or HashStore, or a PrefixStore of one, got {base!r}"
        )
    life = connect(base.reached, base.port, timeout.total_seconds())
    life.sendall(server.packed([b"lives", path.encode(), str(rank).encode()]))
    answer, job = receive(life)
    own = PrefixStore(job.decode(), place)
    own.delete_key(f"failed/{rank}")
    try:
        if answer == b"taken":
            own.set_timeout(timedelta(seconds=1))
            process, host, _ = json.loads(own.get(f"rank/{rank}"))
            raise DistError(
                f"init_process_group: another process has joined as rank {rank}",
                f"process {process} on {host.partition('|')[0]}",
                by,
                remedy="give each process its own rank, and each job its own MASTER_PORT",
            )
        if (known := own.compare_set("size", "", str(size)).decode()) != str(size):
            raise DistError(
                f"init_process_group: rank {rank} says that there are {size} processes, another rank says {known}",
                by,
                remedy="give all ranks the same WORLD_SIZE, and each job its own MASTER_PORT",
            )
        own.set(f"rank/{rank}", json.dumps([os.getpid(), machine(), started]))
        _await(own, rank, size, timeout)
        facts = [json.loads(value) for value in own.multi_get([f"rank/{other}" for other in range(size)])]
        if len({before for *_, before in facts}) > 1:
            process, host, _ = next(fact for fact in facts if fact[2])
            raise DistError(
                "init_process_group: MPI is started once in a process, and these are not the processes of that time",
                f"process {process} on {host.partition('|')[0]} was in a job with others before",
                remedy="start new processes for a new job",
            )
        own.set("complete", "1")
    except BaseException as error:
        if answer != b"taken":
            with contextlib.suppress(DistError, OSError):
                own.set(f"failed/{rank}", f"{type(error).__name__} was raised there: {error}")
        life.close()
        raise
    return Meeting(own, life, [host for _, host, _ in facts])


def _await(own: PrefixStore, rank: int, size: int, timeout: timedelta) -> None:
    keys = [f"rank/{other}" for other in range(size)]
    begun, told = time.monotonic(), False
    while True:
        left = begun + timeout.total_seconds() - time.monotonic()
        with contextlib.suppress(DistStoreError):
            own.wait(keys, timedelta(seconds=max(0.0, min(left, _LOOK))))
            return
        missing = [other for other, key in enumerate(keys) if not own.check([key])]
        shown = ", ".join(map(str, missing[:8])) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        waits = f"rank {rank} of {size} waits in init_process_group for rank{'s' * (len(missing) > 1)} {shown}"
        for other in missing:
            if own.check([f"failed/{other}"]):
                words = own.get(f"failed/{other}").decode()
                raise DistError(f"rank {other} has not joined: {words}", waits, remedy="see what that rank has printed")
        if left > _LOOK:
            if not told and time.monotonic() - begun > _PATIENCE:
                told = True
                sys.stderr.write(f"[rank{rank}]: {waits}\n")
            continue
        raise DistStoreError(
            f"Timed out after {int(timeout.total_seconds())} seconds waiting for clients. {size - len(missing)}/{size} "
            "clients joined.",
            waits,
            remedy="start all ranks, or give init_process_group(timeout=...) more time",
        )


def _mapping(hosts: Sequence[str]) -> str:
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


@contextlib.contextmanager
def starting(meeting: Meeting, rank: int) -> Iterator[str]:
    """The environment in which MPICH starts as `rank` of those that have met; its value is a name for them.

    MPICH gets a connection to the store's server, which speaks its language, and keeps it.

    Raises:
        DistError: this system hands no connections to libraries.
    """
    if os.name != "posix":
        raise DistError("MPI cannot be started by a store on this system", remedy="start the job with mpiexec")
    base, path = meeting.store.path()
    assert isinstance(base, TCPStore)
    link = connect(base.reached, base.port, base.timeout.total_seconds())
    size, (place, _, job) = str(len(meeting.hosts)), path.rpartition("/")
    words = ("starts", place, job, size, _mapping(meeting.hosts))
    link.sendall(server.packed([word.encode() for word in words]))
    mine = {"PMI_FD": str(link.detach()), "PMI_RANK": str(rank), "PMI_SIZE": size}
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(("PMI_", "PMIX_", "OMPI_"))}
    os.environ.update(mine)
    try:
        yield f"{base.port}/{path}"
    finally:
        for name in mine:
            os.environ.pop(name, None)
        os.environ.update(hidden)
