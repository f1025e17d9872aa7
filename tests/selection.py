"""Which tests a run collects: none of a group that `-m` leaves out, and of a test that is `sampled` some cases in the
quick group and all others in `thorough`. To collect the groups that are left out took a minute of each process."""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule

GROUPS = ("slow", "peer", "site", "editors")  # beside `thorough`


@cache
def groups_without(expression: str) -> frozenset[str]:
    """The groups that an expression of the form "not slow and not peer" leaves out; none for another form."""
    plain = re.fullmatch(r"not \w+( and not \w+)*", expression)
    return frozenset(re.findall(r"not (\w+)", expression)) if plain else frozenset()


def left_out(config: pytest.Config) -> frozenset[str]:
    """The groups that this run leaves out."""
    return groups_without(config.option.markexpr)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that belongs to such a group as a whole is not imported."""
    if not left_out(config) or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    found = re.search(r"^pytestmark = \[?pytest\.mark\.(\w+)", text, re.MULTILINE)
    return True if found is not None and found[1] in left_out(config) else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, Any, Any]:
    """No search for examples in the docstrings of tests, which have none."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


def _marks(function: Any) -> dict[str, pytest.Mark]:
    """The marks of a test function by name; none of other objects in a file."""
    marks = getattr(function, "pytestmark", None)
    return {mark.name: mark for mark in marks} if isinstance(marks, list) else {}


class LeftOut:
    """A plugin of its own, because a file can have one function for a hook."""

    @staticmethod
    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(collector: Any, obj: Any) -> list[Any] | None:
        """No cases of a function that belongs to such a group."""
        return [] if _marks(obj).keys() & left_out(collector.config) else None


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: Any, obj: Any) -> Generator[None, Any, Any]:
    """The cases that are in no group which is left out; a sample of a sampled function's, and all others `thorough`."""
    found, sampled = (yield), _marks(obj).get("sampled")
    if not isinstance(found, list):
        return found
    if sampled is not None:
        quick = [item for item in found if not any(item.get_closest_marker(group) for group in GROUPS)]
        kept = {step * len(quick) // sampled.args[0] for step in range(sampled.args[0])}
        for position, item in enumerate(quick):
            if position not in kept:
                item.add_marker("thorough")
    return [item for item in found if not any(map(item.get_closest_marker, left_out(collector.config)))]
