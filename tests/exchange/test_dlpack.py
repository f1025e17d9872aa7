"""DLPack with NumPy, and with capsules of which every field is chosen: memory, flags, copies, devices, lifetimes."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import func
from tritensor.errors import ArgumentError, ExchangeError
from tritensor.memory import foreign
from tritensor.types import dtypes
from tritensor.utils import dlpack

from . import capsules
from .capsules import Producer, name_of, read

DTYPES = dtypes.STORED
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
KINDS = {"b": 6, "u": 1, "i": 0, "f": 2, "c": 5, "V": 4}
CODES = {kind.numpy: KINDS[kind.numpy.kind] for kind in dtypes.ALL}
CODES |= {getattr(torch, name).numpy: code for name, code in zip(FLOAT8, (10, 12, 11, 13), strict=True)}


class Given:
    """A producer of one capsule, whatever it is asked for."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Any:
    yield
    gc.collect()
    assert not capsules.alive, "a deleter was not called"


# ---- out ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("versioned", [True, False])
def test_a_capsule_describes_the_tensor(dtype: torch.dtype, versioned: bool) -> None:
    whole = torch.ones(4, 5).to(dtype)
    for x in (whole, whole.t(), whole[1:, 2:4], whole[2, 3], whole[:0], whole[0].expand(3, 5)):
        capsule = x.__dlpack__(max_version=(1, 0) if versioned else None)
        assert name_of(capsule) == ("dltensor_versioned" if versioned else "dltensor")
        managed = read(capsule)
        found = managed.tensor
        assert (found.code, found.bits, found.lanes) == (CODES[dtype.numpy], 8 * dtype.itemsize, 1)
        assert (found.device_type, found.device_id, found.byte_offset) == (1, 0, 0)
        assert found.data == x.data_ptr()
        assert tuple(found.shape[: x.ndim]) == tuple(x.shape)
        if x.numel() and found.strides:
            assert tuple(found.strides[: x.ndim]) == x.stride()
        if versioned:
            assert (managed.major, managed.flags) == (1, 0)


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 3), (2, 0)])
def test_capsules_have_versions_from_dlpack_1_on(max_version: Any) -> None:
    wanted = max_version is not None and max_version[0] >= 1
    assert ("versioned" in name_of(torch.ones(2).__dlpack__(max_version=max_version))) is wanted


def test_numpy_reads_and_writes_the_same_memory() -> None:
    x = torch.zeros(3, 4)
    array = np.from_dlpack(x.t())
    assert array.shape == (4, 3) and array.ctypes.data == x.data_ptr()
    x[2, 1] = 5
    assert array[1, 2] == 5
    array[0, 0] = 7
    assert x[0, 0] == 7
    scalar = torch.tensor(3)
    assert np.from_dlpack(scalar).shape == () and np.from_dlpack(torch.ones(0, 3)).shape == (0, 3)


def test_copies_are_made_where_they_are_asked_for_and_told() -> None:
    x = torch.arange(4)
    for copy, flags in ((None, 0), (False, 0), (True, 2)):
        found = read(x.__dlpack__(max_version=(1, 0), copy=copy))
        assert found.flags == flags and (found.tensor.data == x.data_ptr()) is (copy is not True)
    array = np.from_dlpack(x, copy=True) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else np.array(x)
    array[0] = 9
    assert x.tolist() == [0, 1, 2, 3]
    assert read(x.__dlpack__(dl_device=(1, 0))).tensor.data == x.data_ptr()
    assert read(x.__dlpack__(dl_device=(np.int64(3), 0))).tensor.data == x.data_ptr()  # pinned memory is the CPU's


