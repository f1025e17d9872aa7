"""The results of functions that return several tensors: named tuples that print as PyTorch's `return_types` do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["AminmaxResult", "FrexpResult", "MaxResult", "MinResult", "SortResult", "TopkResult"]


class MaxResult(NamedTuple):
    """The result of `max` along a dimension.

    >>> import tritensor as torch
    >>> torch.tensor([[1, 2], [4, 3]]).max(0)
    torch.return_types.max(
    values=tensor([4, 3]),
    indices=tensor([1, 1]))
    """

    values: Tensor
    indices: Tensor


class MinResult(NamedTuple):
    """The result of `min` along a dimension."""

    values: Tensor
    indices: Tensor


class AminmaxResult(NamedTuple):
    """The result of `aminmax`."""

    min: Tensor
    max: Tensor


class FrexpResult(NamedTuple):
    """The result of `frexp`."""

    mantissa: Tensor
    exponent: Tensor


class SortResult(NamedTuple):
    """The result of `sort`."""

    values: Tensor
    indices: Tensor


class TopkResult(NamedTuple):
    """The result of `topk`."""

    values: Tensor
    indices: Tensor


def _shown(result: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(result._fields, result, strict=True))
    return f"torch.return_types.{type(result).__name__}(\n{fields})"


# PyTorch's names, which hide builtins: for `isinstance(x, torch.return_types.max)`, for printing and for pickles.
for _kind in (MaxResult, MinResult, AminmaxResult, FrexpResult, SortResult, TopkResult):
    _kind.__name__ = _kind.__qualname__ = _kind.__name__.removesuffix("Result").lower()
    _kind.__repr__ = _shown  # type: ignore[method-assign]
    globals()[_kind.__name__] = _kind
