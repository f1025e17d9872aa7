"""Starting a program's processes: by PyTorch's torchrun, by tritensor's launchers, by MPI, by hand, or by itself."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .cases import Program

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
# Those that start processes for a program that does not do it itself.
LAUNCHERS = ("launch", "run", "environment", "mpiexec")

_PATIENCE = 5.0  # seconds that what a program has started has to end, after the program itself


def free_port() -> int:
    """A port of this machine that nothing uses."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def command(program: Program, arguments: str, folder: Path) -> list[str]:
    """The program and its arguments, as they follow an interpreter."""
    places = {"folder": folder, "programs": HERE / "programs"}
    script = program.script.format(**places)
    if script.startswith("programs/"):
        script = str(HERE / script)
    return [*shlex.split(script), *shlex.split(arguments.format(**places))]


def by_torch(python: str, wanted: list[str], ranks: int, starts: bool) -> list[list[str]]:
    """PyTorch's commands: torchrun, or the program alone."""
    if starts:
        return [[python, *wanted]]
    return [[python, "-m", "torch.distributed.run", *_options(ranks), *wanted]]


def by_tritensor(python: str, wanted: list[str], ranks: int, launcher: str, mpiexec: str) -> list[list[str]]:
    """The commands of a launcher; `itself` and `one` run the program alone, or as one process."""
    alone = [python, "-m", "tritensor", "run", *wanted]
    if launcher == "launch":
        return [[python, "-m", "tritensor", "launch", *_options(ranks), *wanted]]
    if launcher == "run":
        return [[python, "-m", "tritensor", "run", "-m", "torch.distributed.run", *_options(ranks), *wanted]]
    if launcher == "mpiexec":
        return [[mpiexec, "-n", str(ranks), *alone]]
    return [alone] * (ranks if launcher == "environment" else 1)


def _options(ranks: int) -> list[str]:
    return [f"--nproc_per_node={ranks}", "--master_addr=127.0.0.1", f"--master_port={free_port()}"]


def variables(program: Program, folder: Path, own: str, python: str) -> dict[str, str]:
    """The environment of a program: who watches it, one thread, and nothing of the network."""
    chosen = {
        "WATCHED_AS": own,
        "WATCHED_FOLDER": str(folder / "watched"),
        "PYTHONPATH": os.pathsep.join([str(HERE / "watch"), str(ROOT)]),
        "PATH": os.pathsep.join([str(Path(python).parent), os.environ["PATH"]]),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TMPDIR": str(folder / "temporary"),
    }
    if program.devices and own == "tritensor":
        chosen["TRITENSOR_SIMULATE_CUDA"] = str(program.devices)
    elif program.devices and program.theirs is None:
        chosen["WATCHED_DEVICES"] = str(program.devices)
    chosen |= dict(each.split("=", 1) for each in program.environment.format(folder=folder).split())
    hidden = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "PYTHONPATH", "PYTHONUNBUFFERED")
    return {key: value for key, value in os.environ.items() if key not in hidden} | chosen


class Ended(NamedTuple):
    """How a run ended.

    Attributes:
        statuses: the exit statuses of the commands. text: what all processes printed. seconds: how long it took.
        left: processes that still ran a while after the commands had ended, and were killed.
    """

    statuses: list[int]
    text: str
    seconds: float
    left: list[str]


def run(commands: Sequence[Sequence[str]], environment: Mapping[str, str], folder: Path, limit: float) -> Ended:
    """Run the processes to their end; they are killed at the limit, and so is what they leave running."""
    begun, port, processes = time.monotonic(), free_port(), []
    patience = _PATIENCE
    with (folder / "printed.txt").open("w") as printed:
        for rank, each in enumerate(commands):
            own = dict(environment)
            if len(commands) > 1:
                own |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(len(commands))}
                own |= {"LOCAL_WORLD_SIZE": str(len(commands)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            made = subprocess.Popen(
                each,
                cwd=folder / "work",
                env=own,
                stdout=printed,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            processes.append(made)
        try:
            for made in processes:
                made.wait(max(0.1, begun + limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            printed.write(f"\nkilled after {limit:.0f} s\n")
            patience = 0.0
        finally:
            seconds = time.monotonic() - begun
            left = _end_all(environment["WATCHED_FOLDER"], patience)
    text = (folder / "printed.txt").read_text(errors="replace")
    return Ended([made.wait() for made in processes], text, seconds, left)


def _end_all(watched: str, patience: float) -> list[str]:
    """Kill the processes of a run that do not end within so many seconds: the commands of those."""
    end = time.monotonic() + patience
    while (found := _processes(watched)) and time.monotonic() < end:
        time.sleep(0.1)
    left = [*found.values()]
    while found:  # what has been started meanwhile, too
        for number in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.1)
        found = _processes(watched)
    return left


def _processes(watched: str) -> dict[int, str]:
    """The commands of a run's processes, by their numbers.

    Launchers start sessions and programs start processes of their own; what all inherit is the environment, in which
    the folder is that of this run alone.
    """
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"WATCHED_FOLDER={watched}".encode() in (path / "environ").read_bytes().split(b"\0"):
                found[int(path.name)] = (path / "cmdline").read_text(errors="replace").replace("\0", " ").strip()
        except OSError:  # it has ended, or is another user's
            continue
    return found
