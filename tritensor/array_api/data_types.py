"""Data types of the standard: its rules of promotion, conversions, and limits."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..dtypes import dtype
from ..errors import ArgumentError, explain
from ..functional.creation import full
from ..tensor import Tensor
from .arrays import declared

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_KINDS = {
    "bool": (dtypes.BOOLEAN,),
    "integral": (dtypes.INTEGER,),
    "real floating": (dtypes.FLOATING,),
    "complex floating": (dtypes.COMPLEX,),
    "numeric": (dtypes.INTEGER, dtypes.FLOATING, dtypes.COMPLEX),
}
_NUMBERS = (bool, int, float, complex)


def result_type(*arrays_and_dtypes: Tensor | dtype | complex) -> dtype:
    """The dtype that tensors (whatever their number of dimensions), dtypes and Python numbers promote to.

    >>> import tritensor
    >>> tritensor.array_api.result_type(tritensor.uint8, tritensor.int8, 3)
    tritensor.int16

    Raises:
        ArgumentError: neither a tensor nor a dtype is among them. DtypeError: uint64 with a signed integer.
    """
    kinds = [value if isinstance(value, dtype) else getattr(value, "dtype", None) for value in arrays_and_dtypes]
    found = [kind for kind in kinds if isinstance(kind, dtype)]
    numbers = [value for value in arrays_and_dtypes if isinstance(value, _NUMBERS)]
    if not found or len(found) + len(numbers) < len(kinds):
        got = ", ".join(type(value).__name__ for value in arrays_and_dtypes)
        raise ArgumentError(f"result_type() takes tensors and dtypes, and numbers beside them - got ({got})")
    return dtypes.result_dtype([(kind, True) for kind in found], numbers)


def promoted(call: str, *values: Any, to: dtype | None = None) -> list[Tensor]:
    """Tensors and numbers as tensors of the dtype that they promote to, or of `to`; numbers become 0-dim CPU tensors.

    Raises:
        ArgumentError: something is neither a tensor nor a number, or all are numbers.
    """
    tensors = [value for value in values if isinstance(value, Tensor)]
    if not tensors or not all(isinstance(value, (Tensor, *_NUMBERS)) for value in values):
        got = ", ".join(type(value).__name__ for value in values)
        raise ArgumentError(explain(f"{call}() takes tensors, and numbers beside them - got ({got})"))
    kind = to or result_type(*values)
    return [
        value.to(kind) if isinstance(value, Tensor) else full((), value, dtype=kind, device="cpu") for value in values
    ]


def can_cast(from_: dtype | Tensor, to: dtype, /) -> bool:
    """Whether every element of a dtype, or of a tensor's, is one of dtype `to` by the rules of promotion."""
    return dtypes.PROMOTION.get((from_.dtype if isinstance(from_, Tensor) else from_, to)) is to


def isdtype(dtype: dtype, kind: dtype | str | tuple[dtype | str, ...]) -> bool:
    """Whether a dtype is `kind`: a dtype, the standard's name for a kind ("integral", ...), or one of several of these.

    Raises:
        ValueError: `kind` is another text.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if not isinstance(kind, str):
        return dtype is kind
    if kind in ("signed integer", "unsigned integer"):
        return dtype.category == dtypes.INTEGER and dtype.is_signed is (kind == "signed integer")
    if kind not in _KINDS:
        known = ", ".join(repr(each) for each in (*_KINDS, "signed integer", "unsigned integer"))
        raise ValueError(explain(f"isdtype: unknown kind {kind!r}", remedy=f"write one of {known}"))
    return dtype.category in _KINDS[kind]


class finfo(dtypes.finfo):
    """The limits and the precision of a floating dtype, or of a tensor's; `dtype` is that of the (real) numbers."""

    def __init__(self, type: dtype | Tensor, /) -> None:
        kind = type.dtype if isinstance(type, Tensor) else type
        super().__init__(kind)
        self.dtype: Any = dtypes.real_of(kind)


class iinfo(dtypes.iinfo):
    """The limits of an integer dtype, or of a tensor's."""

    def __init__(self, type: dtype | Tensor, /) -> None:
        kind = type.dtype if isinstance(type, Tensor) else type
        super().__init__(kind)
        self.dtype: Any = kind


def _astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """The elements of `x` converted to `dtype`, on `device` or its own; `x` itself only with `copy=False`."""
    return x.to(x.device if device is None else device, dtype, copy=copy)  # type: ignore[no-any-return]


globals().update(declared(__name__, {"astype": _astype}))
