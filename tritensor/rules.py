"""How dtypes go through an operator: which are taken, what is computed in and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import dtypes
from .errors import DtypeError, explain
from .tensor import Tensor

__all__ = [
    "ANY",
    "COMPARISON",
    "FLOAT",
    "INTEGRAL",
    "NUMERIC",
    "ORDER",
    "REAL",
    "REAL_FLOAT",
    "Number",
    "Rule",
    "compute_dtype",
]

Number = (bool, int, float, complex, np.number, np.bool_)


class Rule:
    """How dtypes go through an operator: which categories it takes, what it computes in and what comes out.

    Args:
        name: for messages and the documentation.
        lowest, highest: the dtype categories that are taken (`dtypes.BOOLEAN` ... `dtypes.COMPLEX`).
        floating: integers and booleans become the default floating dtype.
        result: a fixed result dtype; None means the operands' common one.
        promote: operands of different dtypes are brought to their common one; otherwise they must be equal.
    """

    def __init__(
        self,
        name: str,
        lowest: int = dtypes.BOOLEAN,
        highest: int = dtypes.COMPLEX,
        *,
        floating: bool = False,
        result: dtypes.dtype | None = None,
        promote: bool = True,
    ) -> None:
        self.name = name
        self.lowest, self.highest = lowest, highest
        self.floating, self.result, self.promote = floating, result, promote
        self.differentiable = result is None or result.category >= dtypes.FLOATING

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """The dtype to compute in and the dtype of the result, for tensors and Python numbers (None is passed over)."""
        tensors = [(value.dtype, value.ndim > 0) for value in operands if isinstance(value, Tensor)]
        if not self.promote and len({entry for entry, _ in tensors}) > 1:
            names = " != ".join(dict.fromkeys(entry.name for entry, _ in tensors))
            raise DtypeError(
                explain(
                    f"{operator}: expected tensors of the same dtype, but got: {names}",
                    remedy="bring them to one dtype with .to(dtype)",
                )
            )
        common = dtypes.result_dtype(tensors, [value for value in operands if isinstance(value, Number)])
        if not self.lowest <= common.category <= self.highest:
            raise DtypeError(
                explain(
                    f"\"{operator}\" not implemented for '{_legacy(common)}'",
                    f"{operator} takes {self.takes()} dtypes, got {common}",
                    remedy="convert the operand with .to(dtype)",
                )
            )
        if self.floating and common.category < dtypes.FLOATING:
            common = dtypes.get_default_dtype()
        return compute_dtype(common), self.result or common

    def takes(self) -> str:
        """The dtype categories in words."""
        names = ("boolean", "integer", "floating", "complex")
        return ", ".join(names[self.lowest : self.highest + 1])


def compute_dtype(result: dtypes.dtype) -> dtypes.dtype:
    """Half-precision operands are computed in float32, everything else in its own dtype."""
    return dtypes.float32 if result is dtypes.float16 or result is dtypes.bfloat16 else result


def _legacy(dtype: dtypes.dtype) -> str:
    names = {
        "bool": "Bool",
        "float32": "Float",
        "float64": "Double",
        "float16": "Half",
        "bfloat16": "BFloat16",
        "int64": "Long",
        "int32": "Int",
        "int16": "Short",
        "int8": "Char",
        "uint8": "Byte",
        "complex64": "ComplexFloat",
        "complex128": "ComplexDouble",
    }
    return names.get(dtype.name, dtype.name)


ANY = Rule("any")
REAL = Rule("real", highest=dtypes.FLOATING)
NUMERIC = Rule("numeric", dtypes.INTEGER)
FLOAT = Rule("float", floating=True)
REAL_FLOAT = Rule("real float", highest=dtypes.FLOATING, floating=True)
COMPARISON = Rule("comparison", result=dtypes.bool_)
ORDER = Rule("order", highest=dtypes.FLOATING, result=dtypes.bool_)
INTEGRAL = Rule("integral", highest=dtypes.INTEGER)
