"""The type stub of `tritensor.masked`, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from tritensor.tensors import Tensor
from tritensor.types import dtypes
from tritensor.types.devices import device
from tritensor.types.dtypes import dtype
from typing import Any

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

def amax(input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The largest element."""
def amin(input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The smallest element."""
def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The index of the largest element that is not masked out."""
def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The index of the smallest element that is not masked out."""
def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The products of the elements up to each place."""
def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The sums of the elements up to each place."""
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The logarithms of `softmax`."""
def logaddexp(input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Tensor | None = None, other_mask: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of two exponentials, each counted where its mask holds."""
def logsumexp(input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of exponentials."""
def mean(input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The mean of the elements where `mask` holds; NaN where there is none."""
def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The median along `dim` of the elements where `mask` holds, the lower one of two; NaN where there is none."""
def norm(input: Tensor, ord: float | None = 2.0, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The vector norm of the order `ord` of the elements where `mask` holds."""
def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The elements where `mask` holds, 0 elsewhere, divided by their `norm` along `dim`, or by `eps` if it is less."""
def prod(input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The product of the elements where `mask` holds; of integers in int64 unless a `dtype` is given."""
def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Applies softmax: the exponentials' shares of their sum."""
def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """`softmax` of the negative elements."""
def std(input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The root of `var`."""
def sum(input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The sum of the elements where `mask` holds; integers add up in int64 unless a `dtype` is given."""
def var(input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The variance of the elements where `mask` holds, whose number less `correction` (1) divides the squares' sum."""
