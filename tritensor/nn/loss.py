"""Losses as modules."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ..functional.losses import reduction_of
from ..tensor import Tensor
from .module import Module

__all__ = ["BCEWithLogitsLoss", "CrossEntropyLoss", "L1Loss", "MSELoss", "NLLLoss"]


class _Loss(Module):
    """A loss with a reduction: "mean", "sum" or "none".

    PyTorch's older `size_average` and `reduce` are accepted at PyTorch's positions, with a warning.
    """

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)


class MSELoss(_Loss):
    """The mean (or sum) of the squared differences."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A scalar; with `reduction="none"` the differences' shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """The mean (or sum) of the distances."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A scalar; with `reduction="none"` the distances' shape."""
        return F.l1_loss(input, target, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Cross entropy of probabilities against the sigmoid of the input, computed without overflow.

    Args:
        weight: scales each element's loss.
        size_average: PyTorch's older way to say `reduction`.
        reduce: PyTorch's older way to say `reduction`.
        reduction: "mean", "sum" or "none".
        pos_weight: scales the part that comes from the positive class.
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A scalar; with `reduction="none"` the input's shape."""
        return F.binary_cross_entropy_with_logits(
            input, target, weight=self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class NLLLoss(_Loss):
    """The negative of the target class's entry, for inputs that are logarithms of probabilities.

    The arguments are `CrossEntropyLoss`'s.
    """

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """`input` (N, C, ...) or (C,); `target` class indices of shape (N, ...) or ()."""
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_Loss):
    """Softmax over the classes and the negative logarithm of the target class's probability.

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

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """`input` (N, C, ...) or (C,); `target` class indices of shape (N, ...) or (), or probabilities of input's
        shape."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )
