"""Properties and methods of distributions by their formulas, and properties that are computed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from ..autograd.mode import enable_grad, recording
from ..autograd.precision import state
from ..tensors import Tensor

__all__ = ["lazy_property"]
Formula = Callable[..., Tensor]  # a method that is one expression


@property  # type: ignore[misc]
def missing(self: object) -> Formula:
    """What is left to subclasses."""
    raise NotImplementedError


def stated(formula: str, compute: Any, kind: Any = property) -> Any:
    """A property by its formula, for moments and the like; of the kind `lazy_property` one that is computed once."""
    made = kind(compute)
    made.__doc__ = formula
    return made


class lazy_property(cached_property[Any]):
    """A property that is computed when it is first read, always with recording on, and then is a plain attribute.

    `sample` reads it without recording, and gradients flow through it later. In inference mode and under autocast it is
    computed anew, because outside of them that value would have no graph, or another dtype.
    """

    def __get__(self, instance: object, owner: object = None) -> Any:
        if instance is None:
            return self
        if recording.inference or state.types:
            return self.func(instance)
        with enable_grad():
            value = self.func(instance)
        setattr(instance, str(self.attrname), value)
        return value
