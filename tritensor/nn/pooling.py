"""Layers that pool windows of their input, put elements back, and fold windows.

Those that differ by the number of dimensions share one text; the functions of `tritensor.nn.functional` of the same
names say what they compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import functional as F
from ..tensors import Tensor
from .layer import Layer, declared

__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d"]
__all__ += ["AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d"]
__all__ += ["AvgPool1d", "AvgPool2d", "AvgPool3d"]
__all__ += ["Fold", "FractionalMaxPool2d", "FractionalMaxPool3d"]
__all__ += ["LPPool1d", "LPPool2d", "LPPool3d"]
__all__ += ["MaxPool1d", "MaxPool2d", "MaxPool3d"]
__all__ += ["MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "Unfold"]

Sizes = int | Sequence[int]


class _Strided:
    """The stride is the kernel's size unless given."""

    def _prepare(self: Any) -> None:
        if self.stride is None:
            self.stride = self.kernel_size


class _Each(_Strided):
    """The base of pools whose options are kept as one number for each dimension."""

    def _prepare(self: Any) -> None:
        super()._prepare()
        for name in self._shown:
            setattr(self, name, self._each(getattr(self, name)))


_WINDOW = "kernel_size", "stride", "padding"


@declared("max_pool", shown=(*_WINDOW, "dilation", "ceil_mode"))
class _MaxPoolNd(_Strided, Layer):
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False


class MaxPool1d(_MaxPoolNd, rank=1):
    """1-d max pooling: the largest element of each window along the last dimension."""


class MaxPool2d(_MaxPoolNd, rank=2):
    """2-d max pooling: the largest element of each window along the last two dimensions.

    >>> import tritensor as torch
    >>> torch.nn.MaxPool2d(3, 2, 1)(torch.ones(8, 64, 56, 56)).shape
    tritensor.Size([8, 64, 28, 28])
    """


class MaxPool3d(_MaxPoolNd, rank=3):
    """3-d max pooling: the largest element of each window along the last three dimensions."""


@declared("avg_pool", shown=_WINDOW)
class AvgPool1d(_Each, Layer, rank=1):
    """1-d average pooling: the average of each window along the last dimension.

    >>> import tritensor as torch
    >>> torch.nn.AvgPool1d(2)
    AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True


@declared("avg_pool", shown=_WINDOW)
class _AvgPoolNd(_Strided, Layer):
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None


class AvgPool2d(_AvgPoolNd, rank=2):
    """2-d average pooling: the average of each window along the last two dimensions."""


class AvgPool3d(_AvgPoolNd, rank=3):
    """3-d average pooling: the average of each window along the last three dimensions."""


@declared("adaptive_avg_pool")
class _AdaptiveAvgPoolNd(Layer):
    output_size: Any


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd, rank=1):
    """1-d adaptive average pooling: the averages of `output_size` windows that cover the last dimension."""


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd, rank=2):
    """2-d adaptive average pooling: the averages of `output_size` windows that cover the last two dimensions."""


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd, rank=3):
    """3-d adaptive average pooling: the averages of `output_size` windows that cover the last three dimensions."""


@declared("adaptive_max_pool", shown=("output_size",))
class _AdaptiveMaxPoolNd(Layer):
    output_size: Any
    return_indices: bool = False


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd, rank=1):
    """1-d adaptive max pooling: the largest elements of `output_size` windows that cover the last dimension."""


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd, rank=2):
    """2-d adaptive max pooling: the largest elements of `output_size` windows that cover the last two dimensions."""


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd, rank=3):
    """3-d adaptive max pooling: the largest elements of `output_size` windows that cover the last three dimensions."""


@declared("lp_pool")
class _LPPoolNd(Layer):
    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False


class LPPool1d(_LPPoolNd, rank=1):
    """1-d power-average pooling: (sum of x^p)^(1/p) of each window, with p `norm_type`."""


class LPPool2d(_LPPoolNd, rank=2):
    """2-d power-average pooling: (sum of x^p)^(1/p) of each window, with p `norm_type`."""


class LPPool3d(_LPPoolNd, rank=3):
    """3-d power-average pooling: (sum of x^p)^(1/p) of each window, with p `norm_type`."""


@declared("fractional_max_pool", shown=())
class _FractionalMaxPool(Layer):
    kernel_size: Sizes
    output_size: Sizes | None = None
    output_ratio: float | Sequence[float] | None = None
    return_indices: bool = False
    _random_samples: Tensor | None = None

    def _prepare(self) -> None:
        kernel, ratio = self.kernel_size, self.output_ratio
        for name in ("kernel_size", "output_size", "output_ratio"):
            if (value := getattr(self, name)) is not None:
                setattr(self, name, self._each(value))
        if self._rank == 3 and min(self.kernel_size) <= 0:  # type: ignore[arg-type]
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel}")
        if self.output_size is None and ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if self.output_size is not None and ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if ratio is not None and not all(0 < each < 1 for each in self._each(ratio)):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {ratio})")


class FractionalMaxPool2d(_FractionalMaxPool, rank=2):
    """2-d fractional max pooling: the largest element of each of `output_size` windows, placed at random."""


class FractionalMaxPool3d(_FractionalMaxPool, rank=3):
    """3-d fractional max pooling: the largest element of each of `output_size` windows, placed at random."""


@declared()
class _MaxUnpoolNd(_Each, Layer):
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The input's elements at the places that the pool returned with them, zeros elsewhere."""
        function = getattr(F, f"max_unpool{self._rank}d")
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd, rank=1):
    """Inverts `MaxPool1d` in part: elements go back to where the pool found them, between zeros."""


class MaxUnpool2d(_MaxUnpoolNd, rank=2):
    """Inverts `MaxPool2d` in part: elements go back to where the pool found them, between zeros."""


class MaxUnpool3d(_MaxUnpoolNd, rank=3):
    """Inverts `MaxPool3d` in part: elements go back to where the pool found them, between zeros."""


@declared("unfold")
class Unfold(Layer):
    """Extracts sliding windows of pictures as columns (im2col), (N, C * positions of a window, windows).

    >>> import tritensor as torch
    >>> torch.nn.Unfold((2, 3))(torch.ones(1, 5, 3, 4)).shape
    tritensor.Size([1, 30, 4])
    """

    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


@declared("fold")
class Fold(Layer):
    """Combines sliding windows, as columns, into images of `output_size` (col2im): overlapping elements are added."""

    output_size: Sizes
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1
