"""The driver of real CUDA devices: devices, streams and events by cuda-core, memory and copies by libcuda's own calls.

Memory is stream-ordered: the device's pool allocates and frees in a stream's order without a synchronisation. The pool
keeps freed memory, because its release threshold is raised: at the default of 0 it returns memory to the system at
every synchronisation, and allocating it again takes tens of milliseconds. `find` imports cuda-core.
"""

# ruff: noqa: D102  the docstrings in protocol.py describe these methods

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..errors import DeviceError
from .cuda_kernels import CudaKernels
from .driver import CONTEXT_LOST, FATAL, Driver
from .protocol import DeviceProperties, OutOfRoom
from .streams import Stream

NO_DRIVER = "Found no NVIDIA driver on your system."
_OUT_OF_MEMORY, _NO_DEVICE, _NOT_READY = 2, 100, 600
_UNTIMED, _ORDINAL = 2, 9  # an event that notes no time, which costs less; the attribute of an address
_PORTABLE = 1  # pinned memory that every device may copy from
_KEEP_EVERYTHING = 2**64 - 1


def find() -> tuple[Driver | None, list[str]]:
    """The driver of this machine's devices, or None and the reasons: PyTorch's words, then facts."""
    try:
        bindings = importlib.import_module("cuda.bindings.driver")
        core = _import_core()
    except ImportError as error:
        fact = f"the cuda-core package cannot be imported ({error})"
        if _library_is_there():
            return None, ["No CUDA device can be used.", fact]
        return None, [NO_DRIVER, "the driver's library (libcuda) cannot be loaded", fact]
    try:
        status = int(bindings.cuInit(0)[0])
        count = 0
        if status == 0:
            status, count = map(int, bindings.cuDeviceGetCount())
    except Exception as error:  # the bindings raise errors of their own types where libcuda is missing
        return None, [NO_DRIVER, f"the driver's library (libcuda) cannot be loaded: {error}"]
    if status in (0, _NO_DEVICE) and count == 0:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hidden = "" if visible is None else f"CUDA_VISIBLE_DEVICES is {visible!r}, which may hide them"
        return None, ["No CUDA GPUs are available", "the NVIDIA driver is there and finds no device", hidden]
    if status != 0:
        return None, ["CUDA could not be started", f"the NVIDIA driver says {_describe(bindings, status)}"]
    return CudaDriver(bindings, core, count), []


def _import_core() -> Any:
    core = importlib.import_module("cuda.core")
    # Before 1.0 the package's names were in a module called experimental.
    return core if hasattr(core, "Device") else importlib.import_module("cuda.core.experimental")


def _library_is_there() -> bool:
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def _describe(bindings: Any, status: int) -> str:
    """The driver's text for a status: "out of memory (CUDA_ERROR_OUT_OF_MEMORY)"."""
    code = bindings.CUresult(status)
    texts = [
        text.decode()
        for error, text in (bindings.cuGetErrorString(code), bindings.cuGetErrorName(code))
        if int(error) == 0 and text
    ]
    return f"{texts[0]} ({texts[1]})" if len(texts) == 2 else f"error {status}"


