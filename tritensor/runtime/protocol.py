"""The attributes of an operator that the runtime uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from .. import dtypes
    from ..memory.array import DeviceArray

__all__ = ["Operator"]


class Operator(Protocol):
    """The part of `tritensor.operator.Operator` that is used to launch, repeat, check and time it."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kinds: dict[str, dtypes.dtype]
    takes_numbers: bool

    def launch(
        self, outs: list[DeviceArray], arrays: Sequence[Any], compute: dtypes.dtype, metadata: dict[str, Any]
    ) -> None:
        """Run the kernels."""

    def compute(
        self,
        arrays: Sequence[Any],
        compute: dtypes.dtype,
        results: tuple[dtypes.dtype, ...],
        metadata: dict[str, Any],
    ) -> tuple[np.ndarray, ...]:
        """The reference's results."""

    def cost(self, outs: Sequence[DeviceArray], arrays: Sequence[Any], metadata: dict[str, Any]) -> tuple[int, int]:
        """The least number of bytes moved, and the number of operations."""
