"""Invertible functions of samples, with the logarithm of the absolute value of their derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from typing import Any

from .. import linalg
from ..errors import require
from ..functional import cat, stack
from ..functional.creation.likeness import full_like
from ..functional.creation.ranges import arange, eye
from ..nn.functional import logsigmoid, pad, softplus
from ..tensors import Tensor
from ..types.dtypes import finfo
from ..types.layout import broadcast_shapes
from ..types.size import Size
from . import constraints
from .constraints import dependent_property
from .distribution import Distribution
from .properties import Formula
from .shapes import broadcast_all, like, sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix
from .transform import ComposeTransform, Transform, ValueTransform

__all__ = ["AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform"]
__all__ += ["CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform"]
__all__ += ["PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform"]
__all__ += ["SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform"]
__all__ += ["identity_transform"]
_FEW = "Too few dimensions on input"
identity_transform = ComposeTransform([])


def _with_parameters(self: Transform, shape: Sequence[int], back: bool) -> Sequence[int]:
    own = [value.shape for value in vars(self).values() if isinstance(value, Tensor)]
    return broadcast_shapes(tuple(shape), *own)


class ExpTransform(ValueTransform):
    """exp(x)."""

    bijective, sign = True, 1
    codomain = constraints.positive
    _call: Formula = lambda self, x: x.exp()
    _inverse: Formula = lambda self, y: y.log()
    _log_slope: Formula = lambda self, x, y: x


class PowerTransform(ValueTransform):
    """The transform x^exponent, of positive numbers."""

    domain = codomain = constraints.positive
    bijective = True
    _shaped = _with_parameters

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    sign = property(lambda self: self.exponent.sign())
    _call: Formula = lambda self, x: x**self.exponent
    _inverse: Formula = lambda self, y: y ** (1 / self.exponent)
    _log_slope: Formula = lambda self, x, y: (self.exponent * y / x).abs().log()


class SigmoidTransform(ValueTransform):
    """The logistic sigmoid: 1 / (1 + exp(-x))."""

    bijective, sign = True, 1
    codomain = constraints.unit_interval
    _call: Formula = lambda self, x: _inside(x.sigmoid())

    def _inverse(self, y: Tensor) -> Tensor:
        y = _inside(y)
        return y.log() - (-y).log1p()

    _log_slope: Formula = lambda self, x, y: -softplus(-x) - softplus(x)


class SoftplusTransform(ValueTransform):
    """log(1 + exp(x))."""

    bijective, sign = True, 1
    codomain = constraints.positive
    _call: Formula = lambda self, x: softplus(x)
    _inverse: Formula = lambda self, y: (-(-y).expm1()).log() + y
    _log_slope: Formula = lambda self, x, y: -softplus(-x)


def _inside(y: Tensor) -> Tensor:
    limits = finfo(y.dtype)
    return y.clamp(limits.tiny, 1 - limits.eps)


class TanhTransform(ValueTransform):
    """tanh(x)."""

    bijective, sign = True, 1
    codomain = constraints.interval(-1.0, 1.0)
    _call: Formula = lambda self, x: x.tanh()
    _inverse: Formula = lambda self, y: y.atanh()
    _log_slope: Formula = lambda self, x, y: 2 * (log(2) - x - softplus(-2 * x))  # exact where 1 - tanh(x)^2 is 0


class AbsTransform(ValueTransform):
    """The transform |x|, whose inverse is taken to be positive."""

    codomain = constraints.positive
    _call: Formula = lambda self, x: x.abs()
    _inverse: Formula = lambda self, y: y


class AffineTransform(ValueTransform):
    """The affine transform loc + scale x."""

    bijective = True
    _shaped = _with_parameters

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    domain = codomain = constraints.dependent_property(
        lambda self: constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real
    )

    sign = property(
        lambda self: self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)
    )
    _call: Formula = lambda self, x: self.loc + self.scale * x
    _inverse: Formula = lambda self, y: (y - self.loc) / self.scale

    def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
        """log |scale|, summed over an event."""
        scale, dims = self.scale, self._event_dim
        found = full_like(x, log(abs(scale))) if not isinstance(scale, Tensor) else scale.abs().log()
        return sum_rightmost(found, dims).expand(x.shape[: x.ndim - dims])


class SoftmaxTransform(ValueTransform):
    """The softmax of vectors; it has no inverse, `inv` gives the logarithm."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        found = (x - x.max(-1, True)[0]).exp()
        return found / found.sum(-1, True)

    _inverse: Formula = lambda self, y: y.log()

    def _shaped(self, shape: Sequence[int], back: bool) -> Sequence[int]:
        require(len(shape) >= 1, ValueError, _FEW)
        return shape


