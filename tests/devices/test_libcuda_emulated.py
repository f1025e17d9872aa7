"""A libcuda that runs kernels: what a card refuses it refuses, and what was compiled gives the right values.

Each mistake is a program that makes it through cuda.bindings, in a process of its own, and the status that says so.
They are forked from one process, `python -m tests.devices.test_libcuda_emulated`, because starting one takes a second.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..needs import needs_triton
from . import libcuda_stub

PROGRAMS: dict[str, Callable[[Driver], object]] = {}


def program(function: Callable[[Driver], object]) -> Callable[[Driver], object]:
    """A program that asserts what it finds."""
    return PROGRAMS.setdefault(function.__name__, function)


class Driver:
    """cuda.bindings over the stub, with one context and a kernel that adds a number to `count` floats."""

    def __init__(self, cubins: dict[str, bytes]) -> None:
        from cuda.bindings import driver

        self.cuda, self.cubins = driver, cubins
        self.call("cuInit", 0)
        self.contexts = [self.call("cuDevicePrimaryCtxRetain", index) for index in range(2)]

    def status(self, name: str, *arguments: Any) -> str:
        """What a call says."""
        return str(getattr(self.cuda, name)(*arguments)[0].name.removeprefix("CUDA_"))

    def call(self, name: str, *arguments: Any) -> Any:
        """What a call that has to succeed returns."""
        status, *values = getattr(self.cuda, name)(*arguments)
        assert int(status) == 0, f"{name}: {status!r}"
        return values[0] if len(values) == 1 else values

    def begin(self, index: int = 0) -> Driver:
        """With a context, a stream, ten floats in memory, and the kernel."""
        self.call("cuCtxSetCurrent", self.contexts[index])
        self.stream, self.other = (self.call("cuStreamCreateWithPriority", 1, 0) for _ in range(2))
        self.memory = int(self.call("cuMemAllocAsync", 64, self.stream))
        self.call("cuMemsetD8Async", self.memory, 0, 64, self.stream)
        self.library, self.kernel = self.load("plain")
        return self

    def load(self, name: str) -> tuple[Any, Any]:
        library = self.call("cuLibraryLoadData", self.cubins[name], None, None, 0, None, None, 0)
        return library, self.call("cuLibraryGetKernel", library, b"add")

    def launch(self, kernel: Any = None, stream: Any = None, **changed: Any) -> str:
        """The status of a launch that is right but for what is changed."""
        given = {
            "grid": (1, 1, 1),
            "block": (128, 1, 1),
            "shared": 0,
            "address": self.memory,
            "values": None,
            **changed,
        }
        numbers = np.array([given["address"], struct.unpack("<I", struct.pack("<f", 1.5))[0], 10, 0, 0], np.uint64)
        table = np.array([numbers.ctypes.data + 8 * place for place in range(5)], np.uint64)
        values = table.ctypes.data if given["values"] is None else given["values"](table)
        function = self.cuda.CUfunction(int(self.kernel if kernel is None else kernel))
        queue = self.stream if stream is None else stream
        return self.status(
            "cuLaunchKernel", function, *given["grid"], *given["block"], given["shared"], queue, values, 0
        )

    def floats(self) -> list[float]:
        found = np.empty(10, np.float32)
        self.call("cuMemcpyDtoHAsync", found.ctypes.data, self.memory, 40, self.stream)
        self.call("cuStreamSynchronize", self.stream)
        return [float(each) for each in found]

    def capture(self, mode: int = 2) -> None:
        self.call("cuStreamBeginCapture", self.stream, self.cuda.CUstreamCaptureMode(mode))

    def event(self, stream: Any) -> Any:
        made = self.call("cuEventCreate", 2)
        self.call("cuEventRecord", made, stream)
        return made

    def elsewhere(self, name: str, *arguments: Any, context: Any = 0) -> str:
        """The status of a call in another thread."""
        found: list[str] = []

        def work() -> None:
            self.call("cuCtxSetCurrent", context)
            found.append(self.status(name, *arguments))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return found[0]


# ---- what is right --------------------------------------------------------------------------------------------------


@program
def a_launch_adds(d: Driver) -> None:
    d.begin()
    function = d.call("cuKernelGetFunction", d.kernel)
    assert [d.launch(), d.launch(function)] == ["SUCCESS", "SUCCESS"]
    assert d.floats() == [3.0] * 10
    assert d.call("cuFuncGetParamInfo", function, 1) == [8, 4]
    registers = d.cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
    assert 8 <= d.call("cuFuncGetAttribute", registers, function) <= 64
    assert d.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, 128, 0) == 16
    assert d.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, 128, 100 << 10) == 2


@program
def a_late_launch_runs_when_it_is_waited_for(d: Driver) -> None:
    os.environ["STUB_LATE"] = "1"
    assert d.begin().floats() == [0.0] * 10
    d.launch()
    d.call("cuStreamWaitEvent", d.other, d.event(d.stream), 0)
    d.launch(stream=d.other)
    address = (ctypes.c_float * 10).from_address(d.memory)
    assert not any(address)
    d.call("cuStreamSynchronize", d.other)
    assert list(address) == [3.0] * 10


@program
def a_graph_that_forks_and_joins_is_replayed(d: Driver) -> None:
    d.begin().capture()
    d.launch()
    d.call("cuStreamWaitEvent", d.other, d.event(d.stream), 0)
    d.launch(stream=d.other)
    d.call("cuStreamWaitEvent", d.stream, d.event(d.other), 0)
    graph = d.call("cuStreamEndCapture", d.stream)
    executable = d.call("cuGraphInstantiate", graph, 0)
    d.call("cuGraphDestroy", graph)
    assert d.floats() == [0.0] * 10
    for _ in range(3):
        d.call("cuGraphLaunch", executable, d.other)
    assert d.floats() == [9.0] * 10
    assert d.launch(stream=d.other) == "SUCCESS"  # it has left the capture
    assert d.floats() == [10.5] * 10


@program
def a_fault_is_the_end_of_the_context(d: Driver) -> None:
    d.begin()
    d.call("cuMemFreeAsync", d.memory, d.stream)
    assert d.launch() == "SUCCESS"  # whatever an address is, the launch is good
    assert d.status("cuStreamSynchronize", d.stream) == "ERROR_ILLEGAL_ADDRESS"
    assert d.status("cuMemAllocAsync", 64, d.stream) == d.launch() == "ERROR_ILLEGAL_ADDRESS"
    assert d.elsewhere("cuCtxSynchronize") == "ERROR_INVALID_CONTEXT"
    text = d.call("cuGetErrorString", d.cuda.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS)
    assert text == b"an illegal memory access was encountered"
    assert d.begin(1).launch() == "SUCCESS"  # the other device's is as it was


@program
def a_limit_of_shared_memory_belongs_to_kernel_and_device(d: Driver) -> None:
    limit = d.cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    d.begin(1)
    d.call("cuKernelSetAttribute", limit, 100 << 10, d.kernel, 1)
    assert d.launch(shared=100 << 10) == "SUCCESS"
    assert d.launch(d.load("plain")[1], shared=100 << 10) == "ERROR_INVALID_VALUE"
    d.call("cuCtxSetCurrent", d.contexts[0])
    queue = d.call("cuStreamCreateWithPriority", 1, 0)
    assert d.launch(stream=queue, shared=100 << 10) == "ERROR_INVALID_VALUE"
    assert d.launch(stream=queue, shared=48 << 10) == "SUCCESS"
    assert d.status("cuKernelSetAttribute", limit, 228 << 10, d.kernel, 0) == "ERROR_INVALID_VALUE"


@program
def a_graph_outlives_the_library_of_its_kernel(d: Driver) -> None:
    d.begin().capture()
    d.launch()
    executable = d.call("cuGraphInstantiate", d.call("cuStreamEndCapture", d.stream), 0)
    d.call("cuLibraryUnload", d.library)
    d.call("cuGraphLaunch", executable, d.stream)
    assert d.status("cuStreamSynchronize", d.stream) == "ERROR_LAUNCH_FAILED"


# ---- one mistake each -----------------------------------------------------------------------------------------------


def second(*each: Any) -> Any:
    """For a program in one expression: the status of its last call."""
    return each[-1]


def fork(d: Driver) -> None:
    d.capture()
    d.launch()
    d.call("cuStreamWaitEvent", d.other, d.event(d.stream), 0)
    d.launch(stream=d.other)


def end(d: Driver, stream: Any = None) -> str:
    return d.status("cuStreamEndCapture", d.stream if stream is None else stream)


def packed(size: int) -> Callable[[Driver], str]:
    """A launch whose values come as one buffer of so many bytes."""

    def launch(d: Driver) -> str:
        numbers, length = np.zeros(8, np.uint64), np.array([size])
        numbers[:2] = d.memory, 10 << 32
        extra = np.array([1, numbers.ctypes.data, 2, length.ctypes.data, 0], np.uint64)
        function = d.cuda.CUfunction(int(d.kernel))
        return d.status("cuLaunchKernel", function, 1, 1, 1, 128, 1, 1, 0, d.stream, 0, extra.ctypes.data)

    return launch


def misaligned(d: Driver) -> str:
    d.launch(d.load("aligned")[1], address=d.memory + 4)
    return d.status("cuStreamSynchronize", d.stream)


# Each with a context, but the first.
MISTAKES: dict[str, tuple[str, Callable[[Driver], Any]]] = {
    "no context at all": ("INVALID_CONTEXT", lambda d: d.status("cuMemAllocAsync", 64, 0)),
    "no context in another thread": ("INVALID_CONTEXT", lambda d: d.elsewhere("cuMemHostAlloc", 64, 0)),
    "a stream of another device": (
        "INVALID_HANDLE",
        lambda d: second(d.call("cuCtxSetCurrent", d.contexts[1]), d.launch()),
    ),
    "a stream that is gone": ("INVALID_HANDLE", lambda d: second(d.call("cuStreamDestroy", d.stream), d.launch())),
    "a library that is gone": ("INVALID_HANDLE", lambda d: second(d.call("cuLibraryUnload", d.library), d.launch())),
    "a handle of nothing": ("INVALID_HANDLE", lambda d: d.launch(d.memory)),
    "an event of another device": (
        "INVALID_HANDLE",
        lambda d: second(d.call("cuCtxSetCurrent", d.contexts[1]), d.status("cuEventRecord", d.event(0), d.stream)),
    ),
    "a time that was not asked for": (
        "INVALID_HANDLE",
        lambda d: d.status("cuEventElapsedTime", d.event(d.stream), d.event(d.stream)),
    ),
    "code that is none": (
        "INVALID_IMAGE",
        lambda d: d.status("cuLibraryLoadData", b"\0" * 99, None, None, 0, None, None, 0),
    ),
    "code for another device": (
        "NO_BINARY_FOR_GPU",
        lambda d: d.status("cuLibraryLoadData", d.cubins["old"], None, None, 0, None, None, 0),
    ),
    "a kernel that is not there": ("NOT_FOUND", lambda d: d.status("cuLibraryGetKernel", d.library, b"sub")),
    "no values": ("INVALID_VALUE", lambda d: d.launch(values=lambda table: 0)),
    "too few values": (
        "INVALID_VALUE",
        lambda d: d.launch(values=lambda table: second(table.put(4, 0), table.ctypes.data)),
    ),
    "too few bytes of values": ("INVALID_VALUE", packed(24)),
    "too many bytes of values": ("INVALID_VALUE", packed(40)),
    "too much shared memory": ("INVALID_VALUE", lambda d: d.launch(shared=(48 << 10) + 1)),
    "too many registers": ("LAUNCH_OUT_OF_RESOURCES", lambda d: d.launch(d.load("wide")[1], block=(1024, 1, 1))),
    "too many threads": ("INVALID_VALUE", lambda d: d.launch(block=(2048, 1, 1))),
    "threads that it was not compiled for": ("INVALID_VALUE", lambda d: d.launch(block=(64, 1, 1))),
    "a grid of nothing": ("INVALID_VALUE", lambda d: d.launch(grid=(0, 1, 1))),
    "a grid that is too high": ("INVALID_VALUE", lambda d: d.launch(grid=(1, 65536, 1))),
    "a misaligned pointer": ("MISALIGNED_ADDRESS", misaligned),
    "memory that is freed twice": (
        "INVALID_VALUE",
        lambda d: [d.status("cuMemFreeAsync", d.memory, d.stream) for _ in range(2)][1],
    ),
    "a copy to what was freed": (
        "INVALID_VALUE",
        lambda d: second(d.call("cuMemFreeAsync", d.memory, d.stream), d.status("cuMemsetD8Async", d.memory, 0, 8, 0)),
    ),
    "a copy past the end": ("INVALID_VALUE", lambda d: d.status("cuMemsetD8Async", d.memory + 60, 0, 8, d.stream)),
    "a fork that is not joined": ("STREAM_CAPTURE_UNJOINED", lambda d: second(fork(d), end(d))),
    "a capture ended in its fork": ("STREAM_CAPTURE_UNMATCHED", lambda d: second(fork(d), end(d, d.other))),
    "an event of before the capture": (
        "STREAM_CAPTURE_ISOLATION",
        lambda d: second(made := d.event(d.other), d.capture(), d.status("cuStreamWaitEvent", d.stream, made, 0)),
    ),
    "an event of another capture": (
        "STREAM_CAPTURE_MERGE",
        lambda d: second(
            d.capture(),
            made := d.event(d.stream),
            d.call("cuStreamBeginCapture", d.other, d.cuda.CUstreamCaptureMode(2)),
            d.status("cuStreamWaitEvent", d.other, made, 0),
        ),
    ),
    "a wait in a capture": (
        "STREAM_CAPTURE_UNSUPPORTED",
        lambda d: second(d.capture(), d.status("cuStreamSynchronize", d.stream)),
    ),
    "work after a wait in a capture": (
        "STREAM_CAPTURE_INVALIDATED",
        lambda d: second(d.capture(), d.status("cuCtxSynchronize"), d.launch()),
    ),
    "the end after a wait in a capture": (
        "STREAM_CAPTURE_INVALIDATED",
        lambda d: second(d.capture(), d.status("cuStreamQuery", d.stream), end(d)),
    ),
    "a captured event that is asked": (
        "CAPTURED_EVENT",
        lambda d: second(d.capture(), d.status("cuEventQuery", d.event(d.stream))),
    ),
    "a capture ended by another thread": (
        "STREAM_CAPTURE_WRONG_THREAD",
        lambda d: second(d.capture(1), d.elsewhere("cuStreamEndCapture", d.stream, context=d.contexts[0])),
    ),
}


# ---- the process, and the tests -------------------------------------------------------------------------------------


def outcomes(cubins: dict[str, bytes]) -> dict[str, str]:
    """What each program says, in a process of its own that has nothing of CUDA yet."""
    from cuda.bindings import driver  # noqa: F401

    import tritensor.ptx.machine  # noqa: F401  what all of them need, once
    from tests.devices import emulated  # noqa: F401

    found = {}
    for name, each in [*PROGRAMS.items(), *((name, each) for name, (_, each) in MISTAKES.items())]:
        reader, writer = os.pipe()
        if not (child := os.fork()):
            try:
                d = Driver(cubins)
                said = each(d.begin() if name in MISTAKES and name != "no context at all" else d)
            except BaseException:
                said = traceback.format_exc()
            os.write(writer, str(said).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            found[name] = pipe.read()
        os.waitpid(child, 0)
    return found


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    if os.environ.get("STUB_DEVICES"):
        pytest.skip("this is the stub")
    return libcuda_stub.environment(
        tmp_path_factory.mktemp("emulated"), libcuda_stub.EMULATED, STUB_DEVICES="2", STUB_MULTIPROCESSORS="4"
    )


@pytest.fixture(scope="module")
def said(stub: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    from tritensor.runtime.launch import compile_ahead, kernel

    @kernel
    def add_kernel(out_ptr, value, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def, name-defined]  # noqa: F821
        index = tl.arange(0, BLOCK)  # type: ignore[name-defined]  # noqa: F821
        held = tl.load(out_ptr + index, mask=index < count)  # type: ignore[name-defined]  # noqa: F821
        tl.store(out_ptr + index, held + value, mask=index < count)  # type: ignore[name-defined]  # noqa: F821

    folder = tmp_path_factory.mktemp("cubins")
    types = "*fp32", "fp32", "i32"
    for name, signature, warps, arch in (
        ("plain", types, 4, 90),
        ("aligned", ("*fp32:16", "fp32", "i32:16"), 4, 90),
        ("wide", types, 32, 90),
        ("old", types, 4, 80),
    ):
        constants = {"BLOCK": 1024 if name == "aligned" else 16}
        binary = compile_ahead(add_kernel, signature, constants, ("cuda", arch), warps, name="add").binary
        if name == "wide":  # as if it took 72 registers
            at = binary.index(b"\x04\x2f\x08\x00") + 8
            binary = binary[:at] + struct.pack("<I", 72) + binary[at + 4 :]
        (folder / f"{name}.cubin").write_bytes(binary)
    result = libcuda_stub.run(stub, "-m", "tests.devices.test_libcuda_emulated", folder)
    assert result.returncode == 0, result.stderr
    found: dict[str, str] = json.loads(result.stdout.splitlines()[-1])
    return found


@needs_triton
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_are_right(said: dict[str, str], name: str) -> None:
    assert said[name] == "None"


@needs_triton
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_with_the_status_that_a_card_gives(said: dict[str, str], name: str) -> None:
    assert said[name] == f"ERROR_{MISTAKES[name][0]}"


if __name__ == "__main__":
    given = {path.stem: path.read_bytes() for path in Path(sys.argv[1]).glob("*.cubin")}
    print(json.dumps(outcomes(given)))
