"""Which module owns a tensor, and what it is called there: "encoder.layers.3.weight".

The only data kept for this are weak references to all modules. The search runs when an error message names a tensor, so
it costs modules and operators nothing.
"""

from __future__ import annotations

import weakref
from typing import Any

from .. import errors

__all__ = ["parameter_path", "remember"]

_living: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def remember(module: Any) -> None:
    """Let `parameter_path` find the tensors of `module` until it is deleted."""
    _living[id(module)] = module


def parameter_path(tensor: Any) -> str | None:
    """The path of a parameter or buffer from the outermost module that holds it; None if no module does.

    >>> from tritensor import nn
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> parameter_path(model[0].bias)
    '0.bias'
    """
    parents: dict[int, tuple[Any, str]] = {}
    owner: tuple[Any, str] | None = None
    for module in list(_living.values()):
        # read from __dict__, because a module whose __init__ has not run yet has no tables
        tables = module.__dict__
        for name, child in tables.get("_modules", {}).items():
            parents.setdefault(id(child), (module, name))
        for table in ("_parameters", "_buffers"):
            for name, value in tables.get(table, {}).items():
                if value is tensor and owner is None:
                    owner = module, name
    if owner is None:
        return None
    module, path = owner
    seen: set[int] = set()
    while id(module) in parents and id(module) not in seen:
        seen.add(id(module))
        module, name = parents[id(module)]
        path = f"{name}.{path}"
    return path


errors.parameter_path = parameter_path
