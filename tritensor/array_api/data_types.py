"""Data types of the standard: its rules of promotion, conversions, and limits."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..arguments import check_tensor
from ..dtypes import dtype
from ..errors import ArgumentError, explain
from ..functional.creation import full
from ..tensor import Tensor
from .arrays import kept

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_KINDS = ("bool", "integral", "real floating", "complex floating")  # the categories, in their order
NUMBERS = (bool, int, float, complex)


def result_type(*arrays_and_dtypes: Tensor | dtype | complex) -> dtype:
    """The dtype that tensors (whatever their number of dimensions), dtypes and Python numbers promote to.

    >>> import tritensor
    >>> tritensor.array_api.result_type(tritensor.uint8, tritensor.int8, 3)
    tritensor.int16

    Raises:
        ArgumentError: neither a tensor nor a dtype is among them. DtypeError: uint64 with a signed integer.
    """
    found = [getattr(value, "dtype", value) for value in arrays_and_dtypes]
    kinds = [(kind, True) for kind in found if isinstance(kind, dtype)]
    numbers = [value for value in found if isinstance(value, NUMBERS)]
    if not kinds or len(kinds) + len(numbers) < len(found):
        raise _no_tensors("result_type", arrays_and_dtypes)
    return dtypes.result_dtype(kinds, numbers)


def _no_tensors(call: str, values: Any) -> ArgumentError:
    got = ", ".join(type(value).__name__ for value in values)
    return ArgumentError(f"{call}() takes tensors, and numbers beside them - got ({got})")


def promoted(call: str, *values: Any, to: dtype | None = None) -> list[Tensor]:
    """Tensors and numbers as tensors of the dtype that they promote to, or of `to`; numbers become 0-dim CPU tensors.

    Raises:
        ArgumentError: something is neither a tensor nor a number, or all are numbers.
    """
    tensors = [value for value in values if isinstance(value, Tensor)]
    if not tensors or not all(isinstance(value, (Tensor, *NUMBERS)) for value in values):
        raise _no_tensors(call, values)
    kind = to or result_type(*values)
    return [x.to(kind) if isinstance(x, Tensor) else full((), x, dtype=kind, device="cpu") for x in values]


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """The elements of `x` converted to `dtype`, on `device` or its own; `x` itself only with `copy=False`."""
    check_tensor("astype", "x", 1, x)
    return kept(x.to(x.device if device is None else device, dtype, copy=copy), (x,))  # type: ignore[no-any-return]


def can_cast(from_: dtype | Tensor, to: dtype, /) -> bool:
    """Whether every element of a dtype, or of a tensor's, is one of dtype `to` by the rules of promotion."""
    return dtypes.PROMOTION.get((getattr(from_, "dtype", from_), to)) is to


def isdtype(dtype: dtype, kind: dtype | str | tuple[dtype | str, ...]) -> bool:
    """Whether a dtype is `kind`: a dtype, the standard's name for a kind ("integral", ...), or one of several of these.

    Raises:
        ValueError: `kind` is another text.
    """
    if not isinstance(kind, str):
        return any(isdtype(dtype, each) for each in kind) if isinstance(kind, tuple) else dtype is kind
    if kind in ("signed integer", "unsigned integer"):
        return dtype.category == dtypes.INTEGER and dtype.is_signed is (kind == "signed integer")
    if kind not in (*_KINDS, "numeric"):
        known = ", ".join((*_KINDS, "numeric", "signed integer", "unsigned integer"))
        raise ValueError(explain(f"isdtype: unknown kind {kind!r}", remedy=f"write one of {known}"))
    return _KINDS[dtype.category] == kind or (kind == "numeric" and dtype.category > dtypes.BOOLEAN)


def finfo(type: dtype | Tensor, /) -> dtypes.finfo:
    """The limits and the precision of a floating dtype, or of a tensor's; its `dtype` is that of the (real) numbers."""
    return _limits(dtypes.finfo, type)  # type: ignore[no-any-return]


def iinfo(type: dtype | Tensor, /) -> dtypes.iinfo:
    """The limits of an integer dtype, or of a tensor's."""
    return _limits(dtypes.iinfo, type)  # type: ignore[no-any-return]


def _limits(info: Any, type: dtype | Tensor) -> Any:
    kind = getattr(type, "dtype", type)
    found = info(kind)
    found.dtype = dtypes.real_of(kind)  # PyTorch has its name there
    return found
