"""`python -m tests.kernels [PROGRAM ...]`: launch libraries' Triton kernels here, compare with PyTorch, print a table.

Two interpreters are needed: one with the libraries and Triton and without PyTorch (`--python`), and one with PyTorch,
which computes the references on the CPU (`--torch`); tests/kernels/install.sh makes both.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DEVICES = ("interpreted", "native", "sm_80", "sm_90")


def lines(command: list[str], log: Path, limit: float, environment: dict[str, str]) -> Iterator[dict[str, Any]]:
    """What a process says of its cases, until it ends or says nothing for a time; then it is killed."""
    with log.open("a") as errors:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
    said: queue.Queue[str | None] = queue.Queue()
    assert process.stdout is not None
    stream = process.stdout

    def read() -> None:
        for line in stream:
            if line.startswith('{"case"'):
                said.put(line)
        said.put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        while (line := said.get(timeout=limit)) is not None:
            yield json.loads(line)
    except queue.Empty:
        yield {"case": None, "error": f"takes longer than {limit:.0f} s", "seconds": limit}
    finally:
        process.kill()
        process.wait()


def run(
    python: str, program: str, device: str, order: str, names: list[str], options: argparse.Namespace, part: int = 0
) -> dict[str, Any]:
    """The cases of a program by name. A process that ends or hangs is started again for those that are left."""
    found: dict[str, Any] = {}
    log = Path(options.keep) / f"{program}.{device}.{order}{part or ''}.log"
    log.write_text("")
    while (left := [name for name in names if name not in found]) and time.monotonic() < options.until:
        before = len(found)
        command = [python, "-m", "tests.kernels.cases", program, options.keep, device, order, *left]
        if device != "reference" and order in ("run", "record"):
            command[1:3] = ["-m", "tritensor", "run", "-m", "tests.kernels.cases"]
        limit = min(options.limit, options.until - time.monotonic() + 5)
        for each in lines(command, log, limit, _environment()):
            each["case"] = each["case"] or next(name for name in left if name not in found)
            found[each["case"]] = each
            if options.verbose:
                words = each["error"] or f"agrees: {', '.join(each.get('agreed', ()))}"
                print(f"{device:12} {program}.{each['case']:32} {each['seconds']:7.1f} s  {words}", flush=True)
        if len(found) == before:  # it ended within a case, or before the first
            words = " ".join(log.read_text(errors="replace").strip().splitlines()[-1:])
            found[left[0]] = {"case": left[0], "error": f"the process ended: {words}"[:400], "seconds": 0}
    return found


def cases_of(program: str, options: argparse.Namespace) -> list[str]:
    """The names of a program's cases, in order."""
    command = [options.torch, "-m", "tests.kernels.cases", program, options.keep, "list", "run"]
    done = subprocess.run(command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{program}.py cannot be read: {done.stderr}")
    names: list[str] = json.loads(done.stdout)
    return [name for name in names if name in (options.case or [name])]


def _environment() -> dict[str, str]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    vendor = {"GEMS_VENDOR": "nvidia"}  # FlagGems asks for nvidia-smi otherwise
    return {**vendor, **os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}


def main() -> int:
    """Print the table; returns 1 if fewer kernels than needed agree on a device, or one makes something else."""
    parser = argparse.ArgumentParser(prog="python -m tests.kernels", description=__doc__)
    parser.add_argument("program", nargs="*", help="the programs; all by default")
    parser.add_argument("--case", action="append", help="only cases of this name")
    parser.add_argument("--device", action="append", help=f"of {', '.join(DEVICES)}, cuda (a real one); all simulated")
    parser.add_argument(
        "--order",
        default="run",
        choices=["run", "triton", "plain"],
        help="tritensor first; Triton first; or PyTorch first, and each kernel that was launched in the first order "
        "again by itself, on tensors of tritensor (FlagGems wants a GPU for that)",
    )
    parser.add_argument("--python", default=sys.executable, help="has the libraries")
    parser.add_argument("--torch", default=sys.executable, help="has PyTorch")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--parts", type=int, default=1, help="processes of a program on a device")
    parser.add_argument("--limit", type=float, default=120, help="seconds of a case")
    parser.add_argument("--minutes", type=float, default=600, help="of the whole")
    parser.add_argument("--keep", metavar="FOLDER", help="where logs and references stay")
    parser.add_argument("--need", type=int, default=0, help="how many kernels have to agree on each device")
    parser.add_argument("--verbose", action="store_true", help="a line for each case as it ends")
    options = parser.parse_args()
    options.until = time.monotonic() + 60 * options.minutes
    programs = sorted(each.stem for each in HERE.glob("programs/*.py"))
    if unknown := set(options.program) - set(programs):
        parser.error(f"no program {', '.join(sorted(unknown))}")
    programs = options.program or programs
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(options.jobs) as pool:
        options.keep = options.keep or made
        Path(options.keep).mkdir(exist_ok=True)
        return table(programs, options, pool)


def table(programs: list[str], options: argparse.Namespace, pool: ThreadPoolExecutor) -> int:
    """Run everything and print it."""
    devices = options.device or list(DEVICES)
    names = {each: cases_of(each, options) for each in programs}
    references = dict(zip(programs, pool.map(lambda each: _references(each, names[each], options), programs)))
    jobs = [(program, device, part) for device in devices for program in programs for part in range(options.parts)]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for (program, device, _), each in zip(jobs, pool.map(lambda job: _device(*job, names[job[0]], options), jobs)):
        found.setdefault((program, device), {}).update(each)
    print(f"{'case':44}" + "".join(f"{device:>13}" for device in devices))
    agreed: dict[str, set[str]] = {device: set() for device in devices}
    different: dict[str, set[str]] = {device: set() for device in devices}
    seen: set[str] = set()
    refused: dict[str, str] = {}
    for program in programs:
        for name in names[program]:
            row, reasons = [], {}
            for device in devices:
                each = found[program, device].get(name, {"error": "not begun", "seconds": 0})
                wrong = references[program].get(name) or each["error"]
                kernels, right = (
                    {f"{program}.{kernel}" for kernel in each.get(key, ())} for key in ("kernels", "agreed")
                )
                refused |= {f"{program}.{kernel}": reason for kernel, reason in each.get("refused", {}).items()}
                seen |= kernels or ({f"{program}.{name}"} if wrong else set())  # none: a kernel that it kept
                agreed[device] |= right
                different[device] |= kernels - right if (wrong or "").startswith("Different") else set()
                if wrong is None:
                    row.append(f"{each['seconds']:.1f} s")
                else:
                    row.append("-")
                    reasons.setdefault(wrong, []).append(device)
            print(f"{program + '.' + name:44}" + "".join(f"{each:>13}" for each in row))
            for reason, where in reasons.items():
                print(f"    {', '.join(where)}: {reason}")
    for device in devices:
        agreed[device] -= different[device]
        print(f"{device}: {len(agreed[device])} kernels agree, of {len(seen)} that were launched anywhere")
    for kernel in sorted(seen - set.intersection(*agreed.values())):
        print(f"    {kernel}: only on {', '.join(each for each in devices if kernel in agreed[each]) or 'no device'}")
    for kernel, reason in sorted(refused.items()):
        print(f"    {kernel}: interpreted on native: {' '.join(reason.split())[:400]}")
    return int(min(map(len, agreed.values())) < options.need or any(different.values()))


def _device(program: str, device: str, part: int, names: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """A part of a program's cases on a device, in the order that is asked for."""
    names = names[part :: options.parts]
    if options.order != "plain":
        return run(options.python, program, device, options.order, names, options, part)
    recorded = run(options.python, program, device, "record", names, options, part)
    names = [name for name in names if name in recorded and not recorded[name]["error"]]
    return recorded | run(options.torch, program, device, "plain", names, options, part)


def _references(program: str, names: list[str], options: argparse.Namespace) -> dict[str, str | None]:
    """Compute a program's references, those that are not known; returns the errors by case."""
    source = (HERE / "programs" / f"{program}.py").stat().st_mtime
    known = {name: Path(options.keep) / f"{program}.{name}.npz" for name in names}
    left = [name for name, path in known.items() if not path.exists() or path.stat().st_mtime < source]
    found = run(options.torch, program, "reference", "run", left, options)
    return {name: f"the reference: {each['error']}" if each["error"] else None for name, each in found.items()}


if __name__ == "__main__":
    sys.exit(main())
