"""Datasets: collections and streams of examples, and how datasets are split and joined."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ...errors import require, warn
from ...random import Generator, randperm
from ...tensors import Tensor

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset"]
__all__ += ["random_split"]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """The base of datasets whose examples are accessed by index.

    A subclass defines `__getitem__` and, for the default samplers, `__len__`. It may define `__getitems__(indices)`,
    which returns the list of examples of a whole batch at once.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(
            f"Subclasses of Dataset should implement __getitem__. {type(self).__name__} does not."
        )

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """The base of datasets that are a stream: a subclass defines `__iter__`.

    With `DataLoader(num_workers=N)` every worker iterates its own shallow copy of the dataset, so `__iter__` has to use
    `get_worker_info()` to yield only its share of the stream; otherwise every example is yielded N times.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise TypeError(f"{type(self).__name__}: subclasses of IterableDataset should implement __iter__")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """A dataset of tensors with the same first dimension: an example is a tuple with one row of each.

    >>> import tritensor as torch
    >>> TensorDataset(torch.arange(3), torch.ones(3, 2))[1]
    (tensor(1), tensor([1., 1.]))

    Raises:
        AssertionError: no tensor, or first dimensions that differ.
    """

    def __init__(self, *tensors: Tensor) -> None:
        require(tensors, AssertionError, "TensorDataset needs at least one tensor")
        sizes = [len(tensor) for tensor in tensors]
        if any(size != sizes[0] for size in sizes):
            raise AssertionError(f"Size mismatch between tensors: their first dimensions are {sizes}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """A dataset of tuples (of `args`) or dicts (of `kwargs`) of the examples of several datasets at the same index.

    Raises:
        ValueError: both or neither of the two forms, or lengths that differ.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, "
                "but both types are given."
            )
        require(args or kwargs, ValueError, "At least one dataset should be passed")
        self.datasets: tuple[Any, ...] | dict[str, Any] = args or kwargs
        lengths = [len(dataset) for dataset in args or kwargs.values()]
        if any(length != lengths[0] for length in lengths):
            raise ValueError(f"Size mismatch between datasets: their lengths are {lengths}")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """A dataset of the examples of several datasets, one after another (concatenated).

    Raises:
        AssertionError: no dataset, or an `IterableDataset` among them.
    """

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets: list[Any] = list(datasets)
        require(self.datasets, AssertionError, "datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        size = len(self)
        if index < -size:
            raise ValueError("absolute value of index should not exceed dataset length")
        if index >= size:
            # PyTorch raises its list's "list index out of range" here; the type is the same.
            raise IndexError(f"index {index} is out of range for a ConcatDataset of {size} examples")
        index %= size
        which = bisect.bisect_right(self.cumulative_sizes, index)
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - start]


class ChainDataset(IterableDataset[T_co]):
    """A stream of several streams one after another; `datasets` is itself iterated as the stream reaches it."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            require(isinstance(dataset, IterableDataset), AssertionError, "ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self._streams():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._streams())


class Subset(Dataset[T_co]):
    """A dataset of the examples of `dataset` at `indices`."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{own.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding "
                "__getitem__, you must also override __getitems__ to ensure DataLoader works correctly with your "
                "custom logic: `return [self[index] for index in indices]` is enough."
            )
        self.dataset: Any = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        chosen = [self.indices[index] for index in indices]
        whole = getattr(self.dataset, "__getitems__", None)
        return whole(chosen) if whole is not None else [self.dataset[index] for index in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def _lengths_of_fractions(fractions: Sequence[float], size: int) -> list[int]:
    """The floor of each fraction's share; the remaining examples are added to the splits one by one."""
    for position, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {position} is not between 0 and 1")
    lengths = [math.floor(size * fraction) for fraction in fractions]
    for position in range(size - sum(lengths)):
        lengths[position % len(lengths)] += 1
    for position, length in enumerate(lengths):
        if length == 0:
            warn(f"Length of split at index {position} is 0. This might result in an empty dataset.")
    return lengths


def random_split(
    dataset: Dataset[Any], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[Any]]:
    """Split a dataset at random into parts of these lengths, or of these fractions (which add up to 1).

    >>> [len(part) for part in random_split(range(10), [0.7, 0.3])]
    [7, 3]

    Raises:
        ValueError: lengths that do not add up to the dataset's, or a fraction outside 0 to 1.
    """
    source: Any = dataset
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        lengths = _lengths_of_fractions(lengths, len(source))
        total = sum(lengths)
    if total != len(source):
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"The lengths add up to {total}, the dataset has {len(source)} examples."
        )
    indices = randperm(int(total), generator=generator).tolist()
    ends = itertools.accumulate(int(length) for length in lengths)
    return [Subset(dataset, indices[end - int(length) : end]) for end, length in zip(ends, lengths, strict=True)]
