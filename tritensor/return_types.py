"""The results of functions that return several tensors: named tuples that print as PyTorch's `return_types` do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "AminmaxResult",
    "CummaxResult",
    "CumminResult",
    "FrexpResult",
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


class CummaxResult(NamedTuple):
    """The result of `cummax`."""

    values: Tensor
    indices: Tensor


class CumminResult(NamedTuple):
    """The result of `cummin`."""

    values: Tensor
    indices: Tensor


class MedianResult(NamedTuple):
    """The result of `median` along a dimension."""

    values: Tensor
    indices: Tensor


class NanmedianResult(NamedTuple):
    """The result of `nanmedian` along a dimension."""

    values: Tensor
    indices: Tensor


class KthvalueResult(NamedTuple):
    """The result of `kthvalue`."""

    values: Tensor
    indices: Tensor


class ModeResult(NamedTuple):
    """The result of `mode`."""

    values: Tensor
    indices: Tensor


class HistogramResult(NamedTuple):
    """The result of `histogram`."""

    hist: Tensor
    bin_edges: Tensor


class HistogramddResult(NamedTuple):
    """The result of `histogramdd`: the edges of each dimension's bins are a tuple."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


linalg_cholesky_ex = NamedTuple("linalg_cholesky_ex", [("L", "Tensor"), ("info", "Tensor")])
linalg_qr = NamedTuple("linalg_qr", [("Q", "Tensor"), ("R", "Tensor")])
linalg_svd = NamedTuple("linalg_svd", [("U", "Tensor"), ("S", "Tensor"), ("Vh", "Tensor")])
linalg_eig = NamedTuple("linalg_eig", [("eigenvalues", "Tensor"), ("eigenvectors", "Tensor")])
linalg_eigh = NamedTuple("linalg_eigh", [("eigenvalues", "Tensor"), ("eigenvectors", "Tensor")])
linalg_lu = NamedTuple("linalg_lu", [("P", "Tensor"), ("L", "Tensor"), ("U", "Tensor")])
linalg_lu_factor = NamedTuple("linalg_lu_factor", [("LU", "Tensor"), ("pivots", "Tensor")])
linalg_lu_factor_ex = NamedTuple("linalg_lu_factor_ex", [("LU", "Tensor"), ("pivots", "Tensor"), ("info", "Tensor")])
linalg_ldl_factor = NamedTuple("linalg_ldl_factor", [("LD", "Tensor"), ("pivots", "Tensor")])
linalg_ldl_factor_ex = NamedTuple("linalg_ldl_factor_ex", [("LD", "Tensor"), ("pivots", "Tensor"), ("info", "Tensor")])
geqrf = NamedTuple("geqrf", [("a", "Tensor"), ("tau", "Tensor")])
lu_unpack = NamedTuple("lu_unpack", [("P", "Tensor"), ("L", "Tensor"), ("U", "Tensor")])
qr = NamedTuple("qr", [("Q", "Tensor"), ("R", "Tensor")])
svd = NamedTuple("svd", [("U", "Tensor"), ("S", "Tensor"), ("V", "Tensor")])


def _shown(result: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(result._fields, result, strict=True))
    return f"torch.return_types.{type(result).__name__}(\n{fields})"


# PyTorch's names, which hide builtins: for `isinstance(x, torch.return_types.max)`, for printing and for pickles.
for _kind in [kind for kind in globals().values() if hasattr(kind, "_fields")]:
    if _kind.__name__.endswith("Result"):
        _kind.__name__ = _kind.__qualname__ = _kind.__name__.removesuffix("Result").lower()
        globals()[_kind.__name__] = _kind
    else:
        _kind.__doc__ = f"The result of `{_kind.__name__.replace('linalg_', 'linalg.')}`."
    _kind.__repr__ = _shown
