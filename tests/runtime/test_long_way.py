"""When a call has to go the long way, and what streams, devices, threads and failures have to do with it."""

from __future__ import annotations

import gc
import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.errors import DeviceError
from tritensor.operators import registry
from tritensor.runtime import replay
from tritensor.tensors import wrap

from ..needs import HAS_TRITON
from .interpreted_device import Interpreted, interpreted_device
from .repeated_calls import results, tensor

if not HAS_TRITON:
    pytest.skip("running kernels needs Triton", allow_module_level=True)


# ---- when it has to be the long way ---------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [settings.check(True), settings.debug(1), settings.debug(2)])
def test_checked_and_debug_mode_see_every_launch(gpu: Interpreted, long_ways: list[str], setting: Any) -> None:
    x = tensor(1.0, 2.0)
    for _ in range(2):
        assert results(x + x) == [[2, 4]]
    assert long_ways == ["add"]
    with setting:
        for _ in range(2):
            assert results(x + x, x.sum()) == [[2, 4], 3]
    assert long_ways[1:] == ["add", "sum"] * 2
    for _ in range(2):
        assert results(x + x) == [[2, 4]]
    assert long_ways[5:] == ["add"]


def test_what_launches_depend_on_is_prepared_anew_when_it_changes(gpu: Interpreted, long_ways: list[str]) -> None:
    x, y = tensor(1, 2, dtype=torch.int64), torch.ones(32, 32, device="cuda")
    for _ in range(2):
        assert x.exp().dtype is torch.float32
        y @ y
    torch.set_default_dtype(torch.float64)
    try:
        assert x.exp().dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert long_ways == ["exp", "matmul", "exp"]
    y @ y
    before = gpu.launches[-1]
    torch.set_float32_matmul_precision("medium")
    try:
        long_ways.clear()
        y @ y
        assert long_ways == ["matmul"]
    finally:
        torch.set_float32_matmul_precision("highest")
    assert before[0] == gpu.launches[-1][0]


def test_a_simulation_beside_the_device_does_not_meet_its_replays(gpu: Interpreted) -> None:
    x = tensor(1.0, 2.0)
    assert results(x + x, x + x) == [[2, 4]] * 2
    with torch.cuda.simulate():
        y = tensor(3.0, 4.0)
        assert results(y + y, y.sum()) == [[6, 8], 7]


def test_operators_that_look_into_memory_are_not_repeated(gpu: Interpreted) -> None:
    x = torch.arange(5.0, device="cuda")
    for places in ([1, 2], [3, 4], [0, 0]):
        assert x[torch.tensor(places, device="cuda")].tolist() == places
    with pytest.raises(IndexError):
        x[torch.tensor([1, 9], device="cuda")]
    torch.manual_seed(0)
    first, second = torch.rand(4, device="cuda"), torch.rand(4, device="cuda")
    assert first.tolist() != second.tolist()


