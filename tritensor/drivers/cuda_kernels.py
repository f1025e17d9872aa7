"""Loading and launching kernels on real CUDA devices, by cuda-core."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import DeviceError
from .compiling import CompilingDriver
from .driver import CONTEXT_LOST, FATAL
from .loading import Compiled, KernelSource, Loaded, Target

# Dynamic shared memory that a kernel may use unless its limit is raised.
_SHARED = 48 << 10
_WARP = 32


class CudaKernels(CompilingDriver):
    """The part of the CUDA driver that loads and launches kernels; the rest is in `drivers/cuda.py`."""

    lacks_nccl = ""

    def target(self, index: int) -> Target:
        """The device's compute capability."""
        major, minor = self.capability(index)
        return "cuda", major * 10 + minor

    def build(self, index: int, source: KernelSource) -> Loaded:
        """Compile a kernel for a device, unless the compiled code is cached, and load it."""
        _needs_cuda_core(source.label)  # before anything is compiled
        return super().build(index, source)

    def load(self, index: int, compiled: Compiled, label: str) -> Loaded:
        """Load a cubin.

        Raises:
            DeviceError: the driver refuses it.
        """
        core = _needs_cuda_core(label)
        try:
            kernel = core.ObjectCode.from_cubin(compiled.binary).get_kernel(compiled.name)
            if compiled.shared > _SHARED:
                _raise_shared_limit(kernel, compiled.shared, index)
        except Exception as error:
            raise _refusal(label, error, f"it needs {compiled.shared} bytes of shared memory") from error
        # the number of warps of the compiled kernel, which warp specialisation makes larger than the one requested
        block = compiled.num_warps * _WARP, 1, 1
        more: dict[str, Any] = {"cooperative_launch": True} if compiled.cooperative else {}
        ctas = compiled.ctas
        if ctas > 1:
            more["cluster"] = ctas, 1, 1
        return Loaded(
            kernel,
            core.launch,
            lambda grid: core.LaunchConfig(
                grid=(grid[0] * ctas, *grid[1:]), block=block, shmem_size=compiled.shared, **more
            ),
            # a kernel runs in the current context, so with several devices its own must be made current first
            core.Device(index).set_current if self.device_count() > 1 else None,
            (compiled.global_scratch_size, compiled.profile_scratch_size),
        )

    def refused(self, label: str, error: Exception) -> DeviceError:
        """The error for a launch that the CUDA driver refused."""
        return _refusal(label, error, suspects=self.suspects())


def _needs_cuda_core(name: str) -> Any:
    """The module of cuda-core, whose name depends on the installed version."""
    problem: ImportError | None = None
    for module in ("cuda.core", "cuda.core.experimental"):
        try:
            core = importlib.import_module(module)
        except ImportError as error:
            problem = problem or error
            continue
        if hasattr(core, "launch") and hasattr(core, "LaunchConfig"):
            return core
    raise DeviceError(
        f"{name}: launching kernels on a GPU needs cuda-core, which cannot be imported",
        str(problem or "cuda.core has no launch()"),
        remedy='pip install "tritensor[cuda]"',
    ) from problem


def _raise_shared_limit(loaded: Any, nbytes: int, device: int) -> None:
    """Let a kernel use more than 48 KB of shared memory, by libcuda's call: cuda-core's differs between versions."""
    cuda = importlib.import_module("cuda.bindings.driver")
    handle = getattr(loaded, "handle", None)
    attribute = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    status = cuda.cuKernelSetAttribute(attribute, nbytes, loaded._handle if handle is None else handle, device)[0]
    if int(status) != 0:
        raise RuntimeError(f"cuKernelSetAttribute: {status!r}")


def _refusal(name: str, error: Exception, *facts: str, suspects: str = "") -> DeviceError:
    """The error for a call that the CUDA driver refused, with PyTorch's first words for the commonest cause."""
    text = f"{type(error).__name__}: {error}"
    first = "CUDA error: " + next((code.lower().replace("_", " ") for code in FATAL if code in text), "launch failure")
    if "ILLEGAL_ADDRESS" in text:
        first = "CUDA error: an illegal memory access was encountered"
    if any(code in text for code in FATAL):
        return DeviceError(
            first,
            f"reported at the launch of {name}; the kernel that failed may be an earlier one",
            suspects,
            text,
            CONTEXT_LOST,
            remedy="start anew with CUDA_LAUNCH_BLOCKING=1, or on a simulated device (TRITENSOR_SIMULATE_CUDA=1), "
            "which checks every address",
        )
    return DeviceError(first, f"at the launch of {name}", *facts, text)
