"""torch.softmax and torch.log_softmax, which require dim; those of nn.functional choose it where it is missing."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, require
from ...ground.arguments import wrong_type
from ...ground.public import public
from ...operators.outputs import SAME, into
from ...tensors import Tensor
from ...types import Dtype
from . import normalization

_MISSING: Any = object()


@public(functional=False, method=True, guard=False)
def softmax(
    input: Tensor, dim: int = _MISSING, dtype: Dtype = None, *, out: Tensor | None = None, **others: Any
) -> Tensor:
    """Applies softmax along `dim`: exp(input), scaled so that its sum is 1.

    >>> import tritensor as torch
    >>> torch.tensor([0., 0., -torch.inf]).softmax(0)
    tensor([0.5000, 0.5000, 0.0000])

    Args:
        dtype: convert the input to this dtype first.

    Raises:
        DtypeError: integers or booleans without a floating `dtype`. RangeError: no such dimension.
        ArgumentError: no dimension.
    """
    if dim is _MISSING or dim is None:
        dim = _named("softmax", dim, others)
    if out is not None:
        return into(softmax, SAME, out, (input, dim, dtype), others)
    return normalization.softmax(input, dim, 3, dtype, **others)


@public(functional=False, method=True, guard=False)
def log_softmax(
    input: Tensor, dim: int = _MISSING, dtype: Dtype = None, *, out: Tensor | None = None, **others: Any
) -> Tensor:
    """Applies the logarithm of softmax along `dim`, computed without overflow; see `softmax`."""
    if dim is _MISSING or dim is None:
        dim = _named("log_softmax", dim, others)
    if out is not None:
        return into(log_softmax, SAME, out, (input, dim, dtype), others)
    return normalization.log_softmax(input, dim, 3, dtype, **others)


def _named(name: str, dim: Any, others: dict[str, Any]) -> Any:
    """The dimension by NumPy's name for it."""
    if dim is None:
        raise wrong_type(name, "dim", "int", dim, 2)
    require("axis" in others, ArgumentError, '{}() missing 1 required positional arguments: "dim"', name)
    return others.pop("axis")
