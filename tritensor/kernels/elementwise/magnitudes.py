"""The size and the direction of numbers: abs, sgn and sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DtypeError
from ...operators.rules import ANY, Magnitude, Rule
from ...runtime.source import device_function
from ...types import dtypes
from .arithmetic import where, zeros
from .family import elementwise

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


abs = elementwise(
    Magnitude("magnitude", dtypes.INTEGER),
    np.absolute,
    "The absolute value of each element; of a complex number its magnitude.",
    methods=["__abs__", "abs", "absolute"],
    in_place_functions=["abs_"],
)
abs.gradient(lambda grad, x: grad * x.sgn())
abs.float8 = "computed"
abs.kernel(lambda x: tl.abs(x))


class RealSigns(Rule):
    """Refuses complex tensors, whose direction is `sgn`."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class."""
        if operands[0].dtype.is_complex:
            words = "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
            raise DtypeError(words)
        return super().__call__(operator, operands)


def _direction(x: np.ndarray):
    if x.dtype.kind in "bu":
        return (x > 0).astype(x.dtype)
    if x.dtype.kind == "c":
        size = np.abs(x)
        return x / np.where(size == 0, 1, size)
    return np.nan_to_num(np.sign(x), nan=0.0)


sgn = elementwise(
    ANY,
    _direction,
    "The sign, also of complex numbers: x / |x|, and 0 where x is 0; for real numbers -1, 0 or 1, and 0 for NaN.",
    name="sgn",
    in_place_functions=(),
)
sign = elementwise(
    RealSigns("real", highest=dtypes.FLOATING),
    _direction,
    "The sign of each element: -1, 0 or 1, and 0 for NaN.",
    name="sign",
    in_place_functions=(),
)
sign.gradient(zeros)


def _turn(grad: Any, x: Any) -> Any:
    """The gradient of a direction: what of `grad` is at right angles to it, over the distance; 0 for real numbers."""
    if not x.dtype.is_complex:
        return zeros(grad)
    ratio = grad / x
    return where(x == 0, 0, grad / x.abs() - (ratio + ratio.conj()) / 2 * x.sgn())


sgn.gradient(_turn)
sgn.holomorphic = False


@device_function
def signs(x):
    """-1, 0 or 1."""
    if x.dtype == tl.int1:
        return x
    else:
        return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


sgn.kernel(lambda x: signs(x))

sign.kernel(lambda x: signs(x))

abs.complex_kernel(lambda xr, xi: libdevice.hypot(xr, xi))


@sgn.complex_kernel
def _(xr, xi):
    size = libdevice.hypot(xr, xi)
    size = tl.where(size == 0, 1.0, size)
    return xr / size, xi / size
