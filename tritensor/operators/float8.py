"""Operators on float8 tensors: some move elements, a few compute with them in float32, and all others refuse them."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import UnsupportedError
from ..runtime.call import Call
from ..tensors import Tensor
from ..types import dtypes

FLOAT8, _ARRAYS = dtypes.FLOAT8, frozenset(kind.numpy for kind in dtypes.FLOAT8)
# PyTorch's names of kernels in its messages, where they are not made of the operator's
_NAMES = (
    "add=add_stub sub=add_stub mul=mul_cpu_reduced_float pow=pow clamp=clamp_scalar_cpu mean=sum_cpu exp=exp_vml_cpu "
    "sqrt=sqrt_vml_cpu relu=clamp_min_scalar_cpu sigmoid=sigmoid_cpu_reduced_float amax=max_values_cpu largest=max_all "
    "softmax=softmax_lastdim_kernel_impl uniform=check_uniform_bounds normal=normal_kernel_cpu"
)
_KERNELS = dict(pair.split("=") for pair in _NAMES.split())


def refuse_float8(name: str, kind: dtypes.dtype) -> NoReturn:
    """Raise PyTorch's error for an operator that does not take float8."""
    raise UnsupportedError(
        f"\"{_KERNELS.get(name, f'{name}_cpu')}\" not implemented for '{kind.legacy}'",
        "tensors of float8 are stored, moved and converted, and multiplied by torch._scaled_mm",
        remedy="compute in another dtype, as in x.to(torch.float32)",
    )


def takes_float8(call: Call) -> bool:
    """True if an operator takes the float8 operands of a call."""
    kind = call.operator.float8
    return bool(kind) and (kind != "paired" or all(isinstance(value, Tensor) for value in call.inputs))


def computes_float8(call: Call) -> bool:
    """True if a call computes with float8 operands: one that moves elements does beside numbers, and for sums."""
    inputs, moved = call.inputs, call.operator.float8 == "moved" and call.compute in FLOAT8
    if call.operator.float8 == "taken":
        return False
    if moved and not call.metadata.get("accumulate"):
        return not all(x is None or (isinstance(x, Tensor) and x.device is call.device) for x in inputs)
    return any(isinstance(value, Tensor) and value._data.dtype in _ARRAYS for value in inputs)


def through_float32(call: Call) -> Any:
    """The results of a call, which its operator computes from float32 tensors."""
    operator, kind = call.operator, call.results[0]
    wide = [x.to(dtypes.float32) if isinstance(x, Tensor) and x.dtype in FLOAT8 else x for x in call.inputs]
    found = operator(*wide, **call.metadata)
    return found.to(kind) if kind in FLOAT8 else found
