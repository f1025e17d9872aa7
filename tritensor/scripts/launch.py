"""`python -m tritensor launch FILE [ARGS]`: a program that imports torch, run by tritensor in several processes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..distributed.elastic.multiprocessing.errors import ChildFailedError, record_exception
from ..distributed.run import add_option, get_args_parser, run
from .run import provide, simulate


def main(arguments: Sequence[str]) -> int:
    """Run a program as `torchrun` would, each process as `python -m tritensor run` runs it.

    Returns the exit status: 0, or 1 after a process failed, which is told.

    Raises:
        SystemExit: the options are wrong.
    """
    parser = get_args_parser()
    parser.prog = "python -m tritensor launch"
    add_option(parser, "--simulate-cuda", -1, "with N simulated CUDA devices in each process")
    options = parser.parse_args(arguments)
    simulate(parser, None if options.simulate_cuda == -1 else options.simulate_cuda)
    provide()
    try:
        run(options)
    except ValueError as error:
        parser.error(str(error))
    except ChildFailedError as error:
        record_exception(error)
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
