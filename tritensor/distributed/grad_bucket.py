"""GradBucket: the gradients that `DistributedDataParallel` hands to a communication hook."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from ..autograd.mode import no_grad
from ..tensors import Tensor


class BuiltinCommHookType(Enum):
    """The hooks that `DistributedDataParallel._register_builtin_comm_hook` knows."""

    ALLREDUCE = "allreduce_hook"
    FP16_COMPRESS = "fp16_compress_hook"


class GradBucket:
    """The gradients of some parameters, one after another in a flat tensor."""

    def __init__(self, index: int, last: bool, buffer: Tensor, parameters: Sequence[Tensor]) -> None:
        self._index, self._last, self._buffer, self._parameters = index, last, buffer, list(parameters)

    def index(self) -> int:
        """The bucket's number. Bucket 0 is the first of a backward pass, with the last parameters of the module."""
        return self._index

    def is_last(self) -> bool:
        """True for the last bucket of a backward pass."""
        return self._last

    def buffer(self) -> Tensor:
        """The gradients of this process in one dimension, not divided by the number of processes."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Put another tensor in the place of the buffer, of as many elements."""
        self._buffer = buffer

    def parameters(self) -> list[Tensor]:
        """The parameters that these are the gradients of."""
        return list(self._parameters)

    def gradients(self) -> list[Tensor]:
        """The gradient of each parameter: a view of the buffer in the parameter's shape."""
        return views_of(self._buffer, self._parameters)


def views_of(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """A view of a flat tensor for each of the others, in its shape."""
    with no_grad():
        parts = flat.split([x.numel() for x in like])
        return [part.reshape(x.shape) for part, x in zip(parts, like, strict=True)]
