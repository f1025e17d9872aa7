"""What drivers share whose devices run compiled kernels: they name a target, load code, and word the errors."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from .driver import Driver

if TYPE_CHECKING:
    from ..errors import DeviceError
    from .loading import Compiled, KernelSource, LaunchRequest, Loaded, Target
    from .streams import Stream

__all__ = ["CompilingDriver"]

_T = TypeVar("_T")


class CompilingDriver(Driver):
    """A driver whose devices run what the compiler makes of a kernel."""

    @abstractmethod
    def target(self, index: int) -> Target:
        """What kernels for a device are compiled for."""

    @abstractmethod
    def load(self, index: int, compiled: Compiled, label: str) -> Loaded:
        """Hand a kernel's code to a device; `label` names the operator in errors.

        Raises:
            DeviceError: the device does not take it.
        """

    @abstractmethod
    def refused(self, label: str, error: Exception) -> DeviceError:
        """The error for a launch that raised `error`."""

    def build(self, index: int, source: KernelSource) -> Loaded:
        """Compile a kernel for a device, unless that was done before, and load it."""
        return source.load(self.target(index), lambda compiled: self.load(index, compiled, source.label))

    def launch(self, stream: Stream, request: LaunchRequest) -> None:
        """Run a kernel behind what the stream holds now."""
        program, values = request.compiled(self, stream)
        program.launch(stream, request.grid, values)

    def prepare(self, stream: Stream, request: LaunchRequest) -> tuple[Any, list[Any]] | None:
        """The program of a launch that is to be repeated, and its values."""
        return request.compiled(self, stream)

    def pick(self, compiled: _T, interpreted: _T) -> _T:
        """The choice for compiled kernels."""
        return compiled
