"""Embeddings and one-hot vectors."""

from __future__ import annotations

from ...autograd.gradients import called
from ...autograd.mode import no_grad
from ...errors import BoundsError, DtypeError, RangeError, ShapeError, UnsupportedError
from ...ground.arguments import check_tensor
from ...ground.public import public
from ...kernels.bounds import beyond
from ...kernels.indexing import family as kernels
from ...kernels.indexing.bags import bag
from ...operators import registry
from ...tensors import Tensor
from ...types import dtypes
from ...types.size import check_rank
from ..creation import creation
from ..creation.ranges import arange
from ..sparse.coordinates import sparse_rows
from ..views.joining import cat
from . import quick_indexing
from .scattering import scatter


@public(package=False)
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Looks up embeddings: the rows of `weight` at the indices in `input`, of shape (*input, columns).

    The gradient sums the rows of equal indices in a fixed order, so every run gives the same bits. On a CUDA device the
    host waits once for each version of an `input` whose bounds it does not know, to check them.

    Args:
        padding_idx: a row that gets no gradient.
        max_norm, norm_type: rows that are looked up and longer than this are shortened to it first, in `weight` itself.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up.
        sparse: make the gradient a sparse tensor of the rows that were looked up.

    Raises:
        BoundsError: `index out of range in self`; negative numbers are.
    """
    check_tensor("embedding", "weight", 1, weight)
    check_tensor("embedding", "indices", 2, input)
    if padding_idx:
        if not weight.ndim:
            raise RangeError("Dimension specified as 0 but tensor has no dimensions")
        rows = weight._data.shape[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    _check_dtype("embedding", "indices", input)
    if weight.ndim != 2:
        raise ShapeError("'weight' must be 2-D")
    check_rank(input.ndim + 1)
    rows = weight._data.shape[0]
    kernels.check_bounds(input, rows, 0, 0, "index out of range in self")
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    if sparse:
        return sparse_rows(weight, input, padding_idx, scale_grad_by_freq)
    result: Tensor = called("EmbeddingBackward0", _rows(input, weight, padding_idx))
    if scale_grad_by_freq and result.requires_grad:
        flat = input.reshape(-1)
        counts = creation.zeros(rows, device=result.device, dtype=dtypes.float32)  # bfloat16 counts to 256
        counts = counts.index_add_(0, flat, creation.ones(*flat.shape, device=result.device, dtype=dtypes.float32))
        often = counts.index_select(0, flat).reshape(*input.shape, 1)
        result = result.view(result.shape)  # its own node, so that the hook changes only this result's gradient
        result.register_hook(lambda gradient: (gradient / often).to(gradient.dtype))
    return result


def _of_table(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """Looks up embeddings: `nn.functional.embedding` with the table first; a padding_idx that is no row is ignored."""
    check_tensor("embedding", "weight", 1, weight)
    padding = padding_idx if weight.ndim and 0 <= padding_idx < len(weight) else None
    return embedding(indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse)


_of_table.__name__ = _of_table.__qualname__ = "embedding"
public(functional=False)(_of_table)


@public(package=False)
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Reduces bags of embeddings, (bags, columns): the sum, mean or maximum of the rows of `weight` in each.

    The rows are not stored side by side. On a CUDA device the host waits as in `embedding`.

    >>> import tritensor as torch
    >>> table = torch.tensor([[1., 2.], [3., 4.], [5., 6.]])
    >>> torch.nn.functional.embedding_bag(torch.tensor([0, 2, 1]), table, torch.tensor([0, 2]), mode="sum")
    tensor([[6., 8.],
            [3., 4.]])

    Args:
        input: indices; of two dimensions, each row is a bag, and of one, each begins at one of the `offsets`.
        max_norm, norm_type, sparse, scale_grad_by_freq: as in `embedding`; the last not for maxima.
        mode: "sum", "mean" or "max"; of a bag without indices each is 0.
        per_sample_weights: factors of the rows, of the shape of `input`, for sums.
        include_last_offset: `offsets` ends with where the last bag ends.
        padding_idx: indices that do not count.

    Raises:
        ValueError: shapes or modes that do not fit together. BoundsError: indices or offsets out of range.
        UnsupportedError: factors for other modes than sums. DtypeError: wrong dtypes. ShapeError: offsets in no order.
    """
    check_tensor("embedding_bag", "weight", 2, weight)
    check_tensor("embedding_bag", "input", 1, input)
    factors, rows = per_sample_weights, weight.shape[0] if weight.ndim else 0
    how = "scaling the gradient by the frequency" if scale_grad_by_freq else "sparse weights"
    words = "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum'"
    if factors is not None:
        _require(
            input.shape == factors.shape,
            f"embedding_bag: If per_sample_weights ({factors.shape}) is not None, then it must have the same shape as "
            f"the input ({input.shape})",
        )
    _require(weight.ndim == 2, f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    _require(mode in ("sum", "mean", "max"), "mode has to be one of sum, mean or max")
    _require(mode != "max" or not (scale_grad_by_freq or sparse), f"max mode does not support {how}")
    if factors is not None and mode != "sum":
        raise UnsupportedError(f"{words} (got mode='{mode}').")
    _check_dtype("embedding_bag", "indices", input)
    _check_dtype("embedding_bag", "weight", weight)
    if factors is not None and factors.dtype is not weight.dtype:
        raise DtypeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {weight.type()} does not equal {factors.type()}"
        )
    if padding_idx is not None and not -rows <= padding_idx < rows:
        words = f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}"
        raise ShapeError(f"{words}, but got {padding_idx}")
    ends = _ends(input, offsets, include_last_offset)
    words = "Index {place} of input takes value {wrong} which is not in the valid range [0, {size})"
    kernels.check_bounds(input, rows, 0, 0, words)
    used = slice(kernels.value_range(offsets)[1] if include_last_offset and offsets is not None else None)
    input = input.reshape(-1)[used].to(dtypes.int64).contiguous()
    factors = None if factors is None else factors.reshape(-1)[used].contiguous()
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    padding = -1 if padding_idx is None else padding_idx % rows
    if sparse and weight.requires_grad:  # the bags are of the rows that were looked up, whose gradient is small
        kept = input != padding
        ends = cat([kept.new_zeros(1, dtype=dtypes.int64), kept.cumsum(0)])[ends]
        input, factors = input[kept], None if factors is None else factors[kept]
        weight = sparse_rows(weight, input, None, scale_grad_by_freq)
        input, padding, scale_grad_by_freq = arange(len(input), device=weight.device), -1, False
    made: Tensor = bag(weight, input, ends, factors, mode=mode, padding_idx=padding, by_frequency=scale_grad_by_freq)[0]
    return made


