"""Element types, their limits, and type promotion.

A `dtype` names an element type for the user, for NumPy and for Triton. Promotion follows PyTorch: the *category* of an
operand (bool < integer < floating < complex) decides first, and within a category only tensors with dimensions count,
unless there are none; Python numbers come last. `PROMOTION` is the table for two dtypes that count equally.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from .. import settings
from ..errors import ArgumentError, DtypeError
from ..ground.public import ROOT, public, publish

__all__ = ["dtype", "finfo", "get_default_dtype", "iinfo", "promote_types", "set_default_dtype"]


@public(functional=False)
class dtype:
    """A data type of elements, such as `torch.float32`.

    >>> import tritensor
    >>> tritensor.bfloat16, tritensor.bfloat16.itemsize, tritensor.bfloat16.is_floating_point
    (tritensor.bfloat16, 2, True)
    """

    __module__ = "tritensor"

    __slots__ = (
        "category",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "legacy",
        "name",
        "numpy",
        "triton",
    )

    def __init__(self, name: str, legacy: str, numpy: Any, triton: str, category: int, signed: bool = True) -> None:
        self.name = name
        self.legacy = legacy  # what PyTorch calls it in messages, storage classes and names such as torch.FloatTensor
        self.numpy = np.dtype(numpy)
        self.triton = triton
        self.category = category
        self.itemsize: int = self.numpy.itemsize
        self.is_floating_point = category == FLOATING
        self.is_complex = category == COMPLEX
        self.is_signed = signed

    def __repr__(self) -> str:
        return f"{ROOT[0]}.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.name,)

    @property
    def cpp(self) -> str:
        """The dtype's name in C++, which some of PyTorch's messages have."""
        return _CPP.get(self.name, self.name)


BOOLEAN, INTEGER, FLOATING, COMPLEX = range(4)

_CPP = {
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}

bool_ = dtype("bool", "Bool", np.bool_, "i1", BOOLEAN, signed=False)
uint8 = dtype("uint8", "Byte", np.uint8, "u8", INTEGER, signed=False)
uint16 = dtype("uint16", "UInt16", np.uint16, "u16", INTEGER, signed=False)
uint32 = dtype("uint32", "UInt32", np.uint32, "u32", INTEGER, signed=False)
uint64 = dtype("uint64", "UInt64", np.uint64, "u64", INTEGER, signed=False)
int8 = dtype("int8", "Char", np.int8, "i8", INTEGER)
int16 = dtype("int16", "Short", np.int16, "i16", INTEGER)
int32 = dtype("int32", "Int", np.int32, "i32", INTEGER)
int64 = dtype("int64", "Long", np.int64, "i64", INTEGER)
float16 = dtype("float16", "Half", np.float16, "fp16", FLOATING)
bfloat16 = dtype("bfloat16", "BFloat16", ml_dtypes.bfloat16, "bf16", FLOATING)
float32 = dtype("float32", "Float", np.float32, "fp32", FLOATING)
float64 = dtype("float64", "Double", np.float64, "fp64", FLOATING)
complex64 = dtype("complex64", "ComplexFloat", np.complex64, "", COMPLEX)
complex128 = dtype("complex128", "ComplexDouble", np.complex128, "", COMPLEX)
# Kernels take their bytes: Triton has not all of them on every card, and its conversions differ from PyTorch's.
float8_e4m3fn = dtype("float8_e4m3fn", "Float8_e4m3fn", ml_dtypes.float8_e4m3fn, "u8", FLOATING)
float8_e5m2 = dtype("float8_e5m2", "Float8_e5m2", ml_dtypes.float8_e5m2, "u8", FLOATING)
float8_e4m3fnuz = dtype("float8_e4m3fnuz", "Float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, "u8", FLOATING)
float8_e5m2fnuz = dtype("float8_e5m2fnuz", "Float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, "u8", FLOATING)

# What operators compute with.
ALL = (
    bool_,
    uint8,
    uint16,
    uint32,
    uint64,
    int8,
    int16,
    int32,
    int64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
# What tensors hold, move and convert: these have no promotion and next to no arithmetic, as in PyTorch.
STORED = (*ALL, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz)
FLOAT8 = frozenset(STORED[-4:])
ALIASES = {
    "half": float16,
    "float": float32,
    "double": float64,
    "short": int16,
    "int": int32,
    "long": int64,
    "cfloat": complex64,
    "cdouble": complex128,
}
for _name, _value in {**{entry.name: entry for entry in STORED}, **ALIASES}.items():
    publish(_name, _value, functional=False)

_BY_NAME = {entry.name: entry for entry in STORED}


def _named(name: str) -> dtype:
    """A dtype from its pickled form, its name, so that copies and unpickled dtypes are the same object."""
    return _BY_NAME[name]


_REAL = {complex64: float32, complex128: float64}


def real_of(kind: dtype) -> dtype:
    """The dtype of the parts of a complex one; a real one itself."""
    return _REAL.get(kind, kind)


Dtype = dtype | type | None  # what a caller names one by: itself, or a class of Python numbers
_OF_PYTHON: dict[Any, dtype] = {float: float64, int: int64, bool: bool_, complex: complex128}


def of_argument(value: object) -> dtype | None:
    """The dtype that a caller means: itself, or that of a class of Python numbers; None for anything else."""
    return value if isinstance(value, dtype) else _OF_PYTHON.get(value) if isinstance(value, type) else None


class _ByNumpy(dict[Any, dtype]):
    def __missing__(self, numpy_dtype: Any) -> dtype:
        if isinstance(numpy_dtype, dtype):
            return numpy_dtype
        try:
            # np.longlong and byte-swapped types compare equal to a known type but have another hash.
            found = _BY_NAME.get(np.dtype(numpy_dtype).name)
        except TypeError:
            found = None
        if found is None:
            supported = ", ".join(entry.name for entry in STORED)
            raise ArgumentError(
                f"can't convert np.ndarray of type {numpy_dtype}. The only supported types are: {supported}."
            )
        return found


# The dtype for a NumPy dtype; a tritensor dtype is returned itself. A NumPy type without a counterpart (strings,
# objects, dates) is an ArgumentError with PyTorch's first words. A method of a dict: a function costs 60 ns a call.
of: Callable[[Any], dtype] = _ByNumpy({entry.numpy: entry for entry in STORED}).__getitem__


# Rows and columns are in the order of LATTICE; an entry is the smallest type that holds both by PyTorch's rules.
# Unsigned integers wider than 8 bits promote as in the array API standard, where PyTorch promotes them with floating
# types only: with integers to the smallest type that holds both, which uint64 has none with signed ones.
LATTICE = (bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128)
_TABLE = """
        b1  u1  i1  i2  i4  i8  f2  bf  f4  f8  c8  c16
    b1  b1  u1  i1  i2  i4  i8  f2  bf  f4  f8  c8  c16
    u1  u1  u1  i2  i2  i4  i8  f2  bf  f4  f8  c8  c16
    i1  i1  i2  i1  i2  i4  i8  f2  bf  f4  f8  c8  c16
    i2  i2  i2  i2  i2  i4  i8  f2  bf  f4  f8  c8  c16
    i4  i4  i4  i4  i4  i4  i8  f2  bf  f4  f8  c8  c16
    i8  i8  i8  i8  i8  i8  i8  f2  bf  f4  f8  c8  c16
    f2  f2  f2  f2  f2  f2  f2  f2  f4  f4  f8  c8  c16
    bf  bf  bf  bf  bf  bf  bf  f4  bf  f4  f8  c8  c16
    f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c16
    f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16
    c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c16 c8  c16
    c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
"""


WIDE = {uint16, uint32, uint64}


def _read_table() -> dict[tuple[dtype, dtype], dtype]:
    header, *rows = [line.split() for line in _TABLE.strip().splitlines()]
    short = dict(zip(header, LATTICE, strict=True))
    table = {}
    for row in rows:
        cells = row[1:]
        for column, cell in zip(header, cells, strict=True):
            table[short[row[0]], short[column]] = short[cell]
            table[short[column], short[row[0]]] = short[cell]
    for wide in WIDE:
        table[wide, bool_] = table[bool_, wide] = wide
        for entry in ALL[1:]:
            found = entry if entry.category >= FLOATING else of(np.promote_types(wide.numpy, entry.numpy))
            if found.category == max(INTEGER, entry.category):
                table[wide, entry] = table[entry, wide] = found
    return table | {(entry, entry): entry for entry in FLOAT8}


PROMOTION = _read_table()


@public(functional=False)
def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The dtype that two dtypes promote to, the smallest that holds both, by PyTorch's table; see `common`.

    >>> import tritensor
    >>> tritensor.promote_types(tritensor.float16, tritensor.bfloat16)
    tritensor.float32

    Raises:
        DtypeError: an unsigned integer of 16, 32 or 64 bits with another integer type, a float8 with any other dtype.
    """
    type1, type2 = of_argument(type1) or type1, of_argument(type2) or type2
    found = PROMOTION.get((type1, type2))
    if found is None and (type1 in FLOAT8 or type2 in FLOAT8):
        raise DtypeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {type1.legacy} and {type2.legacy}",
            remedy="convert one of them first, as in x.to(tritensor.float32)",
        )
    refused = type1 is not type2 and type1.category == type2.category and {type1, type2} & WIDE
    if found is None or refused:
        raise DtypeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {type1} and {type2}",
            remedy="convert one of them first, as in x.to(tritensor.int64)",
        )
    return found