def test_read_only_memory_has_its_flag_and_no_old_capsule() -> None:
    array = np.zeros(3)
    array.flags.writeable = False
    x = torch.from_numpy(array)
    assert read(x.__dlpack__(max_version=(1, 0))).flags == 1
    with pytest.raises(ExchangeError, match=r"can't export the memory through DLPack[^$]*clone\(\)"):
        x.__dlpack__()
    assert read(x.__dlpack__(copy=True)).tensor.data != x.data_ptr()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"stream": 1}, BufferError, "stream should be None on cpu"),
        ({"stream": 1.0}, TypeError, "stream must be ``int`` or ``none``"),
        ({"stream": True}, TypeError, "stream must be ``int`` or ``none``"),
        ({"dl_device": (8, 0)}, BufferError, r"can't export to the DLPack device \(8, 0\)"),
        ({"dl_device": (2, -1)}, BufferError, r"can't export to the DLPack device \(2, -1\)"),
        (
            {"dl_device": (2, 0), "copy": False},
            ValueError,
            r"cannot move \(i.e. copy=False\) tensor from cpu to cuda:0",
        ),
    ],
)
def test_an_export_is_refused(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        torch.ones(2).__dlpack__(**options)


def test_a_stream_may_be_named_on_the_cpu_if_it_is_none() -> None:
    assert name_of(torch.ones(2).__dlpack__(stream=-1)) == "dltensor"


@pytest.mark.parametrize("call", [lambda x: x.__dlpack__(), torch.to_dlpack, torch.from_dlpack, np.from_dlpack])
def test_a_tensor_that_requires_grad_is_refused(call: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    for each in (x, x * 2):
        with pytest.raises(BufferError, match=r"Can't export tensors that require gradient, use tensor\.detach"):
            call(each)
    assert call(x.detach()) is not None


def test_inside_of_vmap_nothing_is_exported() -> None:
    with pytest.raises(RuntimeError):
        func.vmap(lambda x: torch.utils.dlpack.to_dlpack(x))(torch.ones(2, 3))


# ---- in -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("version", [None, (1, 0), (1, 7)])
def test_any_capsule_is_taken(dtype: torch.dtype, version: Any) -> None:
    array = np.arange(24).astype(dtype.numpy).reshape(4, 6)
    kind = {"code": CODES[dtype.numpy], "bits": 8 * dtype.itemsize, "version": version, "keeper": array}
    for shape, strides, offset in (
        ((4, 6), None, 0),
        ((4, 6), (6, 1), 0),
        ((2, 3), (12, 2), dtype.itemsize),
        ((5, 6), (0, 1), 0),
        ((), None, 3 * dtype.itemsize),
        ((0, 3), (1, 1), 0),
    ):
        producer = Producer(array.ctypes.data, shape, strides, offset=offset, **kind)
        x = torch.from_dlpack(producer)
        assert (x.dtype, tuple(x.shape)) == (dtype, shape)
        if x.numel():
            steps = None if strides is None else [step * dtype.itemsize for step in strides]
            wanted = np.ndarray(shape, dtype.numpy, array, offset, steps)
            assert x.data_ptr() == array.ctypes.data + offset
            np.testing.assert_array_equal(x.numpy(), wanted)
        assert not producer.deleted
        del x
        assert len(producer.deleted) == 1


def test_writes_go_both_ways_whatever_the_capsule() -> None:
    array = np.zeros(6, np.float32)
    for version in (None, (1, 0)):
        x = torch.from_dlpack(Producer(array.ctypes.data, version=version, keeper=array))
        x += 1
        array[0] = 5
        assert x[0, 0] == 5 and array[5] == x[1, 2]
        y = x.view(-1)[::2]
        y.zero_()
        assert array[::2].tolist() == [0.0] * 3
        x.requires_grad_()
        (x * 2).sum().backward()
        assert x.grad.tolist() == [[2.0] * 3] * 2


def test_read_only_memory_gives_a_tensor_that_cannot_be_changed() -> None:
    array = np.ones(6, np.float32)
    x = torch.from_dlpack(Producer(array.ctypes.data, version=(1, 0), flags=1, keeper=array))
    with pytest.raises(RuntimeError, match="memory is read-only"):
        x.add_(1)
    assert (x + 1).sum() == 12 and x.clone().add_(1).sum() == 12
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match="memory is read-only"):
        torch.from_dlpack(array).zero_()
    y = torch.from_dlpack(array, copy=True).zero_()
    assert not y.any() and array.all()


def test_elements_may_be_misaligned_on_the_cpu() -> None:
    memory = bytearray(33)
    array = np.frombuffer(memory, np.uint8)
    x = torch.from_dlpack(Producer(array.ctypes.data + 1, (8,), keeper=array))
    x.copy_(torch.arange(8.0))
    assert np.frombuffer(bytes(memory)[1:], np.float32).tolist() == list(range(8)) and x.sum() == 28


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"strides": (-3, 1)}, "a stride is negative, and tensors have none"),
        ({"code": 9, "bits": 8}, "no dtype has elements of code 9 with 8 bits and 1 lanes"),
        ({"lanes": 4}, "no dtype has elements of code 2 with 32 bits and 4 lanes"),
        ({"lanes": 0}, "and 0 lanes"),
        ({"bits": 80}, "code 2 with 80 bits"),
        ({"device": (8, 0)}, "its device is of type 8"),
        ({"version": (2, 0)}, "its version is 2, and only 1 is known"),
        ({"shape": None, "ndim": 2}, "it has 2 dimensions and no sizes"),
        ({"ndim": 65}, "it has 65 dimensions"),
        ({"ndim": -1}, "it has -1 dimensions"),
        ({"shape": (2, -1)}, "no tensor can have its shape"),
        ({"shape": (1 << 40, 1 << 40)}, "no tensor can have its shape"),
        ({"strides": (1 << 62, 1)}, "as far as it reaches"),
        ({"address": None, "offset": 8}, "there is no memory at 0x0"),
        ({"address": 0}, "there is no memory at 0x0"),
        ({"name": "used_dltensor"}, "it was consumed before"),
        ({"name": "used_dltensor_versioned", "version": (1, 0)}, "it was consumed before"),
        ({"name": "arrow_array"}, r'it is <capsule object "arrow_array" at \w+>; there can be one'),
    ],
)
def test_what_no_tensor_can_be_is_refused(fields: dict[str, Any], words: str) -> None:
    array = np.zeros(6, np.float32)
    producer = Producer(**{"address": array.ctypes.data, "keeper": array, **fields})
    for call in (lambda: torch.from_dlpack(producer), lambda: torch.from_dlpack(producer.capsule())):
        with pytest.raises(ExchangeError, match=words):
            call()
    capsules.alive.clear()  # capsules that were not consumed


