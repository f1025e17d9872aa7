"""The nonlinearities of neural networks, with PyTorch's parameters; most accept `inplace=True`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...autograd.gradients import called
from ...errors import DivisionError, DtypeError, ShapeError
from ...ground.arguments import check_tensor
from ...ground.composing import shown_as
from ...ground.public import public
from ...host.scalars import converted, rounded
from ...kernels.elementwise import activations, piecewise
from ...kernels.elementwise import maximum as bounds
from ...kernels.random.philox import dropout as dropout_operator
from ...operators.generators import Generator, generator_of
from ...operators.inplace import in_place
from ...operators.outputs import Into, takes_out
from ...tensors import Tensor
from ...types import dtypes
from ...types.layout import normalize_dim
from ..creation.likeness import empty_like

_SHRUNK = Into("same", "partly")
_quick_relu: Any = activations.relu.method
_quick_silu: Any = activations.silu.method
_GELU: dict[str, Any] = {"none": activations.gelu.method, "tanh": activations.gelu_tanh.method}


def _apply(operator: Callable[..., Tensor], input: Tensor, inplace: bool, **metadata: Any) -> Tensor:
    return in_place(input, operator, **metadata) if inplace else operator(input, **metadata)


@public(guard=False)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Applies the rectified linear unit: input where it is positive, else 0; NaN stays NaN.

    >>> import tritensor as torch
    >>> torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if inplace:
        check_tensor("relu_", "input", 1, input)
        return input.relu_()
    return _quick_relu(input)


@public(package=False)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Applies leaky ReLU: input where it is positive, else negative_slope * input."""
    return _apply(activations.leaky_relu, input, inplace, negative_slope=negative_slope)


@public(package=False)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Exponential linear unit: input where it is positive, else alpha * (exp(input) - 1)."""
    return _apply(activations.elu, input, inplace, alpha=alpha)


@public(package=False)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Applies SELU: 1.0507 * input where positive, else 1.7581 * (exp(input) - 1); keeps mean 0 and variance 1.

    From "Self-normalizing neural networks" (Klambauer and others, 2017).
    """
    return _apply(activations.elu, input, inplace, alpha=1.6732632423543772, scale=1.0507009873554805)


@public(package=False)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Applies CELU: input where it is positive, else alpha * (exp(input / alpha) - 1), whose slope at 0 is 1.

    Raises:
        DivisionError: alpha is 0.
    """
    if alpha == 0:
        raise DivisionError("ZeroDivisionError: alpha cannot be 0 for CELU", remedy="take another alpha")
    made = _apply(activations.elu, input, inplace, alpha=alpha, input_scale=1 / alpha)
    return called("CeluBackward0", made)


@public(package=False, out=takes_out())
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Gaussian error linear unit (GELU): input times its standard normal CDF, or by `approximate="tanh"`.

    >>> import tritensor as torch
    >>> torch.nn.functional.gelu(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])

    Raises:
        ShapeError: another `approximate`.
    """
    operator = _GELU.get(approximate)
    if operator is None:
        raise ShapeError(f"approximate argument must be either none or tanh. It is {approximate!r}")
    return operator(input)


@public(package=False)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Applies SiLU (swish): input * sigmoid(input)."""
    return in_place(input, activations.silu) if inplace else _quick_silu(input)


@public(package=False, out=takes_out())
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Applies softplus: log(1 + exp(beta * input)) / beta, and input itself where beta * input is above threshold."""
    return activations.softplus(input, beta=beta, threshold=threshold)


@public(package=False)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Applies hardtanh: input, clamped to min_val and max_val, which are cut to integers where input has them.

    >>> import tritensor as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-7, 0, 7]), -1.0, 2.5)
    tensor([-1,  0,  2])

    Raises:
        DtypeError: booleans, a bound that the dtype does not hold, or negative ones of an unsigned dtype.
        ValueError: min_val is above max_val.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    kind = input.dtype
    if kind is dtypes.bool_:
        raise DtypeError("Bool inputs not supported for hardtanh", remedy="convert the tensor with .to(dtype)")
    if kind.category == dtypes.INTEGER:
        if not kind.is_signed and min(min_val, max_val) < 0:
            raise DtypeError("cannot do hardtanh on an unsigned type with negative limits")
        min_val, max_val = converted(min_val, kind), converted(max_val, kind)
    made = in_place(input, bounds.hardtanh, min_val, max_val) if inplace else bounds.hardtanh(input, min_val, max_val)
    return called("HardtanhBackward0", made)


