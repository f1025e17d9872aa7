"""Losses with a linear layer of their own, for many classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from re import fullmatch
from typing import Any, NamedTuple

from ..errors import ShapeError, explain, require
from ..functional.rowwise.chunked_cross_entropy import linear_cross_entropy, rows_of_chunk
from ..functional.rowwise.softmax import log_softmax
from ..functional.views.joining import cat
from ..tensors import Tensor
from ..types import Device, Dtype, dtypes
from .containers import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss", "LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """The options by which `functional.linear_cross_entropy` divides its rows into chunks.

    Args:
        batch_chunk_size: rows of a chunk.
        chunking_method: "aspect_ratio", chunks whose scores take the memory of all inputs, or "aspect_ratio:2" for half
            of it; "auto", the first unless batch_chunk_size is given.
        allow_retain_graph, acc_policy, acc_dtype: accepted; sums of half precision are in float32.

    Raises:
        ValueError: an unknown policy, method, size or dtype.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if not fullmatch(r"auto|aspect_ratio(:0*[1-9]\d*)?", self.chunking_method or "auto"):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in (None, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64):
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}"
            )

    def rows(self, rows: int, features: int, classes: int) -> int:
        """The rows of a chunk.

        Raises:
            ValueError: the method does not give the size.
        """
        size, method = self.batch_chunk_size, self.chunking_method
        if method is None or (method == "auto" and size is not None):
            return rows if size is None else size
        found = rows_of_chunk(rows, features, classes, int(method.partition(":")[2] or 1))
        if size not in (None, found):
            raise ValueError(
                f"batch_chunk_size (={size}) and chunking_method ('{method}') give different chunk sizes "
                f"({size} vs {found}); pass only one."
            )
        return found


class LinearCrossEntropyLoss(Module):
    """A linear layer `linear` and the cross entropy loss of its scores, computed by chunks of rows.

    The arguments are those of `Linear` and of `functional.linear_cross_entropy`; `out_features` are the sizes of
    further dimensions of scores, (N, num_classes, *out_features).

    Raises:
        ShapeError: a weight of another shape, or a label_smoothing that is no share.
    """

    weight: Tensor | None

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Device = None,
        dtype: Dtype = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise ShapeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise ShapeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__()
        self.reduction, self.num_classes, self.out_features = reduction, num_classes, out_features
        self.register_buffer("weight", weight)
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns `functional.linear_cross_entropy` of the inputs."""
        shape, linear = (self.num_classes, *self.out_features), self.linear
        return linear_cross_entropy(
            input,
            linear.weight.reshape(*shape, linear.in_features),
            target,
            linear_bias=None if linear.bias is None else linear.bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        """The options."""
        names = "num_classes", "out_features", "reduction", "ignore_index", "label_smoothing", "options"
        shown = [f"{name}={getattr(self, name)}" for name in names]
        shown.insert(2, f"bias={self.linear.bias is not None}")
        return ", ".join([f"in_features={self.linear.in_features}", *shown])


class _ASMoutput(NamedTuple):
    """The result of `AdaptiveLogSoftmaxWithLoss`."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Adaptive softmax over many classes, sorted by frequency: the frequent ones in `head`, others in clusters.

    E. Grave et al., "Efficient softmax approximation for GPUs", 2016. Of a batch only the clusters are computed in
    which it has targets; on a device they are waited for.

    Args:
        cutoffs: the first classes of the clusters, rising; ValueError for others.
        div_value: the rank of cluster number i is in_features // div_value ** i.
        head_bias: whether the scores of the head have a bias.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device = None,
        dtype: Dtype = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        require(cutoffs, ValueError, "cutoffs should be a sequence of length larger than 0")
        if (
            any(int(each) != each for each in cutoffs)
            or any(high <= low for low, high in pairwise((0, *cutoffs)))
            or cutoffs[-1] > n_classes - 1
        ):
            raise ValueError(
                explain(
                    "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where "
                    "each value is between 1 and n_classes-1",
                    f"they are {cutoffs}, of {n_classes} classes",
                )
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias, self.shortlist_size = div_value, head_bias, cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for number, (low, high) in enumerate(pairwise(self.cutoffs), 1):
            rank = int(in_features // div_value**number)
            self.tail.append(
                Sequential(Linear(in_features, rank, bias=False, **made), Linear(rank, high - low, bias=False, **made))
            )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> _ASMoutput:
        """The logarithms of the targets' probabilities, (N,) for inputs (N, in_features), and their negative mean.

        Raises:
            ShapeError: shapes that do not fit together, or a target that is no class.
        """
        require(target.ndim <= 1, ShapeError, "0D or 1D target tensor expected, multi-target not supported")
        if target.ndim == 1 and input.shape[0] != target.shape[0]:
            raise ShapeError("Input and target should have the same size in the batch dimension.")
        if input.ndim != target.ndim + 1:
            words = f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors"
            raise ShapeError(f"{words}, but found inputs with size {input.shape}")
        rows, classes = (input, target) if target.ndim else (input.unsqueeze(0), target.unsqueeze(0))
        if ((classes < 0) | (classes >= self.n_classes)).any():
            raise ShapeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{classes.min().item()}, "
                f"{classes.max().item()}] were found. "
            )
        output, places = rows.new_zeros(rows.shape[0]), classes
        for number, (low, high) in enumerate(pairwise(self.cutoffs)):
            within = (classes >= low) & (classes < high)
            found = within.nonzero().squeeze(1)
            if found.numel():
                logs = log_softmax(self.tail[number](rows.index_select(0, found)), 1)
                own = (classes.index_select(0, found) - low).unsqueeze(1)
                output = output.index_copy(0, found, logs.gather(1, own).squeeze(1))
                places = places.masked_fill(within, self.shortlist_size + number)
        logs = log_softmax(self.head(rows), 1)
        output = output + logs.gather(1, places.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if target.ndim else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithms of the probabilities of all classes, (N, n_classes) for inputs (N, in_features)."""
        head = log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for number, scores in enumerate(self.tail, self.shortlist_size):
            parts.append(log_softmax(scores(input), 1) + head[:, number : number + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each input; the clusters are computed for inputs of which the head chooses one."""
        found = self.head(input).argmax(1)
        unsure = (found >= self.shortlist_size).nonzero().squeeze(1)
        if unsure.numel():
            found = found.index_copy(0, unsure, self.log_prob(input.index_select(0, unsure)).argmax(1))
        return found
