"""Finds the module that holds a tensor, and the tensor's path in it: "encoder.layers.3.weight".

The only data kept for this are weak references to all modules. The search runs when an error message names a tensor, so
it costs modules and operators nothing.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import errors
from ..memory.array import DeviceArray
from ..tensors import Tensor
from .conversion import tensors_in

_living: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_KINDS = {"_parameters": "parameter", "_buffers": "buffer"}


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
    kind, path = _found(tensor) or ("", None)
    return path if kind in _KINDS.values() else None


def _found(tensor: Any) -> tuple[str, str] | None:
    """Finds the role of a tensor, or of one that it is a view of, in its module, and the path there; None if no module
    holds it."""
    # read from __dict__, because a module whose __init__ has not run yet has no tables
    modules = [(module, dict(module.__dict__)) for module in list(_living.values())]
    for prefix, same in (("", operator.is_), ("view of ", _is_view)):
        for module, tables in modules:
            for kind, name, value in _held(tables):
                if same(tensor, value):
                    return prefix + kind, _path(module, name, modules)
    return None


def _held(tables: dict[str, Any]) -> Iterator[tuple[str, str, Tensor]]:
    """The tensors of one module: its parameters and buffers, then those that it holds in plain attributes."""
    for table, kind in _KINDS.items():
        yield from ((kind, name, value) for name, value in tables.get(table, {}).items() if value is not None)
    for attribute, value in tables.items():
        if attribute not in (*_KINDS, "_modules"):
            yield from (("unregistered attribute", name, held) for name, held in tensors_in(value, attribute, {}, 3))


def _is_view(tensor: Tensor, value: Tensor) -> bool:
    x, y = tensor._data, value._data
    if isinstance(x, DeviceArray) and isinstance(y, DeviceArray):
        return x.buffer is y.buffer and value.data_ptr() <= tensor.data_ptr() < value.data_ptr() + value.nbytes
    return isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and np.may_share_memory(x, y)


def _path(module: Any, path: str, modules: list[tuple[Any, dict[str, Any]]]) -> str:
    parents: dict[int, tuple[Any, str]] = {}
    for parent, tables in modules:
        for name, child in tables.get("_modules", {}).items():
            parents.setdefault(id(child), (parent, name))
    seen: set[int] = set()
    while id(module) in parents and id(module) not in seen:
        seen.add(id(module))
        module, name = parents[id(module)]
        path = f"{name}.{path}"
    return path


errors.held_as = _found
