"""The type stub of the public functions, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from ..tensors import Tensor
from ..tensors.results import MaxResult, MedianResult, MinResult, NanmedianResult
from ..types import dtypes
from ..kernels.matmul.precision import get_float32_matmul_precision as get_float32_matmul_precision
from ..kernels.matmul.precision import set_float32_matmul_precision as set_float32_matmul_precision
from .attention.attention import cosine_similarity as cosine_similarity
from .attention.attention import normalize as normalize
from .attention.attention import scaled_dot_product_attention as scaled_dot_product_attention
from .attention.multi_head import multi_head_attention_forward as multi_head_attention_forward
from .creation.predicates import can_cast as can_cast
from .creation.predicates import clone as clone
from .creation.predicates import detach as detach
from .creation.predicates import is_complex as is_complex
from .creation.predicates import is_floating_point as is_floating_point
from .creation.predicates import numel as numel
from .creation.predicates import result_type as result_type
from .elementwise.activations import celu as celu
from .elementwise.activations import dropout as dropout
from .elementwise.activations import elu as elu
from .elementwise.activations import glu as glu
from .elementwise.activations import hardsigmoid as hardsigmoid
from .elementwise.activations import hardswish as hardswish
from .elementwise.activations import hardtanh as hardtanh
from .elementwise.activations import leaky_relu as leaky_relu
from .elementwise.activations import mish as mish
from .elementwise.activations import prelu as prelu
from .elementwise.activations import relu as relu
from .elementwise.activations import relu6 as relu6
from .elementwise.activations import rrelu as rrelu
from .elementwise.activations import selu as selu
from .elementwise.activations import silu as silu
from .elementwise.activations import softsign as softsign
from .elementwise.activations import tanhshrink as tanhshrink
from .elementwise.complex_numbers import isreal as isreal
from .elementwise.differences import cumulative_trapezoid as cumulative_trapezoid
from .elementwise.differences import gradient as gradient
from .elementwise.differences import trapezoid as trapezoid
from .elementwise.differences import trapezoid as trapz
from .elementwise.differences import vander as vander
from .elementwise.pointwise import add as add
from .elementwise.pointwise import allclose as allclose
from .elementwise.pointwise import conj as conj
from .elementwise.pointwise import div as div
from .elementwise.pointwise import div as divide
from .elementwise.pointwise import equal as equal
from .elementwise.pointwise import isclose as isclose
from .elementwise.pointwise import positive as positive
from .elementwise.pointwise import sub as sub
from .elementwise.pointwise import sub as subtract
from .indexing.bins import bincount as bincount
from .indexing.bins import histogramdd as histogramdd
from .indexing.indexing import index_fill as index_fill
from .indexing.indexing import index_put as index_put
from .indexing.indexing import index_put_ as index_put_
from .indexing.indexing import masked_fill as masked_fill
from .indexing.lookup import embedding as embedding
from .indexing.lookup import embedding_bag as embedding_bag
from .indexing.lookup import one_hot as one_hot
from .indexing.scattering import _unsafe_masked_index as _unsafe_masked_index
from .indexing.scattering import _unsafe_masked_index_put_accumulate as _unsafe_masked_index_put_accumulate
from .indexing.scattering import masked_scatter as masked_scatter
from .indexing.scattering import put as put
from .indexing.search import argsort as argsort
from .indexing.search import argwhere as argwhere
from .indexing.segment_reduction import segment_reduce as _segment_reduce
from .indexing.segment_reduction import segment_reduce as segment_reduce
from .random.dropouts import alpha_dropout as alpha_dropout
from .random.dropouts import dropout1d as dropout1d
from .random.dropouts import dropout2d as dropout2d
from .random.dropouts import dropout3d as dropout3d
from .random.dropouts import feature_alpha_dropout as feature_alpha_dropout
from .reduction.reductions import count_nonzero as count_nonzero
from .reduction.reductions import std as std
from .reduction.reductions import std_mean as std_mean
from .reduction.reductions import sum_to_size as sum_to_size
from .reduction.reductions import var as var
from .reduction.reductions import var_mean as var_mean
from .reduction.statistics import corrcoef as corrcoef
from .reduction.statistics import cov as cov
from .rowwise.channel_normalization import batch_norm as batch_norm
from .rowwise.channel_normalization import group_norm as group_norm
from .rowwise.channel_normalization import instance_norm as instance_norm
from .rowwise.channel_normalization import local_response_norm as local_response_norm
from .rowwise.chunked_cross_entropy import linear_cross_entropy as linear_cross_entropy
from .rowwise.ctc import ctc_loss as ctc_loss
from .rowwise.elementwise_losses import binary_cross_entropy as binary_cross_entropy
from .rowwise.elementwise_losses import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .rowwise.elementwise_losses import gaussian_nll_loss as gaussian_nll_loss
from .rowwise.elementwise_losses import huber_loss as huber_loss
from .rowwise.elementwise_losses import kl_div as kl_div
from .rowwise.elementwise_losses import l1_loss as l1_loss
from .rowwise.elementwise_losses import mse_loss as mse_loss
from .rowwise.elementwise_losses import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from .rowwise.elementwise_losses import poisson_nll_loss as poisson_nll_loss
from .rowwise.elementwise_losses import smooth_l1_loss as smooth_l1_loss
from .rowwise.elementwise_losses import soft_margin_loss as soft_margin_loss
from .rowwise.losses import cross_entropy as cross_entropy
from .rowwise.losses import nll_loss as nll_loss
from .rowwise.margin_losses import cosine_embedding_loss as cosine_embedding_loss
from .rowwise.margin_losses import hinge_embedding_loss as hinge_embedding_loss
from .rowwise.margin_losses import margin_ranking_loss as margin_ranking_loss
from .rowwise.margin_losses import multi_margin_loss as multi_margin_loss
from .rowwise.margin_losses import multilabel_margin_loss as multilabel_margin_loss
from .rowwise.margin_losses import triplet_margin_loss as triplet_margin_loss
from .rowwise.margin_losses import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from .rowwise.normalization import gumbel_softmax as gumbel_softmax
from .rowwise.normalization import layer_norm as layer_norm
from .rowwise.normalization import log_softmax as log_softmax
from .rowwise.normalization import rms_norm as rms_norm
from .rowwise.normalization import softmax as softmax
from .rowwise.normalization import softmin as softmin
from .views.diagonals import block_diag as block_diag
from .views.diagonals import diag_embed as diag_embed
from .views.diagonals import diagflat as diagflat
from .views.diagonals import diagonal as diagonal
from .views.diagonals import diagonal_scatter as diagonal_scatter
from .views.joining import cartesian_prod as cartesian_prod
from .views.joining import cat as cat
from .views.joining import cat as concat
from .views.joining import cat as concatenate
from .views.joining import combinations as combinations
from .views.parts import as_strided as as_strided
from .views.parts import as_strided_scatter as as_strided_scatter
from .views.parts import select_scatter as select_scatter
from .views.parts import split_with_sizes as split_with_sizes
from .views.parts import tensor_split as tensor_split
from .views.rearranging import flip as flip
from .views.rearranging import fliplr as fliplr
from .views.rearranging import flipud as flipud
from .views.rearranging import ravel as ravel
from .views.rearranging import repeat_interleave as repeat_interleave
from .views.rearranging import roll as roll
from .views.rearranging import rot90 as rot90
from .views.rearranging import tile as tile
from .views.rearranging import unravel_index as unravel_index
from .window.filling import broadcast_shapes as broadcast_shapes
from .window.filling import meshgrid as meshgrid
from .window.filling import pad as pad
from .window.folding import fold as fold
from .window.folding import unfold as unfold
from .window.grid_sampling import affine_grid as affine_grid
from .window.grid_sampling import grid_sample as grid_sample
from .window.native import conv_tbc as conv_tbc
from .window.resizing import interpolate as interpolate
from .window.resizing import upsample as upsample
from .window.resizing import upsample_bilinear as upsample_bilinear
from .window.resizing import upsample_nearest as upsample_nearest
from .window.shuffling import channel_shuffle as channel_shuffle
from .window.shuffling import channel_shuffle as native_channel_shuffle
from .window.shuffling import pixel_shuffle as pixel_shuffle
from .window.shuffling import pixel_unshuffle as pixel_unshuffle
from tritensor.functional.matmul.distances import bilinear as bilinear
from tritensor.functional.matmul.distances import cdist as cdist
from tritensor.functional.matmul.distances import dist as dist
from tritensor.functional.matmul.distances import pairwise_distance as pairwise_distance
from tritensor.functional.matmul.distances import pdist as pdist
from tritensor.functional.matmul.linear_algebra import bmm as bmm
from tritensor.functional.matmul.linear_algebra import matmul as matmul
from tritensor.functional.matmul.linear_algebra import mm as mm
from tritensor.functional.matmul.products import chain_matmul as chain_matmul
from tritensor.functional.matmul.products import trace as trace
from tritensor.functional.matmul.subscripts import einsum as einsum
from tritensor.tensors.results import AminmaxResult
from tritensor.tensors.results import CummaxResult
from tritensor.tensors.results import CumminResult
from tritensor.tensors.results import FrexpResult
from tritensor.tensors.results import HistogramResult
from tritensor.tensors.results import KthvalueResult
from tritensor.tensors.results import ModeResult
from tritensor.tensors.results import SortResult
from tritensor.tensors.results import TopkResult

__all__ = [
    "_segment_reduce",
    "_unsafe_masked_index",
    "_unsafe_masked_index_put_accumulate",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "affine_grid",
    "all",
    "allclose",
    "alpha_dropout",
    "amax",
    "amin",
    "aminmax",
    "angle",
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
    "as_strided",
    "as_strided_scatter",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "baddbmm",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "bincount",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "block_diag",
    "bmm",
    "broadcast_shapes",
    "bucketize",
    "can_cast",
    "cartesian_prod",
    "cat",
    "cdist",
    "ceil",
    "celu",
    "celu_",
    "chain_matmul",
    "channel_shuffle",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "column_stack",
    "combinations",
    "concat",
    "concatenate",
    "conj",
    "conj_physical",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "copysign",
    "corrcoef",
    "cos",
    "cosh",
    "cosine_embedding_loss",
    "cosine_similarity",
    "count_nonzero",
    "cov",
    "cross",
    "cross_entropy",
    "ctc_loss",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "deg2rad",
    "detach",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "diff",
    "digamma",
    "dist",
    "div",
    "divide",
    "dot",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "dsplit",
    "dstack",
    "einsum",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "feature_alpha_dropout",
    "fix",
    "flip",
    "fliplr",
    "flipud",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "fold",
    "frac",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "frexp",
    "gather",
    "gaussian_nll_loss",
    "gcd",
    "ge",
    "gelu",
    "ger",
    "get_float32_matmul_precision",
    "glu",
    "gradient",
    "greater",
    "greater_equal",
    "grid_sample",
    "group_norm",
    "gt",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "heaviside",
    "hinge_embedding_loss",
    "histc",
    "histogram",
    "histogramdd",
    "hsplit",
    "hstack",
    "huber_loss",
    "hypot",
    "i0",
    "igamma",
    "igammac",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_put_",
    "index_reduce",
    "index_select",
    "inner",
    "instance_norm",
    "interpolate",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_neg",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "kl_div",
    "kron",
    "kthvalue",
    "l1_loss",
    "layer_norm",
    "lcm",
    "ldexp",
    "le",
    "leaky_relu",
    "leaky_relu_",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linear",
    "linear_cross_entropy",
    "local_response_norm",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logsigmoid",
    "logsumexp",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "lt",
    "margin_ranking_loss",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "max",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "mish",
    "mm",
    "mode",
    "mse_loss",
    "msort",
    "mul",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "multiply",
    "mv",
    "mvlgamma",
    "nan_to_num",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "native_channel_shuffle",
    "ne",
    "neg",
    "negative",
    "nextafter",
    "nll_loss",
    "nonzero",
    "nonzero_static",
    "norm",
    "normalize",
    "not_equal",
    "numel",
    "one_hot",
    "outer",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "polygamma",
    "positive",
    "pow",
    "prelu",
    "prod",
    "put",
    "quantile",
    "rad2deg",
    "ravel",
    "reciprocal",
    "relu",
    "relu6",
    "relu_",
    "remainder",
    "renorm",
    "repeat_interleave",
    "resolve_conj",
    "resolve_neg",
    "result_type",
    "rms_norm",
    "roll",
    "rot90",
    "round",
    "row_stack",
    "rrelu",
    "rrelu_",
    "rsqrt",
    "scaled_dot_product_attention",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "segment_reduce",
    "select_scatter",
    "selu",
    "selu_",
    "set_float32_matmul_precision",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "slice_scatter",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "sort",
    "split_with_sizes",
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
    "tensor_split",
    "tensordot",
    "threshold",
    "threshold_",
    "tile",
    "topk",
    "trace",
    "trapezoid",
    "trapz",
    "tril",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "triu",
    "true_divide",
    "trunc",
    "unfold",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
    "vander",
    "var",
    "var_mean",
    "vdot",
    "vsplit",
    "vstack",
    "where",
    "xlogy",
]

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value of each element; of a complex number its magnitude."""
def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value of each element; of a complex number its magnitude."""
def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The arccosine (inverse cosine) of x, in [0, pi]."""
def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine of x, which is not negative."""
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Applies 1-d adaptive average pooling: the averages of `output_size` windows, which cover the last 1
    dimensions evenly."""
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Applies 2-d adaptive average pooling: the averages of `output_size` windows, which cover the last 2
    dimensions evenly."""
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Applies 3-d adaptive average pooling: the averages of `output_size` windows, which cover the last 3
    dimensions evenly."""
