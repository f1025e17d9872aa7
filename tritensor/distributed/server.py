"""The process that ranks meet at: a store of keys and values (`TCPStore`), and what MPICH asks to start by (PMI-1).

`start` runs this file as a program beside rank 0, by the standard library alone. It is a process and not a thread,
because `MPI_Init` of rank 0 keeps Python's lock while it waits for answers from here. It outlives rank 0 until the
other ranks have disconnected, so that they learn how the job ended.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import Any

MAGIC = b"tritensor store 1"
_LENGTH = struct.Struct("!I")
_LARGEST = 1 << 30


def packed(fields: list[bytes]) -> bytes:
    """A message: the length of what follows, then each field with its length."""
    body = b"".join(_LENGTH.pack(len(field)) + field for field in fields)
    return _LENGTH.pack(len(body)) + body


def unpacked(body: bytes) -> list[bytes]:
    """The fields of a message without its length."""
    fields, place = [], 0
    while place < len(body):
        (length,) = _LENGTH.unpack_from(body, place)
        fields.append(body[place + 4 : place + 4 + length])
        place += 4 + length
    return fields


class _Client:
    """A connection: what has arrived of its next message, and whose it is."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.arrived = b""
        self.known = False
        # of connections that say whether a rank lives: its number; of those that start MPI, too: where ranks meet, and
        # the job, of those that met there
        self.rank = self.place = self.job = b""
        self.mpi = 0  # of those that start MPI: how many do