def test_a_capsule_is_taken_once() -> None:
    x = torch.arange(3)
    capsule = dlpack.to_dlpack(x)
    y = dlpack.from_dlpack(capsule)
    assert y.data_ptr() == x.data_ptr()
    with pytest.raises(ExchangeError, match="consumed before"):
        dlpack.from_dlpack(capsule)
    assert name_of(capsule) == "used_dltensor" and dlpack.DLDeviceType.kDLCUDAManaged == 13


def test_producers_of_every_age_are_asked_for_what_they_know() -> None:
    array = np.zeros(6, np.float32)
    for takes, last in (
        (("stream", "max_version", "dl_device", "copy"), {"max_version": (1, 0), "copy": False}),
        (("stream", "copy"), {"copy": False}),
        (("stream",), {}),
    ):
        producer = Producer(array.ctypes.data, keeper=array, takes=takes)
        assert torch.from_dlpack(producer, copy=False).data_ptr() == array.ctypes.data
        assert producer.asked[-1] == last
    plain = Producer(array.ctypes.data, keeper=array)
    torch.from_dlpack(plain)
    assert plain.asked == [{"max_version": (1, 0)}]


def test_copy_and_device() -> None:
    array = np.arange(6, dtype=np.float32)
    here = {"address": array.ctypes.data, "keeper": array, "version": (1, 0)}
    for copy in (None, False, True):
        for device in (None, "cpu", torch.device("cpu")):
            for source in (Producer(**here), array, torch.from_numpy(array)):
                x = torch.from_dlpack(source, device=device, copy=copy)
                assert (x.data_ptr() == array.ctypes.data) is (copy is not True), (copy, device, type(source))
                assert x.numpy().ravel().tolist() == array.tolist()
    copied = Producer(**here, flags=2)
    assert torch.from_dlpack(copied, copy=True).data_ptr() == array.ctypes.data  # it is nobody else's
    with pytest.raises(ExchangeError, match="was copied by its producer"):
        torch.from_dlpack(copied, copy=False)
    gpu = Producer(**here, device=(10, 0))  # one that copies to the CPU, as it is asked to
    with pytest.raises(ExchangeError, match="device is of type 10"):
        torch.from_dlpack(gpu, device="cpu")
    assert gpu.asked[0]["dl_device"] == (1, 0)
    capsules.alive.clear()


class Failing:
    def __dlpack_device__(self) -> Any:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise RuntimeError("not today")


class WithoutDevice(Failing):
    def __dlpack_device__(self) -> Any:
        return None


def test_what_is_no_producer_is_refused() -> None:
    for value in ([1, 2], 3, None, "x", b"x"):
        with pytest.raises(ArgumentError, match=f"cannot take a {type(value).__name__}"):
            torch.from_dlpack(value)
    with pytest.raises(ExchangeError, match=r"cannot take a Failing[^$]*RuntimeError: not today"):
        torch.from_dlpack(Failing())
    with pytest.raises(ExchangeError, match="cannot take a WithoutDevice"):
        torch.from_dlpack(WithoutDevice())
    with pytest.raises(ExchangeError, match="cannot take a ndarray"):
        torch.from_dlpack(np.array(["a"]))
    for other in (None, 3, np.zeros(2)):
        with pytest.raises(ExchangeError):
            torch.from_dlpack(Given(other))


