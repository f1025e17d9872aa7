"""Running a job that is to fail, by any launcher, and looking at how it has ended and what it has left."""

from __future__ import annotations

import contextlib
import glob
import http.server
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tritensor.distributed import PrefixStore, TCPStore

from .jobs import MPIEXEC, PROGRAMS, environment, free_port

PROGRAM = PROGRAMS / "fails.py"
# How long a process may take to be gone after its job has ended.
_LINGERING = 10.0
Words = Mapping[int | str, str]


class Case(NamedTuple):
    """A job that is to fail.

    Attributes:
        program: the function of the program, and its arguments; {port}, {taken}, {folder} are replaced.
        says: a pattern for what ranks print, by rank; "others" for all but rank 1, "all", "job" for anything printed.
        by: how it is started: mpiexec, launch, plain (as processes with variables), spawn.
        ranks, timeout: how many, and the seconds that collectives may take.
        limit: seconds in which all must have ended.
        mpiexec, launch, spawn: what is printed there, if it differs. mpiexec ends the others when one ends the job, so
            one of the others is enough there.
        succeeds: it does not fail; or the ranks that end with status 0.
        absent: ranks that are not started.
        variables: of ranks, by rank or for "all"; None to unset one. `{taken}` and so on are replaced.
        taken: what has the port: "silent", "http" or "job".
    """

    program: str
    says: Words
    by: str = "plain"
    ranks: int = 2
    timeout: float = 60
    limit: float = 40
    mpiexec: Words | None = None
    launch: Words | None = None
    spawn: Words | None = None
    succeeds: bool | tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    variables: Mapping[int | str, Mapping[str, str | None]] = {}
    taken: str = ""


@dataclass
class Ended:
    """How a job has ended."""

    case: Case
    by: str
    seconds: float
    statuses: dict[int, int | None] = field(default_factory=dict)  # of ranks, or of the launcher as -1
    text: str = ""
    left: list[str] = field(default_factory=list)

    def said(self, rank: int) -> str:
        """What a rank has printed."""
        start = f"[rank{rank}]: "
        return "".join(line.removeprefix(start) + "\n" for line in self.text.splitlines() if line.startswith(start))

    def wrong(self) -> list[str]:
        """What is not as it should be."""
        case, found = self.case, list(self.left)
        if self.seconds > case.limit:
            found.append(f"it took {self.seconds:.1f} s and not {case.limit:.1f}")
        for rank, status in self.statuses.items():
            succeeds = case.succeeds if isinstance(case.succeeds, bool) else rank in case.succeeds
            who = "the launcher" if rank < 0 else f"rank {rank}"
            if status is None:
                found.append(f"{who} had to be killed")
            elif bool(status) is succeeds:
                found.append(f"{who} ended with status {status}")
        says = getattr(case, self.by, None)
        for who, words in (case.says if says is None else says).items():
            ranks = {"all": range(case.ranks), "others": [0, *range(2, case.ranks)]}.get(who, [who])
            missing = [rank for rank in ranks if rank not in case.absent and not self._says(rank, words)]
            if missing and not (self.by == "mpiexec" and who in ("all", "others") and len(missing) < len(ranks)):
                found.append(f"not said by {', '.join(f'rank {rank}' for rank in missing)}: {words}")
        return found

    def _says(self, rank: int | str, words: str) -> bool:
        text = self.text if isinstance(rank, str) else self.said(rank)
        return re.search(_numbered(self.case, words), text) is not None


def _numbered(case: Case, words: str) -> str:
    """A pattern in which <here> is the number of a line of the case's function that ends with "# here"."""
    lines = PROGRAM.read_text().splitlines()
    start = lines.index(next(line for line in lines if line.startswith(f"def {case.program.split()[0]}(")))

    def number(match: re.Match[str]) -> str:
        marked = (place for place in range(start, len(lines)) if lines[place].endswith(f"# {match[1]}"))
        return rf"{next(marked) + 1}\b"

    return re.sub(r"<(\w+)>", number, words)


