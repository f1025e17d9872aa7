"""Transforms of the shape of events, of parts of a tensor, and by a distribution function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import require
from ..functional.views.joining import cat, stack
from ..tensors import Tensor
from ..types.size import Size
from . import constraints
from .constraints import dependent_property
from .distribution import Distribution
from .transform import Transform
from .utils import sum_rightmost

__all__ = ["CatTransform", "CumulativeDistributionTransform", "IndependentTransform", "ReshapeTransform"]
__all__ += ["StackTransform"]
_FEW = "Too few dimensions on input"


class IndependentTransform(Transform):
    """A transform whose events have more dimensions: those of the base's batch, of which the Jacobian is the sum."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    domain = dependent_property(
        lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)
    )
    codomain = dependent_property(
        lambda self: constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)
    )
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with another size of its cache."""
        own = self._cache_size == cache_size
        return self if own else type(self)(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        require(x.ndim >= self.domain.event_dim, ValueError, _FEW)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        require(y.ndim >= self.codomain.event_dim, ValueError, _FEW)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The base's, summed over an event."""
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        """The shape of the result for an argument's shape."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        """The shape of the argument for a result's shape."""
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Events of the shape `in_shape` in the shape `out_shape`.

    Raises:
        ValueError: the shapes have different numbers of elements.
    """

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        same = self.in_shape.numel() == self.out_shape.numel()
        require(same, ValueError, "in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    domain = dependent_property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = dependent_property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """0."""
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def _reshaped(self, shape: Sequence[int], before: Size, after: Size) -> Size:
        require(len(shape) >= len(before), ValueError, _FEW)
        cut = len(shape) - len(before)
        words = "Shape mismatch: expected {} but got {}"
        require(tuple(shape[cut:]) == tuple(before), ValueError, words, shape[cut:], before)
        return Size((*shape[:cut], *after))

    def forward_shape(self, shape: Sequence[int]) -> Size:
        """The shape of the result for an argument's shape."""
        return self._reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        """The shape of the argument for a result's shape."""
        return self._reshaped(shape, self.out_shape, self.in_shape)


class _OfParts(Transform):
    """A transform for each part of a tensor along a dimension."""

    lengths: list[int]

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        require(all(isinstance(t, Transform) for t in tseq), AssertionError, "All elements of tseq must be Transforms")
        super().__init__(cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) if cache_size else t for t in tseq], dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _parts(self, x: Tensor) -> list[Tensor]:
        words = "dim {} out of range for tensor with {} dimensions"
        require(-x.ndim <= self.dim < x.ndim, AssertionError, words, self.dim, x.ndim)
        size, length = x.shape[self.dim], sum(self.lengths)
        require(size == length, AssertionError, "x.size({}) = {} must equal {}", self.dim, size, length)
        return list(x.split(self.lengths, self.dim))

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return cat(parts, self.dim)

    def _each(self, functions: Sequence[Callable[[Tensor], Tensor]], x: Tensor) -> Tensor:
        return self._joined([function(part) for function, part in zip(functions, self._parts(x), strict=True)])

    def _call(self, x: Tensor) -> Tensor:
        return self._each(self.transforms, x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._each([t.inv for t in self.transforms], y)

    def _jacobians(self, x: Tensor, y: Tensor) -> list[Tensor]:
        pairs = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return [t.log_abs_det_jacobian(one, other) for t, one, other in pairs]


class CatTransform(_OfParts):
    """A transform for each part of a tensor along `dim`, the parts having these lengths, as `torch.cat` joins them."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        words = "lengths ({}) must match transforms ({})"
        sizes = len(self.lengths), len(self.transforms)
        require(sizes[0] == sizes[1], AssertionError, words, *sizes)

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths))
    domain = dependent_property(
        lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)
    )
    codomain = dependent_property(
        lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)
    )

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Joins those of the parts, or sums them where the parts are joined within events."""
        found, own = self._jacobians(x, y), self.event_dim
        found = [sum_rightmost(one, own - t.event_dim) for one, t in zip(found, self.transforms, strict=True)]
        dim = (self.dim - x.ndim if self.dim >= 0 else self.dim) + own
        return cat(found, dim) if dim < 0 else sum(found[1:], found[0])


class StackTransform(_OfParts):
    """A transform for each place along `dim`, as `torch.stack` joins results."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms)

    domain = dependent_property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = dependent_property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))

    def _parts(self, x: Tensor) -> list[Tensor]:
        return [part.squeeze(self.dim) for part in super()._parts(x)]

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Piles those of all places."""
        return stack(self._jacobians(x, y), self.dim)


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution, whose samples it makes uniform numbers."""

    bijective, sign = True, 1
    codomain = constraints.unit_interval

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the density."""
        return self.distribution.log_prob(x)
