"""Launches on a real device, with the CUDA driver in its place written down: what it is handed, and when."""

from __future__ import annotations

import struct
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tritensor import settings
from tritensor.drivers import selection
from tritensor.drivers.compiling import CompilingDriver
from tritensor.drivers.cuda_kernels import CudaKernels
from tritensor.drivers.loading import Compiled
from tritensor.drivers.simulator import Simulator
from tritensor.errors import DeviceError, KernelError
from tritensor.memory.array import DeviceArray, form_of
from tritensor.runtime import program
from tritensor.runtime.launch import Float64, Int64, kernel, launch
from tritensor.types import devices, dtypes

if TYPE_CHECKING:
    import triton.language as tl

pytest.importorskip("triton")


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with settings.cache_dir(str(tmp_path_factory.mktemp("triton"))):
        yield


class Recorder(ModuleType):
    """cuda-core as the launcher knows it: what is loaded and launched is written down."""

    def __init__(self, name="cuda.core"):
        super().__init__(name)
        self.launches, self.loaded, self.configs, self.failure, self.current = [], [], [], None, []
        self.ObjectCode = SimpleNamespace(from_cubin=self.from_cubin)

    def from_cubin(self, cubin):
        def get_kernel(name):
            self.loaded.append(name)
            return SimpleNamespace(handle=f"kernel {name}")

        assert cubin[:4] == b"\x7fELF"
        return SimpleNamespace(get_kernel=get_kernel)

    def LaunchConfig(self, **config):
        self.configs.append(config)
        return config

    def Device(self, index):
        return SimpleNamespace(set_current=lambda: self.current.append(index))

    def launch(self, stream, config, loaded, *values):
        if self.failure is not None:
            raise self.failure
        self.launches.append((stream, config["grid"], loaded, values))


class FakeBuffer:
    def __init__(self, address, arena):
        self.address, self.arena, self.streams = address, arena, []

    def record_stream(self, stream):
        self.streams.append(stream)


class Recorded(CudaKernels, Simulator):
    """A driver that launches by the recorder in the place of cuda-core."""

    launch, pick = CompilingDriver.launch, CompilingDriver.pick

    def __init__(self, core):
        super().__init__(1)
        self.core = core

    def device_count(self):
        return self.core.devices

    def current_stream(self, index):
        return self.core.stream


@pytest.fixture
def gpu(monkeypatch):
    core = Recorder()
    core.stream, core.devices = SimpleNamespace(handle="stream", arena=arena()), 1
    core.driver = Recorded(core)
    monkeypatch.setattr(program, "watchers", [])  # nothing can be repeated on what only writes down
    monkeypatch.setitem(sys.modules, "cuda.core", core)
    core.array = lambda address, shape=(64,), dtype=np.float32, arena=core.stream.arena: DeviceArray(
        FakeBuffer(address, arena), form_of(shape, (1,) * len(shape), np.dtype(dtype), devices.cuda(0), address & 15)
    )
    with selection.use(core.driver):
        yield core


def arena():
    return SimpleNamespace(heap=SimpleNamespace(index=0))


@kernel
def many_kernel(outs, x_ptr, scale, precise, long, strides, count, FLAG: tl.constexpr):
    index = tl.arange(0, 16)
    x = tl.load(x_ptr + index * strides[0], mask=index < count) * scale
    tl.store(outs[0] + index * strides[1], x + precise)
    tl.store(outs[1] + index * strides[2], x + long)


@kernel
def matmul_kernel(out_ptr, x_ptr, y_ptr, inner, SIZE: tl.constexpr, DEPTH: tl.constexpr):
    row, col, depth = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, DEPTH)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, inner, DEPTH):
        x = tl.load(x_ptr + row * inner + (start + depth)[None, :])
        y = tl.load(y_ptr + (start + depth)[:, None] * SIZE + col)
        total = tl.dot(x, y, total)
    tl.store(out_ptr + row * SIZE + col, total)


@kernel
def copy_kernel(out_ptr, in_ptr, count, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + index, tl.load(in_ptr + index, mask=index < count), mask=index < count)


def bits(value):
    return struct.unpack("<i", struct.pack("<f", value))[0]


