"""Operators: how they are declared, checked and called; in place, with `out=`, under autocast, inside of `vmap`.

Other rooms import the names below from here.
"""

from __future__ import annotations

from .copying import copy_into
from .operator import Dtypes, Operator, Shapes, registry

__all__ = ["Dtypes", "Operator", "Shapes", "copy_into", "registry"]
