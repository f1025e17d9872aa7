"""Loading and launching kernels on real CUDA devices, by cuda-core."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DeviceError
from .compiling import CompilingDriver
from .driver import CONTEXT_LOST, FATAL
from .loading import Compiled, KernelSource, Loaded, Target

# Dynamic shared memory that a kernel may use unless its limit is raised.
_SHARED = 48 << 10
_WARP = 32
# The types of a tensor map's elements that PTX numbers in another way than libcuda: float32 flushed to zero, float64,
# bfloat16.
_KINDS = {8: 10, 9: 8, 10: 9}


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
        more: dict[str, Any] = {}
        if compiled.cooperative:  # cuda-core's name for it differs between versions
            named = hasattr(core.LaunchConfig, "is_cooperative")
            more["is_cooperative" if named else "cooperative_launch"] = True
        ctas = compiled.ctas
        if ctas > 1:
            more["cluster"] = ctas, 1, 1
        return Loaded(
            kernel,
            _launch_with_maps if "[128]" in compiled.ptx.partition("{")[0] else core.launch,
            lambda grid: core.LaunchConfig(
                grid=(grid[0] * ctas, *grid[1:]), block=block, shmem_size=compiled.shared, **more
            ),
            # a kernel runs in the current context, so with several devices its own must be made current first
            core.Device(index).set_current if self.device_count() > 1 else None,
            (compiled.global_scratch_size, compiled.profile_scratch_size),
        )

    def tensor_map(
        self,
        address: int,
        sizes: Sequence[int],
        steps: Sequence[int],
        box: Sequence[int],
        kind: int,
        swizzle: int,
        ones: bool,
    ) -> bytes:
        """The driver's tensor map of an array, for kernels that copy tiles.

        Args:
            sizes, steps, box: sizes and a box in elements and steps in bytes, the outermost dimension first.
            kind: the type of the elements, as PTX counts them.
            swizzle: the mode.
            ones: what is outside of the array is read as NaN; else it is 0.

        Raises:
            DeviceError: the driver refuses it.
        """
        cuda = importlib.import_module("cuda.bindings.driver")
        wide, narrow = cuda.cuuint64_t, cuda.cuuint32_t
        status, made = cuda.cuTensorMapEncodeTiled(
            cuda.CUtensorMapDataType(_KINDS.get(kind, kind)),
            len(sizes),
            address,
            [*map(wide, sizes[::-1])],
            [*map(wide, steps[-2::-1])],
            [*map(narrow, box[::-1])],
            [narrow(1)] * len(sizes),
            cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            cuda.CUtensorMapSwizzle(swizzle),
            cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            cuda.CUtensorMapFloatOOBfill(int(ones)),
        )
        if int(status) != 0:
            raise DeviceError(f"CUDA error: a tensor map of sizes {[*sizes]} and box {[*box]} was refused: {status!r}")
        return ctypes.string_at(made.getPtr(), 128)

    def refused(self, label: str, error: Exception) -> DeviceError:
        """The error for a launch that the CUDA driver refused."""
        return _refusal(label, error, suspects=self.suspects())


def _launch_with_maps(queue: Any, config: Any, kernel: Any, *values: Any) -> None:
    """Launch by libcuda's call: cuda-core takes no tensor map of another's as an argument."""
    cuda = importlib.import_module("cuda.bindings.driver")
    kinds: dict[type, Callable[[Any], Any]] = {
        bytes: lambda value: (ctypes.c_char * len(value)).from_buffer_copy(value),
        float: ctypes.c_double,
    }
    made = [kinds.get(type(value), ctypes.c_int64)(value) for value in values]
    places = (ctypes.c_void_p * len(made))(*map(ctypes.addressof, made))
    handle = getattr(kernel, "handle", None) or kernel._handle
    where = (*config.grid, *config.block, config.shmem_size, queue.handle, ctypes.addressof(places), 0)
    (status,) = cuda.cuLaunchKernel(handle, *where)
    if int(status) != 0:
        raise RuntimeError(f"cuLaunchKernel: {status!r}")


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