@overload
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: Literal[False] = False) -> Tensor:
    """Applies 1-d adaptive max pooling: the largest elements of `output_size` windows, which cover the last
    1 dimensions evenly."""
@overload
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Applies 1-d adaptive max pooling: the largest elements of `output_size` windows, which cover the last
    1 dimensions evenly."""
def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """`nn.functional.adaptive_max_pool1d` with the places of the elements."""
@overload
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: Literal[False] = False) -> Tensor:
    """Applies 2-d adaptive max pooling: the largest elements of `output_size` windows, which cover the last
    2 dimensions evenly."""
@overload
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Applies 2-d adaptive max pooling: the largest elements of `output_size` windows, which cover the last
    2 dimensions evenly."""
def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """`nn.functional.adaptive_max_pool2d` with the places of the elements."""
@overload
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: Literal[False] = False) -> Tensor:
    """Applies 3-d adaptive max pooling: the largest elements of `output_size` windows, which cover the last
    3 dimensions evenly."""
@overload
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Applies 3-d adaptive max pooling: the largest elements of `output_size` windows, which cover the last
    3 dimensions evenly."""
def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """`nn.functional.adaptive_max_pool3d` with the places of the elements."""
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (the sum of batch1[k] @ batch2[k]); a beta of 0 ignores the input."""
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """x + value * tensor1 / tensor2."""
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """x + value * tensor1 * tensor2."""
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2), where `input` broadcasts to the product's shape."""
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (mat @ vec); a beta of 0 ignores the input."""
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2); a beta of 0 ignores the input. Dtypes are promoted."""
def all(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None, **others: Any) -> Tensor:
    """Tests if all elements are not zero, of all or along `dim`; along no dimension, of each by itself."""
