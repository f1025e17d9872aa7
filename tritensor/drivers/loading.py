"""What the runtime and a driver hand one another so that a kernel runs.

The runtime knows Triton and the kernels and stands above the drivers. It hands itself in, as a `LaunchRequest` with
each launch and a `KernelSource` for each kernel that is to be loaded. The driver takes of them what its devices run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

__all__ = ["Compiled", "KernelSource", "LaunchRequest", "Loaded", "Target"]

#: A backend of Triton and its name for the architecture: ("cuda", 90), ("hip", "gfx942").
Target = tuple[str, int | str]


class Compiled(NamedTuple):
    """What a launch needs of a compiled kernel."""

    binary: bytes
    name: str
    shared: int
    num_warps: int
    global_scratch_size: int
    profile_scratch_size: int


class Loaded(NamedTuple):
    """A kernel that is ready on one device, and how it is launched there."""

    #: what `launch` takes for the kernel
    kernel: Any
    #: called with queue, configuration, kernel and its values, the addresses of two scratch buffers last
    launch: Callable[..., Any]
    #: the configuration for a grid
    configure: Callable[[tuple[int, int, int]], Any]
    #: called before each launch, where the process has several devices
    place: Callable[[], Any] | None = None
    #: bytes that each program has for itself in the two scratch buffers
    scratch: tuple[int, int] = (0, 0)


class KernelSource(Protocol):
    """A kernel before it is compiled, and what it is to be compiled for."""

    name: str | None
    label: str

    def load(self, target: Target, load: Callable[[Compiled], Loaded]) -> Loaded:
        """What `load` makes of the compiled code; it comes from the cache on disk, or from the compiler."""


class LaunchRequest(Protocol):
    """One launch, in whichever way a driver wants it."""

    grid: tuple[int, int, int]

    def compiled(self, driver: Any, stream: Any) -> tuple[Any, list[Any]]:
        """The program, which is compiled and loaded unless the driver has it, and the values to launch it with."""

    def interpreted(
        self,
        stream: Any,
        spans: Callable[[], list[tuple[int, int, str]]],
        memory: Callable[[int, int], Any],
    ) -> Callable[[], None]:
        """The launch as a function on host memory.

        Args:
            spans: the buffers that kernels may touch: (address, nbytes, label), by address.
            memory: the bytes at an address.
        """
