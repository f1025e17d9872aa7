"""Embeddings and one-hot vectors."""

from __future__ import annotations

from .. import dtypes
from ..arguments import check_tensor
from ..autograd.gradients import called
from ..autograd.mode import no_grad
from ..errors import ArgumentError, DtypeError, RangeError, ShapeError, explain
from ..extents import check_rank
from ..kernels.indexing import family as kernels
from ..operator import registry
from ..public import public
from ..tensor import Tensor
from . import creation, quick_indexing
from .indexing import scatter


@public()
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` at the indices in `input`, of shape (*input, columns).

    The gradient sums the rows of equal indices in a fixed order, so every run gives the same bits. On a CUDA device the
    host waits once for each version of `input`, to check it against the number of rows.

    Args:
        padding_idx: a row that gets no gradient.
        max_norm, norm_type: rows that are looked up and longer than this are shortened to it first, in `weight` itself.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up.
        sparse: False; gradients are dense here.

    Raises:
        BoundsError: `index out of range in self`; negative numbers are.
    """
    check_tensor("embedding", "weight", 1, weight)
    check_tensor("embedding", "indices", 2, input)
    if sparse:
        raise ArgumentError(
            explain(
                "embedding(): there are no sparse gradients",
                remedy="sparse=False: the dense gradient holds the same numbers, and zeros elsewhere",
            )
        )
    if padding_idx:
        if not weight.ndim:
            raise RangeError("Dimension specified as 0 but tensor has no dimensions")
        rows = weight._data.shape[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if input.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(
            explain(
                "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
                f"got {input.type()} instead (while checking arguments for embedding)",
                remedy="convert it with .to(torch.int64)",
            )
        )
    if weight.ndim != 2:
        raise ShapeError("'weight' must be 2-D")
    check_rank(input.ndim + 1)
    rows = weight._data.shape[0]
    kernels.check_bounds(input, rows, 0, False, "index out of range in self")
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    result: Tensor = called("EmbeddingBackward0", _rows(input, weight, padding_idx))
    if scale_grad_by_freq and result.requires_grad:
        flat = input.reshape(-1)
        counts = creation.zeros(rows, device=result.device, dtype=dtypes.float32)  # bfloat16 counts to 256
        counts = counts.index_add_(0, flat, creation.ones(*flat.shape, device=result.device, dtype=dtypes.float32))
        often = counts.index_select(0, flat).reshape(*input.shape, 1)
        result = result.view(result.shape)  # its own node, so that the hook changes only this result's gradient
        result.register_hook(lambda gradient: (gradient / often).to(gradient.dtype))
    return result


def _shorten(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are looked up to a norm of at most `max_norm`, by PyTorch's formula."""
    with no_grad():
        flat = input.reshape(-1)
        found = weight.detach().index_select(0, flat)
        norms = found.norm(norm_type, dim=1, keepdim=True)
        weight.index_put_((flat,), registry["where"](norms > max_norm, found * (max_norm / (norms + 1e-7)), found))


def _rows(input: Tensor, weight: Tensor, padding_idx: int | None) -> Tensor:
    """The rows at indices that have been checked."""
    found = quick_indexing.take(weight, input, 0, along=False)
    if found is not None:
        return found
    positions = input.unsqueeze(0)
    kernels.mark_checked_range(positions)
    result = kernels.index(weight, positions, dims=(0,))
    if padding_idx is None or not result.requires_grad:
        return result
    padded = (input == padding_idx).unsqueeze(-1)
    return registry["where"](padded, result.detach(), result)


@public(package=False)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each number a row of zeros with a 1 at that position; if -1, `num_classes` is the largest number plus 1.

    >>> import tritensor as torch
    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    check_tensor("one_hot", "input", 1, tensor)
    if tensor.dtype is not dtypes.int64:
        raise DtypeError("one_hot is only applicable to index tensor of type LongTensor.")
    if tensor.numel() == 0 and num_classes <= 0:
        raise ShapeError("Can not infer total number of classes from empty tensor.")
    low, high = kernels.value_range(tensor)
    if low < 0:
        raise ShapeError("Class values must be non-negative.")
    if num_classes != -1 and high >= num_classes:
        raise ShapeError("Class values must be smaller than num_classes.")
    classes = high + 1 if num_classes == -1 else num_classes
    zeros = creation.zeros(*tensor.shape, classes, dtype=dtypes.int64, device=tensor.device)
    return scatter(zeros, -1, tensor.unsqueeze(-1), 1)
