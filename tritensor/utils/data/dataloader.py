"""The DataLoader: it combines samplers, fetching and copies to a device."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from types import GenericAlias
from typing import Any

from ...errors import ArgumentError, require, warn
from ...ground.arguments import check_number
from ...random import Generator, randint
from ...types import Device
from ...types.devices import device as device_class
from .collate import default_collate, default_convert, map_leaves
from .dataset import IterableDataset
from .fetch import Recipe
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from .workers import Pool, Prefetched, Startup, Threads

__all__ = ["DataLoader"]


class _Endless(Sampler[None]):
    """In place of a sampler for a stream, which has no indices."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader:
    """Loads a dataset in batches: sampling, collating, and worker processes.

    Args:
        dataset: a map-style `Dataset` (anything with `__getitem__` and `__len__`) or an `IterableDataset`.
        batch_size: examples in a batch; None turns batching off and yields examples as they are.
        shuffle: go through the dataset in a new random order each time.
        sampler: which indices to use, in what order; excludes `shuffle`.
        batch_sampler: which lists of indices to use; excludes `batch_size`, `shuffle`, `sampler` and `drop_last`.
        num_workers: how many processes make batches ahead of time; 0 makes them here. The order of the batches does
            not depend on the number. Each worker has its own copy of the dataset and its own seeds of `random`, NumPy
            and tritensor; its arrays arrive in shared memory. Its exceptions are raised here.
        collate_fn: joins a list of examples into a batch; `default_collate` unless given.
        pin_memory: put batches in page-locked memory; without a CUDA device nothing happens.
        drop_last: leave out the last batch if it is shorter.
        timeout: seconds to wait for a worker's batch; 0 waits for ever.
        worker_init_fn: called with the worker's number when it starts.
        multiprocessing_context: how workers start, "fork" (the default on Linux), "spawn" (elsewhere) or "forkserver",
            or a context of `multiprocessing`. "thread" makes them threads: nothing is pickled, each has a shallow copy
            of the dataset, and only code that releases Python's lock runs in parallel, such as decoders.
        generator: what shuffling and the workers' seeds are drawn from, for a reproducible order.
        prefetch_factor: batches that each worker makes ahead (2 unless given).
        persistent_workers: keep the workers from one pass to the next.
        in_order: if False batches come as workers finish them.
        device: batches are moved to this device. While a batch is in use the next one is copied, through page-locked
            memory and without waiting; reading it waits for the copy. Tensors are found in mappings, sequences and
            named tuples at any depth; other objects are moved if they have a `to` method.

    >>> import tritensor as torch
    >>> from tritensor.utils.data import TensorDataset
    >>> for x, y in DataLoader(TensorDataset(torch.arange(3), torch.ones(3)), batch_size=2):
    ...     print(x, y)
    tensor([0, 1]) tensor([1., 1.])
    tensor([2]) tensor([1.])

    Raises:
        ValueError: options that exclude each other, or numbers out of range, with PyTorch's words.
        DeviceError: an unknown device.
    """

    # `DataLoader[int]` is a base and an annotation, which may be evaluated
    __class_getitem__: Any = classmethod(GenericAlias)
    _locked = False
    # what len() returned for a stream, which may turn out to be longer
    _promised: int | None = None
    _kept: Pool | None = None  # the workers of all passes, if they are persistent

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        device: Device = None,
    ) -> None:
        _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        streaming = isinstance(dataset, IterableDataset)
        if streaming:
            _check_stream_options(shuffle, sampler, batch_sampler)
        batch_size, drop_last = _check_batch_options(batch_size, bool(shuffle), sampler, batch_sampler, drop_last)
        chosen: Any = sampler
        if sampler is None and streaming:
            chosen = _Endless()
        elif sampler is None:
            chosen = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(chosen, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler: Any = chosen
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.collate_fn = collate_fn or (default_collate if batch_sampler is not None else default_convert)
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.device = None if device is None else device_class(device)
        self._streaming = streaming
        self._locked = True

    def __setattr__(self, name: str, value: object) -> None:
        if self._locked and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        batches = self._batches()
        if self.pin_memory or self.device is not None:
            batches = _Staged(batches, self.pin_memory, self.device)
        return _Pass(batches, self)

    def _batches(self) -> Iterator[Any]:
        batched = self.batch_sampler is not None
        recipe = Recipe(self.collate_fn, self._streaming, batched, self.batch_size, self.drop_last)
        # drawn without workers too, so that their number does not change the order
        seed = int(randint(0, 2**62, (1,), generator=self.generator).item())
        source: Any = self.batch_sampler if batched else self.sampler
        tasks = iter(source)
        if self.num_workers == 0:
            require(self.timeout == 0, AssertionError, "timeout needs workers to wait for: set num_workers > 0")
            if self._streaming:
                return recipe.stream(self.dataset)
            # map, and not a generator, which an exception would end: after an example that fails, the next batch can
            # still be read
            return map(recipe.fetch(self.dataset), tasks)
        return Prefetched(
            self._pool(recipe, seed),
            self.num_workers,
            itertools.repeat(None) if self._streaming else tasks,
            prefetch_factor=self.prefetch_factor or 0,
            timeout=self.timeout,
            in_order=self.in_order,
            keep=self.persistent_workers,
        )

    def _pool(self, recipe: Recipe, seed: int) -> Pool:
        """The workers of a pass."""
        if self._kept is not None and self._kept.usable:
            return self._kept
        startup = Startup(self.dataset, recipe, self.num_workers, seed, self.worker_init_fn)
        pool: Pool
        if self.multiprocessing_context == "thread":
            pool = Threads(startup)
        else:
            from .processes import Processes, context_of

            pool = Processes(startup, context_of(self.multiprocessing_context))
        if self.persistent_workers:
            self._kept = pool
        return pool

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}

    def __len__(self) -> int:
        if not self._streaming:
            source: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
            return len(source)
        length = len(self.dataset)
        if self.batch_size is not None:
            whole, rest = divmod(length, self.batch_size)
            length = whole + (rest > 0 and not self.drop_last)
        self._promised = length
        return length


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _Pass:
    """One pass over a loader: an iterator of batches that knows how many there will be."""

    def __init__(self, batches: Iterator[Any], loader: DataLoader) -> None:
        self._batches = batches
        self._loader = loader
        self._yielded = 0
        self._promised = loader._promised

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batch = next(self._batches)
        self._yielded += 1
        if self._promised is not None and self._yielded > self._promised:
            warn(
                f"Length of IterableDataset {self._loader.dataset} was reported to be {self._promised} (when accessing "
                f"len(dataloader)), but {self._yielded} samples have been fetched. With several workers, each has to "
                "take its share of the stream: see get_worker_info()."
            )
            self._promised = None
        return batch

    def __len__(self) -> int:
        return len(self._loader)


