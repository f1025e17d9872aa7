"""Division and square root rounded as IEEE 754 asks, which is what PyTorch's kernels do.

Of float32 Triton's own `/` and `sqrt`, and the library's `sqrt`, are approximations with errors of two units in the
last place: 41 / 41 may be less than 1. Where memory is what takes the time, the exact instructions are free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..runtime.launch import device_function

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


@device_function
def quotient(x, y):
    """x / y; y is a tensor."""
    if y.dtype == tl.float32:
        return tl.div_rn(x, y)
    else:
        return x / y


@device_function
def root(x):
    """The square root."""
    if x.dtype == tl.float32:
        return tl.sqrt_rn(x)
    else:
        return libdevice.sqrt(x)
