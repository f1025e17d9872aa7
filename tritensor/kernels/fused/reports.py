"""What is said of a plan's units: the program's lines that noted them, and why a group's kernel was refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...autograd import watched
from ...errors import DeviceError, KernelError, explain, warn
from ...operators import Operator
from ...operators.deferring import Step
from ...runtime.replay import table
from ...tensors import wrap
from ...types import devices

#: by operator and device, why a group's kernel was refused; forgotten where a setting changes, as plans are
refused: dict[Any, str] = table()  # type: ignore[assignment]


def noted_at(steps: Sequence[Step]) -> str:
    """The lines that noted steps: "mul, add at train.py:12 in loss; exp at train.py:13 in loss"."""
    found: dict[tuple[str, int, str], list[str]] = {}
    for step in steps:
        found.setdefault(step.line, []).append(step.operator.name)
    return "; ".join(f"{', '.join(names)} at {path}:{line} in {name}" for (path, line, name), names in found.items())


def refusal(error: Exception) -> str:
    """Why a kernel could not be compiled or launched; empty for other errors.

    Such an error has a cause: what the compiler, the interpreter or the driver raised. What is wrong with memory, or
    found by a check, has none, or is of another type.
    """
    return str(error) if isinstance(error, (KernelError, DeviceError)) and error.__cause__ is not None else ""


def refuse(operator: Operator, device: devices.device, why: str, steps: Sequence[Step]) -> None:
    """Remember that a group's kernel was refused, and warn of it the first time."""
    if refused.setdefault((operator, device), why) is why:
        first, last = why.splitlines()[0], why.splitlines()[-1].strip()
        words = f"torch.compile computes one by one {noted_at(steps)}: {first}: {last}"
        remedy = "report it, with e = torch.compiler.explain(function)(...): print(e, *e.kernels)"
        warn(explain(words, remedy=remedy))


def watch(
    name: str, steps: Sequence[Step], compute: Callable[[], object], values: Sequence[Any], wanted: Sequence[int]
) -> None:
    """Let `compute` put results in their places, as an event of what looks on, with the line of the first step."""

    def results() -> Any:
        compute()
        return tuple([wrap(values[place]) for place in wanted])

    path, line, function = steps[0].line
    run: Callable[[], Any] = results
    for each in watched.computing:
        run = partial(each, name, f"{function}, {os.path.basename(path)}:{line}", run)
    run()
