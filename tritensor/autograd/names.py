"""PyTorch's names of nodes: what `grad_fn` and printed tensors show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def node_name(name: str) -> str:
    """The name of the node of PyTorch's operator of a name.

    >>> node_name("log_softmax"), node_name("log1p"), node_name("clone")
    ('LogSoftmaxBackward0', 'Log1PBackward0', 'CloneBackward0')
    >>> node_name("squeeze.1")  # with the number of an overload
    'SqueezeBackward1'
    """
    name, _, number = name.partition(".")
    return f"{name.title().replace('_', '')}Backward{number or 0}"


def node_of(operator: Any) -> str:
    """The name of an operator's node, which its declaration may set (`Operator.node`), or of a function's."""
    return node_name(getattr(operator, "node", "") or getattr(operator, "name", operator.__name__))


# PyTorch numbers the overloads of an operator; which one was called shows in what the node saved. A freed node, and one
# that saved less, is number 0.


def of_tensors(*names: str) -> Callable[[dict[Any, Any]], int]:
    """The number of an overload (`Operator.overload`) that is 1 where one of the inputs is a tensor."""
    return lambda saved: int(any(hasattr(saved.get(name), "_node") for name in names))


def over_some(saved: dict[Any, Any]) -> int:
    """The number of an overload that is 1 for a reduction over some dimensions, not all.

    >>> over_some({"x_shape": (2, 3), "dim": (0,)})
    1
    """
    shape, dims = saved.get("x_shape"), saved.get("dim")
    return int(shape is not None and dims is not None and len(dims) < len(shape))
