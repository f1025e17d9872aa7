"""Tensors of evenly spaced numbers, and the identity matrix; on a device they are made without a copy from the host."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError, warn
from ...ground.arguments import wrong_type
from ...host.scalars import converted, representable
from ...kernels.bounds import within
from ...kernels.random import ranges as kernels
from ...operators.float8 import refuse_float8
from ...operators.outputs import MADE
from ...operators.rules import Number
from ...tensors import Tensor, wrap
from ...types import Device, Dtype, devices, dtypes
from ...types.layout import integers
from ...types.size import check_extents
from .creation import creates, fill, filled, numpy_dtype, place

_MISSING: Any = object()


def _made(operator: kernels.Range, kind: np.dtype, device: Device, **numbers: Any) -> Tensor:
    """The operator's vector, made on the requested device."""
    check_extents((numbers["steps"],), kind.itemsize, "invalid size, possible overflow?")
    where, dtype = devices.resolve(device), dtypes.of(kind)
    if dtype in dtypes.FLOAT8:
        refuse_float8(operator.name, dtype)
    if where is devices.cpu or not dtype.triton or dtype is dtypes.bool_:
        return place(operator.reference(**numbers, dtype=dtype), where)
    return operator(**numbers, dtype=dtype, device=where)


_COUNTED = (
    "The number of elements in the out tensor of shape {had} is {count} which does not match the computed number of "
    "elements {wanted}. Note that this may occur as a result of rounding error. The out tensor will be resized to a "
    "tensor of shape ({wanted},)."
)