def launch_many(gpu, name=None, scale=0.5, strides=(1, -2, 2**40), count=5, x_address=4096):
    outs = gpu.array(8192), gpu.array(12288, dtype=np.float64)
    arguments = (outs, gpu.array(x_address), scale, Float64(0.1), Int64(1), strides, count)
    launch(many_kernel, (7,), arguments, {"FLAG": True}, devices.cuda(0), name=name)


def test_a_launch_hands_over_plain_numbers_in_the_kernels_order(gpu):
    launch_many(gpu)
    (stream, grid, loaded, values), (name,) = gpu.launches[0], gpu.loaded
    assert (stream, grid, loaded.handle, name) == ("stream", (7, 1, 1), "kernel many", "many")
    # the stride of 1 is a constant of the compilation; the last two are scratch memory
    assert values == (8192, 12288, 4096, bits(0.5), 0.1, 1, -2, 2**40, 5, 0, 0)
    assert gpu.configs == [{"grid": (7, 1, 1), "block": (128, 1, 1), "shmem_size": 0}]


def test_a_kernel_is_compiled_again_only_for_what_matters(gpu):
    launch_many(gpu)
    launch_many(gpu, scale=0.25, strides=(1, -6, 2**41 + 16), count=7, x_address=16384)
    assert len(gpu.loaded) == 1
    assert len(gpu.configs) == 1
    launch_many(gpu, strides=(3, -2, 2**40))  # no longer 1
    assert len(gpu.loaded) == 2
    launch_many(gpu, count=32)  # divisible by 16
    assert len(gpu.loaded) == 3
    launch_many(gpu, x_address=4100)  # not aligned
    assert len(gpu.loaded) == 4
    launch_many(gpu, name="other")
    assert gpu.loaded[-1] == "many_other"
    assert len(gpu.launches) == 6


def test_constants_that_python_finds_equal_are_told_apart(gpu):
    for constant in (1, True, 1.0, (1, 2), (True, 2)):
        launch(flag_kernel, (1,), (gpu.array(4096),), {"FLAG": constant}, devices.cuda(0))
    assert len(gpu.loaded) == 5


@kernel
def flag_kernel(out_ptr, FLAG: tl.constexpr):
    tl.store(out_ptr, 1.0)


def test_numbers_beyond_float32_become_infinite_and_wide_integers_keep_their_bits(gpu):
    launch_many(gpu, scale=-1e300, strides=(1, -2, 2**64 - 5))
    values = gpu.launches[0][3]
    assert values[3] == bits(float("-inf"))
    assert values[7] == -5


def test_strings_bools_and_none_are_constants_of_the_compilation(gpu):
    for options in (("double", True, None), ("double", False, None), ("keep", True, None)):
        launch(options_kernel, (1,), (gpu.array(4096), options), {}, devices.cuda(0))
    assert len(gpu.loaded) == 3
    assert gpu.launches[0][3] == (4096, 0, 0)


@kernel
def options_kernel(out_ptr, options):
    value = 1.0
    if options[0] == "double":
        value = value * 2
    if options[1] and options[2] is None:
        value = -value
    tl.store(out_ptr, value)


def test_memory_of_another_stream_is_told_of_this_one(gpu):
    x = gpu.array(4096, arena=arena())
    arguments = ((gpu.array(8192), gpu.array(12288)), x, 0.5, Float64(0), Int64(1), (1, 2, 3), 5)
    launch(many_kernel, (7,), arguments, {"FLAG": True}, devices.cuda(0))
    assert x.buffer.streams == [gpu.stream]


@pytest.mark.thorough
def test_shared_memory_above_48_kb_is_asked_for_once(gpu, monkeypatch):
    asked = []
    attributes = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="limit")
    bindings = ModuleType("cuda.bindings.driver")
    bindings.CUfunction_attribute = attributes
    bindings.cuKernelSetAttribute = lambda *values: asked.append(values) or (0,)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", bindings)
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", ModuleType("cuda.bindings"))
    x = gpu.array(8192, dtype=dtypes.bfloat16.numpy)
    arguments = gpu.array(4096), x, x, 256
    for _ in range(2):
        launch(matmul_kernel, (1,), arguments, {"SIZE": 128, "DEPTH": 64}, devices.cuda(0))
    ((attribute, nbytes, handle, index),) = asked
    assert (attribute, handle, index) == ("limit", "kernel matmul", 0)
    assert nbytes == gpu.configs[0]["shmem_size"] > 48 << 10
    bindings.cuKernelSetAttribute = lambda *values: (1,)
    with pytest.raises(DeviceError, match=r"(?s)launch of big.*bytes of shared memory"):
        launch(matmul_kernel, (1,), arguments, {"SIZE": 128, "DEPTH": 64}, devices.cuda(0), name="big")


