"""Without PyTorch there is nothing to compare with, and nothing here can be imported."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["*.py"]