class CudaDriver(CudaKernels):
    """The driver of the CUDA devices of this machine. A queue is a cuda.core.Stream, a mark a cuda.core.Event."""

    hidden = ""
    _alive: ClassVar[weakref.WeakSet[CudaDriver]] = weakref.WeakSet()

    def __init__(self, bindings: Any, core: Any, count: int) -> None:
        super().__init__()
        self._cuda = bindings
        self._core = core
        self._count = count
        self._properties: dict[int, DeviceProperties] = {}
        self._contexts: dict[int, Any] = {}
        self._pools: dict[int, Any] = {}
        self._peers: set[tuple[int, int]] = set()  # pairs of devices with access to each other's pool, where possible
        self._priorities: dict[int, tuple[int, int]] = {}
        self._plain_event = _options(core.EventOptions, timing_enabled=False)
        self._timed_event = _options(core.EventOptions, timing_enabled=True)
        self.native: weakref.WeakSet[Any] = weakref.WeakSet()  # streams and events, which a forked child must not end
        self._alive.add(self)

    # -- devices

    def device_count(self) -> int:
        return self._count

    def properties(self, index: int) -> DeviceProperties:
        found = self._properties.get(index)
        if found is None:
            device = self._core.Device(self.check(index))
            major, minor = device.compute_capability
            detail = device.properties
            found = self._properties[index] = DeviceProperties(
                name=device.name,
                major=major,
                minor=minor,
                total_memory=int(self._call("cuDeviceTotalMem", index)),
                multi_processor_count=detail.multiprocessor_count,
                warp_size=detail.warp_size,
                max_threads_per_multi_processor=detail.max_threads_per_multiprocessor,
                shared_memory_per_block_optin=detail.max_shared_memory_per_block_optin,
                L2_cache_size=detail.l2_cache_size,
                clock_rate=detail.clock_rate,
                memory_clock_rate=detail.memory_clock_rate,
                memory_bus_width=detail.global_memory_bus_width,
            )
        return found

    def enter(self, index: int) -> Stream:
        self._core.Device(self.check(index)).set_current()
        with self._lock:
            if index not in self._pools:
                self._prepare(index)
        return super().enter(index)

    def _prepare(self, index: int) -> None:
        """Set up a device on first use: its context, its stream priorities, and a pool that keeps freed memory."""
        cuda = self._cuda
        self._contexts[index] = self._call("cuDevicePrimaryCtxRetain", index)
        self._priorities[index] = self._call("cuCtxGetStreamPriorityRange")
        pool = self._call("cuDeviceGetDefaultMemPool", index)
        threshold = cuda.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        self._call("cuMemPoolSetAttribute", pool, threshold, cuda.cuuint64_t(_KEEP_EVERYTHING))
        self._pools[index] = pool

    def set_device(self, index: int) -> None:
        super().set_device(index)
        self._here(index)

    def _here(self, index: int) -> None:
        """Make a device current for this thread's next calls; if there is only one, `enter` has done so already."""
        if index not in self.threads.current:
            self.enter(index)
        elif self._count > 1:
            self._core.Device(index).set_current()

    def _here_for(self, queue: Any) -> None:
        if self._count > 1 or not self.threads.current:
            self._here(queue.device.device_id)

    def _somewhere(self) -> None:
        """Make some device current if this thread has none: libcuda's calls need a current context."""
        if not self.threads.current:
            self.enter(0)

    # -- memory

    def allocate(self, index: int, nbytes: int, queue: Any) -> int:
        self._here(index)
        status, address = self._cuda.cuMemAllocAsync(nbytes, queue.handle)
        if int(status) == _OUT_OF_MEMORY:
            raise OutOfRoom
        self._check(status, "cuMemAllocAsync")
        return int(address)

    def free(self, index: int, address: int, nbytes: int, queue: Any) -> None:
        self._here(index)
        self._call("cuMemFreeAsync", address, queue.handle)

    def trim(self, index: int) -> None:
        self.synchronize(index)
        self._call("cuMemPoolTrimTo", self._pools[index], 0)

    def allocate_pinned(self, nbytes: int) -> np.ndarray:
        self._somewhere()
        status, address = self._cuda.cuMemHostAlloc(nbytes, _PORTABLE)
        if int(status) == _OUT_OF_MEMORY:
            raise OutOfRoom
        self._check(status, "cuMemHostAlloc")
        address = int(address)
        memory = (ctypes.c_uint8 * nbytes).from_address(address)
        weakref.finalize(memory, _free_pinned, self, address).atexit = False
        return np.frombuffer(memoryview(memory), np.uint8)

    def memory_info(self, index: int) -> tuple[int, int]:
        self._here(self.check(index))
        free, total = self._call("cuMemGetInfo")
        return int(free), int(total)

    def fill(self, address: int, byte: int, nbytes: int, queue: Any) -> None:
        self._here_for(queue)
        self._call("cuMemsetD8Async", address, byte, nbytes, queue.handle)

    def copy_h2d(self, address: int, host: np.ndarray, queue: Any) -> None:
        self._here_for(queue)
        self._call("cuMemcpyHtoDAsync", address, host.__array_interface__["data"][0], host.nbytes, queue.handle)

    def copy_d2h(self, host: np.ndarray, address: int, queue: Any) -> None:
        self._here_for(queue)
        self._call("cuMemcpyDtoHAsync", host.__array_interface__["data"][0], address, host.nbytes, queue.handle)

    def copy_d2d(self, target: int, source: int, nbytes: int, queue: Any, devices: tuple[int, int]) -> None:
        self._here_for(queue)
        to, by = devices
        if to == by:
            self._call("cuMemcpyDtoDAsync", target, source, nbytes, queue.handle)
        else:
            self._open_pools(to, by)
            # works with and without peer access, and with memory of either device's pool
            self._call(
                "cuMemcpyPeerAsync", target, self._contexts[to], source, self._contexts[by], nbytes, queue.handle
            )

    def can_access_peer(self, index: int, peer: int) -> bool:
        if self.check(index) == self.check(peer):
            return False
        return bool(self._call("cuDeviceCanAccessPeer", index, peer))

    def _open_pools(self, index: int, peer: int) -> None:
        """Let two devices access each other's pool, where they can; otherwise a copy goes through the host."""
        if (index, peer) in self._peers:
            return
        cuda = self._cuda
        for reader, owner in ((index, peer), (peer, index)):
            if self.can_access_peer(reader, owner):
                access = cuda.CUmemAccessDesc()
                access.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
                access.location.id = reader
                access.flags = cuda.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                self._call("cuMemPoolSetAccess", self._pools[owner], [access], 1)
        self._peers.update(((index, peer), (peer, index)))

    # -- streams and events

    def open_queue(self, index: int, priority: int) -> Any:
        self._here(index)
        lowest, highest = self._priorities[index]
        return self._open(index, nonblocking=True, priority=min(max(priority, highest), lowest))

    def open_default_queue(self, index: int) -> Any:
        # A stream of our own, because CUDA's default stream belongs to whichever device is current in the thread. It is
        # a blocking stream: work that other libraries add to CUDA's default stream keeps its order with ours, as with
        # PyTorch's.
        return self._open(index, nonblocking=False)

    def _open(self, index: int, **options: Any) -> Any:
        device = self._core.Device(index)
        device.set_current()
        queue = device.create_stream(options=self._core.StreamOptions(**options))
        self.native.add(queue)
        return queue

    def queue_address(self, queue: Any) -> int:
        return int(queue.handle)

    def queue_done(self, queue: Any) -> bool:
        self._here_for(queue)
        (status,) = self._cuda.cuStreamQuery(queue.handle)
        if int(status) == _NOT_READY:
            return False
        self._check(status, "cuStreamQuery")
        return True

    def queue_synchronize(self, queue: Any) -> None:
        self._here_for(queue)
        self._wait_for(queue.sync)

    def synchronize(self, index: int) -> None:
        self._here(self.check(index))
        self._call("cuCtxSynchronize")
        if self._count == 1:
            self.launched.clear()  # all of it has run

    def mark(self, queue: Any, reusable: Any = None, timing: bool = False) -> Any:
        self._here_for(queue)
        try:
            if reusable is not None:
                return queue.record(reusable)
            mark = queue.record(options=self._timed_event if timing else self._plain_event)
        except Exception as error:
            raise self._failure(error, "an event could not be recorded") from error
        self.native.add(mark)
        return mark

    def wait(self, queue: Any, mark: Any) -> None:
        self._here_for(queue)
        try:
            queue.wait(mark)
        except Exception as error:
            raise self._failure(error, "a stream could not wait for an event") from error

    def mark_done(self, mark: Any) -> bool:
        self._somewhere()
        try:
            return bool(mark.is_done)
        except Exception as error:
            raise self._failure(error, "an event cannot be asked") from error

    def mark_synchronize(self, mark: Any) -> None:
        self._somewhere()
        self._wait_for(mark.sync)

    def elapsed(self, start: Any, end: Any) -> float:
        return float(end - start)

    def holder(self, address: int) -> int:
        """The ordinal of the device that an address of any library is on."""
        self._somewhere()
        return int(self._call("cuPointerGetAttribute", self._cuda.CUpointer_attribute(_ORDINAL), address))

    def order(self, index: int, first: int, then: int) -> None:
        """Have the stream `then` wait for what is now in the stream `first`; both are CUDA's pointers."""
        self._here(index)
        event = self._call("cuEventCreate", _UNTIMED)
        self._call("cuEventRecord", event, first)
        self._call("cuStreamWaitEvent", then, event, 0)
        self._call("cuEventDestroy", event)  # CUDA keeps it until it has passed

    # -- graphs

    def begin_capture(self, queue: Any) -> None:
        self._here_for(queue)
        # relaxed, because kernels are loaded and tables copied in other streams during a capture; calls that must not
        # be captured raise errors of their own (`drivers.refusals`), with the operator's name
        mode = self._cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._call("cuStreamBeginCapture", queue.handle, mode)

    def end_capture(self, queue: Any, keep: bool) -> tuple[Any, int]:
        self._here_for(queue)
        graph = self._call("cuStreamEndCapture", queue.handle)
        try:
            if not keep:
                return None, 0
            return self._call("cuGraphInstantiate", graph, 0), int(self._call("cuGraphGetNodes", graph)[1])
        finally:
            self._call("cuGraphDestroy", graph)

    def launch_graph(self, graph: Any, queue: Any) -> None:
        self._here_for(queue)
        self._call("cuGraphLaunch", graph, queue.handle)
        self.launched.append("a graph's replay")

    def destroy_graph(self, graph: Any) -> None:
        self._call("cuGraphExecDestroy", graph)

    # -- errors

    def _call(self, name: str, *arguments: Any) -> Any:
        status, *values = getattr(self._cuda, name)(*arguments)
        if int(status) != 0:
            self._check(status, name)
        return values[0] if len(values) == 1 else tuple(values)

    def _check(self, status: Any, name: str) -> None:
        if int(status) != 0:
            text = _describe(self._cuda, int(status))
            lost = CONTEXT_LOST if any(code in text for code in FATAL) else ""
            raise DeviceError(f"CUDA error: {text}", f"reported by {name}", self.suspects(), lost, _LATE_REPORT)

    def _wait_for(self, wait: Callable[[], object]) -> None:
        try:
            wait()
        except Exception as error:
            raise self._failure(error, "work that was waited for has failed") from error

    def _failure(self, error: Exception, otherwise: str) -> DeviceError:
        """The error for an exception of cuda-core, with PyTorch's words for an illegal memory access."""
        text = f"{type(error).__name__}: {error}"
        status = int(self._cuda.cuMemGetInfo()[0])
        if status != 0 and "CUDA_ERROR" not in text:  # cuda-core does not say why it could not create an event
            text += f" ({_describe(self._cuda, status)})"
        first = "an illegal memory access was encountered" if "ILLEGAL_ADDRESS" in text else otherwise
        lost = CONTEXT_LOST if any(code in text for code in FATAL) else ""
        return DeviceError(f"CUDA error: {first}", text, self.suspects(), lost, _LATE_REPORT)


