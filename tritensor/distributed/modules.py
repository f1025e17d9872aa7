"""The type of modules: their room is above this one, where they are taken as arguments and never imported."""

from __future__ import annotations

from typing import Any, TypeAlias

Module: TypeAlias = Any

#: an optimizer: likewise, as `optim` uses this room for those whose states are divided
Optimizer: TypeAlias = Any
