"""`python -m tests.documentation`: run the programs of the documentation; `--write` records what they print."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .programs import ALL, output_of, recorded


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 1 if a program prints something else than what is recorded."""
    parser = argparse.ArgumentParser(prog="python -m tests.documentation", description=__doc__)
    parser.add_argument("names", nargs="*", help="programs, by name; all unless given")
    parser.add_argument("--write", action="store_true", help="record what they print")
    options = parser.parse_args(arguments)
    changed = []
    for program in ALL:
        if options.names and program.stem not in options.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            output = output_of(program, Path(folder))
        if output != recorded(program):
            changed.append(program.stem)
            if options.write:
                program.with_suffix(".txt").write_text(output, "utf-8")
            else:
                print(f"{program.name} prints\n{output}")
    print(f"{'written' if options.write else 'changed'}: {', '.join(changed) or 'none'}")
    return int(bool(changed) and not options.write)


if __name__ == "__main__":
    sys.exit(main())
