"""`python -m tritensor profile SCRIPT [ARGS]`: a program on a simulated device that counts what its kernels do."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ..cuda.profiling import CARDS, card, profile
from ..drivers import simulate
from .run import execute, parsed


def main(arguments: Sequence[str]) -> int:
    """Run a program as `python -m tritensor run` would, on one simulated device that runs compiled kernels, and print
    a line for each kernel. Returns the program's exit status, 1 after an exception.

    Raises:
        SystemExit: the options are wrong.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tritensor profile",
        description="Run a program on a simulated device; count what its kernels do and predict their time on a card.",
    )
    parser.add_argument("--card", default="h100", choices=list(CARDS), help="the card (default h100)")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="run N blocks of larger grids (default all)")
    parser.add_argument("--trace", type=Path, metavar="FILE.json", help="write a timeline for trace viewers")
    parser.add_argument("--roofline", type=Path, metavar="FILE.png", help="draw a roofline; needs matplotlib")
    options = parsed(parser, arguments)
    if options.sample < 0:
        parser.error(f"--sample: expected a number of at least 0, got {options.sample}")
    if find_spec("triton") is None:
        parser.error("profile needs Triton, which is not installed. Fix: pip install 'tritensor[triton]' (Linux)")
    named = card(options.card)
    simulated = simulate(1, named.memory, named.capability, named.name, compiled=True)
    with simulated, profile(named.name, options.sample) as p:
        try:
            return execute(options)
        finally:  # a program may end with sys.exit
            print(p)
            if options.trace:
                p.trace(options.trace)
                print(f"wrote {options.trace}, a timeline of predicted times, for chrome://tracing or ui.perfetto.dev")
            if options.roofline:
                p.roofline(options.roofline)
                print(f"drew {options.roofline}")
