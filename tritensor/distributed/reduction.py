"""ReduceOp: the ways to combine values of several processes, and the dtypes that they are for."""

from __future__ import annotations

from enum import Enum

from ..errors import DtypeError
from ..tensors import Tensor
from ..types.dtypes import bool_


class ReduceOp(Enum):
    """The operations by which a reduction combines values.

    `AVG` is the sum divided by the number of processes, for integers without the remainder; `BAND`, `BOR` and `BXOR`
    are bitwise, for integers and booleans. For booleans `SUM` means "any" and `PRODUCT` means "all".

    >>> ReduceOp.SUM, ReduceOp["MAX"]
    (<ReduceOp.SUM: 'sum'>, <ReduceOp.MAX: 'max'>)
    """

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # annotations name it


def check_reduction(operator: str, x: Tensor, op: ReduceOp) -> None:
    """Raise for reductions without a meaning: the order of complex numbers, the bits of floating ones, the average of
    booleans."""
    if x.is_complex() and op not in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT):
        raise DtypeError(f"{operator} does not support {op.name} on complex tensors")
    floating = x.is_complex() or x.is_floating_point()
    if floating and op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR):
        raise DtypeError(f"Cannot use ReduceOp.{op.name} with {x.dtype} tensors; it is for integers and booleans")
    if x.dtype is bool_ and op is ReduceOp.AVG:
        raise DtypeError(f"{operator} does not support AVG on {x.dtype} tensors", remedy="convert to a number")
