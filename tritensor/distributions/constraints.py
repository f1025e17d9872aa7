"""Constraints of parameters and samples of distributions: `check(value)` tests the value of each event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate
from operator import and_, ge, gt, le, lt
from typing import Any

from .. import linalg
from ..errors import require
from ..functional import cat as join
from ..functional import stack as pile
from ..tensors import Tensor
from ..types.dtypes import bool_, finfo
from .properties import Formula

__all__ = ["Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent"]
__all__ += ["dependent_property", "greater_than", "greater_than_eq", "lower_triangular", "positive_semidefinite"]
__all__ += ["square", "stack", "symmetric"]
__all__ += ["half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than"]
__all__ += ["lower_cholesky", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive"]
__all__ += ["positive_definite", "positive_integer", "real", "real_vector", "simplex", "unit_interval"]


class Constraint:
    """A constraint: the region that a parameter or a sample lies in.

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
    """A region that depends on other parameters; `dependent(event_dim=1)` says what of it does not."""

    def __init__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _known(self, name: str) -> Any:
        value = vars(self)[f"_{name}"]
        require(value is not None, NotImplementedError, ".{} cannot be determined statically", name)
        return value

    is_discrete: Any = property(lambda self: self._known("is_discrete"))
    event_dim: Any = property(lambda self: self._known("event_dim"))

    def __call__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> _Dependent:
        given = self._is_discrete if is_discrete is None else is_discrete
        return _Dependent(is_discrete=given, event_dim=self._event_dim if event_dim is None else event_dim)

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property, _Dependent):
    """A property of a distribution whose region depends on its parameters; a decorator, with what is known of it."""

    def __init__(self, fn: Any = None, *, is_discrete: bool | None = None, event_dim: int | None = None) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Any) -> dependent_property:  # type: ignore[override]
        """The property of a function."""
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _Real(Constraint):
    check: Formula = lambda self, value: value == value


class _Boolean(Constraint):
    is_discrete = True
    check: Formula = lambda self, value: (value == 0) | (value == 1)


class _Bounded(Constraint):
    """Numbers that compare with each bound as its operator says."""

    compared: dict[str, Callable[[Any, Any], Any]] = {}

    def __init__(self, *bounds: Any, **named: Any) -> None:
        given = dict(zip(self.compared, bounds)) | named
        if len(bounds) + len(named) != len(self.compared) or set(given) != set(self.compared):
            raise TypeError(f"{type(self).__name__}() takes {' and '.join(self.compared)}")
        for name in self.compared:
            setattr(self, name, given[name])

    def check(self, value: Tensor) -> Tensor:
        good = [compare(value, getattr(self, name)) for name, compare in self.compared.items()]
        return reduce(and_, good, value % 1 == 0) if self.is_discrete else reduce(and_, good)


def _bounded(name: str, discrete: bool = False, **compared: Callable[[Any, Any], Any]) -> Any:
    text = f"{'Whole numbers' if discrete else 'Numbers'} within bounds."
    return type(name, (_Bounded,), {"compared": compared, "is_discrete": discrete, "__doc__": text})


greater_than = _GreaterThan = _bounded("_GreaterThan", lower_bound=gt)
greater_than_eq = _GreaterThanEq = _bounded("_GreaterThanEq", lower_bound=ge)
less_than = _LessThan = _bounded("_LessThan", upper_bound=lt)
interval = _Interval = _bounded("_Interval", lower_bound=ge, upper_bound=le)
half_open_interval = _HalfOpenInterval = _bounded("_HalfOpenInterval", lower_bound=ge, upper_bound=lt)
integer_interval = _IntegerInterval = _bounded("_IntegerInterval", True, lower_bound=ge, upper_bound=le)
_IntegerGreaterThan = _bounded("_IntegerGreaterThan", True, lower_bound=ge)
_IntegerLessThan = _bounded("_IntegerLessThan", True, upper_bound=le)


class _Simplex(Constraint):
    event_dim = 1
    check: Formula = lambda self, value: (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1
    check: Formula = lambda self, value: ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class multinomial(Constraint):
    """Counts that are not negative and whose sum is at most `upper_bound`."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: int) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return "Multinomial()"


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = finfo(value.dtype).eps * value.shape[-1] * 10
        return lower_cholesky.check(value) & ((value.norm(dim=-1) - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return value.new_full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=bool_)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return value.isclose(value.mT, atol=1e-6).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        good = super().check(value)
        return good & (linalg.eigvalsh(value) >= 0).all(-1) if good.all() else good


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        good = super().check(value)
        return good & (linalg.cholesky_ex(value)[1] == 0) if good.all() else good


class _Joined(Constraint):
    """Regions of parts along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int, lengths: Sequence[int]) -> None:
        self.cseq, self.lengths, self.dim = list(cseq), list(lengths), dim
        self.is_discrete = any(each.is_discrete for each in cseq)
        self.event_dim = max(each.event_dim for each in cseq)

    def __repr__(self) -> str:
        return f"{type(self).__name__.capitalize()}()"

    def _check_dim(self, value: Tensor) -> None:
        words = "dim {} out of range for value with {} dimensions"
        require(-value.ndim <= self.dim < value.ndim, AssertionError, words, self.dim, value.ndim)

    def _parts(self, value: Tensor) -> list[Tensor]:
        self._check_dim(value)
        starts = accumulate([0, *self.lengths[:-1]])
        return [value.narrow(self.dim, start, length) for start, length in zip(starts, self.lengths, strict=True)]


class cat(_Joined):
    """The regions of what `torch.cat` joins, each with the length of its part."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim, [1] * len(cseq) if lengths is None else lengths)

    def check(self, value: Tensor) -> Tensor:
        return join([each.check(part) for each, part in zip(self.cseq, self._parts(value), strict=True)], self.dim)


class stack(_Joined):
    """The regions of what `torch.stack` joins."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim, [1] * len(cseq))

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        return pile([each.check(part) for each, part in zip(self.cseq, value.unbind(self.dim))], self.dim)


class independent(Constraint):
    """The base's events along `reinterpreted_batch_ndims` more dimensions are one event."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        good = self.base_constraint.check(value)
        kept = good.ndim - self.reinterpreted_batch_ndims
        require(kept >= 0, ValueError, "Expected value.dim() >= {} but got {}", self.event_dim, value.ndim)
        return good.reshape(*good.shape[:kept], -1).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The region of a mixture's events: the regions of all components."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        good = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return good.reshape(*good.shape[: value.ndim - self.event_dim], -1).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


def is_dependent(constraint: Any) -> bool:
    """True if a constraint is not known from the class alone."""
    return isinstance(constraint, (_Dependent, property))


dependent, real, boolean, simplex, one_hot = _Dependent(), _Real(), _Boolean(), _Simplex(), _OneHot()
lower_cholesky, lower_triangular, corr_cholesky = _LowerCholesky(), _LowerTriangular(), _CorrCholesky()
square, symmetric = _Square(), _Symmetric()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()
positive, nonnegative, unit_interval = greater_than(0.0), greater_than_eq(0.0), interval(0.0, 1.0)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
real_vector = independent(real, 1)
_Cat, _Stack, _IndependentConstraint = cat, stack, independent
_Multinomial, _DependentProperty = multinomial, dependent_property