def _free_pinned(driver: CudaDriver, address: int) -> None:
    """Free pinned memory in whatever thread drops it: one that never used CUDA gets a context that is there already."""
    if type(driver) is _Forked:  # the memory belongs to the parent
        return
    if not driver.threads.current:
        driver._cuda.cuCtxSetCurrent(next(iter(driver._contexts.values())))
    driver._cuda.cuMemFreeHost(address)


_LATE_REPORT = (
    "kernels run asynchronously: the cause may be an earlier one. CUDA_LAUNCH_BLOCKING=1 reports each where it is "
    "launched, and a simulated device (TRITENSOR_SIMULATE_CUDA=1) checks every address"
)


def _options(kind: Any, timing_enabled: bool) -> Any:
    try:
        return kind(timing_enabled=timing_enabled)
    except TypeError:  # the argument's name before cuda-core 1.0
        return kind(enable_timing=timing_enabled)


class _Forked(CudaDriver):
    """The driver's class in a forked child: CUDA cannot be used there, so every use raises."""

    def __getattribute__(self, name: str) -> Any:
        if name == "free":  # inherited tensors may be deleted; their memory belongs to the parent
            return lambda *_: None
        if name in ("__class__", "is_simulated", "lacks_nccl", "hidden", "checks_by_default"):
            return object.__getattribute__(self, name)
        raise DeviceError(
            "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
            "'spawn' start method",
            "the parent process had looked for CUDA devices before it forked",
            remedy="multiprocessing.set_start_method('spawn') at the start of the program, or keep CUDA out of "
            "this process",
        )


def _after_fork() -> None:
    for driver in list(CudaDriver._alive):
        # Destroying a stream of the parent ends the child with a segmentation fault (driver 580), so each lives on.
        for handle in list(driver.native):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(handle))
        driver.__class__ = _Forked


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
