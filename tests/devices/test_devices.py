"""Device objects: what is read, what is refused, equality, and whose default and current device they are."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tritensor as torch
from tritensor.types import devices


@pytest.mark.parametrize(
    ("arguments", "keywords", "kind", "index"),
    [
        (("cpu",), {}, "cpu", None),
        (("cpu:1",), {}, "cpu", 1),
        (("cuda",), {}, "cuda", None),
        (("cuda:0",), {}, "cuda", 0),
        (("cuda:12",), {}, "cuda", 12),
        (("cuda", 1), {}, "cuda", 1),
        ((1,), {}, "cuda", 1),
        ((), {"type": "cuda", "index": 2}, "cuda", 2),
        ((), {"type": "cpu"}, "cpu", None),
    ],
)
def test_every_spelling(arguments, keywords, kind, index) -> None:
    made = torch.device(*arguments, **keywords)
    assert (made.type, made.index) == (kind, index)
    text = kind if index is None else f"{kind}:{index}"
    assert str(made) == text and torch.device(text) == made and hash(torch.device(text)) == hash(made)
    assert repr(made) == f"device(type='{kind}'" + ("" if index is None else f", index={index}") + ")"
    assert pickle.loads(pickle.dumps(made)) == made and copy.deepcopy(made) == made


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("gpu",), RuntimeError, "Expected one of cpu, cuda"),
        (("CUDA:0",), RuntimeError, "Expected one of cpu, cuda"),
        (("",), RuntimeError, "Expected one of cpu, cuda"),
        ((" cuda",), RuntimeError, "Expected one of cpu, cuda"),
        (("cuda:",), RuntimeError, "Invalid device string: 'cuda:'"),
        (("cuda:x",), RuntimeError, "Invalid device string: 'cuda:x'"),
        (("cuda:-1",), RuntimeError, "Invalid device string: 'cuda:-1'"),
        (("cuda:01",), RuntimeError, "Invalid device string: 'cuda:01'"),
        (("cuda:1:2",), RuntimeError, "Invalid device string"),
        (("cuda:1 ",), RuntimeError, "Invalid device string"),
        (("cuda:1", 1), RuntimeError, r"type \(string\) must not include an index"),
        (("cuda", -1), RuntimeError, "Device index must not be negative"),
        ((-1,), RuntimeError, "Device index must not be negative"),
        ((None,), TypeError, r"device\(\): argument 'type' must be str or int, not NoneType"),
        ((), TypeError, r"device\(\): argument 'type'"),
        ((1.5,), TypeError, r"device\(\): argument 'type' .* not float"),
        ((True,), TypeError, r"device\(\): argument 'type' .* not bool"),
        (("cuda", "1"), TypeError, r"device\(\): argument 'index' must be int, not str"),
        (("cuda", 1.0), TypeError, r"device\(\): argument 'index' must be int, not float"),
        (("cuda", True), TypeError, r"device\(\): argument 'index' must be int, not bool"),
        ((1, 2), TypeError, r"device\(\): argument 'type' must be str"),
    ],
)
def test_refused(arguments, error, words) -> None:
    with pytest.raises(error, match=words):
        torch.device(*arguments)


def test_equality_and_identity() -> None:
    assert torch.device("cuda") != torch.device("cuda:0") and torch.device("cpu") != torch.device("cpu:0")
    assert torch.device("cuda:1") == torch.device("cuda", 1) == torch.device(1)
    assert torch.device("cuda:1") != "cuda:1" and torch.device("cpu") != None  # noqa: E711
    given = torch.device("cuda:3")
    assert torch.device(given) is given and len({given, torch.device(3), torch.device("cuda", 3)}) == 1
    assert isinstance(given, torch.device)


def test_a_device_of_a_device_cannot_be_given_an_index() -> None:
    with pytest.raises(TypeError, match=r"device\(\): argument 'type'"):
        torch.device(torch.device("cuda"), 1)


def test_resolve() -> None:
    assert devices.resolve(None) is devices.cpu and devices.resolve("cpu:3") is devices.cpu
    assert devices.resolve("cuda:2") is devices.cuda(2) and devices.resolve(2) is devices.cuda(2)
    assert devices.resolve("cuda") is devices.cuda(devices.current_index())


def test_contexts_nest_and_come_back_after_an_error() -> None:
    one, two = torch.device("cuda:1"), torch.device("cuda:2")
    with one as entered:
        assert entered is one and torch.get_default_device() == one
        with two, one:
            assert torch.get_default_device() == one
        assert torch.get_default_device() == one
        with pytest.raises(ZeroDivisionError), torch.device("cpu"):
            1 / 0  # noqa: B018
        assert torch.get_default_device() == one
    assert torch.get_default_device() == torch.device("cpu")


def test_default_device_and_contexts() -> None:
    try:
        torch.set_default_device("cuda:1")
        assert torch.get_default_device() == torch.device("cuda:1")
        with torch.device("cpu"):
            assert torch.zeros(1).device.type == "cpu"
        with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
            torch.set_default_device("gpu")
        assert torch.get_default_device() == torch.device("cuda:1")
    finally:
        torch.set_default_device(None)
    assert torch.get_default_device() == torch.device("cpu")


def test_threads_have_their_own_current_device_and_block() -> None:
    inside: list[object] = []
    shared = torch.device("cuda:1")
    ready, done = threading.Event(), threading.Event()

    def other() -> None:
        inside.append(torch.get_default_device())
        devices.set_current_index(2)
        with shared:
            ready.set()
            done.wait(10)
            inside.append(torch.get_default_device())
        inside.append((torch.get_default_device(), devices.current_index()))

    with torch.device("cuda:3"):
        thread = threading.Thread(target=other)
        thread.start()
        assert ready.wait(10)
        # the same object is entered and left here while the other thread is inside it
        with shared:
            assert torch.get_default_device() == shared
        assert torch.get_default_device() == torch.device("cuda:3")
        done.set()
        thread.join()
    assert inside == [torch.device("cpu"), shared, (torch.device("cpu"), 2)]
    assert devices.current_index() == 0 and torch.get_default_device() == torch.device("cpu")


def test_current_device_of_the_simulator() -> None:
    pytest.importorskip("triton")
    with torch.cuda.simulate(devices=3):
        with torch.cuda.device(1):
            assert str(torch.empty(1, device="cuda").device) == "cuda:1"
            with torch.cuda.device(2):
                assert str(torch.empty(1, device=torch.device("cuda")).device) == "cuda:2"
            with torch.device("cuda"):
                assert str(torch.empty(1).device) == "cuda:1"
        assert torch.cuda.current_device() == 0
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            torch.empty(1, device="cuda:3")


@pytest.mark.usefixtures("no_device")
def test_cuda_where_there_is_none() -> None:
    with pytest.raises((RuntimeError, AssertionError), match="TRITENSOR_SIMULATE_CUDA"):
        torch.zeros(1, device="cuda")


def test_threads_that_ask_for_a_device_at_once_get_one_object_each_of_its_own_ordinal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = devices.device

    def slow(kind: str, index: int) -> Any:
        time.sleep(0.01)  # in which another thread would find the list as short
        return made(kind, index)

    monkeypatch.setattr(devices, "_cuda", [])
    monkeypatch.setattr(devices, "device", slow)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(devices.cuda, [3] * 8))
    assert len({id(device) for device in found}) == 1
    assert [devices.cuda(index).index for index in range(4)] == [0, 1, 2, 3]
    assert len(devices._cuda) == 4


def test_modules_of_devices() -> None:
    assert torch.get_device_module("cuda:1") is torch.cuda and torch.get_device_module(torch.device("cpu")) is torch.cpu
    assert torch.get_device_module() is (torch.cuda if torch.cuda.is_available() else torch.cpu)
    with pytest.raises(RuntimeError, match="Device 'meta' does not have a corresponding module registered"):
        torch.get_device_module("meta")
    with pytest.raises(RuntimeError, match="Invalid value of device '1', expect"):
        torch.get_device_module(1)  # type: ignore[arg-type]


def test_the_cpu_by_the_names_of_other_devices() -> None:
    assert torch.cpu.is_available() and torch.cpu.is_initialized() and torch.cpu.device_count() == 1
    torch.cpu.set_device(torch.cpu.current_device())
    torch.cpu.synchronize()
    stream, event = torch.cpu.current_stream("cpu"), torch.cpu.Event()
    with torch.cpu.stream(stream), torch.cpu.StreamContext(stream):
        stream.wait_stream(torch.cpu.Stream())
        stream.record_event()
        stream.wait_event(event)
    event.record(stream)
    event.wait()
    event.synchronize()
    assert event.query()