class Server:
    """Answers clients one after another; all its state is in memory."""

    def __init__(self, listener: socket.socket, parent: int | None) -> None:
        self.values: dict[bytes, bytes] = {}
        # what waits: client, keys, deadline, whether it gets the value
        self.waiting: list[tuple[_Client, list[bytes], float, bool]] = []
        self.clients: set[_Client] = set()
        self.parted = parent is None
        self.selector = selectors.DefaultSelector()
        self.listener, self.parent = listener, parent
        self.selector.register(listener, selectors.EVENT_READ, "listener")
        if parent is not None:
            self.selector.register(parent, selectors.EVENT_READ, "parent")
        self.jobs: dict[bytes, int] = {}  # how many jobs have met at a place
        self.inside: list[_Client] = []  # MPI processes in a barrier
        self.name = b"tritensor-%d-%d" % (os.getpid(), time.time_ns())  # MPICH's shared memory is called by it

    def run(self) -> None:
        """Serve until the parent and all clients have gone."""
        while self.clients or not (self.parted and self.parent is not None):
            pause = min((deadline for _, _, deadline, _ in self.waiting), default=None)
            for key, _ in self.selector.select(None if pause is None else max(0.0, pause - time.monotonic())):
                if key.data == "listener":
                    link, _ = self.listener.accept()
                    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                    client = _Client(link)
                    self.clients.add(client)
                    self.selector.register(link, selectors.EVENT_READ, client)
                elif key.data == "parent":  # its end of the pipe was closed
                    self.selector.unregister(key.fileobj)
                    self.selector.unregister(self.listener)
                    self.listener.close()
                    self.parted = True
                elif key.data in self.clients:
                    self.read(key.data)
            now = time.monotonic()
            for entry in [entry for entry in self.waiting if entry[2] <= now]:
                self.waiting.remove(entry)
                self.send(entry[0], [b"timeout"])

    def read(self, client: _Client) -> None:
        """Take what a client sent, and answer the messages that are whole."""
        try:
            data = client.link.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self.drop(client)
            return
        client.arrived += data
        try:
            while client in self.clients and self.one(client):
                pass
        except (ValueError, struct.error, IndexError, KeyError):  # not a client of ours
            self.drop(client)

    def one(self, client: _Client) -> bool:
        """Answer the first whole message; False if there is none."""
        arrived = client.arrived
        if client.mpi:
            line, found, rest = arrived.partition(b"\n")
            if found:
                client.arrived = rest
                self.start(client, dict(word.partition(b"=")[::2] for word in line.split(b" ")))
            return bool(found)
        if len(arrived) < 4:
            return False
        (length,) = _LENGTH.unpack_from(arrived)
        if length > _LARGEST:
            raise ValueError(length)
        if len(arrived) < 4 + length:
            return False
        client.arrived = arrived[4 + length :]
        self.answer(client, unpacked(arrived[4 : 4 + length]))
        return True

    def send(self, client: _Client, fields: list[bytes]) -> None:
        """Send a message, or drop a client that is gone."""
        self.sendall(client, packed(fields))

    def sendall(self, client: _Client, data: bytes) -> None:
        """Send bytes, or drop a client that is gone."""
        try:
            client.link.sendall(data)
        except OSError:
            self.drop(client)

    def drop(self, client: _Client) -> None:
        """Forget a client; the others learn that its rank is gone if it did not say that it leaves."""
        if client not in self.clients:
            return
        self.clients.discard(client)
        self.selector.unregister(client.link)
        client.link.close()
        self.waiting = [entry for entry in self.waiting if entry[0] is not client]
        self.inside = [each for each in self.inside if each is not client]
        self.tell(client, b"")

    # ---- ranks ------------------------------------------------------------------------------------------------

    def live(self, client: _Client, place: bytes, rank: bytes) -> None:
        """Let a connection stand for a rank of the job that meets at a place, which is the next one if all are there in
        the last, unless another connection stands for this rank; and answer with the name of that job."""
        living = [other for other in self.clients if other.rank and other.place == place]
        taken = next((other.job for other in living if other.rank == rank), None)
        number = self.jobs.get(place, 0)
        job = b"job%d" % number
        if b"%b/%b/complete" % (place, job) in self.values or job not in [other.job for other in living]:
            number += 1
        if taken is None:
            self.jobs[place] = number
            client.place, client.rank, client.job = place, rank, b"job%d" % number
        self.send(client, [b"ok", client.job] if taken is None else [b"taken", taken])

    def tell(self, gone: _Client, how: bytes) -> None:
        """Tell the other ranks of a job that one is gone, and how it ended if it said so.

        One that goes before all are there may come back.
        """
        rank, gone.rank = gone.rank, b""
        job = b"%b/%b" % (gone.place, gone.job)
        if rank and job + b"/complete" not in self.values:
            self.values.pop(b"%b/rank/%b" % (job, rank), None)
        elif rank:
            for other in [each for each in self.clients if (each.place, each.job) == (gone.place, gone.job)]:
                if other.rank:
                    self.send(other, [rank, how])
                elif other in self.inside:  # MPI would wait for ever
                    self.drop(other)

    # ---- the store --------------------------------------------------------------------------------------------

    def answer(self, client: _Client, fields: list[bytes]) -> None:
        """Do what a message asks for."""
        what, *rest = fields
        if not client.known and what != MAGIC:
            raise ValueError(what)
        if what == MAGIC:
            client.known = True
            self.send(client, [MAGIC])
        elif what == b"lives":  # this connection is a rank's, until it ends or says how the rank ends
            self.live(client, *rest)
        elif what == b"leaves":
            client.rank = b""
        elif what == b"ends":
            self.tell(client, rest[0])
        elif what == b"starts":  # from here on it speaks PMI
            client.place, client.job, client.mpi = rest[0], rest[1], int(rest[2])
            self.values[b"%b/%b/PMI_process_mapping" % (client.place, client.job)] = rest[3]
        elif what == b"set":
            self.set(rest[0], rest[1])
            self.send(client, [b"ok"])
        elif what == b"add":
            total = int(self.values.get(rest[0], b"0")) + int(rest[1])
            self.set(rest[0], b"%d" % total)
            self.send(client, [b"ok", b"%d" % total])
        elif what == b"append":
            self.set(rest[0], self.values.get(rest[0], b"") + rest[1])
            self.send(client, [b"ok"])
        elif what == b"compare":
            present = self.values.get(rest[0])
            if present == rest[1] or (present is None and not rest[1]):
                self.set(rest[0], rest[2])
            self.send(client, [b"ok", self.values.get(rest[0], rest[1])])
        elif what in (b"get", b"wait"):
            keys = rest[1:]
            if all(key in self.values for key in keys):
                self.give(client, keys, what == b"get")
            else:
                deadline = time.monotonic() + float(rest[0])
                self.waiting.append((client, keys, deadline, what == b"get"))
        elif what == b"check":
            self.send(client, [b"ok", b"%d" % all(key in self.values for key in rest)])
        elif what == b"delete":
            self.send(client, [b"ok", b"%d" % (self.values.pop(rest[0], None) is not None)])
        elif what == b"keys":
            self.send(client, [b"ok", *self.values])
        else:
            raise ValueError(what)

    def set(self, key: bytes, value: bytes) -> None:
        """Set a value, and answer those that waited for it."""
        self.values[key] = value
        for entry in list(self.waiting):
            client, keys, _, gets = entry
            if all(key in self.values for key in keys):
                self.waiting.remove(entry)
                self.give(client, keys, gets)

    def give(self, client: _Client, keys: list[bytes], gets: bool) -> None:
        """Answer a client that asked for keys which are there."""
        self.send(client, [b"ok", *([self.values[key] for key in keys] if gets else [])])

    # ---- PMI-1, the language in which MPICH's processes are started -----------------------------------------------

    def start(self, client: _Client, words: dict[bytes, bytes]) -> None:
        """Answer a line of an MPI process that starts."""
        command, key = words[b"cmd"], b"%b/%b/%b" % (client.place, client.job, words.get(b"key", b""))
        name = b"%b-%b-%b" % (self.name, client.place.replace(b"/", b"-"), client.job)
        answers = {
            b"init": b"response_to_init pmi_version=1 pmi_subversion=1",
            b"get_maxes": b"maxes kvsname_max=256 keylen_max=256 vallen_max=4096",
            b"get_appnum": b"appnum appnum=0",
            b"get_my_kvsname": b"my_kvsname kvsname=%b" % name,
            b"get_universe_size": b"universe_size size=%d" % client.mpi,
            b"put": b"put_result msg=success",
            b"get": b"get_result msg=success value=%b" % self.values.get(key, b""),
            b"barrier_in": b"barrier_out",
            b"finalize": b"finalize_ack",
        }
        answer = b"cmd=%b rc=0\n" % answers.get(command, command)
        if command not in answers or (command == b"get" and key not in self.values):
            answer = b"cmd=%b_result rc=-1 msg=unknown value=unknown\n" % command
        elif command == b"put":
            self.values[key] = words[b"value"]
        elif command == b"barrier_in":
            self.inside.append(client)
            inside = [each for each in self.inside if (each.place, each.job) == (client.place, client.job)]
            if len(inside) == client.mpi:
                self.inside = [each for each in self.inside if each not in inside]
                for each in inside:
                    self.sendall(each, answer)
            return
        self.sendall(client, answer)


def start(listener: socket.socket) -> Any:
    """Serve at a socket that listens, until this process ends: in a process of its own, or, where none can be given
    a socket (Windows), in a thread."""
    if os.name != "posix":
        threading.Thread(target=Server(listener, None).run, name="tritensor store", daemon=True).start()
        return None
    # its input is the pipe that ends with this process; -I and -S start it in 20 ms
    command = [sys.executable, "-I", "-S", __file__, str(listener.fileno())]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[listener.fileno()])
    listener.close()
    return process


def main() -> None:
    """Serve at the socket that was inherited."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # those end the ranks, which end this
    with contextlib.suppress(KeyboardInterrupt):
        Server(socket.socket(fileno=int(sys.argv[1])), sys.stdin.fileno()).run()


if __name__ == "__main__":
    main()