@creates(MADE._replace(warning=_COUNTED, flat=True))
def arange(
    start: Any = _MISSING, end: Any = _MISSING, step: Any = 1, *, dtype: Dtype = None, device: Device = None
) -> Tensor:
    """Evenly spaced numbers from `start` (0 when one bound is given) up to, not including, `end`, as a vector.

    >>> import tritensor as torch
    >>> torch.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])

    For an integer dtype `start` and `step` are cut to integers, and for int64 `end` before the numbers are counted.

    Raises:
        ShapeError: a step of 0 or in the other direction, or bounds that are not finite. DtypeError: an integer dtype,
            and a number that int64 does not hold. ValueError: int64, and a step below 1.
    """
    if start is _MISSING and end is _MISSING:
        raise ArgumentError("arange() received an invalid combination of arguments - got ()", remedy="give an end")
    if end is _MISSING:
        start, end = 0, start
    elif start is _MISSING:
        start = 0
    start, end, step = [
        value.item() if isinstance(value, Tensor) and value.ndim == 0 else value for value in (start, end, step)
    ]
    for position, (name, value) in enumerate((("end", end), ("start", start), ("step", step)), 1):
        if isinstance(value, complex):
            converted(value, dtypes.float64)
        if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
            raise wrong_type("arange", name, "Number", value, position)
    if not (math.isfinite(start) and math.isfinite(end)):
        raise ShapeError(f"unsupported range: {start} -> {end}")
    if step == 0 or math.isnan(step):
        raise ShapeError("step must be nonzero")
    if (end - start) / step < 0:
        raise ShapeError("upper bound and lower bound inconsistent with step sign")
    whole = all(isinstance(value, (int, np.integer)) for value in (start, end, step))
    kind = numpy_dtype(dtype, dtypes.int64 if whole else None)
    if whole:
        start, end, step = [representable(int(value)) for value in (start, end, step)]
    count = math.ceil((end - start) / step)
    if kind.kind in "iu":
        start, step = converted(start, dtypes.int64), converted(step, dtypes.int64)
        if kind == np.int64:
            if step == 0:
                raise ValueError("step must be nonzero")
            count = max(0, -((start - converted(end, dtypes.int64)) // step))
    elif not whole:
        start, step = float(start), float(step)
    made = _made(kernels.arange, kind, device, start=start, step=step, steps=count)
    ends = (start, start + max(count - 1, 0) * step)
    return within(made, (min(ends), max(ends)) if kind == np.int64 else None)


@creates(MADE._replace(warning=_COUNTED, flat=True))
def range(start: Any, end: Any = _MISSING, step: Any = 1, *, dtype: Dtype = None, device: Device = None) -> Tensor:
    """Evenly spaced numbers from `start` (0 when one bound is given) to `end`, included; deprecated for `arange`.

    Raises:
        ShapeError: a step of 0 or in the other direction, or bounds that are not finite.
    """
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    if end is _MISSING:
        start, end = 0, start
    start, end, step = [_bound("range", *each) for each in (("start", start), ("end", end), ("step", step))]
    kind = numpy_dtype(dtype)
    possible = step and math.isfinite(start) and math.isfinite(end) and (end - start) / step >= 0
    if possible and kind.kind in "iu":
        start, end, step = [converted(each, dtypes.int64) for each in (start, end, step)]
    if possible and step:
        ratio = (end - start) / step
        whole = isinstance(start, int) and isinstance(step, int)
        end = start + (math.floor(ratio) + (1 if whole else 0.5)) * step
    return arange.plain(start, end, step, dtype=dtypes.of(kind), device=device)  # type: ignore[attr-defined]


def _bound(call: str, name: str, value: complex | Tensor) -> Any:
    """A bound as a Python number."""
    if isinstance(value, Tensor):
        if value.ndim:
            words = f"{call} only supports 0-dimensional start and end tensors"
            raise ShapeError(f"{words}, but got {name} with {value.ndim} dimension(s).")
        value = value.item()
    if not isinstance(value, Number):
        raise wrong_type(call, name, "Number", value)
    return value.item() if isinstance(value, np.generic) else value


def _spaced(call: str, start: Any, end: Any, steps: Any, dtype: Dtype) -> tuple[Any, Any, int, np.dtype]:
    """The bounds as elements of the dtype, the number of steps, and the dtype.

    Raises:
        DtypeError: the dtype does not hold a bound.
    """
    start, end = _bound(call, "start", start), _bound(call, "end", end)
    steps = steps.item() if isinstance(steps, Tensor) and not steps.ndim else steps
    if not isinstance(steps, (int, np.integer)) or isinstance(steps, bool):
        given = ", ".join(type(each).__name__ for each in (start, end, steps))
        words = f"{call}() received an invalid combination of arguments - got ({given}), but expected one of:"
        raise ArgumentError(words, "* (Number start, Number end, int steps)")
    if steps < 0:
        raise ShapeError("number of steps must be non-negative")
    complex_ = isinstance(start, complex) or isinstance(end, complex)
    kind = numpy_dtype(dtype, dtypes.of_scalar(1j) if complex_ else None)
    if complex_ and kind.kind != "c":
        raise DtypeError(
            f"torch.{call}(): inferred dtype {dtypes.of_scalar(1j).legacy} can't be safely cast to passed dtype "
            f"{dtypes.of(kind).legacy}",
            remedy="pass real bounds, or a complex dtype",
        )
    start, end = (start, end) if steps > 1 else (start, start) if steps else (0, 0)  # only what is used has to fit
    if kind.kind != "b":
        start, end = converted(start, dtypes.of(kind)), converted(end, dtypes.of(kind))
    return start, end, int(steps), kind


@creates(MADE._replace(flat=True))
def linspace(start: Any, end: Any, steps: int, *, dtype: Dtype = None, device: Device = None) -> Tensor:
    """`steps` evenly spaced numbers from `start` to `end`, both included; an integer dtype cuts them to integers.

    Raises:
        DtypeError: the dtype does not hold a bound. ShapeError: a negative number of steps.
    """
    start, end, steps, kind = _spaced("linspace", start, end, steps, dtype)
    return _made(kernels.linspace, kind, device, start=start, end=end, steps=steps)


@creates(MADE._replace(flat=True))
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Dtype = None, device: Device = None
) -> Tensor:
    """`steps` numbers evenly spaced on a log scale, `base` to the powers from `start` to `end`; see `linspace`.

    >>> import tritensor as torch
    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    start, end, steps, kind = _spaced("logspace", start, end, steps, dtype)
    if not isinstance(base, (int, float)):
        raise wrong_type("logspace", "base", "float", base)
    check_extents((steps,))
    with np.errstate(all="ignore"):
        powers = (float(base) ** kernels.spaced(start, end, steps, kind)).astype(kind)
    return place(powers, device)


@creates(MADE)
def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A matrix with ones on the diagonal and zeros elsewhere, the identity matrix if it is square."""
    shape = integers("eye", "n", (n, n if m is None else m))
    for name, size in zip("nm", shape, strict=True):
        if size < 0:
            raise ShapeError(f"{name} must be greater or equal to 0, got {size}")
    check_extents(shape)
    kind, where = numpy_dtype(dtype), devices.resolve(device)
    if where is devices.cpu:
        return place(np.eye(*shape, dtype=kind), where)
    matrix = filled(shape, 0, kind, where)
    if matrix.size:
        fill(matrix.as_strided((min(shape),), (shape[1] + 1,), 0), 1)
    return wrap(matrix)
