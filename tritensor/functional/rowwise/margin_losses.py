"""Losses by margins: of pairs, of triplets, and of the scores of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd.gradients import called
from ...errors import DtypeError, ShapeError, require
from ...ground.arguments import check_tensor
from ...kernels.elementwise.arithmetic import where
from ...kernels.indexing.family import check_bounds
from ...tensors import Tensor
from ...types.dtypes import int64
from ..creation.likeness import zeros_like
from ..creation.ranges import arange
from ..matmul.distances import pairwise_distance
from .reduced import check_floating, loss, reduction_named


@loss(package="input target margin reduction", autocast={"cpu": "float32", "cuda": "float32"})
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """The hinge embedding loss: `input`, distances of pairs, for target 1; max(0, margin - input) for target -1."""
    zeros = zeros_like(input)
    return where(target != 1, (margin - input).clamp_min(0), zeros) + where(target != -1, input, zeros)


@loss(package="input1 input2 target margin reduction", autocast={"cpu": "float32", "cuda": "float32"})
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean"
) -> Tensor:
    """The margin ranking loss, max(0, margin - target * (input1 - input2)): target 1 ranks input1 higher, -1 input2.

    Raises:
        ShapeError: the tensors differ in their number of dimensions.
    """
    if not input1.ndim == input2.ndim == target.ndim:
        sizes = f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        raise ShapeError(f"margin_ranking_loss : All input tensors should have same dimension but got sizes: {sizes}")
    return (-target * (input1 - input2) + margin).clamp_min(0)


@loss(package="input1 input2 target margin reduction", autocast={"cpu": "float32", "cuda": "float32"})
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean"
) -> Tensor:
    """The cosine embedding loss, of the cosine c of vectors: 1 - c for target 1, max(0, c - margin) for target -1.

    Inputs are (N, D) for a target of shape (N,), (D,) for one of shape (); others raise ShapeError.
    """
    require(target.ndim <= 1, ShapeError, "0D or 1D target tensor expected, multi-target not supported")
    if not input1.ndim == input2.ndim == target.ndim + 1:
        raise ShapeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    lengths = ((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)
    cosine = (input1 * input2).sum(-1) / lengths.sqrt()
    zeros = zeros_like(cosine)
    return where(target == 1, 1 - cosine, zeros) + where(target == -1, (cosine - margin).clamp_min(0), zeros)


@loss(package="anchor positive negative margin p eps swap reduction", autocast={"cpu": "float32", "cuda": "float32"})
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """The triplet margin loss: max(0, margin + d(anchor, positive) - d(anchor, negative)), d the p-norm of distances.

    With `swap` d(positive, negative) is used where it is smaller. Vectors are the last dimension.

    Raises:
        ValueError: a margin that is not positive. ShapeError: tensors that differ in their number of dimensions, or do
        not broadcast.
    """
    return _triplets(anchor, positive, negative, margin, swap, lambda x1, x2: pairwise_distance(x1, x2, p, eps))


@loss(legacy=False)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """The triplet margin loss with any function of two tensors as the distance; see `triplet_margin_loss`."""
    return _triplets(anchor, positive, negative, margin, swap, distance_function or pairwise_distance)


def _triplets(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, swap: bool, distance: Any) -> Tensor:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return (margin + near - far).clamp_min(0)


@loss(autocast={"cpu": "float32", "cuda": "float32"})
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The multi-class margin loss: the mean over other classes of max(0, margin - target's score + class's) ** p.

    Args:
        input, target: scores (N, C) and class indices (N,), int64, or (C,) and ().
        weight: scales the losses of a class's targets, (C,).

    Raises:
        ValueError: a p that is not 1 or 2, or a weight of more dimensions. ShapeError: shapes that do not fit, or a
        target that is no class. DtypeError: dtypes that do not fit.
    """
    require(p in (1, 2), ValueError, "only p == 1 and p == 2 supported")
    require(weight is None or weight.ndim == 1, ValueError, "weight must be one-dimensional")
    rows = _score_rows(input, reduction)
    if target.ndim > 1 or target.numel() != rows.shape[0]:
        raise ShapeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{rows.shape[0]}], but got {list(target.shape)}. Input has shape "
            f"{list(input.shape)}."
        )
    if weight is not None and weight.shape != rows.shape[1:]:
        raise ShapeError(f"inconsistent weight size, expected {rows.shape[1]} but got {list(weight.shape)}")
    _check_labels("multi_margin_loss", input, target, 0, "target out of range")
    own = target.reshape(-1, 1)
    values = (margin - rows.gather(1, own) + rows).relu()  # which has no gradient at 0, as in PyTorch
    values = where(_classes(rows) == own, 0, values * values if p == 2 else values).sum(1)
    values = values.reshape(target.shape) / rows.shape[1]
    if weight is not None:
        _one_kind(rows.dtype, weight.dtype)
        values = values * weight.index_select(0, own.reshape(-1)).reshape(target.shape)
    return called("MultiMarginLossBackward0", _of_rows(values, reduction))