def _ends(input: Tensor, offsets: Tensor | None, complete: bool) -> Tensor:
    """The index at which each bag begins, and at which the last one ends."""
    if input.ndim == 2:
        _require(
            offsets is None,
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
            f"sequences. However, found offsets of type {type(offsets)}",
        )
        return arange(len(input) + 1, device=input.device) * input.shape[1]
    _require(input.ndim == 1, f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if offsets is None or offsets.ndim != 1:
        raise ValueError(f"offsets has to be a 1D Tensor{' but got None' * (offsets is None)}")
    _check_dtype("embedding_bag", "offsets", offsets)
    if complete and not len(offsets):
        raise ShapeError("include_last_offset: number of offset should be at least 1")
    (low, high), count = kernels.value_range(offsets), len(input)
    if low or high > count:
        first = "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0."
        last = f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {high}"
        raise BoundsError(f"{first} However, got {low}" if low else last)
    offsets = offsets.to(dtypes.int64)
    return offsets.contiguous() if complete else cat([offsets, offsets.new_full((1,), count)])


def _require(fits: bool, words: str) -> None:
    if not fits:
        raise ValueError(words)


def _check_dtype(call: str, name: str, x: Tensor) -> None:
    """Raise unless a table is floating and places are integers."""
    table = name == "weight"
    if not (x.dtype.category == dtypes.FLOATING if table else x.dtype in (dtypes.int64, dtypes.int32)):
        raise DtypeError(
            f"Expected tensor for argument #1 '{name}' to have one of the following scalar types: "
            f"{'Half, BFloat16, Float, Double' if table else 'Long, Int'}; but got {x.type()} instead (while "
            f"checking arguments for {call})",
            remedy=f"convert it with .to(torch.{'float32' if table else 'int64'})",
        )


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
    """One-hot encoding: for each number a row of zeros with a 1 there; `num_classes` -1 is the largest plus 1.

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
    if tensor.is_meta and num_classes == -1:
        raise UnsupportedError("one_hot: a meta tensor has no largest element", remedy="pass num_classes")
    low, high = kernels.value_range(tensor)
    if low < 0:
        raise ShapeError(beyond(tensor, 0, high, "Class values must be non-negative."))
    if num_classes != -1 and high >= num_classes:
        raise ShapeError(beyond(tensor, 0, num_classes - 1, "Class values must be smaller than num_classes."))
    classes = high + 1 if num_classes == -1 else num_classes
    zeros = creation.zeros(*tensor.shape, classes, dtype=dtypes.int64, device=tensor.device)
    return scatter(zeros, -1, tensor.unsqueeze(-1), 1)
