"""A call of every function that takes `out`, for the tests that derive their cases from these functions."""

from __future__ import annotations

import inspect
from typing import Any

from tritensor.ground import public

# What the calls find: in terms that PyTorch and tritensor share. Results of x and p are defined for every function.
OPERANDS = {
    "x": "torch.tensor([[0.5, 0.25], [0.75, 1.0]])",
    "y": "torch.tensor([[2.0, 0.5], [1.0, 4.0]])",
    "v": "torch.tensor([1.0, 2.0])",
    "i": "torch.tensor([[0, 1], [1, 0]])",
    "m": "torch.tensor([[True, False], [True, True]])",
    "p": "torch.tensor([[0.25, 0.75], [0.5, 0.5]])",
    "u": "torch.tensor([[1.5, 2.25], [1.0, 3.0]])",
}

ONE = """
abs absolute acos arccos asin asinh arcsin arcsinh atan arctan ceil cos cosh erf erfc exp exp2 expm1 fix floor frac log
log10 log1p log2 neg negative reciprocal round rsqrt sgn sigmoid sign sin sinh sqrt square tan tanh trunc nan_to_num
logical_not tril triu isnan isinf isfinite gelu softplus logsigmoid hardshrink softshrink digamma erfinv i0 lgamma
sinc signbit isposinf isneginf angle deg2rad rad2deg conj_physical logit
"""
TWO = """
add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow atan2 arctan2 fmax fmin maximum
minimum hypot logaddexp logaddexp2 copysign nextafter heaviside xlogy ldexp float_power igamma igammac
eq ne ge gt le lt greater greater_equal less less_equal not_equal logical_and logical_or
logical_xor matmul mm linear
"""
BITS = "gcd lcm bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
ALONG = "all any amax amin argmax argmin mean sum nansum prod std var logsumexp cumsum max min softmax log_softmax"
ALONG += " cumprod cummax cummin logcumsumexp median nanmedian nanmean"
LISTS = "cat concat concatenate stack hstack vstack dstack column_stack row_stack"

CALLS: dict[str, str] = {
    **dict.fromkeys(ONE.split(), "x"),
    **dict.fromkeys(TWO.split(), "x, y"),
    **dict.fromkeys(BITS.split(), "i, i"),
    **dict.fromkeys(ALONG.split(), "x, 0"),
    **dict.fromkeys(LISTS.split(), "[x, y]"),
    **dict.fromkeys(("acosh", "arccosh"), "u"),
    **dict.fromkeys(("atanh", "arctanh"), "p"),
    **dict.fromkeys(("dot", "inner", "outer", "ger", "vdot", "kron"), "v, v"),
    **dict.fromkeys(("gather", "scatter", "scatter_add"), "x, 0, i"),
    **dict.fromkeys(("index_select", "index_add", "index_copy"), "x, 0, i[0]"),
    **dict.fromkeys(("empty", "ones", "zeros", "rand", "randn"), "(2, 2)"),
    "bitwise_not": "i",
    "addcdiv": "x, x, y",
    "addcmul": "x, x, y",
    "addmm": "x, x, y",
    "lerp": "x, y, 0.5",
    "bmm": "x[None], y[None]",
    **dict.fromkeys(("dsmm", "spmm"), "x, y"),
    "addmv": "v, x, v",
    "addr": "x, v, v",
    "addbmm": "x, x[None], y[None]",
    "baddbmm": "x, x[None], y[None]",
    "tensordot": "x, y, 1",
    "cross": "torch.ones(2, 3), torch.ones(2, 3), 1",
    "complex": "x, y",
    "polar": "x, y",
    "frexp": "x",
    "renorm": "x, 2, 0, 1",
    "mv": "x, v",
    "mvlgamma": "x, 1",
    "polygamma": "1, x",
    "threshold": "x, 0.5, 2.0",
    "clamp": "x, 0.5, 0.75",
    "clip": "x, 0.5",
    "clamp_max": "x, 0.5",
    "clamp_min": "x, 0.5",
    "where": "m, x, y",
    "norm": "x",
    **dict.fromkeys(("aminmax", "histc", "mode", "msort"), "x"),
    "kthvalue": "x, 1",
    "histogram": "x, 2",
    "isin": "i, i",
    "searchsorted": "v, v",
    "bucketize": "x, v",
    **dict.fromkeys(("quantile", "nanquantile"), "x, 0.5"),
    "sort": "x",
    "topk": "x, 1",
    "nonzero": "m",
    "masked_select": "x, m",
    "take": "x, i",
    "take_along_dim": "x, i, 0",
    "arange": "4",
    "linspace": "0, 1, 4",
    "logspace": "0, 1, 4",
    "eye": "2",
    "full": "(2, 2), 3",
    "randint": "5, (2, 2)",
    "randperm": "4",
    "normal": "x, y",
    "bernoulli": "p",
    "multinomial": "p, 1",
    **dict.fromkeys(("qr", "svd", "geqrf", "lu"), "x"),
    "cholesky": "y",
    **dict.fromkeys(("inverse", "slogdet", "cholesky_inverse", "nuclear_norm"), "x"),
    **dict.fromkeys(("cholesky_solve", "triangular_solve"), "x, y"),
    "matrix_power": "x, 3",
    "frobenius_norm": "x, 1",
    "lu_unpack": "x, (i[0] + 1).int()",
    "lu_solve": "x, y, (i[0] + 1).int()",
    "orgqr": "x, v",
    "ormqr": "x, v, y",
}
COPIES = {
    "x": "alias_copy detach_copy squeeze_copy t_copy unbind_copy diag diagonal_copy diff",
    "x, 0, 0": "select_copy",
    "x, 0": "slice_copy unsqueeze_copy",
    "x, 0, 1": "transpose_copy",
    "x, (1, 0)": "permute_copy",
    "x, 1": "split_copy",
    "x, (1, 1), 1": "split_with_sizes_copy",
    "x, (2, 2), (1, 1)": "as_strided_copy",
    "x, 0, 0, 1": "narrow_copy",
    "y": "view_as_complex_copy",
    "x + 1j": "view_as_real_copy",
    "x, 0, 2, 1": "unfold_copy",
    "x, (-1,)": "view_copy",
    "x, (2, *x.shape)": "expand_copy",
    "x, x[:1], 0, 0, 1": "slice_scatter",
}
CALLS |= {
    "nonzero_static": "m, size=2",
    "scatter_reduce": "x, 0, i, y, 'sum'",
    "index_reduce": "x, 0, i[0], y, 'prod'",
}
CALLS |= {name: call for call, names in COPIES.items() for name in names.split()}
for name in ("scatter", "scatter_add", "index_add", "index_copy"):
    CALLS[name] += ", y"

# Functions whose results differ from call to call, or mean nothing.
RANDOM = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "empty"}


def functions() -> dict[str, Any]:
    """The public functions that take `out`, by name."""
    found = {**public.FUNCTIONAL, **public.PACKAGE}
    takes = {name: value for name, value in found.items() if callable(value) and not inspect.isclass(value)}
    for name in ("range", "chain_matmul"):  # which warn that they are deprecated; other tests call them
        del takes[name]
    return {name: value for name, value in takes.items() if "out" in inspect.signature(value).parameters}
