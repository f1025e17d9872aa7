"""The base of drivers whose devices run compiled kernels: they name a compilation target and load compiled code."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from .driver import Driver

if TYPE_CHECKING:
    from ..errors import DeviceError
    from .loading import Compiled, KernelSource, LaunchRequest, Loaded, Target
    from .streams import Stream

_T = TypeVar("_T")


class CompilingDriver(Driver):
    """A driver whose devices run compiled kernels."""

    #: whether the launches of a call are remembered and repeated without the stages before them
    repeats_calls = True
    #: rows and columns of the smallest block of a product: fewer do not fill the units of a card that multiply
    least_tile = 64

    @abstractmethod
    def target(self, index: int) -> Target:
        """The target that kernels for a device are compiled for."""

    def form(self, *facts: Any) -> tuple[Any, ...]:
        """Of the signature, device, warps and stages of a launch, those that its kernel is compiled for."""
        return facts

    @abstractmethod
    def load(self, index: int, compiled: Compiled, label: str) -> Loaded:
        """Load a kernel's code on a device; `label` names the operator in errors.

        Raises:
            DeviceError: the driver refuses the code.
        """

    @abstractmethod
    def refused(self, label: str, error: Exception) -> DeviceError:
        """The error for a launch that raised `error`."""

    def build(self, index: int, source: KernelSource) -> Loaded:
        """Compile a kernel for a device, unless the compiled code is cached, and load it."""
        return source.load(self.target(index), lambda compiled: self.load(index, compiled, source.label))

    def launch(self, stream: Stream, request: LaunchRequest) -> None:
        """Add the launch of a kernel to a stream."""
        program, values = request.compiled(self, stream)
        program.launch(stream, request.grid, values)

    def pick(self, compiled: _T, interpreted: _T) -> _T:
        """The value for compiled kernels."""
        return compiled
