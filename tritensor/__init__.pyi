"""The type stub of the package, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from .tensors.results import MaxResult, MedianResult, MinResult, NanmedianResult
from .types import dtypes
from . import accelerator as accelerator
from . import amp as amp
from . import array_api as array_api
from . import autograd as autograd
from . import backends as backends
from . import compiler as compiler
from . import cpu as cpu
from . import cuda as cuda
from . import distributed as distributed
from . import distributions as distributions
from . import fft as fft
from . import func as func
from . import functional as functional
from . import hub as hub
from . import jit as jit
from . import linalg as linalg
from . import masked as masked
from . import multiprocessing as multiprocessing
from . import nn as nn
from . import onnx as onnx
from . import optim as optim
from . import random as random
from . import return_types as return_types
from . import serialization as serialization
from . import settings as settings
from . import signal as signal
from . import sklearn as sklearn
from . import special as special
from . import testing as testing
from . import utils as utils
from . import version as version
from . import vision as vision
from .autograd.mode import enable_grad as enable_grad
from .autograd.mode import inference_mode as inference_mode
from .autograd.mode import is_grad_enabled as is_grad_enabled
from .autograd.mode import is_inference_mode_enabled as is_inference_mode_enabled
from .autograd.mode import no_grad as no_grad
from .autograd.mode import set_grad_enabled as set_grad_enabled
from .compiler import compile as compile
from .errors import OutOfMemoryError as OutOfMemoryError
from .func import vmap as vmap
from .functional import _segment_reduce as _segment_reduce
from .functional import _unsafe_masked_index as _unsafe_masked_index
from .functional import _unsafe_masked_index_put_accumulate as _unsafe_masked_index_put_accumulate
from .functional import abs as abs
from .functional import absolute as absolute
from .functional import acos as acos
from .functional import acosh as acosh
from .functional import adaptive_avg_pool1d as adaptive_avg_pool1d
from .functional import add as add
from .functional import addbmm as addbmm
from .functional import addcdiv as addcdiv
from .functional import addcmul as addcmul
from .functional import addmm as addmm
from .functional import addmv as addmv
from .functional import addr as addr
from .functional import all as all
from .functional import allclose as allclose
from .functional import amax as amax
from .functional import amin as amin
from .functional import aminmax as aminmax
from .functional import angle as angle
from .functional import any as any
from .functional import arccos as arccos
from .functional import arccosh as arccosh
from .functional import arcsin as arcsin
from .functional import arcsinh as arcsinh
from .functional import arctan as arctan
from .functional import arctan2 as arctan2
from .functional import arctanh as arctanh
from .functional import argmax as argmax
from .functional import argmin as argmin
from .functional import argsort as argsort
from .functional import argwhere as argwhere
from .functional import as_strided as as_strided
from .functional import as_strided_scatter as as_strided_scatter
from .functional import asin as asin
from .functional import asinh as asinh
from .functional import atan as atan
from .functional import atan2 as atan2
from .functional import atanh as atanh
from .functional import avg_pool1d as avg_pool1d
from .functional import baddbmm as baddbmm
from .functional import bilinear as bilinear
from .functional import bincount as bincount
from .functional import bitwise_and as bitwise_and
from .functional import bitwise_left_shift as bitwise_left_shift
from .functional import bitwise_not as bitwise_not
from .functional import bitwise_or as bitwise_or
from .functional import bitwise_right_shift as bitwise_right_shift
from .functional import bitwise_xor as bitwise_xor
from .functional import block_diag as block_diag
from .functional import bmm as bmm
from .functional import broadcast_shapes as broadcast_shapes
from .functional import bucketize as bucketize
from .functional import can_cast as can_cast
from .functional import cartesian_prod as cartesian_prod
from .functional import cat as cat
from .functional import cdist as cdist
from .functional import ceil as ceil
from .functional import celu_ as celu_
from .functional import chain_matmul as chain_matmul
from .functional import channel_shuffle as channel_shuffle
from .functional import clamp as clamp
from .functional import clamp_max as clamp_max
from .functional import clamp_min as clamp_min
from .functional import clip as clip
from .functional import clone as clone
from .functional import column_stack as column_stack
from .functional import combinations as combinations
from .functional import concat as concat
from .functional import concatenate as concatenate
from .functional import conj as conj
from .functional import conj_physical as conj_physical
from .functional import conv1d as conv1d
from .functional import conv2d as conv2d
from .functional import conv3d as conv3d
from .functional import conv_tbc as conv_tbc
from .functional import conv_transpose1d as conv_transpose1d
from .functional import conv_transpose2d as conv_transpose2d
from .functional import conv_transpose3d as conv_transpose3d
from .functional import copysign as copysign
from .functional import corrcoef as corrcoef
from .functional import cos as cos
from .functional import cosh as cosh
from .functional import cosine_similarity as cosine_similarity
from .functional import count_nonzero as count_nonzero
from .functional import cov as cov
from .functional import cross as cross
from .functional import cummax as cummax
from .functional import cummin as cummin
from .functional import cumprod as cumprod
from .functional import cumsum as cumsum
from .functional import cumulative_trapezoid as cumulative_trapezoid
from .functional import deg2rad as deg2rad
from .functional import detach as detach
from .functional import diag as diag
from .functional import diag_embed as diag_embed
from .functional import diagflat as diagflat
from .functional import diagonal as diagonal
from .functional import diagonal_scatter as diagonal_scatter
from .functional import diff as diff
from .functional import digamma as digamma
from .functional import dist as dist
from .functional import div as div
from .functional import divide as divide
from .functional import dot as dot
from .functional import dsplit as dsplit
from .functional import dstack as dstack
from .functional import einsum as einsum
from .functional import eq as eq
from .functional import equal as equal
from .functional import erf as erf
from .functional import erfc as erfc
from .functional import erfinv as erfinv
from .functional import exp as exp
from .functional import exp2 as exp2
from .functional import expm1 as expm1
from .functional import fix as fix
from .functional import flip as flip
from .functional import fliplr as fliplr
from .functional import flipud as flipud
from .functional import float_power as float_power
from .functional import floor as floor
from .functional import floor_divide as floor_divide
from .functional import fmax as fmax
from .functional import fmin as fmin
from .functional import fmod as fmod
from .functional import frac as frac
from .functional import frexp as frexp
from .functional import gather as gather
from .functional import gcd as gcd
from .functional import ge as ge
from .functional import ger as ger
from .functional import get_float32_matmul_precision as get_float32_matmul_precision
from .functional import gradient as gradient
from .functional import greater as greater
from .functional import greater_equal as greater_equal
from .functional import gt as gt
from .functional import hardshrink as hardshrink
from .functional import heaviside as heaviside
from .functional import histc as histc
from .functional import histogram as histogram
from .functional import histogramdd as histogramdd
from .functional import hsplit as hsplit
from .functional import hstack as hstack
from .functional import hypot as hypot
from .functional import i0 as i0
from .functional import igamma as igamma
from .functional import igammac as igammac
from .functional import index_add as index_add
from .functional import index_copy as index_copy
from .functional import index_fill as index_fill
from .functional import index_put as index_put
from .functional import index_put_ as index_put_
from .functional import index_reduce as index_reduce
from .functional import index_select as index_select
from .functional import inner as inner
from .functional import is_complex as is_complex
from .functional import is_conj as is_conj
from .functional import is_floating_point as is_floating_point
from .functional import is_neg as is_neg
from .functional import isclose as isclose
from .functional import isfinite as isfinite
from .functional import isin as isin
from .functional import isinf as isinf
from .functional import isnan as isnan
from .functional import isneginf as isneginf
from .functional import isposinf as isposinf
from .functional import isreal as isreal
from .functional import kron as kron
from .functional import kthvalue as kthvalue
from .functional import layer_norm as layer_norm
from .functional import lcm as lcm
from .functional import ldexp as ldexp
from .functional import le as le
from .functional import lerp as lerp
from .functional import less as less
from .functional import less_equal as less_equal
from .functional import lgamma as lgamma
from .functional import log as log
from .functional import log10 as log10
from .functional import log1p as log1p
from .functional import log2 as log2
from .functional import logaddexp as logaddexp
from .functional import logaddexp2 as logaddexp2
from .functional import logcumsumexp as logcumsumexp
from .functional import logical_and as logical_and
from .functional import logical_not as logical_not
from .functional import logical_or as logical_or
from .functional import logical_xor as logical_xor
from .functional import logit as logit
from .functional import logsumexp as logsumexp
from .functional import lt as lt
from .functional import masked_fill as masked_fill
from .functional import masked_scatter as masked_scatter
from .functional import masked_select as masked_select
from .functional import matmul as matmul
from .functional import max as max
from .functional import maximum as maximum
from .functional import mean as mean
from .functional import median as median
from .functional import meshgrid as meshgrid
from .functional import min as min
from .functional import minimum as minimum
from .functional import mm as mm
from .functional import mode as mode
from .functional import msort as msort
from .functional import mul as mul
from .functional import multiply as multiply
from .functional import mv as mv
from .functional import mvlgamma as mvlgamma
from .functional import nan_to_num as nan_to_num
from .functional import nanmean as nanmean
from .functional import nanmedian as nanmedian
from .functional import nanquantile as nanquantile
from .functional import nansum as nansum
from .functional import native_channel_shuffle as native_channel_shuffle
from .functional import ne as ne
from .functional import neg as neg
from .functional import negative as negative
from .functional import nextafter as nextafter
from .functional import nonzero as nonzero
from .functional import nonzero_static as nonzero_static
from .functional import norm as norm
from .functional import not_equal as not_equal
from .functional import numel as numel
from .functional import outer as outer
from .functional import pairwise_distance as pairwise_distance
from .functional import pdist as pdist
from .functional import pixel_shuffle as pixel_shuffle
from .functional import pixel_unshuffle as pixel_unshuffle
from .functional import polygamma as polygamma
from .functional import positive as positive
from .functional import pow as pow
from .functional import prelu as prelu
from .functional import prod as prod
from .functional import put as put
from .functional import quantile as quantile
from .functional import rad2deg as rad2deg
from .functional import ravel as ravel
from .functional import reciprocal as reciprocal
from .functional import relu as relu
from .functional import relu_ as relu_
from .functional import remainder as remainder
from .functional import renorm as renorm
from .functional import repeat_interleave as repeat_interleave
from .functional import resolve_conj as resolve_conj
from .functional import resolve_neg as resolve_neg
from .functional import result_type as result_type
from .functional import rms_norm as rms_norm
from .functional import roll as roll
from .functional import rot90 as rot90
from .functional import round as round
from .functional import row_stack as row_stack
from .functional import rrelu_ as rrelu_
from .functional import rsqrt as rsqrt
from .functional import scatter as scatter
from .functional import scatter_add as scatter_add
from .functional import scatter_reduce as scatter_reduce
from .functional import searchsorted as searchsorted
from .functional import segment_reduce as segment_reduce
from .functional import select_scatter as select_scatter
from .functional import selu_ as selu_
from .functional import set_float32_matmul_precision as set_float32_matmul_precision
from .functional import sgn as sgn
from .functional import sigmoid as sigmoid
from .functional import sign as sign
from .functional import signbit as signbit
from .functional import sin as sin
from .functional import sinc as sinc
from .functional import sinh as sinh
from .functional import slice_scatter as slice_scatter
from .functional import sort as sort
from .functional import split_with_sizes as split_with_sizes
from .functional import sqrt as sqrt
from .functional import square as square
from .functional import stack as stack
from .functional import std as std
from .functional import std_mean as std_mean
from .functional import sub as sub
from .functional import subtract as subtract
from .functional import sum as sum
from .functional import take as take
from .functional import take_along_dim as take_along_dim
from .functional import tan as tan
from .functional import tanh as tanh
from .functional import tensor_split as tensor_split
from .functional import tensordot as tensordot
from .functional import threshold_ as threshold_
from .functional import tile as tile
from .functional import topk as topk
from .functional import trace as trace
from .functional import trapezoid as trapezoid
from .functional import trapz as trapz
from .functional import tril as tril
from .functional import triu as triu
from .functional import true_divide as true_divide
from .functional import trunc as trunc
from .functional import unique as unique
from .functional import unique_consecutive as unique_consecutive
from .functional import unravel_index as unravel_index
from .functional import vander as vander
from .functional import var as var
from .functional import var_mean as var_mean
from .functional import vdot as vdot
from .functional import vsplit as vsplit
from .functional import vstack as vstack
from .functional import where as where
from .functional import xlogy as xlogy
from .functional.creation.creation import as_tensor as as_tensor
from .functional.creation.creation import asarray as asarray
from .functional.creation.creation import from_numpy as from_numpy
from .functional.creation.creation import scalar_tensor as scalar_tensor
from .functional.creation.creation import tensor as tensor
from .functional.creation.exchange import from_dlpack as from_dlpack
from .functional.creation.exchange import to_dlpack as to_dlpack
from .functional.creation.likeness import empty_like as empty_like
from .functional.creation.likeness import full_like as full_like
from .functional.creation.likeness import ones_like as ones_like
from .functional.creation.likeness import zeros_like as zeros_like
from .functional.creation.memory_of import empty_permuted as empty_permuted
from .functional.creation.memory_of import empty_strided as empty_strided
from .functional.creation.memory_of import frombuffer as frombuffer
from .functional.creation.predicates import typename as typename
from .functional.creation.tensor_types import set_default_tensor_type as set_default_tensor_type
from .functional.creation.windows import bartlett_window as bartlett_window
from .functional.creation.windows import blackman_window as blackman_window
from .functional.creation.windows import hamming_window as hamming_window
from .functional.creation.windows import hann_window as hann_window
from .functional.creation.windows import kaiser_window as kaiser_window
from .functional.elementwise.powers import rsub as rsub
from .functional.random.draws import rand_like as rand_like
from .functional.random.draws import randint_like as randint_like
from .functional.random.draws import randn_like as randn_like
from .functional.random.dropouts import native_dropout as native_dropout
from .functional.random.sampling import binomial as binomial
from .functional.random.sampling import poisson as poisson
from .functional.rowwise.channel_normalization import _batch_norm as batch_norm
from .functional.rowwise.channel_normalization import _instance_norm as instance_norm
from .functional.rowwise.channel_normalization import _native_batch_norm as native_batch_norm
from .functional.rowwise.normalization import native_layer_norm as native_layer_norm
from .functional.rowwise.softmax import log_softmax as log_softmax
from .functional.rowwise.softmax import softmax as softmax
from .functional.views.complex_views import imag as imag
from .functional.views.complex_views import real as real
from .functional.views.complex_views import view_as_complex as view_as_complex
from .functional.views.complex_views import view_as_real as view_as_real
from .functional.views.diagonals import tril_indices as tril_indices
from .functional.views.diagonals import triu_indices as triu_indices
from .functional.views.transfer import fill as fill
from .functional.views.views import adjoint as adjoint
from .functional.views.views import broadcast_tensors as broadcast_tensors
from .functional.views.views import broadcast_to as broadcast_to
from .functional.views.views import chunk as chunk
from .functional.views.views import flatten as flatten
from .functional.views.views import movedim as moveaxis
from .functional.views.views import movedim as movedim
from .functional.views.views import narrow as narrow
from .functional.views.views import permute as permute
from .functional.views.views import reshape as reshape
from .functional.views.views import select as select
from .functional.views.views import split as split
from .functional.views.views import squeeze as squeeze
from .functional.views.views import t as t
from .functional.views.views import transpose as swapaxes
from .functional.views.views import transpose as swapdims
from .functional.views.views import transpose as transpose
from .functional.views.views import unbind as unbind
from .functional.views.views import unflatten as unflatten
from .functional.views.views import unsqueeze as unsqueeze
from .functional.window.native import affine_grid_generator as affine_grid_generator
from .functional.window.native import constant_pad_nd as constant_pad_nd
from .functional.window.native import convolution as convolution
from .functional.window.native import norm_except_dim as norm_except_dim
from .functional.window.spectral import istft as istft
from .functional.window.spectral import stft as stft
from .host.threads import get_num_threads as get_num_threads
from .host.threads import set_num_threads as set_num_threads
from .linalg.old_names import lu as lu
from .linalg.old_names import pca_lowrank as pca_lowrank
from .linalg.old_names import svd_lowrank as svd_lowrank
from .linalg.old_solving import det as det
from .linalg.old_solving import logdet as logdet
from .linalg.old_solving import lstsq as lstsq
from .linalg.old_solving import matrix_exp as matrix_exp
from .linalg.old_solving import matrix_rank as matrix_rank
from .linalg.old_solving import pinverse as pinverse
from .linalg.old_solving import solve as solve
from .operators.autocasting import autocast as autocast
from .operators.autocasting import autocast_decrement_nesting as autocast_decrement_nesting
from .operators.autocasting import autocast_increment_nesting as autocast_increment_nesting
from .operators.autocasting import clear_autocast_cache as clear_autocast_cache
from .operators.autocasting import get_autocast_dtype as get_autocast_dtype
from .operators.autocasting import is_autocast_cache_enabled as is_autocast_cache_enabled
from .operators.autocasting import is_autocast_enabled as is_autocast_enabled
from .operators.autocasting import set_autocast_cache_enabled as set_autocast_cache_enabled
from .operators.autocasting import set_autocast_dtype as set_autocast_dtype
from .operators.autocasting import set_autocast_enabled as set_autocast_enabled
from .operators.generators import Generator as Generator
from .operators.generators import default_generator as default_generator
from .operators.generators import fork_rng as fork_rng
from .operators.generators import get_rng_state as get_rng_state
from .operators.generators import initial_seed as initial_seed
from .operators.generators import manual_seed as manual_seed
from .operators.generators import seed as seed
from .operators.generators import set_rng_state as set_rng_state
from .serialization import load as load
from .serialization import save as save
from .tensors.drawing import plot as plot
from .tensors.printing import set_printoptions as set_printoptions
from .tensors.tensor import Tensor as BFloat16Tensor
from .tensors.tensor import Tensor as BoolTensor
from .tensors.tensor import Tensor as ByteTensor
from .tensors.tensor import Tensor as CharTensor
from .tensors.tensor import Tensor as DoubleTensor
from .tensors.tensor import Tensor as FloatTensor
from .tensors.tensor import Tensor as HalfTensor
from .tensors.tensor import Tensor as IntTensor
from .tensors.tensor import Tensor as LongTensor
from .tensors.tensor import Tensor as ShortTensor
from .tensors.tensor import Tensor as Tensor
from .tensors.tensor import is_tensor as is_tensor
from .types.devices import device as device
from .types.devices import get_default_device as get_default_device
from .types.devices import set_default_device as set_default_device
from .types.dtypes import bfloat16 as bfloat16
from .types.dtypes import bool_ as bool
from .types.dtypes import complex128 as cdouble
from .types.dtypes import complex128 as complex128
from .types.dtypes import complex64 as cfloat
from .types.dtypes import complex64 as complex64
from .types.dtypes import dtype as dtype
from .types.dtypes import finfo as finfo
from .types.dtypes import float16 as float16
from .types.dtypes import float16 as half
from .types.dtypes import float32 as float
from .types.dtypes import float32 as float32
from .types.dtypes import float64 as double
from .types.dtypes import float64 as float64
from .types.dtypes import get_default_dtype as get_default_dtype
from .types.dtypes import iinfo as iinfo
from .types.dtypes import int16 as int16
from .types.dtypes import int16 as short
from .types.dtypes import int32 as int
from .types.dtypes import int32 as int32
from .types.dtypes import int64 as int64
from .types.dtypes import int64 as long
from .types.dtypes import int8 as int8
from .types.dtypes import promote_types as promote_types
from .types.dtypes import set_default_dtype as set_default_dtype
from .types.dtypes import uint16 as uint16
from .types.dtypes import uint32 as uint32
from .types.dtypes import uint64 as uint64
from .types.dtypes import uint8 as uint8
from .types.formats import channels_last as channels_last
from .types.formats import channels_last_3d as channels_last_3d
from .types.formats import contiguous_format as contiguous_format
from .types.formats import memory_format as memory_format
from .types.formats import preserve_format as preserve_format
from .types.formats import strided as strided
from .types.size import Size as Size
from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from tritensor import return_types

__version__: str
e: _float
inf: _float
nan: _float
pi: _float
newaxis: None

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "Generator",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "OutOfMemoryError",
    "ShortTensor",
    "Size",
    "Tensor",
    "__version__",
    "_segment_reduce",
    "_unsafe_masked_index",
    "_unsafe_masked_index_put_accumulate",
    "abs",
    "abs_",
    "absolute",
    "accelerator",
    "acos",
    "acos_",
    "acosh",
    "acosh_",
    "adaptive_avg_pool1d",
    "adaptive_max_pool1d",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addmv_",
    "addr",
    "adjoint",
    "affine_grid_generator",
    "alias_copy",
    "all",
    "allclose",
    "alpha_dropout",
    "alpha_dropout_",
    "amax",
    "amin",
    "aminmax",
    "amp",
    "angle",
    "any",
    "arange",
    "arccos",
    "arccos_",
    "arccosh",
    "arccosh_",
    "arcsin",
    "arcsin_",
    "arcsinh",
    "arcsinh_",
    "arctan",
    "arctan2",
    "arctan_",
    "arctanh",
    "arctanh_",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "array_api",
    "as_strided",
    "as_strided_",
    "as_strided_copy",
    "as_strided_scatter",
    "as_tensor",
    "asarray",
    "asin",
    "asin_",
    "asinh",
    "asinh_",
    "atan",
    "atan2",
    "atan_",
    "atanh",
    "atanh_",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "autocast",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "autograd",
    "avg_pool1d",
    "backends",
    "baddbmm",
    "bartlett_window",
    "batch_norm",
    "bernoulli",
    "bfloat16",
    "bilinear",
    "binary_cross_entropy_with_logits",
    "bincount",
    "binomial",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman_window",
    "block_diag",
    "bmm",
    "bool",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "can_cast",
    "cartesian_prod",
    "cat",
    "cdist",
    "cdouble",
    "ceil",
    "ceil_",
    "celu",
    "celu_",
    "cfloat",
    "chain_matmul",
    "channel_shuffle",
    "channels_last",
    "channels_last_3d",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "chunk",
    "clamp",
    "clamp_",
    "clamp_max",
    "clamp_max_",
    "clamp_min",
    "clamp_min_",
    "clear_autocast_cache",
    "clip",
    "clip_",
    "clone",
    "column_stack",
    "combinations",
    "compile",
    "compiler",
    "complex",
    "complex128",
    "complex64",
    "concat",
    "concatenate",
    "conj",
    "conj_physical",
    "conj_physical_",
    "constant_pad_nd",
    "contiguous_format",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
    "copysign",
    "corrcoef",
    "cos",
    "cos_",
    "cosh",
    "cosh_",
    "cosine_embedding_loss",
    "cosine_similarity",
    "count_nonzero",
    "cov",
    "cpu",
    "cross",
    "ctc_loss",
    "cuda",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "default_generator",
    "deg2rad",
    "deg2rad_",
    "det",
    "detach",
    "detach_",
    "detach_copy",
    "device",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_copy",
    "diagonal_scatter",
    "diff",
    "digamma",
    "dist",
    "distributed",
    "distributions",
    "div",
    "divide",
    "dot",
    "double",
    "dropout",
    "dropout_",
    "dsplit",
    "dstack",
    "dtype",
    "e",
    "eig",
    "einsum",
    "embedding",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "enable_grad",
    "eq",
    "equal",
    "erf",
    "erf_",
    "erfc",
    "erfc_",
    "erfinv",
    "exp",
    "exp2",
    "exp2_",
    "exp_",
    "expand_copy",
    "expm1",
    "expm1_",
    "eye",
    "feature_alpha_dropout",
    "feature_alpha_dropout_",
    "feature_dropout",
    "feature_dropout_",
    "fft",
    "fill",
    "fill_",
    "finfo",
    "fix",
    "fix_",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float",
    "float16",
    "float32",
    "float64",
    "float_power",
    "floor",
    "floor_",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "fork_rng",
    "frac",
    "frac_",
    "frexp",
    "frobenius_norm",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "full",
    "full_like",
    "func",
    "functional",
    "gather",
    "gcd",
    "gcd_",
    "ge",
    "geqrf",
    "ger",
    "get_autocast_dtype",
    "get_default_device",
    "get_default_dtype",
    "get_device",
    "get_float32_matmul_precision",
    "get_num_threads",
    "get_rng_state",
    "gradient",
    "greater",
    "greater_equal",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "group_norm",
    "gru",
    "gru_cell",
    "gt",
    "half",
    "hamming_window",
    "hann_window",
    "hardshrink",
    "heaviside",
    "hinge_embedding_loss",
    "histc",
    "histogram",
    "histogramdd",
    "hsplit",
    "hstack",
    "hub",
    "hypot",
    "i0",
    "i0_",
    "igamma",
    "igammac",
    "iinfo",
    "imag",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_put_",
    "index_reduce",
    "index_select",
    "inf",
    "inference_mode",
    "initial_seed",
    "inner",
    "instance_norm",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "inverse",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "is_complex",
    "is_conj",
    "is_distributed",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_tensor",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "istft",
    "jit",
    "kaiser_window",
    "kl_div",
    "kron",
    "kthvalue",
    "layer_norm",
    "lcm",
    "lcm_",
    "ldexp",
    "ldexp_",
    "le",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linalg",
    "linspace",
    "load",
    "log",
    "log10",
    "log10_",
    "log1p",
    "log1p_",
    "log2",
    "log2_",
    "log_",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logdet",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logit_",
    "logspace",
    "logsumexp",
    "long",
    "lstm",
    "lstm_cell",
    "lstsq",
    "lt",
    "lu",
    "lu_solve",
    "lu_unpack",
    "manual_seed",
    "margin_ranking_loss",
    "masked",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "matrix_exp",
    "matrix_power",
    "matrix_rank",
    "max",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool3d",
    "maximum",
    "mean",
    "median",
    "memory_format",
    "meshgrid",
    "min",
    "minimum",
    "mm",
    "mode",
    "moveaxis",
    "movedim",
    "msort",
    "mul",
    "multinomial",
    "multiply",
    "multiprocessing",
    "mv",
    "mvlgamma",
    "nan",
    "nan_to_num",
    "nan_to_num_",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "narrow",
    "narrow_copy",
    "native_batch_norm",
    "native_channel_shuffle",
    "native_dropout",
    "native_group_norm",
    "native_layer_norm",
    "ne",
    "neg",
    "neg_",
    "negative",
    "negative_",
    "newaxis",
    "nextafter",
    "nn",
    "no_grad",
    "nonzero",
    "nonzero_static",
    "norm",
    "norm_except_dim",
    "normal",
    "not_equal",
    "nuclear_norm",
    "numel",
    "ones",
    "ones_like",
    "onnx",
    "optim",
    "orgqr",
    "ormqr",
    "outer",
    "pairwise_distance",
    "pca_lowrank",
    "pdist",
    "permute",
    "permute_copy",
    "pi",
    "pinverse",
    "pixel_shuffle",
    "pixel_unshuffle",
    "plot",
    "poisson",
    "poisson_nll_loss",
    "polar",
    "polygamma",
    "positive",
    "pow",
    "prelu",
    "preserve_format",
    "prod",
    "promote_types",
    "put",
    "qr",
    "quantile",
    "rad2deg",
    "rad2deg_",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random",
    "randperm",
    "range",
    "ravel",
    "real",
    "reciprocal",
    "reciprocal_",
    "relu",
    "relu_",
    "remainder",
    "renorm",
    "repeat_interleave",
    "reshape",
    "resize_as_",
    "resolve_conj",
    "resolve_neg",
    "result_type",
    "return_types",
    "rms_norm",
    "rnn_relu",
    "rnn_relu_cell",
    "rnn_tanh",
    "rnn_tanh_cell",
    "roll",
    "rot90",
    "round",
    "round_",
    "row_stack",
    "rrelu",
    "rrelu_",
    "rsqrt",
    "rsqrt_",
    "rsub",
    "save",
    "scalar_tensor",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "seed",
    "segment_reduce",
    "select",
    "select_copy",
    "select_scatter",
    "selu",
    "selu_",
    "serialization",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_default_device",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_float32_matmul_precision",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "settings",
    "sgn",
    "short",
    "sigmoid",
    "sigmoid_",
    "sign",
    "signal",
    "signbit",
    "sin",
    "sin_",
    "sinc",
    "sinc_",
    "sinh",
    "sinh_",
    "slice_copy",
    "slice_scatter",
    "slogdet",
    "softmax",
    "solve",
    "sort",
    "special",
    "split",
    "split_copy",
    "split_with_sizes",
    "split_with_sizes_copy",
    "sqrt",
    "sqrt_",
    "square",
    "square_",
    "squeeze",
    "squeeze_copy",
    "stack",
    "std",
    "std_mean",
    "stft",
    "strided",
    "sub",
    "subtract",
    "sum",
    "svd",
    "svd_lowrank",
    "swapaxes",
    "swapdims",
    "symeig",
    "t",
    "t_copy",
    "take",
    "take_along_dim",
    "tan",
    "tan_",
    "tanh",
    "tanh_",
    "tensor",
    "tensor_split",
    "tensordot",
    "testing",
    "threshold",
    "threshold_",
    "tile",
    "to_dlpack",
    "topk",
    "trace",
    "transpose",
    "transpose_copy",
    "trapezoid",
    "trapz",
    "triangular_solve",
    "tril",
    "tril_indices",
    "triplet_margin_loss",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
    "trunc_",
    "typename",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unbind",
    "unbind_copy",
    "unflatten",
    "unfold_copy",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "unsqueeze",
    "unsqueeze_copy",
    "utils",
    "vander",
    "var",
    "var_mean",
    "vdot",
    "version",
    "view_as_complex",
    "view_as_complex_copy",
    "view_as_real",
    "view_as_real_copy",
    "view_copy",
    "vision",
    "vmap",
    "vsplit",
    "vstack",
    "where",
    "xlogy",
    "xlogy_",
    "zero_",
    "zeros",
    "zeros_like",
]

def abs_(input: Tensor) -> Tensor:
    """`Tensor.abs_`: The absolute value of each element; of a complex number its magnitude."""
def acos_(input: Tensor) -> Tensor:
    """`Tensor.acos_`: The arccosine (inverse cosine) of x, in [0, pi]."""
def acosh_(input: Tensor) -> Tensor:
    """`Tensor.acosh_`: The inverse hyperbolic cosine of x, which is not negative."""
def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """`nn.functional.adaptive_max_pool1d` with the places of the elements."""
def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *older: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`Tensor.addmv_`: In-place version of `addmv`: writes to the tensor's own memory."""
def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `alias` gives, which shares no memory with it."""
def alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout as `nn.functional.alpha_dropout`, without defaults."""
def alpha_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout in place as `nn.functional.alpha_dropout`, without defaults."""
def arange(start: Any = ..., end: Any = ..., step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: _bool = False, layout: Any = None, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """A vector of numbers from `start` (0 when one bound is given) up to, not including, `end`."""
def arccos_(input: Tensor) -> Tensor:
    """`Tensor.arccos_`: The arccosine (inverse cosine) of x, in [0, pi]."""
def arccosh_(input: Tensor) -> Tensor:
    """`Tensor.arccosh_`: The inverse hyperbolic cosine of x, which is not negative."""
def arcsin_(input: Tensor) -> Tensor:
    """`Tensor.arcsin_`: The arcsine (inverse sine) of x, in [-pi/2, pi/2]."""
def arcsinh_(input: Tensor) -> Tensor:
    """`Tensor.arcsinh_`: The inverse hyperbolic sine of x."""
def arctan_(input: Tensor) -> Tensor:
    """`Tensor.arctan_`: The arctangent (inverse tangent) of x, in [-pi/2, pi/2]."""
def arctanh_(input: Tensor) -> Tensor:
    """`Tensor.arctanh_`: The inverse hyperbolic tangent of x."""
def as_strided_(self: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> Tensor:
    """`Tensor.as_strided_`: In-place version of `as_strided`: the tensor keeps its memory."""
def as_strided_copy(input: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `as_strided` gives, which shares no memory with it."""
def asin_(input: Tensor) -> Tensor:
    """`Tensor.asin_`: The arcsine (inverse sine) of x, in [-pi/2, pi/2]."""