def amax(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None, **others: Any) -> Tensor:
    """The largest of all elements, or along `dim`; the gradient is divided evenly among equal elements."""
def amin(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None, **others: Any) -> Tensor:
    """The smallest of all elements, or along `dim`; the gradient is divided evenly among equal elements."""
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None) -> AminmaxResult:
    """The smallest and the largest element, of all or along `dim`."""
def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of a complex number, in (-pi, pi]; of a real one pi where it is negative, else 0."""
def any(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None, **others: Any) -> Tensor:
    """Tests if any element is not zero, of all or along `dim`; along no dimension, of each by itself."""
def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The arccosine (inverse cosine) of x, in [0, pi]."""
def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine of x, which is not negative."""
def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The arcsine (inverse sine) of x, in [-pi/2, pi/2]."""
def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine of x."""
def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The arctangent (inverse tangent) of x, in [-pi/2, pi/2]."""
def arctan2(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The arctangent of y / x in the quadrant of the point (y, x); the first operand is the height."""
def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent of x."""
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None, **others: Any) -> Tensor:
    """The index of the largest element (counted through all of them, or along `dim`); the first of equals."""
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None, **others: Any) -> Tensor:
    """The index of the smallest element (counted through all of them, or along `dim`); the first of equals."""
def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The arcsine (inverse sine) of x, in [-pi/2, pi/2]."""
def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine of x."""
def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The arctangent (inverse tangent) of x, in [-pi/2, pi/2]."""
def atan2(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The arctangent of y / x in the quadrant of the point (y, x); the first operand is the height."""
def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent of x."""
def avg_pool1d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """Applies 1-d average pooling over (L): the average of each window."""
def avg_pool2d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """Applies 2-d average pooling over (H, W): the average of each window."""
def avg_pool3d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """Applies 3-d average pooling over (D, H, W): the average of each window."""
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2); a beta of 0 ignores the input."""
def bitwise_and(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The bitwise AND: the bits that x and y both have."""
def bitwise_left_shift(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The bits of x, moved up by y places."""
def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The bitwise NOT: the bits that x does not have; for booleans, not x."""
def bitwise_or(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The bitwise OR: the bits that x or y has."""
def bitwise_right_shift(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The bits of x, moved down by y places; the sign stays."""
def bitwise_xor(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The bitwise XOR: the bits that one of x and y has."""
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Tensor | None = None) -> Tensor:
    """The number of the interval between sorted boundaries that each element is in."""
def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Rounds up: the smallest integer that is not below x."""
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place version of `celu`: writes to the tensor's own memory."""
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Clamps elements to the range from `min` to `max`; bounds are numbers or tensors, NaN stays."""
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """Clamps x from above: x, and `max` where x is above it."""
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """Clamps x from below: x, and `min` where x is below it."""
def clip(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Clamps elements to the range from `min` to `max`; bounds are numbers or tensors, NaN stays."""
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Stacks tensors as columns: joins them along the second dimension, vectors as columns."""
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The conjugate of a complex tensor, in new memory; a real tensor itself."""
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1, *, activation: str | None = None) -> Tensor:
    """Applies a 1-d convolution (cross-correlation) over an input of shape (N, in, L) or (in, L)."""
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1, *, activation: str | None = None) -> Tensor:
    """Applies a 2-d convolution (cross-correlation) over an input of shape (N, in, H, W) or (in, H, W)."""
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1, *, activation: str | None = None) -> Tensor:
    """Applies a 3-d convolution (cross-correlation) over an input of shape (N, in, D, H, W) or (in, D, H, W)."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1, *, activation: str | None = None) -> Tensor:
    """Applies a 1-d transposed convolution (deconvolution): each element of the input adds a kernel to the
    result."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1, *, activation: str | None = None) -> Tensor:
    """Applies a 2-d transposed convolution (deconvolution): each element of the input adds a kernel to the
    result."""
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1, *, activation: str | None = None) -> Tensor:
    """Applies a 3-d transposed convolution (deconvolution): each element of the input adds a kernel to the
    result."""
