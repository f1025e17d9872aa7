"""The product of float8 matrices times their scales, by the kernel of all matrix products where a card has float8."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...operators import Dtypes, Operator, Shapes, copy_into
from ...operators.rules import ANY
from ...runtime.call import Call
from ...tensors import wrap
from ...types import dtypes
from ..pairs import in_dtype
from .reference import multiply


class Scaled(Operator):
    """A product of two float8 matrices, with a scale for each, or for each row of the first and each column of the
    second."""

    family = "matmul"
    float8 = "taken"
    repeatable = True

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """Summed in float32; the result has the dtype that is asked for."""
        return dtypes.float32, (call.metadata["out_dtype"],)

    def allocate(self, call: Call) -> Shapes:
        """The rows of the first and the columns of the second operand."""
        return [((call.arrays[0].shape[0], call.arrays[1].shape[1]), call.results[0].numpy)]

    def launch(self, call: Call) -> None:
        """One kernel where the card multiplies these formats; else that of float32."""
        from .launch import MULTIPLIED, launch_product

        x, y, *scales, bias = call.arrays
        (out,) = call.outs
        capability = out.buffer.arena.driver.capability(out.device.index or 0)
        if capability >= (8, 9) and {dtypes.of(x.dtype), dtypes.of(y.dtype)} <= set(MULTIPLIED):
            launch_product(out, x, y, bias, None, tuple(scales), call.metadata["fast"])
            return
        wide: list[Any] = [None if each is None else wrap(in_dtype(each, dtypes.float32)) for each in call.arrays]
        copy_into(out, self.reference(*wide, **call.metadata)._data)


def _scaled_mm(x, y, scale_a, scale_b, bias=None, *, out_dtype: dtypes.dtype, fast: bool = False):
    """scale_a * scale_b * (x @ y) + bias."""
    total = (multiply(x, y) if isinstance(x, np.ndarray) else x @ y) * scale_a * scale_b
    return total if bias is None else total + bias


scaled = Scaled("_scaled_mm", _scaled_mm, ANY, register=False)
