"""Samplers: which examples of a dataset are used, in which order, and how they are grouped into batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from ...random import Generator, randint, randperm

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)

# How many draws with replacement are made at a time: one call to the generator costs as much as thousands of draws.
_DRAWS = 4096


class Sampler(Generic[T_co]):
    """The base of samplers: an iterable of indices, or of lists of indices, with a length if it is known."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__, which every sampler must")


class SequentialSampler(Sampler[int]):
    """A sampler of the indices 0, 1, 2, ... of `data_source` in order.

    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def fresh_generator() -> Generator:
    """A generator seeded from the global one, so that `manual_seed` determines what it draws."""
    generator = Generator()
    generator.manual_seed(int(randint(0, 2**62, (1,)).item()))
    return generator


class RandomSampler(Sampler[int]):
    """A sampler of the indices of `data_source` in random order.

    Without replacement each pass is a permutation (and a longer `num_samples` goes through several); with it, each
    index is drawn from all. `generator` draws the numbers; None means a generator seeded by the global one.

    Raises:
        TypeError: `replacement` is not a bool.
        ValueError: `num_samples` is not a positive integer.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """The number of indices that one pass yields: `num_samples` if given, else the dataset's current length."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size = len(self.data_source)
        generator = self.generator or fresh_generator()
        left = self.num_samples
        while left > 0:
            if self.replacement:
                drawn = randint(0, size, (min(left, _DRAWS),), generator=generator).tolist()
            else:
                drawn = randperm(size, generator=generator).tolist()[:left]
            yield from drawn
            left -= len(drawn)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """A sampler of the `indices` in random order, each once."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for position in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """A sampler of `num_samples` indices, each drawn with a probability proportional to its weight.

    Raises:
        ValueError: `num_samples` is not a positive integer, `replacement` is not a bool, the weights are not a 1-d
            sequence of finite numbers of at least 0 with one above 0, or too few are above 0 to draw without
            replacement.
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        table = np.asarray(weights.tolist() if hasattr(weights, "tolist") else weights, dtype=np.float64)
        if table.ndim != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {table.shape}")
        if not np.all(np.isfinite(table)) or np.any(table < 0) or not np.any(table > 0):
            raise ValueError("weights should be finite numbers of at least 0 with at least one above 0")
        if not replacement and np.count_nonzero(table) < num_samples:
            raise ValueError(
                f"cannot draw {num_samples} samples without replacement: "
                f"only {np.count_nonzero(table)} weights are above 0"
            )
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator
        self._table = table

    def __iter__(self) -> Iterator[int]:
        generator = self.generator or fresh_generator()
        # One number of the generator seeds NumPy's generator: tensors have no equivalent of the draws below.
        draws = np.random.default_rng(int(randint(0, 2**62, (1,), generator=generator).item()))
        share = self._table / self._table.sum()
        picked = draws.choice(len(share), self.num_samples, replace=self.replacement, p=share)
        return iter(picked.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """A sampler of batches, lists of `batch_size` indices; with `drop_last` a shorter last list is left out.

    >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]

    Raises:
        ValueError: `batch_size` is not a positive integer or `drop_last` not a bool.
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        sampler: Any = self.sampler
        whole, rest = divmod(len(sampler), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
