"""The names of tritensor.cuda, without a device and with simulated ones."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda
from tritensor import settings as options
from tritensor.drivers import selection
from tritensor.errors import DeviceError, OutOfMemoryError
from tritensor.memory import buffer, copies
from tritensor.types import devices

CUDA0, CUDA1 = devices.cuda(0), devices.cuda(1)
F32 = np.dtype(np.float32)


@pytest.fixture
def two():
    with cuda.simulate(devices=2, memory="1GiB") as driver:
        yield driver


# -- without a device


def test_questions_that_make_sense_without_a_device_are_answered(no_device):
    assert not cuda.is_available()
    assert cuda.device_count() == 0
    for count in (cuda.memory_allocated, cuda.max_memory_allocated, cuda.memory_reserved, cuda.max_memory_reserved):
        assert count() == 0
    assert cuda.memory_stats() == {}
    cuda.reset_peak_memory_stats()
    cuda.empty_cache()
    cuda.set_device(-1)
    cuda.set_stream(None)
    with cuda.stream(None) as nothing:
        assert nothing is None


@pytest.mark.parametrize(
    "ask",
    [
        cuda.current_device,
        cuda.synchronize,
        cuda.get_device_name,
        cuda.get_device_capability,
        cuda.Stream,
        cuda.get_device_properties,
        cuda.current_stream,
        cuda.default_stream,
        cuda.mem_get_info,
        cuda.memory_summary,
        lambda: cuda.set_device(0),
        lambda: cuda.Event().record(),
        lambda: buffer.empty((2,), F32, CUDA0),
        lambda: cuda.device(0).__enter__(),
    ],
)
def test_all_others_say_what_is_missing(no_device, ask):
    with pytest.raises(RuntimeError) as error:
        ask()
    text = str(error.value)
    assert text.startswith("Found no NVIDIA driver on your system.")
    assert "no library" in text
    assert "TRITENSOR_SIMULATE_CUDA=1" in text
    assert "pip install" not in text


def test_a_missing_package_is_named_with_the_command_that_installs_it(no_device, monkeypatch):
    monkeypatch.setattr(
        selection, "_missing", ["No CUDA device can be used.", "the cuda-core package cannot be imported"]
    )
    with pytest.raises(DeviceError) as error:
        cuda.current_device()
    assert str(error.value).startswith("No CUDA device can be used.")
    assert 'pip install "tritensor[cuda]"' in str(error.value)
    assert "TRITENSOR_SIMULATE_CUDA=1" in str(error.value)


# -- devices


def test_devices_are_described(two):
    assert cuda.is_available()
    assert cuda.device_count() == 2
    assert "Simulated" in cuda.get_device_name()
    assert cuda.get_device_name("cuda:1") == cuda.get_device_name(1) == cuda.get_device_name(CUDA1)
    assert cuda.get_device_capability() == (9, 0)
    assert cuda.get_device_properties(1).total_memory == 1 << 30
    assert cuda.is_bf16_supported()
    with cuda.simulate(capability=(7, 5)):
        assert not cuda.is_bf16_supported()


def test_the_current_device_is_set_for_good_or_for_a_block(two):
    assert cuda.current_device() == 0
    with cuda.device(1) as place:
        assert cuda.current_device() == 1
        assert cuda.current_stream().device is CUDA1
        with place, cuda.device("cuda:0"):
            assert cuda.current_device() == 0
        assert cuda.current_device() == 1
    assert cuda.current_device() == 0
    for nothing in (None, -1):
        with cuda.device(nothing):
            assert cuda.current_device() == 0
    cuda.set_device(CUDA1)
    assert cuda.current_device() == 1
    cuda.set_device(-1)
    assert cuda.current_device() == 1


def test_the_current_device_belongs_to_its_thread(two):
    cuda.set_device(1)
    found = []

    def other():
        with two.share():
            found.append(cuda.current_device())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert found == [0]


@pytest.mark.parametrize(
    "ask",
    [
        cuda.set_device,
        cuda.synchronize,
        cuda.get_device_name,
        cuda.get_device_properties,
        cuda.current_stream,
        cuda.default_stream,
        cuda.mem_get_info,
        cuda.memory_allocated,
        cuda.Stream,
        lambda index: cuda.device(index).__enter__(),
    ],
)
def test_a_device_that_is_not_there_is_refused_everywhere(two, ask):
    with pytest.raises(RuntimeError, match=r"^CUDA error: invalid device ordinal"):
        ask(2)
    assert cuda.current_device() == 0
    with pytest.raises(DeviceError, match="Expected a cuda device, but got: cpu"):
        ask("cpu")


# -- streams


def test_a_stream_is_current_in_its_block_on_its_device(two):
    side = cuda.Stream(1)
    with cuda.stream(side):
        assert cuda.current_device() == 1
        assert cuda.current_stream() is side
        assert cuda.current_stream(0) is cuda.default_stream(0)
        with pytest.raises(KeyError), cuda.stream(cuda.Stream(1)):
            raise KeyError
        assert cuda.current_stream() is side
    assert cuda.current_device() == 0
    assert cuda.current_stream(1) is cuda.default_stream(1)
    cuda.set_stream(side)
    assert cuda.current_stream(1) is side


def test_synchronize_waits_for_one_device(two):
    with options.simulate_late(True):
        ran = []
        for index in (0, 1):
            two.submit(cuda.Stream(index), lambda index=index: ran.append(index))
        cuda.synchronize(1)
        assert ran == [1]
        cuda.synchronize()
        assert ran == [1, 0]


# -- memory


def test_memory_is_counted(two):
    assert cuda.memory_allocated() == 0
    array = buffer.empty((1000,), F32, CUDA0)
    assert cuda.memory_allocated() == cuda.memory_reserved() == 4096
    assert cuda.memory_allocated("cuda:1") == 0
    assert cuda.mem_get_info() == ((1 << 30) - 4096, 1 << 30)
    assert "live: 3.91 KiB, float32[1000]" in cuda.memory_summary()
    assert cuda.memory_stats()["live_buffers"] == 1
    del array
    assert cuda.memory_allocated() == 0
    assert cuda.max_memory_allocated() == cuda.max_memory_reserved() == cuda.memory_reserved() == 4096
    cuda.empty_cache()
    assert cuda.memory_reserved() == 0
    assert cuda.max_memory_reserved() == 4096
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == cuda.max_memory_reserved() == 0


def test_the_out_of_memory_error_is_found_where_pytorch_has_it():
    with cuda.simulate(memory="1MB"), pytest.raises(cuda.OutOfMemoryError, match=r"^CUDA out of memory"):
        buffer.empty((1 << 20,), F32, CUDA0)
    assert cuda.OutOfMemoryError is OutOfMemoryError


def test_a_process_may_be_held_to_a_part_of_the_memory() -> None:
    with cuda.simulate(devices=2, memory="1MB"):
        assert cuda.get_per_process_memory_fraction() == 1.0
        cuda.set_per_process_memory_fraction(0.25, 1)
        assert (cuda.get_per_process_memory_fraction(0), cuda.get_per_process_memory_fraction("cuda:1")) == (1.0, 0.25)
        for _ in range(8):  # what is cached makes room first
            for size in (150_000, 200_000):
                torch.empty(size, dtype=torch.uint8, device="cuda:1")
        held = torch.empty(200_000, dtype=torch.uint8, device="cuda:1")
        with pytest.raises(OutOfMemoryError, match=r"(?s)Tried to allocate 97.66 KiB.*may hold 244.14 KiB"):
            torch.empty(100_000, dtype=torch.uint8, device="cuda:1")
        assert torch.empty(900_000, dtype=torch.uint8, device="cuda:0").numel() > held.numel()
        cuda.set_per_process_memory_fraction(1.0, 1)
        assert torch.empty(700_000, dtype=torch.uint8, device="cuda:1").numel() == 700_000
        for wrong, kind in ((1, TypeError), (1.5, ValueError), (-0.1, ValueError)):
            with pytest.raises(kind, match="Invalid"):
                cuda.set_per_process_memory_fraction(wrong)


# -- the ledger


@pytest.mark.parametrize("late", [False, True])
def test_every_copy_and_wait_is_in_the_ledger(two, late):
    host = np.ones(10, np.float32)
    with options.simulate_late(late), cuda.transfers() as outer:
        array = copies.from_host(host, CUDA0)
        with cuda.transfers() as t:
            copies.from_host(copies.pin(host), CUDA0)
            copies.to_host(array)
            pending = copies.to_host(array, non_blocking=True)
            pending.wait()
            pending.wait()
            copies.copy_across(array, CUDA1)
            cuda.synchronize()
            cuda.current_stream().synchronize()
            cuda.current_stream().record_event().synchronize()
    kinds = [entry.kind for entry in t.entries]
    assert kinds == ["h2d", "d2h", "sync", "d2h", "sync", "d2d", "sync", "sync", "sync"]
    assert len(outer.entries) == len(t.entries) + 1
    assert t.nbytes("d2h") == 80
    assert t.count("h2d") == 1
    assert t.entries[0].pinned
    assert not outer.entries[0].pinned
    assert all("test_cuda.py:" in entry.site for entry in t.entries)
    assert str(t).startswith("h2d 40 bytes (pinned) at ")
    t.assert_at_most(h2d=1, d2h=2, d2d=1, syncs=5)
    with pytest.raises(AssertionError, match=r"expected at most 1 d2h, found 2:\n  d2h 40 bytes at .*test_cuda.py:"):
        t.assert_at_most(h2d=1, d2h=1)
    with pytest.raises(AssertionError, match=r"expected at most 0 sync"):
        t.assert_at_most(syncs=0)


def test_a_large_pinned_source_is_read_while_the_host_waits(two):
    host = copies.pin(np.ones(1 << 19, np.float32))
    with cuda.transfers() as t:
        copies.from_host(host, CUDA0)
        copies.from_host(host, CUDA0, non_blocking=True)
    assert [entry.kind for entry in t.entries] == ["h2d", "sync", "h2d"]


def test_a_closed_ledger_takes_no_more_entries(two):
    with cuda.transfers() as t:
        pass
    copies.from_host(np.ones(2, np.float32), CUDA0)
    assert t.entries == []
    assert str(t) == ""
