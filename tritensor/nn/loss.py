"""Losses as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, require
from ..functional.rowwise.reduced import reduction_of
from ..tensors import Tensor
from .distance import PairwiseDistance
from .layer import Layer, declared

__all__ = ["BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss"]
__all__ += ["HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss"]
__all__ += ["MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss"]
__all__ += ["SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss"]
__all__ += ["TripletMarginWithDistanceLoss"]


class _Reducing:
    """A loss with a reduction: "mean", "sum" or "none".

    PyTorch's older `size_average` and `reduce` are accepted at PyTorch's positions, with a warning.
    """

    reduction: str
    _init_only: tuple[str, ...] = "size_average", "reduce"

    def _prepare(self, size_average: Any, reduce: bool | None) -> None:
        if not (size_average is reduce is None):
            self.reduction = reduction_of(size_average, reduce, self.reduction)


@declared()
class _Loss(_Reducing, Layer):
    """A loss whose constructor begins with the reduction."""

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declared()
class _WeightedLoss(_Reducing, Layer):
    """A loss whose constructor begins with a weight, a buffer."""

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declared()
class _MarginLoss(_Reducing, Layer):
    """A loss whose constructor begins with a margin."""

    margin: float = 0.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@declared("mse_loss", shown=())
class MSELoss(_Loss):
    """The mean squared error (L2) loss: the mean (or sum) of the squared differences."""


@declared("l1_loss", shown=())
class L1Loss(_Loss):
    """The mean absolute error (L1) loss: the mean (or sum) of |input - target|."""


@declared("smooth_l1_loss", shown=())
class SmoothL1Loss(_Loss):
    """The smooth L1 loss of distances: below `beta` half their squares over `beta`, beyond it `beta / 2` less."""

    beta: float = 1.0


@declared("huber_loss", shown=())
class HuberLoss(Layer):
    """The Huber loss: half the squares of distances up to `delta`, and beyond it delta * (distance - delta / 2)."""

    reduction: str = "mean"
    delta: float = 1.0

    def _prepare(self) -> None:
        if not isinstance(self.delta, (float, int)):
            raise ArgumentError(f"delta must be a float or int, got: {type(self.delta)}")


@declared("kl_div", shown=())
class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence loss: of target probabilities from those whose logarithms are the input.

    `reduction="batchmean"` is its definition, the sum over the number of rows. With `log_target` the target is of
    logarithms, too.
    """

    log_target: bool = False


@declared("binary_cross_entropy", shown=())
class BCELoss(_WeightedLoss):
    """The binary cross entropy (BCE) loss between the input, probabilities from 0 to 1, and the target."""


@declared("poisson_nll_loss", shown=())
class PoissonNLLLoss(_Reducing, Layer):
    """The Poisson negative log likelihood loss of counts; `input` has the logarithms of the means.

    The arguments are those of `functional.poisson_nll_loss`.
    """

    log_input: bool = True
    full: bool = False
    size_average: Any = None
    eps: float = 1e-8
    reduce: Any = None
    reduction: str = "mean"


@declared("gaussian_nll_loss", shown=(), kw_only=True)
class GaussianNLLLoss(Layer):
    """The Gaussian negative log likelihood loss: normal distributions of mean `input` and variance `var`.

    The arguments are those of `functional.gaussian_nll_loss`.
    """

    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"


@declared("soft_margin_loss", shown=())
class SoftMarginLoss(_Loss):
    """The soft margin (logistic) loss: log(1 + exp(-target * input)) for targets of 1 and -1."""


@declared("multilabel_soft_margin_loss", shown=())
class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The multi-label soft margin loss: the mean over classes of the binary cross entropies of sigmoid(scores)."""


@declared("multilabel_margin_loss", shown=())
class MultiLabelMarginLoss(_Loss):
    """The multi-label margin loss: sums max(0, 1 - label's score + other class's) over pairs, over the classes' number.

    The target is of the input's shape: the labels of a row are the classes before the first -1.
    """


@declared("multi_margin_loss", shown=())
class MultiMarginLoss(_Reducing, Layer):
    """The multi-class margin loss: the mean over other classes of max(0, margin - target's score + class's) ** p."""

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"

    def _prepare(self, size_average: Any, reduce: Any) -> None:
        super()._prepare(size_average, reduce)
        require(self.p in (1, 2), ValueError, "only p == 1 and p == 2 supported")
        if self.weight is not None and self.weight.ndim != 1:
            found = f"got {self.weight.ndim}D instead"
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, {found}")


@declared("hinge_embedding_loss", shown=())
class HingeEmbeddingLoss(_MarginLoss):
    """The hinge embedding loss: the distances of pairs for target 1, max(0, margin - distance) for target -1."""

    margin: float = 1.0


@declared("cosine_embedding_loss", shown=())
class CosineEmbeddingLoss(_MarginLoss):
    """The cosine embedding loss, of the cosine c of vectors: 1 - c for target 1, max(0, c - margin) for target -1."""


@declared("margin_ranking_loss", shown=())
class MarginRankingLoss(_MarginLoss):
    """The margin ranking loss, max(0, margin - target * (input1 - input2)): target 1 ranks input1 higher, -1 input2."""


@declared("triplet_margin_loss", shown=())
class TripletMarginLoss(_Reducing, Layer):
    """The triplet margin loss: max(0, margin + distance of anchor and positive - distance of anchor and negative).

    The arguments are those of `functional.triplet_margin_loss`.
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"

    def _prepare(self, size_average: Any, reduce: Any) -> None:
        super()._prepare(size_average, reduce)
        _check_margin(self)


def _check_margin(loss: Any) -> None:
    if loss.margin <= 0:
        words = f"expected margin to be greater than 0, got {loss.margin} instead"
        raise ValueError(f"{type(loss).__name__}: {words}")


@declared("triplet_margin_with_distance_loss", shown=(), kw_only=True)
class TripletMarginWithDistanceLoss(Layer):
    """`TripletMarginLoss` with any function of two tensors, or module, as the distance."""

    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"

    def _prepare(self) -> None:
        if self.distance_function is None:
            self.distance_function = PairwiseDistance()
        _check_margin(self)


@declared("binary_cross_entropy_with_logits", shown=())
class BCEWithLogitsLoss(_WeightedLoss):
    """The binary cross entropy loss with logits: a sigmoid of the input and BCE in one, without overflow.

    Args:
        weight: scales each element's loss.
        size_average: PyTorch's older way to say `reduction`.
        reduce: PyTorch's older way to say `reduction`.
        reduction: "mean", "sum" or "none".
        pos_weight: scales the part that comes from the positive class.
    """

    pos_weight: Tensor | None = None


@declared("nll_loss", shown=())
class NLLLoss(_Reducing, Layer):
    """The negative log likelihood loss: minus the target class's entry, for inputs that are log-probabilities.

    The arguments, and the shapes, are `CrossEntropyLoss`'s.
    """

    weight: Tensor | None = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"


@declared("cross_entropy", shown=())
class CrossEntropyLoss(_Reducing, Layer):
    """The cross entropy loss of logits: softmax over the classes, then the negative log of the target's probability.

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


@declared("ctc_loss", shown=())
class CTCLoss(Layer):
    """The connectionist temporal classification (CTC) loss: minus the log probability of a sequence of labels.

    The arguments are those of `functional.ctc_loss`.
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False
