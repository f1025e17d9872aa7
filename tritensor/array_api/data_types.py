"""Data types of the standard: its rules of promotion, conversions, limits; and what the namespace says of itself."""

from __future__ import annotations

from typing import Any

from ..drivers import selection
from ..errors import ArgumentError, explain
from ..functional.creation.creation import full
from ..ground.arguments import check_tensor
from ..tensors import Tensor
from ..types import Device, devices, dtypes
from ..types.dtypes import dtype
from ..types.size import MOST_DIMS
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
    return _common("result_type", arrays_and_dtypes)


def _common(call: str, values: Any) -> dtype:
    # NumPy's float64 and complex128 have a dtype, and are Python numbers
    found = [value if isinstance(value, NUMBERS) else getattr(value, "dtype", value) for value in values]
    kinds = [(kind, True) for kind in found if isinstance(kind, dtype)]
    numbers = [value for value in found if isinstance(value, NUMBERS)]
    if not kinds or len(kinds) + len(numbers) < len(found):
        got = ", ".join(type(value).__name__ for value in values)
        raise ArgumentError(f"{call}() takes tensors, and numbers beside them - got ({got})")
    return dtypes.result_dtype(kinds, numbers)


def promoted(call: str, *values: Any, to: dtype | None = None) -> list[Tensor]:
    """Tensors and numbers as tensors of the dtype that they promote to, or of `to`; numbers on the CPU."""
    first = values[0].dtype if values and isinstance(values[0], Tensor) else None
    if first is not None and all(isinstance(x, Tensor) and x.dtype is first for x in values) and to in (None, first):
        return list(values)  # most calls: the rule takes 4 times as long as the sum of two small tensors
    kind = to or _common(call, values)
    return [x.to(kind) if isinstance(x, Tensor) else full((), x, dtype=kind, device="cpu") for x in values]


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Device = None) -> Tensor:
    """The elements of `x` converted to `dtype`, on `device` or its own; `x` itself only with `copy=False`."""
    check_tensor("astype", "x", 1, x)
    return kept(x.to(x.device if device is None else device, dtype, copy=copy), (x,))


def can_cast(from_: Any, to: dtype, /) -> bool:
    """True if every element of a dtype, or of a tensor's, is one of dtype `to` by the rules of promotion."""
    return dtypes.PROMOTION.get((getattr(from_, "dtype", from_), to)) is to


def isdtype(dtype: dtype, kind: dtype | str | tuple[dtype | str, ...]) -> bool:
    """True if a dtype is `kind`: a dtype, the standard's name for a kind ("integral", ...), or one of several of these.

    Raises:
        ValueError: `kind` is another text. ArgumentError: `dtype` is none of tritensor's, such as one of NumPy.
    """
    if dtypes.of_argument(dtype) is not dtype:
        raise ArgumentError(f"isdtype(): argument 'dtype' must be tritensor.dtype, not {dtype!r}")
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
    return _limits(dtypes.finfo, type)


def iinfo(type: dtype | Tensor, /) -> dtypes.iinfo:
    """The limits of an integer dtype, or of a tensor's."""
    return _limits(dtypes.iinfo, type)


def _limits(info: type, type: Any) -> Any:
    kind = getattr(type, "dtype", type)
    found = info(kind)
    found.dtype = dtypes.real_of(kind)  # PyTorch has its name there
    return found


class Info:
    """`__array_namespace_info__()`: which devices and dtypes there are, and what is supported."""

    def capabilities(self) -> dict[str, Any]:
        """True if masks may index and shapes may depend on elements, and the most dimensions of an array."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MOST_DIMS}

    def default_device(self) -> devices.device:
        """The device of new tensors for which none is named."""
        return devices.resolve(None)

    def default_dtypes(self, *, device: Device = None) -> dict[str, dtype]:
        """The dtypes of new tensors made from Python numbers, by kind; they are the same on all devices."""
        found = {"real floating": dtypes.of_scalar(0.0), "complex floating": dtypes.of_scalar(0j)}
        return {**found, "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device: Device = None, kind: Any = None) -> dict[str, dtype]:
        """The standard's dtypes by name, all or those of a kind or a tuple of kinds; the same on all devices."""
        found = {entry.name: entry for entry in dtypes.ALL if "float16" not in entry.name}
        return found if kind is None else {name: entry for name, entry in found.items() if isdtype(entry, kind)}

    def devices(self) -> list[devices.device]:
        """The CPU, and the CUDA devices that there are."""
        driver = selection.active()
        return [devices.cpu, *(devices.cuda(index) for index in range(driver.device_count() if driver else 0))]
