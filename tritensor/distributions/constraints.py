"""Regions that parameters and samples of distributions lie in: `check(value)` says where, one truth for each event."""

from __future__ import annotations

from typing import Any

from ..tensors import Tensor

__all__ = ["Constraint", "MixtureSameFamilyConstraint", "boolean", "dependent", "greater_than", "greater_than_eq"]
__all__ += ["half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than"]
__all__ += ["lower_cholesky", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive"]
__all__ += ["positive_definite", "positive_integer", "real", "real_vector", "simplex", "unit_interval"]


class Constraint:
    """A region.

    Attributes:
        is_discrete: whether its elements are whole numbers. event_dim: how many of the last dimensions are one event.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """True if each event is in the region."""
        raise NotImplementedError

    def __repr__(self) -> str:
        name = type(self).__name__.removeprefix("_")
        bounds = ", ".join(f"{key}={value}" for key, value in vars(self).items())
        return f"{name}({bounds})"


class _Dependent(Constraint):
    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """Numbers above `lower`, or from it on, and below `upper`, or up to it."""

    lower, upper = "", ""
    shown: tuple[str, ...] = ()

    def __init__(self, *bounds: Any) -> None:
        for name, bound in zip(self.shown, bounds, strict=True):
            setattr(self, name, bound)

    def check(self, value: Tensor) -> Tensor:
        good = value % 1 == 0 if self.is_discrete else value == value
        bounds = vars(self)
        if self.lower:
            good = good & (value > bounds["lower_bound"] if self.lower == "(" else value >= bounds["lower_bound"])
        if self.upper:
            good = good & (value < bounds["upper_bound"] if self.upper == ")" else value <= bounds["upper_bound"])
        return good


def _bounded(name: str, lower: str, upper: str, discrete: bool = False) -> Any:
    shown = ("lower_bound",) * bool(lower) + ("upper_bound",) * bool(upper)
    text = f"{'Whole numbers' if discrete else 'Numbers'} within bounds."
    return type(
        name, (_Bounded,), {"lower": lower, "upper": upper, "shown": shown, "is_discrete": discrete, "__doc__": text}
    )


greater_than = _bounded("_GreaterThan", "(", "")
greater_than_eq = _bounded("_GreaterThanEq", "[", "")
less_than = _bounded("_LessThan", "", ")")
interval = _bounded("_Interval", "[", "]")
half_open_interval = _bounded("_HalfOpenInterval", "[", ")")
integer_interval = _bounded("_IntegerInterval", "[", "]", True)
_integer_above = _bounded("_IntegerGreaterThan", "[", "", True)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class multinomial(Constraint):
    """Counts that are not negative and whose sum is at most `upper_bound`."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: int) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        """True if each event is in the region."""
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return "Multinomial()"


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        lower = (value.tril() == value).flatten(-2).all(-1)
        return lower & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _PositiveDefinite(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        from .. import linalg

        symmetric = ((value - value.mT).abs() <= 1e-6).flatten(-2).all(-1)
        return symmetric & (linalg.cholesky_ex(value)[1] == 0)


class independent(Constraint):
    """The base's events along `reinterpreted_batch_ndims` more dimensions are one event."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        """True if each event is in the region."""
        good = self.base_constraint.check(value)
        kept = good.ndim - self.reinterpreted_batch_ndims
        if kept < 0:
            words = f"Expected value.dim() >= {self.event_dim} but got {value.ndim}"
            raise ValueError(words)
        return good.reshape(*good.shape[:kept], -1).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The region of a mixture's events: the regions of all components."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        """True if each event is in the region."""
        good = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return good.reshape(*good.shape[: value.ndim - self.event_dim], -1).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


def is_dependent(constraint: Any) -> bool:
    """True if a constraint is not known from the class alone."""
    return isinstance(constraint, (_Dependent, property))


dependent, real, boolean, simplex, one_hot = _Dependent(), _Real(), _Boolean(), _Simplex(), _OneHot()
lower_cholesky, positive_definite = _LowerCholesky(), _PositiveDefinite()
positive, nonnegative, unit_interval = greater_than(0.0), greater_than_eq(0.0), interval(0.0, 1.0)
nonnegative_integer, positive_integer = _integer_above(0), _integer_above(1)
real_vector = independent(real, 1)
