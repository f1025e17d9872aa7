"""A libcuda that runs kernels: what a card refuses it refuses, and what was compiled gives the right values.

Each mistake is a program that makes it through cuda.bindings, in a process of its own, and the status that says so.
They are forked from one process, `python -m tests.devices.test_libcuda_emulated`, because starting one takes a second.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..needs import needs_triton
from . import libcuda_stub

LOADING = None, None, 0, None, None, 0
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
        library = self.call("cuLibraryLoadData", self.cubins[name], *LOADING)
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

    def launch_packed(self, size: int) -> str:
        """A launch whose values come as one buffer of so many bytes."""
        length, numbers = np.array([size]), np.array([self.memory, 10 << 32, 0, 0, 0, 0], np.uint64)
        extra = np.array([1, numbers.ctypes.data, 2, length.ctypes.data, 0], np.uint64)
        function = self.cuda.CUfunction(int(self.kernel))
        return self.status("cuLaunchKernel", function, 1, 1, 1, 128, 1, 1, 0, self.stream, 0, extra.ctypes.data)

    def capture(self, stream: Any = None, mode: int = 2) -> None:
        self.call("cuStreamBeginCapture", stream or self.stream, self.cuda.CUstreamCaptureMode(mode))

    def fork(self) -> None:
        self.capture()
        self.launch()
        self.follow(self.other, self.event(self.stream))
        self.launch(stream=self.other)

    def end(self, stream: Any = None) -> str:
        return self.status("cuStreamEndCapture", stream or self.stream)

    def graph(self) -> Callable[[], None]:
        """What replays the work captured so far."""
        graph = self.call("cuStreamEndCapture", self.stream)
        executable = self.call("cuGraphInstantiate", graph, 0)
        self.call("cuGraphDestroy", graph)
        return lambda: self.call("cuGraphLaunch", executable, self.stream)

    def event(self, stream: Any) -> Any:
        made = self.call("cuEventCreate", 2)
        self.call("cuEventRecord", made, stream)
        return made

    def follow(self, stream: Any, event: Any) -> str:
        return self.status("cuStreamWaitEvent", stream, event, 0)

    def move(self, index: int) -> None:
        self.call("cuCtxSetCurrent", self.contexts[index])

    def wait(self) -> str:
        return self.status("cuStreamSynchronize", self.stream)

    def free(self) -> str:
        return self.status("cuMemFreeAsync", self.memory, self.stream)

    def unload(self) -> str:
        return self.status("cuLibraryUnload", self.library)

    def fill(self, offset: int) -> str:
        return self.status("cuMemsetD8Async", self.memory + offset, 0, 8, self.stream)

    def elsewhere(self, name: str, *arguments: Any, at: int | None = None) -> str:
        """The status of a call in another thread."""
        found: list[str] = []

        def work() -> None:
            if at is not None:
                self.move(at)
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
    registers = d.cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
    assert 8 <= d.call("cuFuncGetAttribute", registers, function) <= 64
    assert d.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, 128, 0) == 16
    assert d.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, 128, 100 << 10) == 2


@program
def a_late_launch_runs_when_it_is_waited_for(d: Driver) -> None:
    os.environ["STUB_LATE"] = "1"
    assert d.begin().floats() == [0.0] * 10
    d.launch()
    d.follow(d.other, d.event(d.stream))
    d.launch(stream=d.other)
    address = (ctypes.c_float * 10).from_address(d.memory)
    assert not any(address)
    d.call("cuStreamSynchronize", d.other)
    assert list(address) == [3.0] * 10


@program
def a_graph_that_forks_and_joins_is_replayed(d: Driver) -> None:
    d.begin().fork()
    d.follow(d.stream, d.event(d.other))
    replay = d.graph()
    assert d.floats() == [0.0] * 10
    for _ in range(3):
        replay()
    assert d.floats() == [9.0] * 10
    assert d.launch(stream=d.other) == "SUCCESS"  # it has left the capture
    assert d.floats() == [10.5] * 10


@program
def a_fault_is_of_one_device(d: Driver) -> None:
    d.begin().free()
    d.launch()
    assert d.wait() == "ERROR_ILLEGAL_ADDRESS"
    text = d.call("cuGetErrorString", d.cuda.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS)
    assert text == b"an illegal memory access was encountered"
    assert (d.begin(1).launch(), d.wait()) == ("SUCCESS", "SUCCESS")


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


# ---- one mistake each, of the last call of a line; `d.begin()` was called before, but for the first ----------------

MISTAKES = {
    name.strip(): (status.strip(), code.strip())
    for name, status, code in (
        line.split("|")
        for line in """