@public(package=False)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Applies ReLU6: input, clamped to 0 and 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


@public(package=False, autocast={"cuda": "apart"})
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Applies Mish: input * tanh(softplus(input))."""
    return called("MishBackward0", _apply(lambda x: x * softplus(x).tanh(), input, inplace))


@public(package=False, out=takes_out(), autocast={"cuda": "apart"})
def logsigmoid(input: Tensor) -> Tensor:
    """Applies the logarithm of the sigmoid, computed without overflow."""
    return called("LogSigmoidBackward0", -softplus(-input, threshold=40.0))


@public(package=False)
def softsign(input: Tensor) -> Tensor:
    """Applies softsign: input / (1 + |input|)."""
    return input / (1 + input.abs())


@public(package=False)
def tanhshrink(input: Tensor) -> Tensor:
    """Applies tanhshrink: input - tanh(input)."""
    return input - input.tanh()


@public(package=False)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Applies the hard sigmoid: input / 6 + 1 / 2, held between 0 and 1."""
    return _apply(piecewise.hardsigmoid, input, inplace)


@public(package=False)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Applies hard swish: input * hardsigmoid(input).

    From "Searching for MobileNetV3" (Howard and others, 2019).
    """
    return _apply(piecewise.hardswish, input, inplace)


@public(method=True, out=takes_out(_SHRUNK))
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Applies hard shrinkage: input, and 0 where it lies between -lambd and lambd, or on one of them.

    >>> import tritensor as torch
    >>> torch.nn.functional.hardshrink(torch.tensor([-0.7, 0.5, 0.6]))
    tensor([-0.7000,  0.0000,  0.6000])
    """
    check_tensor("hardshrink", "input", 1, input)
    if input.dtype.is_floating_point:
        lambd = rounded(converted(lambd, input.dtype), input.dtype)
    return piecewise.hardshrink(input, input.detach(), low=-lambd, high=lambd)


@public(package=False, out=takes_out(_SHRUNK))
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Applies soft shrinkage: input, closer to 0 by lambd, and 0 where it would pass it.

    Raises:
        ShapeError: lambd is negative, or the dtype does not hold it.
    """
    check_tensor("softshrink", "input", 1, input)
    most = dtypes.finfo(input.dtype).max if input.dtype.is_floating_point else lambd
    if not 0 <= lambd <= most:
        kind = input.dtype.legacy
        words = f"lambda must be in range [0, {most:g}] for input dtype {kind}, but found {lambd:g}"
        raise ShapeError(words, remedy="pass the distance by which elements are to come closer to 0")
    return piecewise.softshrink(input, lambd=lambd)


@public(package=False, out=takes_out(Into("cast")))
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Thresholds each element: input where above `threshold`, else `value`; both are cut to input's integers.

    >>> import tritensor as torch
    >>> torch.nn.functional.threshold(torch.tensor([1.0, 2.0, 3.0]), 2, 20)
    tensor([20., 20.,  3.])

    Raises:
        DtypeError: booleans, or numbers that the dtype does not hold.
    """
    return _apply(piecewise.threshold, input, inplace, threshold=threshold, value=value)