class _Staged:
    """Copies each batch to the device while the one before it is in use."""

    def __init__(self, batches: Iterator[Any], pin: bool, device: Device) -> None:
        self._batches = batches
        self._pin = pin
        self._device = device
        self._ahead: tuple[Any, BaseException | None] | None = None

    def _move(self, leaf: object) -> Any:
        if self._pin and hasattr(leaf, "pin_memory"):
            leaf = leaf.pin_memory()
        if self._device is not None and hasattr(leaf, "to"):
            leaf = leaf.to(self._device, non_blocking=True)
        return leaf

    def _pull(self) -> tuple[Any, BaseException | None]:
        """Start to copy the next batch to the device; an error is kept, to be raised when the batch is due."""
        try:
            batch, error = (
                self._batches.take() if isinstance(self._batches, Prefetched) else (next(self._batches), None)
            )
            return (None, error) if error is not None else (map_leaves(batch, self._move), None)
        except Exception as error:
            return None, error

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batch, error = self._ahead or self._pull()
        self._ahead = None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame
        if self._device is not None:
            try:
                self._ahead = self._pull()
            except BaseException:  # an interrupt: the batch is still due
                self._ahead = batch, None
                raise
        return batch


def _check_worker_options(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool, context: Any
) -> None:
    check_number(
        "num_workers",
        num_workers,
        lambda value: not value < 0,
        "num_workers option should be non-negative; use num_workers=0 to load in the thread that iterates.",
    )
    if not hasattr(num_workers, "__index__"):  # PyTorch raises this at the first pass
        raise ArgumentError(
            f"'{type(num_workers).__name__}' object cannot be interpreted as an integer",
            f"num_workers is {num_workers!r}",
            remedy="pass a whole number",
        )
    check_number("timeout", timeout, lambda value: not value < 0, "timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. "
            "Let num_workers > 0 to enable workers, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None:
        words = "prefetch_factor option should be non-negative"
        check_number("prefetch_factor", prefetch_factor, lambda value: not value < 0, words)
    require(not persistent_workers or num_workers != 0, ValueError, "persistent_workers option needs num_workers > 0")
    if context is not None:
        _check_context(context, num_workers)


def _check_context(context: object, num_workers: int) -> None:
    got = f"but got multiprocessing_context={context!r}"
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
            f"but got num_workers={num_workers}"
        )
    methods = [*multiprocessing.get_all_start_methods(), "thread"]
    if isinstance(context, str) and context not in methods:
        raise ValueError(f"multiprocessing_context option should specify a valid start method in {methods!r}, {got}")
    if not isinstance(context, (str, multiprocessing.context.BaseContext)):
        raise ArgumentError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            + got
        )


def _check_stream_options(shuffle: object, sampler: object, batch_sampler: object) -> None:
    for name, value, unset in (
        ("shuffle", shuffle, (None, False)),
        ("sampler", sampler, (None,)),
        ("batch_sampler", batch_sampler, (None,)),
    ):
        if not any(value is nothing for nothing in unset):
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


def _check_batch_options(
    batch_size: int | None, shuffle: bool, sampler: Any, batch_sampler: Any, drop_last: bool
) -> tuple[int | None, bool]:
    """The batch size and `drop_last` to use, after checking that the options can be combined."""
    require(sampler is None or not shuffle, ValueError, "sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
        return None, False
    if batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
    return batch_size, drop_last
