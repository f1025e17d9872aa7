"""The command line: `python -m tritensor cluster SCRIPT`, `doctor`, `inspect FILE`, `launch SCRIPT`, `profile SCRIPT`,
`run SCRIPT`, `scan PATH` and `tune`."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from difflib import get_close_matches

from .version import __version__

USAGE = """usage: python -m tritensor COMMAND

  cluster SCRIPT  what a training program takes on clusters of GPUs that are not there; options: --nodes 1,16,128,
                  --card NAME, --interconnect ib-400, --vary OPTION=A,B, --chart FILE.png, --report
  doctor          what is installed, which devices there are, why CUDA is or is not available
  inspect FILE    what a checkpoint holds, and whether loading it would be refused
  launch SCRIPT   a program that imports torch, run by tritensor in several processes; torchrun's options
  profile SCRIPT  what a program's kernels ask of a card, and the predicted time; options: --card, --sample N,
                  --trace FILE.json, --roofline FILE.png
  run SCRIPT ...  a program that imports torch, run by tritensor; options: --simulate-cuda N, --checked, --profile
  scan PATH       which names of torch a program uses, and which of them are missing
  tune            measures which calls on the CPU native code makes quicker here; option: --only NAMES

  --version       the version and the place of tritensor
  --help          this text; after a command its options, after a SCRIPT those of the script"""


# Where the `main` of a command is, which takes its words and returns the exit status.
COMMANDS = {
    "cluster": ".scripts.cluster",
    "doctor": ".scripts.doctor",
    "inspect": ".serialization.inspect",
    "launch": ".scripts.launch",
    "profile": ".scripts.profile",
    "run": ".scripts.run",
    "scan": ".scripts.scan",
    "tune": ".scripts.tune",
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    command = words[0] if words else "--help"
    if command in COMMANDS:
        status: int = importlib.import_module(COMMANDS[command], __package__).main(words[1:])
        return status
    if command in ("-h", "--help"):
        print(USAGE)
        return 0
    if command in ("-V", "--version"):
        print(f"tritensor {__version__} from {os.path.dirname(__file__)} (python {platform.python_version()})")
        return 0
    near = get_close_matches(command, COMMANDS, 1)
    meant = f"run {command}" if os.path.exists(command) else near[0] if near else "--help"
    print(f"python -m tritensor: error: unknown command {command!r}", file=sys.stderr)
    print(f"Did you mean `python -m tritensor {meant}`? The commands: {', '.join(COMMANDS)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
