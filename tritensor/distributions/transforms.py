"""Invertible functions of samples, with the logarithm of the absolute value of their derivative."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

from ..functional.creation.likeness import full_like
from ..nn.functional import softplus
from ..tensors import Tensor
from ..types.dtypes import finfo
from ..types.layout import broadcast_shapes
from ..types.size import Size
from . import constraints, structured, vectors
from .structured import *  # noqa: F403
from .transform import ComposeTransform, Transform, ValueTransform
from .utils import broadcast_all, sum_rightmost
from .vectors import *  # noqa: F403

__all__ = ["AbsTransform", "AffineTransform", "ComposeTransform", "ExpTransform", "PowerTransform", "SigmoidTransform"]
__all__ += ["SoftplusTransform", "TanhTransform", "Transform", "identity_transform", *structured.__all__]
__all__ += vectors.__all__
identity_transform = ComposeTransform([])


def _with_parameters(self: Any, shape: Sequence[int]) -> Size:
    own = [value.shape for value in vars(self).values() if isinstance(value, Tensor)]
    return Size(broadcast_shapes(tuple(shape), *own))


class ExpTransform(ValueTransform):
    """exp(x)."""

    bijective, sign = True, 1
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """x."""
        return x


class PowerTransform(ValueTransform):
    """The transform x^exponent, of positive numbers."""

    domain = codomain = constraints.positive
    bijective = True
    forward_shape = inverse_shape = _with_parameters

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @property
    def sign(self) -> Any:
        """The sign of the exponent."""
        return self.exponent.sign()

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |exponent y / x|."""
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(ValueTransform):
    """The logistic sigmoid: 1 / (1 + exp(-x))."""

    bijective, sign = True, 1
    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _inside(x.sigmoid())

    def _inverse(self, y: Tensor) -> Tensor:
        y = _inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """-softplus(-x) - softplus(x)."""
        return -softplus(-x) - softplus(x)


class SoftplusTransform(ValueTransform):
    """log(1 + exp(x))."""

    bijective, sign = True, 1
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """-softplus(-x)."""
        return -softplus(-x)


def _inside(y: Tensor) -> Tensor:
    limits = finfo(y.dtype)
    return y.clamp(limits.tiny, 1 - limits.eps)


class TanhTransform(ValueTransform):
    """tanh(x)."""

    bijective, sign = True, 1
    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """2 (log 2 - x - softplus(-2 x)), which is exact where 1 - tanh(x)^2 is 0."""
        return 2 * (log(2) - x - softplus(-2 * x))


class AbsTransform(ValueTransform):
    """The transform |x|, whose inverse is taken to be positive."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(ValueTransform):
    """The affine transform loc + scale x."""

    bijective = True
    forward_shape = inverse_shape = _with_parameters

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    domain = codomain = constraints.dependent_property(
        lambda self: constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real
    )

    @property
    def sign(self) -> Any:
        """The sign of the scale."""
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |scale|, summed over an event."""
        scale, dims = self.scale, self._event_dim
        found = full_like(x, log(abs(scale))) if not isinstance(scale, Tensor) else scale.abs().log()
        return sum_rightmost(found, dims).expand(x.shape[: x.ndim - dims])
