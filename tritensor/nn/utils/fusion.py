"""Batch norm in evaluation mode as part of the layer before it."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

from ...autograd.mode import no_grad
from ...tensors import Tensor
from ..linear import Linear
from ..module import Module
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

Layer = TypeVar("Layer", bound=Module)


def fuse_conv_bn_eval(conv: Layer, bn: Module, transpose: bool = False) -> Layer:
    """Fuse a convolution and the batch norm `bn` after it into a new convolution; both in evaluation mode.

    Args:
        transpose: the convolution is a transposed one: its outputs are the weight's second dimension.

    Raises:
        AssertionError: a layer is in training mode, or `bn` has no running statistics.
    """
    return _fused(conv, bn, partial(fuse_conv_bn_weights, transpose=transpose))


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Fuse a convolution's weight and bias with a batch norm after it into new ones; dtypes are kept."""
    with no_grad():
        scale = (bn_rv + bn_eps).rsqrt()
        scale = scale if bn_w is None else scale * bn_w
        shift = (-bn_rm if conv_b is None else conv_b - bn_rm) * scale
        shift = shift if bn_b is None else shift + bn_b
        shape = [1] * conv_w.ndim
        shape[1 if transpose else 0] = -1
        weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
        bias = shift.to(conv_w.dtype if conv_b is None else conv_b.dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b is not None and conv_b.requires_grad)


def fuse_linear_bn_eval(linear: Linear, bn: Module) -> Linear:
    """Fuse a linear layer and the batch norm `bn` after it into a new linear layer; both in evaluation mode.

    >>> from tritensor import nn
    >>> nn.utils.fusion.fuse_linear_bn_eval(nn.Linear(3, 2).eval(), nn.BatchNorm1d(2).eval())
    Linear(in_features=3, out_features=2, bias=True)

    Raises:
        AssertionError: a layer is in training mode, `bn` has no running statistics, or sizes do not fit.
    """
    if not (linear.training or bn.training) and bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    return _fused(linear, bn, fuse_linear_bn_weights)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Fuse a linear layer's weight and bias with a batch norm after it into new ones; dtypes are kept."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fused(layer: Layer, bn: Module, fuse: Any) -> Layer:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    made: Any = deepcopy(layer)
    made.weight, made.bias = fuse(made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return made
