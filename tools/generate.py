"""Write the files that are made from the registry of operators: type stubs; and the page of differences from PyTorch,
from the table of the random programs. The site's pages of operators are made when it is built (`tools/site`).

python -m tools.generate            # write the files that changed
python -m tools.generate --check    # fail if one would change
"""

from __future__ import annotations

import sys

from . import differences, stub


def main() -> None:
    """Write the files, or with --check say which are stale."""
    made = {**stub.texts(), **differences.texts()}
    stale = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        sys.exit(f"stale: {', '.join(map(str, stale))}; run `python -m tools.generate`" if stale else 0)
    for path in stale:
        path.write_text(made[path], encoding="utf-8")


if __name__ == "__main__":
    main()
