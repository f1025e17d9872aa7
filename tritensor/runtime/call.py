"""One call of an operator: what its stages, and tracing, checked mode and the log, pass to each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import DtypeError
from ..memory.array import DeviceArray
from ..types import devices, dtypes

if TYPE_CHECKING:
    import numpy as np


class Operator(Protocol):
    """The part of `tritensor.operators.Operator` that is used to launch, repeat, check and time it."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kinds: dict[str, dtypes.dtype]
    takes_numbers: bool
    native: Any
    repeatable: Any
    float8: str
    rule: Any
    body: Any
    replays: dict[Any, Any]

    def __call__(self, *inputs: Any, **metadata: Any) -> Any:
        """Run it on tensors and Python numbers."""

    def prepared(self, inputs: tuple[Any, ...], metadata: dict[str, Any]) -> Call:
        """A call with its arguments checked, its device and its dtypes."""

    def arrays_of(self, call: Call) -> list[Any]:
        """The inputs as arrays of the call's device, and numbers."""

    def allocate(self, call: Call) -> list[tuple[Any, ...]]:
        """Shape and dtype of each result, and strides unless it is row-major."""

    def launch(self, call: Call) -> None:
        """Run the kernels."""

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The function from arrays and numbers to the reference's results, for calls like this one."""

    def cost(self, call: Call) -> tuple[int, int]:
        """The least number of bytes moved, and the number of operations."""

    def terms(self, call: Call) -> int:
        """The number of summands of each element of a result, about."""


class Call:
    """A call of an operator, filled in by one stage of `Operator.__call__` after the other.

    Attributes:
        operator: what is called.
        inputs: the data arguments: tensors, Python numbers, None for one that is left out.
        metadata: the keyword arguments, with their defaults.
        device: where all tensors are.
        compute: the dtype to compute in.
        results: the dtype of each result.
        arrays: the inputs as arrays of the device and numbers.
        outs: on a CUDA device, the arrays that the kernels write.
    """

    __slots__ = ("arrays", "compute", "device", "inputs", "metadata", "operator", "outs", "results")

    arrays: Sequence[Any]
    outs: list[DeviceArray]

    def __init__(
        self,
        operator: Operator,
        inputs: tuple[Any, ...],
        metadata: dict[str, Any],
        device: devices.device = devices.cpu,
        compute: dtypes.dtype | None = None,
        results: tuple[dtypes.dtype, ...] = (),
    ) -> None:
        self.operator, self.inputs, self.metadata = operator, inputs, metadata
        self.device = device
        self.compute: dtypes.dtype = compute  # type: ignore[assignment]  # set by `resolve_dtypes`
        self.results = results
        self.arrays = ()
        self.outs = []


def refuse_complex(name: str, device: devices.device, values: Sequence[Any]) -> None:
    """Raise if one of the values, dtypes or arrays of a call on a device, is complex, for an operator without a kernel.

    Raises:
        DtypeError: one is.
    """
    for value in values:
        kind = dtypes.of(value.dtype) if isinstance(value, DeviceArray) else value
        if isinstance(kind, dtypes.dtype) and kind.is_complex:
            raise DtypeError(
                f"{name}: complex tensors have no kernel, got {kind} on {device}",
                remedy="move the operands with .cpu()",
            )
