"""Lets `pytest` run in a checkout that is not installed, as on a machine that is only lent for its GPU.

The plugin comes with an installed package; otherwise it is loaded from here.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec

if "tritensor" not in {entry.name for entry in entry_points(group="pytest11")}:
    pytest_plugins = ["tritensor.pytest_plugin"]

# what needs an extra that is not installed
_NEED = {
    "PIL": ["tritensor/vision", "tests/vision"],
    "einops": ["tritensor/backends/einops.py"],
    "sklearn": ["tritensor/sklearn.py", "tests/sklearn_estimators"],
}
collect_ignore = [path for name, paths in _NEED.items() if find_spec(name) is None for path in paths]
