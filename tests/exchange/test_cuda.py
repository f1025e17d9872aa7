"""DLPack and CUDA's array interface: on the driver of real devices over an emulated libcuda, simulated, on a card."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, drivers, settings
from tritensor.errors import DeviceError, ExchangeError

from ..devices import libcuda_stub
from ..needs import needs_triton
from .capsules import Producer, alive, read

SOURCE = Path(__file__).with_name("cuda_programs.py")
PROGRAMS = [
    node.name
    for node in ast.parse(SOURCE.read_text("utf-8")).body
    if isinstance(node, ast.FunctionDef) and any(ast.unparse(each) == "program" for each in node.decorator_list)
]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    if os.environ.get("STUB_DEVICES"):
        pytest.skip("this is the stub")
    stub = libcuda_stub.environment(tmp_path_factory.mktemp("exchange"), libcuda_stub.EMULATED, STUB_DEVICES="2")
    result = libcuda_stub.run(stub, "-m", "tests.exchange.cuda_programs")
    assert result.returncode == 0, result.stderr
    found: dict[str, str] = json.loads(result.stdout.splitlines()[-1])
    return found


@pytest.mark.thorough
@needs_triton
@pytest.mark.parametrize("name", PROGRAMS)
def test_on_the_driver_of_real_devices(said: dict[str, str], name: str) -> None:
    assert said[name] == "None"


# ---- simulated devices ----------------------------------------------------------------------------------------------


def test_simulated_memory_is_for_no_other_library() -> None:
    with cuda.simulate():
        x = torch.ones(3, device="cuda")
        for call in (x.__dlpack__, lambda: np.from_dlpack(x), lambda: torch.to_dlpack(x), x.__dlpack_device__):
            with pytest.raises(ExchangeError, match=r"cuda:0[^$]*the device is simulated[^$]*Tensor.cpu\(\)"):
                call()
        assert not hasattr(x, "__cuda_array_interface__")
        with pytest.raises(AttributeError, match=r"__cuda_array_interface__ on a tensor on cuda:0[^$]*is simulated"):
            x.__cuda_array_interface__  # noqa: B018
        y = torch.from_dlpack(x)
        y.add_(1)
        assert x.tolist() == [2.0] * 3 and torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
        assert torch.from_dlpack(np.ones(2), device="cuda").is_cuda


def test_simulated_memory_is_copied_to_the_cpu() -> None:
    with cuda.simulate():
        x = torch.arange(3, device="cuda")
        managed = read(x.__dlpack__(max_version=(1, 0), dl_device=(1, 0)))
        assert (managed.flags, managed.tensor.device_type) == (2, 1)
        assert np.from_dlpack(x, device="cpu").tolist() == [0, 1, 2]
        assert torch.from_dlpack(x, device="cpu").tolist() == [0, 1, 2]
        for call in (
            lambda: x.__dlpack__(dl_device=(1, 0), copy=False),
            lambda: torch.from_dlpack(x, device="cpu", copy=False),
        ):
            with pytest.raises(ExchangeError, match=r"cannot move .* from cuda:0 to cpu without copying"):
                call()
        with pytest.raises(ExchangeError, match="the device is simulated"):
            torch.ones(2).__dlpack__(dl_device=(2, 0))


@pytest.mark.usefixtures("no_device")
def test_memory_of_a_device_without_a_driver() -> None:
    producer = Producer(8, (1,), device=(2, 0))
    array = SimpleNamespace(
        __cuda_array_interface__={"version": 3, "shape": (1,), "typestr": "<f4", "data": (8, False)}
    )
    for call in (
        lambda: torch.from_dlpack(producer),
        lambda: torch.from_dlpack(producer.capsule()),
        lambda: torch.as_tensor(array),
        lambda: torch.ones(1).__dlpack__(dl_device=(2, 0)),
    ):
        with pytest.raises(DeviceError, match="Found no NVIDIA driver on your system"):
            call()
    alive.clear()


def test_there_is_no_interface_on_the_cpu() -> None:
    x = torch.ones(2)
    assert not hasattr(x, "__cuda_array_interface__") and x.__dlpack_device__() == (1, 0)
    words = "Can't get __cuda_array_interface__ on non-CUDA tensor type: .*FloatTensor If CUDA data is required use"
    with pytest.raises(AttributeError, match=words):
        x.__cuda_array_interface__  # noqa: B018


# ---- a real card ----------------------------------------------------------------------------------------------------


@pytest.fixture
def card() -> object:
    if os.environ.get("STUB_DEVICES"):
        pytest.skip("this is the stub")
    with settings.simulate_cuda(0):
        if drivers.active() is None:
            pytest.skip("needs a real GPU")
        yield


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_memory_is_shared_with_another_library(card: object, library: str) -> None:
    other = pytest.importorskip(library)
    if library == "torch" and not other.cuda.is_available():
        pytest.skip("torch is built for the CPU")
    x = torch.arange(6, dtype=torch.float32, device="cuda").reshape(2, 3)
    for each in (x, x.t(), x[:, 1:]):
        theirs = [
            other.from_dlpack(each),
            other.as_tensor(each, device="cuda") if library == "torch" else other.asarray(each),
        ]
        for array in theirs:
            address = array.data_ptr() if library == "torch" else array.data.ptr
            assert address == each.data_ptr() and tuple(array.shape) == tuple(each.shape)
            array += 1
            for back in (torch.from_dlpack(array), torch.as_tensor(array)):
                assert back.data_ptr() == address and torch.equal(back, each)
    array = other.zeros(1 << 20, dtype=other.float32, **({"device": "cuda"} if library == "torch" else {}))
    y = torch.from_dlpack(array)
    side = cuda.Stream()
    with cuda.stream(side):
        z = torch.from_dlpack(array)
        z.add_(1)
        again = other.from_dlpack(z)
    assert float(again.sum()) == float(y.sum()) == 1 << 20
    del array, z, again
    assert float(y.sum()) == 1 << 20
