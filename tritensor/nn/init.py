"""Initialize parameters, in place and not recorded by autograd.

Every random function takes a `generator`, and the same seed gives the same values on every device.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..autograd.mode import no_grad
from ..errors import require, warn
from ..functional.creation.creation import empty, from_numpy
from ..functional.creation.likeness import empty_like
from ..operators.generators import Generator
from ..tensors import Tensor
from ..types.dtypes import float64

__all__ = ["calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_"]
__all__ += ["orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_"]
# the older names
__all__ += ["constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal", "sparse"]
__all__ += ["uniform", "xavier_normal", "xavier_uniform"]

_GAINS = {
    **dict.fromkeys(
        ["linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"],
        1.0,
    ),
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor by which the standard deviation of weights grows for the nonlinearity that follows them.

    >>> calculate_gain("leaky_relu", 0.0) == calculate_gain("relu")
    True

    Raises:
        ValueError: an unknown nonlinearity, or a `param` (leaky_relu's slope) that is no number.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    require(nonlinearity in _GAINS, ValueError, "Unsupported nonlinearity {}", nonlinearity)
    return _GAINS[nonlinearity]


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the uniform distribution between `a` and `b`."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the normal distribution."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on the diagonal and zeros elsewhere.

    Raises:
        ValueError: the tensor is no matrix.
    """
    require(tensor.ndim == 2, ValueError, "Only tensors with 2 dimensions are supported")
    return tensor.copy_(from_numpy(np.eye(*tensor.shape)))


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight so that each group of channels passes its inputs on, as many as there are outputs.

    >>> import tritensor as torch
    >>> dirac_(torch.empty(2, 1, 3), groups=2).tolist()
    [[[0.0, 1.0, 0.0]], [[0.0, 1.0, 0.0]]]

    Raises:
        ValueError: not 3, 4 or 5 dimensions, or `groups` does not divide the first.
    """
    require(tensor.ndim in (3, 4, 5), ValueError, "Only tensors with 3, 4, or 5 dimensions are supported")
    require(not tensor.shape[0] % groups, ValueError, "dim 0 must be divisible by groups")
    each = tensor.shape[0] // groups
    tensor.zero_()
    centre = tuple([size // 2 for size in tensor.shape[2:]])
    for group in range(groups):
        for channel in range(min(each, tensor.shape[1])):
            tensor[(group * each + channel, channel, *centre)] = 1
    return tensor


@no_grad()
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Draw from the normal distribution cut off at `a` and `b`: values outside are drawn again."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect."
        )

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    if below(b) - below(a) > 0.3:

        def draw(out: Tensor) -> Tensor:
            out.normal_(mean, std, generator=generator)
            return (out < a) | (out > b)

    else:
        # Few normal draws would fall between the bounds: draw uniformly, and keep a value with a probability of its
        # density divided by the highest density between the bounds.
        peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
        chance = empty_like(tensor)

        def draw(out: Tensor) -> Tensor:
            out.uniform_(a, b, generator=generator)
            density = ((out - mean) / std).square() * -0.5 - peak
            return chance.uniform_(generator=generator).log() > density

    return _drawn_until_accepted(tensor, draw)


def _drawn_until_accepted(tensor: Tensor, draw: Callable[[Tensor], Tensor]) -> Tensor:
    """Fill with draws; `draw(out)` fills `out` and returns a mask of the values to be drawn again."""
    if tensor.is_meta:
        return tensor
    refused = draw(tensor)
    again = empty_like(tensor)
    while bool(refused.any()):
        refused_again = draw(again)
        tensor.copy_(again.where(refused, tensor))
        refused = refused & refused_again
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode.lower()} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode.lower() == "fan_out"]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw uniformly with the variance gain^2 * 2 / (fan_in + fan_out), by Glorot and Bengio (2010).

    Raises:
        ValueError: fewer than two dimensions.
    """
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the normal distribution with the variance of `xavier_uniform_`."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """The standard deviation gain / sqrt(fan); None, after a warning, for a tensor without elements."""
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Draw uniformly with the variance gain^2 / fan, by He et al. (2015).

    Args:
        tensor: shape (fan_out, fan_in, ...).
        a: the slope of the leaky_relu that follows.
        mode: "fan_in" keeps the variance of the forward pass, "fan_out" that of the backward pass.
        nonlinearity: what follows; see `calculate_gain`.
        generator: what to draw from.

    Raises:
        ValueError: fewer than two dimensions, or an unknown mode or nonlinearity.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Draw from the normal distribution with the variance of `kaiming_uniform_`."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix times `gain`, by Saxe et al. (2013); trailing dimensions count as columns.

    The factorisation runs on the host in float64, whatever the tensor's device and dtype.

    Raises:
        ValueError: fewer than two dimensions.
    """
    require(tensor.ndim >= 2, ValueError, "Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    draws = empty(rows, columns, dtype=float64, device=tensor.device).normal_(0, 1, generator=generator).cpu().numpy()
    q, r = np.linalg.qr(draws.T if rows < columns else draws)
    # with the signs of r's diagonal the result is uniform among orthogonal matrices (Mezzadri 2006)
    q = q * np.sign(np.diag(r))
    matrix = np.ascontiguousarray(q.T if rows < columns else q) * gain
    return tensor.copy_(from_numpy(matrix.reshape(tensor.shape)))


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Draw a matrix from the normal distribution and set the share `sparsity` of each column to zero.

    Raises:
        ValueError: the tensor is no matrix.
    """
    require(tensor.ndim == 2, ValueError, "Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, columns = tensor.shape
    tensor.normal_(0, std, generator=generator)
    # the rows with the smallest draws of a column are the first ones of a random permutation
    draws = empty(rows, columns, dtype=float64, device=tensor.device).uniform_(generator=generator).cpu().numpy()
    zeroed = draws.argsort(axis=0).argsort(axis=0) < math.ceil(sparsity * rows)
    return tensor.masked_fill_(from_numpy(zeroed).to(tensor.device), 0)


def deprecated(function: Callable[..., Tensor], place: str = "nn.init") -> Callable[..., Tensor]:
    """PyTorch's older name of a function, without the underscore, which warns."""
    older = function.__name__[:-1]

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`{place}.{older}` is now deprecated in favor of `{place}.{function.__name__}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    call.__name__ = older
    call.__doc__ = f"The older name of `{function.__name__}`; warns."
    return call


constant, dirac, eye, sparse = map(deprecated, (constant_, dirac_, eye_, sparse_))  # type: ignore[arg-type]
kaiming_normal, kaiming_uniform = map(deprecated, (kaiming_normal_, kaiming_uniform_))
normal, orthogonal, uniform = map(deprecated, (normal_, orthogonal_, uniform_))  # type: ignore[arg-type]
xavier_normal, xavier_uniform = map(deprecated, (xavier_normal_, xavier_uniform_))
# PyTorch's private names, which programs import.
_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_
_no_grad_fill_, _no_grad_zero_ = constant_, zeros_
