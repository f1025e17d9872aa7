"""The CTC loss of sequences of labels, under PyTorch's name and with its forms of targets and lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import index
from typing import Any

import numpy as np

from ...errors import ArgumentError, RangeError, ShapeError, require
from ...kernels.bounds import bounds_of
from ...kernels.elementwise.arithmetic import where
from ...kernels.indexing.family import check_bounds
from ...kernels.rowwise import ctc
from ...tensors import Tensor, wrap
from .reduced import loss, reduction_named

_CALL = "(while checking arguments for ctc_loss_allocate_outputs)"


@loss(
    legacy=False,
    package="log_probs targets input_lengths target_lengths blank reduction zero_infinity",
    autocast={"cpu": "float32"},
)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The connectionist temporal classification (CTC) loss: minus the log probability of a sequence of labels.

    A way to spell it has one or more steps for each label, and any number of blanks between them, at least one between
    equal labels. The gradient is right for logarithms that come from `log_softmax`.

    >>> import tritensor as torch
    >>> steps = torch.zeros(2, 1, 2).log_softmax(2)
    >>> torch.nn.functional.ctc_loss(steps, torch.tensor([[1]]), [2], [1], reduction="sum")  # 1 1, 1 -, - 1 of 4 ways
    tensor(0.2877)

    Args:
        log_probs: logarithms of probabilities, (T, N, C), or (T, C) for one sequence; float32 or float64.
        targets: labels, (N, S), or those of all sequences in a row.
        input_lengths, target_lengths: how many steps and labels each sequence has, tensors or sequences of N integers;
            on a device tensors are waited for.
        blank: the class that separates labels.
        reduction: "mean" (of the losses divided by the numbers of labels), "sum" or "none".
        zero_infinity: 0 in place of infinity where there are too few steps.

    Raises:
        RuntimeError: shapes or lengths that do not fit, or blank is no class. UnsupportedError: another dtype.
        RangeError: a label that is no class; on a CUDA device the nearest class is taken for it.
    """
    alone = log_probs.ndim != 3
    if alone:
        log_probs, targets = log_probs.unsqueeze(1), targets.unsqueeze(0)
    require(log_probs.numel() != 0, ShapeError, "log_probs tensor must not be empty")
    if isinstance(input_lengths, Tensor) != isinstance(target_lengths, Tensor):
        raise ArgumentError(
            "ctc_loss() received an invalid combination of arguments",
            "of input_lengths and target_lengths one is a tensor",
            remedy="pass tensors or sequences of integers for both",
        )
    if log_probs.ndim != 3:
        _refuse(
            f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional tensor for argument #1 'log_probs'"
        )
    length, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise ShapeError("blank must be in label range", f"it is {blank}, of {classes} classes")
    steps, labels = _lengths("input_lengths", input_lengths, batch), _lengths("target_lengths", target_lengths, batch)
    _at_least("target_lengths", labels)
    target = _rows(targets, labels, batch)
    _at_least("input_lengths", steps)
    if steps.max() > length:
        _refuse(f"Expected input_lengths to have value at most {length}, but got value {steps.max()}")
    known = bounds_of(targets) if target.device.type == "cuda" else None  # the host need not wait for labels then
    if known is None or known[0] < 0 or known[1] >= classes:
        counted = wrap(np.arange(target.shape[1]) < labels[:, None]).to(target.device)
        check_bounds(where(counted, target, 0), classes, 0, 0, "Target {wrong} is out of bounds.", RangeError)
    places = [target.clamp(0, classes - 1), *(wrap(each).to(log_probs.device) for each in (steps, labels))]
    found = ctc.ctc_loss(log_probs, *places, blank=blank, zero_infinity=zero_infinity)[0]
    if zero_infinity:
        found = where(found == math.inf, 0, found)
    if alone:
        found = found.squeeze(0)
    if reduction_named(reduction) == "mean":
        found = found / places[2].clamp_min(1).to(found.dtype)
    return found


def _refuse(words: str) -> None:
    raise ShapeError(f"{words} {_CALL}")


def _lengths(name: str, lengths: Any, batch: int) -> np.ndarray:
    """Lengths as an array of int64."""
    if isinstance(lengths, Tensor) and (lengths.dtype.is_floating_point or lengths.dtype.is_complex):
        raise ShapeError(f"{name} must be integral")
    numbers = lengths.cpu().reshape(-1).tolist() if isinstance(lengths, Tensor) else map(index, lengths)
    found = np.array([*numbers], np.int64)
    if len(found) != batch:
        raise ShapeError(f"{name} must be of size batch_size", f"it has {len(found)} elements, not {batch}")
    return found


def _at_least(name: str, lengths: np.ndarray) -> None:
    if lengths.min() < 0:
        _refuse(f"Expected {name} to have value at least 0, but got value {lengths.min()}")


def _rows(targets: Tensor, labels: np.ndarray, batch: int) -> Tensor:
    """Labels as (N, S) in int64, where S is the largest number of them."""
    most, argument = int(labels.max()), "for argument #2 'targets'"
    if targets.ndim not in (1, 2):
        _refuse(f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor {argument}")
    size, wanted = targets.shape[0], int(labels.sum()) if targets.ndim == 1 else batch
    if size != wanted:
        _refuse(f"Expected tensor to have size {wanted} at dimension 0, but got size {size} {argument}")
    if targets.ndim == 1:
        starts = np.array([0, *accumulate(labels.tolist())][:-1])
        places = np.minimum(starts[:, None] + np.arange(most), max(size - 1, 0))
        return targets.long()[wrap(places).to(targets.device)]
    if targets.shape[1] < most:
        found = f"Expected tensor to have size at least {most} at dimension 1, but got size {targets.shape[1]}"
        _refuse(f"{found} {argument}")
    return targets[:, :most].long()
