"""The results of functions that return several tensors: named tuples that print as PyTorch's `return_types` do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "AminmaxResult",
    "CummaxResult",
    "CumminResult",
    "HistogramResult",
    "HistogramddResult",
    "KthvalueResult",
    "MaxResult",
    "MedianResult",
    "MinResult",
    "ModeResult",
    "NanmedianResult",
    "SortResult",
    "TopkResult",
]


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


class MinResult(MaxResult):
    """The result of `min` along a dimension."""


class AminmaxResult(NamedTuple):
    """The result of `aminmax`."""

    min: Tensor
    max: Tensor


class SortResult(MaxResult):
    """The result of `sort`."""


class TopkResult(MaxResult):
    """The result of `topk`."""


class CummaxResult(MaxResult):
    """The result of `cummax`."""


class CumminResult(MaxResult):
    """The result of `cummin`."""


class MedianResult(MaxResult):
    """The result of `median` along a dimension."""


class NanmedianResult(MaxResult):
    """The result of `nanmedian` along a dimension."""


class KthvalueResult(MaxResult):
    """The result of `kthvalue`."""


class ModeResult(MaxResult):
    """The result of `mode`."""


class HistogramResult(NamedTuple):
    """The result of `histogram`."""

    hist: Tensor
    bin_edges: Tensor


class HistogramddResult(NamedTuple):
    """The result of `histogramdd`: the edges of each dimension's bins are a tuple."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def _shown(result: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(result._fields, result, strict=True))
    return f"torch.return_types.{type(result).__name__}(\n{fields})"


# PyTorch's names, which hide builtins: for `isinstance(x, torch.return_types.max)`, for printing and for pickles.
for _kind in [globals()[_name] for _name in __all__]:
    _kind.__name__ = _kind.__qualname__ = _kind.__name__.removesuffix("Result").lower()
    _kind.__repr__ = _shown  # type: ignore[method-assign]
    globals()[_kind.__name__] = _kind
