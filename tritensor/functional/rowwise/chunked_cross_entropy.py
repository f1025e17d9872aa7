"""Cross entropy of scores that a linear layer computes, without holding the scores of all rows at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...autograd import grad as gradients_of
from ...autograd.mode import recording
from ...errors import ShapeError, require, warn
from ...ground.public import public
from ...kernels.rowwise.losses import cross_entropy as of_rows
from ...kernels.rowwise.losses import cross_entropy_backward
from ...operators.function import Function
from ...tensors import Tensor
from ...types.dtypes import int64
from ..creation.likeness import ones_like
from ..matmul.linear_algebra import linear
from ..views.joining import cat, stack
from .losses import cross_entropy

_FEWEST = 64  # rows of a product: with fewer the weight is read for little work


def rows_of_chunk(rows: int, features: int, classes: int, factor: int = 1) -> int:
    """So many rows that their scores take about the memory of all inputs, divided by `factor`; PyTorch's rule."""
    target = -(-rows // max(-(-classes // max(features, 1)), 1))
    return max(min((1 << max(target - 1, 0).bit_length()) // factor, rows), 1)


@public(package=False)
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Linear layer and cross entropy loss in one, `cross_entropy(linear(input, ...), target)`, by chunks of rows.

    Of class indices never more scores are in memory than a chunk has; the gradients of a reduced loss are computed with
    them. A second gradient holds all scores, and so does a loss against probabilities or of several dimensions.

    Args:
        input: (N, in_features), or (in_features,).
        linear_weight: (C, in_features), or (C, d1, ..., in_features) for a loss of several dimensions.
        linear_bias: of the weight's shape without its last dimension.
        target, weight, reduction, ignore_index, label_smoothing: `cross_entropy`'s.
        options: `nn.LinearCrossEntropyOptions`, which say how many rows a chunk has.

    Raises:
        ShapeError: shapes that do not fit together. RangeError: a target that is no class.
    """
    require(1 <= input.ndim <= 2, ShapeError, "expected input with dimensionality 1 or 2, got {}", input.ndim)
    if linear_weight.ndim < 2:
        raise ShapeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}")
    shape, features = tuple(linear_weight.shape[:-1]), input.shape[-1]
    if features != linear_weight.shape[-1]:
        raise ShapeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {features} and {linear_weight.shape[-1]}, respectively"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != shape:
        raise ShapeError(f"expected linear_bias shape {shape}, got {tuple(linear_bias.shape)}")
    if len(shape) > 1 and input.ndim == 1:
        raise ShapeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    scores_shape = (*input.shape[:-1], *shape)
    if tuple(target.shape) == scores_shape and ignore_index is not None:
        raise ShapeError("ignore_index cannot be specified when target contains probabilities")
    more = {"ignore_index": -100 if ignore_index is None else ignore_index, "label_smoothing": float(label_smoothing)}
    parts = input, linear_weight, linear_bias, weight, target
    good = reduction in ("mean", "sum", "none") and target.dtype is int64 and tuple(target.shape) == input.shape[:-1]
    if good and input.ndim == 2 and len(shape) == 1 and 0 <= label_smoothing <= 1:
        sizes = input.shape[0], features, shape[0]
        rows = max(rows_of_chunk(*sizes), _FEWEST) if options is None else options.rows(*sizes)
        if rows < sizes[0] and (weight is None or tuple(weight.shape) == shape):
            how = {**more, "reduction": reduction}
            return _InChunks.apply(*parts, how, rows, bool(recording.enabled))
        if options is not None and weight is not None:  # as chunks, which neither have a gradient by it nor refuse it
            parts = *parts[:3], weight.detach(), target
    elif options is not None and input.ndim == 2:
        warn(f"linear_cross_entropy: ``options`` ignored; chunks need class indices and one dimension, got {shape}")
    return _at_once(parts, {**more, "reduction": reduction})


def _at_once(parts: Sequence[Any], how: dict[str, Any]) -> Tensor:
    """All scores in memory."""
    input, linear_weight, bias, weight, target = parts
    shape = linear_weight.shape[:-1]
    if len(shape) > 1:
        linear_weight = linear_weight.reshape(math.prod(shape), -1)
        bias = None if bias is None else bias.reshape(-1)
    scores = linear(input, linear_weight, bias).reshape(*input.shape[:-1], *shape)
    return cross_entropy(scores, target, weight, **how)


class _InChunks(Function):
    """The loss by chunks, and with a reduced one the gradients but for the factor of the loss's own."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *parts, how, rows, recorded = arguments
        ctx.save_for_backward(*parts)
        ctx.how, ctx.rows, needs = how, rows, ctx.needs_input_grad[:3]
        once = recorded and any(needs) and how["reduction"] != "none"
        found, ctx.total, ctx.changes = _chunks(parts, how, rows, needs, ones_like(parts[0][0, 0]) if once else None)
        return (found / ctx.total if how["reduction"] == "mean" else found).to(parts[0].dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        parts, needs = ctx.saved_tensors, ctx.needs_input_grad[:3]
        if recording.enabled:
            wanted = [each for each, needed in zip(parts, needs) if needed]
            found = iter(gradients_of(_at_once(parts, ctx.how), wanted, grad, create_graph=True))
            changes = [next(found) if needed else None for needed in needs]
        elif ctx.how["reduction"] == "none":
            changes = _chunks(parts, ctx.how, ctx.rows, needs, grad)[2]
        else:
            scale = grad / ctx.total if ctx.how["reduction"] == "mean" else grad
            changes = [each if each is None else each * scale for each in ctx.changes]
        return *(each if each is None else each.to(part.dtype) for each, part in zip(changes, parts)), *[None] * 5


def _chunks(
    parts: Sequence[Any], how: dict[str, Any], rows: int, needs: Sequence[bool], grad: Tensor | None
) -> tuple[Tensor, Tensor, list[Any]]:
    """The losses, summed unless they are not reduced, their divisor in a mean, and the gradients where `grad` is not
    None: of the sum or of each row."""
    input, linear_weight, bias, weight, target = parts
    how = {**how, "reduction": "none" if how["reduction"] == "none" else "sum"}
    found: list[Tensor] = []
    totals: list[Tensor] = []
    of_input: list[Tensor] = []
    sums: list[Any] = [None, None]
    for first in range(0, input.shape[0], rows):
        x, classes = input[first : first + rows], target[first : first + rows]
        scores = linear(x, linear_weight, bias)
        loss, total, lse = of_rows(scores, classes, weight, **{**how, "reduction": "none"})
        found.append(loss)
        totals.append(total)
        if grad is None:
            continue
        own = grad[first : first + rows] if grad.ndim else grad
        change = cross_entropy_backward(own, scores, classes, weight, total, lse, **how)
        if needs[0]:
            of_input.append(change @ linear_weight)
        for position, part in enumerate((change.T @ x if needs[1] else None, change.sum(0) if needs[2] else None)):
            if part is not None:
                part, whole = part.to(total.dtype), sums[position]
                sums[position] = part if whole is None else whole.add_(part)
    losses = cat(found)
    losses = losses if how["reduction"] == "none" else losses.to(totals[0].dtype).sum()
    return losses, stack(totals).sum(), [cat(of_input) if of_input else None, *sums]
