"""Run cases of one program: `python -m tests.kernels.cases PROGRAM FOLDER DEVICE ORDER [CASE ...]`.

A line of JSON for each case is printed: its name, null or the error that ended it, and the kernels that it launched.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

SIMULATED = {
    "interpreted": {"compiled": False},
    "sm_80": {"compiled": True, "capability": (8, 0)},
    "sm_90": {"compiled": True, "capability": (9, 0)},
}


def main(program: str, folder: str, device: str, order: str, *wanted: str) -> None:
    """Run the cases whose names are wanted, or all."""
    warnings.simplefilter("ignore")
    if order == "triton":  # as a program that imports Triton before tritensor, and starts it itself
        importlib.import_module("triton.language")
        importlib.import_module("tritensor.scripts.names").install()
    torch: Any = importlib.import_module("torch")
    with contextlib.ExitStack() as stack:
        if device in SIMULATED:
            stack.enter_context(torch.cuda.simulate(**SIMULATED[device]))
        _run(program, Path(folder), device, wanted)


def _run(program: str, folder: Path, device: str, wanted: tuple[str, ...]) -> None:
    import numpy as np

    launched: list[str] = []
    if device not in ("list", "reference"):
        _tune_once()
        launched = _watch()
    module = importlib.import_module(f"tests.kernels.programs.{program}")
    declared = importlib.import_module("tests.kernels.declared")
    cases = declared.cases_of(module)
    if device == "list":
        print(json.dumps(list(cases)))
        return
    for name in wanted or cases:
        case, begun, failure = cases[name], time.perf_counter(), None
        del launched[:]
        try:
            path = folder / f"{program}.{name}.npz"
            if device == "reference":
                np.savez(path, **declared.Run(case, "cpu", True).results())
            else:
                found = declared.Run(case, "cuda", False).results()
                with np.load(path) as wanted_results:
                    declared.compare(case, found, dict(wanted_results))
        except BaseException as error:
            failure = error
        tell(name, failure, begun, launched)
        if failure is not None and device == "cuda":
            return  # an error may have taken the context of the process with it


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


def _watch() -> list[str]:
    """The names of the kernels that are launched from now on, as they are launched."""
    jit: Any = importlib.import_module("triton.runtime.jit").JITFunction
    theirs, names = jit.run, []

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("warmup"):
            names.append(self.fn.__name__)
        return theirs(self, *args, **kwargs)

    run.__wrapped__ = theirs  # type: ignore[attr-defined]
    jit.run = run
    return names


def tell(name: str, error: BaseException | None, begun: float, launched: list[str]) -> None:
    """Print how a case ended; an error's traceback goes to stderr."""
    words = None
    if error is not None:
        print(f"== {name}", file=sys.stderr)
        traceback.print_exception(error)
        words = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
    seconds = round(time.perf_counter() - begun, 2)
    kernels = list(dict.fromkeys(launched))
    print("\n" + json.dumps({"case": name, "error": words, "seconds": seconds, "kernels": kernels}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
