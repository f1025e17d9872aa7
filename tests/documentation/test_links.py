"""The files beside the documentation that readers meet first link to what exists, as GitHub shows them."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urldefrag

import pytest

ROOT = Path(__file__).resolve().parents[2]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(folder: Path, text: str) -> list[str]:
    """The links to files or headings that are not there."""
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        path, anchor = urldefrag(link)
        target = folder / path
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            found.append(link)
    return found


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md"])
def test_links_lead_somewhere(name: str) -> None:
    if not (ROOT / name).exists():
        pytest.skip("not in this copy of the project")
    assert broken((ROOT / name).parent, (ROOT / name).read_text(encoding="utf-8")) == []


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# One: `two`, three\n\n```text\n# no heading\n```\n")
    text = "[a](page.md#one-two-three) [b](page.md) [c](https://example.org) [d](gone.md) [e](page.md#no-heading)"
    assert broken(tmp_path, text) == ["gone.md", "page.md#no-heading"]
