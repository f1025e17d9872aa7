"""Noticing that another rank of this machine is gone, and how it ended.

mpiexec alone does not say it: a rank that calls `os._exit(0)` makes it kill the others and report success, and for one
that is killed by a signal it prints a process number. It kills the others as soon as the rank's connection for PMI is
closed, before they could say more. So the ranks of a machine are connected by sockets here (`Links`):

* Each hands the others duplicates of its connection to mpiexec and of its outputs. While one of them holds these,
  mpiexec sees nothing closed. It asks for ended processes now and then, and ends the job if a signal ended one.
* A rank that leaves properly says so. The end of a socket without that is the end of the rank; /proc has its status
  until mpiexec has asked for it.

Nothing is left behind: the sockets have no file, and the kernel closes them with the process. Elsewhere than on Linux
there are no links, and mpiexec ends the job as it does.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import signal
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from .failure import last_words
from .store import close_in_forks

# A rank is linked to so many before and after it, which bounds the open files on a machine with hundreds of ranks.
_NEIGHBOURS = 8
# How long the others of a machine may take to link, and how long a process may take to end after its sockets.
_LINKING, _DYING = 10.0, 60.0
# Seconds in which a rank that computes may come to a collective and raise there, before the job is ended without it.
GRACE = 5.0
_LEAVES, _ENDS_THE_JOB = b"L", b"E"
_WORDS = 2048  # bytes that a rank says at its end
_RANK = struct.Struct("!I")
_CREDENTIALS = struct.Struct("3i")  # process, user and group
_EXIT_CODE = 49  # field 52 of /proc/*/stat, counted from behind the name of the program


def machine() -> str:
    """What processes have in common that share memory: the name of their machine, and its kernel's start and memory,
    as copies of a machine may have one name and a machine several containers."""
    facts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        facts.append(str(os.stat("/dev/shm").st_dev))
    return "|".join(facts)


class Ending(NamedTuple):
    """The end of a rank: its status as `os.wait` gives it, or None if the kernel did not say; when that was seen; and
    what the rank itself said."""

    rank: int
    process: int
    status: int | None
    seen: float = 0.0
    said: str = ""

    @property
    def which(self) -> str:
        """The process, for the second line of a message."""
        return f"it was process {self.process}; " if self.process else ""

    @property
    def by_signal(self) -> bool:
        """True if it was killed by a signal."""
        return self.status is not None and os.WIFSIGNALED(self.status)

    def __str__(self) -> str:
        if self.said:
            return self.said
        if self.status is None and not self.process:
            how = "its connection to the store ended without destroy_process_group()"
        elif self.status is None:
            how = "it ended without destroy_process_group(); its status is not known"
        elif os.WIFSIGNALED(self.status):
            how = f"it was killed by {_signal_name(os.WTERMSIG(self.status))}"
        else:
            how = f"it ended with status {os.WEXITSTATUS(self.status)} without destroy_process_group()"
        return f"rank {self.rank} is gone: {how}"

    @property
    def remedy(self) -> str:
        """The remedy for a message."""
        if self.said:
            return "see what that rank has printed"
        if self.status is None or not os.WIFSIGNALED(self.status):
            return "leave by destroy_process_group() or by the end of the program; os._exit() skips both"
        number = os.WTERMSIG(self.status)
        if number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE):
            return "start with python -X faulthandler, which prints where a process crashes"
        short = "; the kernel does when memory is short, and its log says so" if number == signal.SIGKILL else ""
        return f"find out what sent the signal{short}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # those for real time have no names
        return f"signal {number}"


class _Peer:
    """Another rank of this machine, and the socket to it."""

    def __init__(self, link: socket.socket, rank: int = -1) -> None:
        self.link, self.rank = link, rank
        self.process, user, _ = _CREDENTIALS.unpack(
            link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        self.ends_since: float | None = None
        if user != os.getuid():  # names of sockets are open to all users
            raise PermissionError("a process of another user answers")

    def introduce(self, rank: int) -> None:
        """Send the rank of this process and duplicates of its files."""
        socket.send_fds(self.link, [_RANK.pack(rank)], _own_files())

    def meet(self) -> int:
        """Receive what the other sends, keep its files and return its rank."""
        data, files, _, _ = socket.recv_fds(self.link, _RANK.size, 3, socket.MSG_CMSG_CLOEXEC)
        if self.process in _held or self.process == 0:  # 0: a process that is not visible from here
            _close(files)
        else:
            _held[self.process] = files
        if len(data) != _RANK.size:
            raise ConnectionError("the other rank has ended")
        return int(_RANK.unpack(data)[0])


def _status(process: int) -> tuple[bool, int | None]:
    """Whether a process has ended, and its status."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return True, None
    return (True, int(fields[_EXIT_CODE])) if fields[0] in (b"Z", b"X") else (False, None)


