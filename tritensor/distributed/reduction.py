"""ReduceOp: the ways to combine values of several processes."""

from __future__ import annotations

from enum import Enum


class ReduceOp(Enum):
    """The operations by which a reduction combines values.

    `AVG` is the sum divided by the number of processes, for floating dtypes; `BAND`, `BOR` and `BXOR` are bitwise, for
    integers and booleans. For booleans `SUM` means "any" and `PRODUCT` means "all".

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
