"""maximum, minimum and clamping. A NaN operand gives NaN; `fmax` and `fmin` ignore it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...autograd.names import of_tensors
from ...operators.rules import BOUNDED, REAL
from ...runtime.source import device_function
from .arithmetic import where
from .family import elementwise

if TYPE_CHECKING:
    import triton.language as tl


@device_function
def larger(x, y):
    """The larger of two; NaN if either is."""
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@device_function
def smaller(x, y):
    """The smaller of two; NaN if either is."""
    return tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)


maximum = elementwise(REAL, np.maximum, "The elementwise maximum of x and y; NaN if either is.")
# Where both are equal, each gets half of the gradient, as in PyTorch.
maximum.gradients(
    x=lambda grad, x, y: where(x == y, grad / 2, where(x < y, 0, grad)),
    y=lambda grad, x, y: where(x == y, grad / 2, where(y < x, 0, grad)),
)
maximum.kernel(lambda x, y: larger(x, y))

minimum = elementwise(REAL, np.minimum, "The elementwise minimum of x and y; NaN if either is.")
minimum.gradients(
    x=lambda grad, x, y: where(x == y, grad / 2, where(x > y, 0, grad)),
    y=lambda grad, x, y: where(x == y, grad / 2, where(y > x, 0, grad)),
)
minimum.kernel(lambda x, y: smaller(x, y))

fmax = elementwise(REAL, np.fmax, "The elementwise maximum of x and y, ignoring NaN: the other one where one is NaN.")
fmax.gradients(
    x=lambda grad, x, y: where((x >= y) | (y != y), grad, 0), y=lambda grad, x, y: where((x >= y) | (y != y), 0, grad)
)
fmax.kernel(lambda x, y: tl.maximum(x, y))

fmin = elementwise(REAL, np.fmin, "The elementwise minimum of x and y, ignoring NaN: the other one where one is NaN.")
fmin.gradients(
    x=lambda grad, x, y: where((x <= y) | (y != y), grad, 0), y=lambda grad, x, y: where((x <= y) | (y != y), 0, grad)
)
fmin.kernel(lambda x, y: tl.minimum(x, y))

clamp_min = elementwise(
    BOUNDED,
    np.maximum,
    "Clamps x from below: x, and `min` where x is below it.",
    name="clamp_min",
    inputs=("x", "min"),
    out="same",
    in_place_functions=["clamp_min_"],
)
clamp_min.overload = of_tensors("min")
clamp_min.gradients(x=lambda grad, x, min: where(x >= min, grad, 0), min=lambda grad, x, min: where(x < min, grad, 0))
clamp_min.kernel(lambda x, min: larger(x, min))

clamp_max = elementwise(
    BOUNDED,
    np.minimum,
    "Clamps x from above: x, and `max` where x is above it.",
    name="clamp_max",
    inputs=("x", "max"),
    out="same",
    in_place_functions=["clamp_max_"],
)
clamp_max.overload = of_tensors("max")
clamp_max.gradients(x=lambda grad, x, max: where(x <= max, grad, 0), max=lambda grad, x, max: where(x > max, grad, 0))
clamp_max.kernel(lambda x, max: smaller(x, max))


@elementwise(BOUNDED, methods=())
def clamp(x: np.ndarray, min: np.ndarray | float, max: np.ndarray | float):
    """x, `min` where x is below it, and `max` where the result is above it; so `max` where min > max."""
    return np.clip(x, min, max)


clamp.overload = lambda saved: 1 - of_tensors("min", "max")(saved)
clamp.gradients(
    x=lambda grad, x, min, max: where((x >= min) & (x <= max), grad, 0),
    min=lambda grad, x, min, max: where((x < min) & (min < max), grad, 0),
    max=lambda grad, x, min, max: where((x > max) | (max < min), grad, 0),
)
clamp.kernel(lambda x, min, max: smaller(larger(x, min), max))


@elementwise(BOUNDED, methods=())
def hardtanh(x: np.ndarray, min, max):
    """clamp, but with no gradient at the bounds themselves."""
    return np.clip(x, min, max)


hardtanh.gradients(x=lambda grad, x, min, max: where((x <= min) | (x >= max), 0, grad))
hardtanh.kernel(lambda x, min, max: smaller(larger(x, min), max))
