"""Layers that pool windows of their input, put elements back, and fold windows.

Those that differ by the number of dimensions share one text; the functions of `tritensor.nn.functional` of the same
names say what they compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import functional as F
from ..tensor import Tensor
from .module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "Fold",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "Unfold",
]

Sizes = int | Sequence[int]


class _OfWindows(Module):
    """Base of the layers that pass their options to a function."""

    _rank: int
    _function: str  # the name of the function, without the number of dimensions
    _options: tuple[str, ...]  # the attributes that are passed to it by name
    _shown: tuple[str, ...]  # those that are printed

    def forward(self, input: Tensor) -> Any:
        """What the function makes of the input and the layer's options."""
        function = getattr(F, f"{self._function}{self._rank}d" if self._rank else self._function)
        return function(input, **{name: getattr(self, name) for name in self._options})

    def extra_repr(self) -> str:
        """The options."""
        return ", ".join([f"{name}={getattr(self, name)}" for name in self._shown])

    def _each(self, value: Any) -> Any:
        """One value for each dimension."""
        return tuple(value) if isinstance(value, (tuple, list)) else (value,) * self._rank


class _MaxPool(_OfWindows):
    _function = "max_pool"
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    _options = (*_shown, "return_indices")

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode


class _AvgPool(_OfWindows):
    _function = "avg_pool"
    _shown = ("kernel_size", "stride", "padding")
    _options: tuple[str, ...] = (*_shown, "ceil_mode", "count_include_pad", "divisor_override")

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override


class _AdaptiveAvgPool(_OfWindows):
    _function = "adaptive_avg_pool"
    _options = _shown = ("output_size",)

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size


class _AdaptiveMaxPool(_OfWindows):
    _function = "adaptive_max_pool"
    _shown = ("output_size",)
    _options = ("output_size", "return_indices")

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices


class _LPPool(_OfWindows):
    _function = "lp_pool"
    _options = _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(
        self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode


class _FractionalMaxPool(_OfWindows):
    _function = "fractional_max_pool"
    _shown = ()
    _options = ("kernel_size", "output_size", "output_ratio", "return_indices", "_random_samples")

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = self._each(kernel_size)
        if self._rank == 3 and min(self.kernel_size) <= 0:
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else self._each(output_size)
        self.output_ratio = None if output_ratio is None else self._each(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")


class _MaxUnpool(_OfWindows):
    _function = "max_unpool"
    _options = _shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self.kernel_size = self._each(kernel_size)
        self.stride = self._each(kernel_size if stride is None else stride)
        self.padding = self._each(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:  # type: ignore[override]
        """The input's elements at the places that the pool returned with them, zeros elsewhere."""
        function = getattr(F, f"max_unpool{self._rank}d")
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)  # type: ignore[no-any-return]


class MaxPool1d(_MaxPool):
    """The largest element of each window along the last dimension."""

    _rank = 1


class MaxPool2d(_MaxPool):
    """The largest element of each window along the last two dimensions.

    >>> import tritensor as torch
    >>> torch.nn.MaxPool2d(3, 2, 1)(torch.ones(8, 64, 56, 56)).shape
    tritensor.Size([8, 64, 28, 28])
    """

    _rank = 2


class MaxPool3d(_MaxPool):
    """The largest element of each window along the last three dimensions."""

    _rank = 3


class AvgPool1d(_AvgPool):
    """The average of each window along the last dimension.

    >>> import tritensor as torch
    >>> torch.nn.AvgPool1d(2)
    AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))
    """

    _rank = 1
    _options = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        kernel_size, padding = self._each(kernel_size), self._each(padding)
        stride = kernel_size if stride is None else self._each(stride)
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)


class AvgPool2d(_AvgPool):
    """The average of each window along the last two dimensions."""

    _rank = 2


class AvgPool3d(_AvgPool):
    """The average of each window along the last three dimensions."""

    _rank = 3


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The averages of `output_size` windows that cover the last dimension."""

    _rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The averages of `output_size` windows that cover the last two dimensions."""

    _rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The averages of `output_size` windows that cover the last three dimensions."""

    _rank = 3


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of `output_size` windows that cover the last dimension."""

    _rank = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of `output_size` windows that cover the last two dimensions."""

    _rank = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of `output_size` windows that cover the last three dimensions."""

    _rank = 3


class LPPool1d(_LPPool):
    """(sum of x^p)^(1/p) of each window along the last dimension, with p `norm_type`."""

    _rank = 1


class LPPool2d(_LPPool):
    """(sum of x^p)^(1/p) of each window along the last two dimensions, with p `norm_type`."""

    _rank = 2


class LPPool3d(_LPPool):
    """(sum of x^p)^(1/p) of each window along the last three dimensions, with p `norm_type`."""

    _rank = 3


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest element of each of `output_size` windows placed at random along the last two dimensions."""

    _rank = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest element of each of `output_size` windows placed at random along the last three dimensions."""

    _rank = 3


class MaxUnpool1d(_MaxUnpool):
    """Elements put back to where a pool along the last dimension found them."""

    _rank = 1


class MaxUnpool2d(_MaxUnpool):
    """Elements put back to where a pool along the last two dimensions found them."""

    _rank = 2


class MaxUnpool3d(_MaxUnpool):
    """Elements put back to where a pool along the last three dimensions found them."""

    _rank = 3


class Unfold(_OfWindows):
    """The windows of pictures as columns, (N, C * positions of a window, windows).

    >>> import tritensor as torch
    >>> torch.nn.Unfold((2, 3))(torch.ones(1, 5, 3, 4)).shape
    tritensor.Size([1, 30, 4])
    """

    _rank, _function = 0, "unfold"
    _options = _shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride


class Fold(_OfWindows):
    """Pictures of `output_size`, each element the sum of what stands for it in the columns of its windows."""

    _rank, _function = 0, "fold"
    _options = _shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride
