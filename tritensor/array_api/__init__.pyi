"""The type stub of `tritensor.array_api`, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from builtins import bool as _bool
from collections.abc import Sequence
from tritensor.array_api import fft as fft
from tritensor.array_api import linalg as linalg
from tritensor.tensors import Tensor
from tritensor.types import dtypes
from tritensor.types.devices import device
from tritensor.types.dtypes import bool_ as bool
from tritensor.types.dtypes import complex128 as complex128
from tritensor.types.dtypes import complex64 as complex64
from tritensor.types.dtypes import dtype
from tritensor.types.dtypes import float32 as float32
from tritensor.types.dtypes import float64 as float64
from tritensor.types.dtypes import int16 as int16
from tritensor.types.dtypes import int32 as int32
from tritensor.types.dtypes import int64 as int64
from tritensor.types.dtypes import int8 as int8
from tritensor.types.dtypes import uint16 as uint16
from tritensor.types.dtypes import uint32 as uint32
from tritensor.types.dtypes import uint64 as uint64
from tritensor.types.dtypes import uint8 as uint8
from typing import Any

__all__ = [
    "Array",
    "__array_api_version__",
    "__array_namespace_info__",
    "astype",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "arange",
    "asarray",
    "broadcast_arrays",
    "broadcast_to",
    "concat",
    "empty",
    "empty_like",
    "expand_dims",
    "eye",
    "flip",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "moveaxis",
    "ones",
    "ones_like",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "take",
    "take_along_axis",
    "tile",
    "tril",
    "triu",
    "unstack",
    "zeros",
    "zeros_like",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_invert",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "negative",
    "positive",
    "real",
    "reciprocal",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "pow",
    "remainder",
    "subtract",
    "clip",
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "nonzero",
    "prod",
    "searchsorted",
    "sort",
    "std",
    "sum",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "var",
    "where",
    "matmul",
    "matrix_transpose",
    "tensordot",
    "vecdot",
    "e",
    "fft",
    "inf",
    "linalg",
    "nan",
    "newaxis",
    "pi",
]

def Array(*data: Any) -> Tensor:
    """A tensor whose operators promote, and treat infinite numbers, as the array API standard says."""
def astype(x: Tensor, dtype: dtype, /, *, copy: _bool = True, device: Any = None) -> Tensor:
    """The elements of `x` converted to `dtype`, on `device` or its own; `x` itself only with `copy=False`."""
def can_cast(from_: Any, to: dtype, /) -> _bool:
    """True if every element of a dtype, or of a tensor's, is one of dtype `to` by the rules of promotion."""
def finfo(type: dtype | Tensor, /) -> dtypes.finfo:
    """The limits and the precision of a floating dtype, or of a tensor's; its `dtype` is that of the (real) numbers."""
def iinfo(type: dtype | Tensor, /) -> dtypes.iinfo:
    """The limits of an integer dtype, or of a tensor's."""
def isdtype(dtype: dtype, kind: dtype | str | tuple[dtype | str, ...]) -> _bool:
    """True if a dtype is `kind`: a dtype, the standard's name for a kind ("integral", ...), or one of several of these."""
def result_type(*arrays_and_dtypes: Tensor | dtype | complex) -> dtype:
    """The dtype that tensors (whatever their number of dimensions), dtypes and Python numbers promote to."""
def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """The numbers from `start`, or 0, to below `stop`."""
def asarray(obj: Any, /, *, dtype: dtype | None = None, device: device | str | None = None, copy: Any = None) -> Tensor:
    """A tensor, an array, a number or nested sequences as a tensor."""
def broadcast_arrays(*arrays: Tensor) -> Any:
    """All tensors in the shape that they broadcast to, as views in a list."""
def broadcast_to(x: Tensor, /, shape: int | Sequence[int]) -> Tensor:
    """`x` in a shape that it broadcasts to, as a view."""
def concat(arrays: Sequence[Tensor], /, *, axis: int | tuple[int, ...] | None = 0) -> Any:
    """The tensors one after the other along an axis, or all elements for None, in one dtype."""
def empty(shape: int | Sequence[int], *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """A tensor of any elements."""
def empty_like(x: Tensor, /, *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """Uninitialised, with the shape, dtype, device and order in memory of `input`."""
def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] | None) -> Tensor:
    """`x` with a new axis of extent 1, as a view."""
