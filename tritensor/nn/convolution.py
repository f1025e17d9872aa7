"""Convolution layers of one, two and three dimensions, which share one text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import functional as F
from ..errors import ShapeError, require
from ..functional.window.convolution import convolve, convolve_transposed
from ..ground.index import watching
from ..kernels.window.geometry import same_padding, transposed_size
from ..tensors import Tensor
from ..types import Device, Dtype
from . import init
from .layer import OfRank, add_parameters
from .lazy import LazyLayer, without_size
from .module import Module
from .parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
__all__ += ["LazyConv1d", "LazyConv2d", "LazyConv3d"]
__all__ += ["LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(OfRank, Module):
    """The base of convolutions and transposed ones.

    Raises:
        ValueError: channels that groups do not divide, or an unknown padding or padding mode.
    """

    transposed = False
    weight: Parameter
    bias: Parameter | Any  # or None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: Dtype = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            require(not channels % groups, ValueError, "{} must be divisible by groups", name)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = self._each(kernel_size), self._each(stride)
        self.dilation, self.output_padding = self._each(dilation), (0,) * self._rank
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
            if padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'")
        if self.transposed and padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self.padding = padding if isinstance(padding, str) else self._each(padding)
        self.groups, self.padding_mode = groups, padding_mode
        add_parameters(self, device, dtype, weight=self._weight_shape(), bias=(out_channels,) if bias else None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, uniformly in +-1/sqrt(the number of products in a result's sum)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            terms = math.prod(self.weight.shape[1:])
            bound = 1 / math.sqrt(terms) if terms else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """The sizes, and what differs from its default."""
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}",
            "" if self.padding == (0,) * len(self.padding) else f"padding={self.padding}",
            "" if self.dilation == (1,) * len(self.dilation) else f"dilation={self.dilation}",
            "" if self.output_padding == (0,) * len(self.output_padding) else f"output_padding={self.output_padding}",
            "" if self.groups == 1 else f"groups={self.groups}",
            "bias=False" if self.bias is None else "",
            "" if self.padding_mode == "zeros" else f"padding_mode={self.padding_mode}",
        ]
        return ", ".join(filter(None, parts))


class _Forward(_ConvNd):
    def forward(self, input: Tensor) -> Tensor:
        """Shape (images, out_channels, *results), or without images."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._around(), mode=self.padding_mode), 0
        rest = self.stride, padding, self.dilation, self.groups
        if watching:  # functions ask
            return getattr(F, f"conv{self._rank}d")(input, self.weight, self.bias, *rest)
        return convolve(self._rank, input, self.weight, self.bias, *rest)

    def _around(self) -> list[int]:
        """The padding before and behind each dimension, the last one first."""
        pairs: list[tuple[int, int]] = []
        for dim in reversed(range(self._rank)):
            reach = (self.kernel_size[dim] - 1) * self.dilation[dim]
            if isinstance(self.padding, str):
                before = same_padding(self.kernel_size[dim], self.dilation[dim]) if self.padding == "same" else 0
                pairs.append((before, reach - before if self.padding == "same" else 0))
            else:
                pairs.append((self.padding[dim], self.padding[dim]))
        return [number for pair in pairs for number in pair]


class _ConvTransposeNd(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: Dtype = None,
    ) -> None:
        rest = dilation, groups, bias, padding_mode, device, dtype
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, *rest)
        self.output_padding = self._each(output_padding)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Shape (images, out_channels, *results), or without images.

        Args:
            output_size: the sizes of the results, of the several that the stride allows.

        Raises:
            ValueError: no such size.
        """
        more = self.output_padding if output_size is None else self._more(input, output_size)
        rest = self.stride, self.padding, more, self.groups, self.dilation
        if watching:  # functions ask
            return getattr(F, f"conv_transpose{self._rank}d")(input, self.weight, self.bias, *rest)
        return convolve_transposed(self._rank, input, self.weight, self.bias, *rest)

    def _more(self, input: Tensor, output_size: Sequence[int]) -> list[int]:
        """The output padding that gives results of these sizes."""
        rank, sizes = self._rank, list(output_size)
        others = 2 if input.ndim == rank + 2 else 1
        if len(sizes) == others + rank:
            sizes = sizes[others:]
        if len(sizes) != rank:
            raise ValueError(
                f"ConvTranspose{rank}D: for {input.ndim}D input, output_size must have {rank} or {others + rank} "
                f"elements (got {len(sizes)})"
            )
        steps: Any = (self.kernel_size, self.stride, self.padding, self.dilation, (0,) * rank)
        least = [transposed_size(*each) for each in zip(input.shape[others:], *steps, strict=True)]
        most = [size + step - 1 for size, step in zip(least, self.stride, strict=True)]
        if any(not low <= size <= high for low, size, high in zip(least, sizes, most, strict=True)):
            raise ValueError(
                f"requested an output size of {sizes}, but valid sizes range from {least} to {most} (for an input of "
                f"{input.shape[2:]})"
            )
        return [size - low for size, low in zip(sizes, least, strict=True)]


class _Lazy(LazyLayer, _ConvNd):
    """The base of both lazy kinds: the input's channels become those of the weight."""

    def _shapes(self, input: Tensor | None) -> dict[str, tuple[int, ...]]:
        if input is None:
            shape = self.weight.shape  # that of a state that was loaded
            self.in_channels = shape[0] if self.transposed else shape[1] * self.groups
            return {}
        rank = self._rank
        if input.ndim not in (rank + 1, rank + 2):
            raise ShapeError(
                f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {type(self).__name__}, but "
                f"got input of size: {list(input.shape)}"
            )
        channels = input.shape[-rank - 1]
        require(not channels % self.groups, ValueError, "in_channels must be divisible by groups")
        self.in_channels = channels
        return {"weight": self._weight_shape(), "bias": (self.out_channels,)}


