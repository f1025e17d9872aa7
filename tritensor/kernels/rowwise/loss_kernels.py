"""The class losses on a device: the rowwise kernel's bodies for cross entropy, and the reduction of rows' losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...memory import buffer
from ...memory.array import DeviceArray
from ...runtime.launch import Int64, kernel, launch
from ...runtime.source import device_function
from ...types import dtypes
from ..blocks import block_size
from ..reduction.family import Parts
from ..reduction.kernel import reduce_arrays
from ..reduction.sums import add, add_pairs, fold_pairs, fold_sum, merge_logs, no_pairs, zero
from .family import exponential, largest
from .kernel import RowBodies, contiguous, launch_rows

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

_BLOCK = 1024
# Programs of 4 warps that a multiprocessor has room for: 64 warps.
_PROGRAMS = 16


@device_function
def is_class(target, classes, ignore_index):
    """True if a target is one of the classes, or `ignore_index`."""
    return ((target >= 0) & (target < classes)) | (target == ignore_index)


# ---- cross entropy --------------------------------------------------------------------------------------------
# numbers: ignore_index, classes, label_smoothing, whether that is not 0, reduction, whether all classes weigh the same,
# whether results have 16 bits; row_values end with the target's score and, where classes have weights, its weight


@device_function
def _scores(values, row_values, col_values, col, mask, count, numbers):
    """Of a block of classes: the largest score, the sum of exponentials, the weighted sum of scores, the sum of
    weights."""
    x = values[0]
    top = largest(x)
    total = tl.sum(exponential(x - top[:, None], numbers[6]), 1)
    # values that are not needed are not reduced: they would be carried through the loop over a long row
    mixed, weights = tl.zeros_like(total), tl.zeros_like(total)
    if numbers[3]:
        nothing = tl.zeros_like(x)
        weight = nothing + 1
        if len(col_values) > 0:
            weight = col_values[0] + nothing
        mixed = tl.sum(tl.where(mask, x * weight, nothing), 1)
        weights = tl.sum(tl.where(mask, weight, nothing), 1)
    return top, total, mixed, weights


@device_function
def _merge_scores(top, total, mixed, weights, top2, total2, mixed2, weights2):
    high, both = merge_logs(top, total, top2, total2)
    return high, both, mixed + mixed2, weights + weights2


@device_function
def _row_losses(summary, row_values, numbers):
    """Per row: loss, weight and logarithm of the sum of exponentials."""
    top, total, mixed, weights = summary
    target = row_values[0]
    valid = is_class(target, numbers[1], numbers[0])
    tl.device_assert(valid, "Target is out of bounds.")
    lse = top + libdevice.log(total)
    ignored = target == numbers[0]
    if numbers[5]:
        picked, share = row_values[-1], tl.zeros_like(total) + 1
    else:
        picked, share = row_values[-2], row_values[-1]
    share = tl.where(ignored, tl.zeros_like(share), share)
    loss = tl.where(share == 0, tl.zeros_like(lse), (lse - picked) * share)
    if numbers[3]:
        smooth = tl.where(ignored, tl.zeros_like(lse), (lse * weights - mixed) / numbers[1])
        loss = loss * (1 - numbers[2]) + smooth * numbers[2]
    return tl.where(valid, loss, float("nan")), share, lse


CROSS_ENTROPY = RowBodies(None, _scores, _merge_scores, _row_losses, -math.inf, 0)


@device_function
def _score_and_gradient(values, row_values, col_values, summary, col, numbers):
    """The gradient of a row's scores from the row's summary, for a loss whose gradient is 1."""
    lse = summary[0] + libdevice.log(summary[1])
    row = (row_values[0], lse, tl.zeros_like(lse) + 1, row_values[1])
    return _score_gradient(values, row, col_values, (row_values[-1], summary[3]), col, numbers)


WITH_GRADIENT = CROSS_ENTROPY._replace(apply=_score_and_gradient)


def launch_cross_entropy(
    outs: Sequence[DeviceArray],
    arrays: Sequence[Any],
    compute: dtypes.dtype,
    metadata: dict[str, Any],
    change: DeviceArray | None = None,
) -> None:
    """Loss, total weight, and each row's logarithm of the sum of exponentials, reading the scores once.

    With `change`, the gradient of the scores of a reduced loss is written there. The divisor of a mean must then be
    known before the rows are read, which needs a pass over the targets.
    """
    x, target, weight = arrays
    out, total, lse = outs
    rows, classes = x.shape
    losses, shares = _scratch(out, rows, compute, metadata)
    if change is not None:
        _launch_shares(shares, total, target, weight, classes, compute, metadata)
    launch_rows(
        CROSS_ENTROPY if change is None else WITH_GRADIENT,
        () if change is None else (change,),
        (x,),
        1,
        compute,
        "cross_entropy",
        row_outs=(losses, shares, lse),
        row_ins=(target,) if change is None else (target, total),
        col_ins=present(weight),
        held=1 if weight is None else 4,
        # a program holds the state of a row and of its gradient: 1024 rows of 3 classes spilled 672 bytes
        most_rows=1024 if change is None else 1024 // compute.itemsize,
        numbers=_numbers(x, metadata, weight),
    )
    _reduce_rows(out, total, losses, shares, compute, metadata)


@kernel
def share_kernel(
    share_ptr,
    target_ptr,
    weights,
    target_stride,
    rows,
    classes,
    ignore_index,
    COMPUTE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The weight of each row's target, 0 for ignored ones; the arguments are those of `pick_kernel`."""
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = row < rows
    target = tl.load(target_ptr + row * target_stride, mask=mask, other=0).to(tl.int64)
    counts = mask & (target != ignore_index) & (target >= 0) & (target < classes)
    if len(weights) == 0:
        share = counts.to(COMPUTE)
    else:
        share = tl.load(weights[0] + target, mask=counts, other=0).to(COMPUTE)
    tl.store(share_ptr + row, share, mask=mask)