class StickBreakingTransform(ValueTransform):
    """Vectors to shares of one more element: each is a sigmoid's part of what those before it left."""

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    def _offset(self, x: Tensor, count: int) -> Tensor:
        return arange(count, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        limits = finfo(x.dtype)
        z = (x - self._offset(x, x.shape[-1])).sigmoid().clamp(limits.tiny, 1 - limits.eps)
        return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        kept = y[..., :-1]
        rest = (1 - kept.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return kept.log() - rest.log() + self._offset(y, kept.shape[-1])

    def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum of the logarithms of each share and of what it leaves."""
        x = x - self._offset(x, x.shape[-1])
        return (logsigmoid(x) - x + y[..., :-1].log()).sum(-1)

    def _shaped(self, shape: Sequence[int], back: bool) -> Sequence[int]:
        require(len(shape) >= 1, ValueError, _FEW)
        return (*shape[:-1], shape[-1] + (-1 if back else 1))


class LowerCholeskyTransform(ValueTransform):
    """Square matrices to lower triangular ones with a positive diagonal, of which the logarithms were given."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    _call: Formula = lambda self, x: x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()
    _inverse: Formula = lambda self, y: y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """Square matrices to positive definite ones: L L^T of the result of `LowerCholeskyTransform`."""

    codomain: Any = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        x = super()._call(x)
        return x @ x.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return super()._inverse(linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of D (D - 1) / 2 elements to Cholesky factors of D x D correlation matrices, whose rows have norm 1.

    Formulas: Stan Reference Manual, Cholesky factors of correlation matrices.
    """

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x: Tensor) -> Tensor:
        x = x.tanh()
        step = finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(-1 + step, 1 - step), -1)
        rest = (1 - r**2).sqrt().cumprod(-1)
        return (r + like(eye, r.shape[-1], r)) * pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        rest = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(rest, -1).sqrt()
        return (t.log1p() - (-t).log1p()) / 2

    def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm for the lower triangle of the factor."""
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(-1), -2).log().sum(-1) / 2
        return rest - 2 * (x + softplus(-2 * x) - log(2)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        """The shape of the factors."""
        require(len(shape) >= 1, ValueError, _FEW)
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        require(n * (n - 1) // 2 == count, ValueError, "Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        """The shape of the vectors."""
        require(len(shape) >= 2, ValueError, _FEW)
        require(shape[-2] == shape[-1], ValueError, "Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


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
        own = self._cache_size == cache_size
        return self if own else type(self)(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        require(x.ndim >= self.domain.event_dim, ValueError, _FEW)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        require(y.ndim >= self.codomain.event_dim, ValueError, _FEW)
        return self.base_transform.inv(y)

    def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def _shaped(self, shape: Sequence[int], back: bool) -> Sequence[int]:
        return self.base_transform.inverse_shape(shape) if back else self.base_transform.forward_shape(shape)

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
    _call: Formula = lambda self, x: x.reshape(*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape)
    _inverse: Formula = lambda self, y: y.reshape(*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape)
    _log_slope: Formula = lambda self, x, y: x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def _shaped(self, shape: Sequence[int], back: bool) -> Sequence[int]:
        before, after = (self.out_shape, self.in_shape) if back else (self.in_shape, self.out_shape)
        require(len(shape) >= len(before), ValueError, _FEW)
        cut = len(shape) - len(before)
        words = "Shape mismatch: expected {} but got {}"
        require(tuple(shape[cut:]) == tuple(before), ValueError, words, shape[cut:], before)
        return (*shape[:cut], *after)


class _OfParts(Transform):
    """A transform for each part of a tensor along a dimension."""

    lengths: list[int]

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        require(all(isinstance(t, Transform) for t in tseq), AssertionError, "All elements of tseq must be Transforms")
        super().__init__(cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) if cache_size else t for t in tseq], dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))
    domain = dependent_property(lambda self: self._region([t.domain for t in self.transforms]))
    codomain = dependent_property(lambda self: self._region([t.codomain for t in self.transforms]))

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

    _call: Formula = lambda self, x: self._each(self.transforms, x)
    _inverse: Formula = lambda self, y: self._each([t.inv for t in self.transforms], y)

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

    def _region(self, regions: Sequence[constraints.Constraint]) -> constraints.Constraint:
        return constraints.cat(regions, self.dim, self.lengths)

    def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
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

    def _region(self, regions: Sequence[constraints.Constraint]) -> constraints.Constraint:
        return constraints.stack(regions, self.dim)

    def _parts(self, x: Tensor) -> list[Tensor]:
        return [part.squeeze(self.dim) for part in super()._parts(x)]

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return stack(parts, self.dim)

    _log_slope: Formula = lambda self, x, y: stack(self._jacobians(x, y), self.dim)


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution, whose samples it makes uniform numbers."""

    bijective, sign = True, 1
    codomain = constraints.unit_interval

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)
    _call: Formula = lambda self, x: self.distribution.cdf(x)
    _inverse: Formula = lambda self, y: self.distribution.icdf(y)
    _log_slope: Formula = lambda self, x, y: self.distribution.log_prob(x)
