"""The statements of a program once more, all of them noted as inside of a compiled function, beside a usual run.

python -m tests.programs.deferred --family all --count 1000 --seed 0
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from math import inf, nan
from typing import Any

import numpy as np

import tritensor
from tritensor.kernels.fused.plans import Plan
from tritensor.operators import deferring
from tritensor.tensors import Tensor

from .running import FAMILIES, devices, restore, run


def outcome(statements: Sequence[str], noted: bool) -> tuple[list[str | None], dict[str, Any]]:
    """The error of each statement, or None; and the names that are there in the end."""
    scope: dict[str, Any] = {"torch": tritensor, "inf": inf, "nan": nan}
    errors: list[str | None] = []
    tritensor.manual_seed(0)
    memory = deferring.Memory(Plan)

    def execute() -> None:
        for statement in statements:
            try:
                exec(statement, scope)
                errors.append(None)
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}".splitlines()[0])
            region = deferring.current.region
            if region is not None:
                for value in list(scope.values()):
                    if isinstance(value, Tensor):
                        region.enter(value)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if noted:
                with deferring.running(memory, ()):
                    execute()
            else:
                execute()
        finally:
            restore()
    return errors, scope


def described(value: Any) -> Any:
    """What is compared of a value."""
    if isinstance(value, Tensor):
        found = (str(value.dtype), tuple(value.shape), value.requires_grad, np.asarray(value.detach()._to_host()))
        return (*found, _node_of(value), described(value.grad))
    if isinstance(value, (tuple, list)):
        return [described(each) for each in value]
    return value if isinstance(value, (int, float, str, complex)) else None


def _node_of(value: Tensor) -> str | None:
    """The name of a tensor's node, or why it has none: its base was changed, which PyTorch forbids."""
    try:
        return None if value._node is None else type(value.grad_fn).__name__
    except RuntimeError as error:
        return str(error)


def differs(one: Any, other: Any) -> bool:
    """Whether two descriptions differ by more than rounding."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.dtype.kind in "biu" or one.shape != other.shape or one.dtype != other.dtype:
            return not np.array_equal(one, other) or one.dtype != other.dtype
        wide = [x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (one, other)]
        precise = {2: 2e-2, 1: 0.2}.get(one.dtype.itemsize, 1e-5)
        return not np.allclose(*wide, precise, precise, equal_nan=True)
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) != len(other) or any(map(differs, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return not np.allclose(one, other, 1e-4, 1e-5, equal_nan=True)
    return type(one) is not type(other) or (one != other and one == one)


def difference(statements: Sequence[str]) -> str | None:
    """What differs between the usual run and the noted one; None where nothing does."""
    errors, scope = outcome(statements, False)
    again, noted = outcome(statements, True)
    for statement, one, other in zip(statements, errors, again, strict=True):
        if one != other:
            return f"{statement}\n        {one}\n  noted {other}"
    for name, value in scope.items():
        if name.startswith("_"):
            continue
        one, other = described(value), described(noted.get(name))
        if differs(one, other):
            return f"{name}\n        {one}\n  noted {other}"
    return None


def differing(family: str, first: int, count: int) -> list[tuple[int, str]]:
    """The seeds of programs of which the noted run differs, and how."""
    found = []
    with devices("cpu"):
        for seed in range(first, first + count):
            problem = difference(run(family, seed).statements)
            if problem:
                found.append((seed, problem))
    return found


def main() -> int:
    """Print what differs, and how many programs were run; returns 1 if any differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs.deferred", description=__doc__)
    parser.add_argument("--family", choices=[*FAMILIES, "all"], default="all")
    parser.add_argument("--count", type=int, default=1000, help="programs of each family")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    total = 0
    for family in FAMILIES if options.family == "all" else (options.family,):
        found = differing(family, options.seed, options.count)
        total += len(found)
        for seed, problem in found:
            print(f"## {family}, seed {seed}\n{problem}\n")
        print(f"{family}: {options.count} programs, {len(found)} differ", flush=True)
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
