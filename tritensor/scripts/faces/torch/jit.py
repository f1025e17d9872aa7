"""torch.jit: what libraries ask of programs that are compiled, which none is."""

from __future__ import annotations

import builtins
from typing import Any

__all__ = ["isinstance"]


def isinstance(obj: object, target_type: Any) -> bool:
    """As Python's, and of containers with the types of what they hold."""
    origin = getattr(target_type, "__origin__", target_type)
    return builtins.isinstance(obj, origin if builtins.isinstance(origin, type | tuple) else object)
