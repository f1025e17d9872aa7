"""The attributes of an operator that the runtime uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from .. import dtypes
    from .call import Call
    from .replay import Replay

__all__ = ["Operator"]


class Operator(Protocol):
    """The part of `tritensor.operator.Operator` that is used to launch, repeat, check and time it."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kinds: dict[str, dtypes.dtype]
    takes_numbers: bool
    body: Any
    replays: dict[Any, Replay | None]

    def launch(self, call: Call) -> None:
        """Run the kernels."""

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The function from arrays and numbers to the reference's results, for calls like this one."""

    def cost(self, call: Call) -> tuple[int, int]:
        """The least number of bytes moved, and the number of operations."""
