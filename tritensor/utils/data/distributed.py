"""The sampler for several processes: each gets its own part of the dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sized

from ...random import Generator, randperm
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """A sampler of every `num_replicas`-th index of `dataset`, so that the processes of a job share a pass over it.

    All processes draw the same order, from `seed` and the number of the epoch; call `set_epoch` before each pass, or
    all passes have the same order. If the length is not a multiple of `num_replicas`, the first indices are used again
    to fill up, or with `drop_last` the rest is left out, so that all processes make the same number of steps.

    >>> [list(DistributedSampler("abcde", num_replicas=2, rank=rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]

    Args:
        dataset: any object with a length.
        num_replicas: how many processes there are; those of `tritensor.distributed` unless given.
        rank: the number of this one; also from `tritensor.distributed` unless given.
        shuffle: draw an order, or keep the dataset's.
        seed: the same in all processes.
        drop_last: leave out the last indices instead of repeating the first ones.

    Raises:
        ValueError: no such rank, or (without `num_replicas` and `rank`) no process group.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from ... import distributed as dist

            num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
            rank = dist.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch whose order the next pass draws."""
        self.epoch = epoch

    @property
    def num_samples(self) -> int:
        """The number of indices that each process gets."""
        whole, rest = divmod(len(self.dataset), self.num_replicas)
        return whole + (rest > 0 and not self.drop_last)

    @property
    def total_size(self) -> int:
        """The number of indices that all processes get together."""
        return self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        size, total = len(self.dataset), self.total_size
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = randperm(size, generator=generator).tolist()
        else:
            order = list(range(size))
        return iter([order[position % size] for position in range(self.rank, total, self.num_replicas)])

    def __len__(self) -> int:
        return self.num_samples
