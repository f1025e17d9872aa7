"""Stores of keys and values that processes share: `TCPStore`, `FileStore`, `HashStore`, `PrefixStore`.

Ranks meet in one (`meeting`). The values are in one process, `server`, beside the process that opens the store.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TextIO

from ..errors import DistNetworkError, DistStoreError
from . import server

_FIVE_MINUTES = timedelta(seconds=300)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.25
_GREETING = 2.0  # seconds in which a server of ours answers; what else listens at a port may say nothing


_held: weakref.WeakSet[Any] = weakref.WeakSet()


def close_in_forks(owner: object) -> None:
    """Call an object's `forget` in processes that are forked from this one: a copy of a connection there would hide its
    end."""
    _held.add(owner)


def _in_forked_process() -> None:
    for owner in list(_held):
        owner.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_process)


def _received(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = link.recv(count - len(data))
        if not part:
            raise ConnectionError("the connection was closed")
        data += part
    return data


def receive(link: socket.socket) -> list[bytes]:
    """The fields of the next message of a server."""
    (length,) = struct.unpack("!I", _received(link, 4))
    return server.unpacked(_received(link, length))


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at a port of all interfaces, or of the loopback interface if that is what `host` names.

    Raises:
        DistNetworkError: another process has the port.
    """
    # in Kubernetes the pod of rank 0 may be told that rank 0 is at localhost, where the other pods do not reach it
    near = host in ("127.0.0.1", "::1") or (host == "localhost" and "KUBERNETES_SERVICE_HOST" not in os.environ)
    both = socket.has_dualstack_ipv6() and not near
    family = socket.AF_INET6 if both or host == "::1" else socket.AF_INET
    place = ("" if not near else "::1" if host == "::1" else "127.0.0.1", port)
    try:
        return socket.create_server(place, family=family, backlog=1024, dualstack_ipv6=both)
    except OSError as error:
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {port}, code: "
            f"-{error.errno}, message: {os.strerror(error.errno or 0).lower()}",
            "another process has this port: another job, or a process with the same rank",
            remedy="choose another MASTER_PORT; python -m tritensor launch finds a free one",
        ) from None