no context at all | INVALID_CONTEXT | d.status("cuMemAllocAsync", 64, 0)
no context in another thread | INVALID_CONTEXT | d.elsewhere("cuMemHostAlloc", 64, 0)
a stream of another device | INVALID_HANDLE | d.move(1), d.launch()
a stream that is gone | INVALID_HANDLE | d.call("cuStreamDestroy", d.stream), d.launch()
a library that is gone | INVALID_HANDLE | d.unload(), d.launch()
a handle of nothing | INVALID_HANDLE | d.launch(d.memory)
an event of another device | INVALID_HANDLE | d.move(1), d.status("cuEventRecord", d.event(0), d.stream)
a time that was not asked for | INVALID_HANDLE | d.status("cuEventElapsedTime", d.event(0), d.event(0))
code that is none | INVALID_IMAGE | d.status("cuLibraryLoadData", bytes(99), *LOADING)
code for another device | NO_BINARY_FOR_GPU | d.status("cuLibraryLoadData", d.cubins["old"], *LOADING)
a kernel that is not there | NOT_FOUND | d.status("cuLibraryGetKernel", d.library, b"sub")
no values | INVALID_VALUE | d.launch(values=lambda table: 0)
too few values | INVALID_VALUE | d.launch(values=lambda table: [table.put(4, 0), table.ctypes.data][1])
too few bytes of values | INVALID_VALUE | d.launch_packed(24)
too many bytes of values | INVALID_VALUE | d.launch_packed(48)
too much shared memory | INVALID_VALUE | d.launch(shared=(48 << 10) + 1)
too many registers | LAUNCH_OUT_OF_RESOURCES | d.launch(d.load("wide")[1], block=(1024, 1, 1))
too many threads | INVALID_VALUE | d.launch(block=(2048, 1, 1))
threads it was not compiled for | INVALID_VALUE | d.launch(block=(64, 1, 1))
a grid of nothing | INVALID_VALUE | d.launch(grid=(0, 1, 1))
a grid that is too high | INVALID_VALUE | d.launch(grid=(1, 65536, 1))
a misaligned pointer | MISALIGNED_ADDRESS | d.launch(d.load("aligned")[1], address=d.memory + 4), d.wait()
memory that is freed twice | INVALID_VALUE | d.free(), d.free()
a copy to what was freed | INVALID_VALUE | d.free(), d.fill(0)
a copy past the end | INVALID_VALUE | d.fill(60)
a kernel on what was freed | ILLEGAL_ADDRESS | d.free(), d.launch(), d.wait()
a call after a fault | ILLEGAL_ADDRESS | d.free(), d.launch(), d.status("cuMemAllocAsync", 64, d.stream)
a fork that is not joined | STREAM_CAPTURE_UNJOINED | d.fork(), d.end()
a capture ended in its fork | STREAM_CAPTURE_UNMATCHED | d.fork(), d.end(d.other)
an event of before the capture | STREAM_CAPTURE_ISOLATION | e := d.event(d.other), d.capture(), d.follow(d.stream, e)
an event of another | STREAM_CAPTURE_MERGE | d.capture(), d.capture(d.other), d.follow(d.other, d.event(d.stream))
a wait in a capture | STREAM_CAPTURE_UNSUPPORTED | d.capture(), d.wait()
work after a wait in a capture | STREAM_CAPTURE_INVALIDATED | d.capture(), d.status("cuCtxSynchronize"), d.launch()
an end after a wait | STREAM_CAPTURE_INVALIDATED | d.capture(), d.wait(), d.end()
a captured event that is asked | CAPTURED_EVENT | d.capture(), d.status("cuEventQuery", d.event(d.stream))
another thread | STREAM_CAPTURE_WRONG_THREAD | d.capture(mode=1), d.elsewhere("cuStreamEndCapture", d.stream, at=0)
a graph of a library that is gone | LAUNCH_FAILED | d.capture(), d.launch(), g := d.graph(), d.unload(), g(), d.wait()
""".strip().splitlines()
    )
}


# ---- the process, and the tests -------------------------------------------------------------------------------------


def outcomes(cubins: dict[str, bytes]) -> dict[str, str]:
    """What each program says, in a process of its own that has nothing of CUDA yet."""
    from cuda.bindings import driver  # noqa: F401

    import tritensor.drivers.ptx.machine  # noqa: F401  what all of them need, once
    from tests.devices import emulated  # noqa: F401

    found = {}
    for name in [*PROGRAMS, *MISTAKES]:
        reader, writer = os.pipe()
        if not (child := os.fork()):
            try:
                d = Driver(cubins)
                if name in PROGRAMS:
                    said = PROGRAMS[name](d)
                else:
                    d = d if name == "no context at all" else d.begin()
                    said = (eval(f"[{MISTAKES[name][1]}]", globals(), {"d": d}))[-1]
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


# Of what a GPU is tested with: memory, copies, graphs, and kernels of several families. The rest takes half an hour.
_KERNEL = "tests/declared/test_operators.py::test_kernel_matches_reference"
SAMPLE = (
    *(
        f"tests/devices/test_cuda_driver.py::test_{name}"
        for name in ("streams_are_ordered_by_events", "a_graph_repeats_copies_and_fills_on_the_same_memory")
    ),
    *(f"{_KERNEL}[{name}-float32]" for name in ("add", "exp", "sum", "softmax", "matmul")),
    "tests/devices/graphs/test_graphs.py::test_memory_belongs_to_the_graph_and_outlives_it_with_its_tensors",
)


@pytest.mark.thorough
@needs_triton
def test_a_sample_of_the_gpus_tests_passes(stub: dict[str, str]) -> None:
    result = libcuda_stub.run(
        stub, "-m", "pytest", "-q", "-m", "not slow", "-n0", "-p", "no:cacheprovider", "--devices", "cuda", *SAMPLE
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "8 passed" in result.stdout


@needs_triton
def test_values_that_do_not_fit_the_parameters_are_refused(stub: dict[str, str]) -> None:
    code = """
        import tritensor as torch
        from tritensor import drivers
        x = torch.ones(10, device="cuda")
        ((program, *_),) = drivers.require().programs.values(),
        for values in ([x.data_ptr()], [x.data_ptr(), *[1 << 70] * 3]):
            try:
                program.launch(torch.cuda.current_stream(), (1, 1, 1), values)
            except RuntimeError as error:
                print(error)
    """
    result = libcuda_stub.run(stub, "-c", textwrap.dedent(code))
    assert "values, and was passed" in result.stdout, result.stderr
    assert "value 1 is 1180591620717411303424, and the parameter has" in result.stdout


@pytest.mark.slow
@needs_triton
def test_the_whole_gpu_table_runs_emulated(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.gpu", "--emulate", "--json", str(tmp_path / "emulated.json")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "EMULATED" in result.stdout
    assert "no speed was measured" in result.stdout


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
