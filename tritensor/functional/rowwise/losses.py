"""Losses under PyTorch's names."""

from __future__ import annotations

from typing import Any

from ...autograd.gradients import called
from ...errors import DtypeError, RangeError, ShapeError, explain, require
from ...ground.arguments import check_tensor
from ...ground.public import public
from ...kernels.rowwise import losses
from ...kernels.rowwise.family import log_softmax
from ...kernels.rowwise.loss_gradient import cross_entropy_with_gradient, gradient_wanted
from ...tensors import Tensor
from ...types.layout import normalize_dim
from ..views.view_operators import standing_alone
from .reduced import reduction_named, reduction_of


@public(package=False, autocast={"cpu": "float32", "cuda": "float32"})
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy loss of logits: the negative logarithm of the target class's probability in softmax(input).

    >>> import tritensor as torch
    >>> torch.nn.functional.cross_entropy(torch.tensor([[2., 0.], [0., 2.]]), torch.tensor([0, 1]))
    tensor(0.1269)

    Args:
        input: scores, (C,), (N, C) or (N, C, d1, ...), floating.
        target: class indices of shape (), (N,) or (N, d1, ...), int64 or uint8; or of the input's shape and floating,
            the probability of each class.
        weight: one per class, of the input's dtype.
        ignore_index: targets with this class index are ignored.
        reduction: "mean" (over the targets that are not ignored, by weight), "sum" or "none".
        label_smoothing: the part of the target that is spread over all classes, 0 to 1.

    Raises:
        RangeError: a class index out of bounds (on a CUDA device the kernel asserts, see `kernels/rowwise/losses.py`).
        ValueError: shapes that do not fit together, an unknown reduction. DtypeError: dtypes that do not.
    """
    # the quick path handles no targets below 0, so a negative ignore_index does not matter there
    if (
        size_average is None
        and reduce is None
        and weight is None
        and reduction != "none"
        and label_smoothing == 0.0
        and ignore_index < 0
    ):
        quick = losses.quick_cross_entropy(input, target, reduction)
        if quick is not None:
            return quick
    reduction = reduction_named(reduction_of(size_average, reduce, reduction))
    _check_scores("cross_entropy", input, target)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ShapeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    shape = input.shape
    if shape == target.shape:
        return _against_probabilities(input, target, weight, reduction, label_smoothing)
    if input.ndim == 0:
        normalize_dim(1, 0)
    log_softmax.rule("log_softmax", [input])
    rows, targets, back = _as_rows(input, target)
    _check_weight(weight, rows.shape[1])
    operator = cross_entropy_with_gradient if gradient_wanted(rows, reduction) else losses.cross_entropy
    loss = operator(
        rows, targets, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=float(label_smoothing)
    )[0]
    return _at_targets(loss, back, reduction, input.ndim)


def _check_scores(name: str, input: Tensor, target: Tensor) -> None:
    check_tensor(name, "input", 1, input)
    check_tensor(name, "target", 2, target)


def _check_weight(weight: Tensor | None, classes: int) -> None:
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight "
            f"tensor of shape: {list(weight.shape)}"
        )


def _as_rows(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """Scores as (N, C), class indices as (N,), and the shape of the loss per target."""
    shape, wanted = input.shape, target.shape
    if len(shape) == 1:
        losses.check_target_dtype(target)
        if target.numel() != 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.numel()}")
        return input.unsqueeze(0), target.reshape(1), tuple(wanted)
    if (len(wanted) > 0 and shape[0] != wanted[0]) or len(wanted) == 0:
        found = wanted[0] if len(wanted) else 1
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({found}).")
    if len(shape) == 2:
        if len(wanted) != 1:
            raise ShapeError(
                "0D or 1D target tensor expected, multi-target not supported", f"the target has shape {tuple(wanted)}"
            )
        losses.check_target_dtype(target)
        return input, target, tuple(wanted)
    if wanted != shape[:1] + shape[2:]:
        raise ShapeError(f"Expected target size {[shape[0], *shape[2:]]}, got {list(wanted)}")
    losses.check_target_dtype(target)
    return input.movedim(1, -1).flatten(0, -2), target.reshape(-1), tuple(wanted)


def _at_targets(loss: Tensor, shape: tuple[int, ...], reduction: str, ndim: int) -> Tensor:
    """The loss, one for each target in the targets' shape; PyTorch has an operator of its own for pictures."""
    if reduction == "none":
        return standing_alone(loss.reshape(shape), "nll_loss2d" if ndim > 2 else "nll_loss")
    return called("NllLoss2DBackward0", loss) if ndim > 2 else loss


def _against_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float
) -> Tensor:
    """Cross entropy where the target is a probability for each class."""
    if not target.dtype.is_floating_point:
        raise DtypeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.legacy}",
            f"target has the shape of input, {tuple(input.shape)}",
            remedy="convert the target with .float(); or pass class indices, without the class dimension",
        )
    require(input.ndim != 0, RangeError, "Dimension specified as 1 but tensor has no dimensions")
    dim = 0 if input.ndim == 1 else 1
    classes = input.shape[dim]
    _check_weight(weight, classes)
    if smoothing:
        target = target * (1 - smoothing) + smoothing / max(classes, 1)
    logs = log_softmax(input, dim=dim)
    if weight is not None:
        logs = logs * weight.reshape(-1, *(1,) * (input.ndim - dim - 1))
    values = logs * target
    if reduction == "none":
        return -values.sum(dim)
    total = -values.sum()
    return total / (input.numel() // max(classes, 1)) if reduction == "mean" else total


@public(package=False)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood loss: minus the target class's entry in `input`, which holds log-probabilities.

    Shapes, weights and errors are `cross_entropy`'s.
    """
    reduction = reduction_named(reduction_of(size_average, reduce, reduction))
    _check_scores("nll_loss", input, target)
    if input.ndim == 0:
        raise ValueError(explain("Expected 1 or more dimensions (got 0)", "the last but those of pixels is of classes"))
    rows, targets, back = _as_rows(input, target)
    _check_weight(weight, rows.shape[1])
    loss = losses.nll_loss(rows, targets, weight, ignore_index=ignore_index, reduction=reduction)[0]
    return _at_targets(loss, back, reduction, input.ndim)
