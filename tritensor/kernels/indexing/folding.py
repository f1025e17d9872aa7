"""Products and extremes of the values that are scattered to one place, with what is there or without it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...operators import registry
from ...tensors import Tensor
from ...types import dtypes
from .family import Gather, flat_places, gather, scatter

_UFUNCS = {"prod": np.multiply, "amin": np.minimum, "amax": np.maximum}


def _fold(x: np.ndarray, index: np.ndarray, value: np.ndarray, *, dim: int, reduce: str, include_self: bool = True):
    """x with all of `value` that has one place folded there: "prod", "amin", "amax"; with x's own unless excluded."""
    out, index = np.array(x, order="C", ndmin=1), index.reshape(index.shape or (1,))
    places, flat = flat_places(index, out, dim).reshape(-1), out.reshape(-1)
    values = np.broadcast_to(value, index.shape).reshape(-1)
    if not include_self:
        flat[places] = 1 if reduce == "prod" else values  # an extreme taken twice is the same
    with np.errstate(all="ignore"):
        _UFUNCS[reduce].at(flat, places, values)
    return out.reshape(x.shape)


fold = Gather("scatter_reduce", _fold, "index")


@fold.samples
def _(draw: Any) -> Any:
    for reduce, dim, shape, own in (("prod", 0, (6, 4), True), ("amax", 1, (2, 7), True), ("amin", 0, (5, 3), False)):
        if draw.dtype is not dtypes.bool_ or reduce != "prod":
            yield (
                [draw((3, 4)), draw.rng.integers(0, (3, 4)[dim], shape), draw(shape)],
                {"dim": dim, "reduce": reduce, "include_self": own},
            )


def _shares(grad: Tensor, x, index, value, out, dim):
    """The gradient in equal parts to all that are equal to the extreme; so PyTorch divides it."""
    mine, theirs = (x == out).to(grad.dtype), (value == gather(out, index, dim=dim)).to(grad.dtype)
    share = grad / scatter(mine, index, theirs, dim=dim, accumulate=True)
    return mine, theirs, share


def _of_x(grad: Tensor, x: Tensor, index: Tensor, value: Tensor, out: Tensor, dim: int, reduce: str, include_self):
    if not include_self:
        return scatter(grad, index, 0, dim=dim)
    if reduce != "prod":
        mine, _, share = _shares(grad, x, index, value, out, dim)
        return mine * share
    others = x.masked_fill(x == 0, 1)
    return grad * fold(others, index, value, dim=dim, reduce=reduce) / others


def _of_value(grad: Tensor, x: Tensor, index: Tensor, value: Tensor, out: Tensor, dim: int, reduce: str, include_self):
    if reduce != "prod":
        _, theirs, share = _shares(grad, x, index, value, out, dim)
        return theirs * gather(share, index, dim=dim)
    # the product of the others: by division, unless the value is 0; of two zeros it is the other one's multiple, of
    # which only the derivative is not 0, and of more nothing is left
    zero = value == 0
    zeros = scatter(grad.new_zeros(x.shape), index, zero.to(grad.dtype), dim=dim, accumulate=True)
    count = abs(gather(zeros, index, dim=dim))
    few = zero & (count <= 2)
    rest = fold(x, index, value.masked_fill(few, 1), dim=dim, reduce=reduce, include_self=include_self)
    sums = scatter(grad.new_zeros(x.shape), index, value.masked_fill(~zero, 0), dim=dim, accumulate=True)
    other = (gather(sums, index, dim=dim) - value).masked_fill(count < 2, 1)
    quotient = gather(grad * out, index, dim=dim) / value.masked_fill(zero, 1)
    return registry["where"](few, gather(grad * rest, index, dim=dim) * other, quotient)


fold.gradients(x=_of_x, value=_of_value)
