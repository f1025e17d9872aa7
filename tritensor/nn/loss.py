"""Losses as modules."""

from __future__ import annotations

from typing import Any

from ..functional.losses import reduction_of
from ..tensor import Tensor
from .layer import Layer, declared

__all__ = ["BCEWithLogitsLoss", "CrossEntropyLoss", "L1Loss", "MSELoss", "NLLLoss"]


class _Loss:
    """A loss with a reduction: "mean", "sum" or "none".

    PyTorch's older `size_average` and `reduce` are accepted at PyTorch's positions, with a warning.
    """

    reduction: str
    _init_only: tuple[str, ...] = "size_average", "reduce"

    def _prepare(self, size_average: Any, reduce: Any) -> None:
        if not (size_average is reduce is None):
            self.reduction = reduction_of(size_average, reduce, self.reduction)


@declared("mse_loss", shown=())
class MSELoss(_Loss, Layer):
    """The mean (or sum) of the squared differences."""

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declared("l1_loss", shown=())
class L1Loss(_Loss, Layer):
    """The mean (or sum) of the distances."""

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declared("binary_cross_entropy_with_logits", shown=())
class BCEWithLogitsLoss(_Loss, Layer):
    """Cross entropy of probabilities against the sigmoid of the input, computed without overflow.

    Args:
        weight: scales each element's loss.
        size_average: PyTorch's older way to say `reduction`.
        reduce: PyTorch's older way to say `reduction`.
        reduction: "mean", "sum" or "none".
        pos_weight: scales the part that comes from the positive class.
    """

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    pos_weight: Tensor | None = None


@declared("nll_loss", shown=())
class NLLLoss(_Loss, Layer):
    """The negative of the target class's entry, for inputs that are logarithms of probabilities.

    The arguments, and the shapes, are `CrossEntropyLoss`'s.
    """

    weight: Tensor | None = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"


@declared("cross_entropy", shown=())
class CrossEntropyLoss(_Loss, Layer):
    """Softmax over the classes and the negative logarithm of the target class's probability.

    The input is (N, C, ...) or (C,), the target class indices of shape (N, ...) or (), or probabilities of the input's
    shape.

    Args:
        weight: a weight per class.
        size_average: PyTorch's older way to say `reduction`.
        ignore_index: targets of this class add nothing to the loss or the mean.
        reduce: PyTorch's older way to say `reduction`.
        reduction: "mean" (over the targets that are not ignored, by weight), "sum" or "none".
        label_smoothing: the share of the target that is spread over all classes.

    >>> import tritensor as torch
    >>> torch.nn.CrossEntropyLoss()(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor(1.3863)
    """

    weight: Tensor | None = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"
    label_smoothing: float = 0.0
