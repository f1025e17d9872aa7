"""Tensors in memory that processes share: a file in the system's memory where it has such a folder."""

from __future__ import annotations

import os
import tempfile
import weakref
from multiprocessing.reduction import ForkingPickler
from sys import getrefcount
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...ground.public import method
from ...memory.storage import owner_of
from ...tensors import Tensor
from ...tensors.tensor import blank

_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else None
_mapped: weakref.WeakValueDictionary[str, np.memmap] = weakref.WeakValueDictionary()  # of this process, by path


@method()
def share_memory_(self: Tensor) -> Tensor:
    """Move the elements to memory that other processes share, and return the tensor.

    Processes that get the tensor, by `multiprocessing` or by a fork, see what any of them writes. On a device it does
    nothing.

    >>> import tritensor as torch
    >>> x = torch.arange(3.0)
    >>> x.is_shared(), x.share_memory_().is_shared(), x
    (False, True, tensor([0., 1., 2.]))

    Raises:
        UnsupportedError: another tensor or array shares the memory, and would not see what is written.
    """
    if self._off_host or is_shared(self):
        return self
    data = self._host_array()
    if data.base is not None or getrefcount(data) > 3:  # the tensor's, `data` and the call's
        remedy = "share it before views are made, or share a clone()"
        raise UnsupportedError("share_memory_: other tensors or arrays are views of the same memory", remedy=remedy)
    handle, path = tempfile.mkstemp(prefix="tritensor-shared-", dir=_FOLDER)
    os.truncate(handle, max(data.nbytes, 1))
    os.close(handle)
    held = _map(path)
    weakref.finalize(held, _remove, path, os.getpid())
    self._data = np.ndarray(data.shape, data.dtype, held, 0, data.strides)
    self._data[...] = data
    ForkingPickler.register(type(self), _reduced)
    return self


@method()
def is_shared(self: Tensor) -> bool:
    """True if the elements are in memory that processes share; on a CUDA device they are."""
    owner = None if self._off_host else owner_of(self._host_array())
    return self.is_cuda or (isinstance(owner, np.memmap) and _mapped.get(str(owner.filename)) is owner)


def _map(path: str) -> np.memmap:
    held = _mapped.get(path)
    if held is None:
        held = _mapped[path] = np.memmap(path, np.uint8, "r+")
    return held


def _remove(path: str, process: int) -> None:
    """Delete the file of memory that the process has made; mappings stay."""
    if os.getpid() == process and os.path.exists(path):
        os.unlink(path)


def _reduced(x: Tensor) -> tuple[Any, ...]:
    """How a tensor travels to another process: shared memory by its name."""
    if not is_shared(x) or x.is_cuda:
        return x.__reduce_ex__(2)
    data = x._host_array()
    owner: Any = owner_of(data)
    start = data.ctypes.data - owner.ctypes.data
    return _attached, (type(x), str(owner.filename), start, data.shape, data.strides, data.dtype, x._needs)


def _attached(
    kind: type[Tensor],
    path: str,
    start: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    needs: bool,
) -> Tensor:
    """The tensor in the process that gets it."""
    made: Tensor = blank(kind, np.ndarray(shape, dtype, _map(path), start, strides))
    made._needs = needs
    ForkingPickler.register(kind, _reduced)
    return made