class _LazyForward(_Lazy):
    @without_size(_Forward.__init__)
    def __init__(self) -> None: ...


class _LazyTransposed(_Lazy):
    @without_size(_ConvTransposeNd.__init__)
    def __init__(self) -> None: ...


class Conv1d(_Forward, rank=1):
    """Applies a 1-d convolution to inputs (images, in_channels, length), with a kernel for each output channel.

    >>> import tritensor as torch
    >>> torch.nn.Conv1d(16, 33, 3, stride=2)(torch.ones(20, 16, 50)).shape
    tritensor.Size([20, 33, 24])

    Args:
        in_channels, out_channels: of the input and of the result.
        kernel_size, stride, padding, dilation: see `functional.conv1d`; padding may be "same" or "valid".
        groups: into how many parts, computed apart, the channels are divided.
        bias: whether a number is added to each channel.
        padding_mode: "zeros", or what else lies around the input: "reflect", "replicate", "circular".

    Raises:
        ValueError: channels that groups do not divide, or an unknown padding or padding mode.
    """


class Conv2d(_Forward, rank=2):
    """Applies a 2-d convolution to inputs (images, in_channels, height, width), with a kernel for each output channel.

    Parameters, and what is raised, are those of `Conv1d`, with a number for each dimension or one for both.

    >>> import tritensor as torch
    >>> torch.nn.Conv2d(16, 33, (3, 5), stride=(2, 1), padding=(4, 2))(torch.ones(2, 16, 50, 100)).shape
    tritensor.Size([2, 33, 28, 100])
    """


class Conv3d(_Forward, rank=3):
    """Applies a 3-d convolution to inputs (images, in_channels, depth, height, width), with a kernel a channel.

    Parameters, and what is raised, are those of `Conv1d`, with a number for each dimension or one for all.

    >>> import tritensor as torch
    >>> torch.nn.Conv3d(2, 3, 3)(torch.ones(1, 2, 5, 6, 7)).shape
    tritensor.Size([1, 3, 3, 4, 5])
    """


class ConvTranspose1d(_ConvTransposeNd, rank=1):
    """Applies a 1-d transposed convolution (deconvolution), the gradient of `Conv1d`.

    >>> import tritensor as torch
    >>> layer = torch.nn.ConvTranspose1d(16, 33, 3, stride=2)
    >>> layer(torch.ones(20, 16, 50)).shape, layer(torch.ones(20, 16, 50), output_size=[102]).shape
    (tritensor.Size([20, 33, 101]), tritensor.Size([20, 33, 102]))

    Args:
        in_channels, out_channels: of the input and of the result.
        kernel_size, stride, padding, output_padding, dilation: see `functional.conv_transpose1d`.
        groups: into how many parts, computed apart, the channels are divided.
        bias: whether a number is added to each channel.
        padding_mode: "zeros" only.

    Raises:
        ValueError: channels that groups do not divide, or another padding mode.
    """


class ConvTranspose2d(_ConvTransposeNd, rank=2):
    """Applies a 2-d transposed convolution (deconvolution), the gradient of `Conv2d`.

    Parameters, and what is raised, are those of `ConvTranspose1d`, with a number for each dimension or one for both.

    >>> import tritensor as torch
    >>> torch.nn.ConvTranspose2d(16, 33, 3, stride=2, padding=1, output_padding=1)(torch.ones(2, 16, 7, 7)).shape
    tritensor.Size([2, 33, 14, 14])
    """


class ConvTranspose3d(_ConvTransposeNd, rank=3):
    """Applies a 3-d transposed convolution (deconvolution), the gradient of `Conv3d`.

    Parameters, and what is raised, are those of `ConvTranspose1d`, with a number for each dimension or one for all.

    >>> import tritensor as torch
    >>> torch.nn.ConvTranspose3d(2, 3, 2, stride=2)(torch.ones(1, 2, 3, 4, 5)).shape
    tritensor.Size([1, 3, 6, 8, 10])
    """


class LazyConv1d(_LazyForward, Conv1d):
    """A `Conv1d` that takes its number of input channels from its first input, and is an ordinary one from then on.

    >>> import tritensor as torch
    >>> layer = torch.nn.LazyConv1d(33, 3)
    >>> layer(torch.ones(20, 16, 50)).shape, layer
    (tritensor.Size([20, 33, 48]), Conv1d(16, 33, kernel_size=(3,), stride=(1,)))
    """


class LazyConv2d(_LazyForward, Conv2d):
    """A `Conv2d` that takes its number of input channels from its first input, and is an ordinary one from then on."""


class LazyConv3d(_LazyForward, Conv3d):
    """A `Conv3d` that takes its number of input channels from its first input, and is an ordinary one from then on."""


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    """A `ConvTranspose1d` that takes its number of input channels from its first input, and is then an ordinary one."""


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    """A `ConvTranspose2d` that takes its number of input channels from its first input, and is then an ordinary one."""


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    """A `ConvTranspose3d` that takes its number of input channels from its first input, and is then an ordinary one."""
