"""`python -m tests.distributed.public [NAMES] --folder F`: run public distributed programs here and with PyTorch.

Each program is run by PyTorch's torchrun (or starts its processes itself), and by each of tritensor's launchers, with
the same random numbers; the losses that each process computes gradients of, the parameters at its end and lines that
it prints have to be the same within rounding. Two interpreters are needed: `--python` with the libraries and without
PyTorch, `--torch` with both. `--folder` holds the sources: README.md names the repositories.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path

from . import compared, started
from .cases import PROGRAMS, Program


def prepared(program: Program, sources: Path, folder: Path) -> Path:
    """A new folder of a run, with a copy of the program and its data in `work`."""
    shutil.rmtree(folder, ignore_errors=True)
    for each in ("watched", "temporary"):
        (folder / each).mkdir(parents=True)
    if program.source:
        skipped = shutil.ignore_patterns("*.pdf", "*.ipynb", "__pycache__", "figs", "assets", "visuals")
        shutil.copytree(sources / program.source, folder / "work", ignore=skipped)
    else:
        (folder / "work").mkdir()
    if program.prepare:
        program.prepare(folder / "work")
    return folder


def reference(program: Program, folder: Path, options: argparse.Namespace) -> str | None:
    """PyTorch's run, unless it is kept from before; what went wrong."""
    if program.checks_itself:
        return None
    done, described = folder / "done", repr(program._replace(prepare=None))
    if options.keep and done.exists() and done.read_text() == described:
        return None
    arguments = program.arguments if program.theirs is None else program.theirs
    for left in (2, 1, 0):  # gloo's threads may abort a process that leaves
        prepared(program, Path(options.folder).absolute(), folder)
        wanted = started.command(program, arguments, folder)
        commands = started.by_torch(options.torch, wanted, program.ranks, program.starts)
        environment = started.variables(program, folder, "torch", options.torch)
        ended = started.run(commands, environment, folder, options.limit)
        if not any(ended.statuses):
            break
        if not left or "terminate called without an active exception" not in ended.text:
            return f"PyTorch's run ended with {ended.statuses}: {last_words(ended.text)}"
    if not program.printed and not compared.values(folder):
        return "PyTorch's run leaves nothing to compare"
    done.write_text(described)
    return None


def last_words(text: str) -> str:
    """The line of a run's output that says best why it failed."""
    found = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [
        line for line in found if re.match(r"(\[?rank\d+\]?: ?)?[\w.]*(Error|Exception|MissingName)\b:?|killed", line)
    ]
    errors = [line for line in errors if "ChildFailed" not in line and "executing job" not in line] or errors
    return (errors or found[-1:] or ["nothing was printed"])[0][:300]


def row(program: Program, launcher: str, theirs: Path, options: argparse.Namespace) -> tuple[float, list[str]]:
    """The seconds of a run of tritensor, and what is wrong with it."""
    folder = prepared(program, Path(options.folder).absolute(), Path(options.kept) / f"{program.name}.{launcher}")
    one = launcher == "one"
    arguments = program.one if one and program.one is not None else program.arguments
    wanted = started.command(program, arguments, folder)
    ranks = 1 if one else program.ranks
    kind = "environment" if one else launcher
    commands = started.by_tritensor(options.python, wanted, ranks, kind, options.mpiexec)
    environment = started.variables(program, folder, "tritensor", options.python)
    if one:  # a process group of one, for programs that ask for it
        environment |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(started.free_port())}
    ended = started.run(commands, environment, folder, options.limit)
    seconds, text = ended.seconds, ended.text
    if any(ended.statuses):
        return seconds, [f"ended with {ended.statuses}: {last_words(text)}"]
    wrong = [f"left running: {command}" for command in ended.left]
    if program.checks_itself:
        return seconds, wrong
    wrong += list(compared.differences(folder, theirs, program.close, only_parameters=one))
    if program.printed and not one:
        known = (theirs / "printed.txt").read_text(errors="replace")
        wrong += compared.other_lines(text, known, program.printed, program.close)
    return seconds, wrong


def launchers_of(program: Program, options: argparse.Namespace) -> list[str]:
    """The ways to start a program that are asked for."""
    found = ["itself"] if program.starts else [*options.launchers]
    return [*found, "one"] if program.one is not None and "one" in options.also else found


def main() -> int:
    """Print a line for each run; returns 1 if one of them is not as PyTorch's."""
    parser = argparse.ArgumentParser(prog="python -m tests.distributed.public", description=__doc__)
    parser.add_argument("name", nargs="*", help="the programs; all by default")
    parser.add_argument("--folder", required=True, help="holds the repositories that the programs are from")
    parser.add_argument("--python", default=sys.executable, help="has the libraries, and no PyTorch")
    parser.add_argument("--torch", default=sys.executable, help="has the libraries and PyTorch")
    parser.add_argument("--launchers", nargs="+", choices=started.LAUNCHERS, default=list(started.LAUNCHERS))
    parser.add_argument("--mpiexec", default="mpiexec", help="the command of that launcher")
    parser.add_argument("--simulate", action="store_true", help="programs for CUDA devices too, on simulated ones")
    parser.add_argument("--also", nargs="*", default=["one"], help="also one process, where it computes the same")
    parser.add_argument("--limit", type=float, default=300, help="seconds of a run")
    parser.add_argument("--keep", metavar="FOLDER", help="where runs stay, and PyTorch's, which are not run again then")
    parser.add_argument("--only-torch", action="store_true", help="PyTorch's runs only")
    options = parser.parse_args()
    known = {each.name: each for each in PROGRAMS}
    if unknown := set(options.name) - set(known):
        parser.error(f"no program {', '.join(sorted(unknown))}")
    chosen = [known[name] for name in options.name]
    chosen = chosen or [each for each in PROGRAMS if options.simulate or not each.devices]
    with tempfile.TemporaryDirectory() as made:
        options.kept = options.keep or made
        return table(chosen, options)


def table(chosen: list[Program], options: argparse.Namespace) -> int:
    """Run the programs one after the other, and print what came of it."""
    bad = runs = 0
    for program in chosen:
        theirs = Path(options.kept).absolute() / f"{program.name}.torch"
        if wrong := reference(program, theirs, options):
            print(f"{program.name:32} {'torch':12} {wrong}", flush=True)
            bad += 1
            continue
        if options.only_torch:
            seen = "not run" if program.checks_itself else sorted(compared.values(theirs))
            print(f"{program.name:32} {'torch':12} {seen}", flush=True)
            continue
        for launcher in launchers_of(program, options):
            seconds, wrong_here = row(program, launcher, theirs, options)
            runs += 1
            bad += bool(wrong_here)
            right = "passed its own checks" if program.checks_itself else "as PyTorch"
            words = wrong_here[0] if wrong_here else right
            print(f"{program.name:32} {launcher:12} {seconds:6.1f} s  {words}", flush=True)
            for each in wrong_here[1:4]:
                print(f"    {each}", flush=True)
    print(f"{runs} runs; wrong, with those of PyTorch that failed: {bad}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
