"""The type stub of the public functions, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tensor import Tensor
from ..kernels.matmul.precision import get_float32_matmul_precision as get_float32_matmul_precision
from ..kernels.matmul.precision import set_float32_matmul_precision as set_float32_matmul_precision
from .activations import dropout as dropout
from .activations import elu as elu
from .activations import gelu as gelu
from .activations import hardtanh as hardtanh
from .activations import leaky_relu as leaky_relu
from .activations import logsigmoid as logsigmoid
from .activations import mish as mish
from .activations import relu as relu
from .activations import relu6 as relu6
from .activations import silu as silu
from .activations import softplus as softplus
from .activations import softsign as softsign
from .activations import tanhshrink as tanhshrink
from .attention import cosine_similarity as cosine_similarity
from .attention import normalize as normalize
from .attention import scaled_dot_product_attention as scaled_dot_product_attention
from .filling import broadcast_shapes as broadcast_shapes
from .filling import meshgrid as meshgrid
from .filling import nansum as nansum
from .filling import pad as pad
from .indexing import gather as gather
from .indexing import index_add as index_add
from .indexing import index_copy as index_copy
from .indexing import index_fill as index_fill
from .indexing import index_put as index_put
from .indexing import index_select as index_select
from .indexing import masked_fill as masked_fill
from .indexing import masked_select as masked_select
from .indexing import scatter as scatter
from .indexing import scatter_add as scatter_add
from .indexing import take as take
from .indexing import take_along_dim as take_along_dim
from .joining import cat as cat
from .joining import cat as concat
from .joining import cat as concatenate
from .joining import column_stack as column_stack
from .joining import dstack as dstack
from .joining import hstack as hstack
from .joining import stack as stack
from .joining import vstack as vstack
from .linear_algebra import addmm as addmm
from .linear_algebra import bmm as bmm
from .linear_algebra import dot as dot
from .linear_algebra import inner as inner
from .linear_algebra import linear as linear
from .linear_algebra import matmul as matmul
from .linear_algebra import mm as mm
from .linear_algebra import mv as mv
from .linear_algebra import outer as outer
from .lookup import embedding as embedding
from .lookup import one_hot as one_hot
from .losses import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .losses import cross_entropy as cross_entropy
from .losses import l1_loss as l1_loss
from .losses import mse_loss as mse_loss
from .losses import nll_loss as nll_loss
from .normalization import layer_norm as layer_norm
from .normalization import log_softmax as log_softmax
from .normalization import rms_norm as rms_norm
from .normalization import softmax as softmax
from .pointwise import add as add
from .pointwise import allclose as allclose
from .pointwise import clamp as clamp
from .pointwise import clamp as clip
from .pointwise import div as div
from .pointwise import div as divide
from .pointwise import equal as equal
from .pointwise import isclose as isclose
from .pointwise import nan_to_num as nan_to_num
from .pointwise import positive as positive
from .pointwise import round as round
from .pointwise import sub as sub
from .pointwise import sub as subtract
from .pointwise import where as where
from .properties import can_cast as can_cast
from .properties import clone as clone
from .properties import detach as detach
from .properties import is_complex as is_complex
from .properties import is_floating_point as is_floating_point
from .properties import numel as numel
from .properties import result_type as result_type
from .rearranging import flip as flip
from .rearranging import fliplr as fliplr
from .rearranging import flipud as flipud
from .rearranging import repeat_interleave as repeat_interleave
from .rearranging import roll as roll
from .rearranging import tile as tile
from .rearranging import tril as tril
from .rearranging import triu as triu
from .reductions import all as all
from .reductions import aminmax as aminmax
from .reductions import any as any
from .reductions import count_nonzero as count_nonzero
from .reductions import cumsum as cumsum
from .reductions import logsumexp as logsumexp
from .reductions import max as max
from .reductions import min as min
from .reductions import norm as norm
from .reductions import std as std
from .reductions import std_mean as std_mean
from .reductions import sum_to_size as sum_to_size
from .reductions import var as var
from .reductions import var_mean as var_mean
from .search import argsort as argsort
from .search import argwhere as argwhere
from .search import nonzero as nonzero
from .search import sort as sort
from .search import topk as topk
from .subscripts import einsum as einsum

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addcdiv",
    "addcmul",
    "addmm",
    "all",
    "allclose",
    "amax",
    "amin",
    "aminmax",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "binary_cross_entropy_with_logits",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bmm",
    "broadcast_shapes",
    "can_cast",
    "cat",
    "ceil",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "column_stack",
    "concat",
    "concatenate",
    "conj",
    "cos",
    "cosh",
    "cosine_similarity",
    "count_nonzero",
    "cross_entropy",
    "cumsum",
    "detach",
    "div",
    "divide",
    "dot",
    "dropout",
    "dstack",
    "einsum",
    "elu",
    "embedding",
    "eq",
    "equal",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "flip",
    "fliplr",
    "flipud",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "gather",
    "ge",
    "gelu",
    "get_float32_matmul_precision",
    "greater",
    "greater_equal",
    "gt",
    "hardtanh",
    "hstack",
    "hypot",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "inner",
    "is_complex",
    "is_floating_point",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "l1_loss",
    "layer_norm",
    "le",
    "leaky_relu",
    "lerp",
    "less",
    "less_equal",
    "linear",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsigmoid",
    "logsumexp",
    "lt",
    "masked_fill",
    "masked_select",
    "matmul",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "mish",
    "mm",
    "mse_loss",
    "mul",
    "multiply",
    "mv",
    "nan_to_num",
    "nansum",
    "ne",
    "neg",
    "negative",
    "nll_loss",
    "nonzero",
    "norm",
    "normalize",
    "not_equal",
    "numel",
    "one_hot",
    "outer",
    "pad",
    "positive",
    "pow",
    "prod",
    "reciprocal",
    "relu",
    "relu6",
    "remainder",
    "repeat_interleave",
    "result_type",
    "rms_norm",
    "roll",
    "round",
    "rsqrt",
    "scaled_dot_product_attention",
    "scatter",
    "scatter_add",
    "set_float32_matmul_precision",
    "sgn",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "softmax",
    "softplus",
    "softsign",
    "sort",
    "sqrt",
    "square",
    "stack",
    "std",
    "std_mean",
    "sub",
    "subtract",
    "sum",
    "sum_to_size",
    "take",
    "take_along_dim",
    "tan",
    "tanh",
    "tanhshrink",
    "tile",
    "topk",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "var",
    "var_mean",
    "vstack",
    "where",
]

def abs(input: Tensor) -> Tensor:
    """The magnitude of x."""
def absolute(input: Tensor) -> Tensor:
    """The magnitude of x."""
def acos(input: Tensor) -> Tensor:
    """The angle in [0, pi] whose cosine is x."""
def acosh(input: Tensor) -> Tensor:
    """The number at or above 0 whose hyperbolic cosine is x."""
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """x + value * tensor1 / tensor2."""
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """x + value * tensor1 * tensor2."""
def amax(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, **others: Any) -> Tensor:
    """The largest of all elements, or along `dim`; the gradient is divided evenly among equal elements."""
def amin(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, **others: Any) -> Tensor:
    """The smallest of all elements, or along `dim`; the gradient is divided evenly among equal elements."""
def arccos(input: Tensor) -> Tensor:
    """The angle in [0, pi] whose cosine is x."""
def arccosh(input: Tensor) -> Tensor:
    """The number at or above 0 whose hyperbolic cosine is x."""
def arcsin(input: Tensor) -> Tensor:
    """The angle in [-pi/2, pi/2] whose sine is x."""
def arcsinh(input: Tensor) -> Tensor:
    """The number whose hyperbolic sine is x."""
def arctan(input: Tensor) -> Tensor:
    """The angle in [-pi/2, pi/2] whose tangent is x."""
def arctan2(input: Any, other: Any) -> Tensor:
    """The angle of the point (y, x), where the first operand is the height."""
def arctanh(input: Tensor) -> Tensor:
    """The number whose hyperbolic tangent is x."""
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, **others: Any) -> Tensor:
    """The index of the largest element (counted through all of them, or along `dim`); the first of equals."""
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, **others: Any) -> Tensor:
    """The index of the smallest element (counted through all of them, or along `dim`); the first of equals."""
def asin(input: Tensor) -> Tensor:
    """The angle in [-pi/2, pi/2] whose sine is x."""
def asinh(input: Tensor) -> Tensor:
    """The number whose hyperbolic sine is x."""
def atan(input: Tensor) -> Tensor:
    """The angle in [-pi/2, pi/2] whose tangent is x."""
def atan2(input: Any, other: Any) -> Tensor:
    """The angle of the point (y, x), where the first operand is the height."""
def atanh(input: Tensor) -> Tensor:
    """The number whose hyperbolic tangent is x."""
def bitwise_and(input: Any, other: Any) -> Tensor:
    """The bits that x and y both have."""
def bitwise_left_shift(input: Any, other: Any) -> Tensor:
    """The bits of x, moved up by y places."""
def bitwise_not(input: Tensor) -> Tensor:
    """The bits that x does not have; for booleans, not x."""
def bitwise_or(input: Any, other: Any) -> Tensor:
    """The bits that x or y has."""
def bitwise_right_shift(input: Any, other: Any) -> Tensor:
    """The bits of x, moved down by y places; the sign stays."""
def bitwise_xor(input: Any, other: Any) -> Tensor:
    """The bits that one of x and y has."""
def ceil(input: Tensor) -> Tensor:
    """The smallest integer that is not below x."""
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """x, and `max` where x is above it."""
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """x, and `min` where x is below it."""
def conj(input: Tensor) -> Tensor:
    """x with its imaginary part negated; real numbers as they are."""
def cos(input: Tensor) -> Tensor:
    """The cosine of x."""
def cosh(input: Tensor) -> Tensor:
    """The hyperbolic cosine of x."""
def eq(input: Any, other: Any) -> Tensor:
    """x == y."""
def erf(input: Tensor) -> Tensor:
    """The error function: 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x."""
def erfc(input: Tensor) -> Tensor:
    """1 - erf(x), exact where erf(x) is close to 1."""
def exp(input: Tensor) -> Tensor:
    """e to the power x."""
def exp2(input: Tensor) -> Tensor:
    """2 to the power x."""
def expm1(input: Tensor) -> Tensor:
    """exp(x) - 1, exact near 0."""
def fix(input: Tensor) -> Tensor:
    """x without its fraction."""
def floor(input: Tensor) -> Tensor:
    """The largest integer that is not above x."""
def floor_divide(input: Any, other: Any) -> Tensor:
    """The largest integer that is not above x / y."""
def fmax(input: Any, other: Any) -> Tensor:
    """The larger of x and y; the other one where one is NaN."""
def fmin(input: Any, other: Any) -> Tensor:
    """The smaller of x and y; the other one where one is NaN."""
def fmod(input: Any, other: Any) -> Tensor:
    """What x leaves when divided by y, with the sign of x."""
def frac(input: Tensor) -> Tensor:
    """The fraction of x, with its sign."""
def ge(input: Any, other: Any) -> Tensor:
    """x >= y."""
def greater(input: Any, other: Any) -> Tensor:
    """x > y."""
def greater_equal(input: Any, other: Any) -> Tensor:
    """x >= y."""
def gt(input: Any, other: Any) -> Tensor:
    """x > y."""
def hypot(input: Any, other: Any) -> Tensor:
    """sqrt(x * x + y * y), without overflow."""
def isfinite(input: Tensor) -> Tensor:
    """Whether x is neither infinite nor NaN."""
def isinf(input: Tensor) -> Tensor:
    """Whether x is infinite."""
def isnan(input: Tensor) -> Tensor:
    """Whether x is NaN."""
def le(input: Any, other: Any) -> Tensor:
    """x <= y."""
def lerp(input: Tensor, end: Any, weight: Any) -> Tensor:
    """x + weight * (end - x), computed from the nearer end so that weight 1 gives `end` itself."""
def less(input: Any, other: Any) -> Tensor:
    """x < y."""
def less_equal(input: Any, other: Any) -> Tensor:
    """x <= y."""
def log(input: Tensor) -> Tensor:
    """The natural logarithm of x."""
def log10(input: Tensor) -> Tensor:
    """The logarithm of x to base 10."""
def log1p(input: Tensor) -> Tensor:
    """log(1 + x), exact near 0."""
def log2(input: Tensor) -> Tensor:
    """The logarithm of x to base 2."""
def logaddexp(input: Any, other: Any) -> Tensor:
    """log(exp(x) + exp(y)), without overflow."""
def logical_and(input: Any, other: Any) -> Tensor:
    """Whether x and y both differ from 0."""
def logical_not(input: Tensor) -> Tensor:
    """Whether x is 0."""
def logical_or(input: Any, other: Any) -> Tensor:
    """Whether x or y differs from 0."""
def logical_xor(input: Any, other: Any) -> Tensor:
    """Whether one of x and y differs from 0, and one does not."""
def lt(input: Any, other: Any) -> Tensor:
    """x < y."""
def maximum(input: Any, other: Any) -> Tensor:
    """The larger of x and y; NaN if either is."""
def mean(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None, **others: Any) -> Tensor:
    """The mean of all elements, or along `dim`."""
def minimum(input: Any, other: Any) -> Tensor:
    """The smaller of x and y; NaN if either is."""
def mul(input: Any, other: Any) -> Tensor:
    """x * y."""
def multiply(input: Any, other: Any) -> Tensor:
    """x * y."""
def ne(input: Any, other: Any) -> Tensor:
    """x != y."""
def neg(input: Tensor) -> Tensor:
    """-x."""
def negative(input: Tensor) -> Tensor:
    """-x."""
def not_equal(input: Any, other: Any) -> Tensor:
    """x != y."""
def pow(input: Any, other: Any) -> Tensor:
    """x to the power y; integers stay integers, and a negative power of one is 0 (of 1 and -1: 1 or -1)."""
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None, **others: Any) -> Tensor:
    """The product of all elements, or along one dimension; integers and booleans multiply in int64."""
def reciprocal(input: Tensor) -> Tensor:
    """1 / x."""
def remainder(input: Any, other: Any) -> Tensor:
    """What x leaves when divided by y, with the sign of y."""
def rsqrt(input: Tensor) -> Tensor:
    """1 / sqrt(x)."""
def sgn(input: Tensor) -> Tensor:
    """x / |x|, and 0 where x is 0; for real numbers -1, 0 or 1, and 0 for NaN."""
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
def sign(input: Tensor) -> Tensor:
    """x / |x|, and 0 where x is 0; for real numbers -1, 0 or 1, and 0 for NaN."""
def sin(input: Tensor) -> Tensor:
    """The sine of x."""
def sinh(input: Tensor) -> Tensor:
    """The hyperbolic sine of x."""
def sqrt(input: Tensor) -> Tensor:
    """The square root of x."""
def square(input: Tensor) -> Tensor:
    """x * x."""
def sum(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None, **others: Any) -> Tensor:
    """The sum of all elements, or along `dim`; integers and booleans add up in int64."""
def tan(input: Tensor) -> Tensor:
    """The tangent of x."""
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent of x."""
def true_divide(input: Any, other: Any) -> Tensor:
    """x / y, always floating."""
def trunc(input: Tensor) -> Tensor:
    """x without its fraction."""