def run(case: Case, by: str) -> Ended:
    """Run a job by a launcher, until it has ended."""
    mark = f"TRITENSOR_ENDING={uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as folder, _listening(case.taken) as taken:
        places = {"port": free_port()[0], "taken": taken, "folder": folder}
        here = dict([mark.split("=")], SECONDS=str(case.timeout), OMP_NUM_THREADS="1")
        start = time.monotonic()
        with open(f"{folder}/printed", "w+b", buffering=0) as printed:
            jobs = {
                rank: subprocess.Popen(
                    command,
                    env=_filled(case, rank, {**here, **more}, places),
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                )
                for rank, (command, more) in _commands(case, by, places).items()
            }
            ended = Ended(case, by, 0.0)
            memory = _await(jobs, start + case.limit, mark)
            ended.seconds = time.monotonic() - start
            _wake(jobs)  # what was stopped cannot end by itself
            memory |= _await(jobs, time.monotonic() + _LINGERING, mark)
            ended.left = _left(mark, memory)
            ended.statuses = {rank: job.poll() for rank, job in jobs.items()}
            for job in jobs.values():
                job.kill()
                job.wait()
            printed.seek(0)
            ended.text = printed.read().decode("utf-8", "replace")
    return ended


def _commands(case: Case, by: str, places: Mapping[str, str]) -> dict[int, tuple[list[str], dict[str, str]]]:
    """What is started, with variables, by rank; -1 is a launcher."""
    program = [str(PROGRAM), *(word.format(**places) for word in case.program.split())]
    python = [sys.executable, "-W", "error"]
    meeting = {"WORLD_SIZE": str(case.ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": places["port"]}
    if by == "mpiexec":
        return {-1: ([str(MPIEXEC), "-n", str(case.ranks), *python, *program], {})}
    if by == "launch":
        command = [sys.executable, "-m", "tritensor", "launch", "-n", str(case.ranks), "--shutdown-timeout", "3"]
        return {-1: ([*command, *program], {"PYTHONWARNINGS": "error"})}
    if by == "spawn":
        return {-1: ([*python, *program], {**meeting, "SPAWNS": str(case.ranks)})}
    ranks = (rank for rank in range(case.ranks) if rank not in case.absent)
    return {rank: ([*python, *program], {**meeting, "RANK": str(rank)}) for rank in ranks}


def _filled(case: Case, rank: int, variables: dict[str, str], places: Mapping[str, str]) -> dict[str, str]:
    launchers = ("PMI_", "OMPI_", "SLURM_", "PET_", "TORCHELASTIC_")
    filled = {name: value for name, value in environment(**variables).items() if not name.startswith(launchers)}
    for name, value in (*case.variables.get("all", {}).items(), *case.variables.get(rank, {}).items()):
        filled.pop(name, None)
        if value is not None:
            filled[name] = value.format(**places)
    return filled


def _await(jobs: Mapping[int, subprocess.Popen[bytes]], limit: float, mark: str) -> set[str]:
    """Wait until all have ended, or are stopped; returns the files in /dev/shm that their processes have mapped."""
    memory: set[str] = set()
    while time.monotonic() < limit and any(job.poll() is None and not _stopped(job.pid) for job in jobs.values()):
        for process in _processes(mark):
            memory |= set(re.findall(r"/dev/shm/mpich_shm_\w+", _read(f"/proc/{process}/maps").decode()))
        time.sleep(0.1)
    return memory


def _stopped(process: int) -> bool:
    return b"State:\tT" in _read(f"/proc/{process}/status")


def _wake(jobs: Mapping[int, subprocess.Popen[bytes]]) -> None:
    for job in jobs.values():
        if job.poll() is None and _stopped(job.pid):
            job.send_signal(signal.SIGCONT)


def _left(mark: str, memory: set[str]) -> list[str]:
    """The processes and the files that are still there after some seconds; the processes are killed then."""
    limit = time.monotonic() + _LINGERING
    while (processes := list(_processes(mark))) and time.monotonic() < limit:
        time.sleep(0.05)
    found = [f"left {path}" for path in sorted(memory) if os.path.exists(path)]
    for process in processes:
        found.append(f"left process {process}: {_read(f'/proc/{process}/cmdline')[:200].decode().split(chr(0))}")
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return found


def _processes(mark: str) -> Iterator[int]:
    """The processes that have a variable, which those that they start inherit."""
    for path in glob.glob("/proc/[0-9]*/environ"):
        if mark.encode() in _read(path) and b"State:\tZ" not in _read(path.replace("environ", "status")):
            yield int(path.split("/")[2])


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


@contextlib.contextmanager
def _listening(what: str) -> Iterator[str]:
    """A port that something else has, as a text: a socket that never answers, a server of HTTP, or another job."""
    if what == "job":
        store = TCPStore("127.0.0.1", 0, is_master=True)
        PrefixStore("job1", store).multi_set(["size", "joined/0", "joined/1"], ["2", "1", "1"])
        yield str(store.port)
        store.close()
    elif what == "http":
        with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield str(server.server_port)
            server.shutdown()
    else:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(8)
            yield str(listener.getsockname()[1])
