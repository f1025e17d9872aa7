"""Python numbers as elements of a dtype: which of them it holds, and how the others wrap or are refused.

PyTorch takes a number in two ways. An operand of arithmetic or of a comparison wraps to an integer dtype, and becomes
infinite in a floating one (`wrapped`). A number that is written or that bounds or scales elements must fit
(`converted`): of an unsigned dtype also a negative one whose magnitude does, which wraps.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import DtypeError, NumberError
from ..types import dtypes
from .copying import cast

# By NumPy's dtype, as Python integers: the smallest and the largest element.
_LIMITS = {
    kind.numpy: (int(limits.min), int(limits.max))
    for kind in dtypes.ALL
    if kind.category == dtypes.INTEGER
    for limits in [np.iinfo(kind.numpy)]
}
_LARGEST = {
    kind.numpy: float(ml_dtypes.finfo(kind.numpy).max) for kind in dtypes.STORED if kind.category >= dtypes.FLOATING
}

_REAL = (float, int)

# PyTorch's names of the C++ types, which its messages contain.
_NAMES = {
    dtypes.int32: "int",
    dtypes.float16: "c10::Half",
    dtypes.bfloat16: "c10::BFloat16",
    dtypes.float32: "float",
    dtypes.float64: "double",
    dtypes.complex64: "c10::complex<float>",
    dtypes.complex128: "c10::complex<double>",
    **{kind: f"c10::{kind.legacy}" for kind in dtypes.FLOAT8},
}
_ENDLESS = (dtypes.float8_e5m2, *(kind for kind in dtypes.ALL if kind.category >= dtypes.FLOATING))  # have infinities


def representable(value: int) -> int:
    """An integer that PyTorch takes as a number at all.

    Raises:
        NumberError: one below -2**63, or of 2**64 or more.
    """
    if -(1 << 63) <= value < 1 << 64:
        return value
    raise NumberError(
        "int too big to convert" if value > 0 else "can't convert negative int to unsigned",
        "an integer with which tensors are computed must be at least -2**63 and below 2**64",
        remedy="pass a float",
    )


def wrapped(value: int, kind: np.dtype) -> int:
    """An integer wrapped to the range of an integer dtype, as an element of int64 is when it is cast.

    >>> import numpy as np
    >>> wrapped(300, np.dtype("uint8"))
    44

    Raises:
        NumberError: one that is not `representable`.
    """
    low, high = _LIMITS[kind]
    return value if low <= value <= high else (representable(value) - low) % (high - low + 1) + low


def signed(value: int) -> int:
    """The int64 that has the bits of a number from -2**63 to 2**64: what kernels take."""
    return value - (1 << 64) if value >= 1 << 63 else value


def converted(value: Any, kind: dtypes.dtype) -> Any:
    """A number as an element of a dtype, as a Python number; a fraction is cut off for an integer dtype.

    >>> import tritensor as torch
    >>> converted(-1, torch.uint8), converted(2.7, torch.int8), converted(3, torch.bool)
    (255, 2, True)

    Raises:
        DtypeError: the dtype does not hold it. NumberError: an integer that is not `representable`.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int):
        representable(value)
    if kind.category == dtypes.BOOLEAN:
        return bool(value)
    if kind.category < dtypes.COMPLEX and isinstance(value, complex):
        if value.imag:
            raise _refused(value, kind)
        value = value.real
    if kind.category == dtypes.INTEGER:
        low, high = _LIMITS[kind.numpy]
        if isinstance(value, int):
            if not (low or -high) <= value <= high:
                raise _refused(value, kind)
            return value % (high + 1) if not low else int(value)
        if not low <= value <= high:
            raise _refused(value, kind)
        return int(value)
    most = _LARGEST[kind.numpy]
    for part in (value.real, value.imag) if isinstance(value, complex) else (value,):
        if abs(part) > most and not (cmath.isinf(part) and kind in _ENDLESS):
            raise _refused(value, kind)
    return value if isinstance(value, complex) else float(value)


def element(value: Any, kind: dtypes.dtype) -> Any:
    """`converted` as an assignment does it: in half precision and below, numbers that are too large are `rounded`.

    Raises:
        ValueError: an integer that int64 does not hold. DtypeError: another number that the dtype does not hold.
    """
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    return single(value, kind)


def single(value: Any, kind: dtypes.dtype) -> Any:
    """`converted` for a tensor of one element: in half precision and below, numbers that are too large are `rounded`.

    Raises:
        DtypeError, NumberError: as `converted`.
    """
    if kind is not dtypes.float16 and kind is not dtypes.bfloat16 and kind not in dtypes.FLOAT8:
        return converted(value, kind)
    return rounded(converted(value, dtypes.float64), kind)


def rounded(value: float, kind: dtypes.dtype) -> float:
    """A real number as an element of a floating dtype, infinite (or PyTorch's alternative) where that is too small.

    >>> import tritensor as torch
    >>> rounded(2049, torch.float16), rounded(1e5, torch.float16)
    (2048.0, inf)
    """
    if kind in dtypes.FLOAT8:
        return float(cast(np.asarray(float(value)), kind.numpy))
    with np.errstate(over="ignore"):
        return float(kind.numpy.type(float(value)))


def holder(kind: dtypes.dtype) -> Callable[[Any], Any]:
    """`converted` to a dtype as a function: 0.1 us for a number of the dtype's own category that fits."""
    if kind.category == dtypes.FLOATING:
        most = min(_LARGEST[kind.numpy], 2.0**63)
        return lambda value: value if value.__class__ in _REAL and -most <= value <= most else converted(value, kind)
    if kind.category == dtypes.INTEGER:
        low, high = _LIMITS[kind.numpy]
        return lambda value: value if value.__class__ is int and low <= value <= high else converted(value, kind)
    return lambda value: converted(value, kind)


def _refused(value: complex, kind: dtypes.dtype) -> DtypeError:
    limits = _LIMITS.get(kind.numpy)
    most = "" if limits is None else f"it holds {limits[0]} to {limits[1]}"
    return DtypeError(
        f"value cannot be converted to type {_NAMES.get(kind, f'{kind.name}_t')} without overflow",
        f"the number is {value}, the dtype {kind}",
        most,
        remedy="take a number that fits, or convert the tensor to a wider dtype first",
    )
