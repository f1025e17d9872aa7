"""The complex conjugate."""

from __future__ import annotations

import numpy as np

from ...rules import ANY
from .family import elementwise

__all__ = ["conj"]

conj = elementwise(ANY, np.conjugate, "x with its imaginary part negated; real numbers as they are.", name="conj")
conj.gradient(lambda grad: conj(grad))


@conj.kernel
def _(x):
    return x
