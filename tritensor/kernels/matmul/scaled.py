"""The product of float8 matrices times their scales: the kernel of all matrix products, on cards that multiply float8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...host.copying import cast
from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import Dtypes, Operator, Shapes, copy_into
from ...operators.rules import ANY, is_half
from ...runtime.call import Call
from ...tensors import Tensor, wrap
from ...types import dtypes
from .reference import multiply

_SINGLE = dtypes.float32.numpy


def _scaled(x, y, scale_a, scale_b, bias=None, *, out_dtype: dtypes.dtype, fast: bool = False):
    """scale_a * scale_b * (x @ y) + bias, in float32."""
    total = multiply(cast(x, _SINGLE), cast(y, _SINGLE)) * scale_a * scale_b
    return total if bias is None else total + cast(bias, _SINGLE)


class Scaled(Operator):
    """A product of two float8 matrices; each has one scale, or one for each row of the first and column of the second."""

    family = "matmul"
    float8 = "moved"
    constant = True
    repeatable = True

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The dtype that is asked for."""
        return call.inputs[0].dtype, (call.metadata["out_dtype"],)

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference."""
        metadata, kind = call.metadata, call.results[0].numpy

        def run(*arrays: Any) -> tuple[np.ndarray, ...]:
            with np.errstate(all="ignore"):
                return (cast(self.reference(*arrays, **metadata), kind),)

        return run

    def allocate(self, call: Call) -> Shapes:
        """The rows of the first and the columns of the second operand."""
        return [((call.arrays[0].shape[0], call.arrays[1].shape[1]), call.results[0].numpy)]

    def launch(self, call: Call) -> None:
        """One kernel where the card multiplies these formats; else that of float32."""
        from .launch import MULTIPLIED, launch_product

        x, y, *scales, bias = call.arrays
        (out,), driver = call.outs, call.outs[0].buffer.arena.driver
        kind, known = call.results[0], {dtypes.of(x.dtype), dtypes.of(y.dtype)} <= set(MULTIPLIED)
        total = out
        if kind is not dtypes.float32 and not is_half(kind):
            total = buffer.empty(out.shape, _SINGLE, out.device)
        if known and driver.capability(out.device.index or 0) >= (8, 9):
            launch_product(total, x, y, bias, None, tuple(scales), call.metadata["fast"])
        else:
            left, right, down, across = map(_wide, call.arrays[:4])
            found: Any = left @ right * down * across
            copy_into(total, (found if bias is None else found + _wide(bias))._data)
        if total is not out:
            copy_into(out, total)


def _wide(array: DeviceArray) -> Any:
    found: Any = wrap(array)
    return found.to(dtypes.float32)


scaled = Scaled("_scaled_mm", _scaled, ANY, register=False)