@loss(autocast={"cpu": "float32", "cuda": "float32"})
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The multi-label margin loss: sums max(0, 1 - label's score + other class's) over pairs, over the classes' number.

    Args:
        input, target: scores, (N, C) or (C,), and class indices, int64: a row's labels are those before the first -1.

    Raises:
        ShapeError: shapes that do not fit, or a label that is no class. DtypeError: dtypes that do not fit.
    """
    rows = _score_rows(input, reduction)
    if target.shape != input.shape:
        raise ShapeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    _check_labels("multilabel_margin_loss_forward_out_frame", input, target, -1, "argument #2 'target' is out of range")
    labels = target.reshape(rows.shape)
    counts = (labels < 0).cumsum(1) == 0
    if labels.device.type == "cpu":  # a device would be waited for
        most = int(counts.sum(1).max()) if labels.shape[0] else 0
        labels, counts = labels[:, :most], counts[:, :most]
    labels = where(counts, labels, 0)
    positions = where(counts, labels, rows.shape[1])  # those that do not count are beyond the classes
    others = (positions.unsqueeze(2) != _classes(rows)).all(1)
    pairs = (1 - rows.gather(1, labels).unsqueeze(2) + rows.unsqueeze(1)).relu()
    values = (
        where(counts.unsqueeze(2) & others.unsqueeze(1), pairs, 0).sum((1, 2)).reshape(input.shape[:-1]) / rows.shape[1]
    )
    return called("MultilabelMarginLossBackward0", _of_rows(values, reduction))


def _score_rows(input: Tensor, reduction: str) -> Tensor:
    """Scores as (N, C), after a check of the reduction, which PyTorch has before those of tensors."""
    reduction_named(reduction)
    check_tensor("loss", "input", 1, input)
    if input.ndim > 2 or 0 in input.shape[-1:]:
        words = "Expected non-empty vector or matrix with optional 0-dim batch size, but got:"
        raise ShapeError(f"{words} {list(input.shape)}")
    return input if input.ndim == 2 else input.reshape(1, -1)


def _classes(rows: Tensor) -> Tensor:
    return arange(rows.shape[1], device=rows.device)


def _check_labels(kernel: str, input: Tensor, target: Tensor, lowest: int, words: str) -> None:
    """Raise unless scores are floating and targets int64, and for those that are no classes."""
    check_floating(kernel, input)
    _one_kind(int64, target.dtype)
    check_bounds(target, input.shape[-1] if input.ndim else 1, 0, lowest, words, ShapeError)


def _one_kind(wanted: Any, found: Any) -> None:
    if found is not wanted:
        raise DtypeError(f"expected scalar type {wanted.legacy} but found {found.legacy}")


def _of_rows(values: Tensor, reduction: str) -> Tensor:
    """The losses of rows; of no rows at all the mean is 0, as in PyTorch."""
    return values if values.numel() or reduction == "none" else values.sum()
