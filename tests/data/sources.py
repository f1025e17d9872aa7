"""Datasets of squares and streams of numbers that the tests load, and batches as lists."""

from __future__ import annotations

import time
from collections import namedtuple

from tritensor.utils import data

Point = namedtuple("Point", ["x", "y"])


class Squares(data.Dataset):
    def __init__(self, size=10):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index * index


class Stream(data.IterableDataset):
    def __init__(self, size=10):
        self.size = size

    def __iter__(self):
        worker = data.get_worker_info()
        if worker is None:
            return iter(range(self.size))
        return iter(range(worker.id, self.size, worker.num_workers))


class SizedStream(Stream):
    def __len__(self):
        return self.size


class Failing(Squares):
    def __getitem__(self, index):
        if index == 3:
            raise KeyError("number three")
        return index


def lists(loader):
    return [batch.tolist() for batch in loader]


class Raising(Squares):
    """Raises what `errors` has for an index."""

    def __init__(self, size, errors):
        super().__init__(size)
        self.errors = errors

    def __getitem__(self, index):
        if index in self.errors:
            raise self.errors[index]
        return index


class Dying(Squares):
    def __init__(self, size, how):
        super().__init__(size)
        self.how = how

    def __getitem__(self, index):
        if index == 3:
            time.sleep(0.2)  # the other worker hands over what is before: a death is told at once
            self.how()
        return index
