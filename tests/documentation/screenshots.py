"""`python -m tests.documentation.screenshots SITE FOLDER`: pictures of some pages, at two widths, light and dark."""

from __future__ import annotations

import sys
from pathlib import Path

from .browser import Watched, installed, opened, served

PAGES = {
    "first": "index.html",
    "tutorial": "learn/gradients.html",
    "operator": "operators/torch.softmax.html",
    "benchmarks": "benchmarks/cpu.html",
}
WIDTHS = (400, 1280)


def main(site: Path, folder: Path) -> None:
    """Write the pictures, and print their names."""
    found = installed()
    if found is None:
        sys.exit("no browser is installed: apt-get install chromium")
    folder.mkdir(parents=True, exist_ok=True)
    with served(site) as address, opened(found) as browser:
        for width in WIDTHS:
            watched = Watched(browser, address, viewport={"width": width, "height": 900})
            for name, page in PAGES.items():
                watched.open(page)
                for mode in ("light", "dark"):
                    watched.show(mode)
                    path = folder / f"{name}-{width}-{mode}.png"
                    watched.page.screenshot(path=path, full_page=width < 1000)
                    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