def _launch_shares(
    shares: DeviceArray,
    total: DeviceArray,
    target: DeviceArray,
    weight: DeviceArray | None,
    classes: int,
    compute: dtypes.dtype,
    metadata: dict[str, Any],
) -> None:
    """The sum of the targets' weights into `total`, from the targets only."""
    rows = target.size
    ignored = Int64(metadata["ignore_index"])
    launch(
        share_kernel,
        (-(-rows // _BLOCK),),
        (shares, target, present(weight), target.strides[0], rows, classes, ignored),
        {"COMPUTE": compute, "BLOCK": _BLOCK},
        shares.device,
        name="target_weights",
    )
    reduce_arrays(Parts(fold_sum, add, zero), (total,), (shares,), (0,), compute, "total")


@kernel
def scale_kernel(x_ptr, factor_ptr, count, blocks, COMPUTE: tl.constexpr, BLOCK: tl.constexpr):
    """Multiply contiguous elements by one number on the device; a factor of 1 reads and writes nothing.

    Program i takes the blocks i, i + programs, ...
    """
    factor = tl.load(factor_ptr).to(COMPUTE)
    if factor != 1:
        for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
            index = tl.cast(block, tl.int64) * BLOCK + tl.arange(0, BLOCK)
            mask = index < count
            x = tl.load(x_ptr + index, mask=mask).to(COMPUTE)
            tl.store(x_ptr + index, (x * factor).to(x_ptr.dtype.element_ty), mask=mask)


def launch_scale(x: DeviceArray, factor: DeviceArray) -> None:
    """Multiply a contiguous array by the only element of another, in place."""
    block = block_size(x, 4096, interpreted=1 << 16)
    blocks = -(-x.size // block)
    # no more programs than run at once: one for each block would be 65,536 for a gigabyte, most often to find a 1
    enough = x.buffer.driver.properties(x.device.index).multi_processor_count * _PROGRAMS
    launch(
        scale_kernel,
        (min(blocks, enough),),
        (x, factor, x.size, blocks),
        {"COMPUTE": dtypes.float64 if x.itemsize == 8 else dtypes.float32, "BLOCK": block},
        x.device,
        name="scale_by_element",
    )


def _numbers(x: DeviceArray, metadata: dict[str, Any], weight: DeviceArray | None) -> tuple[Any, ...]:
    classes, short = x.shape[1], x.itemsize == 2
    smoothing = metadata["label_smoothing"]
    same = weight is None
    return metadata["ignore_index"], classes, smoothing, smoothing != 0, metadata["reduction"], same, short


def _scratch(out: DeviceArray, rows: int, compute: dtypes.dtype, metadata: dict[str, Any]) -> tuple[Any, Any]:
    """Arrays for the rows' losses (the result itself where they are not reduced) and weights."""
    losses = out if metadata["reduction"] == "none" else buffer.empty((rows,), compute.numpy, out.device)
    return losses, buffer.empty((rows,), compute.numpy, out.device)


_mean_of_rows = device_function(lambda state, count, numbers: (state[0] / state[1], state[1]))


def _reduce_rows(
    out: DeviceArray,
    total: DeviceArray,
    losses: DeviceArray,
    shares: DeviceArray,
    compute: dtypes.dtype,
    metadata: dict[str, Any],
) -> None:
    """The loss from the rows' losses and weights, and the total weight."""
    if metadata["reduction"] == "none":
        reduce_arrays(Parts(fold_sum, add, zero), (total,), (shares,), (0,), compute, "total")
    else:
        finish = _mean_of_rows if metadata["reduction"] == "mean" else None
        parts = Parts(fold_pairs, add_pairs, no_pairs, finish=finish)
        reduce_arrays(parts, (out, total), (losses, shares), (0,), compute, "loss")


# ---- its gradient ---------------------------------------------------------------------------------------------


@device_function
def _target_weight(values, row_values, col_values, col, mask, count, numbers):
    """The weight of the target, and the sum of all, from a block of classes."""
    nothing = tl.zeros_like(values[0])
    weight = col_values[0] + nothing
    here = (col == row_values[0]) & mask
    return tl.sum(tl.where(here, weight, nothing), 1), tl.sum(tl.where(mask, weight, nothing), 1)


@device_function
def _score_gradient(values, row_values, col_values, summary, col, numbers):
    target, lse, grad, total = row_values
    shares = exponential(values[0] - lse, numbers[6])
    # compared in the columns' dtype, mostly 32 bits: a target beyond those is ignored below, or its loss is NaN
    picked = tl.where(col == target.to(col.dtype), shares - 1, shares)
    if numbers[3]:
        if len(col_values) == 0:
            smooth = shares * numbers[1] - 1
        else:
            smooth = shares * summary[1] - col_values[0]
        smooth = smooth * (numbers[2] / numbers[1])
        picked = picked * (1 - numbers[2])
    if len(col_values) > 0:
        picked = picked * summary[0]
    if numbers[3]:
        picked = picked + smooth
    if numbers[4] == "mean":
        grad = grad / total
    return (tl.where(target == numbers[0], tl.zeros_like(picked), picked * grad),)


BACKWARD = RowBodies(_score_gradient)
WEIGHTED_BACKWARD = RowBodies(_score_gradient, _target_weight, add_pairs)


def launch_cross_entropy_backward(
    outs: Sequence[DeviceArray], arrays: Sequence[Any], compute: dtypes.dtype, metadata: dict[str, Any]
) -> None:
    """The scores' gradient: one read of the scores, one write."""
    grad, x, target, weight, total, lse = arrays
    launch_rows(
        BACKWARD if weight is None else WEIGHTED_BACKWARD,
        outs,
        (x,),
        1,
        compute,
        "cross_entropy_backward",
        row_ins=(target, lse, grad, total),
        col_ins=present(weight),
        held=1 if weight is None else 4,
        numbers=_numbers(x, metadata, weight),
    )


def present(*arrays: DeviceArray | None) -> tuple[DeviceArray, ...]:
    """The arrays that are not None, each contiguous or copied."""
    return tuple(contiguous(array) for array in arrays if array is not None)


# ---- negative log likelihood ----------------------------------------------------------------------------------


@kernel
def pick_kernel(
    loss_ptr,
    share_ptr,
    x_ptr,
    target_ptr,
    weights,
    row_stride,
    col_stride,
    target_stride,
    rows,
    classes,
    ignore_index,
    COMPUTE: tl.constexpr,
    LOSS_DTYPE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Each row's element at the target, negated and weighted, and the weight.

    Args:
        loss_ptr, share_ptr: contiguous, one element per row.
        x_ptr: scores, with row_stride and col_stride.
        target_ptr: class indices, target_stride apart.
        weights: a tuple of one pointer, contiguous, one element per class; or an empty one.
    """
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = row < rows
    target = tl.load(target_ptr + row * target_stride, mask=mask, other=0).to(tl.int64)
    counts = mask & (target != ignore_index)
    inside = (target >= 0) & (target < classes)
    tl.device_assert(inside | ~counts, "Target is out of bounds.")
    counts = counts & inside
    x = tl.load(x_ptr + row * row_stride + target * col_stride, mask=counts, other=0).to(COMPUTE)
    if len(weights) == 0:
        share = counts.to(COMPUTE)
    else:
        share = tl.load(weights[0] + target, mask=counts, other=0).to(COMPUTE)
    loss = tl.where(counts, -x * share, tl.zeros_like(x))
    loss = tl.where(inside | (target == ignore_index), loss, float("nan"))
    tl.store(loss_ptr + row, loss.to(LOSS_DTYPE), mask=mask)
    tl.store(share_ptr + row, share, mask=mask)


def launch_nll(
    outs: Sequence[DeviceArray], arrays: Sequence[Any], compute: dtypes.dtype, metadata: dict[str, Any]
) -> None:
    """Loss and total weight, reading one score of each row."""
    x, target, weight = arrays
    out, total = outs
    rows, classes = x.shape
    losses, shares = _scratch(out, rows, compute, metadata)
    launch(
        pick_kernel,
        (-(-rows // _BLOCK),),
        (
            losses,
            shares,
            x,
            target,
            present(weight),
            *x.strides,
            target.strides[0],
            rows,
            classes,
            Int64(metadata["ignore_index"]),
        ),
        {"COMPUTE": compute, "LOSS_DTYPE": dtypes.of(losses.dtype), "BLOCK": _BLOCK},
        out.device,
        name="nll_loss",
    )
    _reduce_rows(out, total, losses, shares, compute, metadata)