def connect(host: str, port: int, timeout: float) -> socket.socket:
    """A connection to the server at an address, which may come up later.

    Raises:
        DistNetworkError: time is up, and nothing or another program answers there.
    """
    limit, pause, fact = time.monotonic() + timeout, _FIRST_PAUSE, "nothing listens there"
    while True:
        try:
            link = socket.create_connection((host, port), max(0.05, min(_GREETING, limit - time.monotonic())))
            try:
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                link.sendall(server.packed([server.MAGIC]))
                link.settimeout(_GREETING)
                if receive(link) == [server.MAGIC]:
                    link.settimeout(None)
                    return link
                fact = "another program answers there"
            except (OSError, struct.error, IndexError):
                fact = "another program answers there"
            link.close()
        except OSError as error:
            fact = f"{error.strerror or error}"
        if time.monotonic() + pause > limit:
            raise DistNetworkError(
                f"The client socket has timed out after {int(timeout * 1000)}ms while trying to connect to "
                f"({host}, {port}).",
                fact,
                remedy="start rank 0, which listens there, and make the address the same for all ranks",
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


class Store:
    """Keys and values that processes share. Keys are texts; values are given as text or bytes, and read as bytes."""

    def __init__(self) -> None:
        self._timeout = _FIVE_MINUTES

    def _ask(self, *fields: bytes | str) -> list[bytes]:
        raise TypeError("Store is an abstract class; make a TCPStore, FileStore or HashStore")

    @property
    def timeout(self) -> timedelta:
        """The time that `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Change how long `get` and `wait` wait."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Set a value; what waits for it goes on."""
        self._ask("set", key, value)

    def _awaited(self, what: str, keys: Sequence[str], timeout: timedelta | None) -> list[bytes]:
        seconds = (self._timeout if timeout is None else timeout).total_seconds()
        answer = self._ask(what, str(seconds), *keys)
        if answer[0] == b"timeout":
            raise DistStoreError(f"wait timeout after {int(seconds * 1000)}ms, keys: {', '.join(keys)}")
        return answer[1:]

    def get(self, key: str) -> bytes:
        """The value of a key; waits for it to be set.

        Raises:
            DistStoreError: it was not set within the timeout.
        """
        return self._awaited("get", [key], None)[0]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys; waits for all."""
        return self._awaited("get", keys, None)

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are set. Raises DistStoreError after the timeout, the store's unless given."""
        self._awaited("wait", keys, timeout)

    def add(self, key: str, amount: int) -> int:
        """Add to a number, 0 at first; returns the sum."""
        return int(self._ask("add", key, str(amount))[1])

    def append(self, key: str, value: str | bytes) -> None:
        """Add to the end of a value, empty at first."""
        self._ask("append", key, value)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set a value if it is the expected one, or if there is none and "" is expected; returns the present value."""
        return self._ask("compare", key, expected_value, desired_value)[1]

    def check(self, keys: Sequence[str]) -> bool:
        """True if all keys are set."""
        return self._ask("check", *keys)[1] == b"1"

    def delete_key(self, key: str) -> bool:
        """Remove a key; true if it was there."""
        return self._ask("delete", key)[1] == b"1"

    def list_keys(self) -> list[str]:
        """All keys."""
        return [key.decode() for key in self._ask("keys")[1:]]

    def num_keys(self) -> int:
        """The number of keys that are set."""
        return len(self.list_keys())


class TCPStore(Store):
    """A store that one process opens at an address, and that others connect to.

    >>> store = TCPStore("127.0.0.1", 0, is_master=True)
    >>> store.set("first", "1")
    >>> TCPStore("127.0.0.1", store.port).get("first"), store.add("count", 2)
    (b'1', 2)

    Args:
        host_name: where the store is.
        port: its port; 0 to find a free one, which `port` then says.
        world_size: how many processes connect, the one that opens it included, which waits for them.
        is_master: whether this process opens it.
        timeout: how long to wait for the store, for the others, and in `get` and `wait`.
        wait_for_workers: whether to wait for the others.

    Raises:
        DistNetworkError: the port is taken, or no store is at the address in time.
        DistStoreError: the others did not connect in time.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _FIVE_MINUTES,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self.host, self.port, self._timeout = host_name, port, timeout
        self._lock = threading.Lock()
        self._served: Any = None
        if is_master:
            made = listen(host_name, port) if master_listen_fd is None else socket.socket(fileno=master_listen_fd)
            self.port = made.getsockname()[1]
            self._served = server.start(made)
        self._link = connect(self.reached, self.port, timeout.total_seconds())
        close_in_forks(self)
        self.add("tritensor/connected", 1)
        if is_master and wait_for_workers and world_size is not None:
            limit = time.monotonic() + timeout.total_seconds()
            while (present := self.add("tritensor/connected", 0)) < world_size:
                if time.monotonic() > limit:
                    raise DistStoreError(
                        f"Timed out after {int(timeout.total_seconds())} seconds waiting for clients. {present}/"
                        f"{world_size} clients joined."
                    )
                time.sleep(_FIRST_PAUSE)

    def _ask(self, *fields: bytes | str) -> list[bytes]:
        data = server.packed([field.encode() if isinstance(field, str) else bytes(field) for field in fields])
        with self._lock:
            try:
                self._link.sendall(data)
                return receive(self._link)
            except OSError as error:
                raise DistNetworkError(f"the store at {self.host}:{self.port} is gone", str(error)) from None

    @property
    def reached(self) -> str:
        """The host by which this process reaches it: one that opened it need not resolve its own name."""
        return self.host if self._served is None or self.host == "::1" else "127.0.0.1"

    def clone(self) -> TCPStore:
        """The same store by another connection."""
        return TCPStore(self.reached, self.port, timeout=self._timeout)

    def close(self) -> None:
        """Disconnect. The store itself ends when all have, and the process that opened it."""
        self._link.close()
        if self._served is not None:
            self._served.stdin.close()
            self._served = None

    def forget(self) -> None:
        """Close the connections in a forked process; the store stays its parent's."""
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            served = self._served
            self.close()
            if served is not None and served.poll() is None:
                served.returncode = 0  # it ends by itself, after its last client: nothing is to be waited for

    def __repr__(self) -> str:
        return f"TCPStore({self.host}:{self.port})"


class HashStore(TCPStore):
    """A store of this process, for its threads."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1", 0, is_master=True)


class FileStore(TCPStore):
    """A store that processes find by a file which all of them see; the file holds the address of the first.

    Args:
        file_name: a path that may not exist, be empty, or be left of a job that has ended.
        world_size: how many processes use it; not needed.
        timeout: how long to wait for the first process.

    Raises:
        DistNetworkError: there is no such folder, or nothing answers at the address.
    """

    def __init__(self, file_name: str, world_size: int = -1, timeout: timedelta = _FIVE_MINUTES) -> None:
        self.path = str(file_name)
        limit = time.monotonic() + timeout.total_seconds()
        while True:
            try:
                self._file = open(self.path, "a+", encoding="utf-8")  # noqa: SIM115 - locked as long as this exists
                # the first keeps the lock, which ends with its process: a file that is not locked is of no job
                opens = _locked(self._file) and _is_there(self._file, self.path)
                if opens:
                    self._file.truncate(0)
                    super().__init__("0.0.0.0", 0, is_master=True, timeout=timeout)
                    self._file.write(f"{own_address()} {self.port}\n")
                    self._file.flush()
                    self._remove = weakref.finalize(self, _removed, self.path)
                    return
                self._file.seek(0)
                host, _, port = self._file.read().partition(" ")
                self._file.close()
            except OSError as error:
                remedy = "name a file in a folder that all processes see and may write to, on a disk that locks files"
                raise DistNetworkError(f"open file failed, path: {self.path}", str(error), remedy=remedy) from None
            with contextlib.suppress(ValueError):  # nothing is written yet
                try:
                    super().__init__(host, int(port), timeout=min(timeout, timedelta(seconds=2)))
                    self.set_timeout(timeout)
                    return
                except DistNetworkError:  # it was of a job before
                    if time.monotonic() > limit:
                        raise
            if time.monotonic() > limit:
                raise DistNetworkError(f"no address is in {self.path} in time", "another process has locked it")
            time.sleep(_FIRST_PAUSE)

    def close(self) -> None:
        """Disconnect; the first process removes the file."""
        if self._served is not None:
            self._remove()
        super().close()
        self._file.close()

    def forget(self) -> None:
        """Close the connections and the file in a forked process."""
        if self._served is not None:
            self._remove.detach()
        self.close()


def _removed(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _locked(file: TextIO) -> bool:
    """True if this process now holds the lock of a file, which no other process holds."""
    try:
        import fcntl
    except ImportError:  # Windows: the first to find the file empty
        return file.seek(0, os.SEEK_END) == 0
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_there(file: TextIO, path: str) -> bool:
    """True if an open file is still the one at its path: the first of a job before may have removed it meanwhile."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    return False


def own_address() -> str:
    """The address of this machine that others reach."""
    with contextlib.suppress(OSError):
        found = socket.gethostbyname(socket.gethostname())
        if not found.startswith("127."):  # as /etc/hosts often says
            return found
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.connect(("192.0.2.1", 9))  # chooses an interface, and sends nothing
        return str(way.getsockname()[0])
    return "127.0.0.1"


class PrefixStore(Store):
    """A store's keys that begin with a prefix: one store then serves several purposes."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.prefix, self.underlying_store = prefix, store
        self._timeout = store.timeout

    def path(self) -> tuple[Store, str]:
        """The store behind all prefixes, and the prefixes together."""
        if isinstance(self.underlying_store, PrefixStore):
            base, before = self.underlying_store.path()
            return base, f"{before}/{self.prefix}"
        return self.underlying_store, self.prefix

    def _ask(self, *fields: bytes | str) -> list[bytes]:
        what = str(fields[0])
        before = f"{self.prefix}/"
        if what == "keys":
            answer = self.underlying_store._ask("keys")
            return [key.removeprefix(before.encode()) for key in answer if key.startswith((before.encode(), b"ok"))]
        places = {"get": slice(2, None), "wait": slice(2, None), "check": slice(1, None)}.get(what, slice(1, 2))
        named = list(fields)
        named[places] = [before + str(key) for key in fields[places]]
        return self.underlying_store._ask(*named)
