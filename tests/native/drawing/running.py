"""Runs a drawn kernel in two engines, compares, and searches for the smallest that differs."""

from __future__ import annotations

import importlib.util
import re
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import tritensor as torch
from tritensor import settings
from tritensor.drivers.native import driver as native

from .kinds import NUMPY, OURS, Program


def on_device(array: np.ndarray) -> torch.Tensor:
    bits = array.view(np.uint8) if array.dtype.kind != "b" else array
    return (
        torch.tensor(bits).cuda().view(OURS[SHORT[array.dtype]])
        if array.dtype.kind != "b"
        else torch.tensor(array).cuda()
    )


def off_device(tensor: torch.Tensor, like: np.ndarray) -> np.ndarray:
    if like.dtype.kind == "b":
        return np.asarray(tensor.cpu().numpy())
    return np.asarray(tensor.view(torch.uint8).cpu().numpy()).view(like.dtype)


SHORT = {t: d for d, t in NUMPY.items()}
_modules = count()


def loaded(source: str, folder: Path) -> Any:
    """The kernel of a source, as a module of its own."""
    name = f"drawn_{next(_modules)}"
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@dataclass
class Ran:
    """What a launch left behind."""

    arrays: dict[str, np.ndarray]
    error: str = ""
    refusal: str = ""


def run(program: Program, kernel: Any, engine: str) -> Ran:
    """Launch a drawn kernel."""
    shift = program.arguments.get("overlap")
    with torch.cuda.simulate(engine=engine):
        tensors: dict[str, torch.Tensor] = {}
        values: list[Any] = []
        for name, value in program.arguments.items():
            if name == "overlap":
                continue
            if not isinstance(value, np.ndarray):
                values.append(value)
                continue
            twin = tensors.get("s" + name[1:]) if name[0] == "t" else None
            if twin is not None and shift is not None:  # lies over the other
                whole = torch.cat([twin, twin[:shift]]) if shift else twin
                place = next(i for i, v in enumerate(values) if v is twin)
                tensors["s" + name[1:]] = values[place] = whole[: len(value)]
                tensors[name] = whole[shift : shift + len(value)]
            else:
                tensors[name] = on_device(value)
            values.append(tensors[name])
        known = programs()
        before = set(map(id, known))
        error = ""
        try:
            kernel[program.grid](*values)
        except Exception as failed:
            error = f"{type(failed).__name__}: {failed}"
        made = [each for each in programs() if id(each) not in before and each.name == "kernel"]
        refusal = "not tried" if engine == "native" and not made else "".join(each.kernel.refusal for each in made[:1])
        return Ran({n: off_device(t, program.arguments[n]) for n, t in tensors.items()}, error, refusal)


def programs() -> list[Any]:
    return list(native.engine(settings.native_target.value).programs.values())


def differences(program: Program, one: Ran, two: Ran) -> list[str]:
    """What differs between native and interpreted."""
    if one.error or two.error:
        return (
            []
            if one.error == two.error
            else [f"native: {one.error or 'no error'}\ninterpreted: {two.error or 'no error'}"]
        )
    found = []
    for name in sorted(one.arrays):
        x, y = one.arrays[name], two.arrays[name]
        if x.dtype.kind in "fV":
            x, y = x.astype(np.float64), y.astype(np.float64)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            for array, start, end, rtol, atol in program.about:
                if array == name:
                    same[start:end] |= np.isclose(x[start:end], y[start:end], rtol, atol, equal_nan=True)
        else:
            same = x == y
        if not same.all():
            at = int(np.argmin(same))
            found.append(
                f"{name}: {int((~same).sum())} of {same.size} differ, [{at}] is {x[at]!r}, interpreted {y[at]!r}"
            )
    return found


@dataclass
class Outcome:
    """kind: same, different, Triton's (compiled for a card it differs alike), refused, or rejected (interpreted)."""

    kind: str
    detail: str = ""


def judged(program: Program, folder: Path) -> Outcome:
    try:
        kernel = loaded(program.source, folder)
    except SyntaxError as error:
        return Outcome("rejected", str(error))
    interpreted = run(program, kernel, "interpreter")
    if interpreted.error and "illegal memory" not in interpreted.error:
        return Outcome("rejected", interpreted.error)
    ours = run(program, kernel, "native")
    if ours.refusal:
        return Outcome("refused", ours.refusal)
    found = differences(program, ours, interpreted)
    if found:
        compiled = run(program, kernel, "compiled")
        if not compiled.error and not differences(program, ours, compiled):
            return Outcome("Triton's", "\n".join(found))
    return Outcome("different", "\n".join(found)) if found else Outcome("same", interpreted.error)


def used(lines: list[str], start: int) -> list[str]:
    """The lines without assignments of what nothing reads."""
    while True:
        text = Counter(re.findall(r"\w+", "\n".join(lines[start:])))
        kept = [
            line
            for at, line in enumerate(lines)
            if at < start or not (found := re.match(r" +([vcp]\d+) = ", line)) or text[found[1]] > 1
        ]
        if kept == lines:
            return lines
        lines = kept


def is_counting(line: str) -> bool:
    return bool(re.fullmatch(r" +k\d+ \+= 1", line))


def smallest(program: Program, folder: Path, wanted: Outcome, seconds: float = 60.0) -> Program:
    """The program without the lines that do not matter."""
    end = time.monotonic() + seconds
    lines = program.source.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("def kernel(")) + 1

    def with_lines(lines: list[str]) -> Program:
        return Program(program.seed, "\n".join(lines) + "\n", program.arguments, program.grid, program.about)

    def holds(lines: list[str]) -> bool:
        with suppress(Exception):
            found = judged(with_lines(lines), folder)
            return found.kind == wanted.kind and (
                wanted.kind == "different" or summary(found.detail) == summary(wanted.detail)
            )
        return False

    def block(at: int) -> int:
        depth = len(lines[at]) - len(lines[at].lstrip())
        last = at + 1
        while last < len(lines) and lines[last].strip() and len(lines[last]) - len(lines[last].lstrip()) > depth:
            last += 1
        return last

    without = used(lines, start)
    if without != lines and holds(without):
        lines = without
    changed, width = True, max(1, (len(lines) - start) // 2)
    while (changed or width > 1) and time.monotonic() < end:
        width = max(1, width // 2)
        changed = False
        at = len(lines) - 1
        while at >= start and time.monotonic() < end:
            low = max(start, at - width + 1)
            trials = [lines[:low] + lines[at + 1 :]] if width > 1 else [lines[:at] + lines[block(at) :]]
            if width == 1 and lines[at].rstrip().endswith(":"):
                last = block(at)
                trials.append(lines[:at] + [line[4:] for line in lines[at + 1 : last]] + lines[last:])
            counters = sum(map(is_counting, lines))
            for trial in trials:
                if sum(map(is_counting, trial)) < counters and not lines[at].lstrip().startswith("while "):
                    continue  # a loop without an end
                if len(trial) > start and holds(trial):
                    lines, changed = trial, True
                    break
            at = min(at, len(lines)) - width
    return with_lines(lines)


def summary(text: str) -> str:
    """The kind of a message."""
    found = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"v\d+|c\d+|\d+", "#", found[-1] if found else "")[:200]
