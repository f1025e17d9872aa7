"""Invertible functions of samples, with the logarithm of the absolute value of their derivative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..nn.functional import softplus
from ..tensor import Tensor
from . import constraints

__all__ = [
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "PowerTransform",
    "SigmoidTransform",
    "TanhTransform",
    "Transform",
]


class Transform:
    """A function; `inv(y)` is its inverse.

    Attributes:
        domain, codomain: where arguments and results lie. sign: of the derivative. event_dim: dimensions of an event.
    """

    domain: Any = constraints.real
    codomain: Any = constraints.real
    sign: Any = 1
    event_dim = 0

    def __call__(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def inverse(self, y: Tensor) -> Tensor:
        """The argument whose result is `y`."""
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy/dx|."""
        raise NotImplementedError

    @property
    def inv(self) -> Transform:
        """The inverse as a transform."""
        return _Inverse(self)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(_same(value, vars(other)[name]) for name, value in vars(self).items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _same(one: Any, other: Any) -> bool:
    return bool((one == other).all()) if isinstance(one, Tensor) else bool(one == other)


class _Inverse(Transform):
    def __init__(self, of: Transform) -> None:
        self.of = of

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self.of.codomain

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        return self.of.domain

    @property
    def sign(self) -> Any:  # type: ignore[override]
        return self.of.sign

    @property
    def inv(self) -> Transform:
        return self.of

    def __call__(self, x: Tensor) -> Tensor:
        return self.of.inverse(x)

    def inverse(self, y: Tensor) -> Tensor:
        return self.of(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.of.log_abs_det_jacobian(y, x)


class ExpTransform(Transform):
    """exp(x)."""

    codomain = constraints.positive

    def __call__(self, x: Tensor) -> Tensor:
        return x.exp()

    def inverse(self, y: Tensor) -> Tensor:
        """log(y)."""
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """x."""
        return x


class PowerTransform(Transform):
    """x^exponent, of positive numbers."""

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any) -> None:
        self.exponent = exponent

    def __call__(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def inverse(self, y: Tensor) -> Tensor:
        """The root."""
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |exponent y / x|."""
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval

    def __call__(self, x: Tensor) -> Tensor:
        from .distribution import tiny

        return x.sigmoid().clamp(tiny(x) ** 4, 1 - tiny(x) / 2)

    def inverse(self, y: Tensor) -> Tensor:
        """log(y / (1 - y))."""
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """-softplus(-x) - softplus(x)."""
        return -softplus(-x) - softplus(x)


class TanhTransform(Transform):
    """tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)

    def __call__(self, x: Tensor) -> Tensor:
        return x.tanh()

    def inverse(self, y: Tensor) -> Tensor:
        """artanh(y)."""
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """2 (log 2 - x - softplus(-2 x)), which is exact where 1 - tanh(x)^2 is 0."""
        return 2 * (0.6931471805599453 - x - softplus(-2 * x))


class AffineTransform(Transform):
    """loc + scale x."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0) -> None:
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    @property
    def sign(self) -> Any:  # type: ignore[override]
        """Of the scale."""
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def __call__(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def inverse(self, y: Tensor) -> Tensor:
        """(y - loc) / scale."""
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |scale|, summed over an event."""
        found = (x * 0 + self.scale).abs().log()
        return found.sum(tuple(range(-self.event_dim, 0))) if self.event_dim else found


class ComposeTransform(Transform):
    """One transform after the other."""

    def __init__(self, parts: Sequence[Transform]) -> None:
        self.parts = list(parts)
        self.event_dim = max([each.event_dim for each in self.parts], default=0)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """Of the first."""
        return self.parts[0].domain if self.parts else constraints.real

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        """Of the last."""
        return self.parts[-1].codomain if self.parts else constraints.real

    @property
    def sign(self) -> Any:  # type: ignore[override]
        """The product of all signs."""
        found: Any = 1
        for part in self.parts:
            found = found * part.sign
        return found

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def inverse(self, y: Tensor) -> Tensor:
        """The inverses, from the last to the first."""
        for part in reversed(self.parts):
            y = part.inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum of all."""
        found: Any = 0
        for part in self.parts:
            after = part(x)
            term = part.log_abs_det_jacobian(x, after)
            missing = self.event_dim - part.event_dim
            found = found + (term.sum(tuple(range(-missing, 0))) if missing else term)
            x = after
        return found  # type: ignore[no-any-return]
