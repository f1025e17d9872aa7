"""`load_into`: read a checkpoint into a model's existing parameters, one storage at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import CheckpointError
from ..ground.overriding import unasked
from ..tensors import Tensor, blank
from ..types.devices import cpu, device
from ..types.dtypes import dtype
from ..types.size import Size
from .builder import Builder, StorageRecord, StoredTensor
from .checkpoint import Checkpoint
from .malformed import Malformed, refusing
from .reader import load, open_checkpoint, source_name
from .safetensors_files import is_safetensors_name
from .source import open_source
from .tensors import read_storage, resolve, view_of


def load_into(model: Any, f: Any, *, strict: bool = True) -> Any:
    """Load the state dict in a file into `model`, whose parameters keep their memory, device and dtype.

    `model.load_state_dict(load(f))` holds the whole checkpoint in memory beside the model; this function holds one
    storage of it, which is read, copied to its parameters and freed. The file is first read once and compared with its
    checksums, and every name and shape is compared with the model's, so a file that does not fit changes nothing.

    Args:
        model: a module.
        f: a path, or a readable and seekable binary file object, that holds a state dict.
        strict: whether missing and unexpected keys are errors.

    Returns:
        What `load_state_dict` returns: the missing and the unexpected keys.

    Raises:
        CheckpointError: damaged, refused, no state dict, or keys and shapes that do not fit (PyTorch's words).
        OSError: the file cannot be opened or read.

    >>> import tempfile, os, tritensor
    >>> model, other = tritensor.nn.Linear(2, 3), tritensor.nn.Linear(2, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tritensor.save(model.state_dict(), os.path.join(folder, "model.pt"))
    ...     tritensor.serialization.load_into(other, os.path.join(folder, "model.pt"))
    <All keys matched successfully>
    >>> bool((model.weight == other.weight).all())
    True
    """
    if is_safetensors_name(f):
        return model.load_state_dict(load(f, "cpu"), strict=strict)
    try:
        with open_source(f) as source:
            checkpoint = open_checkpoint(source)
            builder = _StreamBuilder(checkpoint)
            with refusing(source.name):
                state = checkpoint.read_object(builder)
            if not isinstance(state, dict) or any(type(key) is not str for key in state):
                raise CheckpointError(
                    f"load_into: {source.name} holds a {type(state).__name__} and no state dict",
                    remedy="load() it, and give load_state_dict() the part that is one",
                )
            records = list(builder.storages.values())
            with source.showing(2 * sum(record.nbytes for record in records)):
                checkpoint.verify(records)
                return model.load_state_dict(state, strict=strict)
    except Malformed as error:
        raise error.as_error(source_name(f)) from None


class StreamedTensor(Tensor):
    """A tensor that is still in the file: it has a shape and dtype, and reads its elements each time they are used."""

    __torch_function__ = unasked
    _stored: StoredTensor
    _builder: _StreamBuilder

    @property
    def _data(self) -> Any:
        return self._builder.read(self._stored)

    @_data.setter
    def _data(self, stored: StoredTensor) -> None:
        self._stored = stored

    @property
    def shape(self) -> Size:
        """The extents of the dimensions."""
        return Size(self._stored.size)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._stored.size)

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return self._stored.dtype

    @property
    def device(self) -> device:
        """The CPU, where the elements are read to."""
        return cpu

    is_cuda = False


class _StreamBuilder(Builder):
    """Makes tensors that stay in the file, and keeps the last storage that was read, because the next tensor may be a
    view of it."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self._checkpoint = checkpoint
        self._last: StorageRecord | None = None

    def make(self, stored: StoredTensor) -> StreamedTensor:
        tensor: StreamedTensor = blank(StreamedTensor, stored)
        tensor._builder = self
        return tensor

    def parameter(self, tensor: Any, requires_grad: bool) -> Any:
        return tensor if isinstance(tensor, StreamedTensor) else None

    def read(self, stored: StoredTensor) -> np.ndarray:
        """The elements of a tensor."""
        record = stored.storage
        if self._last is not record:
            if self._last is not None:
                self._last.memory = None
            record.memory = np.empty(record.nbytes, np.uint8)
            self._last = record
            read_storage(self._checkpoint, record, record.memory)
        return view_of(stored, resolve(stored) if stored.conjugate or stored.negative else record.memory)
