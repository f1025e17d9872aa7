"""The type stub of Tensor, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Union, overload

import numpy as np

from .. import autograd
from ..autograd.graph import GraphNode
from ..types import devices, dtypes
from ..types.size import Size as Size
from .results import MaxResult, MedianResult, MinResult, NanmedianResult
from tritensor.drivers.streams import Stream
from tritensor.tensors import results as return_types
from tritensor.tensors.results import AminmaxResult
from tritensor.tensors.results import CummaxResult
from tritensor.tensors.results import CumminResult
from tritensor.tensors.results import FrexpResult
from tritensor.tensors.results import HistogramResult
from tritensor.tensors.results import KthvalueResult
from tritensor.tensors.results import ModeResult
from tritensor.tensors.results import SortResult
from tritensor.tensors.results import TopkResult

_Bool = bool
_Int = int
_Float = float

def wrap(data: Any) -> Tensor: ...
def blank(kind: type[Tensor], data: Any) -> Any: ...
def tensors_in(value: Any) -> Iterator[Tensor]: ...
def is_tensor(obj: Any) -> bool: ...

class Tensor:
    """A multi-dimensional array of one dtype on one device, with PyTorch's methods."""

    _data: Any
    _needs: bool
    _node: Any
    _counter: list[int] | None
    _origin: Any
    _grad: Tensor | None
    _hooks: list[Any] | None
    _post_hooks: list[Any] | None
    _retains: bool
    _pinned: bool
    def __new__(cls, *data: Any) -> Tensor: ...
    @property
    def H(self) -> Tensor:
        """A matrix transposed and conjugated: `x.H`."""
    @property
    def T(self) -> Tensor:
        """Reverses the dimensions: `x.T`, the transpose of a matrix."""
    def abs(self) -> Tensor:
        """The absolute value of each element; of a complex number its magnitude."""
    def abs_(self) -> Tensor:
        """The absolute value of each element; of a complex number its magnitude."""
    def absolute(self) -> Tensor:
        """The absolute value of each element; of a complex number its magnitude."""
    def absolute_(self) -> Tensor:
        """The absolute value of each element; of a complex number its magnitude."""
    def acos(self) -> Tensor:
        """The arccosine (inverse cosine) of x, in [0, pi]."""
    def acos_(self) -> Tensor:
        """The arccosine (inverse cosine) of x, in [0, pi]."""
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine of x, which is not negative."""
    def acosh_(self) -> Tensor:
        """The inverse hyperbolic cosine of x, which is not negative."""
    def add(self, other: Any, *older: Any, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """Adds `other`, scaled by `alpha`, to `input`: input + alpha * other."""
    def add_(self, other: Any, *older: Any, alpha: Any = 1) -> Tensor:
        """In-place version of `add`: writes to the tensor's own memory."""
    def addbmm(self, batch1: Tensor, batch2: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * input + alpha * (the sum of batch1[k] @ batch2[k]); a beta of 0 ignores the input."""
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """In-place version of `addbmm`: writes to the tensor's own memory."""
    def addcdiv(self, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
        """x + value * tensor1 / tensor2."""
    def addcdiv_(self, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
        """x + value * tensor1 / tensor2."""
    def addcmul(self, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
        """x + value * tensor1 * tensor2."""
    def addcmul_(self, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
        """x + value * tensor1 * tensor2."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * input + alpha * (mat1 @ mat2), where `input` broadcasts to the product's shape."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """In-place version of `addmm`: writes to the tensor's own memory."""
    def addmv(self, mat: Tensor, vec: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * input + alpha * (mat @ vec); a beta of 0 ignores the input."""
    def addmv_(self, mat: Tensor, vec: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """In-place version of `addmv`: writes to the tensor's own memory."""
    def addr(self, vec1: Tensor, vec2: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * input + alpha * outer(vec1, vec2); a beta of 0 ignores the input. Dtypes are promoted."""
    def addr_(self, vec1: Tensor, vec2: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """In-place version of `addr`: writes to the tensor's own memory."""
    def adjoint(self) -> Tensor:
        """Matrices transposed and conjugated; a tensor without dimensions as it is."""
    def all(self, dim: _Int | Sequence[_Int] | None = None, keepdim: _Bool = False, **others: Any) -> Tensor:
        """Tests if all elements are not zero, of all or along `dim`; along no dimension, of each by itself."""
    def allclose(self, other: Tensor, rtol: _Float = 1e-05, atol: _Float = 1e-08, equal_nan: _Bool = False) -> _Bool:
        """Tests if all elements are close: see `isclose`."""
    def amax(self, dim: _Int | Sequence[_Int] | None = None, keepdim: _Bool = False, *, out: Tensor | None = None, **others: Any) -> Tensor:
        """The largest of all elements, or along `dim`; the gradient is divided evenly among equal elements."""
    def amin(self, dim: _Int | Sequence[_Int] | None = None, keepdim: _Bool = False, *, out: Tensor | None = None, **others: Any) -> Tensor:
        """The smallest of all elements, or along `dim`; the gradient is divided evenly among equal elements."""
    def aminmax(self, *, dim: _Int | None = None, keepdim: _Bool = False) -> AminmaxResult:
        """The smallest and the largest element, of all or along `dim`."""
    def angle(self) -> Tensor:
        """The angle of a complex number, in (-pi, pi]; of a real one pi where it is negative, else 0."""
    def any(self, dim: _Int | Sequence[_Int] | None = None, keepdim: _Bool = False, **others: Any) -> Tensor:
        """Tests if any element is not zero, of all or along `dim`; along no dimension, of each by itself."""
    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Replace each element of a CPU tensor by what a function of Python makes of it, one after the other."""
    def arccos(self) -> Tensor:
        """The arccosine (inverse cosine) of x, in [0, pi]."""
    def arccos_(self) -> Tensor:
        """The arccosine (inverse cosine) of x, in [0, pi]."""
    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine of x, which is not negative."""
    def arccosh_(self) -> Tensor:
        """The inverse hyperbolic cosine of x, which is not negative."""
    def arcsin(self) -> Tensor:
        """The arcsine (inverse sine) of x, in [-pi/2, pi/2]."""
    def arcsin_(self) -> Tensor:
        """The arcsine (inverse sine) of x, in [-pi/2, pi/2]."""
    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine of x."""
    def arcsinh_(self) -> Tensor:
        """The inverse hyperbolic sine of x."""
    def arctan(self) -> Tensor:
        """The arctangent (inverse tangent) of x, in [-pi/2, pi/2]."""
    def arctan2(self, other: Any) -> Tensor:
        """The arctangent of y / x in the quadrant of the point (y, x); the first operand is the height."""
    def arctan2_(self, other: Any) -> Tensor:
        """The arctangent of y / x in the quadrant of the point (y, x); the first operand is the height."""
    def arctan_(self) -> Tensor:
        """The arctangent (inverse tangent) of x, in [-pi/2, pi/2]."""
    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent of x."""
    def arctanh_(self) -> Tensor:
        """The inverse hyperbolic tangent of x."""
    def argmax(self, dim: _Int | None = None, keepdim: _Bool = False, *, out: Tensor | None = None, **others: Any) -> Tensor:
        """The index of the largest element (counted through all of them, or along `dim`); the first of equals."""
    def argmin(self, dim: _Int | None = None, keepdim: _Bool = False, *, out: Tensor | None = None, **others: Any) -> Tensor:
        """The index of the smallest element (counted through all of them, or along `dim`); the first of equals."""
    def argsort(self, dim: _Int = -1, descending: _Bool = False, stable: _Bool = True) -> Tensor:
        """The indices of the elements in ascending (or descending) order along `dim`."""
    def argwhere(self) -> Tensor:
        """The indices of the elements that are not zero, of shape (n, rank)."""
    def as_strided(self, size: Sequence[_Int], stride: Sequence[_Int], storage_offset: _Int | None = None) -> Tensor:
        """A view of the memory of `input` with these sizes and strides, whichever elements `input` itself has."""
    def as_strided_(self, size: Sequence[_Int], stride: Sequence[_Int], storage_offset: _Int | None = None) -> Tensor:
        """In-place version of `as_strided`: the tensor keeps its memory."""
    def as_strided_scatter(self, src: Tensor, size: Sequence[_Int], stride: Sequence[_Int], storage_offset: _Int | None = None) -> Tensor:
        """A copy of `input` with `src` at the places of `as_strided`."""
    def asin(self) -> Tensor:
        """The arcsine (inverse sine) of x, in [-pi/2, pi/2]."""
    def asin_(self) -> Tensor:
        """The arcsine (inverse sine) of x, in [-pi/2, pi/2]."""
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine of x."""
    def asinh_(self) -> Tensor:
        """The inverse hyperbolic sine of x."""
    def atan(self) -> Tensor:
        """The arctangent (inverse tangent) of x, in [-pi/2, pi/2]."""
    def atan2(self, other: Any) -> Tensor:
        """The arctangent of y / x in the quadrant of the point (y, x); the first operand is the height."""
    def atan2_(self, other: Any) -> Tensor:
        """The arctangent of y / x in the quadrant of the point (y, x); the first operand is the height."""
    def atan_(self) -> Tensor:
        """The arctangent (inverse tangent) of x, in [-pi/2, pi/2]."""
    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent of x."""
    def atanh_(self) -> Tensor:
        """The inverse hyperbolic tangent of x."""
    def backward(self, gradient: Tensor | None = None, retain_graph: _Bool | None = None, create_graph: _Bool = False, inputs: Any = None) -> None:
        """Add the gradient of the tensor to the `.grad` of the leaves that it was computed from."""
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * input + alpha * bmm(batch1, batch2); a beta of 0 ignores the input."""
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """In-place version of `baddbmm`: writes to the tensor's own memory."""
    def bernoulli(self, p: _Float | None = None, *, generator: Any = None) -> Tensor:
        """Draws Bernoulli numbers: 1 with the probabilities in `input` (or everywhere with probability `p`), else 0, in its
        dtype."""
    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Tensor:
        """Fill with 1 with probability `p` (a number, or a tensor of them), else 0."""
    def bfloat16(self, *, memory_format: Any = None) -> Tensor:
        """The tensor in bfloat16; itself when it is that already."""
    def bincount(self, weights: Tensor | None = None, minlength: _Int = 0) -> Tensor:
        """Counts how often each number from 0 on occurs in a vector of integers; or sums the weights of its elements."""
    def bitwise_and(self, other: Any) -> Tensor:
        """The bitwise AND: the bits that x and y both have."""
    def bitwise_and_(self, other: Any) -> Tensor:
        """The bitwise AND: the bits that x and y both have."""
    def bitwise_left_shift(self, other: Any) -> Tensor:
        """The bits of x, moved up by y places."""
    def bitwise_left_shift_(self, other: Any) -> Tensor:
        """The bits of x, moved up by y places."""
    def bitwise_not(self) -> Tensor:
        """The bitwise NOT: the bits that x does not have; for booleans, not x."""
    def bitwise_not_(self) -> Tensor:
        """The bitwise NOT: the bits that x does not have; for booleans, not x."""
    def bitwise_or(self, other: Any) -> Tensor:
        """The bitwise OR: the bits that x or y has."""
    def bitwise_or_(self, other: Any) -> Tensor:
        """The bitwise OR: the bits that x or y has."""
    def bitwise_right_shift(self, other: Any) -> Tensor:
        """The bits of x, moved down by y places; the sign stays."""
    def bitwise_right_shift_(self, other: Any) -> Tensor:
        """The bits of x, moved down by y places; the sign stays."""
    def bitwise_xor(self, other: Any) -> Tensor:
        """The bitwise XOR: the bits that one of x and y has."""
    def bitwise_xor_(self, other: Any) -> Tensor:
        """The bitwise XOR: the bits that one of x and y has."""
    def bmm(self, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The batched matrix product of two stacks of matrices of the same length, of shapes (b, n, m) and (b, m, p)."""
    def bool(self, *, memory_format: Any = None) -> Tensor:
        """The tensor in bool; itself when it is that already."""
    def broadcast_to(self, size: Sequence[_Int]) -> Tensor:
        """Broadcasts the input to the shape `size`."""
    def byte(self, *, memory_format: Any = None) -> Tensor:
        """The tensor in uint8; itself when it is that already."""
    def cauchy_(self, median: _Float = 0.0, sigma: _Float = 1.0, *, generator: Any = None) -> Tensor:
        """Fill with numbers of the Cauchy distribution: `median + sigma * tan(pi * (u - 1/2))` of uniform u."""
    def cdouble(self, *, memory_format: Any = None) -> Tensor:
        """The tensor in complex128; itself when it is that already."""
    def ceil(self) -> Tensor:
        """Rounds up: the smallest integer that is not below x."""
    def ceil_(self) -> Tensor:
        """Rounds up: the smallest integer that is not below x."""
    def cfloat(self, *, memory_format: Any = None) -> Tensor:
        """The tensor in complex64; itself when it is that already."""
    def char(self, *, memory_format: Any = None) -> Tensor:
        """The tensor in int8; itself when it is that already."""
    def cholesky(self, upper: _Bool = False) -> Tensor:
        """`linalg.cholesky`; raises LinAlgError if a matrix is not positive-definite."""
    def cholesky_inverse(self, upper: _Bool = False) -> Tensor:
        """The inverses of L @ L^H, of which L is given; with `upper` those of U^H @ U."""
    def cholesky_solve(self, input2: Tensor, upper: _Bool = False) -> Tensor:
        """Solves (L @ L^H) @ X = input for X, of which L is `input2`; with `upper` (U^H @ U) @ X = input. Batches
        broadcast."""
    def chunk(self, chunks: _Int, dim: _Int = 0) -> tuple[Tensor, ...]:
        """Splits into at most `chunks` views of equal size along `dim`; the last may be smaller."""
    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """Clamps elements to the range from `min` to `max`; bounds are numbers or tensors, NaN stays."""
    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        """In-place version of `clamp`: writes to the tensor's own memory."""
    def clamp_max(self, other: Any) -> Tensor:
        """Clamps x from above: x, and `max` where x is above it."""
    def clamp_max_(self, max: Any) -> Tensor:
        """Clamps x from above: x, and `max` where x is above it."""
    def clamp_min(self, other: Any) -> Tensor:
        """Clamps x from below: x, and `min` where x is below it."""
    def clamp_min_(self, min: Any) -> Tensor:
        """Clamps x from below: x, and `min` where x is below it."""
    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """Clamps elements to the range from `min` to `max`; bounds are numbers or tensors, NaN stays."""
    def clip_(self, min: Any = None, max: Any = None) -> Tensor:
        """In-place version of `clamp`: writes to the tensor's own memory."""
    def clone(self, *, memory_format: Any = None) -> Tensor:
        """A copy that gradients pass through, with the dimensions in the same order in memory unless a format is given."""
    def conj(self) -> Tensor:
        """The complex conjugate: input with its imaginary part negated; a real tensor itself."""
    def conj_physical(self) -> Tensor:
        """The conjugate of a complex tensor, in new memory; a real tensor itself."""
    def conj_physical_(self) -> Tensor:
        """In-place version of `conj_physical`: writes to the tensor's own memory."""
    def contiguous(self, *, memory_format: Any = ...) -> Tensor:
        """The tensor in row-major order (or that of a memory format) without gaps; itself when it is that already."""
    def copy_(self, src: Any, non_blocking: _Bool = False) -> Tensor:
        """Write `src` (a tensor from any device, any dtype, broadcast, or a number) over the tensor's elements."""
    def copysign(self, other: Any) -> Tensor:
        """The magnitude of x with the sign of y, which a zero has too."""
    def copysign_(self, other: Any) -> Tensor:
        """The magnitude of x with the sign of y, which a zero has too."""
    def corrcoef(self) -> Tensor:
        """The correlation coefficients of variables, the rows of `input`, of which each column is an observation."""
    def cos(self) -> Tensor:
        """The cosine of x."""
    def cos_(self) -> Tensor:
        """The cosine of x."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine of x."""
    def cosh_(self) -> Tensor:
        """The hyperbolic cosine of x."""
    def count_nonzero(self, dim: _Int | Sequence[_Int] | None = None) -> Tensor:
        """Counts the elements that are not zero, of all or along `dim`."""
    def cov(self, *, correction: _Int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """The covariance matrix of variables, the rows of `input`, of which each column is an observation."""
    def cpu(self, *, non_blocking: _Bool = False, memory_format: Any = None) -> Tensor:
        """The tensor in host memory; itself when it is there already."""
    def cross(self, other: Tensor, dim: _Int | None = None) -> Tensor:
        """The cross products of vectors of three elements, along the first dimension of size 3 unless `dim` is given."""
    def cuda(self, device: Any = None, non_blocking: _Bool = False, *, memory_format: Any = None) -> Tensor:
        """The tensor on a CUDA device (the current one unless given); itself when it is there already."""
    def cummax(self, dim: _Int | None = None) -> CummaxResult:
        """The cumulative maxima along `dim`, and their indices; of equal ones the last."""
    def cummin(self, dim: _Int | None = None) -> CumminResult:
        """The cumulative minima along `dim`, and their indices; of equal ones the last."""
    def cumprod(self, dim: _Int | None = None, *, dtype: Any = None, **others: Any) -> Tensor:
        """The cumulative products along `dim`; integers and booleans multiply in int64."""
    def cumprod_(self, dim: _Int | None = None, *, dtype: Any = None, **others: Any) -> Tensor:
        """In-place version of `cumprod`: writes to the tensor's own memory."""
    def cumsum(self, dim: _Int | None = None, *, dtype: Any = None, **others: Any) -> Tensor:
        """The cumulative sums along `dim`; integers and booleans add up in int64."""
    def cumsum_(self, dim: _Int | None = None, *, dtype: Any = None, **others: Any) -> Tensor:
        """In-place version of `cumsum`: writes to the tensor's own memory."""
    @property
    def data(self) -> Tensor:
        """The same memory without history; autograd does not notice changes to it."""
    @data.setter
    def data(self, value: Tensor | None) -> None: ...
    def data_ptr(self) -> _Int:
        """The address of the first element in the memory of the tensor's device."""
    def deg2rad(self) -> Tensor:
        """Converts degrees to radians: input * pi / 180."""
    def deg2rad_(self) -> Tensor:
        """In-place version of `deg2rad`: writes to the tensor's own memory."""
    def det(self) -> Tensor:
        """`linalg.det`."""
    def detach(self) -> Tensor:
        """The same memory without history; autograd notices in-place changes of either tensor."""
    def detach_(self) -> Tensor:
        """Drop the tensor's own history."""
    @property
    def device(self) -> devices.device:
        """The device that holds the elements; CUDA devices always carry their index."""
    def diag(self, diagonal: _Int = 0) -> Tensor:
        """The matrix with a vector on its diagonal; of a matrix a copy of its diagonal."""
    def diag_embed(self, offset: _Int = 0, dim1: _Int = -2, dim2: _Int = -1) -> Tensor:
        """Zeros, with the last dimension of `input` on the diagonals of two new dimensions."""
    def diagflat(self, offset: _Int = 0) -> Tensor:
        """The matrix with the elements of `input`, in their order, on its diagonal."""
    def diagonal(self, offset: _Int = 0, dim1: _Int = 0, dim2: _Int = 1) -> Tensor:
        """A view of the diagonals of two dimensions, which become the last dimension."""
    def diagonal_scatter(self, src: Tensor, offset: _Int = 0, dim1: _Int = 0, dim2: _Int = 1) -> Tensor:
        """A copy of `input` with `src` on its diagonal; the arguments are `diagonal`'s."""
    def diff(self, n: _Int = 1, dim: _Int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
        """The differences of neighbours along `dim`, taken `n` times; of booleans whether the two differ."""
    def digamma(self) -> Tensor:
        """The derivative of the logarithm of the gamma function; -inf at 0, NaN at negative whole numbers."""
    def digamma_(self) -> Tensor:
        """The derivative of the logarithm of the gamma function; -inf at 0, NaN at negative whole numbers."""
    def dim(self) -> _Int:
        """The number of dimensions."""
    def dist(self, other: Tensor, p: _Float = 2) -> Tensor:
        """The p-norm of input - other; the two broadcast."""
    def div(self, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        """Divides input by other; `rounding_mode` "floor" rounds down and "trunc" toward zero, and keeps integers."""
    def div_(self, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        """In-place version of `div`: writes to the tensor's own memory."""
    def divide(self, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        """Divides input by other; `rounding_mode` "floor" rounds down and "trunc" toward zero, and keeps integers."""
    def divide_(self, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        """In-place version of `div`: writes to the tensor's own memory."""
    def dot(self, tensor: Tensor) -> Tensor:
        """The dot product: the sum of the products of two vectors' elements."""
    def double(self, *, memory_format: Any = None) -> Tensor:
        """The tensor in float64; itself when it is that already."""
    def dsplit(self, indices_or_sections: _Int | Sequence[_Int]) -> tuple[Tensor, ...]:
        """`tensor_split` along the third dimension; a number of sections has to divide its size."""
    @property
    def dtype(self) -> dtypes.dtype:
        """The element type."""
    def eig(self, *args: Any, **options: Any) -> Any:
        """Removed from PyTorch, as a call says: see `linalg.eig`."""
    def element_size(self) -> _Int:
        """The size of an element in bytes."""
    def eq(self, other: Any) -> Tensor:
        """Compares element by element: x == y."""
    def eq_(self, other: Any) -> Tensor:
        """Compares element by element: x == y."""
    def equal(self, other: Tensor) -> _Bool:
        """Tests if two tensors have the same shape and the same elements."""
    def erf(self) -> Tensor:
        """The error function: 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x."""
    def erf_(self) -> Tensor:
        """The error function: 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x."""
    def erfc(self) -> Tensor:
        """The complementary error function: 1 - erf(x), exact where erf(x) is close to 1."""
    def erfc_(self) -> Tensor:
        """The complementary error function: 1 - erf(x), exact where erf(x) is close to 1."""
    def erfinv(self) -> Tensor:
        """The inverse error function: the number whose error function is x."""
    def erfinv_(self) -> Tensor:
        """The inverse error function: the number whose error function is x."""
    def exp(self) -> Tensor:
        """The exponential of each element: e to the power x."""
    def exp2(self) -> Tensor:
        """2 to the power x."""
    def exp2_(self) -> Tensor:
        """2 to the power x."""
    def exp_(self) -> Tensor:
        """The exponential of each element: e to the power x."""
    def expand(self, *sizes: Any, size: Any = None, implicit: _Bool = False) -> Tensor:
        """Expands dimensions of size 1 to `sizes` without a copy; -1 keeps a size. `implicit` has no meaning."""
    def expand_as(self, other: Tensor) -> Tensor:
        """Expands the tensor to the shape of `other`."""
    def expm1(self) -> Tensor:
        """exp(x) - 1, exact near 0."""
    def expm1_(self) -> Tensor:
        """exp(x) - 1, exact near 0."""
    def exponential_(self, lambd: _Float = 1.0, *, generator: Any = None) -> Tensor:
        """Fill with numbers of the exponential distribution with rate `lambd`."""
    def fill_(self, value: Any) -> Tensor:
        """Write one number to every element."""
    def fill_diagonal_(self, fill_value: Any, wrap: _Bool = False) -> Tensor:
        """Write a number to the main diagonal, that of all dimensions."""
    def fix(self) -> Tensor:
        """Truncates toward zero: x without its fraction."""
    def fix_(self) -> Tensor:
        """Truncates toward zero: x without its fraction."""
    def flatten(self, start_dim: _Int = 0, end_dim: _Int = -1) -> Tensor:
        """Flattens the dimensions from `start_dim` to `end_dim` into one."""
    def flip(self, *along: Any, dims: Any = None) -> Tensor:
        """Flips: a copy with the order along each of `dims` reversed."""
    def fliplr(self) -> Tensor:
        """A copy with the second dimension reversed: left and right exchanged."""
    def flipud(self) -> Tensor:
        """A copy with the first dimension reversed: up and down exchanged."""
    def float(self, *, memory_format: Any = None) -> Tensor:
        """The tensor in float32; itself when it is that already."""
    def float_power(self, exponent: Any) -> Tensor:
        """input ** exponent in float64, or complex128 where one of them is complex; one of them may be a number."""
    def float_power_(self, exponent: Any) -> Tensor:
        """In-place version of `float_power`: writes to the tensor's own memory, which must be of its dtype."""
    def floor(self) -> Tensor:
        """Rounds down: the largest integer that is not above x."""
    def floor_(self) -> Tensor:
        """Rounds down: the largest integer that is not above x."""
    def floor_divide(self, other: Any) -> Tensor:
        """Divides and rounds down: the largest integer that is not above x / y."""
    def floor_divide_(self, other: Any) -> Tensor:
        """Divides and rounds down: the largest integer that is not above x / y."""
    def fmax(self, other: Any) -> Tensor:
        """The elementwise maximum of x and y; the other one where one is NaN."""
    def fmax_(self, other: Any) -> Tensor:
        """The elementwise maximum of x and y; the other one where one is NaN."""
    def fmin(self, other: Any) -> Tensor:
        """The elementwise minimum of x and y; the other one where one is NaN."""
    def fmin_(self, other: Any) -> Tensor:
        """The elementwise minimum of x and y; the other one where one is NaN."""
    def fmod(self, other: Any) -> Tensor:
        """The remainder of x divided by y, with the sign of x (C's fmod)."""
    def fmod_(self, other: Any) -> Tensor:
        """The remainder of x divided by y, with the sign of x (C's fmod)."""
    def frac(self) -> Tensor:
        """The fractional part of x, with its sign."""
    def frac_(self) -> Tensor:
        """The fractional part of x, with its sign."""
    def frexp(self) -> FrexpResult:
        """Decomposes into mantissa, from 0.5 to below 1, and exponent of 2, int32: input = mantissa * 2**exponent."""
    def gather(self, dim: _Int, index: Tensor) -> Tensor:
        """Gathers values along `dim`: out[i][j] = input[index[i][j]][j] for two dimensions and dim=0."""
    def gcd(self, other: Any) -> Tensor:
        """The greatest common divisor of x and y, of zeros 0."""
    def gcd_(self, other: Any) -> Tensor:
        """The greatest common divisor of x and y, of zeros 0."""
    def ge(self, other: Any) -> Tensor:
        """Compares element by element: x >= y."""
    def ge_(self, other: Any) -> Tensor:
        """Compares element by element: x >= y."""
    def geometric_(self, p: _Float, *, generator: Any = None) -> Tensor:
        """Fill with the number of trials, each successful with probability `p`, up to the first success."""
    def geqrf(self) -> return_types.geqrf:
        """QR without Q: R, below it the vectors of the reflections whose product Q is, and their factors `tau`."""
    def ger(self, vec2: Tensor) -> Tensor:
        """The outer product: the products of each element of one vector with each of another."""
    def get_device(self) -> _Int:
        """The CUDA ordinal, -1 on the CPU."""
    @property
    def grad(self) -> Union[Tensor, Any]:
        """The gradient that `backward` accumulated; for a tensor that is not a leaf None, unless `retain_grad()` was
        called."""
    @grad.setter
    def grad(self, value: Tensor | None) -> None: ...
    @grad.deleter
    def grad(self) -> None: ...
    @property
    def grad_fn(self) -> GraphNode | None:
        """The node that recorded how the tensor was made, None for a leaf."""
    def greater(self, other: Any) -> Tensor:
        """Compares element by element: x > y."""
    def greater_(self, other: Any) -> Tensor:
        """Compares element by element: x > y."""
    def greater_equal(self, other: Any) -> Tensor:
        """Compares element by element: x >= y."""
    def greater_equal_(self, other: Any) -> Tensor:
        """Compares element by element: x >= y."""
    def gt(self, other: Any) -> Tensor:
        """Compares element by element: x > y."""
    def gt_(self, other: Any) -> Tensor:
        """Compares element by element: x > y."""
    def half(self, *, memory_format: Any = None) -> Tensor:
        """The tensor in float16; itself when it is that already."""
    def hardshrink(self, lambd: _Float = 0.5) -> Tensor:
        """Applies hard shrinkage: input, and 0 where it lies between -lambd and lambd, or on one of them."""
    def heaviside(self, values: Tensor) -> Tensor:
        """The Heaviside step function: 0 where the input is negative or NaN, 1 where positive, `values` where it is 0."""
    def heaviside_(self, values: Tensor) -> Tensor:
        """In-place version of `heaviside`: writes to the tensor's own memory."""
    def histc(self, bins: _Int = 100, min: _Float = 0, max: _Float = 0) -> Tensor:
        """The histogram: the number of elements in each of `bins` equal intervals from `min` to `max`; of all if these are
        equal."""
    def histogram(self, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: _Bool = False) -> HistogramResult:
        """The histogram, the number of elements in each bin (or the sum of their weights), and the bins' edges."""
    def hsplit(self, indices_or_sections: _Int | Sequence[_Int]) -> tuple[Tensor, ...]:
        """`tensor_split` along the second dimension, of a vector along its only one; a number of sections has to divide its size."""
    def hypot(self, other: Any) -> Tensor:
        """The hypotenuse of a right triangle: sqrt(x * x + y * y), without overflow."""
    def hypot_(self, other: Any) -> Tensor:
        """The hypotenuse of a right triangle: sqrt(x * x + y * y), without overflow."""
    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind and order 0."""
    def i0_(self) -> Tensor:
        """The modified Bessel function of the first kind and order 0."""
    def igamma(self, other: Tensor) -> Tensor:
        """The lower incomplete gamma function of order `input` at `other`, divided by gamma(input), of floating tensors."""
    def igamma_(self, other: Tensor) -> Tensor:
        """In-place version of `igamma`: writes to the tensor's own memory."""
    def igammac(self, other: Tensor) -> Tensor:
        """The upper incomplete gamma function, 1 - igamma(input, other), exact where that is small."""
    def igammac_(self, other: Tensor) -> Tensor:
        """In-place version of `igammac`: writes to the tensor's own memory."""
    @property
    def imag(self) -> Tensor: ...
    @imag.setter
    def imag(self, value: Any) -> None: ...
    def index_add(self, dim: _Int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
        """`input` with `alpha * source[i]` added to its slice `index[i]` along `dim`."""
    def index_add_(self, dim: _Int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
        """In-place version of `index_add`: writes to the tensor's own memory."""
    def index_copy(self, dim: _Int, index: Tensor, source: Tensor) -> Tensor:
        """`input` with slice `index[i]` along `dim` replaced by `source[i]`."""
    def index_copy_(self, dim: _Int, index: Tensor, source: Tensor) -> Tensor:
        """In-place version of `index_copy`: writes to the tensor's own memory."""
    def index_fill(self, dim: _Int, index: Tensor, value: Any) -> Tensor:
        """`input` with the slices at `index` along `dim` filled with a number; -1 is the last slice."""
    def index_fill_(self, dim: _Int, index: Tensor, value: Any) -> Tensor:
        """In-place version of `index_fill`: writes to the tensor's own memory."""
    def index_put(self, indices: Sequence[Tensor], values: Any, accumulate: _Bool = False) -> Tensor:
        """A copy of `input` with `values` at `input[indices]`, or added to what is there (in one order on every run)."""
    def index_put_(self, indices: Sequence[Tensor], values: Any, accumulate: _Bool = False) -> Tensor:
        """Write `values` to `input[indices]`, or add them to what is there."""
    def index_reduce(self, dim: _Int, index: Tensor, source: Tensor, reduce: str, *, include_self: _Bool = True) -> Tensor:
        """`input` whose slice `index[i]` along `dim` is reduced with `source[i]`: "prod", "mean", "amax" or "amin"."""
    def index_reduce_(self, dim: _Int, index: Tensor, source: Tensor, reduce: str, *, include_self: _Bool = True) -> Tensor:
        """In-place version of `index_reduce`: writes to the tensor's own memory."""
    def index_select(self, dim: _Int, index: Tensor) -> Tensor:
        """Selects slices of `input` along `dim` at the positions in a vector."""
    def inner(self, other: Tensor) -> Tensor:
        """The inner product: the sum of products over the last dimension of both; of vectors, their dot product."""
    def int(self, *, memory_format: Any = None) -> Tensor:
        """The tensor in int32; itself when it is that already."""
    def inverse(self) -> Tensor:
        """`linalg.inv`."""
    def is_coalesced(self) -> _Bool:
        """False: no tensor is coalesced here."""
    def is_complex(self) -> _Bool:
        """True if the dtype is a complex one."""
    def is_conj(self) -> _Bool:
        """Tests if a conjugate is pending: never."""
    def is_contiguous(self, *, memory_format: Any = ...) -> _Bool:
        """True if the elements lie in memory in row-major order (or that of a memory format) without gaps."""
    @property
    def is_cpu(self) -> _Bool:
        """True if the elements are in the host's memory."""
    @property
    def is_cuda(self) -> _Bool:
        """True if the elements are on a CUDA device (real or simulated)."""
    def is_distributed(self) -> _Bool:
        """False: no tensor is distributed here."""
    def is_floating_point(self) -> _Bool:
        """True if the dtype is a floating one."""
    def is_inference(self) -> _Bool:
        """False: no tensor is inference here."""
    @property
    def is_ipu(self) -> _Bool:
        """False: no tensor is ipu here."""
    @property
    def is_leaf(self) -> _Bool:
        """True if the tensor was made by the user and not by a recorded operator."""
    @property
    def is_maia(self) -> _Bool:
        """False: no tensor is maia here."""
    @property
    def is_meta(self) -> _Bool:
        """False: no tensor is meta here."""
    @property
    def is_mkldnn(self) -> _Bool:
        """False: no tensor is mkldnn here."""
    @property
    def is_mps(self) -> _Bool:
        """False: no tensor is mps here."""
    @property
    def is_mtia(self) -> _Bool:
        """False: no tensor is mtia here."""
    def is_neg(self) -> _Bool:
        """Tests if a sign is pending: never."""
    @property
    def is_nested(self) -> _Bool:
        """False: no tensor is nested here."""
    def is_nonzero(self) -> _Bool:
        """True if the only element is not zero."""
    def is_pinned(self) -> _Bool:
        """True if the elements are in page-locked host memory."""
    @property
    def is_quantized(self) -> _Bool:
        """False: no tensor is quantized here."""
    def is_same_size(self, other: Tensor) -> _Bool:
        """True if both have the same shape."""
    def is_set_to(self, tensor: Tensor) -> _Bool:
        """True if both are the same elements in the same memory."""
    def is_signed(self) -> _Bool:
        """True if the dtype can hold negative numbers."""
    @property
    def is_sparse(self) -> _Bool:
        """False: no tensor is sparse here."""
    @property
    def is_sparse_csr(self) -> _Bool:
        """False: no tensor is sparse_csr here."""
    @property
    def is_vulkan(self) -> _Bool:
        """False: no tensor is vulkan here."""
    @property
    def is_xla(self) -> _Bool:
        """False: no tensor is xla here."""
    @property
    def is_xpu(self) -> _Bool:
        """False: no tensor is xpu here."""
    def isclose(self, other: Tensor, rtol: _Float = 1e-05, atol: _Float = 1e-08, equal_nan: _Bool = False) -> Tensor:
        """Tests if elements are close: |input - other| <= atol + rtol * |other|."""
    def isfinite(self) -> Tensor:
        """Tests each element: True where x is neither infinite nor NaN."""
    def isinf(self) -> Tensor:
        """Tests each element: True where x is infinite."""
    def isnan(self) -> Tensor:
        """Tests each element: True where x is NaN."""
    def isneginf(self) -> Tensor:
        """Tests if each element is infinite and negative."""
    def isposinf(self) -> Tensor:
        """Tests if each element is infinite and positive."""
    def isreal(self) -> Tensor:
        """Tests if each element is real: its imaginary part is 0."""
    def istft(self, n_fft: _Int, hop_length: _Int | None = None, win_length: _Int | None = None, window: Tensor | None = None, center: _Bool = True, normalized: _Bool = False, onesided: _Bool | None = None, length: _Int | None = None, return_complex: _Bool = False) -> Tensor:
        """The inverse short-time Fourier transform, the signal whose `stft` is nearest to the input: the frames' inverses,
        added up and divided by the windows'."""
    def item(self) -> Any:
        """The only element as a Python number."""
    @property
    def itemsize(self) -> _Int:
        """The size of an element in bytes."""
    def kron(self, other: Tensor) -> Tensor:
        """The Kronecker product: each element of the input times the whole of the other tensor, in blocks."""
    def kthvalue(self, k: _Int, dim: _Int = -1, keepdim: _Bool = False) -> KthvalueResult:
        """The `k`-th smallest element along `dim`, counted from 1, and its index. NaN is larger than every number."""
    @property
    def layout(self) -> Any:
        """`tritensor.strided`: elements lie in memory by strides."""
    def lcm(self, other: Tensor) -> Tensor:
        """The least common multiple of integers; 0 where one is 0."""
    def lcm_(self, other: Tensor) -> Tensor:
        """In-place version of `lcm`: writes to the tensor's own memory."""
    def ldexp(self, other: Tensor) -> Tensor:
        """Multiplies by a power of 2: input * 2**other, floating."""
    def ldexp_(self, other: Tensor) -> Tensor:
        """In-place version of `ldexp`: writes to the tensor's own memory."""
    def le(self, other: Any) -> Tensor:
        """Compares element by element: x <= y."""
    def le_(self, other: Any) -> Tensor:
        """Compares element by element: x <= y."""
    def lerp(self, end: Any, weight: Any) -> Tensor:
        """Linear interpolation: x + weight * (end - x), computed from the nearer end so that weight 1 gives `end`
        itself."""
    def lerp_(self, end: Any, weight: Any) -> Tensor:
        """Linear interpolation: x + weight * (end - x), computed from the nearer end so that weight 1 gives `end`
        itself."""
    def less(self, other: Any) -> Tensor:
        """Compares element by element: x < y."""
    def less_(self, other: Any) -> Tensor:
        """Compares element by element: x < y."""
    def less_equal(self, other: Any) -> Tensor:
        """Compares element by element: x <= y."""
    def less_equal_(self, other: Any) -> Tensor:
        """Compares element by element: x <= y."""
    def lgamma(self) -> Tensor:
        """The logarithm of the magnitude of the gamma function."""
    def lgamma_(self) -> Tensor:
        """The logarithm of the magnitude of the gamma function."""
    def log(self) -> Tensor:
        """The natural logarithm of x."""
    def log10(self) -> Tensor:
        """The logarithm of x to base 10."""
    def log10_(self) -> Tensor:
        """The logarithm of x to base 10."""
    def log1p(self) -> Tensor:
        """The natural logarithm of 1 + x, exact near 0."""
    def log1p_(self) -> Tensor:
        """The natural logarithm of 1 + x, exact near 0."""
    def log2(self) -> Tensor:
        """The logarithm of x to base 2."""
    def log2_(self) -> Tensor:
        """The logarithm of x to base 2."""
    def log_(self) -> Tensor:
        """The natural logarithm of x."""
    def log_normal_(self, mean: _Float = 1.0, std: _Float = 2.0, *, generator: Any = None) -> Tensor:
        """Fill with numbers whose logarithm is normal with this mean and deviation."""
    def log_softmax(self, dim: _Int = ..., dtype: Any = None, *, out: Tensor | None = None, **others: Any) -> Tensor:
        """Applies the logarithm of softmax along `dim`, computed without overflow; see `softmax`."""
    def logaddexp(self, other: Any) -> Tensor:
        """The logarithm of the sum of exponentials: log(exp(x) + exp(y)), without overflow."""
    def logaddexp2(self, other: Any) -> Tensor:
        """log2(2**x + 2**y), without overflow."""
    def logaddexp2_(self, other: Any) -> Tensor:
        """log2(2**x + 2**y), without overflow."""
    def logaddexp_(self, other: Any) -> Tensor:
        """The logarithm of the sum of exponentials: log(exp(x) + exp(y)), without overflow."""
    def logcumsumexp(self, dim: _Int | None = None) -> Tensor:
        """log(sum(exp(x))) of the elements up to each place along `dim`, without overflow."""
    def logdet(self) -> Tensor:
        """The logarithms of determinants; NaN where one is negative."""
    def logical_and(self, other: Any) -> Tensor:
        """The logical AND: True where x and y both differ from 0."""
    def logical_and_(self, other: Any) -> Tensor:
        """The logical AND: True where x and y both differ from 0."""
    def logical_not(self) -> Tensor:
        """The logical NOT: True where x is 0."""
    def logical_not_(self) -> Tensor:
        """The logical NOT: True where x is 0."""
    def logical_or(self, other: Any) -> Tensor:
        """The logical OR: True where x or y differs from 0."""
    def logical_or_(self, other: Any) -> Tensor:
        """The logical OR: True where x or y differs from 0."""
    def logical_xor(self, other: Any) -> Tensor:
        """The logical XOR: True where one of x and y differs from 0, and one does not."""
    def logical_xor_(self, other: Any) -> Tensor:
        """The logical XOR: True where one of x and y differs from 0, and one does not."""
    def logit(self, eps: _Float | None = None) -> Tensor:
        """The logit, the inverse of sigmoid: log(input / (1 - input)); `eps` keeps the input within eps and 1 - eps."""
    def logit_(self, eps: _Float | None = None) -> Tensor:
        """In-place version of `logit`: writes to the tensor's own memory."""
    def logsumexp(self, dim: _Int | Sequence[_Int] | None, keepdim: _Bool = False) -> Tensor:
        """log(sum(exp(x))) along `dim`, without overflow."""
    def long(self, *, memory_format: Any = None) -> Tensor:
        """The tensor in int64; itself when it is that already."""
    def lstsq(self, A: Tensor) -> Any:
        """Removed from PyTorch: `linalg.lstsq`, with its arguments in the other order, takes its place."""
    def lt(self, other: Any) -> Tensor:
        """Compares element by element: x < y."""
    def lt_(self, other: Any) -> Tensor:
        """Compares element by element: x < y."""
    def lu(self, pivot: _Bool = True, get_infos: _Bool = False, out: Any = None) -> Any:
        """`linalg.lu_factor` as a tuple; with `get_infos` `linalg.lu_factor_ex`, which does not raise."""
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """`linalg.lu_solve(LU_data, LU_pivots, input)`."""
    @property
    def mH(self) -> Tensor:
        """The last two dimensions exchanged, and the elements conjugated: `x.mH`."""
    @property
    def mT(self) -> Tensor:
        """Transposes matrices, the last two dimensions: `x.mT`; a tensor without dimensions as it is."""
    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """Like `apply_`, with a function of three numbers."""
    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Like `apply_`, with a function of two numbers: the element, and that of `tensor` at its place."""
    def masked_fill(self, mask: Tensor, value: Any) -> Tensor:
        """Fills with a number where `mask` is True; input and mask broadcast."""
    def masked_fill_(self, mask: Tensor, value: Any) -> Tensor:
        """In-place version of `masked_fill`: writes to the tensor's own memory."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """`input` with the elements of `source`, in their order, where `mask` holds; input and mask broadcast."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """In-place version of `masked_scatter`: writes to the tensor's own memory."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """Selects the elements where `mask` is True, as a vector; the two broadcast. The host waits for their number."""
    def matmul(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The matrix product of vectors, matrices, or stacks of matrices; batch dimensions broadcast."""
    def matrix_exp(self) -> Tensor:
        """`linalg.matrix_exp`."""
    def matrix_power(self, n: _Int) -> Tensor:
        """`linalg.matrix_power`."""
    @overload
    def max(self) -> Tensor:
        """The largest element; with `dim`, the largest along it and their indices; with a tensor, the elementwise maximum."""
    @overload
    def max(self, dim: _Int, keepdim: _Bool = False) -> MaxResult:
        """The largest element; with `dim`, the largest along it and their indices; with a tensor, the elementwise maximum."""
    @overload
    def max(self, other: Tensor) -> Tensor:
        """The largest element; with `dim`, the largest along it and their indices; with a tensor, the elementwise maximum."""
    @overload
    def max(self, dim: Any = None, keepdim: _Bool = False, *, other: Tensor | None = None, **others: Any) -> Any:
        """The largest element; with `dim`, the largest along it and their indices; with a tensor, the elementwise maximum."""
    def maximum(self, other: Any) -> Tensor:
        """The elementwise maximum of x and y; NaN if either is."""
    def maximum_(self, other: Any) -> Tensor:
        """The elementwise maximum of x and y; NaN if either is."""
    def mean(self, dim: _Int | Sequence[_Int] | None = None, keepdim: _Bool = False, *, dtype: Any = None, out: Tensor | None = None, **others: Any) -> Tensor:
        """The mean of all elements, or along `dim`."""
    @overload
    def median(self) -> Tensor:
        """The median of all elements; or along `dim`, with indices. Of an even number it is the lower one in the middle."""
    @overload
    def median(self, dim: _Int, keepdim: _Bool = False) -> MedianResult:
        """The median of all elements; or along `dim`, with indices. Of an even number it is the lower one in the middle."""
    @overload
    def median(self, dim: _Int | None = None, keepdim: _Bool = False) -> Any:
        """The median of all elements; or along `dim`, with indices. Of an even number it is the lower one in the middle."""
    @overload
    def min(self) -> Tensor:
        """The smallest element; with `dim`, those along it and their indices; with a tensor, the elementwise minimum."""
    @overload
    def min(self, dim: _Int, keepdim: _Bool = False) -> MinResult:
        """The smallest element; with `dim`, those along it and their indices; with a tensor, the elementwise minimum."""
    @overload
    def min(self, other: Tensor) -> Tensor:
        """The smallest element; with `dim`, those along it and their indices; with a tensor, the elementwise minimum."""
    @overload
    def min(self, dim: Any = None, keepdim: _Bool = False, *, other: Tensor | None = None, **others: Any) -> Any:
        """The smallest element; with `dim`, those along it and their indices; with a tensor, the elementwise minimum."""
    def minimum(self, other: Any) -> Tensor:
        """The elementwise minimum of x and y; NaN if either is."""
    def minimum_(self, other: Any) -> Tensor:
        """The elementwise minimum of x and y; NaN if either is."""
    def mm(self, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The product of two matrices."""
    def mode(self, dim: _Int = -1, keepdim: _Bool = False) -> ModeResult:
        """The mode, the most frequent element along `dim`, of several the smallest, and the last index where it is."""
    def moveaxis(self, source: _Int | Sequence[_Int], destination: _Int | Sequence[_Int]) -> Tensor:
        """Moves dimensions `source` to the positions `destination`; the others keep their order."""
    def movedim(self, source: _Int | Sequence[_Int], destination: _Int | Sequence[_Int]) -> Tensor:
        """Moves dimensions `source` to the positions `destination`; the others keep their order."""
    def msort(self) -> Tensor:
        """The elements in rising order along the first dimension."""
    def mul(self, other: Any) -> Tensor:
        """Multiplies x and y element by element."""
    def mul_(self, other: Any) -> Tensor:
        """Multiplies x and y element by element."""
    def multinomial(self, num_samples: _Int, replacement: _Bool = False, *, generator: Any = None) -> Tensor:
        """Indices drawn from each row of `input` (1-D or 2-D) with probabilities proportional to its elements."""
    def multiply(self, other: Any) -> Tensor:
        """Multiplies x and y element by element."""
    def multiply_(self, other: Any) -> Tensor:
        """Multiplies x and y element by element."""
    def mv(self, vec: Tensor) -> Tensor:
        """The product of a matrix and a vector."""
    def mvlgamma(self, p: _Int) -> Tensor:
        """The logarithm of the multivariate gamma function of p dimensions."""
    def mvlgamma_(self, p: _Int) -> Tensor:
        """In-place version of `mvlgamma`: writes to the tensor's own memory."""
    def nan_to_num(self, nan: _Float = 0.0, posinf: _Float | None = None, neginf: _Float | None = None) -> Tensor:
        """Replaces NaN by `nan`, and infinities by the given numbers or the dtype's largest and smallest."""
    def nan_to_num_(self, nan: _Float = 0.0, posinf: _Float | None = None, neginf: _Float | None = None) -> Tensor:
        """In-place version of `nan_to_num`: writes to the tensor's own memory."""
    def nanmean(self, dim: _Int | Sequence[_Int] | None = None, keepdim: _Bool = False, *, dtype: Any = None) -> Tensor:
        """The mean of the elements that are not NaN, of all or along `dim`; NaN if there are none."""
    @overload
    def nanmedian(self) -> Tensor:
        """The median of the elements that are not NaN; NaN if there are none."""
    @overload
    def nanmedian(self, dim: _Int, keepdim: _Bool = False) -> NanmedianResult:
        """The median of the elements that are not NaN; NaN if there are none."""
    @overload
    def nanmedian(self, dim: _Int | None = None, keepdim: _Bool = False) -> Any:
        """The median of the elements that are not NaN; NaN if there are none."""
    def nanquantile(self, q: Any, dim: _Int | None = None, keepdim: _Bool = False, *, interpolation: str = 'linear') -> Tensor:
        """`quantile` of the elements that are not NaN; NaN if there are none."""
    def nansum(self, dim: Any = None, keepdim: _Bool = False, *, dtype: dtypes.dtype | None = None) -> Tensor:
        """The sum of the elements that are not NaN."""
    def narrow(self, dim: _Int, start: _Int, length: _Int) -> Tensor:
        """Narrows along `dim` to `length` elements, from `start`."""
    def narrow_copy(self, dim: _Int, start: _Int, length: _Int, *, out: Tensor | None = None) -> Tensor:
        """A copy of what `narrow` gives, which shares no memory with it."""
    @property
    def nbytes(self) -> _Int:
        """The size of all elements in bytes."""
    @property
    def ndim(self) -> _Int:
        """The number of dimensions."""
    def ndimension(self) -> _Int:
        """The number of dimensions."""
    def ne(self, other: Any) -> Tensor:
        """Compares element by element: x != y."""
    def ne_(self, other: Any) -> Tensor:
        """Compares element by element: x != y."""
    def neg(self) -> Tensor:
        """The negative of each element: -x."""
    def neg_(self) -> Tensor:
        """The negative of each element: -x."""
    def negative(self) -> Tensor:
        """The negative of each element: -x."""
    def negative_(self) -> Tensor:
        """The negative of each element: -x."""
    def nelement(self) -> _Int:
        """The number of elements."""
    def new_empty(self, *sizes: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        """An uninitialised tensor of this size; options are those of `empty`, dtype and device are the tensor's."""
    def new_empty_strided(self, size: Sequence[_Int], stride: Sequence[_Int], dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        """`empty_strided` with the tensor's dtype and device unless given, and with its options."""
    def new_full(self, size: Any, fill_value: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        """`fill_value` in this size, with the dtype and on the device of the tensor; options are those of `full`."""
    def new_ones(self, *sizes: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        """Ones of this size, with the dtype and on the device of the tensor unless given; options are those of `ones`."""
    def new_tensor(self, data: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        """A copy of `data`, with the dtype and on the device of the tensor; options are those of `tensor`."""
    def new_zeros(self, *sizes: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        """Zeros of this size, with the dtype and on the device of the tensor unless given; options are those of `zeros`."""
    def nextafter(self, other: Any) -> Tensor:
        """The next number after x towards y."""
    def nextafter_(self, other: Any) -> Tensor:
        """The next number after x towards y."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """The indices of the elements that are not zero, in order: of shape (n, rank), or as a tuple of `rank` vectors."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
        """The indices of the elements that are not zero, in order: of shape (n, rank), or as a tuple of `rank` vectors."""
    @overload
    def nonzero(self, *, as_tuple: _Bool = False) -> Any:
        """The indices of the elements that are not zero, in order: of shape (n, rank), or as a tuple of `rank` vectors."""
    def nonzero_static(self, *, size: _Int, fill_value: _Int = -1) -> Tensor:
        """The coordinates of the first `size` elements that are not 0, filled up with `fill_value`."""
    def norm(self, p: _Float | str | None = 'fro', dim: _Int | Sequence[_Int] | None = None, keepdim: _Bool = False, dtype: Any = None) -> Tensor:
        """The p-norm of all elements, or of those along `dim`, as of a vector."""
    def normal_(self, mean: _Float = 0.0, std: _Float = 1.0, *, generator: Any = None) -> Tensor:
        """Fill with normal numbers."""
    def not_equal(self, other: Any) -> Tensor:
        """Compares element by element: x != y."""
    def not_equal_(self, other: Any) -> Tensor:
        """Compares element by element: x != y."""
    def numel(self) -> _Int:
        """The number of elements."""
    def numpy(self, *, force: _Bool = False) -> np.ndarray:
        """The CPU tensor's elements as a NumPy array that shares its memory."""
    def orgqr(self, input2: Tensor) -> Tensor:
        """`linalg.householder_product`."""
    def ormqr(self, input2: Tensor, input3: Tensor, left: _Bool = True, transpose: _Bool = False) -> Tensor:
        """Q @ input3, where Q is the square product of all reflections of `geqrf`'s results `input` and `input2`."""
    def outer(self, vec2: Tensor) -> Tensor:
        """The outer product: the products of each element of one vector with each of another."""
    @property
    def output_nr(self) -> _Int:
        """The number of the output of `grad_fn` that the tensor is."""
    def permute(self, *order: Any, dims: Any = None) -> Tensor:
        """Permutes the dimensions into the order `dims`."""
    def pin_memory(self, device: Any = None) -> Tensor:
        """A copy in page-locked host memory, which copies to a GPU faster; the tensor itself where there is no GPU."""
    def pinverse(self, rcond: _Float = 1e-15) -> Tensor:
        """`linalg.pinv`."""
    def polygamma(self, n: _Int) -> Tensor:
        """The derivative of order n of the digamma function."""
    def polygamma_(self, n: _Int) -> Tensor:
        """In-place version of `polygamma`: writes to the tensor's own memory."""
    def positive(self) -> Tensor:
        """input itself."""
    def pow(self, other: Any) -> Tensor:
        """Raises x to the power y; integers stay integers, and a negative power of one is 0 (of 1 and -1: 1 or -1)."""
    def pow_(self, other: Any) -> Tensor:
        """Raises x to the power y; integers stay integers, and a negative power of one is 0 (of 1 and -1: 1 or -1)."""
    def prelu(self, weight: Tensor) -> Tensor:
        """Parametric ReLU: input where it is positive, else times weight: one number, or one for each channel, dimension 1."""
    def prod(self, dim: _Int | None = None, keepdim: _Bool = False, *, dtype: Any = None, out: Tensor | None = None, **others: Any) -> Tensor:
        """The product of all elements, or along one dimension; integers and booleans multiply in int64."""
    def put(self, index: Tensor, source: Tensor, accumulate: _Bool = False) -> Tensor:
        """`input` with the elements of `source` at the places `index` of the flattened `input`, or added there."""
    def put_(self, index: Tensor, source: Tensor, accumulate: _Bool = False) -> Tensor:
        """In-place version of `put`: writes to the tensor's own memory."""
    def qr(self, some: _Bool = True) -> return_types.qr:
        """`linalg.qr` with the mode "reduced", or "complete" unless `some`."""
    def quantile(self, q: Any, dim: _Int | None = None, keepdim: _Bool = False, *, interpolation: str = 'linear') -> Tensor:
        """The `q`-th quantiles of all elements, or along `dim`; of several `q` along a new first dimension."""
    def rad2deg(self) -> Tensor:
        """Converts radians to degrees: input * 180 / pi."""
    def rad2deg_(self) -> Tensor:
        """In-place version of `rad2deg`: writes to the tensor's own memory."""
    def random_(self, from_: _Int | None = None, to: _Int | None = None, *, generator: Any = None) -> Tensor:
        """Fill with integers from `from_` up to, not including, `to`; with one bound from 0 up to it."""
    def ravel(self) -> Tensor:
        """Flattens to a vector: a view where that is possible, else a copy."""
    @property
    def real(self) -> Tensor:
        """The real parts, a view; a real tensor itself."""
    @real.setter
    def real(self, value: Any) -> None: ...
    def reciprocal(self) -> Tensor:
        """The reciprocal of each element: 1 / x."""
    def reciprocal_(self) -> Tensor:
        """The reciprocal of each element: 1 / x."""
    def record_stream(self, s: Stream) -> None:
        """Note that work of another stream uses the tensor: its memory is not used again before that work is done."""
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> autograd.Handle:
        """Call `hook(gradient)` with the tensor's gradient; a tensor that it returns replaces the gradient."""
    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> autograd.Handle:
        """Call `hook(tensor)` after a backward pass has added to the leaf's `.grad`."""
    def relu(self) -> Tensor:
        """The rectified linear unit: x where it is positive, else 0; NaN stays NaN."""
    def relu_(self) -> Tensor:
        """The rectified linear unit: x where it is positive, else 0; NaN stays NaN."""
    def remainder(self, other: Any) -> Tensor:
        """The remainder of x divided by y, with the sign of y (Python's modulus)."""
    def remainder_(self, other: Any) -> Tensor:
        """The remainder of x divided by y, with the sign of y (Python's modulus)."""
    def renorm(self, p: _Float, dim: _Int, maxnorm: _Float) -> Tensor:
        """The input with those of its slices along `dim` whose p-norm is above `maxnorm` scaled to that norm."""
    def renorm_(self, p: _Float, dim: _Int, maxnorm: _Float) -> Tensor:
        """In-place version of `renorm`: writes to the tensor's own memory."""
    def repeat(self, *counts: Any, repeats: Any = None) -> Tensor:
        """A copy that holds the tensor `repeats` times along each dimension; there may be more repeats than dimensions."""
    def repeat_interleave(self, repeats: _Int | Tensor | None = None, dim: _Int | None = None, *, output_size: _Int | None = None) -> Tensor:
        """Repeats each slice along `dim` (each element if None) `repeats` times."""
    @property
    def requires_grad(self) -> _Bool:
        """True if operators on the tensor are recorded so that a gradient can be computed."""
    @requires_grad.setter
    def requires_grad(self, value: _Bool) -> None: ...
    def requires_grad_(self, requires_grad: _Bool = True) -> Tensor:
        """Set `requires_grad` and return the tensor."""
    def reshape(self, *sizes: Any, shape: Any = None) -> Tensor:
        """Reshapes: the same elements in another shape, a view where that is possible, else a copy."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """The same elements in the shape of `other`."""
    def resize_(self, *sizes: Any, size: Any = None, memory_format: Any = ...) -> Tensor:
        """Give the tensor another size, in its memory where that is large enough, else in new memory."""
    def resize_as_(self, other: Tensor, *, memory_format: Any = ...) -> Tensor:
        """`resize_` to the size of another tensor."""
    def resolve_conj(self) -> Tensor:
        """The input itself: here no conjugate is pending."""
    def resolve_neg(self) -> Tensor:
        """The input itself: here no sign is pending."""
    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is not a leaf in `.grad`."""
    @property
    def retains_grad(self) -> _Bool:
        """True if `retain_grad()` was called on a tensor that is not a leaf."""
    def roll(self, shifts: _Int | Sequence[_Int], dims: _Int | Sequence[_Int] | None = None) -> Tensor:
        """Rolls the elements by `shifts` along `dims`; those shifted past the end continue at the start."""
    def rot90(self, k: _Int = 1, dims: Sequence[_Int] = ...) -> Tensor:
        """Rotates: a copy turned by `k` quarters in the plane of two dimensions, from the first towards the second."""
    def round(self, *, decimals: _Int = 0) -> Tensor:
        """Rounds to the nearest number with `decimals` digits after the point; ties go to the even one."""
    def round_(self, *, decimals: _Int = 0) -> Tensor:
        """In-place version of `round`: writes to the tensor's own memory."""
    def rsqrt(self) -> Tensor:
        """The reciprocal of the square root of each element: 1 / sqrt(x)."""
    def rsqrt_(self) -> Tensor:
        """The reciprocal of the square root of each element: 1 / sqrt(x)."""
    def scatter(self, dim: _Int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Tensor:
        """Scatters: `input` with each element of `src` (or one number) written to the position in `index` along `dim`."""
    def scatter_(self, dim: _Int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Tensor:
        """In-place version of `scatter`: writes to the tensor's own memory."""
    def scatter_add(self, dim: _Int, index: Tensor, src: Tensor) -> Tensor:
        """Scatters and adds: `input` with each element of `src` added at the position in `index` along `dim`."""
    def scatter_add_(self, dim: _Int, index: Tensor, src: Tensor) -> Tensor:
        """In-place version of `scatter_add`: writes to the tensor's own memory."""
    def scatter_reduce(self, dim: _Int, index: Tensor, src: Tensor, reduce: str, *, include_self: _Bool = True) -> Tensor:
        """Scatters and reduces: `input` with the "sum", "prod", "mean", "amax" or "amin" of what is scattered to each
        position, and of its own."""
    def scatter_reduce_(self, dim: _Int, index: Tensor, src: Tensor, reduce: str, *, include_self: _Bool = True) -> Tensor:
        """In-place version of `scatter_reduce`: writes to the tensor's own memory."""
    def select(self, dim: _Int, index: _Int) -> Tensor:
        """The slice at `index` along `dim`, without that dimension."""
    def select_scatter(self, src: Tensor, dim: _Int, index: _Int) -> Tensor:
        """A copy of `input` with `src` in place of `input.select(dim, index)`."""
    def set_(self, source: Tensor | None = None, storage_offset: _Int = 0, size: Sequence[_Int] | None = None, stride: Sequence[_Int] | None = None) -> Tensor:
        """Give the tensor the memory of another one, with that one's shape unless given; without `source` none."""
    def sgn(self) -> Tensor:
        """The sign, also of complex numbers: x / |x|, and 0 where x is 0; for real numbers -1, 0 or 1, and 0 for NaN."""
    def sgn_(self) -> Tensor:
        """The sign, also of complex numbers: x / |x|, and 0 where x is 0; for real numbers -1, 0 or 1, and 0 for NaN."""
    @property
    def shape(self) -> Size:
        """The extents of the dimensions."""
    def short(self, *, memory_format: Any = None) -> Tensor:
        """The tensor in int16; itself when it is that already."""
    def sigmoid(self) -> Tensor:
        """The logistic sigmoid: 1 / (1 + exp(-x))."""
    def sigmoid_(self) -> Tensor:
        """The logistic sigmoid: 1 / (1 + exp(-x))."""
    def sign(self) -> Tensor:
        """The sign of each element: -1, 0 or 1, and 0 for NaN."""
    def sign_(self) -> Tensor:
        """The sign of each element: -1, 0 or 1, and 0 for NaN."""
    def signbit(self) -> Tensor:
        """Tests the sign bit: True where x is negative, or a negative zero."""
    def sin(self) -> Tensor:
        """The sine of x."""
    def sin_(self) -> Tensor:
        """The sine of x."""
    def sinc(self) -> Tensor:
        """sin(pi * x) / (pi * x), and 1 where x is 0."""
    def sinc_(self) -> Tensor:
        """sin(pi * x) / (pi * x), and 1 where x is 0."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine of x."""
    def sinh_(self) -> Tensor:
        """The hyperbolic sine of x."""
    @overload
    def size(self) -> Size:
        """The shape, or the extent of one dimension."""
    @overload
    def size(self, dim: _Int) -> _Int:
        """The shape, or the extent of one dimension."""
    @overload
    def size(self, dim: _Int | None = None) -> Any:
        """The shape, or the extent of one dimension."""
    def slice_scatter(self, src: Tensor, dim: _Int = 0, start: _Int | None = None, end: _Int | None = None, step: _Int = 1) -> Tensor:
        """A copy of `input` with `src` in place of `input[start:end:step]` along `dim`."""
    def slogdet(self) -> return_types.slogdet:
        """`linalg.slogdet`."""
    def softmax(self, dim: _Int = ..., dtype: Any = None, *, out: Tensor | None = None, **others: Any) -> Tensor:
        """Applies softmax along `dim`: exp(input), scaled so that its sum is 1."""
    def solve(self, A: Tensor) -> Any:
        """Removed from PyTorch: `linalg.solve`, with its arguments in the other order, takes its place."""
    def sort(self, dim: _Int = -1, descending: _Bool = False, stable: _Bool = True) -> SortResult:
        """Sorts along `dim` in ascending (or descending) order, and returns the indices too; equal elements keep their
        order."""
    def split(self, split_size: _Int | Sequence[_Int], dim: _Int = 0) -> tuple[Tensor, ...]:
        """Splits into views of consecutive pieces along `dim`: of one size (the last may be smaller) or of the sizes
        given."""
    def split_with_sizes(self, split_sizes: Sequence[_Int], dim: _Int = 0) -> tuple[Tensor, ...]:
        """`split` into pieces of these sizes."""
    def sqrt(self) -> Tensor:
        """The square root of x."""
    def sqrt_(self) -> Tensor:
        """The square root of x."""
    def square(self) -> Tensor:
        """The square of each element: x * x."""
    def square_(self) -> Tensor:
        """The square of each element: x * x."""
    def squeeze(self, dim: _Int | Sequence[_Int] | None = None) -> Tensor:
        """Removes the dimensions of size 1 (among `dim`, when given)."""
    def squeeze_(self, dim: _Int | Sequence[_Int] | None = None) -> Tensor:
        """In-place version of `squeeze`: the tensor keeps its memory."""
    def std(self, dim: Any = None, unbiased: _Bool | None = None, keepdim: _Bool = False, *, correction: _Float | None = None, out: Tensor | None = None, **others: Any) -> Tensor:
        """The standard deviation, the square root of `var`."""
    def stft(self, n_fft: _Int, hop_length: _Int | None = None, win_length: _Int | None = None, window: Tensor | None = None, center: _Bool = True, pad_mode: str = 'reflect', normalized: _Bool = False, onesided: _Bool | None = None, return_complex: _Bool | None = None, align_to_window: _Bool | None = None) -> Tensor:
        """The short-time Fourier transform: that of overlapping frames of a signal, or of a batch of signals."""
    def storage_offset(self) -> _Int:
        """The offset of the first element in the memory that the tensor views, in elements."""
    @overload
    def stride(self) -> tuple[_Int, ...]:
        """The distance in memory, in elements, between neighbours along each dimension (or along one)."""
    @overload
    def stride(self, dim: _Int) -> _Int:
        """The distance in memory, in elements, between neighbours along each dimension (or along one)."""
    @overload
    def stride(self, dim: _Int | None = None) -> Any:
        """The distance in memory, in elements, between neighbours along each dimension (or along one)."""
    def sub(self, other: Any, *older: Any, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """Subtracts `other`, scaled by `alpha`, from `input`; the errors are those of `add`."""
    def sub_(self, other: Any, *older: Any, alpha: Any = 1) -> Tensor:
        """In-place version of `sub`: writes to the tensor's own memory."""
    def subtract(self, other: Any, *older: Any, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """Subtracts `other`, scaled by `alpha`, from `input`; the errors are those of `add`."""
    def subtract_(self, other: Any, *older: Any, alpha: Any = 1) -> Tensor:
        """In-place version of `sub`: writes to the tensor's own memory."""
    def sum(self, dim: _Int | Sequence[_Int] | None = None, keepdim: _Bool = False, *, dtype: Any = None, out: Tensor | None = None, **others: Any) -> Tensor:
        """The sum of all elements, or along `dim`; integers and booleans add up in int64."""
    def sum_to_size(self, *sizes: Any, size: Any = None) -> Tensor:
        """The sum over the dimensions that were expanded from `size` to the shape of `input`: the gradient of `expand`."""
    def svd(self, some: _Bool = True, compute_uv: _Bool = True) -> return_types.svd:
        """U, the singular values, and V, not its adjoint, of U diag(S) V^H: see `linalg.svd`."""
    def swapaxes(self, dim0: Any, dim1: Any = None) -> Tensor:
        """Swaps dimensions `dim0` and `dim1`; of one tuple, the dimensions in that order, as in NumPy."""
    def swapaxes_(self, dim0: Any, dim1: Any = None) -> Tensor:
        """In-place version of `swapaxes`: the tensor keeps its memory."""
    def swapdims(self, dim0: Any, dim1: Any = None) -> Tensor:
        """Swaps dimensions `dim0` and `dim1`; of one tuple, the dimensions in that order, as in NumPy."""
    def swapdims_(self, dim0: Any, dim1: Any = None) -> Tensor:
        """In-place version of `swapdims`: the tensor keeps its memory."""
    def symeig(self, *args: Any, **options: Any) -> Any:
        """Removed from PyTorch, as a call says: see `linalg.eigh`."""
    def t(self) -> Tensor:
        """The transpose of a matrix; tensors of fewer dimensions as they are."""
    def t_(self) -> Tensor:
        """In-place version of `t`: the tensor keeps its memory."""
    def take(self, index: Tensor) -> Tensor:
        """The elements at `index` of the flattened `input`."""
    def take_along_dim(self, indices: Tensor, dim: _Int | None = None) -> Tensor:
        """Elements of `input` at `indices` along `dim` (of the flattened input if None); the other sizes broadcast."""
    def tan(self) -> Tensor:
        """The tangent of x."""
    def tan_(self) -> Tensor:
        """The tangent of x."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent of x."""
    def tanh_(self) -> Tensor:
        """The hyperbolic tangent of x."""
    def tensor_split(self, indices_or_sections: _Int | Sequence[_Int] | Tensor | None = None, dim: _Int = 0, *, sections: _Int | None = None, indices: Sequence[_Int] | None = None) -> tuple[Tensor, ...]:
        """Splits along `dim` into views of pieces that begin at the given indices; of a number of sections as equal as they
        can be."""
    def tile(self, *counts: Any, dims: Any = None) -> Tensor:
        """Repeats the tensor along each dimension, as `repeat` does; missing leading counts are 1."""
    def to(self, *args: Any, device: Any = None, dtype: Any = None, non_blocking: _Bool = False, copy: _Bool = False, memory_format: Any = None, other: Any = None) -> Tensor:
        """Converts to another device, dtype, or both; the tensor itself when neither differs."""
    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """The tensor on a device, itself if it is there: `to` of the array API, where `stream` has to be None."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers (a number for a 0-dimensional tensor)."""
    def topk(self, k: _Int, dim: _Int = -1, largest: _Bool = True, sorted: _Bool = True) -> TopkResult:
        """The `k` largest (or smallest) elements along `dim`, sorted, and their indices."""
    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal."""
    def transpose(self, dim0: Any, dim1: Any = None) -> Tensor:
        """Swaps dimensions `dim0` and `dim1`; of one tuple, the dimensions in that order, as in NumPy."""
    def transpose_(self, dim0: Any, dim1: Any = None) -> Tensor:
        """In-place version of `transpose`: the tensor keeps its memory."""
    def triangular_solve(self, A: Tensor, upper: _Bool = True, transpose: _Bool = False, unitriangular: _Bool = False) -> return_types.triangular_solve:
        """Solves A @ X = input for X, with `transpose` A^T @ X = input; returns a copy of A too: see
        `linalg.solve_triangular`."""
    def tril(self, diagonal: _Int = 0) -> Tensor:
        """The lower triangles of matrices: zeros above the diagonal (the one `diagonal` to the right of the main one)."""
    def tril_(self, diagonal: _Int = 0) -> Tensor:
        """In-place version of `tril`: writes to the tensor's own memory."""
    def triu(self, diagonal: _Int = 0) -> Tensor:
        """The upper triangles of matrices: zeros below the diagonal (the one `diagonal` to the right of the main one)."""
    def triu_(self, diagonal: _Int = 0) -> Tensor:
        """In-place version of `triu`: writes to the tensor's own memory."""
    def true_divide(self, other: Any) -> Tensor:
        """Divides x by y element by element; the result is floating."""
    def true_divide_(self, other: Any) -> Tensor:
        """Divides x by y element by element; the result is floating."""
    def trunc(self) -> Tensor:
        """Truncates toward zero: x without its fraction."""
    def trunc_(self) -> Tensor:
        """Truncates toward zero: x without its fraction."""
    @overload
    def type(self) -> str:
        """PyTorch's legacy type name such as "torch.FloatTensor"; with a dtype or such a name, the tensor converted to it."""
    @overload
    def type(self, dtype: Any, non_blocking: _Bool = False, *, memory_format: Any = None) -> Tensor:
        """PyTorch's legacy type name such as "torch.FloatTensor"; with a dtype or such a name, the tensor converted to it."""
    @overload
    def type(self, dtype: Any = None, non_blocking: _Bool = False, *, memory_format: Any = None) -> Any:
        """PyTorch's legacy type name such as "torch.FloatTensor"; with a dtype or such a name, the tensor converted to it."""
    def type_as(self, other: Tensor) -> Tensor:
        """The tensor in the dtype of `other`."""
    def unbind(self, dim: _Int = 0) -> tuple[Tensor, ...]:
        """Unbinds a dimension: a tuple of the slices along `dim`, without that dimension."""
    def unflatten(self, dim: _Int, sizes: Sequence[_Int]) -> Tensor:
        """Splits dimension `dim` into several of the given sizes (one may be -1)."""
    def unfold(self, dimension: _Int, size: _Int, step: _Int) -> Tensor:
        """A view of all windows of `size` elements along a dimension, in a new last dimension."""
    def uniform_(self, from_: _Float = 0.0, to: _Float = 1.0, *, generator: Any = None) -> Tensor:
        """Fill with numbers uniformly distributed in [from_, to)."""
    @overload
    def unique(self, sorted: _Bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _Int | None = None) -> Tensor:
        """The unique elements, in rising order; or the unique slices along `dim`. The host waits for their number."""
    @overload
    def unique(self, sorted: _Bool = True, return_inverse: _Bool = False, return_counts: _Bool = False, dim: _Int | None = None) -> Any:
        """The unique elements, in rising order; or the unique slices along `dim`. The host waits for their number."""
    @overload
    def unique_consecutive(self, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _Int | None = None) -> Tensor:
        """The elements (or slices along `dim`) without those that are equal to the one before them."""
    @overload
    def unique_consecutive(self, return_inverse: _Bool = False, return_counts: _Bool = False, dim: _Int | None = None) -> Any:
        """The elements (or slices along `dim`) without those that are equal to the one before them."""
    def unsafe_chunk(self, chunks: _Int, dim: _Int = 0) -> tuple[Tensor, ...]:
        """`chunk` whose pieces are no views for autograd: do not change them."""
    def unsafe_split(self, split_size_or_sections: _Int | Sequence[_Int], dim: _Int = 0) -> tuple[Tensor, ...]:
        """`split` whose pieces are no views for autograd: do not change them."""
    def unsafe_split_with_sizes(self, split_sizes: Sequence[_Int], dim: _Int = 0) -> tuple[Tensor, ...]:
        """`split_with_sizes` whose pieces are no views for autograd: do not change them."""
    def unsqueeze(self, dim: _Int) -> Tensor:
        """Adds a new dimension of size 1 at `dim`."""
    def unsqueeze_(self, dim: _Int) -> Tensor:
        """In-place version of `unsqueeze`: the tensor keeps its memory."""
    def var(self, dim: Any = None, unbiased: _Bool | None = None, keepdim: _Bool = False, *, correction: _Float | None = None, out: Tensor | None = None, **others: Any) -> Tensor:
        """The variance of all elements, or along `dim`; the divisor is the count minus `correction` (1 by default)."""
    def vdot(self, other: Tensor) -> Tensor:
        """The dot product of two vectors, of which the first is conjugated."""
    def view(self, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
        """Views the same elements in another shape, sharing memory; one size may be -1. Or the same bits in another dtype."""
    def view_as(self, other: Tensor) -> Tensor:
        """The same elements in the shape of `other`, sharing memory."""
    def vsplit(self, indices_or_sections: _Int | Sequence[_Int]) -> tuple[Tensor, ...]:
        """`tensor_split` along the first dimension, of a matrix at least; a number of sections has to divide its size."""
    def where(self, condition: Tensor, other: Any) -> Tensor:
        """The tensor's elements where `condition` holds, else `other`'s."""
    def xlogy(self, other: Any) -> Tensor:
        """x * log(y), and 0 where x is 0, unless y is NaN."""
    def xlogy_(self, other: Any) -> Tensor:
        """x * log(y), and 0 where x is 0, unless y is NaN."""
    def zero_(self) -> Tensor:
        """Write zero to every element."""
    def __abs__(self) -> Tensor:
        """The absolute value of each element; of a complex number its magnitude."""
    def __add__(self, other: Any) -> Tensor:
        """x + y."""
    def __and__(self, other: Any) -> Tensor:
        """The bitwise AND: the bits that x and y both have."""
    def __array__(self, dtype: Any = None, copy: _Bool | None = None) -> np.ndarray: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """`tritensor.array_api`, the functions of the Python array API standard."""
    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: _Bool = False) -> Tensor:
        """Wraps NumPy's result for tensors as a tensor: `np.sin(x)`. As in PyTorch answers of yes and no become uint8."""
    def __bool__(self) -> _Bool: ...
    def __buffer__(self, flags: _Int) -> Any:
        """The CPU tensor's memory, which `memoryview(x)` asks for from Python 3.12 on; not of bfloat16."""
    def __bytes__(self) -> Any: ...
    def __complex__(self) -> complex: ...
    def __contains__(self, element: Any) -> _Bool: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """A tensor's memory on a CUDA device that is not simulated, and the stream to wait for, for other libraries."""
    def __deepcopy__(self, memo: dict[_Int, Any]) -> Tensor: ...
    def __div__(self, other: Any) -> Tensor:
        """Divides x by y element by element; the result is floating."""
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: _Bool | None = None) -> Any:
        """A DLPack capsule over the tensor's memory, which other libraries' `from_dlpack` ask for."""
    def __dlpack_device__(self) -> tuple[_Int, _Int]:
        """The kind and number of the tensor's device in DLPack: (1, 0) is the CPU, (2, n) `cuda:n`; none if simulated."""
    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        """Compares element by element: x == y."""
    def __float__(self) -> _Float: ...
    def __floordiv__(self, other: Any) -> Tensor:
        """Divides and rounds down: the largest integer that is not above x / y."""
    def __format__(self, spec: str) -> str: ...
    def __ge__(self, other: Any) -> Tensor:
        """Compares element by element: x >= y."""
    def __getitem__(self, key: Any) -> Tensor:
        """`x[key]`: a view for integers, slices, None and Ellipsis, a copy for tensors, masks, lists and arrays."""
    def __gt__(self, other: Any) -> Tensor:
        """Compares element by element: x > y."""
    def __hash__(self) -> _Int: ...
    def __iadd__(self, other: Any) -> Tensor:
        """x + y."""
    def __iand__(self, other: Any) -> Tensor:
        """The bitwise AND: the bits that x and y both have."""
    def __idiv__(self, other: Any) -> Tensor:
        """Divides x by y element by element; the result is floating."""
    def __ifloordiv__(self, other: Any) -> Tensor:
        """Divides and rounds down: the largest integer that is not above x / y."""
    def __ilshift__(self, other: Any) -> Tensor:
        """The bits of x, moved up by y places."""
    def __imod__(self, other: Any) -> Tensor:
        """The remainder of x divided by y, with the sign of y (Python's modulus)."""
    def __imul__(self, other: Any) -> Tensor:
        """Multiplies x and y element by element."""
    def __index__(self) -> _Int: ...
    def __int__(self) -> _Int: ...
    def __invert__(self) -> Tensor:
        """The bitwise complement; for booleans the logical one."""
    def __ior__(self, other: Any) -> Tensor:
        """The bitwise OR: the bits that x or y has."""
    def __ipow__(self, other: Any) -> Tensor:
        """Raises x to the power y; integers stay integers, and a negative power of one is 0 (of 1 and -1: 1 or -1)."""
    def __irshift__(self, other: Any) -> Tensor:
        """The bits of x, moved down by y places; the sign stays."""
    def __isub__(self, other: Any) -> Tensor:
        """x - y."""
    def __iter__(self) -> Iterator[Any]: ...
    def __itruediv__(self, other: Any) -> Tensor:
        """Divides x by y element by element; the result is floating."""
    def __ixor__(self, other: Any) -> Tensor:
        """The bitwise XOR: the bits that one of x and y has."""
    def __le__(self, other: Any) -> Tensor:
        """Compares element by element: x <= y."""
    def __len__(self) -> _Int: ...
    def __lshift__(self, other: Any) -> Tensor:
        """The bits of x, moved up by y places."""
    def __lt__(self, other: Any) -> Tensor:
        """Compares element by element: x < y."""
    def __matmul__(self, other: Any) -> Tensor: ...
    def __mod__(self, other: Any) -> Tensor:
        """The remainder of x divided by y, with the sign of y (Python's modulus)."""
    def __mul__(self, other: Any) -> Tensor:
        """Multiplies x and y element by element."""
    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        """Compares element by element: x != y."""
    def __neg__(self) -> Tensor:
        """The negative of each element: -x."""
    def __or__(self, other: Any) -> Tensor:
        """The bitwise OR: the bits that x or y has."""
    def __pos__(self) -> Tensor:
        """input itself."""
    def __pow__(self, other: Any) -> Tensor:
        """Raises x to the power y; integers stay integers, and a negative power of one is 0 (of 1 and -1: 1 or -1)."""
    def __radd__(self, other: Any) -> Tensor:
        """x + y."""
    def __rand__(self, other: Any) -> Tensor:
        """The bitwise AND: the bits that x and y both have."""
    def __rdiv__(self, other: Any) -> Tensor:
        """other / self, as Python 2 called it."""
    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]: ...
    def __release_buffer__(self, buffer: Any) -> None: ...
    def __repr__(self) -> str: ...
    def __rfloordiv__(self, other: Any) -> Tensor:
        """Divides and rounds down: the largest integer that is not above x / y."""
    def __rlshift__(self, other: Any) -> Tensor:
        """The bits of x, moved up by y places."""
    def __rmatmul__(self, other: Any) -> Tensor: ...
    def __rmod__(self, other: Any) -> Tensor:
        """The remainder of x divided by y, with the sign of y (Python's modulus)."""
    def __rmul__(self, other: Any) -> Tensor:
        """Multiplies x and y element by element."""
    def __ror__(self, other: Any) -> Tensor:
        """The bitwise OR: the bits that x or y has."""
    def __rpow__(self, other: Any) -> Tensor:
        """Raises x to the power y; integers stay integers, and a negative power of one is 0 (of 1 and -1: 1 or -1)."""
    def __rrshift__(self, other: Any) -> Tensor:
        """The bits of x, moved down by y places; the sign stays."""
    def __rshift__(self, other: Any) -> Tensor:
        """The bits of x, moved down by y places; the sign stays."""
    def __rsub__(self, other: Any) -> Tensor:
        """x - y."""
    def __rtruediv__(self, other: Any) -> Tensor:
        """other / self: the reciprocal times the number, with PyTorch's roundings; both can be changed in place later."""
    def __rxor__(self, other: Any) -> Tensor:
        """The bitwise XOR: the bits that one of x and y has."""
    def __setitem__(self, key: Any, value: Any) -> None:
        """`x[key] = value`, broadcast."""
    def __sub__(self, other: Any) -> Tensor:
        """x - y."""
    def __truediv__(self, other: Any) -> Tensor:
        """Divides x by y element by element; the result is floating."""
    def __xor__(self, other: Any) -> Tensor:
        """The bitwise XOR: the bits that one of x and y has."""
    def _chain(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """The view operators and their arguments that lead from the root to this tensor."""
    def _count_change(self) -> None:
        """Count a change in place: saved values of all tensors on the storage are stale now."""
    def _edge(self) -> Any:
        """The edge for the tensor's gradient: its node, a `Slot` if that has several outputs, or the leaf itself."""
    def _forget(self) -> None:
        """Drop the facts stored on the tensor and what it is a view of: the elements have changed or may have."""
    def _host_array(self) -> np.ndarray:
        """The CPU tensor's array, after waiting for an unfinished copy."""
    def _recall(self, fact: str) -> Any:
        """The fact that `_remember` stored for the present elements, or None."""
    def _refresh(self, origin: tuple[Tensor, Any, tuple[Any, ...], _Int]) -> None:
        """Make a new node for a view whose memory has been changed in place since its node was made."""
    def _remember(self, fact: str, value: Any) -> None:
        """Store a fact about the elements on the tensor, until they change."""
    def _replace_node(self, node: Any) -> None:
        """Take the node of a change in place, of which `retain_grad` keeps the gradient from now on."""
    def _root(self) -> Tensor:
        """The tensor that this one is a view of, not a view itself; or this one."""
    def _to_host(self) -> np.ndarray:
        """The elements in host memory, copied there (with a wait) from a CUDA device."""
    @property
    def _version(self) -> _Int:
        """The number of times that the storage was changed in place."""
    def _way(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """The shortest chain known of view operators that leads from the root to this tensor."""
    def _without_node(self) -> Tensor:
        """`detach` that keeps the tangents of forward mode."""
