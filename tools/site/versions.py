"""The list of the published versions, and the page that leads to the newest.

    python -m tools.site.versions FOLDER ADDRESS

FOLDER has a folder for each published version, named after it, and `dev` for the main branch; it is what the workflow
publishes at ADDRESS. Written there: `switcher.json`, which the site's menu of versions reads, and `index.html`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

__all__ = ["entries", "write"]

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>tritensor</title><meta http-equiv="refresh" content="0; url={to}/"></head>
<body><a href="{to}/">tritensor's documentation</a></body>
</html>
"""


def entries(folder: Path, address: str) -> list[dict[str, object]]:
    """The versions in the folder, the newest first and `dev` before them, as the theme's menu takes them."""
    found = [path.name for path in folder.iterdir() if (path / "index.html").exists() and path.name != "dev"]
    found.sort(key=_number, reverse=True)
    made: list[dict[str, object]] = []
    if (folder / "dev" / "index.html").exists():
        made.append({"name": "dev", "version": "dev", "url": f"{address}/dev/"})
    for place, version in enumerate(found):
        words = f"{version} (stable)" if place == 0 else version
        made.append({"name": words, "version": version, "url": f"{address}/{version}/", "preferred": place == 0})
    return made


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else -1 for part in version.split("."))


def write(folder: Path, address: str) -> None:
    """Write `switcher.json` and `index.html`.

    Raises:
        SystemExit: the folder has no version.
    """
    made = entries(folder, address.rstrip("/"))
    if not made:
        sys.exit(f"{folder} has no folder with a site")
    (folder / "switcher.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    newest = next((entry for entry in made if entry.get("preferred")), made[0])
    (folder / "index.html").write_text(PAGE.format(to=newest["version"]), encoding="utf-8")
    (folder / ".nojekyll").touch()  # GitHub would leave out the folders whose name begins with an underscore


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2])