class Blocks:
    """An arena that writes down what is taken from it and given back."""

    def __init__(self):
        self.log = []

    def take(self, form):
        self.log.append(("take", form.shape, form.dtype, form.device))
        return SimpleNamespace(address=1 << 20)

    def give(self, block):
        self.log.append(("give", block.address))


def test_scratch_memory_is_given_to_a_kernel_that_asks_for_it(gpu):
    loaded = gpu.driver.load(0, Compiled(b"\x7fELF", "many", 16, 8, 256, 0), "scratch")
    scratched = program.Program(gpu.driver, 0, loaded, "scratch", ())
    stream = SimpleNamespace(handle="stream", arena=Blocks())
    taken = [("take", (256 * 6,), np.dtype(np.uint8), devices.cuda(0)), ("give", 1 << 20)]
    for times in (1, 2):
        scratched.launch(stream, (3, 2, 1), (1, 2))
        assert stream.arena.log == taken * times
        assert gpu.launches[-1][3] == (1, 2, 1 << 20, 0)
    assert gpu.configs[-1] == {"grid": (3, 2, 1), "block": (256, 1, 1), "shmem_size": 16}
    gpu.failure = RuntimeError("CUDA_ERROR_INVALID_VALUE")
    with pytest.raises(DeviceError, match="launch of scratch"):
        scratched.launch(stream, (3, 2, 1), (1, 2))
    assert stream.arena.log == taken * 3  # also where the launch fails
    for programs in range(1, 1100):  # grids that follow a changing size do not pile up
        scratched._scratch_blocks(stream, (programs, 1, 1))
    assert len(scratched._forms) <= 1024


def test_with_several_devices_the_right_one_is_made_current(gpu):
    gpu.devices = 2
    launch_many(gpu)
    assert gpu.current == [0]


def test_configurations_do_not_pile_up(gpu):
    launch_many(gpu)
    (many,) = gpu.driver.programs.values()
    for size in range(2000):
        many.launch(gpu.stream, (size, 1, 1), ())
    assert len(many._configs) <= 1024


@pytest.mark.parametrize(
    ("code", "first", "lost"),
    [
        ("CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA error: an illegal memory access was encountered", True),
        ("CUDA_ERROR_MISALIGNED_ADDRESS", "CUDA error: misaligned address", True),
        ("CUDA_ERROR_INVALID_VALUE", "CUDA error: launch failure", False),
    ],
)
def test_a_refused_launch_names_the_operator_and_says_what_is_lost(gpu, code, first, lost):
    gpu.failure = RuntimeError(f"{code}: the driver said so")
    with pytest.raises(DeviceError) as raised:
        launch_many(gpu, name="relu")
    text = str(raised.value)
    assert text.startswith(first)
    assert "launch of relu" in text
    assert ("context is lost" in text) is lost


def test_without_cuda_core_a_launch_says_what_to_install(gpu, monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    monkeypatch.setitem(sys.modules, "cuda.core.experimental", None)
    with pytest.raises(DeviceError, match=r'(?s)relu: .*cuda-core.*pip install "tritensor\[cuda\]"'):
        launch_many(gpu, name="relu")


def test_an_older_cuda_core_is_found_under_its_experimental_name(gpu, monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.core", ModuleType("cuda.core"))
    monkeypatch.setitem(sys.modules, "cuda.core.experimental", gpu)
    launch_many(gpu)
    assert len(gpu.launches) == 1


def test_arrays_that_kernels_do_not_take_are_refused(gpu):
    with pytest.raises(KernelError, match="kernels do not take arrays of complex64"):
        launch(flag_kernel, (1,), (gpu.array(4096, dtype=np.complex64),), {"FLAG": 1}, devices.cuda(0))
