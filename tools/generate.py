"""Write the files that are made from the registry of operators: type stubs; and the page of differences from PyTorch,
from the table of the random programs. The site's pages of operators are made when it is built (`tools/site`).

The stubs are not committed: a build makes them (`tools/hatch_build.py`), also that of an editable install.

python -m tools.generate            # write the files that changed
python -m tools.generate --stubs    # of these the stubs, which need no more than NumPy and ml_dtypes
python -m tools.generate --check    # fail if a file would change
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from . import stub


def main() -> None:
    """Write the files, or with --check say which are stale."""
    made = stub.texts()
    if "--stubs" not in sys.argv:
        from . import differences

        made |= differences.texts()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        sys.exit(f"stale: {', '.join(map(str, stale))}; run `python -m tools.generate`" if stale else 0)
    for path in stale:
        _replace(path, made[path])


def _replace(path: Path, text: str) -> None:
    """Write a file at once: another process may be reading it."""
    written = path.with_name(f"{path.name}.{os.getpid()}")
    written.write_text(text, encoding="utf-8")
    written.replace(path)


if __name__ == "__main__":
    main()
