"""The interfaces between the runtime and a driver for loading and launching a kernel.

The runtime, which knows Triton and the kernels, imports the drivers and not the other way round. It therefore passes
objects that implement the protocols defined here: a `LaunchRequest` for each launch, and a `KernelSource` for each
kernel to load. The driver calls the methods that fit its devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

#: A backend of Triton and its name for the architecture: ("cuda", 90), ("hip", "gfx942"); or "native" and what
#: `native.engine.target` made: the code is for the processor.
Target = tuple[str, int | str]


class Compiled(NamedTuple):
    """The code of a compiled kernel, and the figures that a launch needs."""

    binary: bytes
    name: str
    shared: int
    num_warps: int
    global_scratch_size: int
    profile_scratch_size: int
    #: the text that the binary was assembled from, which a simulated device can run; "" where there is none
    ptx: str = ""
    #: blocks of a cluster, and whether all blocks of a grid have to run at once
    ctas: int = 1
    cooperative: bool = False
    #: a user's, that Triton's own runtime launches
    plain: bool = False
    #: native code that looks addresses up among all memory of the device
    looks_up: bool = False
    #: of native code, which values it writes through; None where that is not known
    written: tuple[int, ...] | None = None
    #: of a thread, where all blocks have to run at once; else 0
    registers: int = 0


class Loaded(NamedTuple):
    """A kernel that is loaded on one device, and how it is launched there."""

    #: the driver's kernel object, an argument of `launch`
    kernel: Any
    #: called with queue, configuration, kernel, the kernel's values, and the addresses of two scratch buffers
    launch: Callable[..., Any]
    #: the configuration for a grid
    configure: Callable[[tuple[int, int, int]], Any]
    #: called before each launch if the process has several devices
    place: Callable[[], Any] | None = None
    #: bytes per program instance in the two scratch buffers
    scratch: tuple[int, int] = (0, 0)


class KernelSource(Protocol):
    """A kernel's source with the types and constants to compile it for."""

    name: str | None
    label: str

    def load(self, target: Target, load: Callable[[Compiled], Loaded]) -> Loaded:
        """Compile the kernel, or read it from the cache on disk, and return the result of `load` on the code."""


class LaunchRequest(Protocol):
    """One launch, for drivers that run compiled kernels and for those that interpret them."""

    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]
    kernel: Any
    name: str | None
    #: names and rows of arrays that the kernel reaches by addresses in memory, or None
    reaches: Any

    def compiled(self, driver: Any, stream: Any) -> tuple[Any, list[Any]]:
        """The loaded program, compiled first if the driver does not hold it, and the values to launch it with."""

    def interpreted(
        self, stream: Any, spans: Callable[[], list[tuple[int, int, str]]], memory: Callable[[int, int], Any]
    ) -> Callable[..., None]:
        """The launch as a function on host memory.

        Args:
            spans: the buffers that kernels may touch: (address, nbytes, label), by address.
            memory: the bytes at an address.
        """
