"""Starting a program's processes: by PyTorch's torchrun, by tritensor's launchers, by MPI, by hand, or by itself."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .cases import Program

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
# Those that start processes for a program that does not do it itself.
LAUNCHERS = ("launch", "run", "environment", "mpiexec")


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


def run(
    commands: Sequence[Sequence[str]], environment: Mapping[str, str], folder: Path, limit: float
) -> tuple[list[int], str, float]:
    """Run the processes to their end: their exit statuses, what they printed, and the seconds; killed at the limit."""
    begun, port, processes = time.monotonic(), free_port(), []
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
        finally:
            for made in processes:
                _kill(made)
    text = (folder / "printed.txt").read_text(errors="replace")
    return [made.wait() for made in processes], text, time.monotonic() - begun


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError as error:
        print(f"process {process.pid} cannot be ended: {error}", file=sys.stderr)
