"""torch._prims_common: which dtype an elementwise function computes in and which it returns."""

from __future__ import annotations

from enum import Enum

from ....tensors import Tensor
from ....types import dtypes

__all__ = ["ELEMENTWISE_TYPE_PROMOTION_KIND", "elementwise_dtypes", "is_boolean_dtype", "is_integer_dtype"]


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """What becomes of the dtype that the arguments of an elementwise function promote to."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


def elementwise_dtypes(
    *_args: Tensor | complex, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND
) -> tuple[dtypes.dtype, dtypes.dtype]:
    """The dtype that a function of these tensors and numbers computes in, and that of its result."""
    kinds = ELEMENTWISE_TYPE_PROMOTION_KIND
    operands = [(each.dtype, each.ndim > 0) for each in _args if isinstance(each, Tensor)]
    found = dtypes.result_dtype(operands, [each for each in _args if not isinstance(each, Tensor)])
    if type_promotion_kind is kinds.INT_TO_FLOAT and found.category <= dtypes.INTEGER:
        found = dtypes.get_default_dtype()
    elif type_promotion_kind is kinds.BOOL_TO_LONG and found is dtypes.bool_:
        found = dtypes.int64
    result = found
    if type_promotion_kind is kinds.ALWAYS_BOOL:
        result = dtypes.bool_
    elif type_promotion_kind is kinds.COMPLEX_TO_FLOAT:
        result = dtypes.real_of(found)
    if type_promotion_kind is not kinds.NO_OPMATH and found in (dtypes.float16, dtypes.bfloat16):
        found = dtypes.float32
    return found, result


def is_boolean_dtype(dtype: dtypes.dtype) -> bool:
    """True for bool."""
    return dtype is dtypes.bool_


def is_integer_dtype(dtype: dtypes.dtype) -> bool:
    """True for integers, bool not among them."""
    return dtype.category == dtypes.INTEGER
