"""The type stub of the package, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from builtins import float as _float
from builtins import str as _str

from . import accelerator as accelerator
from . import amp as amp
from . import array_api as array_api
from . import autograd as autograd
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
from . import special as special
from . import testing as testing
from . import utils as utils
from . import version as version
from . import vision as vision
from .autocasting import autocast as autocast
from .autocasting import autocast_decrement_nesting as autocast_decrement_nesting
from .autocasting import autocast_increment_nesting as autocast_increment_nesting
from .autocasting import clear_autocast_cache as clear_autocast_cache
from .autocasting import get_autocast_dtype as get_autocast_dtype
from .autocasting import is_autocast_cache_enabled as is_autocast_cache_enabled
from .autocasting import is_autocast_enabled as is_autocast_enabled
from .autocasting import set_autocast_cache_enabled as set_autocast_cache_enabled
from .autocasting import set_autocast_dtype as set_autocast_dtype
from .autocasting import set_autocast_enabled as set_autocast_enabled
from .autograd.mode import enable_grad as enable_grad
from .autograd.mode import inference_mode as inference_mode
from .autograd.mode import is_grad_enabled as is_grad_enabled
from .autograd.mode import is_inference_mode_enabled as is_inference_mode_enabled
from .autograd.mode import no_grad as no_grad
from .autograd.mode import set_grad_enabled as set_grad_enabled
from .compiler import compile as compile
from .devices import device as device
from .devices import get_default_device as get_default_device
from .devices import set_default_device as set_default_device
from .drawing import plot as plot
from .dtypes import bfloat16 as bfloat16
from .dtypes import bool_ as bool
from .dtypes import complex128 as cdouble
from .dtypes import complex128 as complex128
from .dtypes import complex64 as cfloat
from .dtypes import complex64 as complex64
from .dtypes import dtype as dtype
from .dtypes import finfo as finfo
from .dtypes import float16 as float16
from .dtypes import float16 as half
from .dtypes import float32 as float
from .dtypes import float32 as float32
from .dtypes import float64 as double
from .dtypes import float64 as float64
from .dtypes import get_default_dtype as get_default_dtype
from .dtypes import iinfo as iinfo
from .dtypes import int16 as int16
from .dtypes import int16 as short
from .dtypes import int32 as int
from .dtypes import int32 as int32
from .dtypes import int64 as int64
from .dtypes import int64 as long
from .dtypes import int8 as int8
from .dtypes import promote_types as promote_types
from .dtypes import set_default_dtype as set_default_dtype
from .dtypes import uint16 as uint16
from .dtypes import uint32 as uint32
from .dtypes import uint64 as uint64
from .dtypes import uint8 as uint8
from .errors import OutOfMemoryError as OutOfMemoryError
from .formats import channels_last as channels_last
from .formats import channels_last_3d as channels_last_3d
from .formats import contiguous_format as contiguous_format
from .formats import memory_format as memory_format
from .formats import preserve_format as preserve_format
from .formats import strided as strided
from .func import vmap as vmap
from .functional import _abs_ as abs_
from .functional import _acos_ as acos_
from .functional import _acosh_ as acosh_
from .functional import _adaptive_max_pool1d as adaptive_max_pool1d
from .functional import _addmv_ as addmv_
from .functional import _alias_copy as alias_copy
from .functional import _alpha_dropout as alpha_dropout
from .functional import _alpha_dropout_ as alpha_dropout_
from .functional import _arange as arange
from .functional import _arccos_ as arccos_
from .functional import _arccosh_ as arccosh_
from .functional import _arcsin_ as arcsin_
from .functional import _arcsinh_ as arcsinh_
from .functional import _arctan_ as arctan_
from .functional import _arctanh_ as arctanh_
from .functional import _as_strided_ as as_strided_
from .functional import _as_strided_copy as as_strided_copy
from .functional import _asin_ as asin_
from .functional import _asinh_ as asinh_
from .functional import _atan_ as atan_
from .functional import _atanh_ as atanh_
from .functional import _atleast_1d as atleast_1d
from .functional import _atleast_2d as atleast_2d
from .functional import _atleast_3d as atleast_3d
from .functional import _bernoulli as bernoulli
from .functional import _binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .functional import _ceil_ as ceil_
from .functional import _celu as celu
from .functional import _cholesky as cholesky
from .functional import _cholesky_inverse as cholesky_inverse
from .functional import _cholesky_solve as cholesky_solve
from .functional import _clamp_ as clamp_
from .functional import _clamp_max_ as clamp_max_
from .functional import _clamp_min_ as clamp_min_
from .functional import _clip_ as clip_
from .functional import _complex as complex
from .functional import _conj_physical_ as conj_physical_
from .functional import _cos_ as cos_
from .functional import _cosh_ as cosh_
from .functional import _cosine_embedding_loss as cosine_embedding_loss
from .functional import _ctc_loss as ctc_loss
from .functional import _deg2rad_ as deg2rad_
from .functional import _detach_ as detach_
from .functional import _detach_copy as detach_copy
from .functional import _diagonal_copy as diagonal_copy
from .functional import _dropout as dropout
from .functional import _dropout_ as dropout_
from .functional import _eig as eig
from .functional import _embedding as embedding
from .functional import _empty as empty
from .functional import _erf_ as erf_
from .functional import _erfc_ as erfc_
from .functional import _exp2_ as exp2_
from .functional import _exp_ as exp_
from .functional import _expand_copy as expand_copy
from .functional import _expm1_ as expm1_
from .functional import _eye as eye
from .functional import _feature_alpha_dropout as feature_alpha_dropout
from .functional import _feature_alpha_dropout_ as feature_alpha_dropout_
from .functional import _feature_dropout as feature_dropout
from .functional import _feature_dropout_ as feature_dropout_
from .functional import _fill_ as fill_
from .functional import _fix_ as fix_
from .functional import _floor_ as floor_
from .functional import _frac_ as frac_
from .functional import _frobenius_norm as frobenius_norm
from .functional import _full as full
from .functional import _gcd_ as gcd_
from .functional import _geqrf as geqrf
from .functional import _get_device as get_device
from .functional import _grid_sampler as grid_sampler
from .functional import _grid_sampler_2d as grid_sampler_2d
from .functional import _grid_sampler_3d as grid_sampler_3d
from .functional import _group_norm as group_norm
from .functional import _gru as gru
from .functional import _gru_cell as gru_cell
from .functional import _hinge_embedding_loss as hinge_embedding_loss
from .functional import _i0_ as i0_
from .functional import _inverse as inverse
from .functional import _is_distributed as is_distributed
from .functional import _is_inference as is_inference
from .functional import _is_nonzero as is_nonzero
from .functional import _is_same_size as is_same_size
from .functional import _is_signed as is_signed
from .functional import _kl_div as kl_div
from .functional import _lcm_ as lcm_
from .functional import _ldexp_ as ldexp_
from .functional import _linspace as linspace
from .functional import _log10_ as log10_
from .functional import _log1p_ as log1p_
from .functional import _log2_ as log2_
from .functional import _log_ as log_
from .functional import _logit_ as logit_
from .functional import _logspace as logspace
from .functional import _lstm as lstm
from .functional import _lstm_cell as lstm_cell
from .functional import _lu_solve as lu_solve
from .functional import _lu_unpack as lu_unpack
from .functional import _margin_ranking_loss as margin_ranking_loss
from .functional import _matrix_power as matrix_power
from .functional import _max_pool1d as max_pool1d
from .functional import _max_pool1d_with_indices as max_pool1d_with_indices
from .functional import _max_pool2d as max_pool2d
from .functional import _max_pool3d as max_pool3d
from .functional import _multinomial as multinomial
from .functional import _nan_to_num_ as nan_to_num_
from .functional import _narrow_copy as narrow_copy
from .functional import _native_group_norm as native_group_norm
from .functional import _neg_ as neg_
from .functional import _negative_ as negative_
from .functional import _normal as normal
from .functional import _nuclear_norm as nuclear_norm
from .functional import _ones as ones
from .functional import _orgqr as orgqr
from .functional import _ormqr as ormqr
from .functional import _permute_copy as permute_copy
from .functional import _poisson_nll_loss as poisson_nll_loss
from .functional import _polar as polar
from .functional import _qr as qr
from .functional import _rad2deg_ as rad2deg_
from .functional import _rand as rand
from .functional import _randint as randint
from .functional import _randn as randn
from .functional import _randperm as randperm
from .functional import _range as range
from .functional import _reciprocal_ as reciprocal_
from .functional import _resize_as_ as resize_as_
from .functional import _rnn_relu as rnn_relu
from .functional import _rnn_relu_cell as rnn_relu_cell
from .functional import _rnn_tanh as rnn_tanh
from .functional import _rnn_tanh_cell as rnn_tanh_cell
from .functional import _round_ as round_
from .functional import _rrelu as rrelu
from .functional import _rsqrt_ as rsqrt_
from .functional import _segment_reduce as _segment_reduce
from .functional import _select_copy as select_copy
from .functional import _selu as selu
from .functional import _sigmoid_ as sigmoid_
from .functional import _sin_ as sin_
from .functional import _sinc_ as sinc_
from .functional import _sinh_ as sinh_
from .functional import _slice_copy as slice_copy
from .functional import _slogdet as slogdet
from .functional import _split_copy as split_copy
from .functional import _split_with_sizes_copy as split_with_sizes_copy
from .functional import _sqrt_ as sqrt_
from .functional import _square_ as square_
from .functional import _squeeze_copy as squeeze_copy
from .functional import _svd as svd
from .functional import _symeig as symeig
from .functional import _t_copy as t_copy
from .functional import _tan_ as tan_
from .functional import _tanh_ as tanh_
from .functional import _threshold as threshold
from .functional import _transpose_copy as transpose_copy
from .functional import _triangular_solve as triangular_solve
from .functional import _triplet_margin_loss as triplet_margin_loss
from .functional import _trunc_ as trunc_
from .functional import _unbind_copy as unbind_copy
from .functional import _unfold_copy as unfold_copy
from .functional import _unsafe_chunk as unsafe_chunk
from .functional import _unsafe_masked_index as _unsafe_masked_index
from .functional import _unsafe_masked_index_put_accumulate as _unsafe_masked_index_put_accumulate
from .functional import _unsafe_split as unsafe_split
from .functional import _unsafe_split_with_sizes as unsafe_split_with_sizes
from .functional import _unsqueeze_copy as unsqueeze_copy
from .functional import _view_as_complex_copy as view_as_complex_copy
from .functional import _view_as_real_copy as view_as_real_copy
from .functional import _view_copy as view_copy
from .functional import _xlogy_ as xlogy_
from .functional import _zero_ as zero_
from .functional import _zeros as zeros
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
from .functional.channel_normalization import _batch_norm as batch_norm
from .functional.channel_normalization import _instance_norm as instance_norm
from .functional.channel_normalization import _native_batch_norm as native_batch_norm
from .functional.complex_views import imag as imag
from .functional.complex_views import real as real
from .functional.complex_views import view_as_complex as view_as_complex
from .functional.complex_views import view_as_real as view_as_real
from .functional.creation import as_tensor as as_tensor
from .functional.creation import asarray as asarray
from .functional.creation import from_numpy as from_numpy
from .functional.creation import scalar_tensor as scalar_tensor
from .functional.creation import tensor as tensor
from .functional.diagonals import tril_indices as tril_indices
from .functional.diagonals import triu_indices as triu_indices
from .functional.dropouts import native_dropout as native_dropout
from .functional.exchange import from_dlpack as from_dlpack
from .functional.exchange import to_dlpack as to_dlpack
from .functional.likeness import empty_like as empty_like
from .functional.likeness import full_like as full_like
from .functional.likeness import ones_like as ones_like
from .functional.likeness import zeros_like as zeros_like
from .functional.memory_of import empty_permuted as empty_permuted
from .functional.memory_of import empty_strided as empty_strided
from .functional.memory_of import frombuffer as frombuffer
from .functional.native import affine_grid_generator as affine_grid_generator
from .functional.native import constant_pad_nd as constant_pad_nd
from .functional.native import convolution as convolution
from .functional.native import norm_except_dim as norm_except_dim
from .functional.normalization import native_layer_norm as native_layer_norm
from .functional.powers import rsub as rsub
from .functional.predicates import typename as typename
from .functional.softmax import log_softmax as log_softmax
from .functional.softmax import softmax as softmax
from .functional.spectral import istft as istft
from .functional.spectral import stft as stft
from .functional.tensor_types import BFloat16Tensor as BFloat16Tensor
from .functional.tensor_types import BoolTensor as BoolTensor
from .functional.tensor_types import ByteTensor as ByteTensor
from .functional.tensor_types import CharTensor as CharTensor
from .functional.tensor_types import DoubleTensor as DoubleTensor
from .functional.tensor_types import FloatTensor as FloatTensor
from .functional.tensor_types import HalfTensor as HalfTensor
from .functional.tensor_types import IntTensor as IntTensor
from .functional.tensor_types import LongTensor as LongTensor
from .functional.tensor_types import ShortTensor as ShortTensor
from .functional.tensor_types import set_default_tensor_type as set_default_tensor_type
from .functional.transfer import fill as fill
from .functional.views import adjoint as adjoint
from .functional.views import broadcast_tensors as broadcast_tensors
from .functional.views import broadcast_to as broadcast_to
from .functional.views import chunk as chunk
from .functional.views import flatten as flatten
from .functional.views import movedim as moveaxis
from .functional.views import movedim as movedim
from .functional.views import narrow as narrow
from .functional.views import permute as permute
from .functional.views import reshape as reshape
from .functional.views import select as select
from .functional.views import split as split
from .functional.views import squeeze as squeeze
from .functional.views import t as t
from .functional.views import transpose as swapaxes
from .functional.views import transpose as swapdims
from .functional.views import transpose as transpose
from .functional.views import unbind as unbind
from .functional.views import unflatten as unflatten
from .functional.views import unsqueeze as unsqueeze
from .functional.windows import bartlett_window as bartlett_window
from .functional.windows import blackman_window as blackman_window
from .functional.windows import hamming_window as hamming_window
from .functional.windows import hann_window as hann_window
from .functional.windows import kaiser_window as kaiser_window
from .generators import Generator as Generator
from .generators import default_generator as default_generator
from .generators import fork_rng as fork_rng
from .generators import get_rng_state as get_rng_state
from .generators import initial_seed as initial_seed
from .generators import manual_seed as manual_seed
from .generators import seed as seed
from .generators import set_rng_state as set_rng_state
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
from .printing import set_printoptions as set_printoptions
from .random import rand_like as rand_like
from .random import randint_like as randint_like
from .random import randn_like as randn_like
from .sampling import binomial as binomial
from .sampling import poisson as poisson
from .serialization import load as load
from .serialization import save as save
from .size import Size as Size
from .tensor import Tensor as Tensor
from .tensor import is_tensor as is_tensor
from .threads import get_num_threads as get_num_threads
from .threads import set_num_threads as set_num_threads

__version__: _str
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