# Files of other ranks, by process. They stay open to the end of this one: mpiexec may kill it when it sees one closed.
_held: dict[int, list[int]] = {}


def _own_files() -> list[int]:
    """The files by which mpiexec watches this process: its connection for PMI, if it has one, and its outputs."""
    files = []
    given = os.environ.get("PMI_FD", "")
    with contextlib.suppress(OSError):
        if given.isdecimal() and stat.S_ISSOCK(os.fstat(int(given)).st_mode):
            files.append(int(given))
    for output in (1, 2):
        with contextlib.suppress(OSError):
            os.fstat(output)
            files.append(output)
    return files


def _close(files: list[int]) -> None:
    for file in files:
        with contextlib.suppress(OSError):
            os.close(file)


def complete() -> bool:
    """True if the ranks that this process watched are still there at its end.

    If not, MPI cannot be finalized: it would wait for the others for ever. The files stay open until the process has
    ended then, because mpiexec kills a rank that still runs when it sees that another has not finalized MPI.
    """
    if not any(_status(process)[0] for process in _held):
        return True
    with contextlib.suppress(OSError, ValueError, AttributeError):
        last_words()
    return False


def release() -> None:
    """Let mpiexec see again which ranks end, before this one waits for them in MPI."""
    while _held:
        _close(_held.popitem()[1])


if sys.platform == "linux":
    os.register_at_fork(after_in_child=release)  # a forked process may live longer than the rank