def test_launches_on_memory_of_unknown_origin_are_not_repeated(
    gpu: Interpreted, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tensor(5.0, 6.0)
    operator = registry["maximum"]
    launch = type(operator).launch

    def with_its_own(self: Any, call: Any) -> None:
        if self is operator:
            call.arrays = [call.arrays[0], kept._data]
        launch(self, call)

    monkeypatch.setattr(type(operator), "launch", with_its_own)
    for i in (4.0, 7.0, 5.5):
        assert operator(tensor(i, i), tensor(9.0, 9.0)).tolist() == [max(i, 5.0), max(i, 6.0)]
    assert list(operator.replays.values()) == [None]


def test_operators_within_a_launch_are_part_of_its_recording(
    gpu: Interpreted, long_ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = registry["maximum"]
    launch = type(operator).launch
    x, y = tensor(1.0, 2.0), tensor(4.0, 6.0)
    assert results(x + y, x + y, y.exp().sum() * 0) == [[5, 8]] * 2 + [0]

    def of_the_sum(self: Any, call: Any) -> None:
        if self is operator:
            first, second = (wrap(array) for array in call.arrays)
            for _ in range(3):
                first = (first + second).sum(dim=0, keepdim=True) - second
            call.arrays = [first._data, call.arrays[1]]
        launch(self, call)

    monkeypatch.setattr(type(operator), "launch", of_the_sum)
    expected = []
    for i in (0.0, 1.0, 2.0):
        first, second = np.array([1.0 + i, 2.0]), np.array([4.0, 6.0])
        for _ in range(3):
            first = (first + second).sum() - second
        expected.append(np.maximum(first, second).tolist())
        long_ways.clear()
        assert operator(tensor(1.0 + i, 2.0), y).tolist() == expected[-1]
    assert long_ways == []
    run = operator.replays[x._data.form, y._data.form].run  # type: ignore[union-attr]
    assert sum(name.startswith("kernel") for name in inspect.getclosurevars(run).nonlocals) == 10


def test_arguments_that_cannot_be_keys_go_the_long_way(gpu: Interpreted, long_ways: list[str]) -> None:
    x = torch.ones(2, 3, device="cuda")
    for _ in range(2):
        with pytest.raises((TypeError, RuntimeError)):
            x.sum(dim=[[0]])
        assert (x + np.float32(1)).tolist() == [[2.0] * 3] * 2
        assert (x + torch.tensor(1.0)).tolist() == [[2.0] * 3] * 2
        assert registry["add"](x, other=x).tolist() == [[2.0] * 3] * 2
        assert registry["mul"](x, other=2.0).tolist() == [[2.0] * 3] * 2
    assert long_ways == ["add", "add", "add", "mul"] * 2


def test_combinations_do_not_pile_up(gpu: Interpreted, monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.memory import array
    from tritensor.runtime import trace as recording

    monkeypatch.setattr(recording, "_MOST", 3)
    monkeypatch.setattr(array, "_MOST_FORMS", 3)
    monkeypatch.setattr(array, "_forms", {})
    monkeypatch.setattr(array, "_new_forms", {})
    for size in [*range(1, 9), 1, 2]:
        x = torch.ones(size, device="cuda")
        assert (x[::2] + x[::2]).tolist() == [2.0] * ((size + 1) // 2)
        assert len(registry["add"].replays) <= 3
        assert len(array._forms) <= 4
        assert len(array._new_forms) <= 3


# ---- streams, devices, threads, failures ----------------------------------------------------------------------------


def test_memory_that_another_stream_made_is_not_given_out_too_early(gpu: Interpreted) -> None:
    side = torch.cuda.Stream()
    x = tensor(1.0, 2.0)
    assert results(x + x, x * 2, -x, x.softmax(0).sum()) == [[2, 4], [2, 4], [-1, -2], 1]
    with torch.cuda.stream(side):
        for call in (lambda x: x + x, lambda x: x * 2, lambda x: -x, lambda x: x.softmax(0)):
            x = tensor(1.0, 2.0)
            with torch.cuda.stream(torch.cuda.default_stream()):
                out = call(x)
            assert out._data.buffer.arena is torch.cuda.default_stream().arena
            assert x._data.buffer.users == [torch.cuda.default_stream().arena]


def test_each_device_has_its_own(gpu: Interpreted) -> None:
    for _ in range(2):
        for index in (0, 1):
            x = tensor(1.0, index, device=f"cuda:{index}")
            gpu.placed.clear()
            out = x + x
            assert (str(out.device), out.tolist()) == (f"cuda:{index}", [2.0, 2.0 * index])
            assert set(gpu.placed) == {index}
    with pytest.raises(RuntimeError, match="same device"):
        tensor(1.0, 2.0) + tensor(1.0, 2.0, device="cuda:1")


def test_other_threads_take_the_short_way_too(gpu: Interpreted, long_ways: list[str]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def work(i: float) -> list[Any]:
        with gpu.share():
            x = tensor(i, -i)
            return results(x + x, x * i, -x, x.sum())

    work(1.0)
    long_ways.clear()
    with ThreadPoolExecutor(4) as pool:
        for i, found in enumerate(pool.map(work, map(float, range(20)))):
            assert found == [[2 * i, -2 * i], [i * i, -i * i], [-i, i], 0]
    assert long_ways == []


def test_a_launch_that_fails_names_the_operator_and_keeps_no_memory(gpu: Interpreted) -> None:
    x = tensor(1.0, 2.0)
    assert results(x + x, x.sum()) == [[2, 4], 3]
    torch.cuda.synchronize()
    gc.collect()
    before = torch.cuda.memory_allocated()
    gpu.failure = RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
    for call in (lambda: x + x, lambda: x.sum()):
        with pytest.raises(DeviceError, match=r"(?s)illegal memory access.*at the launch of"):
            call()
    gpu.failure = None
    gc.collect()
    assert torch.cuda.memory_allocated() == before
    assert results(x + x) == [[2, 4]]


def test_every_way_says_what_it_has_launched(gpu: Interpreted) -> None:
    x, y = tensor(1.0, 2.0), tensor(3.0, 4.0)
    calls = (lambda: x + y, lambda: x.exp(), lambda: x * 2, lambda: y.sub_(x), lambda: x.softmax(0))
    names = ["add", "exp", "mul", "sub", "softmax"]
    for _ in range(2):
        gpu.launched.clear()
        for call in calls:
            call()
        found = [entry.name.split("_")[-1] for entry in gpu.launched]
        assert found == names
    gpu.failure = RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
    for call in calls:
        with pytest.raises(DeviceError, match=r"launched last, newest first: .*softmax, .*sub, .*mul, .*exp, .*add"):
            call()
    gpu.failure = None
    with settings.debug(1):
        x.exp()
    assert gpu.launched[-1].startswith("exp at ") and "test_long_way.py" in gpu.launched[-1]


def test_a_recording_that_fails_leaves_nothing_behind(gpu: Interpreted) -> None:
    x = tensor(1.0, 2.0)
    x.exp()
    gpu.failure = RuntimeError("CUDA_ERROR_UNKNOWN")
    with pytest.raises(DeviceError):
        x + x
    gpu.failure = None
    assert registry["add"].replays == {}
    assert results(x + x, x + x) == [[2, 4]] * 2


def test_memory_runs_out_on_the_short_way_as_on_the_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with interpreted_device() as driver:
        object.__setattr__(driver._properties, "total_memory", 64 << 10)
        x = torch.ones(1024, device="cuda")
        held = [x + x for _ in range(2)]
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"(?s)Tried to allocate 4.00 KiB.*live: 4.00 KiB"):
            held.extend(x + x for _ in range(100))
        count = len(held)
        del held[1:]
        again = [x + x for _ in range(count - 1)]
        assert again[-1].tolist() == [2.0] * 1024


def test_replays_wait_for_a_real_device(monkeypatch: pytest.MonkeyPatch, long_ways: list[str]) -> None:
    with torch.cuda.simulate():
        x = tensor(1.0, 2.0)
        for _ in range(3):
            assert results(x + x) == [[2, 4]]
        assert long_ways == ["add"] * 3
        assert registry["add"].replays == {}
    assert not replay.active.on


# ---- how long the short way is ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("needs", [False, True])
def test_from_add_to_the_launch_at_most_eight_functions_are_entered_and_none_twice(
    gpu: Interpreted, needs: bool
) -> None:
    x, y = (tensor(1.0, 2.0).requires_grad_(needs) for _ in range(2))
    assert results(x + y, x + y) == [[2, 4]] * 2
    entered: list[str] = []
    launching: list[Any] = []  # the test device's launch, which interprets the kernel

    def note(frame: Any, event: str, _: Any) -> None:
        if launching:
            if event == "return" and frame is launching[0]:
                launching.clear()
        elif event == "call":
            if Path(frame.f_code.co_filename).name == "interpreted_device.py":
                launching.append(frame)
            else:
                entered.append(f"{frame.f_code.co_filename}: {frame.f_code.co_qualname}")

    launched = len(gpu.launches)
    sys.setprofile(note)
    try:
        out = x + y
    finally:
        sys.setprofile(None)
    assert len(gpu.launches) == launched + 1
    assert out.requires_grad is needs
    assert 0 < len(entered) <= 8, entered
    assert len(set(entered)) == len(entered), entered
