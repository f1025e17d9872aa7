"""Complex arrays on a device as real ones over the same memory.

Kernels have no complex type. An operator that takes complex numbers on a device says so by `on_pairs` (its kernel has a
form for pairs of a real and an imaginary part) and passes its kernel what the functions here make: both parts as two
arrays, or as a last dimension of size 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..memory import buffer
from ..memory.array import DeviceArray
from ..operators import copy_into, registry
from ..runtime.call import Call, refuse_complex
from ..types import dtypes

_INT64 = np.dtype(np.int64)


def is_complex(value: object) -> bool:
    """True if a value is a complex array on a device."""
    return value.__class__ is DeviceArray and value.dtype.kind == "c"


def as_real(array: DeviceArray) -> DeviceArray:
    """The same memory with a last dimension of two: the real and the imaginary part."""
    kind = dtypes.real_of(dtypes.of(array.dtype)).numpy
    strides = (*(2 * step for step in array.strides), 1)
    return DeviceArray.over(array.buffer, (*array.shape, 2), strides, 2 * array.offset, kind)


def as_complex(array: DeviceArray) -> DeviceArray:
    """The same memory without its last dimension, of two neighbours, which become a complex number."""
    kind = np.result_type(array.dtype, np.complex64)
    strides = tuple(step // 2 for step in array.strides[:-1])
    return DeviceArray.over(array.buffer, array.shape[:-1], strides, array.offset // 2, kind)


def parts(value: Any) -> tuple[Any, Any]:
    """The real and the imaginary part of an array or a number, as views of it; a real value has the number 0."""
    if is_complex(value):
        real = as_real(value)
        return real[..., 0], real[..., 1]
    return (value, 0.0) if isinstance(value, DeviceArray) else (value.real, value.imag)


def movable(*values: Any) -> list[tuple[Any, ...]]:
    """The arguments of the copies that together copy complex elements: of 8 bytes as they are, else part by part."""
    whole = all(value.__class__ is DeviceArray for value in values) and values[0].itemsize == 8
    if not whole:
        return list(zip(*map(parts, values), strict=True))
    return [tuple([DeviceArray.over(x.buffer, x.shape, x.strides, x.offset, _INT64) for x in values])]


def in_dtype(array: DeviceArray, kind: dtypes.dtype) -> DeviceArray:
    """An array of this dtype: itself, or a contiguous copy."""
    if array.dtype == kind.numpy:
        return array
    made = buffer.empty(array.shape, kind.numpy, array.device)
    copy_into(made, array)
    return made


def launch_by_parts(call: Call, dense: bool = True) -> None:
    """Make a call of an operator that is linear in its first input for the real parts, and for the imaginary ones.

    Args:
        dense: results must have no gaps, so that they are copied to their places afterwards.
    """
    kind, operator = dtypes.real_of(call.compute), call.operator
    x, *others = in_dtype(call.arrays[0], call.compute), *call.arrays[1:]
    for part, out in zip(parts(x), parts(call.outs[0]), strict=True) if is_complex(x) else [(x, call.outs[0])]:
        each = Call(operator, call.inputs, call.metadata, call.device, kind, (kind,))
        each.arrays = [part, *others]
        each.outs = [buffer.empty(out.shape, kind.numpy, out.device) if dense else out]
        operator.launch(each)
        if dense and out.size:
            copy_into(out, each.outs[0])


def launch_product(call: Call) -> None:
    """Make a call of an operator that is linear in each of its first two inputs by four calls for their parts; a third
    input is added.

    Raises:
        DtypeError: an activation is fused, which is computed of real numbers only.
    """
    kind, activation = dtypes.real_of(call.compute), call.metadata.get("activation")
    if activation is not None:
        refuse_complex(activation, call.device, call.results)
    (xr, xi), (yr, yi) = (tuple(map(_dense, parts(array))) for array in call.arrays[:2])
    added = [(None, None) if array is None else tuple(map(_dense, parts(array))) for array in call.arrays[2:]]
    for part, (out, terms) in enumerate(zip(parts(call.outs[0]), ([(xr, yr), (xi, yi)], [(xr, yi), (xi, yr)]))):
        made = [buffer.empty(out.shape, kind.numpy, out.device) for _ in terms]
        joined: Any = registry["add" if part else "sub"]
        bias, nothing = [each[part] for each in added], [None] * len(added)
        for operator, arrays, result, metadata in (
            (call.operator, [*terms[0], *bias], made[0], call.metadata),
            (call.operator, [*terms[1], *nothing], made[1], call.metadata),
            (joined, made, out, {}),
        ):
            each = Call(operator, tuple(arrays), metadata, call.device, kind, (kind,))
            each.arrays, each.outs = arrays, [result]
            operator.launch(each)


def _dense(array: DeviceArray) -> DeviceArray:
    made = buffer.empty(array.shape, array.dtype, array.device)
    if made.size:
        copy_into(made, array)
    return made
