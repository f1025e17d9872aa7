"""Run cases of one program: `python -m tests.kernels.cases PROGRAM FOLDER DEVICE ORDER [CASE ...]`.

A line of JSON for each case is printed: its name, null or the error that ended it, and the kernels that it launched.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..libraries.cases import tell

SIMULATED = {
    "interpreted": {"engine": "interpreter"},
    "native": {"engine": "native"},
    "sm_80": {"compiled": True, "capability": (8, 0)},
    "sm_90": {"compiled": True, "capability": (9, 0)},
}


def main(program: str, folder: str, device: str, order: str, *wanted: str) -> None:
    """Run the cases whose names are wanted, or all."""
    warnings.simplefilter("ignore")
    if order == "triton":  # as a program that imports Triton before tritensor, and starts it itself
        importlib.import_module("triton.language")
        importlib.import_module("tritensor.scripts.names").install()
    if order == "plain":  # PyTorch is there too, and the program passes tensors of tritensor to kernels
        importlib.import_module("torch")
    torch: Any = importlib.import_module("tritensor" if order == "plain" else "torch")
    with contextlib.ExitStack() as stack:
        if device in SIMULATED:
            stack.enter_context(torch.cuda.simulate(**SIMULATED[device]))
        if order == "plain":
            replay(program, Path(folder), wanted)
        else:
            launch(program, Path(folder), device, order, wanted)


def launch(program: str, folder: Path, device: str, order: str, wanted: Iterable[str]) -> None:
    """Run cases, and compare with the references, or compute these."""
    import numpy as np

    launched: list[Any] = []
    refused: dict[str, str] = {}
    if device not in ("list", "reference"):
        _tune_once()
        launched = _watch(order == "record")
    if device == "native":
        refused = _watch_native()
    module = importlib.import_module(f"tests.kernels.programs.{program}")
    declared = importlib.import_module("tests.kernels.declared")
    cases = declared.cases_of(module)
    if device == "list":
        print(json.dumps(list(cases)))
        return
    for name in wanted or cases:
        case, begun, failure = cases[name], time.perf_counter(), None
        del launched[:]
        refused.clear()
        try:
            path = folder / f"{program}.{name}.npz"
            if device == "reference":
                np.savez(path, **declared.Run(case, "cpu", True).results())
            else:
                found = declared.Run(case, "cuda", False).results()
                with np.load(path) as reference:
                    declared.compare(found, dict(reference), case.tolerance)
        except BaseException as error:
            failure = error
        if order == "record" and failure is None:
            importlib.import_module("tests.kernels.launches").write(folder / f"{program}.{name}.launches", launched)
        kernels = [each.kernel if order == "record" else each for each in launched]
        kernels = [*dict.fromkeys(kernels)]
        tell(name, failure, begun, kernels=kernels, agreed=[] if failure else kernels, refused=refused)
        if failure is not None and device == "cuda":
            return  # an error may have taken the context of the process with it


def replay(program: str, folder: Path, wanted: Iterable[str]) -> None:
    """Make the launches that were recorded of cases again, each of its kernel alone."""
    launches = importlib.import_module("tests.kernels.launches")
    declared = importlib.import_module("tests.kernels.declared")
    cases = declared.cases_of(importlib.import_module(f"tests.kernels.programs.{program}"))
    for name in wanted:
        begun, failure, kernels, right = time.perf_counter(), None, [], []
        for each in launches.read(folder / f"{program}.{name}.launches"):
            kernels.append(each.kernel)
            try:
                declared.compare(*launches.repeat(each), cases[name].tolerance)
                right.append(each.kernel)
            except BaseException as error:
                failure = error
        agreed = [each for each in dict.fromkeys(right) if kernels.count(each) == right.count(each)]
        tell(name, failure, begun, kernels=[*dict.fromkeys(kernels)], agreed=agreed)


def _tune_once() -> None:
    """Let autotuners take their first configuration that fits: running dozens of each takes minutes in simulation.

    That an autotuner chooses is the matter of tests/runtime.
    """
    tuner: Any = importlib.import_module("triton.runtime.autotuner").Autotuner
    refused = importlib.import_module("triton.runtime.errors").TritonError, AssertionError
    pruned, never = tuner.prune_configs, [float("inf")] * 3

    def prune(self: Any, values: Any) -> Any:
        self._fits = False
        return pruned(self, values)

    def bench(self: Any, *args: Any, config: Any, **meta: Any) -> list[float]:
        if self._fits:
            return never
        values = {**meta, **config.all_kwargs(), "warmup": True}
        if config.pre_hook:
            config.pre_hook({**self.nargs, **values})
        try:
            self.fn.run(*args, **values)._init_handles()
        except refused:
            return never
        self._fits = True
        return [1.0] * 3

    tuner.prune_configs, tuner._bench = prune, bench


def _watch(record: bool) -> list[Any]:
    """The kernels that are launched from now on, as they are launched: their names, or all that is needed to repeat
    them."""
    jit: Any = importlib.import_module("triton.runtime.jit").JITFunction
    theirs: Callable[..., Any] = jit.run
    launched: list[Any] = []

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("warmup"):
            return theirs(self, *args, **kwargs)
        if not record:
            launched.append(self.fn.__name__)
            return theirs(self, *args, **kwargs)
        made = importlib.import_module("tests.kernels.launches").begin(self, args, kwargs)
        found = theirs(self, *args, **kwargs)
        launched.append(made.end())
        return found

    run.__wrapped__ = theirs  # type: ignore[attr-defined]
    jit.run = run
    return launched


def _watch_native() -> dict[str, str]:
    """The kernels that a simulation of native code leaves to the interpreter from now on, and why."""
    native: Any = importlib.import_module("tritensor.drivers.native.driver")
    theirs: Callable[..., Any] = native.NativeSimulator._native
    refused: dict[str, str] = {}

    def launch(self: Any, stream: Any, request: Any) -> Any:
        work = theirs(self, stream, request)
        if work is None:
            reason = "an argument that native code does not take"
            if native._collect(request.arguments, request.kernel.elements, []):
                reason = request.compiled(native.engine(""), stream)[0].kernel.refusal
            refused[request.kernel.__name__] = reason
        return work

    native.NativeSimulator._native = launch
    return refused


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # what libraries leave behind (threads, databases) does not end a process at once
