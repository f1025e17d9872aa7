"""The processes of a job: how they are connected, what they say when they leave, and what ends them all."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol

from ..errors import DistError, explain
from . import failure, liveness
from .meeting import Meeting
from .server import packed
from .store import PrefixStore, close_in_forks, receive


class Group(Protocol):
    """The attributes of a process group that this file reads."""

    group_name: str
    ranks: tuple[int, ...]
    timeout: timedelta
    exchanges: int


class Job:
    """All processes that have joined, as one of them sees them.

    Attributes:
        store: the store in which they met; None where the launcher's MPI connected them.
        groups: the groups that this process is in, by name.
    """

    def __init__(self, rank: int, size: int, timeout: timedelta, met: Meeting | None = None) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self.store = None if met is None else met.store
        self.checked = False
        self.local_rank = 0
        self.links = liveness.Links(rank)
        self.groups: dict[str, Any] = {}
        self.made = 0  # groups of which all processes know, for their names
        self.made_by: Counter[tuple[int, ...]] = Counter()  # those of which only these processes know
        self.host: Any = None
        self.counted = False  # the others are not there: `distributed.cluster` counts what would be sent to them
        self.backend = ""
        self._left: dict[int, dict[str, int]] = {}
        self.left_since: dict[int, float] = {}
        self._life: socket.socket | None = None
        self._listener: threading.Thread | None = None
        if met is not None:
            self._life = met.life
            self._listener = threading.Thread(target=self._listen, args=(met.life,), name="tritensor job", daemon=True)
            self._listener.start()
            close_in_forks(self)

    def find_neighbours(self, facts: Sequence[str]) -> None:
        """Link to the other ranks of this machine.

        Args:
            facts: what `fact` returned in each rank.
        """
        split = [row.split("|", 2) for row in facts]
        self.checked = any(flag == "1" for flag, *_ in split)
        addresses = {rank: address for rank, (_, address, host) in enumerate(split) if host == split[self.rank][2]}
        self.local_rank = list(addresses).index(self.rank)
        self.links.connect(addresses)
        self.links.watch(self._report, self._end)

    def fact(self, checked: bool) -> str:
        """What the others need to know of this rank."""
        return f"{int(checked)}|{self.links.listen()}|{liveness.machine()}"

    def exchange_by_store(self, group: Group, text: str) -> list[str]:
        """The texts of all processes of a group, where there is no host backend."""
        if self.counted:
            return [text] * len(group.ranks)
        assert self.store is not None
        group.exchanges += 1
        own = PrefixStore(f"exchange/{group.group_name}/{group.exchanges}", self.store)
        own.set_timeout(group.timeout)
        own.set(str(self.rank), text)
        return [value.decode("utf-8", "replace") for value in own.multi_get([str(rank) for rank in group.ranks])]

    # ---- ends -------------------------------------------------------------------------------------------------

    def _listen(self, link: socket.socket) -> None:
        """Learn by the store's server which ranks are gone, those of other machines too."""
        try:
            while True:
                rank, how = receive(link)
                seen = time.monotonic()
                ending = liveness.Ending(int(rank), 0, None, seen, how.decode("utf-8", "replace"))
                if not self.links.knows(int(rank)):  # a neighbour's end is told by its own link, and sooner
                    self.links.gone.setdefault(int(rank), ending)
                    if self._life is link:
                        late = threading.Timer(liveness.GRACE, self._end_late, (ending,))
                        late.daemon = True
                        late.start()
        except (OSError, ConnectionError, ValueError):
            pass  # closed by this process, or the server's machine is gone, which its ranks' ends say

    def _end_late(self, ending: liveness.Ending) -> None:
        if self._life is not None and not self.links.told:
            self._end(ending)

    def farewells(self) -> dict[int, dict[str, int]]:
        """The ranks that have left, with the number of their last collective in each group."""
        if self.host is not None:
            self._left.update(self.host.farewells())
            for rank in self._left:
                self.left_since.setdefault(rank, time.monotonic())
        return self._left

    def leave(self) -> None:
        """Tell the others that this process starts no more collectives, and wait for those that run.

        Raises:
            DistError: one of them cannot end, because another process has left without it.
        """
        if self.host is not None:
            self.host.farewell({name: group.sequence for name, group in self.groups.items()})
        self._say(b"leaves")
        error = None
        for group in list(self.groups.values()):
            try:
                group.close()
            except DistError as found:
                error = error or found
        self.links.leave()
        if error is not None:
            raise error

    def give_up(self, error: BaseException) -> None:
        """Leave a job that this process could not join entirely, and tell the others why."""
        self._say(b"ends", f"rank {self.rank} could not join: {error}".encode())
        self.links.leave()

    def _say(self, *words: bytes) -> None:
        """Say the last words to the store's server, and wait until it has heard them."""
        life, self._life = self._life, None
        if life is not None:
            with contextlib.suppress(OSError):
                life.sendall(packed(list(words)))
                life.shutdown(socket.SHUT_WR)
            if self._listener is not None and self._listener is not threading.current_thread():
                self._listener.join(1.0)
            life.close()

    def forget(self) -> None:
        """Close the connection in a forked process, whose end is not the rank's."""
        if self._life is not None:
            self._life.close()

    def abort(self, why: str = "") -> None:
        """End the whole job now."""
        if self.store is None:
            self.links.leave("")
            self.host.abort()
        how = f"rank {self.rank} ended the job{': ' * bool(why)}{why}"
        self._say(b"ends", how.encode())
        self.links.leave(how)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)

    def _report(self, ending: liveness.Ending) -> None:
        failure.say(self.rank, f"{ending} (process {ending.process})\n")

    def _end(self, ending: liveness.Ending) -> None:
        failure.say(
            self.rank,
            explain(str(ending), *([ending.which.rstrip("; ")] if ending.process else []), remedy=ending.remedy)
            + f"\nrank {self.rank} of {self.size} ended the job, in which not all can take part any more.\n",
        )
        failure.last_words()
        self.abort(str(ending))
