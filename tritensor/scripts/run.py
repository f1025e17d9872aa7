"""`python -m tritensor run SCRIPT [ARGS]`: a program that imports torch, run by tritensor."""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from .. import settings
from ..drivers import require
from ..errors import DeviceError
from . import names

_SHIMS = Path(__file__).parent / "shims"
_OF_PYTHON = (str(Path(__file__).parent), "<frozen runpy>", runpy.__file__)
_SHOWN = 25  # functions of a profile


def main(arguments: Sequence[str]) -> int:
    """Run a program as `python SCRIPT ARGS` would, with `torch` and `torchvision` from tritensor.

    Processes that it starts import the same. Under mpiexec or srun it finds the variables that torchrun sets.
    Returns the exit status: 0, or 1 after an exception, which is printed.

    Raises:
        SystemExit: the program called `sys.exit`, or the options are wrong.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tritensor run",
        description="Run a program written for PyTorch: its imports of torch and torchvision find tritensor.",
    )
    parser.add_argument("--simulate-cuda", type=int, metavar="N", help="with N simulated CUDA devices")
    parser.add_argument("--checked", action="store_true", help="compare every kernel with its reference")
    parser.add_argument("--profile", action="store_true", help="print the functions that took most time")
    options = parsed(parser, arguments)
    simulate(parser, options.simulate_cuda)
    if options.checked:
        _set(settings.check, True)
    profile = cProfile.Profile()
    try:
        if options.profile:
            profile.enable()
        return execute(options)
    finally:
        if options.profile:
            profile.disable()
            pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(_SHOWN)


def simulate(parser: argparse.ArgumentParser, devices: int | None) -> None:
    """Simulate CUDA devices in this process and those that it starts, if the option for it was given.

    Raises:
        SystemExit: it cannot be done.
    """
    if devices is None:
        return
    if devices < 0:
        parser.error(f"--simulate-cuda: expected a number of at least 0, got {devices}")
    _set(settings.simulate_cuda, devices)
    try:
        _ = devices and require()
    except DeviceError as error:
        parser.error(str(error))


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command that runs a program, with the program (`script`, `module`) and its `arguments`.

    Raises:
        SystemExit: they are wrong, or there is no such file.
    """
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name, as for python -m")
    parser.add_argument("script", help="the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments, options too").required = False
    options = parser.parse_args(arguments)
    if not options.module and not Path(options.script).exists():
        parser.error(f"there is no file {options.script!r}")
    return options


def execute(options: argparse.Namespace) -> int:
    """Run the program that options name by `script`, `module` and `arguments`; returns the exit status."""
    _prepare(options)
    try:
        if options.module:
            runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(options.script, run_name="__main__")
    except Exception as error:
        error = error.with_traceback(_from_program(error.__traceback__))
        if "TORCHELASTIC_ERROR_FILE" in os.environ:  # a launcher tells it again
            from ..distributed.elastic.multiprocessing.errors import record_exception

            record_exception(error)
        # prints it, and ends the job of a rank
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _set(setting: settings.Setting[int] | settings.Setting[bool], value: int) -> None:
    """For this process, which has read its environment already, and for those that it starts."""
    setting.value = value
    os.environ[setting.variable] = str(int(value))


def provide() -> None:
    """Let the processes that this one starts find tritensor, and as torch, too."""
    own = [str(_SHIMS), str(Path(__file__).parents[2])]
    there = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path not in own]
    os.environ["PYTHONPATH"] = os.pathsep.join([*own, *there])


def _prepare(options: argparse.Namespace) -> None:
    """The arguments and the path that the program finds, and the environment of the processes that it starts."""
    provide()
    if any(name in os.environ for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")):
        from ..distributed import launchers  # only here: 60 ms

        os.environ |= launchers.as_torchrun()
    sys.argv = [options.script, *options.arguments]
    sys.path.insert(1, str(_SHIMS))
    if not options.module:
        sys.path.insert(0, str(Path(options.script).resolve().parent))
    names.install()


def _from_program(found: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames that lead to the program's first."""
    while found is not None and found.tb_frame.f_code.co_filename.startswith(_OF_PYTHON):
        found = found.tb_next
    return found
