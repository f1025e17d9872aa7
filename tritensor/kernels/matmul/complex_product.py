"""Complex matrix products as one real product: of x as it lies in memory, and of y with twice its rows and columns.

Row k of x as real numbers is re, im, re, im, ...; with [[re, im], [-im, re]] in place of each number of y, the product
has the real and imaginary parts of the result in turn. These are the 4 real multiplications for each complex one, in
the blocks and the precision of real products, and the result needs no step of its own.
"""

from __future__ import annotations

from typing import Any

from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import copy_into, registry
from ...runtime.call import Call
from ...types import dtypes
from ..pairs import as_real
from .launch import launch_product


def launch_complex(out: DeviceArray, x: DeviceArray, y: DeviceArray, bias: DeviceArray | None) -> None:
    """`out = x @ y + bias`, for complex operands of one dtype."""
    if out.size == 0:
        return
    if y.ndim == 1:
        y, out = y[:, None], out[..., None]
    *batch, depth, cols = y.shape
    rows = buffer.empty((*batch, depth, 2, cols), y.dtype, y.device)
    if depth:
        copy_into(rows[..., 0, :], y)
        multiply: Any = registry["mul"]
        kind = dtypes.of(y.dtype)
        call = Call(multiply, (y, 1j), {}, y.device, kind, (kind,))
        call.arrays, call.outs = (y, 1j), [rows[..., 1, :]]
        multiply.launch(call)
    turned = as_real(rows).reshape((*batch, 2 * depth, 2 * cols))
    launch_product(
        _in_turn(out), _in_turn(x), turned, None if bias is None else _in_turn(bias.broadcast_to(out.shape)), None
    )


def _in_turn(array: DeviceArray) -> DeviceArray:
    """Real and imaginary parts in turn along the last dimension; a copy where its elements are not neighbours."""
    shape = array.shape or (1,)
    if array.ndim and array.strides[-1] != 1 and shape[-1] != 1:
        dense = buffer.empty(shape, array.dtype, array.device)
        if dense.size:
            copy_into(dense, array)
        array = dense
    real = as_real(array)
    strides = (*real.strides[: len(shape) - 1], 1)
    return DeviceArray.over(array.buffer, (*shape[:-1], 2 * shape[-1]), strides, real.offset, real.dtype)