class Links:
    """Sockets between this rank and others of its machine, and a thread that waits for their ends."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.gone: dict[int, Ending] = {}
        # Set when an error about a rank that is gone was raised: what happens then is the program's decision.
        self.told = False
        self._peers: list[_Peer] = []
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._waker: tuple[socket.socket, socket.socket] | None = None

    def listen(self) -> str:
        """Open a socket for the others and return its name; "" where there can be none."""
        if sys.platform != "linux":
            return ""
        close_in_forks(self)
        name = f"tritensor-{secrets.token_hex(8)}"
        try:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(f"\0{name}")  # the 0 makes it a name without a file
            self._listener.listen(64)
        except OSError:
            self.forget()
            return ""
        return name

    def connect(self, addresses: Mapping[int, str]) -> None:
        """Link to the ranks of this machine, which all call this.

        Args:
            addresses: what `listen` returned in each rank of this machine, this one too, by rank.
        """
        if self._listener is None:
            return
        ranks = [rank for rank in sorted(addresses) if addresses[rank]]
        place, count = ranks.index(self.rank), len(ranks)
        near = {
            rank
            for other, rank in enumerate(ranks)
            if 0 < min((other - place) % count, (place - other) % count) <= _NEIGHBOURS
        }
        # None waits for another here: a socket that listens takes connections and data before they are accepted.
        called = [peer for rank in sorted(near) if rank < self.rank and (peer := self._call(rank, addresses[rank]))]
        self._answer({rank for rank in near if rank > self.rank})
        for peer in called:
            try:
                self._add(peer, peer.meet() == peer.rank)
            except OSError:
                peer.link.close()
        self._listener.close()
        self._listener = None

    def _call(self, rank: int, address: str) -> _Peer | None:
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(_LINKING)
        try:
            link.connect(f"\0{address}")
            peer = _Peer(link, rank)
            peer.introduce(self.rank)
        except OSError:
            link.close()
            return None
        return peer

    def _answer(self, awaited: set[int]) -> None:
        assert self._listener is not None
        limit = time.monotonic() + _LINKING
        while awaited and (left := limit - time.monotonic()) > 0:
            self._listener.settimeout(left)
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            link.settimeout(left)
            try:
                peer = _Peer(link)
                peer.rank = peer.meet()
                peer.introduce(self.rank)
            except OSError:
                link.close()
                continue
            self._add(peer, peer.rank in awaited)
            awaited.discard(peer.rank)

    def _add(self, peer: _Peer, expected: bool) -> None:
        if expected and peer.process:
            self._peers.append(peer)
        else:
            peer.link.close()

    def knows(self, rank: int) -> bool:
        """True if there is a link to a rank."""
        return any(peer.rank == rank for peer in self._peers)

    # ---- watching ---------------------------------------------------------------------------------------------

    def watch(self, report: Callable[[Ending], None], end: Callable[[Ending], None]) -> None:
        """Begin to wait for the ends of the others.

        Args:
            report: called at once when a rank was killed by a signal, in one of the others: mpiexec ends the job soon.
            end: called for a rank that is gone when `told` is not set for some seconds.
        """
        if self._peers:
            self._waker = socket.socketpair()
            self._thread = threading.Thread(
                target=self._run, args=(report, end), name="tritensor liveness", daemon=True
            )
            self._thread.start()

    def _run(self, report: Callable[[Ending], None], end: Callable[[Ending], None]) -> None:
        assert self._waker is not None
        late = None
        with selectors.DefaultSelector() as selector:
            selector.register(self._waker[0], selectors.EVENT_READ)
            for peer in self._peers:
                selector.register(peer.link, selectors.EVENT_READ, peer)
            dying: list[_Peer] = []
            while True:
                for key, _ in selector.select(self._pause(dying, late)):
                    if key.data is None:
                        return
                    said = self._said(key.data)
                    if said == _ENDS_THE_JOB:
                        return
                    selector.unregister(key.fileobj)
                    if said.startswith(_ENDS_THE_JOB):
                        words = said[1:].decode("utf-8", "replace")
                        late = self._note(Ending(key.data.rank, 0, None, time.monotonic(), words), report, late)
                    elif not said:
                        key.data.ends_since = time.monotonic()
                        dying.append(key.data)
                for peer in list(dying):
                    ended, status = _status(peer.process)
                    if ended:
                        late = self._note(Ending(peer.rank, peer.process, status, time.monotonic()), report, late)
                    if ended or time.monotonic() - (peer.ends_since or 0) > _DYING:
                        dying.remove(peer)
                if late is not None and time.monotonic() > late:
                    if not self.told:
                        end(next(iter(self.gone.values())))
                    late = None

    def _note(self, ending: Ending, report: Callable[[Ending], None], late: float | None) -> float:
        """Note that a rank is gone; returns when the job is to be ended without it."""
        ending = self.gone.setdefault(ending.rank, ending)
        if ending.by_signal and self._speaks():
            report(ending)
        return late or time.monotonic() + (GRACE if self._speaks() else 1.5 * GRACE)

    def _pause(self, dying: list[_Peer], late: float | None) -> float | None:
        """The time to wait for messages."""
        if dying:
            # at first in a hurry, because mpiexec may end the job at any time; drivers may take seconds to close
            return 0.0005 if any(time.monotonic() - (peer.ends_since or 0) < 1 for peer in dying) else 0.05
        return None if late is None else max(0.0, late - time.monotonic())

    def _said(self, peer: _Peer) -> bytes:
        try:
            return peer.link.recv(_WORDS)
        except OSError:
            return b""

    def _speaks(self) -> bool:
        """True if this rank is the first of those that are left, which speaks for all."""
        return all(peer.rank > self.rank or peer.rank in self.gone for peer in self._peers)

    # ---- leaving ----------------------------------------------------------------------------------------------

    def leave(self, how: str | None = None) -> None:
        """Say that the end of this process will be no failure, and stop to watch.

        Args:
            how: it is one, and this is what the others are to tell of it; "" if they end at once.
        """
        said = _LEAVES if how is None else _ENDS_THE_JOB + how.encode("utf-8", "replace")[: _WORDS - 1]
        for peer in self._peers:
            with contextlib.suppress(OSError):
                peer.link.send(said)
        if self._thread is not None and self._waker is not None and self._thread is not threading.current_thread():
            self._waker[1].send(b"!")
            self._thread.join(1.0)
        self.forget()

    def forget(self) -> None:
        """Close the sockets without a word, in a forked process too, which may live longer than the rank."""
        for each in (self._listener, *(peer.link for peer in self._peers), *(self._waker or ())):
            if each is not None:
                each.close()
        self._listener = self._thread = self._waker = None
        self._peers = []
