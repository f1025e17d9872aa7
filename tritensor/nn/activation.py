"""Elementwise nonlinearities and softmax as modules."""

from __future__ import annotations

from .. import functional as F
from ..functional.creation.creation import full
from ..tensors import Tensor
from ..types import Device, Dtype
from . import init as initial
from .layer import Layer, declared
from .module import Module
from .parameter import Parameter

__all__ = ["CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU"]
__all__ += ["SELU", "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax"]
__all__ += ["Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold"]


@declared("relu")
class ReLU(Layer):
    """Applies the rectified linear unit: `max(x, 0)`."""

    inplace: bool = False


@declared("silu")
class SiLU(Layer):
    """Applies SiLU (swish): `x * sigmoid(x)`."""

    inplace: bool = False


@declared("mish")
class Mish(Layer):
    """Applies Mish: `x * tanh(softplus(x))`."""

    inplace: bool = False


@declared("leaky_relu")
class LeakyReLU(Layer):
    """Applies leaky ReLU: `x` where positive, `negative_slope * x` elsewhere."""

    negative_slope: float = 0.01
    inplace: bool = False


@declared("elu")
class ELU(Layer):
    """Applies the exponential linear unit: `x` where positive, `alpha * (exp(x) - 1)` elsewhere."""

    alpha: float = 1.0
    inplace: bool = False


@declared("celu")
class CELU(Layer):
    """Applies CELU: `x` where positive, `alpha * (exp(x / alpha) - 1)` elsewhere, whose slope at 0 is 1."""

    alpha: float = 1.0
    inplace: bool = False


@declared("selu")
class SELU(Layer):
    """Applies SELU: `1.0507 * x` where positive, `1.7581 * (exp(x) - 1)` elsewhere: mean 0 and variance 1 are kept."""

    inplace: bool = False


@declared("hardsigmoid", shown=())
class Hardsigmoid(Layer):
    """Applies the hard sigmoid: `x / 6 + 1 / 2`, held between 0 and 1."""

    inplace: bool = False


@declared("hardswish", shown=())
class Hardswish(Layer):
    """Applies hard swish: `x * hardsigmoid(x)`."""

    inplace: bool = False


class _Shrink(Layer):
    def extra_repr(self) -> str:
        """The bound."""
        return str(self.lambd)


@declared("hardshrink")
class Hardshrink(_Shrink):
    """Applies hard shrinkage: `x`, and 0 where it lies between `-lambd` and `lambd`, or on one of them."""

    lambd: float = 0.5


@declared("softshrink")
class Softshrink(_Shrink):
    """Applies soft shrinkage: `x`, closer to 0 by `lambd`, and 0 where it would pass it."""

    lambd: float = 0.5


@declared("threshold")
class Threshold(Layer):
    """Thresholds each element: `x` where it is above `threshold`, else `value`."""

    threshold: float
    value: float
    inplace: bool = False


@declared("rrelu")
class RReLU(Layer):
    """Applies randomized leaky ReLU: `x` where positive, else times a slope, drawn at random in training."""

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False


class PReLU(Module):
    """Applies parametric ReLU (PReLU): `x` where positive, else times a learned slope, for all or for each channel.

    >>> import tritensor as torch
    >>> torch.nn.PReLU()(torch.tensor([-4.0, 2.0]))
    tensor([-1.,  2.], grad_fn=<PreluKernelBackward0>)
    """

    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Device = None, dtype: Dtype = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(full((num_parameters,), init, device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Set every slope to `init`."""
        initial.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"


@declared("glu")
class GLU(Layer):
    """Applies the gated linear unit: the first half of `x` along `dim`, times the sigmoid of the second."""

    dim: int = -1


@declared("hardtanh")
class Hardtanh(Layer):
    """Applies hardtanh: `x`, held between `min_val` and `max_val`.

    Raises:
        AssertionError: `max_val` is not above `min_val`.
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False

    def _prepare(self) -> None:
        if not self.max_val > self.min_val:
            raise AssertionError(f"max_val must be larger than min_val, got {self.max_val} and {self.min_val}")


class ReLU6(Hardtanh):
    """Applies ReLU6: `x`, held between 0 and 6."""

    _shown = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


@declared("gelu")
class GELU(Layer):
    """Applies the Gaussian error linear unit (GELU): `x` times its standard normal CDF, or by `approximate="tanh"`."""

    approximate: str = "none"


@declared("softplus")
class Softplus(Layer):
    """Applies softplus: `log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` is above `threshold`."""

    beta: float = 1.0
    threshold: float = 20.0


@declared("sigmoid")
class Sigmoid(Layer):
    """Applies the logistic sigmoid: `1 / (1 + exp(-x))`."""


@declared("tanh")
class Tanh(Layer):
    """Applies the hyperbolic tangent."""


@declared("tanhshrink")
class Tanhshrink(Layer):
    """Applies tanhshrink: `x - tanh(x)`."""


@declared("logsigmoid")
class LogSigmoid(Layer):
    """Applies the logarithm of the sigmoid, computed without overflow."""


@declared("softsign")
class Softsign(Layer):
    """Applies softsign: `x / (1 + |x|)`."""


@declared("softmax")
class Softmax(Layer):
    """Applies softmax: exp(x), scaled to add up to 1 along `dim`; without it, PyTorch's old choice and its warning."""

    dim: int | None = None


@declared("log_softmax")
class LogSoftmax(Layer):
    """Applies the logarithm of softmax along `dim`, computed without overflow; without it as for `Softmax`."""

    dim: int | None = None


@declared("softmin")
class Softmin(Layer):
    """Applies softmin: exp(-x), scaled to add up to 1 along `dim`; without it as for `Softmax`."""

    dim: int | None = None


class Softmax2d(Module):
    """Applies softmax over the channels of pictures (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: an input of other dimensions.
    """

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)
