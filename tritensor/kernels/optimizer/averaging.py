"""Moving averages of parameters towards the parameters, on a device in one launch for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...operators.rules import REAL_FLOAT
from ..elementwise.family import elementwise

if TYPE_CHECKING:
    import triton.language as tl


@elementwise(REAL_FLOAT, outputs=("new_param",), methods=())
def average(param, grad, *, weight=0.1):
    """From an average, `param`, the share `weight` of the way to a value, `grad`; from the nearer end, as in `lerp`."""
    way = grad - param
    return param + weight * way if weight < 0.5 else grad - (1 - weight) * way


@average.kernel
def _(param, grad, weight):
    way = grad - param
    return tl.where(weight < 0.5, param + weight * way, grad - (1 - weight) * way)
