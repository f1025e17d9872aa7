"""The workflows run the code of others only by its hash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def loose(text: str) -> list[str]:
    """The actions and workflows of other repositories that are not held by a commit, or do not say its version."""
    used = re.findall(r"^\s*(?:- )?uses:\s*(.*)$", text, re.MULTILINE)
    held = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    return [each for each in used if not each.startswith("./") and not held.fullmatch(each)]


def test_actions_of_others_are_held_by_their_hashes() -> None:
    files = sorted((ROOT / ".github").rglob("*.yml"))
    if not files:
        pytest.skip("a source distribution has no workflows")
    assert {path.name: found for path in files if (found := loose(path.read_text(encoding="utf-8")))} == {}
    assert sum(path.read_text(encoding="utf-8").count("uses: actions/checkout@") for path in files) > 20


def test_what_is_loose_is_found() -> None:
    held = f"a/b@{'0' * 40}"
    text = f"- uses: a/b@v4\n  uses: {held}\n- uses: {held} # v1\n- uses: {held} # v1.2.3\n- uses: ./here.yml\n"
    assert loose(text) == ["a/b@v4", held, f"{held} # v1"]