def copysign(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The magnitude of x with the sign of y, which a zero has too."""
def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The cosine of x."""
def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine of x."""
def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross products of vectors of three elements, along the first dimension of size 3 unless `dim` is given."""
def cummax(input: Tensor, dim: int | None = None, *, out: Any = None) -> CummaxResult:
    """The cumulative maxima along `dim`, and their indices; of equal ones the last."""
def cummin(input: Tensor, dim: int | None = None, *, out: Any = None) -> CumminResult:
    """The cumulative minima along `dim`, and their indices; of equal ones the last."""
def cumprod(input: Tensor, dim: int | None = None, *, dtype: Any = None, out: Tensor | None = None, **others: Any) -> Tensor:
    """The cumulative products along `dim`; integers and booleans multiply in int64."""
def cumsum(input: Tensor, dim: int | None = None, *, dtype: Any = None, out: Tensor | None = None, **others: Any) -> Tensor:
    """The cumulative sums along `dim`; integers and booleans add up in int64."""
def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Converts degrees to radians: input * pi / 180."""
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The matrix with a vector on its diagonal; of a matrix a copy of its diagonal."""
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """The differences of neighbours along `dim`, taken `n` times; of booleans whether the two differ."""
def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of the logarithm of the gamma function; -inf at 0, NaN at negative whole numbers."""
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The dot product: the sum of the products of two vectors' elements."""
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along the third dimension; a number of sections has to divide its size."""
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Stacks tensors in depth: joins them along the third dimension."""
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place version of `elu`: writes to the tensor's own memory."""
def eq(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Compares element by element: x == y."""
def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function: 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x."""
def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complementary error function: 1 - erf(x), exact where erf(x) is close to 1."""
def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse error function: the number whose error function is x."""
def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The exponential of each element: e to the power x."""
def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power x."""
def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x) - 1, exact near 0."""
def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Truncates toward zero: x without its fraction."""
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """input ** exponent in float64, or complex128 where one of them is complex; one of them may be a number."""
def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Rounds down: the largest integer that is not above x."""
def floor_divide(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Divides and rounds down: the largest integer that is not above x / y."""
def fmax(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The elementwise maximum of x and y; the other one where one is NaN."""
def fmin(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The elementwise minimum of x and y; the other one where one is NaN."""
def fmod(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The remainder of x divided by y, with the sign of x (C's fmod)."""
def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The fractional part of x, with its sign."""
@overload
def fractional_max_pool2d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: Literal[False] = False, _random_samples: Tensor | None = None) -> Tensor:
    """Applies 2-d fractional max pooling: the largest element of each of `output_size` windows along the last
    2 dimensions, placed at random."""
@overload
def fractional_max_pool2d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:
    """Applies 2-d fractional max pooling: the largest element of each of `output_size` windows along the last
    2 dimensions, placed at random."""
def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: bool = False, _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """`nn.functional.fractional_max_pool2d` with the places of the elements."""
@overload
def fractional_max_pool3d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: Literal[False] = False, _random_samples: Tensor | None = None) -> Tensor:
    """Applies 3-d fractional max pooling: the largest element of each of `output_size` windows along the last
    3 dimensions, placed at random."""
@overload
def fractional_max_pool3d(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:
    """Applies 3-d fractional max pooling: the largest element of each of `output_size` windows along the last
    3 dimensions, placed at random."""
def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None, return_indices: bool = False, _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """`nn.functional.fractional_max_pool3d` with the places of the elements."""
def frexp(input: Tensor, *, out: Any = None) -> FrexpResult:
    """Decomposes into mantissa, from 0.5 to below 1, and exponent of 2, int32: input = mantissa * 2**exponent."""
def gather(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gathers values along `dim`: out[i][j] = input[index[i][j]][j] for two dimensions and dim=0."""
def gcd(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor of x and y, of zeros 0."""
def ge(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Compares element by element: x >= y."""
def gelu(input: Tensor, approximate: str = 'none', *, out: Tensor | None = None) -> Tensor:
    """Gaussian error linear unit: input times the standard normal CDF of input; `approximate="tanh"` for the cheaper
    formula."""
def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The outer product: the products of each element of one vector with each of another."""
def greater(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Compares element by element: x > y."""
def greater_equal(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Compares element by element: x >= y."""
def gt(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Compares element by element: x > y."""
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Applies hard shrinkage: input, and 0 where it lies between -lambd and lambd, or on one of them."""
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place version of `hardtanh`: writes to the tensor's own memory."""
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Heaviside step function: 0 where the input is negative or NaN, 1 where positive, `values` where it is 0."""
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Tensor:
    """The histogram: the number of elements in each of `bins` equal intervals from `min` to `max`; of all if these are
    equal."""
def histogram(input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False, out: Any = None) -> HistogramResult:
    """The histogram, the number of elements in each bin (or the sum of their weights), and the bins' edges."""
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along the second dimension, of a vector along its only one; a number of sections has to divide its size."""
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Stacks tensors horizontally: joins them along the second dimension, vectors along their only one."""
def hypot(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The hypotenuse of a right triangle: sqrt(x * x + y * y), without overflow."""
def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind and order 0."""
def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The lower incomplete gamma function of order `input` at `other`, divided by gamma(input), of floating tensors."""
def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The upper incomplete gamma function, 1 - igamma(input, other), exact where that is small."""
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """`input` with `alpha * source[i]` added to its slice `index[i]` along `dim`."""
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` with slice `index[i]` along `dim` replaced by `source[i]`."""
def index_reduce(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True, out: Tensor | None = None) -> Tensor:
    """`input` whose slice `index[i]` along `dim` is reduced with `source[i]`: "prod", "mean", "amax" or "amin"."""
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Selects slices of `input` along `dim` at the positions in a vector."""
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inner product: the sum of products over the last dimension of both; of vectors, their dot product."""
def is_conj(input: Tensor) -> bool:
    """Tests if a conjugate is pending: never."""
def is_neg(input: Tensor) -> bool:
    """Tests if a sign is pending: never."""
def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Tests each element: True where x is neither infinite nor NaN."""
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False, out: Tensor | None = None) -> Tensor:
    """Tests if each element is among `test_elements`; with `invert` if it is not. One of them may be a number."""
def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Tests each element: True where x is infinite."""
def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Tests each element: True where x is NaN."""
def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Tests if each element is infinite and negative."""
def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Tests if each element is infinite and positive."""
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: each element of the input times the whole of the other tensor, in blocks."""
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> KthvalueResult:
    """The `k`-th smallest element along `dim`, counted from 1, and its index. NaN is larger than every number."""
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple of integers; 0 where one is 0."""
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiplies by a power of 2: input * 2**other, floating."""
def le(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Compares element by element: x <= y."""
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place version of `leaky_relu`: writes to the tensor's own memory."""
def lerp(input: Tensor, end: Any, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """Linear interpolation: x + weight * (end - x), computed from the nearer end so that weight 1 gives `end`
    itself."""
def less(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Compares element by element: x < y."""
def less_equal(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Compares element by element: x <= y."""
def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the magnitude of the gamma function."""
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: str | None = None, out: Tensor | None = None) -> Tensor:
    """Applies a linear transformation: `input @ weight.T + bias`, for an input (..., in) and a weight (out, in)."""
def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm of x."""
def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of x to base 10."""
def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm of 1 + x, exact near 0."""
def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of x to base 2."""
def logaddexp(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of exponentials: log(exp(x) + exp(y)), without overflow."""
def logaddexp2(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """log2(2**x + 2**y), without overflow."""
def logcumsumexp(input: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """log(sum(exp(x))) of the elements up to each place along `dim`, without overflow."""
def logical_and(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The logical AND: True where x and y both differ from 0."""
def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logical NOT: True where x is 0."""
def logical_or(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The logical OR: True where x or y differs from 0."""
def logical_xor(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The logical XOR: True where one of x and y differs from 0, and one does not."""
def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """The logit, the inverse of sigmoid: log(input / (1 - input)); `eps` keeps the input within eps and 1 - eps."""
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Applies the logarithm of the sigmoid, computed without overflow."""
def logsumexp(input: Tensor, dim: int | Sequence[int] | None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """log(sum(exp(x))) along `dim`, without overflow."""
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, ceil_mode: bool = False) -> Tensor:
    """Applies 1-d power-average pooling: (sum of x^p)^(1/p) of each window along the last 1 dimensions,
    with p `norm_type`."""
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, ceil_mode: bool = False) -> Tensor:
    """Applies 2-d power-average pooling: (sum of x^p)^(1/p) of each window along the last 2 dimensions,
    with p `norm_type`."""
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, ceil_mode: bool = False) -> Tensor:
    """Applies 3-d power-average pooling: (sum of x^p)^(1/p) of each window along the last 3 dimensions,
    with p `norm_type`."""
def lt(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Compares element by element: x < y."""
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Selects the elements where `mask` is True, as a vector; the two broadcast. The host waits for their number."""
@overload
def max(input: Tensor, *, out: Any = None) -> Tensor:
    """The largest element; with `dim`, the largest along it and their indices; with a tensor, the elementwise maximum."""
@overload
def max(input: Tensor, dim: int, keepdim: bool = False, *, out: Any = None) -> MaxResult:
    """The largest element; with `dim`, the largest along it and their indices; with a tensor, the elementwise maximum."""
@overload
def max(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The largest element; with `dim`, the largest along it and their indices; with a tensor, the elementwise maximum."""
@overload
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None, out: Any = None, **others: Any) -> Any:
    """The largest element; with `dim`, the largest along it and their indices; with a tensor, the elementwise maximum."""
@overload
def max_pool1d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: Literal[False] = False) -> Tensor:
    """Applies 1-d max pooling over (L): the largest element of each window, of equal ones the first."""
@overload
def max_pool1d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """Applies 1-d max pooling over (L): the largest element of each window, of equal ones the first."""
def max_pool1d_with_indices(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """`nn.functional.max_pool1d` with the places of the elements."""
@overload
def max_pool2d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: Literal[False] = False) -> Tensor:
    """Applies 2-d max pooling over (H, W): the largest element of each window, of equal ones the first."""
@overload
def max_pool2d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """Applies 2-d max pooling over (H, W): the largest element of each window, of equal ones the first."""
def max_pool2d_with_indices(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """`nn.functional.max_pool2d` with the places of the elements."""
@overload
def max_pool3d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: Literal[False] = False) -> Tensor:
    """Applies 3-d max pooling over (D, H, W): the largest element of each window, of equal ones the first."""
@overload
def max_pool3d(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """Applies 3-d max pooling over (D, H, W): the largest element of each window, of equal ones the first."""
def max_pool3d_with_indices(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """`nn.functional.max_pool3d` with the places of the elements."""
def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, output_size: Sequence[int] | None = None) -> Tensor:
    """Inverts `max_pool1d` in part: zeros, with the elements of `input` at the places that it returned with
    them."""
def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, output_size: Sequence[int] | None = None) -> Tensor:
    """Inverts `max_pool2d` in part: zeros, with the elements of `input` at the places that it returned with
    them."""
def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, output_size: Sequence[int] | None = None) -> Tensor:
    """Inverts `max_pool3d` in part: zeros, with the elements of `input` at the places that it returned with
    them."""
def maximum(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The elementwise maximum of x and y; NaN if either is."""
def mean(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None, **others: Any) -> Tensor:
    """The mean of all elements, or along `dim`."""
@overload
def median(input: Tensor, *, out: Any = None) -> Tensor:
    """The median of all elements; or along `dim`, with indices. Of an even number it is the lower one in the middle."""
@overload
def median(input: Tensor, dim: int, keepdim: bool = False, *, out: Any = None) -> MedianResult:
    """The median of all elements; or along `dim`, with indices. Of an even number it is the lower one in the middle."""
@overload
def median(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The median of all elements; or along `dim`, with indices. Of an even number it is the lower one in the middle."""
@overload
def min(input: Tensor, *, out: Any = None) -> Tensor:
    """The smallest element; with `dim`, those along it and their indices; with a tensor, the elementwise minimum."""
@overload
def min(input: Tensor, dim: int, keepdim: bool = False, *, out: Any = None) -> MinResult:
    """The smallest element; with `dim`, those along it and their indices; with a tensor, the elementwise minimum."""
@overload
def min(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The smallest element; with `dim`, those along it and their indices; with a tensor, the elementwise minimum."""
@overload
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None, out: Any = None, **others: Any) -> Any:
    """The smallest element; with `dim`, those along it and their indices; with a tensor, the elementwise minimum."""
def minimum(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The elementwise minimum of x and y; NaN if either is."""
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> ModeResult:
    """The mode, the most frequent element along `dim`, of several the smallest, and the last index where it is."""
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements in rising order along the first dimension."""
def mul(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Multiplies x and y element by element."""
def multiply(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Multiplies x and y element by element."""
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of a matrix and a vector."""
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of p dimensions."""
def nan_to_num(input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Replaces NaN by `nan`, and infinities by the given numbers or the dtype's largest and smallest."""
def nanmean(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """The mean of the elements that are not NaN, of all or along `dim`; NaN if there are none."""
@overload
def nanmedian(input: Tensor, *, out: Any = None) -> Tensor:
    """The median of the elements that are not NaN; NaN if there are none."""
@overload
def nanmedian(input: Tensor, dim: int, keepdim: bool = False, *, out: Any = None) -> NanmedianResult:
    """The median of the elements that are not NaN; NaN if there are none."""
@overload
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The median of the elements that are not NaN; NaN if there are none."""
def nanquantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = 'linear', out: Tensor | None = None) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN if there are none."""
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The sum of the elements that are not NaN."""
def ne(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Compares element by element: x != y."""
def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The negative of each element: -x."""
def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The negative of each element: -x."""
def nextafter(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The next number after x towards y."""
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False, out: Any = None) -> Tensor:
    """The indices of the elements that are not zero, in order: of shape (n, rank), or as a tuple of `rank` vectors."""
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero, in order: of shape (n, rank), or as a tuple of `rank` vectors."""
@overload
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Any = None) -> Any:
    """The indices of the elements that are not zero, in order: of shape (n, rank), or as a tuple of `rank` vectors."""
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None) -> Tensor:
    """The coordinates of the first `size` elements that are not 0, filled up with `fill_value`."""
def norm(input: Tensor, p: float | str | None = 'fro', dim: int | Sequence[int] | None = None, keepdim: bool = False, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The p-norm of all elements, or of those along `dim`, as of a vector."""
def not_equal(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Compares element by element: x != y."""
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The outer product: the products of each element of one vector with each of another."""
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of order n of the digamma function; floating results."""
def pow(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Raises x to the power y; integers stay integers, and a negative power of one is 0 (of 1 and -1: 1 or -1)."""
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None, **others: Any) -> Tensor:
    """The product of all elements, or along one dimension; integers and booleans multiply in int64."""
def quantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = 'linear', out: Tensor | None = None) -> Tensor:
    """The `q`-th quantiles of all elements, or along `dim`; of several `q` along a new first dimension."""
def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Converts radians to degrees: input * 180 / pi."""
def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The reciprocal of each element: 1 / x."""
def relu_(input: Tensor) -> Tensor:
    """In-place version of `relu`: writes to the tensor's own memory."""
def remainder(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The remainder of x divided by y, with the sign of y (Python's modulus)."""
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Tensor:
    """The input with those of its slices along `dim` whose p-norm is above `maxnorm` scaled to that norm."""
def resolve_conj(input: Tensor) -> Tensor:
    """The input itself: here no conjugate is pending."""
def resolve_neg(input: Tensor) -> Tensor:
    """The input itself: here no sign is pending."""
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Rounds to the nearest number with `decimals` digits after the point; ties go to the even one."""
def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Stacks tensors vertically: joins them along the first dimension, vectors as rows."""
def rrelu_(input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, *, generator: Any = None) -> Tensor:
    """In-place version of `rrelu`: writes to the tensor's own memory."""
def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The reciprocal of the square root of each element: 1 / sqrt(x)."""
def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None, out: Tensor | None = None) -> Tensor:
    """Scatters: `input` with each element of `src` (or one number) written to the position in `index` along `dim`."""
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Scatters and adds: `input` with each element of `src` added at the position in `index` along `dim`."""
def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True, out: Tensor | None = None) -> Tensor:
    """Scatters and reduces: `input` with the "sum", "prod", "mean", "amax" or "amin" of what is scattered to each
    position, and of its own."""
def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """The index at which each value has to be inserted so that the sequence stays sorted, before equal ones or after
    them."""
def selu_(input: Tensor) -> Tensor:
    """In-place version of `selu`: writes to the tensor's own memory."""
def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sign, also of complex numbers: x / |x|, and 0 where x is 0; for real numbers -1, 0 or 1, and 0 for NaN."""
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logistic sigmoid: 1 / (1 + exp(-x))."""
def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sign of each element: -1, 0 or 1, and 0 for NaN."""
def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Tests the sign bit: True where x is negative, or a negative zero."""
def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sine of x."""
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sin(pi * x) / (pi * x), and 1 where x is 0."""
def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine of x."""
def slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy of `input` with `src` in place of `input[start:end:step]` along `dim`."""
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """Applies softplus: log(1 + exp(beta * input)) / beta, and input itself where beta * input is above threshold."""
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Applies soft shrinkage: input, closer to 0 by lambd, and 0 where it would pass it."""
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True, *, out: Any = None) -> SortResult:
    """Sorts along `dim` in ascending (or descending) order, and returns the indices too; equal elements keep their
    order."""
def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root of x."""
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square of each element: x * x."""
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Stacks tensors, all of one shape, along a new dimension."""
def sum(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None, **others: Any) -> Tensor:
    """The sum of all elements, or along `dim`; integers and booleans add up in int64."""
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements at `index` of the flattened `input`."""
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Elements of `input` at `indices` along `dim` (of the flattened input if None); the other sizes broadcast."""
def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tangent of x."""
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent of x."""
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, *, axes: Any = None, out: Tensor | None = None) -> Tensor:
    """The contraction of two tensors: the sum of products over several dimensions of both."""
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Thresholds each element: input where it is above `threshold`, else `value`; both are cut to integers where input
    has them."""
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """In-place version of `threshold`: writes to the tensor's own memory."""
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None) -> TopkResult:
    """The `k` largest (or smallest) elements along `dim`, sorted, and their indices."""
def tril(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangles of matrices: zeros above the diagonal (the one `diagonal` to the right of the main one)."""
def triu(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangles of matrices: zeros below the diagonal (the one `diagonal` to the right of the main one)."""
def true_divide(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Divides x by y element by element; the result is floating."""
def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Truncates toward zero: x without its fraction."""
@overload
def unique(input: Tensor, sorted: bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: int | None = None) -> Tensor:
    """The unique elements, in rising order; or the unique slices along `dim`. The host waits for their number."""
@overload
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The unique elements, in rising order; or the unique slices along `dim`. The host waits for their number."""
@overload
def unique_consecutive(input: Tensor, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: int | None = None) -> Tensor:
    """The elements (or slices along `dim`) without those that are equal to the one before them."""
@overload
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The elements (or slices along `dim`) without those that are equal to the one before them."""
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The dot product of two vectors, of which the first is conjugated."""
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along the first dimension, of a matrix at least; a number of sections has to divide its size."""
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Stacks tensors vertically: joins them along the first dimension, vectors as rows."""
@overload
def where(condition: Tensor) -> tuple[Tensor, ...]:
    """Selects elements of input where `condition` is True, else of other; of a condition alone, the coordinates of its
    elements that are not 0."""
@overload
def where(condition: Tensor, input: Any, other: Any, *, out: Any = None) -> Tensor:
    """Selects elements of input where `condition` is True, else of other; of a condition alone, the coordinates of its
    elements that are not 0."""
@overload
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Selects elements of input where `condition` is True, else of other; of a condition alone, the coordinates of its
    elements that are not 0."""
def xlogy(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x * log(y), and 0 where x is 0, unless y is NaN."""
