"""The bounds of random integers, which the dtype of the result has to hold."""

from __future__ import annotations

from ...errors import DtypeError, ShapeError
from ...types import dtypes

# C's names of the dtypes, which PyTorch's messages contain.
_C_NAMES = {
    dtypes.bool_: "bool",
    dtypes.uint8: "unsigned char",
    dtypes.uint16: "unsigned short",
    dtypes.uint32: "unsigned int",
    dtypes.int8: "signed char",
    dtypes.int16: "short int",
    dtypes.int32: "int",
    dtypes.float16: "c10::Half",
    dtypes.bfloat16: "c10::BFloat16",
    dtypes.float32: "float",
}


def between(low: int, high: int, kind: dtypes.dtype) -> dict[str, int]:
    """The arguments of a draw of integers from `low` up to, not including, `high`, which the dtype has to hold."""
    if low >= high:
        raise ShapeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if low < -(1 << 63) or high > 1 << 63:
        raise ShapeError("from and to - 1 are out of bounds for int64")
    if kind.is_complex:
        raise DtypeError("check_random_bounds handles only integral, floating-point and boolean types")
    limits = dtypes.finfo(kind) if kind.is_floating_point else dtypes.iinfo(kind) if kind is not dtypes.bool_ else None
    least, most = (0, 1) if limits is None else (limits.min, limits.max)
    for name, value in (("from", low), ("to - 1", high - 1)):
        if not least <= value <= most:
            raise ShapeError(
                f"{name} is out of bounds for {_C_NAMES.get(kind, kind.name)}",
                f"it is {value}; {kind} holds {least} to {most}",
            )
    return {"low": low, "span": high - low}