def test_numpy_before_2_1_has_no_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "MAX_VERSION", None)
    assert name_of(torch.ones(2).__dlpack__(max_version=(1, 0), copy=True)) == "dltensor"
    array = np.zeros(6, np.float32)
    producer = Producer(array.ctypes.data, keeper=array)
    assert torch.from_dlpack(producer).numel() == 6 and producer.asked == [{}]


# ---- lifetimes ------------------------------------------------------------------------------------------------------


def test_either_side_may_go_first() -> None:
    array = np.arange(1000.0)
    gone = weakref.ref(array)
    x = torch.from_dlpack(array)
    del array
    gc.collect()
    assert gone() is not None and x.sum() == 499500
    view = x[10:]
    del x
    gc.collect()
    assert view.sum() == 499500 - 45
    del view
    gc.collect()
    assert gone() is None

    x = torch.arange(1000.0)
    base = weakref.ref(x.numpy())
    other = np.from_dlpack(x)
    del x
    gc.collect()
    assert base() is not None and other.sum() == 499500
    del other
    gc.collect()
    assert base() is None


def test_a_capsule_that_nobody_takes_frees_its_tensor() -> None:
    for options in ({}, {"max_version": (1, 0)}):
        x = torch.ones(3)
        memory = weakref.ref(x.numpy())
        capsule = x.__dlpack__(**options)
        del x
        gc.collect()
        assert memory() is not None
        del capsule
        gc.collect()
        assert memory() is None


def test_many_exchanges_leave_nothing() -> None:
    x, array = torch.ones(100), np.ones(100, np.float32)
    references = sys.getrefcount(x._data), sys.getrefcount(array)
    producer = Producer(array.ctypes.data, (100,), version=(1, 0), keeper=array)

    def rounds(count: int) -> int:
        for _ in range(count):
            np.from_dlpack(x), x.__dlpack__(max_version=(1, 0)), x.__dlpack__()
            torch.from_dlpack(x), torch.from_dlpack(array), torch.from_dlpack(producer)
            np.from_dlpack(torch.from_dlpack(array).to(torch.bfloat16).view(torch.int16))
        gc.collect()
        return len(gc.get_objects())

    before = rounds(20)
    assert abs(rounds(500) - before) < 20
    del producer.keeper
    assert len(producer.deleted) == 520 and not capsules.alive
    assert (sys.getrefcount(x._data), sys.getrefcount(array)) == references


def test_deleters_are_called_in_any_thread() -> None:
    array = np.ones(6, np.float32)
    producers = [Producer(array.ctypes.data, version=(1, 0), keeper=array) for _ in range(8)]
    tensors = [[torch.from_dlpack(producer) for _ in range(50)] for producer in producers]
    threads = [threading.Thread(target=each.clear) for each in tensors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(producer.deleted) for producer in producers] == [50] * 8


@pytest.mark.thorough
def test_of_threads_with_one_capsule_one_gets_it() -> None:
    x, got = torch.ones(2), []

    def take(capsule: Any) -> None:
        try:
            got.append(torch.from_dlpack(capsule))
        except Exception as error:
            got.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            capsule = x.__dlpack__()
            threads = [threading.Thread(target=take, args=(capsule,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(got) == 600 and sum(isinstance(each, torch.Tensor) for each in got) == 200
    assert all(isinstance(each, (torch.Tensor, ExchangeError)) for each in got)


def test_memory_may_outlive_the_interpreter() -> None:
    """A tensor, an array and a capsule that are never dropped, and a program that ends as if there were none."""
    code = """
        import ctypes, numpy as np, tritensor as torch
        forever = ctypes.pythonapi.Py_IncRef
        forever.argtypes = [ctypes.py_object]
        x, array = torch.ones(5), np.ones(5)
        kept = [np.from_dlpack(x), torch.from_dlpack(array), x.__dlpack__(), x.__dlpack__(max_version=(1, 0))]
        also = [np.from_dlpack(x), torch.from_dlpack(array), x.__dlpack__(), torch.ones(3).bfloat16().__dlpack__()]
        for each in also:
            forever(each)
        print("end")
    """
    program = "\n".join(line.strip() for line in code.strip().splitlines()).replace(
        "\nforever(each)", "\n    forever(each)"
    )
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
