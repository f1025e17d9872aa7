"""Sequences of several lengths: padded to one tensor, or packed (`PackedSequence`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from ... import functional as F
from ...autograd.gradients import called
from ...errors import ShapeError, require
from ...functional.creation.creation import as_tensor, empty, full
from ...functional.creation.ranges import arange
from ...tensors import Tensor, wrap
from ...types import dtypes

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence"]
__all__ += ["pad_sequence", "unpack_sequence", "unpad_sequence"]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences of several lengths, longest first: all first steps, then all second ones, and so on.

    Attributes:
        data: (rows of all steps, *).
        batch_sizes: how many sequences have each step; on the CPU, or a ValueError is raised.
        sorted_indices, unsorted_indices: the order that the sequences were brought into, and the one back; None for
            those that were sorted already.
    """

    __slots__ = ()

    def __new__(  # noqa: D102
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _changed(self, data: Tensor, change: Callable[..., Any]) -> Self:
        indices = [each if each is None else change(each) for each in self[2:]]
        return self if data is self.data else type(self)(data, self.batch_sizes, *indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """With the data on another device or of another dtype, as `Tensor.to`; itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        late = bool(kwargs.get("non_blocking", False))
        return self._changed(data, lambda indices: indices.to(data.device, non_blocking=late))

    def pin_memory(self) -> Self:
        """In page-locked memory."""
        return self._changed(self.data.pin_memory(), lambda indices: indices.pin_memory())

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """On a CUDA device."""
        there = empty(0, dtype=self.data.dtype, device=self.data.device).to(*args, **kwargs).is_cuda
        return self.to(*args, **kwargs) if there else self.to(*args, **{**kwargs, "device": "cuda"})

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """On the CPU."""
        return self.to(*args, **kwargs, device="cpu")

    @property
    def is_cuda(self) -> bool:
        """True if the data are on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """True if the data are in page-locked memory."""
        return self.data.is_pinned()


def _declare(name: str, kind: dtypes.dtype) -> None:
    def convert(self: PackedSequence) -> PackedSequence:
        return self.to(dtype=kind)

    convert.__name__, convert.__doc__ = name, f"With data of {kind}."
    setattr(PackedSequence, name, convert)


_NAMES = {"double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "short": "int16"}
for _name, _kind in (_NAMES | {"char": "int8", "byte": "uint8"}).items():
    _declare(_name, getattr(dtypes, _kind))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation: `invert_permutation(p)[p[i]] == i`; None for None.

    >>> import tritensor as torch
    >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = arange(permutation.numel(), device=permutation.device)
    return permutation.clone().scatter_(0, permutation, places.to(permutation.dtype))


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences, (T, B, *) or with `batch_first` (B, T, *): their steps without the padding.

    >>> import tritensor as torch
    >>> x = torch.tensor([[1, 2, 3], [4, 5, 0]])
    >>> torch.nn.utils.rnn.pack_padded_sequence(x, [3, 2], batch_first=True)[:2]
    (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))

    Args:
        lengths: of the B sequences, on the CPU.
        enforce_sorted: whether the sequences must come longest first; else they are brought into that order.

    Raises:
        ShapeError: lengths that are not sorted, below 1, above T, not B many, or on a device; a tensor of nothing.
    """
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=dtypes.int64)
    else:
        lengths = as_tensor(np.array(lengths).astype(np.int64))
    batch_dim, indices = 0 if batch_first else 1, None
    if not enforce_sorted:
        lengths, order = lengths.sort(descending=True)
        indices = order.to(input.device)
        input = input.index_select(batch_dim, indices)
    steps, batch = input.size(1 - batch_dim), input.size(batch_dim)
    longs = _lengths(input, lengths, batch, steps)
    sizes = (longs[:, None] > np.arange(longs[0])).sum(0)
    step, place = _places(sizes)
    rows = place * steps + step if batch_first else step * batch + place
    data = called("PackPaddedSequenceBackward0", input.flatten(0, 1)[rows])
    return PackedSequence(data, wrap(sizes.astype(np.int64)), indices, None)


def _lengths(input: Tensor, lengths: Tensor, batch: int, steps: int) -> np.ndarray:
    """The lengths as an array; raises for those that do not fit, with PyTorch's words where it has some."""
    words = remedy = ""
    if lengths.ndim != 1 or lengths.is_cuda:
        kind = f"{lengths.ndim}D {lengths.device} {lengths.dtype.legacy}"
        words = f"'lengths' argument should be a 1D CPU int64 tensor, but got {kind} tensor"
        remedy = "pass a vector on the CPU: packing needs the lengths there"
        raise ShapeError(words, remedy=remedy)
    found: np.ndarray = lengths.numpy()
    if not input.numel():
        words = "Cannot pack empty tensors."
    elif len(found) != batch:
        words = f"Expected `len(lengths)` to be equal to batch_size, but got {len(found)} (batch_size={batch})"
    elif found[-1] <= 0:
        words = "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
    elif (np.diff(found) > 0).any():
        words = (
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    elif found[0] > steps:
        words = f"Expected lengths of at most {steps}, the number of steps, but got {found[0]}"
        remedy = "with batch_first=True the steps are the second dimension, without it the first"
    if words:
        raise ShapeError(words, remedy=remedy)
    return found


def _places(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Step and sequence of each row."""
    step = np.repeat(np.arange(len(sizes)), sizes)
    return step, np.arange(len(step)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Pads packed sequences: one tensor, (T, B, *) or (B, T, *), in their first order, and their lengths.

    Args:
        total_length: T, the longest length unless given.

    Raises:
        ValueError: T is less than a length. ShapeError: sizes that are no packed sequence's.
    """
    sizes = sequence.batch_sizes.numpy()
    steps = len(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    require(len(sizes), ShapeError, "batch_sizes can not be empty")
    if (np.diff(sizes) > 0).any() or len(sequence.data) < sizes.sum():
        rows = len(sequence.data)
        raise ShapeError(f"batch_sizes {sizes.tolist()} are not those of a packed sequence of {rows} rows")
    data, batch = sequence.data, int(sizes[0])
    step, place = _places(sizes)
    shape = (batch, steps) if batch_first else (steps, batch)
    rows = place * steps + step if batch_first else step * batch + place
    padded = full((batch * steps, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    padded = padded.index_copy(0, wrap(rows).to(data.device), data[: len(rows)]).unflatten(0, shape)
    lengths = wrap((np.arange(batch)[:, None] < sizes).sum(1))
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(1 - batch_first, back), lengths[back.cpu()]


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Pads tensors (L_i, *) to one of (T, B, *) or (B, T, *), T the longest, filled up with a number.

    >>> import tritensor as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])

    Args:
        padding_side: where the number goes, "right" (after the sequence) or "left".

    Raises:
        ShapeError: no sequences, trailing sizes that differ, or another side.
    """
    if not isinstance(sequences, Iterable):
        raise ShapeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    given = tuple(sequences)
    require(given, ShapeError, "received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise ShapeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    rest = tuple(given[0].shape[1:])
    for each in given:
        if not each.ndim or tuple(each.shape[1:]) != rest:
            raise ShapeError(f"The size of tensor a {rest} must match the size of tensor b {tuple(each.shape)[1:]}")
    longest, parts = max(map(len, given)), []
    for each in given:
        shape, options = (longest - len(each), *rest), {"dtype": given[0].dtype, "device": each.device}
        more = full(shape, padding_value, **options)
        parts.append(F.cat((each.to(more.dtype), more) if padding_side == "right" else (more, each.to(more.dtype))))
    return F.stack(parts, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor, (T, B, *) or (B, T, *), each without its padding.

    Raises:
        ValueError: another number of lengths than of sequences.
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs tensors (L_i, *); longest first, unless `enforce_sorted` is false.

    >>> import tritensor as torch
    >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).data
    tensor([1, 3, 2])

    Raises:
        ShapeError: as `pad_sequence` and `pack_padded_sequence`.
    """
    return pack_padded_sequence(pad_sequence(sequences), [len(each) for each in sequences], False, enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed, in their first order."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)
