"""Layers that add elements around their input: a number, or its own elements.

`padding` is a number for all sides, or two for each dimension from the last one on; negative numbers take away. Shapes
are (N, C, *sizes) or (C, *sizes).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import functional as F
from ..errors import explain
from ..tensors import Tensor
from .layer import Layer, declared

__all__ = ["CircularPad1d", "CircularPad2d", "CircularPad3d"]
__all__ += ["ConstantPad1d", "ConstantPad2d", "ConstantPad3d"]
__all__ += ["ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d"]
__all__ += ["ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"]
__all__ += ["ZeroPad1d", "ZeroPad2d", "ZeroPad3d"]


class _Padding:
    padding: Any
    _rank: int

    def _prepare(self) -> None:
        own = self.__dict__
        given = own["padding"]
        own["padding"] = tuple(given) if isinstance(given, Iterable) else (given,) * (2 * self._rank)

    def extra_repr(self) -> str:
        """The numbers of elements."""
        return f"{self.padding}"


@declared()
class _ConstantPadNd(_Padding, Layer):
    padding: int | Iterable[int]
    value: float

    def forward(self, input: Tensor) -> Tensor:
        """Any number of dimensions, of which the last are padded."""
        return F.pad(input, self.padding, "constant", self.value)  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        """The numbers of elements and their value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd, rank=1):
    """Constant padding: adds elements of `value` before and after the last dimension.

    >>> import tritensor as torch
    >>> torch.nn.ConstantPad1d((2, 1), 7.0)(torch.zeros(1, 2))
    tensor([[7., 7., 0., 0., 7.]])
    """


class ConstantPad2d(_ConstantPadNd, rank=2):
    """Constant padding: adds elements of `value` around the last two dimensions: left, right, top, bottom."""


class ConstantPad3d(_ConstantPadNd, rank=3):
    """Constant padding with `value` around the last three dimensions: left, right, top, bottom, front, back."""


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: int | Iterable[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The numbers of elements."""
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Zero padding: adds zeros before and after the last dimension."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Zero padding: adds zeros around the last two dimensions: left, right, top, bottom.

    >>> import tritensor as torch
    >>> torch.nn.ZeroPad2d((1, 0, 0, 1))(torch.ones(1, 1, 2))
    tensor([[[0., 1., 1.],
             [0., 0., 0.]]])
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Zero padding: adds zeros around the last three dimensions: left, right, top, bottom, front, back."""


@declared()
class _OwnElements(_Padding, Layer):
    """Base of the layers that repeat elements of the input. PyTorch's have one more dimension than they pad, or two."""

    padding: int | Iterable[int]
    _mode = ""

    def forward(self, input: Tensor) -> Tensor:
        """Shape (N, C, *sizes) or (C, *sizes)."""
        if input.ndim - self._rank not in (1, 2):
            raise self._refusal(input.ndim, f"{self._rank + 1}D or {self._rank + 2}D")
        return F.pad(input, self.padding, self._mode)  # type: ignore[arg-type]

    def _refusal(self, rank: int, wanted: str) -> Exception:
        """The error for an input of another rank."""
        words = f"Padding size {2 * self._rank} is not supported for {rank}D input tensor."
        fact = f"{type(self).__name__} expects {wanted} input, (C, *sizes) or (N, C, *sizes)"
        return NotImplementedError(explain(words, fact, remedy="use functional.pad"))


class _ReflectionPadNd(_OwnElements):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd, rank=1):
    """Reflection padding: mirrors the last dimension at its ends, which are not repeated.

    >>> import tritensor as torch
    >>> torch.nn.ReflectionPad1d(2)(torch.arange(4.0).view(1, 4))
    tensor([[2., 1., 0., 1., 2., 3., 2., 1.]])

    Raises:
        NotImplementedError: an input of another rank. ShapeError: fewer elements than are to be added.
    """


class ReflectionPad2d(_ReflectionPadNd, rank=2):
    """Reflection padding: mirrors the last two dimensions at their ends: left, right, top, bottom."""


class ReflectionPad3d(_ReflectionPadNd, rank=3):
    """Reflection padding: mirrors the last three dimensions: left, right, top, bottom, front, back."""


class _ReplicationPadNd(_OwnElements):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd, rank=1):
    """Replication padding: repeats the first and the last element of the last dimension.

    >>> import tritensor as torch
    >>> torch.nn.ReplicationPad1d((2, 1))(torch.arange(3.0).view(1, 3))
    tensor([[0., 0., 0., 1., 2., 2.]])

    Raises:
        NotImplementedError: an input of another rank.
    """


class ReplicationPad2d(_ReplicationPadNd, rank=2):
    """Replication padding: repeats the edges of the last two dimensions: left, right, top, bottom."""


class ReplicationPad3d(_ReplicationPadNd, rank=3):
    """Replication padding: repeats the faces of the last three dimensions: left, right, top, bottom, front, back."""


class _CircularPad(_OwnElements):
    _mode = "circular"

    def _refusal(self, rank: int, wanted: str) -> Exception:
        """The error for an input of another rank."""
        return ValueError(f"expected {wanted} input (got {rank}D input)")


class CircularPad1d(_CircularPad, rank=1):
    """Circular padding of the last dimension: continues it with the elements of its other end.

    >>> import tritensor as torch
    >>> torch.nn.CircularPad1d((1, 2))(torch.arange(4.0).view(1, 4))
    tensor([[3., 0., 1., 2., 3., 0., 1.]])

    Raises:
        ValueError: an input of another rank. ShapeError: fewer elements than are to be added.
    """


class CircularPad2d(_CircularPad, rank=2):
    """Circular padding: continues the last two dimensions with their other ends: left, right, top, bottom."""


class CircularPad3d(_CircularPad, rank=3):
    """Circular padding of the last three dimensions from their other ends: left, right, top, bottom, front, back."""
