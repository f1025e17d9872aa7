"""`python -m tests.libraries [LIBRARY ...]`: run each library's program here and beside PyTorch, and print a table.

Two interpreters are needed, as `python -m venv` makes them: one with the libraries and without PyTorch, and one with
both. `--python` names the first, `--torch` the other; each is this one unless named. CONTRIBUTING.md says how to fill
them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "libraries.md"
BEGIN, END = "<!-- made by `python -m tests.libraries --page` -->", "<!-- end -->"
DISTRIBUTIONS = {"pyro": "pyro-ppl"}  # under another name than the module's
LONGEST = 600  # seconds of a program


def run(python: str, program: Path, folder: str, how: str, wanted: list[str]) -> dict[str, dict[str, object]]:
    """The cases of a program by name, each with its error or None, and its seconds."""
    command = [python, "-m", "tests.libraries.cases", str(program), folder, how, *wanted]
    if how == "read":
        command[1:3] = ["-m", "tritensor", "run", "-m", "tests.libraries.cases"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
        )
        text, errors = done.stdout, done.stderr
    except subprocess.TimeoutExpired as expired:
        text, errors = str(expired.stdout or b"", "utf-8"), "it takes too long"
    (Path(folder) / f"{program.stem}.{how}.log").write_text(errors)
    found = [json.loads(line) for line in text.splitlines() if line.startswith('{"case"')]
    if not found:
        found = [{"case": "import", "error": (errors.strip().splitlines() or ["it ended"])[-1][:400], "seconds": 0}]
    return {each["case"]: each for each in found}


def row(program: Path, folder: str, arguments: argparse.Namespace) -> tuple[str, list[str], list[str]]:
    """The name of a library, the cases that are as PyTorch's, and those that are not with the reason."""
    wanted = arguments.case or []
    known = Path(folder) / f"{program.stem}.json"
    if arguments.keep and known.exists() and known.stat().st_mtime > program.stat().st_mtime and not wanted:
        theirs = json.loads(known.read_text())
    else:
        theirs = run(arguments.torch, program, folder, "write", wanted)
        if not wanted:
            known.write_text(json.dumps(theirs))
    ours = run(arguments.python, program, folder, "read", wanted)
    good, bad = [], []
    for name, each in theirs.items():
        if name == "import" and each["error"] is None and ours["import"]["error"] is None:
            continue
        mine = ours.get(name, ours["import"])
        if each["error"] is not None:
            bad.append(f"{name}: with PyTorch, {each['error']}")
        elif mine["error"] is not None or name not in ours:
            bad.append(f"{name}: {mine['error'] or 'the process ended'}")
        else:
            good.append(name)
    return program.stem, good, bad


def versions(python: str, names: list[str]) -> dict[str, str]:
    """The installed version of each library."""
    wanted = [DISTRIBUTIONS.get(name, name).replace("_", "-") for name in names]
    code = "import importlib.metadata as m, sys; print(*[m.version(name) for name in sys.argv[1:]])"
    found = subprocess.run([python, "-c", code, *wanted], capture_output=True, text=True, check=True).stdout.split()
    return dict(zip(names, found, strict=True))


def write_page(rows: list[tuple[str, list[str], list[str]]], found: dict[str, str]) -> None:
    """The table in the page of libraries, between its two marks."""
    lines = ["| library | version | cases as with PyTorch | what is short |", "|---|---|---|---|"]
    for name, good, bad in rows:
        reasons: dict[str, list[str]] = {}
        for each in bad:
            case, _, reason = each.partition(": ")
            reasons.setdefault(re.sub(r" /\S+.*| Fix: .*", "", reason)[:160].replace("|", "/"), []).append(case)
        short = "; ".join(f"{', '.join(f'`{case}`' for case in cases)}: {why}" for why, cases in reasons.items())
        lines.append(f"| {name} | {found[name]} | {len(good)} of {len(good) + len(bad)} | {short} |")
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


def main() -> int:
    """Print the table; returns 1 if a library is not whole."""
    parser = argparse.ArgumentParser(prog="python -m tests.libraries", description=__doc__)
    parser.add_argument("library", nargs="*", help="the libraries; all by default")
    parser.add_argument("--case", action="append", help="only cases of this name")
    parser.add_argument("--python", default=sys.executable, help="has the libraries, and no PyTorch")
    parser.add_argument("--torch", default=sys.executable, help="has the libraries and PyTorch")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument(
        "--keep", metavar="FOLDER", help="where logs stay, and PyTorch's results, which are not computed again then"
    )
    parser.add_argument("--page", action="store_true", help="write the table to docs/libraries.md")
    arguments = parser.parse_args()
    programs = sorted(HERE.glob("programs/*.py"))
    unknown = set(arguments.library) - {each.stem for each in programs}
    if unknown:
        parser.error(f"no program for {', '.join(sorted(unknown))}")
    if arguments.library:
        programs = [each for each in programs if each.stem in arguments.library]
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(arguments.jobs) as pool:
        folder = arguments.keep or made
        Path(folder).mkdir(exist_ok=True)
        rows = []
        for found in pool.map(lambda each: row(each, folder, arguments), programs):
            name, good, bad = found
            print(f"{name:32} {len(good):3d} of {len(good) + len(bad):3d}", flush=True)
            for each in bad:
                print(f"    {each}", flush=True)
            rows.append(found)
    if arguments.page:
        write_page(rows, versions(arguments.python, [name for name, _, _ in rows]))
    whole = sum(not bad for _, _, bad in rows)
    print(f"{whole} of {len(rows)} libraries are whole")
    return int(whole < len(rows))


if __name__ == "__main__":
    sys.exit(main())
