"""A device that kernels are compiled for and that runs none of them: the target need not be there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tritensor.drivers import selection
from tritensor.drivers.compiling import CompilingDriver
from tritensor.drivers.loading import Compiled, Loaded, Target
from tritensor.drivers.simulator import Simulator
from tritensor.errors import DeviceError
from tritensor.runtime import replay


class CompileOnly(Simulator):
    """Memory and streams on the host, as a simulator's; launches end with the compiler.

    Attributes:
        made: what Triton made of the kernels, in the order of their first launches.
        launches: name and grid of every launch.
    """

    is_simulated = predicts = False
    repeats_calls = True
    launch, pick = CompilingDriver.launch, CompilingDriver.pick

    def __init__(self, target: Target = ("cuda", 90), memory: int = 16 << 30, processors: int = 4) -> None:
        backend, arch = target
        # what is chosen depends on the capability; AMD's devices have no tf32x3, like the oldest of NVIDIA's
        capability = divmod(int(arch), 10) if backend == "cuda" else (7, 5)
        super().__init__(1, memory, capability)
        self.architecture = target
        self._properties = replace(self._properties, multi_processor_count=processors)
        self.made: list[Any] = []
        self.launches: list[tuple[str, Any]] = []

    def target(self, index: int) -> Target:
        return self.architecture

    def build(self, index: int, source: Any) -> Loaded:
        from tritensor.runtime import compiler

        what = source.kernel, source.signature, source.constants
        made = compiler.compile_kernel(*what, self.architecture, source.warps, source.stages, source.name)
        self.made.append(made)
        return self.load(index, compiler.compiled_from(made, self.architecture), source.label)

    def load(self, index: int, compiled: Compiled, label: str) -> Loaded:
        def launch(queue: Any, grid: Any, *values: Any) -> None:
            self.launches.append((compiled.name, grid))

        return Loaded(compiled.name, launch, lambda grid: grid)

    def fill(self, address: int, byte: int, nbytes: int, queue: Any) -> None:
        """Poison, but not in large memory, which takes address space only until it is touched."""
        if nbytes < 64 << 20:
            super().fill(address, byte, nbytes, queue)

    def refused(self, label: str, error: Exception) -> DeviceError:
        raise AssertionError(f"the launch of {label} cannot fail") from error


@contextmanager
def compile_only(target: Target = ("cuda", 90), memory: int = 16 << 30, processors: int = 4) -> Iterator[CompileOnly]:
    """The block's CUDA device is one that kernels are compiled for and not run on."""
    driver = CompileOnly(target, memory, processors)
    try:
        with selection.use(driver):
            yield driver
    finally:
        driver.close()
        replay.stop()
