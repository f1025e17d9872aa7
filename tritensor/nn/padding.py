"""Layers that add elements around their input: a number, or its own elements."""

from __future__ import annotations

from collections.abc import Iterable

from .. import functional as F
from ..errors import explain
from ..tensor import Tensor
from .module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Padding(Module):
    """Base of the padding layers. `padding` is a number for all sides, or two for each dimension from the last one on.

    Shapes: (N, C, *sizes) or (C, *sizes), and the same with larger sizes (smaller ones, where a number is negative).
    """

    dims: int
    mode: str
    padding: tuple[int, ...]

    def __init__(self, padding: int | Iterable[int]) -> None:
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, Iterable) else (padding,) * (2 * self.dims)

    def extra_repr(self) -> str:
        """The numbers of elements."""
        return f"{self.padding}"


class _ConstantPad(_Padding):
    value: float

    def __init__(self, padding: int | Iterable[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Any number of dimensions, of which the last are padded."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The numbers of elements and their value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Adds elements of `value` before and after the last dimension.

    >>> import tritensor as torch
    >>> torch.nn.ConstantPad1d((2, 1), 7.0)(torch.zeros(1, 2))
    tensor([[7., 7., 0., 0., 7.]])
    """

    dims = 1


class ConstantPad2d(_ConstantPad):
    """Adds elements of `value` around the last two dimensions; `padding` is left, right, top, bottom."""

    dims = 2


class ConstantPad3d(_ConstantPad):
    """Adds elements of `value` around the last three dimensions: left, right, top, bottom, front, back."""

    dims = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: int | Iterable[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The numbers of elements."""
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Adds zeros before and after the last dimension."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Adds zeros around the last two dimensions; `padding` is left, right, top, bottom.

    >>> import tritensor as torch
    >>> torch.nn.ZeroPad2d((1, 0, 0, 1))(torch.ones(1, 1, 2))
    tensor([[[0., 1., 1.],
             [0., 0., 0.]]])
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Adds zeros around the last three dimensions: left, right, top, bottom, front, back."""


class _OwnElements(_Padding):
    """Base of the layers that repeat elements of the input. PyTorch's have one more dimension than they pad, or two."""

    def forward(self, input: Tensor) -> Tensor:
        """Shape (N, C, *sizes) or (C, *sizes)."""
        if input.ndim - self.dims not in (1, 2):
            self._refuse(input.ndim)
        return F.pad(input, self.padding, self.mode)

    def _refuse(self, rank: int) -> None:
        """Raise for an input of another rank."""
        name, wanted = type(self).__name__, f"{self.dims + 1}D or {self.dims + 2}D"
        words = f"Padding size {2 * self.dims} is not supported for {rank}D input tensor."
        raise NotImplementedError(
            explain(words, f"{name} expects {wanted} input, (C, *sizes) or (N, C, *sizes)", remedy="use functional.pad")
        )


class _ReflectionPad(_OwnElements):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPad):
    """Mirrors the last dimension at its ends, which are not repeated.

    >>> import tritensor as torch
    >>> torch.nn.ReflectionPad1d(2)(torch.arange(4.0).view(1, 4))
    tensor([[2., 1., 0., 1., 2., 3., 2., 1.]])

    Raises:
        NotImplementedError: an input of another rank. ShapeError: fewer elements than are to be added.
    """

    dims = 1


class ReflectionPad2d(_ReflectionPad):
    """Mirrors the last two dimensions at their ends; `padding` is left, right, top, bottom."""

    dims = 2


class ReflectionPad3d(_ReflectionPad):
    """Mirrors the last three dimensions at their ends: left, right, top, bottom, front, back."""

    dims = 3


class _ReplicationPad(_OwnElements):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPad):
    """Repeats the first and the last element of the last dimension.

    >>> import tritensor as torch
    >>> torch.nn.ReplicationPad1d((2, 1))(torch.arange(3.0).view(1, 3))
    tensor([[0., 0., 0., 1., 2., 2.]])

    Raises:
        NotImplementedError: an input of another rank.
    """

    dims = 1


class ReplicationPad2d(_ReplicationPad):
    """Repeats the edges of the last two dimensions; `padding` is left, right, top, bottom."""

    dims = 2


class ReplicationPad3d(_ReplicationPad):
    """Repeats the faces of the last three dimensions: left, right, top, bottom, front, back."""

    dims = 3


class _CircularPad(_OwnElements):
    mode = "circular"

    def _refuse(self, rank: int) -> None:
        """Raise for an input of another rank."""
        raise ValueError(f"expected {self.dims + 1}D or {self.dims + 2}D input (got {rank}D input)")


class CircularPad1d(_CircularPad):
    """Continues the last dimension with the elements of its other end.

    >>> import tritensor as torch
    >>> torch.nn.CircularPad1d((1, 2))(torch.arange(4.0).view(1, 4))
    tensor([[3., 0., 1., 2., 3., 0., 1.]])

    Raises:
        ValueError: an input of another rank. ShapeError: fewer elements than are to be added.
    """

    dims = 1


class CircularPad2d(_CircularPad):
    """Continues the last two dimensions with the elements of their other ends: left, right, top, bottom."""

    dims = 2


class CircularPad3d(_CircularPad):
    """Continues the last three dimensions with their other ends: left, right, top, bottom, front, back."""

    dims = 3