def common(type1: dtype, type2: dtype) -> dtype:
    """The dtype that operators compute in, which have one for all pairs but uint64 and signed integers."""
    return PROMOTION.get((type1, type2)) or promote_types(type1, type2)


_default = float32


@public(functional=False)
def get_default_dtype() -> dtype:
    """The floating dtype of new tensors made from Python numbers (float32 unless set otherwise)."""
    return _default


@public(functional=False)
def set_default_dtype(d: dtype) -> None:
    """Make `d` the floating dtype of new tensors.

    Raises:
        ArgumentError: `d` is not a floating dtype, or a float8.
    """
    global _default
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise ArgumentError("only floating-point types are supported as the default type", f"got {d!r}")
    if d in FLOAT8:
        raise ArgumentError(f"couldn't find storage object {d.legacy}Storage", "there is no arithmetic of float8")
    _default = d
    settings.changed()


def of_scalar(value: Any) -> dtype:
    """The dtype of a tensor made from a Python number alone."""
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (float, np.floating)):
        return _default
    return complex128 if _default is float64 else complex64


def scalar_category(value: Any) -> int:
    """BOOLEAN, INTEGER, FLOATING or COMPLEX for a Python number."""
    return of_scalar(value).category


def _above(lower: dtype, higher: dtype) -> dtype:
    """The promotion of `lower` with a number or a 0-dim tensor of a higher category; complex keeps its precision."""
    if higher.is_complex and lower.is_floating_point:
        return complex128 if lower is float64 else complex64
    return higher


def result_dtype(operands: list[tuple[dtype, bool]], scalars: list[Any]) -> dtype:
    """The common dtype of tensors (each with whether it has dimensions) and Python numbers, by PyTorch's rules.

    Tensors with dimensions determine it; zero-dimensional ones count only if their category is higher, and Python
    numbers only if theirs is higher than both.
    """
    result: dtype | None = None
    for rank in (True, False):
        group: dtype | None = None
        for entry, has_dims in operands:
            if has_dims is rank:
                group = entry if group is None else common(group, entry)
        if group is not None and (result is None or group.category > result.category):
            result = group if result is None else _above(result, group)
    for value in scalars:
        alone = of_scalar(value)
        if result is None or alone.category > result.category:
            result = alone if result is None else _above(result, alone)
    assert result is not None
    return result


@public(functional=False)
class iinfo:
    """The limits of an integer dtype.

    >>> import tritensor
    >>> tritensor.iinfo(tritensor.int8).max
    127
    """

    __module__ = "tritensor"

    def __init__(self, type: dtype) -> None:
        if not isinstance(type, dtype):
            raise ArgumentError(f"iinfo(): argument 'type' must be tritensor.dtype, not {type.__class__.__name__}")
        if type.category != INTEGER:
            raise ArgumentError(
                f"tritensor.iinfo() requires an integer input type. Use tritensor.finfo to handle '{type.name}'"
            )
        limits = np.iinfo(type.numpy)
        self.dtype = type.name
        self.bits = type.itemsize * 8
        self.min, self.max = int(limits.min), int(limits.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


@public(functional=False)
class finfo:
    """The limits and the precision of a floating dtype (the default dtype when none is given).

    >>> import tritensor
    >>> tritensor.finfo(tritensor.bfloat16).eps
    0.0078125
    """

    __module__ = "tritensor"

    def __init__(self, type: dtype | None = None) -> None:
        type = _default if type is None else type
        if not isinstance(type, dtype):
            raise ArgumentError(f"finfo(): argument 'type' must be tritensor.dtype, not {type.__class__.__name__}")
        if type.category < FLOATING:
            raise ArgumentError(
                f"tritensor.finfo() requires a floating point input type. Use tritensor.iinfo to handle '{type.name}'"
            )
        limits: Any = getattr(type, "limits", None) or ml_dtypes.finfo(type.numpy)
        self.dtype = type.name
        self.bits = type.itemsize * 8 // (2 if type.is_complex else 1)
        self.min, self.max = float(limits.min), float(limits.max)
        # PyTorch's eps of float8_e5m2fnuz is half of the step at 1
        self.eps, self.tiny = float(limits.eps) / (1 + (type is float8_e5m2fnuz)), float(limits.tiny)
        self.smallest_normal = self.tiny
        self.resolution = 10.0 ** -math.floor(-math.log10(self.eps))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )
