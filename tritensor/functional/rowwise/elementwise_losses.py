"""Losses whose elements are errors of the elements of tensors."""

from __future__ import annotations

import math
from typing import Any

from ...autograd.gradients import called
from ...autograd.mode import no_grad
from ...errors import DtypeError, RangeError, ShapeError, explain, require, warn
from ...ground.public import public
from ...kernels.elementwise import errors
from ...tensors import Tensor
from ...types.dtypes import bool_, dtype
from ..creation.likeness import ones_like
from ..creation.predicates import result_type
from ..elementwise.activations import logsigmoid, softplus
from .reduced import OTHER_SIZE, check_both, check_floating, loss, reduced, reduction_named, reduction_of


def _weighted(input: Tensor, values: Tensor, weight: Tensor | None) -> Any:
    _check_weight(input, weight)
    return values if weight is None else (values * weight, weight)


def _check_weight(input: Tensor, weight: Tensor | None) -> None:
    if weight is not None and weight.shape != input.shape:
        raise ValueError(
            explain("Weights and input must have the same size.", f"they have {weight.shape} and {input.shape}")
        )


def _numeric(target: Tensor, input: Tensor) -> Tensor:
    """The target; for booleans zeros and ones, whose differences and negatives there are."""
    return target.to(input.dtype) if target.dtype is bool_ and input.dtype is not bool_ else target


def _check_result(result: dtype, wanted: dtype) -> None:
    """Raise where PyTorch, which computes in memory of the wanted dtype, finds that it is too narrow."""
    if wanted.category < result.category:
        words = f"result type {result.legacy} can't be cast to the desired output type {wanted.legacy}"
        raise DtypeError(words, remedy="convert the tensor with .to(dtype)")


@loss(autocast={"cpu": "float32", "cuda": "float32"})
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The mean squared error loss: the mean (or sum) of the squared differences, weighted by `weight` if that is given.

    >>> import tritensor as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(2.)
    """
    check_both("mse_loss", input, target)
    values = errors.squared_error(input, _numeric(target, input))
    return _weighted(input, called("MseLossBackward0", values), weight)


@loss(autocast={"cpu": "float32", "cuda": "float32"})
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The mean absolute error (L1) loss: the mean (or sum) of |input - target|; the arguments are `mse_loss`'s."""
    check_both("l1_loss", input, target)
    return _weighted(input, _distances(input, target), weight)


def _distances(input: Tensor, target: Tensor) -> Tensor:
    if result_type(input, target).is_floating_point and bool_ not in (input.dtype, target.dtype):
        return errors.absolute_error(input, target)
    return (input - target).abs()


@loss(autocast={"cpu": "float32", "cuda": "float32"})
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """The smooth L1 loss of distances d: d * d / (2 * beta) up to `beta`, beyond it d - beta / 2.

    Raises:
        RuntimeError: a negative beta, or shapes that do not broadcast. UnsupportedError: dtypes that are not floating.
    """
    check_both("smooth_l1_loss", input, target)
    if beta < 0:
        raise ShapeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return _distances(input, target)
    check_floating("smooth_l1_cpu", input, target)
    return called("SmoothL1LossBackward0", errors.bent_error(input, _numeric(target, input), bend=float(beta)))


@loss(legacy=False, autocast={"cpu": "float32", "cuda": "float32"})
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """The Huber loss of distances d: d * d / 2 up to `delta`, beyond it delta * (d - delta / 2).

    The mean is not divided by a weight.

    Raises:
        RuntimeError: a delta that is not positive, or shapes that do not broadcast. ValueError: a weight of another
        shape. UnsupportedError: dtypes that are not floating.
    """
    check_both("huber_loss", input, target)
    if delta <= 0:
        raise ShapeError("huber_loss does not support non-positive values for delta.")
    check_floating("huber_cpu", input, target)
    _check_result(result_type(input, target), input.dtype)
    _check_weight(input, weight)
    values = errors.bent_error(input, _numeric(target, input), bend=float(delta), slope=float(delta))
    values = called("HuberLossBackward0", values.to(input.dtype))
    return values if weight is None else values * weight


@loss(autocast={"cpu": "float32", "cuda": "banned"})
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The binary cross entropy (BCE) loss between probabilities `input` and `target`; logarithms are -100 at least.

    Raises:
        RuntimeError: an input that is not from 0 to 1; on a CUDA device the kernel asserts it. ValueError: the shapes
        differ. DtypeError: dtypes that differ, or are not floating.
    """
    if input.shape != target.shape:
        raise ValueError(OTHER_SIZE.format(target.shape, input.shape, " is deprecated."))
    check_floating("binary_cross_entropy", input)
    if target.dtype is not input.dtype:
        raise DtypeError(
            f"Found dtype {target.dtype.legacy} but expected {input.dtype.legacy}",
            "input and target have one dtype",
            remedy="convert the target with .to(input.dtype)",
        )
    values = errors.share_error(input, target)
    values = values if weight is None else (values * weight).to(input.dtype)
    return called("BinaryCrossEntropyBackward0", values)


@loss(package="input target weight pos_weight reduction", autocast={"cpu": "float32", "cuda": "float32"})
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross entropy loss with logits: sigmoid(input) against `target`, without overflow.

    Args:
        weight: scales each element's loss; broadcast to the input's shape.
        pos_weight: scales the part of the loss that comes from the positive class.

    Raises:
        ValueError: the shapes differ. DtypeError: a target that is not floating, whose dtype the losses have.
    """
    if input.shape != target.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    check_floating("log_sigmoid_cpu", input)
    _check_result(input.dtype, (1 - target if target.dtype is bool_ else target).dtype)  # a difference refuses booleans
    if pos_weight is None:
        values = errors.logit_error(input, target)
    else:
        values = errors.weighted_logit_error(input, target, pos_weight)
    values = values if weight is None else values * weight
    return called("BinaryCrossEntropyWithLogitsBackward0", values.to(target.dtype))


@public(package=False, autocast={"cpu": "float32", "cuda": "float32"})
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence of the probabilities `target` from those whose logarithms are `input`.

    Args:
        reduction: "batchmean", the sum over the number of rows, which is its definition; "mean", over all elements,
            with a warning; "sum" or "none".
        log_target: `target` is of logarithms, too.
    """
    if reduction == "mean" and size_average is reduce is None:
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release."
        )
    by_rows = reduction == "batchmean" and size_average is reduce is None
    how = "sum" if by_rows else reduction_named(reduction_of(size_average, reduce, reduction))
    found = _kl_div(input, target, how, log_target=log_target)
    return found / input.shape[0] if by_rows and input.ndim else found


def _kl_div(input: Tensor, target: Tensor, reduction: Any = 1, *, log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence loss: `nn.functional.kl_div` without the mean over rows and its warning."""
    if not (input.dtype.is_floating_point and target.dtype.is_floating_point):
        raise DtypeError("kl_div: Integral inputs not supported.")
    if log_target:
        return reduced(target.exp() * (target - input), reduction)
    values = errors.divergence(input, target)
    return called("SubBackward0", values) if reduction in (0, "none") else reduced(values, reduction)


_kl_div.__name__ = "kl_div"
public(functional=False, autocast={"cpu": "float32", "cuda": "float32"})(_kl_div)


@loss(package="input target log_input full eps reduction", autocast={"cpu": "float32", "cuda": "float32"})
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """The Poisson negative log likelihood loss, of counts `target`.

    Args:
        input: the distributions' means, or with `log_input` their logarithms.
        full: add Stirling's approximation of log(target!) where the target is above 1.
        eps: added to means before their logarithm is taken.
    """
    values = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        values = (values + stirling.masked_fill(target <= 1, 0)).to(values.dtype)
    return values


@loss(legacy=False, refused="{} is not valid")
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The Gaussian negative log likelihood loss: normal distributions of mean `input` and variance `var`.

    Args:
        var: of the input's shape, or of one in which one dimension is 1 or the last is missing; or a number.
        full: add the constant, log(2 * pi) / 2.
        eps: the least variance; the gradient is that without the bound.

    Raises:
        ValueError: a negative variance, which on a CUDA device is waited for, or one of another shape.
    """
    if (var < 0) if isinstance(var, float) else (var < 0).any():
        raise ValueError("var has negative entry/entries")
    variance: Tensor = var * ones_like(input) if isinstance(var, float) else var
    sizes, other = input.shape, variance.shape
    if other != sizes:
        if sizes[:-1] == other:
            variance = variance.unsqueeze(-1)
        elif len(sizes) != len(other) or sum(y for x, y in zip(sizes, other) if x != y) != 1:
            raise ValueError(explain("var is of incorrect size", f"{other} for an input of {sizes}"))
    variance = variance.clone()
    with no_grad():
        variance.clamp_(min=eps)
    values = 0.5 * (variance.log() + (input - target) ** 2 / variance)
    return values + 0.5 * math.log(2 * math.pi) if full else values


@loss(autocast={"cpu": "float32", "cuda": "float32"})
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The soft margin (logistic) loss: log(1 + exp(-target * input)) for targets of 1 and -1."""
    _check_result(result_type(input, target), input.dtype)
    values = softplus(-input * _numeric(target, input), threshold=math.inf)
    return called("SoftMarginLossBackward0", values.to(input.dtype))


@loss(refused="{} is not valid")
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The multi-label soft margin loss: the mean binary cross entropy of sigmoid(input) over the last dimension."""
    values = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        values = values * weight
    require(input.ndim, RangeError, "Dimension specified as -1 but tensor has no dimensions")
    return values.sum(-1) / input.shape[-1]
