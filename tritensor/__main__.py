"""The command line: `python -m tritensor doctor`, `inspect FILE`, `profile SCRIPT`, `run SCRIPT` and
`scan PATH`."""

from __future__ import annotations

import sys

USAGE = """usage: python -m tritensor COMMAND

  doctor          what is installed, which devices there are, why CUDA is or is not available
  inspect FILE    what a checkpoint holds, and whether loading it would be refused
  profile SCRIPT  what a program's kernels ask of a card, and the predicted time; options: --card, --sample N,
                  --trace FILE.json, --roofline FILE.png
  run SCRIPT ...  a program that imports torch, run by tritensor; options: --simulate-cuda N, --checked, --profile
  scan PATH       which names of torch a program uses, and which of them are missing"""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["doctor"] and len(words) == 1:
        from .doctor import report

        print(report())
        return 0
    if words[:1] == ["inspect"] and len(words) > 1:
        from .serialization.inspect import main as inspect

        return inspect(words[1:])
    if words[:1] == ["profile"] and len(words) > 1:
        from .scripts.profile import main as profile

        return profile(words[1:])
    if words[:1] == ["run"] and len(words) > 1:
        from .scripts.run import main as run

        return run(words[1:])
    if words[:1] == ["scan"] and len(words) > 1:
        from .scripts.scan import main as scan

        return scan(words[1:])
    asked = words in ([], ["-h"], ["--help"])
    print(USAGE, file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main())