def eye(n_rows: Any, n_cols: Any = None, /, *, k: Any = 0, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """A matrix of ones on the `k`-th diagonal, zeros elsewhere."""
def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Any:
    """The elements in reverse order along axes, or along all."""
def from_dlpack(array: Any, /, *, device: device | str | None = None, copy: Any = None) -> Tensor:
    """A tensor over the memory of another library's array that has DLPack."""
def full(shape: int | Sequence[int], fill_value: Any, *, dtype: dtype | None = None, device: device | str | None = None) -> Any:
    """A tensor of one number, of its default dtype unless that is given."""
def full_like(x: Tensor, /, fill_value: Any, *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """`fill_value` with the shape, dtype, device and order in memory of `input`."""
def linspace(start: Any, stop: Any, /, num: Any, *, dtype: dtype | None = None, device: device | str | None = None, endpoint: Any = True) -> Any:
    """`num` numbers evenly apart."""
def meshgrid(*arrays: Tensor, indexing: Any = 'xy') -> Any:
    """The coordinates of a grid in a list; "xy" swaps the first two axes."""
def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """`x` with axes moved to other places, as a view."""
def ones(shape: int | Sequence[int], *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """A tensor filled with ones."""
def ones_like(x: Tensor, /, *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """Ones with the shape, dtype, device and order in memory of `input`."""
def permute_dims(x: Tensor, /, axes: int | Sequence[Any] | None) -> Tensor:
    """`x` with its axes in another order, as a view."""
def repeat(x: Tensor, repeats: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Any:
    """Every element, or slice along an axis, `repeats` times, or as a 1-dim tensor says."""
def reshape(x: Tensor, /, shape: int | Sequence[int], *, copy: Any = None) -> Tensor:
    """`x` in another shape of as many elements, of which one extent may be -1."""
def roll(x: Tensor, /, shift: Any, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements shifted along axes, or as one, in a ring."""
def squeeze(x: Tensor, /, axis: int | tuple[int, ...] | None) -> Tensor:
    """`x` without axes of extent 1, as a view; ValueError for those of another extent."""
def stack(arrays: Sequence[Tensor], /, *, axis: int | tuple[int, ...] | None = 0) -> Tensor:
    """Tensors of one shape along a new axis, in the dtype that they promote to."""
def take(x: Tensor, indices: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements, or slices along an axis, at the places in a 1-dim tensor."""
def take_along_axis(x: Tensor, indices: Any, /, *, axis: int | tuple[int, ...] | None = -1) -> Any:
    """The elements at places along an axis, for each row; other extents broadcast."""
def tile(x: Tensor, repetitions: Any, /) -> Tensor:
    """Copies of `x` side by side, so many along each axis."""
def tril(x: Tensor, /, *, k: Any = 0) -> Tensor:
    """Matrices with zeros above the `k`-th diagonal."""
def triu(x: Tensor, /, *, k: Any = 0) -> Tensor:
    """Matrices with zeros below the `k`-th diagonal."""
def unstack(x: Tensor, /, *, axis: int | tuple[int, ...] | None = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, as views in a tuple."""
def zeros(shape: int | Sequence[int], *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """A tensor filled with zeros."""
def zeros_like(x: Tensor, /, *, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """Zeros with the shape, dtype and device of `input`, and its order of the dimensions in memory."""
def abs(x: Tensor, /) -> Tensor:
    """The absolute value of each element; of a complex number its magnitude."""
def acos(x: Tensor, /) -> Tensor:
    """The arccosine (inverse cosine) of x, in [0, pi]."""
def acosh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic cosine of x, which is not negative."""
def asin(x: Tensor, /) -> Tensor:
    """The arcsine (inverse sine) of x, in [-pi/2, pi/2]."""
def asinh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic sine of x."""
def atan(x: Tensor, /) -> Tensor:
    """The arctangent (inverse tangent) of x, in [-pi/2, pi/2]."""
def atanh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic tangent of x."""
def bitwise_invert(x: Tensor, /) -> Tensor:
    """The bitwise NOT: the bits that x does not have; for booleans, not x."""
def ceil(x: Tensor, /) -> Tensor:
    """Rounds up: the smallest integer that is not below x."""
def conj(x: Tensor, /) -> Tensor:
    """The conjugate of a complex tensor, in new memory; a real tensor itself."""
def cos(x: Tensor, /) -> Tensor:
    """The cosine of x."""
def cosh(x: Tensor, /) -> Tensor:
    """The hyperbolic cosine of x."""
def exp(x: Tensor, /) -> Tensor:
    """The exponential of each element: e to the power x."""
def expm1(x: Tensor, /) -> Tensor:
    """exp(x) - 1, exact near 0."""
def floor(x: Tensor, /) -> Tensor:
    """Rounds down: the largest integer that is not above x."""
def imag(x: Tensor, /) -> Tensor:
    """The imaginary parts, a view."""
def isfinite(x: Tensor, /) -> Tensor:
    """Tests each element: True where x is neither infinite nor NaN."""
def isinf(x: Tensor, /) -> Tensor:
    """Tests each element: True where x is infinite."""
def isnan(x: Tensor, /) -> Tensor:
    """Tests each element: True where x is NaN."""
def log(x: Tensor, /) -> Tensor:
    """The natural logarithm of x."""
def log10(x: Tensor, /) -> Tensor:
    """The logarithm of x to base 10."""
def log1p(x: Tensor, /) -> Tensor:
    """The natural logarithm of 1 + x, exact near 0."""
def log2(x: Tensor, /) -> Tensor:
    """The logarithm of x to base 2."""
def logical_not(x: Tensor, /) -> Tensor:
    """The logical NOT: True where x is 0."""
def negative(x: Tensor, /) -> Tensor:
    """The negative of each element: -x."""
def positive(x: Tensor, /) -> Tensor:
    """input itself."""
def real(x: Tensor, /) -> Tensor:
    """The real parts, a view; a real tensor itself."""
def reciprocal(x: Tensor, /) -> Tensor:
    """The reciprocal of each element: 1 / x."""
def round(x: Tensor, /) -> Tensor:
    """The nearest integer, of two the even one; the parts of complex numbers are rounded each."""
def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1, and NaN for NaN; x / abs(x) for complex numbers."""
def signbit(x: Tensor, /) -> Tensor:
    """Tests the sign bit: True where x is negative, or a negative zero."""
def sin(x: Tensor, /) -> Tensor:
    """The sine of x."""
def sinh(x: Tensor, /) -> Tensor:
    """The hyperbolic sine of x."""
def sqrt(x: Tensor, /) -> Tensor:
    """The square root of x."""
def square(x: Tensor, /) -> Tensor:
    """The square of each element: x * x."""
def tan(x: Tensor, /) -> Tensor:
    """The tangent of x."""
def tanh(x: Tensor, /) -> Tensor:
    """The hyperbolic tangent of x."""
def trunc(x: Tensor, /) -> Tensor:
    """Truncates toward zero: x without its fraction."""
def add(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Adds `other`, scaled by `alpha`, to `input`: input + alpha * other."""
def atan2(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The arctangent of y / x in the quadrant of the point (y, x); the first operand is the height."""
def bitwise_and(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The bitwise AND: the bits that x and y both have."""
def bitwise_left_shift(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The bits of x, moved up by y places."""
def bitwise_or(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The bitwise OR: the bits that x or y has."""
def bitwise_right_shift(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The bits of x, moved down by y places; the sign stays."""
def bitwise_xor(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The bitwise XOR: the bits that one of x and y has."""
def copysign(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The magnitude of x with the sign of y, which a zero has too."""
def divide(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Divides input by other; `rounding_mode` "floor" rounds down and "trunc" toward zero, and keeps integers."""
def equal(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Compares element by element: x == y."""
def floor_divide(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The largest integer that is not above x1 / x2; infinite if that is, where PyTorch's is NaN."""
def greater(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Compares element by element: x > y."""
def greater_equal(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Compares element by element: x >= y."""
def hypot(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The hypotenuse of a right triangle: sqrt(x * x + y * y), without overflow."""
def less(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Compares element by element: x < y."""
def less_equal(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Compares element by element: x <= y."""
def logaddexp(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The logarithm of the sum of exponentials: log(exp(x) + exp(y)), without overflow."""
def logical_and(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The logical AND: True where x and y both differ from 0."""
def logical_or(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The logical OR: True where x or y differs from 0."""
def logical_xor(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The logical XOR: True where one of x and y differs from 0, and one does not."""
def maximum(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The elementwise maximum of x and y; NaN if either is."""
def minimum(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The elementwise minimum of x and y; NaN if either is."""
def multiply(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Multiplies x and y element by element."""
def nextafter(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The next number after x towards y."""
def not_equal(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Compares element by element: x != y."""
def pow(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Raises x to the power y; integers stay integers, and a negative power of one is 0 (of 1 and -1: 1 or -1)."""
def remainder(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The remainder of x1 divided by x2, with the sign of x2, which a 0 has too."""
def subtract(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Subtracts `other`, scaled by `alpha`, from `input`; the errors are those of `add`."""
def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """x with the elements below `min` and above `max` replaced by these, in the dtype of x."""
def all(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: _bool = False) -> Any:
    """Tests if all elements along axes are true, or not zero; bool."""
def any(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: _bool = False) -> Any:
    """Tests if any element along axes is true, or not zero; bool."""
def argmax(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: _bool = False) -> Any:
    """The place of the greatest element along an axis, or among all; int64."""
def argmin(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: _bool = False) -> Any:
    """The place of the smallest element along an axis, or among all; int64."""
def argsort(x: Tensor, /, *, axis: int | tuple[int, ...] | None = -1, descending: Any = False, stable: Any = True) -> Tensor:
    """The places that put elements in order along an axis; int64."""
def count_nonzero(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: _bool = False) -> Any:
    """Counts elements that are not zero along axes, or among all; int64."""
def cumulative_prod(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, dtype: dtype | None = None, include_initial: Any = False) -> Tensor:
    """The products up to each element, 1 first."""
def cumulative_sum(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, dtype: dtype | None = None, include_initial: Any = False) -> Tensor:
    """The sums up to each element, 0 first."""
def diff(x: Tensor, /, n: Any = 1, axis: int | tuple[int, ...] | None = -1, *, prepend: Any = None, append: Any = None) -> Tensor:
    """The differences of neighbours along an axis, `n` times."""
def max(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: _bool = False) -> Any:
    """The greatest element along axes, NaN if one is."""
def mean(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: _bool = False) -> Any:
    """The mean of floating or complex numbers along axes."""
def min(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: _bool = False) -> Any:
    """The smallest element along axes, NaN if one is."""
def nonzero(x: Tensor, /) -> Any:
    """The places of the elements that are not 0, a 1-dim int64 tensor for each axis; ValueError for 0-dim x."""
def prod(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, dtype: dtype | None = None, keepdims: _bool = False) -> Any:
    """The product along axes; of integers int64, of unsigned uint64."""
def searchsorted(x1: Tensor | complex, x2: Tensor | complex, /, *, side: Any = 'left', sorter: Any = None) -> Any:
    """The index of `x2` in `x1`, which is sorted, or by `sorter`."""
def sort(x: Tensor, /, *, axis: int | tuple[int, ...] | None = -1, descending: Any = False, stable: Any = True) -> Any:
    """The elements in order along an axis."""
def std(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, correction: Any = 0.0, keepdims: _bool = False) -> Any:
    """The standard deviation along axes, see `var`."""
def sum(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, dtype: dtype | None = None, keepdims: _bool = False) -> Any:
    """The sum along axes; of integers int64, of unsigned ones uint64."""
def unique_all(x: Tensor, /) -> Any:
    """The distinct elements in order, their first places, which of them each element is, and their counts."""
def unique_counts(x: Tensor, /) -> Any:
    """The distinct elements in order, and how often each is there. Every NaN is distinct."""
def unique_inverse(x: Tensor, /) -> Any:
    """The distinct elements in order, and which of them each element is. Every NaN is distinct."""
def unique_values(x: Tensor, /) -> Any:
    """The distinct elements in order. Every NaN is distinct."""
def var(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, correction: Any = 0.0, keepdims: _bool = False) -> Any:
    """The squares of distances over their number less `correction`."""
def where(condition: Any, x1: Tensor | complex | None = None, x2: Tensor | complex | None = None, /) -> Any:
    """`x1` where `condition` holds, `x2` elsewhere, as they promote; alone `nonzero`."""
def matmul(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The products of matrices, or with vectors, in the common dtype."""
def matrix_transpose(x: Tensor, /) -> Any:
    """`x` with its last two axes swapped, as a view."""
def tensordot(x1: Tensor | complex, x2: Tensor | complex, /, *, axes: int | Sequence[Any] | None = 2) -> Tensor:
    """Sums of products over the last axes of `x1`, the first of `x2`."""
def vecdot(x1: Tensor | complex, x2: Tensor | complex, /, *, axis: int | tuple[int, ...] | None = -1) -> Tensor:
    """The dot products of vectors along an axis, with the conjugate of `x1`."""
e: float
inf: float
nan: float
newaxis: None
pi: float
