"""Run the cases of one program: `python -m tests.libraries.cases PROGRAM FOLDER write|read [CASE ...]`.

A line of JSON for each case is printed: its name, and null or the error that ended it. A program is a file with
functions `case_NAME(carry)`; see `carried`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any


class Different(AssertionError):
    """A result is not PyTorch's."""


def main(program: str, folder: str, how: str, *wanted: str) -> None:
    """Run the cases whose names are wanted, or all."""
    from .carried import Carried

    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", WANDB_MODE="disabled")
    warnings.simplefilter("ignore")
    begun = time.perf_counter()
    path = Path(program)
    spec = importlib.util.spec_from_file_location(f"program_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    try:
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    except BaseException as error:
        tell("import", error, begun)
        return
    tell("import", None, begun)
    for name, case in list(vars(module).items()):  # a warning adds a name
        if name.startswith("case_") and (not wanted or name[5:] in wanted):
            begun, failure = time.perf_counter(), None
            try:
                carry = Carried(Path(folder) / f"{path.stem}.{name[5:]}.npz", how == "write")
                case(carry)
                carry.end()
            except BaseException as error:
                failure = error
            tell(name[5:], failure, begun)


def tell(name: str, error: BaseException | None, begun: float, **more: Any) -> None:
    """Print how a case ended, in a line of its own; an error's traceback goes to stderr."""
    words = None
    if error is not None:
        print(f"== {name}", file=sys.stderr)
        traceback.print_exception(error)
        words = f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]
    said = {"case": name, "error": words, "seconds": round(time.perf_counter() - begun, 2), **more}
    print("\n" + json.dumps(said), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
