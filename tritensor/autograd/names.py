"""PyTorch's names of nodes: what `grad_fn` and printed tensors show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Operators that have another name here than in PyTorch, or are one of its operators with other arguments.
_PYTORCH = {
    "absolute_error": "Abs",
    "add_scaled": "Add",
    "convolution_transposed": "Convolution",
    "copy": "Clone",
    "cross_entropy": "NllLoss",
    "cross_entropy_with_gradient": "NllLoss",
    "derived_digamma": "Polygamma",
    "dropout": "Mul",
    "gelu_tanh": "Gelu",
    "layer_norm": "NativeLayerNorm",
    "linear": "Addmm",
    "logit_error": "BinaryCrossEntropyWithLogits",
    "matmul": "Mm",
    "max_dim": "Max",
    "min_dim": "Min",
    "norm": "LinalgVectorNorm",
    "replace_nonfinite": "NanToNum",
    "rint": "Round",
    "square": "Pow",
    "special_ndtr": "Mul",
    "squared_error": "MseLoss",
    "weighted_logit_error": "BinaryCrossEntropyWithLogits",
}


def node_name(operator: str) -> str:
    """The name of an operator's node.

    >>> node_name("log_softmax"), node_name("log1p"), node_name("copy")
    ('LogSoftmaxBackward0', 'Log1PBackward0', 'CloneBackward0')
    >>> node_name("squeeze.1")  # with the number of an overload
    'SqueezeBackward1'
    """
    name, _, number = operator.partition(".")
    return f"{_PYTORCH.get(name) or name.title().replace('_', '')}Backward{number or 0}"


def _of_tensors(*names: str) -> Callable[[dict[Any, Any]], int]:
    return lambda saved: int(any(hasattr(saved.get(name), "_node") for name in names))


def _over_some(saved: dict[Any, Any]) -> int:
    shape, dims = saved.get("x_shape"), saved.get("dim")
    return int(shape is not None and dims is not None and len(dims) < len(shape))


def _of_powers(saved: dict[Any, Any]) -> int:
    return 2 if not hasattr(saved.get("x"), "_node") else int(hasattr(saved.get("y"), "_node"))


def _of_xlogy(saved: dict[Any, Any]) -> int:
    return 1 if not hasattr(saved.get("x"), "_node") else 2 * (not hasattr(saved.get("y"), "_node"))


# PyTorch numbers the overloads of an operator; which one was called shows in what the node saved. A freed node, and one
# that saved less, is number 0.
_OVERLOADS: dict[str, Callable[[dict[Any, Any]], int]] = {
    "clamp": lambda saved: 1 - _of_tensors("min", "max")(saved),
    "clamp_max": _of_tensors("max"),
    "clamp_min": _of_tensors("min"),
    "copysign": lambda saved: 1 - _of_tensors("y")(saved),
    "lerp": _of_tensors("weight"),
    "mean": _over_some,
    "pow": _of_powers,
    "special_ndtr": lambda saved: 1,
    "sum": _over_some,
    "xlogy": _of_xlogy,
}


def overload(operator: str, saved: dict[Any, Any]) -> int:
    """The number of the overload that a node was made by, from what it saved, by name.

    >>> overload("sum", {"x_shape": (2, 3), "dim": (0,)})
    1
    """
    rule = _OVERLOADS.get(operator)
    return 0 if rule is None or not saved else rule(saved)
