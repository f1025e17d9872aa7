"""Properties of tensors and dtypes, and functions that call a method of Tensor."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, explain
from ..ground.arguments import wrong_type
from ..ground.public import public
from ..host.scalars import representable
from ..operators.rules import Number
from ..tensors import Tensor
from ..types import dtypes


def _tensor(name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise ArgumentError(
            explain(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}")
        )
    return value


@public(guard=False)
def numel(input: Tensor) -> int:
    """The number of elements."""
    return _tensor("numel", input).numel()


@public(guard=False)
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating one."""
    return _tensor("is_floating_point", input).is_floating_point()


@public(guard=False)
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    return _tensor("is_complex", input).is_complex()


@public(guard=False)
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy that gradients pass through."""
    return _tensor("clone", input).clone(memory_format=memory_format)


@public(guard=False)
def detach(input: Tensor) -> Tensor:
    """The same memory without history."""
    return _tensor("detach", input).detach()


@public()
def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of an arithmetic result of two tensors or numbers.

    >>> import tritensor as torch
    >>> torch.result_type(torch.ones(2, dtype=torch.int32), 1.5)
    tritensor.float32
    """
    pair = (tensor1, tensor2)
    for value in pair:
        if not isinstance(value, (Tensor, *Number)):
            given = ", ".join(type(each).__name__ for each in pair)
            raise ArgumentError(f"result_type() received an invalid combination of arguments - got ({given})")
        if isinstance(value, int):
            representable(value)
    tensors = [(value.dtype, value.ndim > 0) for value in pair if isinstance(value, Tensor)]
    return dtypes.result_dtype(tensors, [value for value in pair if not isinstance(value, Tensor)])


@public()
def can_cast(from_: dtypes.dtype, to: dtypes.dtype) -> bool:
    """Whether a result of one dtype may be stored in the other: never in a lower category (bool, integer, floating,
    complex).

    >>> import tritensor as torch
    >>> torch.can_cast(torch.int64, torch.float16), torch.can_cast(torch.float32, torch.int64)
    (True, False)
    """
    for position, (name, value) in enumerate((("from_", from_), ("to", to)), 1):
        if dtypes.of_argument(value) is None:
            raise wrong_type("can_cast", name, "tritensor.dtype", value, position)
    source, target = dtypes.of_argument(from_), dtypes.of_argument(to)
    return source is not None and target is not None and source.category <= target.category
