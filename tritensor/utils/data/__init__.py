"""Datasets, samplers and the loader that makes batches of them."""

from __future__ import annotations

from .collate import collate, default_collate, default_collate_fn_map, default_convert
from .dataloader import DataLoader
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler
from .workers import WorkerInfo, get_worker_info

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler"]
__all__ += ["IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset"]
__all__ += ["SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "WorkerInfo", "collate", "default_collate"]
__all__ += ["default_collate_fn_map", "default_convert", "get_worker_info", "random_split"]
