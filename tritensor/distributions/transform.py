"""Functions of samples with their inverses: what all transforms have in common, their inverses, and chains of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any

from ..autograd.mode import recording
from ..functional.creation.likeness import zeros_like
from ..tensors import Tensor
from ..types.size import Size
from . import constraints
from .constraints import dependent_property
from .properties import Formula, missing
from .shapes import sum_rightmost


class Transform:
    """The base class of transforms; `inv(y)` inverts. A subclass has `_call`, `_inverse` and `log_abs_det_jacobian`.

    With `cache_size=1` the last argument and its result are kept: the inverse of that very result is exact.

    Attributes:
        domain, codomain: where arguments and results lie. bijective: if there is an inverse.
    """

    domain: Any = constraints.real
    codomain: Any = constraints.real
    bijective: Any = False
    _call: Any = missing
    _inverse = _log_slope = _call

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Transform | None = None
        self._cached_x_y: tuple[Any, Any] = None, None
        self._has_graph = False
        super().__init__()

    @property
    def event_dim(self) -> int:
        """The number of dimensions of an event.

        Raises:
            ValueError: events of domain and codomain differ in it.
        """
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def sign(self) -> Any:
        """1 or -1: that of the derivative."""
        raise NotImplementedError

    def __call__(self, x: Tensor) -> Tensor:
        return self._mapped(x, 0)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._mapped(y, 1)

    def _mapped(self, given: Tensor, side: int) -> Tensor:
        """The result of an argument, or with `side` 1 the argument of a result."""
        kept: Any = self._cached_x_y
        if kept[side] is given:
            lacks_graph = recording.enabled and not self._has_graph
            if not (lacks_graph and any(isinstance(x, Tensor) and x.requires_grad for x in vars(self).values())):
                return kept[1 - side]
        made = self._inverse(given) if side else self._call(given)
        if self._cache_size:
            self._cached_x_y, self._has_graph = (made, given) if side else (given, made), recording.enabled
        return made

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy/dx|."""
        return self._log_slope(x, y)

    @property
    def inv(self) -> Transform:
        """The inverse as a transform."""
        self._inv = self._inv or _InverseTransform(self)
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with another size of its cache."""
        if self._cache_size == cache_size:
            return self
        made = type(self).__new__(type(self))
        vars(made).update(vars(self), _cache_size=cache_size, _inv=None, _cached_x_y=(None, None))
        return made

    def forward_shape(self, shape: Sequence[int]) -> Size:
        """The shape of the result for an argument's shape."""
        return Size(self._shaped(shape, False))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        """The shape of the argument for a result's shape."""
        return Size(self._shaped(shape, True))

    def _shaped(self, shape: Sequence[int], back: bool) -> Sequence[int]:
        return shape

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ValueTransform(Transform):
    """A transform that equals others of its class with the same parameters."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            _same(value, vars(other)[name]) for name, value in vars(self).items() if not name.startswith("_")
        )


def _same(one: Tensor, other: Tensor) -> bool:
    found = one == other
    return bool(found.all()) if isinstance(found, Tensor) else bool(found)


class _InverseTransform(Transform):
    def __init__(self, of: Transform) -> None:
        super().__init__(of._cache_size)
        self._inv: Transform = of
        self.of = of

    domain = property(lambda self: self.of.codomain)
    codomain = property(lambda self: self.of.domain)
    sign = property(lambda self: self.of.sign)
    bijective = property(lambda self: self.of.bijective)

    def _mapped(self, given: Tensor, side: int) -> Tensor:
        return self.of(given) if side else self.of._inv_call(given)

    def with_cache(self, cache_size: int = 1) -> Any:
        return self.of.with_cache(cache_size).inv

    _log_slope: Formula = lambda self, x, y: -self.of.log_abs_det_jacobian(y, x)

    def _shaped(self, shape: Sequence[int], back: bool) -> Sequence[int]:
        return self.of.forward_shape(shape) if back else self.of.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self.of!r})"


class ComposeTransform(ValueTransform):
    """Composes transforms: applies one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    bijective = property(lambda self: all(part.bijective for part in self.parts))

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    domain = dependent_property(lambda self: self._region([part.domain for part in self.parts], -1))
    codomain = dependent_property(lambda self: self._region([part.codomain for part in self.parts[::-1]], 1))

    def _region(self, regions: list[Any], side: int) -> Any:
        """The first of the regions at one end of each part, for events that are as large as any part needs them."""
        if not regions:
            return constraints.real
        parts = self.parts[::side]
        ends = [(part.domain.event_dim, part.codomain.event_dim)[::side] for part in parts]
        dims = ends[0][0]
        for before, after in ends:
            dims = max(dims + after - before, after)
        more = dims - regions[0].event_dim
        return constraints.independent(regions[0], more) if more else regions[0]

    @property
    def sign(self) -> Any:
        """The product of all signs."""
        return prod(part.sign for part in self.parts)

    @property
    def inv(self) -> Transform:
        """The inverses, from the last to the first."""
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    _call: Formula = lambda self, x: reduce(lambda value, part: part(value), self.parts, x)

    def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
        found: Any = 0 if self.parts else zeros_like(x)
        dims = self.domain.event_dim
        for part in self.parts:
            after = y if part is self.parts[-1] else part(x)
            found = found + sum_rightmost(part.log_abs_det_jacobian(x, after), dims - part.domain.event_dim)
            dims, x = dims + part.codomain.event_dim - part.domain.event_dim, after
        return found

    def _shaped(self, shape: Sequence[int], back: bool) -> Sequence[int]:
        whole: Any = self.inv if back else self
        for part in whole.parts:
            shape = part.forward_shape(shape)
        return shape

    def __repr__(self) -> str:
        return "ComposeTransform(\n    {}\n)".format(",\n    ".join(map(repr, self.parts)))
