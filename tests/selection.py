"""Which tests a run collects. Those of a group that `-m` leaves out are not collected at all, which takes a
minute of each process; of a test that is `sampled` some cases stay in the quick group, and all are in `thorough`."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest


def left_out(config: pytest.Config) -> frozenset[str]:
    """The groups that an expression of the form "not slow and not peer" leaves out; none for another form."""
    expression = config.option.markexpr
    plain = re.fullmatch(r"not \w+( and not \w+)*", expression)
    return frozenset(re.findall(r"not (\w+)", expression)) if plain else frozenset()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that belongs to such a group as a whole is not imported."""
    groups = left_out(config)
    if not groups or collection_path.suffix != ".py":
        return None
    found = re.search(
        r"^pytestmark = \[?pytest\.mark\.(\w+)", collection_path.read_text(encoding="utf-8"), re.MULTILINE
    )
    return True if found is not None and found[1] in groups else None


class LeftOut:
    """A plugin of its own, because a file can have one function for a hook."""

    @staticmethod
    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(collector: Any, obj: Any) -> list[Any] | None:
        """No cases of a function that belongs to such a group."""
        marks = getattr(obj, "pytestmark", ())
        names = {mark.name for mark in marks if not isinstance(mark, str)}
        return [] if names & left_out(collector.config) else None


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: Any, obj: Any) -> Generator[None, Any, Any]:
    """Leave the cases of a sampled function that are not in the sample to the group `thorough`."""
    found = yield
    counts = [mark.args[0] for mark in getattr(obj, "pytestmark", ()) if mark.name == "sampled"]
    if not counts or not isinstance(found, list) or len(found) <= counts[0]:
        return found
    kept = {step * len(found) // counts[0] for step in range(counts[0])}
    for position, item in enumerate(found):
        if position not in kept:
            item.add_marker("thorough")
    if "thorough" in left_out(collector.config):
        return [found[position] for position in sorted(kept)]
    return found
