"""How much disk a default install takes, dependencies included, or one with extras.

    python -m benchmarks.install_size [WHEEL] [--extra NAME ...] [--limit MEGABYTES]

Installs the wheel (or this source tree) with only its dependencies into an empty folder, and adds up the files that
were installed, without the bytecode that pip writes beside them (25 MB with Python 3.11: 14 for NumPy, 10 for
tritensor). With a limit the exit status says whether the sum stays within it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent


def megabytes(folder: Path) -> Counter[str]:
    """Size of every top-level entry of `folder` in megabytes of a million bytes."""
    sizes: Counter[str] = Counter()
    for path in folder.rglob("*"):
        if path.is_file():
            sizes[path.relative_to(folder).parts[0]] += path.stat().st_size
    return Counter({name: size / 1e6 for name, size in sizes.items()})


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", nargs="?", type=Path, default=SOURCE, help="a built wheel; without one, this source")
    parser.add_argument("--extra", action="append", default=[], metavar="NAME", help="with what an extra brings")
    parser.add_argument("--limit", type=float, metavar="MEGABYTES", help="fail above this")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"]
        wanted = f"{options.wheel}[{','.join(options.extra)}]" if options.extra else str(options.wheel)
        subprocess.run([*command, "--disable-pip-version-check", "--target", folder, wanted], check=True)
        sizes = megabytes(Path(folder))
    total = sum(sizes.values())
    for name, size in sizes.most_common(8):
        print(f"{size:8.2f} MB  {name}")
    print(f"{total:8.2f} MB  in all")
    if options.limit is not None and total > options.limit:
        print(f"over the limit of {options.limit:.0f} MB")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