@public(method=True, autocast={"cpu": "lower", "cuda": "lower"})
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Parametric ReLU (PReLU): input where positive, else times weight: one number, or one per channel, dimension 1.

    Raises:
        ShapeError: weights of more dimensions, or another number of them than of channels. DtypeError: dtypes differ.
    """
    check_tensor("prelu", "input", 1, input)
    check_tensor("prelu", "weight", 2, weight)
    if input.dtype is not weight.dtype:
        raise DtypeError(
            f"prelu: Type promoting not supported. Got {input.dtype.legacy} and {weight.dtype.legacy}",
            remedy="bring them to one dtype with .to(dtype)",
        )
    if weight.ndim > 1:
        raise ShapeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if weight.numel() != 1:
        if not input.ndim:
            raise ShapeError("Not allow zero-dim input tensor.", "there are several weights")
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != weight.numel():
            raise ShapeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()} and channel size = {channels}."
            )
    if input.ndim != weight.ndim:
        weight = weight.reshape((1, -1, *(1,) * (input.ndim - 2)) if input.ndim > 1 else (1,) * input.ndim)
    return piecewise.prelu_kernel(input, weight)


@public(package=False)
def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Randomized leaky ReLU: input where positive, else times a slope, drawn from lower to upper while training.

    Otherwise the slope is the mean of the two. From "Empirical evaluation of rectified activations in convolutional
    network" (Xu and others, 2015).

    Raises:
        ShapeError: the bounds are in the wrong order, or not finite. DtypeError: integers.
    """
    check_tensor("rrelu", "input", 1, input)
    for name, bound in (("lower", lower), ("upper", upper)):
        if not abs(bound) < float("inf"):
            raise ShapeError(f"rrelu: {name} bound must be finite, got {bound:g}")
    if lower > upper:
        raise ShapeError("Lower bound should be less than or equal to the upper bound")
    if not training or not input.dtype.is_floating_point:
        made = _apply(activations.leaky_relu, input, inplace, negative_slope=(lower + upper) / 2)
    else:
        slopes = empty_like(input, requires_grad=False).uniform_(lower, upper, generator=generator)
        made = in_place(input, piecewise.prelu_kernel, slopes) if inplace else piecewise.prelu_kernel(input, slopes)
    return called("RreluWithNoiseBackward0", made)


@public(package=False)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Gated linear unit: the first half of input along `dim`, times the sigmoid of the second.

    From "Language modeling with gated convolutional networks" (Dauphin and others, 2016).

    >>> import tritensor as torch
    >>> torch.nn.functional.glu(torch.tensor([2.0, 3.0, 0.0, 0.0]))
    tensor([1.0000, 1.5000])

    Raises:
        ShapeError: an odd number of elements along `dim`, or no dimension. RangeError: no such dimension.
    """
    check_tensor("glu", "input", 1, input)
    if not input.ndim:
        raise ShapeError("glu does not support scalars because halving size must be even")
    dim = normalize_dim(dim, input.ndim)
    half, odd = divmod(input.shape[dim], 2)
    if odd:
        raise ShapeError(f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}")
    return piecewise.glu(input.narrow(dim, 0, half), input.narrow(dim, half, half))


@public(package=False)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Applies dropout: while training, sets each element to 0 with probability `p` and divides the others by 1 - p.

    The default generator of the input's device selects the elements. Two integers are saved for the gradient, which
    draws the same numbers again.

    >>> import tritensor as torch
    >>> torch.nn.functional.dropout(torch.ones(2, 3), p=0.5, training=False)
    tensor([[1., 1., 1.],
            [1., 1., 1.]])

    Raises:
        ValueError: a probability outside 0 to 1. DtypeError: integers.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    check_tensor("dropout", "input", 1, input)
    if not training or p == 0 or not input._data.size:
        return input
    seed, offset = generator_of(input.device).draw()
    return _apply(dropout_operator, input, inplace, p=p, seed=seed, offset=offset)


def _declare(function: Callable[..., Tensor], inplace: bool, package: bool = True, functional: bool = True) -> None:
    """PyTorch's own form of a function, without `inplace`, or that in place, with another underscore."""

    def call(input: Tensor, *args: Any, **named: Any) -> Tensor:
        return function(input, *args, inplace=inplace, **named)

    name, shown = function.__name__, inspect.signature(function)
    doc = f"In-place version of `{name}`: writes to the tensor's own memory." if inplace else function.__doc__
    left_out = ("inplace", "out") if inplace else ("inplace",)
    parameters = [each for each in shown.parameters.values() if each.name not in left_out]
    shown_as(call, name + "_" * inplace, doc, shown.replace(parameters=parameters))
    public(package=package, functional=functional)(call)


_OF_THE_PACKAGE: list[Any] = [celu, selu, rrelu, threshold]
for _function in _OF_THE_PACKAGE:
    _declare(_function, False, functional=False)
for _function in (*_OF_THE_PACKAGE, relu):
    _declare(_function, True)
for _function in (elu, leaky_relu, hardtanh):
    _declare(_function, True, package=False)
