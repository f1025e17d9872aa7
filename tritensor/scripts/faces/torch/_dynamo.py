"""torch._dynamo: names of PyTorch's compiler that libraries touch. Programs run as Python, so nothing is traced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ....compiler import allow_in_graph, disable, is_compiling, reset
from ....errors import UnsupportedError
from ....nn.compiled import OptimizedModule

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "eval_frame", "exc"]
__all__ += ["graph_break", "is_compiling", "mark_dynamic", "mark_static", "mark_static_address", "reset"]

config = SimpleNamespace(cache_size_limit=8, recompile_limit=8, suppress_errors=False)
exc = SimpleNamespace(Unsupported=UnsupportedError)
eval_frame = SimpleNamespace(OptimizedModule=OptimizedModule)
assume_constant_result = allow_in_graph


def graph_break(msg: str = "") -> None:
    """Nothing: there is no graph."""


def mark_static_address(t: object, guard: bool = True) -> None:
    """Nothing: there is no graph."""


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """Nothing: there is no graph."""


mark_static = mark_dynamic
