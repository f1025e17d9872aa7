"""Lets `pytest` run in a checkout that is not installed, as on a machine that is only lent for its GPU.

The plugin comes with an installed package; otherwise it is loaded from here.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec

if "tritensor" not in {entry.name for entry in entry_points(group="pytest11")}:
    pytest_plugins = ["tritensor.pytest_plugin"]

if find_spec("PIL") is None:  # the extra `vision` is not installed
    collect_ignore = ["tritensor/vision", "tests/vision"]