def asinh_(input: Tensor) -> Tensor:
    """`Tensor.asinh_`: The inverse hyperbolic sine of x."""
def atan_(input: Tensor) -> Tensor:
    """`Tensor.atan_`: The arctangent (inverse tangent) of x, in [-pi/2, pi/2]."""
def atanh_(input: Tensor) -> Tensor:
    """`Tensor.atanh_`: The inverse hyperbolic tangent of x."""
@overload
def atleast_1d(tensor: Tensor, /) -> Tensor:
    """The tensor, or all of several or of a list, with 1 dimensions at least: one without dimensions becomes a vector."""
@overload
def atleast_1d(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensor, or all of several or of a list, with 1 dimensions at least: one without dimensions becomes a vector."""
@overload
def atleast_2d(tensor: Tensor, /) -> Tensor:
    """The tensor, or all of several or of a list, with 2 dimensions at least: those of size 1 come in front."""
@overload
def atleast_2d(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensor, or all of several or of a list, with 2 dimensions at least: those of size 1 come in front."""
@overload
def atleast_3d(tensor: Tensor, /) -> Tensor:
    """The tensor, or all of several or of a list, with 3 dimensions at least: a vector becomes (1, n, 1), a matrix (n, m, 1)."""
@overload
def atleast_3d(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensor, or all of several or of a list, with 3 dimensions at least: a vector becomes (1, n, 1), a matrix (n, m, 1)."""
def bernoulli(input: Tensor, p: _float | None = None, *, generator: Any = None, out: Tensor | None = None) -> Tensor:
    """Draws Bernoulli numbers: 1 with the probabilities in `input` (or everywhere with probability `p`), else 0, in its
    dtype."""
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: str = 'mean') -> Tensor:
    """Binary cross entropy of the probabilities `target` against sigmoid(input), computed without overflow."""
def ceil_(input: Tensor) -> Tensor:
    """`Tensor.ceil_`: Rounds up: the smallest integer that is not below x."""
def celu(input: Tensor, alpha: _float = 1.0) -> Tensor:
    """Applies CELU: input where it is positive, else alpha * (exp(input / alpha) - 1), whose slope at 0 is 1."""
def cholesky(input: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """`linalg.cholesky`; raises LinAlgError if a matrix is not positive-definite."""
def cholesky_inverse(input: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverses of L @ L^H, of which L is given; with `upper` those of U^H @ U."""
def cholesky_solve(input: Tensor, input2: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Solves (L @ L^H) @ X = input for X, of which L is `input2`; with `upper` (U^H @ U) @ X = input. Batches
    broadcast."""
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`Tensor.clamp_`: In-place version of `clamp`: writes to the tensor's own memory."""
def clamp_max_(input: Tensor, max: Any) -> Tensor:
    """`Tensor.clamp_max_`: Clamps x from above: x, and `max` where x is above it."""
def clamp_min_(input: Tensor, min: Any) -> Tensor:
    """`Tensor.clamp_min_`: Clamps x from below: x, and `min` where x is below it."""
def clip_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`Tensor.clip_`: In-place version of `clamp`: writes to the tensor's own memory."""
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers of their real and imaginary parts, two tensors of float32 or of float64 that broadcast."""
def conj_physical_(input: Tensor) -> Tensor:
    """`Tensor.conj_physical_`: In-place version of `conj_physical`: writes to the tensor's own memory."""
def cos_(input: Tensor) -> Tensor:
    """`Tensor.cos_`: The cosine of x."""
def cosh_(input: Tensor) -> Tensor:
    """`Tensor.cosh_`: The hyperbolic cosine of x."""
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0, reduction: str = 'mean') -> Tensor:
    """The cosine embedding loss: 1 - c for the cosine c of vectors that are alike (target 1), max(0, c - margin) for
    others (-1)."""
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[_int], target_lengths: Tensor | Sequence[_int], blank: _int = 0, reduction: str = 'mean', zero_infinity: _bool = False) -> Tensor:
    """The connectionist temporal classification loss: the negative logarithm of the probability that steps of class
    probabilities spell a sequence of labels."""
def deg2rad_(input: Tensor) -> Tensor:
    """`Tensor.deg2rad_`: In-place version of `deg2rad`: writes to the tensor's own memory."""
def detach_(input: Tensor) -> Tensor:
    """Drop the tensor's own history."""
def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `detach` gives, which shares no memory with it."""
def diagonal_copy(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `diagonal` gives, which shares no memory with it."""
def dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout as `nn.functional.dropout`, without defaults."""
def dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout in place as `nn.functional.dropout`, without defaults."""
def eig(input: Tensor, *args: Any, **options: Any) -> Any:
    """Removed from PyTorch, as a call says: see `linalg.eig`."""
def embedding(weight: Tensor, indices: Tensor, padding_idx: _int = -1, scale_grad_by_freq: _bool = False, sparse: _bool = False) -> Tensor:
    """`nn.functional.embedding` with the table first, and without padding where padding_idx is no row."""
def empty(*sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: _bool = False, pin_memory: _bool = False, memory_format: Any = ..., layout: Any = None, out: Tensor | None = None) -> Tensor:
    """An uninitialised tensor, whose elements are whatever the memory held (poisoned with NaN in simulation)."""
def erf_(input: Tensor) -> Tensor:
    """`Tensor.erf_`: The error function: 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x."""
def erfc_(input: Tensor) -> Tensor:
    """`Tensor.erfc_`: The complementary error function: 1 - erf(x), exact where erf(x) is close to 1."""
def exp2_(input: Tensor) -> Tensor:
    """`Tensor.exp2_`: 2 to the power x."""
def exp_(input: Tensor) -> Tensor:
    """`Tensor.exp_`: The exponential of each element: e to the power x."""
def expand_copy(input: Tensor, *sizes: Any, size: Any = None, implicit: _bool = False, out: Tensor | None = None) -> Tensor:
    """A copy of what `expand` gives, which shares no memory with it."""
def expm1_(input: Tensor) -> Tensor:
    """`Tensor.expm1_`: exp(x) - 1, exact near 0."""
def eye(n: _int, m: _int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: _bool = False, layout: Any = None, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """A matrix with ones on the diagonal."""
def feature_alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout of whole channels, as `alpha_dropout`, without defaults."""
def feature_alpha_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout in place of whole channels, as `alpha_dropout`, without defaults."""
def feature_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout of whole channels, without defaults."""
def feature_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout in place of whole channels, without defaults."""
def fill_(self: Tensor, value: Any) -> Tensor:
    """`Tensor.fill_`: Write one number to every element."""
def fix_(input: Tensor) -> Tensor:
    """`Tensor.fix_`: Truncates toward zero: x without its fraction."""
def floor_(input: Tensor) -> Tensor:
    """`Tensor.floor_`: Rounds down: the largest integer that is not above x."""
def frac_(input: Tensor) -> Tensor:
    """`Tensor.frac_`: The fractional part of x, with its sign."""
def frobenius_norm(input: Tensor, dim: Any, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """`linalg.vector_norm` along one dimension or two."""
def full(size: Sequence[_int], fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: _bool = False, pin_memory: _bool = False, layout: Any = None, out: Tensor | None = None) -> Tensor:
    """A tensor filled with `fill_value`; unless given, the dtype is the default for that kind of number."""
def gcd_(input: Tensor, other: Any) -> Tensor:
    """`Tensor.gcd_`: The greatest common divisor of x and y, of zeros 0."""
def geqrf(input: Tensor, *, out: Any = None) -> return_types.geqrf:
    """QR without Q: R, below it the vectors of the reflections whose product Q is, and their factors `tau`."""
def get_device(input: Tensor) -> _int:
    """The CUDA ordinal, -1 on the CPU."""
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """`nn.functional.grid_sample` with numbers for modes: bilinear, nearest, bicubic; zeros, border, reflection."""
def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """`nn.functional.grid_sample` with numbers for modes: bilinear, nearest, bicubic; zeros, border, reflection."""
def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """`nn.functional.grid_sample` with numbers for modes: bilinear, nearest, bicubic; zeros, border, reflection."""
def group_norm(input: Tensor, num_groups: _int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05, cudnn_enabled: _bool = True) -> Tensor:
    """`nn.functional.group_norm`; one value per group is not refused."""
def gru(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """The states of all steps of `nn.GRU`, and the last ones of each layer and direction."""
def gru_cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Any:
    """One step of `nn.GRUCell`: the new states."""
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: _float = 1.0, reduction: str = 'mean') -> Tensor:
    """The hinge embedding loss: the distances `input` of pairs that are alike (target 1), max(0, margin - input) of
    others (-1)."""
def i0_(input: Tensor) -> Tensor:
    """`Tensor.i0_`: The modified Bessel function of the first kind and order 0."""
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`linalg.inv`."""
def is_distributed(input: Tensor) -> _bool:
    """False: no tensor is distributed here."""
def is_inference(input: Tensor) -> _bool:
    """False: no tensor is inference here."""
def is_nonzero(input: Tensor) -> _bool:
    """True if the only element is not zero."""
def is_same_size(input: Tensor, other: Tensor) -> _bool:
    """True if both have the same shape."""
def is_signed(input: Tensor) -> _bool:
    """True if the dtype can hold negative numbers."""
def kl_div(input: Tensor, target: Tensor, reduction: Any = 1, *, log_target: _bool = False) -> Tensor:
    """`functional.kl_div` without the mean over rows, and without its warning."""
def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """`Tensor.lcm_`: In-place version of `lcm`: writes to the tensor's own memory."""
def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """`Tensor.ldexp_`: In-place version of `ldexp`: writes to the tensor's own memory."""
def linspace(start: Any, end: Any, steps: _int, *, dtype: Any = None, device: Any = None, requires_grad: _bool = False, layout: Any = None, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """`steps` evenly spaced numbers from `start` to `end`, both included; an integer dtype cuts them to integers."""
def log10_(input: Tensor) -> Tensor:
    """`Tensor.log10_`: The logarithm of x to base 10."""
def log1p_(input: Tensor) -> Tensor:
    """`Tensor.log1p_`: The natural logarithm of 1 + x, exact near 0."""
def log2_(input: Tensor) -> Tensor:
    """`Tensor.log2_`: The logarithm of x to base 2."""
def log_(input: Tensor) -> Tensor:
    """`Tensor.log_`: The natural logarithm of x."""
def logit_(input: Tensor, eps: _float | None = None) -> Tensor:
    """`Tensor.logit_`: In-place version of `logit`: writes to the tensor's own memory."""
def logspace(start: Any, end: Any, steps: _int, base: _float = 10.0, *, dtype: Any = None, device: Any = None, requires_grad: _bool = False, layout: Any = None, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """`steps` powers of `base`, with exponents evenly spaced from `start` to `end`; the errors are those of `linspace`."""
def lstm(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """The states of all steps of `nn.LSTM`, and the last ones of each layer and direction."""
def lstm_cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Any:
    """One step of `nn.LSTMCell`: the new states, and the cells."""
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`linalg.lu_solve(LU_data, LU_pivots, input)`."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: _bool = True, unpack_pivots: _bool = True, *, out: Any = None) -> return_types.lu_unpack:
    """P, L and U of `linalg.lu_factor`; empty those of the data or of the pivots that are not to be unpacked."""
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0, reduction: str = 'mean') -> Tensor:
    """The margin ranking loss, max(0, margin - target * (input1 - input2)): whether the first ranks higher (target 1)
    or the second (-1)."""
def matrix_power(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """`linalg.matrix_power`."""
def max_pool1d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False) -> Tensor:
    """`nn.functional.max_pool1d` without the places of the elements."""
def max_pool1d_with_indices(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False) -> tuple[Tensor, Tensor]:
    """`nn.functional.max_pool1d` with the places of the elements."""
def max_pool2d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False) -> Tensor:
    """`nn.functional.max_pool2d` without the places of the elements."""
def max_pool3d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False) -> Tensor:
    """`nn.functional.max_pool3d` without the places of the elements."""
def multinomial(input: Tensor, num_samples: _int, replacement: _bool = False, *, generator: Any = None, out: Tensor | None = None) -> Tensor:
    """Indices drawn from each row of `input` (1-D or 2-D) with probabilities proportional to its elements."""
def nan_to_num_(input: Tensor, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
    """`Tensor.nan_to_num_`: In-place version of `nan_to_num`: writes to the tensor's own memory."""
def narrow_copy(input: Tensor, dim: _int, start: _int, length: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `narrow` gives, which shares no memory with it."""
def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: _int, C: _int, HxW: _int, group: _int, eps: _float) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm` of (N, C, ...), with the mean of each group and 1 over its deviation."""
def neg_(input: Tensor) -> Tensor:
    """`Tensor.neg_`: The negative of each element: -x."""
def negative_(input: Tensor) -> Tensor:
    """`Tensor.negative_`: The negative of each element: -x."""
def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """Random numbers from normal distributions with these means and standard deviations: tensors, or numbers with a
    `size`."""
def nuclear_norm(input: Tensor, dim: Any = ..., keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """`linalg.matrix_norm` with "nuc"."""
def ones(*sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: _bool = False, pin_memory: _bool = False, layout: Any = None, out: Tensor | None = None) -> Tensor:
    """A tensor filled with ones."""
def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`linalg.householder_product`."""
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: _bool = True, transpose: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Q @ input3, where Q is the square product of all reflections of `geqrf`'s results `input` and `input2`."""
def permute_copy(input: Tensor, *order: Any, dims: Any = None, out: Tensor | None = None) -> Tensor:
    """A copy of what `permute` gives, which shares no memory with it."""
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: _bool = True, full: _bool = False, eps: _float = 1e-08, reduction: str = 'mean') -> Tensor:
    """The negative log likelihood of counts `target` under Poisson distributions."""
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers of their magnitudes and angles; dtypes and errors are those of `complex`."""
def qr(input: Tensor, some: _bool = True, *, out: Any = None) -> return_types.qr:
    """`linalg.qr` with the mode "reduced", or "complete" unless `some`."""
def rad2deg_(input: Tensor) -> Tensor:
    """`Tensor.rad2deg_`: In-place version of `rad2deg`: writes to the tensor's own memory."""
def rand(*sizes: Any, size: Any = None, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: _bool = False, pin_memory: _bool = False, layout: Any = None, out: Tensor | None = None) -> Tensor:
    """Random numbers, uniformly distributed in [0, 1); of a complex dtype both parts are."""
def randint(*bounds: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: _bool = False, low: _int | None = None, high: _int | None = None, size: Any = None, layout: Any = None, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """Random integers from `low` up to, not including, `high`: `randint(high, size)` from 0, `randint(low, high,
    size)`."""
def randn(*sizes: Any, size: Any = None, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: _bool = False, pin_memory: _bool = False, layout: Any = None, out: Tensor | None = None) -> Tensor:
    """Random numbers from the standard normal distribution, complex ones of variance 1; the errors are those of
    `rand`."""
def randperm(n: _int, *, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: _bool = False, pin_memory: _bool = False, layout: Any = None, out: Tensor | None = None) -> Tensor:
    """A random permutation of the integers from 0 to n - 1, made by sorting random keys of 40 bits or more on the host."""
def range(start: Any, end: Any = ..., step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: _bool = False, layout: Any = None, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """Numbers from `start` (0 when one bound is given) up to `end`, included. `arange` takes its place in PyTorch."""
def reciprocal_(input: Tensor) -> Tensor:
    """`Tensor.reciprocal_`: The reciprocal of each element: 1 / x."""
def resize_as_(self: Tensor, other: Tensor, *, memory_format: Any = ...) -> Tensor:
    """`Tensor.resize_as_`: `resize_` to the size of another tensor."""
def rnn_relu(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """The states of all steps of `nn.RNN`, and the last ones of each layer and direction."""
def rnn_relu_cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Any:
    """One step of `nn.RNNCell`: the new states."""
def rnn_tanh(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """The states of all steps of `nn.RNN`, and the last ones of each layer and direction."""
def rnn_tanh_cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Any:
    """One step of `nn.RNNCell`: the new states."""
def round_(input: Tensor, *, decimals: _int = 0) -> Tensor:
    """`Tensor.round_`: In-place version of `round`: writes to the tensor's own memory."""
def rrelu(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, *, generator: Any = None) -> Tensor:
    """Randomized leaky ReLU: input where it is positive, else times a slope; while training one for each element, drawn
    from lower to upper."""
def rsqrt_(input: Tensor) -> Tensor:
    """`Tensor.rsqrt_`: The reciprocal of the square root of each element: 1 / sqrt(x)."""
def select_copy(input: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `select` gives, which shares no memory with it."""
def selu(input: Tensor) -> Tensor:
    """Applies SELU: 1.0507 * input where it is positive, else 1.7581 * (exp(input) - 1): mean 0 and variance 1 are
    kept."""
def sigmoid_(input: Tensor) -> Tensor:
    """`Tensor.sigmoid_`: The logistic sigmoid: 1 / (1 + exp(-x))."""
def sin_(input: Tensor) -> Tensor:
    """`Tensor.sin_`: The sine of x."""
def sinc_(input: Tensor) -> Tensor:
    """`Tensor.sinc_`: sin(pi * x) / (pi * x), and 1 where x is 0."""
def sinh_(input: Tensor) -> Tensor:
    """`Tensor.sinh_`: The hyperbolic sine of x."""
def slice_copy(input: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `slice` gives, which shares no memory with it."""
def slogdet(input: Tensor, *, out: Any = None) -> return_types.slogdet:
    """`linalg.slogdet`."""
def split_copy(input: Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int = 0, *, out: Any = None) -> tuple[Tensor, ...]:
    """A copy of what `split` gives, which shares no memory with it."""
def split_with_sizes_copy(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0, *, out: Any = None) -> tuple[Tensor, ...]:
    """A copy of what `split_with_sizes` gives, which shares no memory with it."""
def sqrt_(input: Tensor) -> Tensor:
    """`Tensor.sqrt_`: The square root of x."""
def square_(input: Tensor) -> Tensor:
    """`Tensor.square_`: The square of each element: x * x."""
def squeeze_copy(input: Tensor, dim: _int | Sequence[_int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `squeeze` gives, which shares no memory with it."""
def svd(input: Tensor, some: _bool = True, compute_uv: _bool = True, *, out: Any = None) -> return_types.svd:
    """U, the singular values, and V, not its adjoint, of U diag(S) V^H: see `linalg.svd`."""
def symeig(input: Tensor, *args: Any, **options: Any) -> Any:
    """Removed from PyTorch, as a call says: see `linalg.eigh`."""
def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `t` gives, which shares no memory with it."""
def tan_(input: Tensor) -> Tensor:
    """`Tensor.tan_`: The tangent of x."""
def tanh_(input: Tensor) -> Tensor:
    """`Tensor.tanh_`: The hyperbolic tangent of x."""
def threshold(input: Tensor, threshold: _float, value: _float, *, out: Tensor | None = None) -> Tensor:
    """Thresholds each element: input where it is above `threshold`, else `value`; both are cut to integers where input
    has them."""
def transpose_copy(input: Tensor, dim0: Any, dim1: Any = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `transpose` gives, which shares no memory with it."""
def triangular_solve(input: Tensor, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: Any = None) -> return_types.triangular_solve:
    """Solves A @ X = input for X, with `transpose` A^T @ X = input; returns a copy of A too: see
    `linalg.solve_triangular`."""
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: _float = 2, eps: _float = 1e-06, swap: _bool = False, reduction: str = 'mean') -> Tensor:
    """The triplet margin loss: max(0, margin + d(anchor, positive) - d(anchor, negative)), where d is the p-norm of the
    difference + eps."""
def trunc_(input: Tensor) -> Tensor:
    """`Tensor.trunc_`: Truncates toward zero: x without its fraction."""
def unbind_copy(input: Tensor, dim: _int = 0, *, out: Any = None) -> tuple[Tensor, ...]:
    """A copy of what `unbind` gives, which shares no memory with it."""
def unfold_copy(input: Tensor, dimension: _int, size: _int, step: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `unfold` gives, which shares no memory with it."""
def unsafe_chunk(input: Tensor, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """`chunk` whose pieces are no views for autograd: do not change them."""
def unsafe_split(input: Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """`split` whose pieces are no views for autograd: do not change them."""
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes` whose pieces are no views for autograd: do not change them."""
def unsqueeze_copy(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `unsqueeze` gives, which shares no memory with it."""
def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `view_as_complex` gives, which shares no memory with it."""
def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `view_as_real` gives, which shares no memory with it."""
def view_copy(input: Tensor, *shape: Any, size: Any = None, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """A copy of what `view` gives, which shares no memory with it."""
def xlogy_(input: Tensor, other: Any) -> Tensor:
    """`Tensor.xlogy_`: x * log(y), and 0 where x is 0, unless y is NaN."""
def zero_(self: Tensor) -> Tensor:
    """`Tensor.zero_`: Write zero to every element."""
def zeros(*sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: _bool = False, pin_memory: _bool = False, layout: Any = None, out: Tensor | None = None) -> Tensor:
    """A tensor filled with zeros."""
