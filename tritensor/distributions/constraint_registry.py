"""Transforms from unconstrained numbers to the regions of constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import require
from ..operators.rules import Number
from . import constraints, transforms
from .constraints import Constraint
from .transform import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Functions that make a transform to the region of a constraint, by the constraint's class.

    >>> from tritensor.distributions import constraints, transform_to
    >>> transform_to(constraints.simplex)
    SoftmaxTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Transform]] = {}
        super().__init__()

    def register(
        self, constraint: Constraint | type[Constraint], factory: Callable[[Any], Transform] | None = None
    ) -> Any:
        """Declares the function for a class of constraints, or for an instance's class; a decorator without one.

        Raises:
            TypeError: it is neither a class of constraints nor a constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        known = isinstance(kind, type) and issubclass(kind, Constraint)
        words = "Expected constraint to be either a Constraint subclass or instance, but got {}"
        require(known, TypeError, words, constraint)
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform to the region of a constraint.

        Raises:
            NotImplementedError: none is declared for its class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _within(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and isinstance(high, Number) and low == 0 and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _beside(bound: str, scale: int) -> Callable[[Any], Transform]:
    """From a bound on, in the direction of `scale`."""
    return lambda constraint: transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(getattr(constraint, bound), scale)]
    )


_factory: Any
for _registry in (biject_to, transform_to):
    for _constraint, _factory in {
        constraints.real: lambda _: transforms.identity_transform,
        constraints.independent: lambda region, of=_registry: transforms.IndependentTransform(
            of(region.base_constraint), region.reinterpreted_batch_ndims
        ),
        constraints.greater_than: _beside("lower_bound", 1),
        constraints.greater_than_eq: _beside("lower_bound", 1),
        constraints.less_than: _beside("upper_bound", -1),
        constraints.interval: _within,
        constraints.half_open_interval: _within,
        constraints.corr_cholesky: lambda _: transforms.CorrCholeskyTransform(),
        constraints.cat: lambda region, of=_registry: transforms.CatTransform(
            [of(each) for each in region.cseq], region.dim, region.lengths
        ),
        constraints.stack: lambda region, of=_registry: transforms.StackTransform(
            [of(each) for each in region.cseq], region.dim
        ),
    }.items():
        _registry.register(_constraint, _factory)
biject_to.register(constraints.simplex, lambda _: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda _: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda _: transforms.PositiveDefiniteTransform())
