"""Starting a program in several processes as older programs expect it: `run`, but with `--local-rank=N` passed, too."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .run import get_args_parser, run

__all__ = ["launch", "main", "parse_args"]


def parse_args(args: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of `torch.distributed.run`, and `--use-env`."""
    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", help="do not pass --local-rank")
    return parser.parse_args(args)


def launch(args: argparse.Namespace) -> None:
    """Run the program that options name.

    Raises:
        ValueError: it is not Python's, which takes no `--local-rank`.
    """
    if args.no_python and not args.use_env:
        raise ValueError("When using the '--no-python' flag, you must also set the '--use-env' flag.")
    run(args)


def main(args: Sequence[str] | None = None) -> None:
    """Run the program that words name, by default those of the command line."""
    launch(parse_args(args))
