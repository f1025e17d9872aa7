"""Programs on the driver of real devices, run by `test_cuda.py` on the libcuda that a C compiler makes.

There the devices' memory is the host's, so a program can look at it, and with STUB_LATE work waits until it has to run.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import sys
import traceback
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, drivers
from tritensor.errors import DeviceError, ExchangeError

from . import capsules
from .capsules import Producer, name_of, read

PROGRAMS: dict[str, Callable[[], object]] = {}


def program(function: Callable[[], object]) -> Callable[[], object]:
    """A program that asserts what it finds."""
    return PROGRAMS.setdefault(function.__name__, function)


@contextmanager
def late() -> Any:
    """A block in which a stream's work runs when it is waited for, and not before."""
    cuda.synchronize()
    os.environ["STUB_LATE"] = "1"
    _environment(b"STUB_LATE", b"1", 1)
    try:
        yield
    finally:
        cuda.synchronize()
        del os.environ["STUB_LATE"]


_environment = ctypes.CDLL(None).setenv


def at(address: int, count: int, kind: Any = np.float32) -> np.ndarray:
    """What is at an address now."""
    return np.frombuffer((ctypes.c_uint8 * (count * np.dtype(kind).itemsize)).from_address(address), kind)


def refused(words: str, error: type[Exception], call: Callable[[], object]) -> None:
    with pytest.raises(error, match=re.escape(words)):
        call()


class Array:
    """Another library's array."""

    def __init__(self, facts: dict[str, Any], keeper: Any = None) -> None:
        self.__cuda_array_interface__, self.keeper = facts, keeper


def interface(x: Any, **changed: Any) -> Any:
    """Another library's array over a tensor's memory."""
    return Array({**x.__cuda_array_interface__, **changed}, x)


# ---- out ------------------------------------------------------------------------------------------------------------


@program
def capsules_of_a_device() -> None:
    x = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
    assert x.__dlpack_device__() == (2, 0)
    for each in (x, x.t(), x[1:, ::2], x[0].expand(2, 4), x.to(torch.bfloat16), x[:0], x.sum(), x > 3):
        for version in (None, (1, 0)):
            capsule = each.__dlpack__(max_version=version)
            assert name_of(capsule) == ("dltensor" if version is None else "dltensor_versioned")
            found = read(capsule).tensor
            assert (found.device_type, found.device_id, found.bits) == (2, 0, 8 * each.itemsize)
            assert found.data == each.data_ptr() or not each.numel()
            assert tuple(found.shape[: each.ndim]) == tuple(each.shape)
    assert at(read(x[1].__dlpack__()).tensor.data, 4).tolist() == [4.0, 5.0, 6.0, 7.0]
    copied = read(x.__dlpack__(max_version=(1, 0), copy=True))
    assert copied.flags == 2 and copied.tensor.device_type == 2 and copied.tensor.data != x.data_ptr()
    refused("can't export to the DLPack device", ExchangeError, lambda: x.__dlpack__(dl_device=(7, 0)))


@program
def capsules_of_another_device() -> None:
    x = torch.ones(3, device="cuda:1")
    assert x.__dlpack_device__() == (2, 1)
    found = read(x.__dlpack__(max_version=(1, 0))).tensor
    assert (found.device_type, found.device_id, found.data) == (2, 1, x.data_ptr())
    moved = read(x.__dlpack__(max_version=(1, 0), dl_device=(2, 0)))
    assert (moved.tensor.device_id, moved.flags) == (0, 2)
    here = torch.from_dlpack(x, device="cuda:0")
    assert here.device == torch.device("cuda:0") and here.tolist() == [1.0] * 3
    y = torch.from_dlpack(x.__dlpack__())
    assert y.device == x.device and y.data_ptr() == x.data_ptr()
    assert torch.as_tensor(interface(x)).device == x.device


@program
def a_device_copies_to_the_cpu() -> None:
    x = torch.arange(6.0, device="cuda")
    managed = read(x.__dlpack__(max_version=(1, 0), dl_device=(1, 0)))
    assert (managed.flags, managed.tensor.device_type) == (2, 1)
    array = np.from_dlpack(x, device="cpu")
    assert array.tolist() == x.tolist() and array.ctypes.data != x.data_ptr()
    refused("without copying", ValueError, lambda: x.__dlpack__(dl_device=(1, 0), copy=False))
    refused("device", Exception, lambda: np.from_dlpack(x))
    y = torch.ones(2)
    managed = read(y.__dlpack__(max_version=(1, 0), dl_device=(2, 0)))
    assert (managed.flags, managed.tensor.device_type) == (2, 2) and at(managed.tensor.data, 2).tolist() == [1.0] * 2


@program
def the_interface_of_a_tensor() -> None:
    x = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
    facts = x.__cuda_array_interface__
    assert facts["version"] == 3 and facts["strides"] is None and facts["shape"] == (3, 4)
    assert facts["data"] == (x.data_ptr(), False) and facts["typestr"] == "<f4"
    assert facts["stream"] == cuda.current_stream().cuda_stream > 2
    side = cuda.Stream()
    with cuda.stream(side):
        assert x.__cuda_array_interface__["stream"] == side.cuda_stream
    assert x.t().__cuda_array_interface__["strides"] == (4, 16)
    assert x[:0].__cuda_array_interface__["data"] == (0, False)
    assert x.bfloat16().__cuda_array_interface__["typestr"] == "<V2"
    assert not hasattr(torch.ones(2), "__cuda_array_interface__")
    needy = torch.ones(2, device="cuda", requires_grad=True)
    refused("on Variable that requires grad", RuntimeError, lambda: needy.__cuda_array_interface__)
    refused("Can't export tensors that require gradient", BufferError, needy.__dlpack__)


# ---- in -------------------------------------------------------------------------------------------------------------


@program
def dlpack_both_ways_shares_memory() -> None:
    x = torch.zeros(3, 4, device="cuda")
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.uint16):
        for each in (x.to(dtype), x.to(dtype).t(), x.to(dtype)[1:, 1:3], x.to(dtype)[0, 0], x.to(dtype)[:0]):
            y = torch.from_dlpack(each.__dlpack__(max_version=(1, 0)))
            assert (y.dtype, y.shape, y.device) == (each.dtype, each.shape, each.device)
            if each.numel():
                assert (y.stride(), y.data_ptr()) == (each.stride(), each.data_ptr())
                y.fill_(1)
                assert bool(each.bool().all())
    y = torch.from_dlpack(Producer(x.data_ptr(), (3, 4), device=(2, 0), keeper=x))
    y[1, 2] = 5
    assert x[1, 2] == 5
    x.requires_grad_()
    weight = torch.from_dlpack(x.detach().__dlpack__()).requires_grad_()
    (weight * 3).sum().backward()
    assert weight.grad.tolist() == [[3.0] * 4] * 3 and bool((weight + 1 == x + 1).all())
    managed = Producer(x.data_ptr(), (3, 4), device=(13, 0), keeper=x)
    assert torch.from_dlpack(managed).is_cuda


@program
def cuda_arrays_become_tensors() -> None:
    x = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
    for version in (2, 3):
        for each in (x, x.t(), x[1:, ::2], x.bfloat16(), x[0, 0], x[:0]):
            for make in (torch.as_tensor, torch.asarray):
                y = make(interface(each, version=version))
                assert (y.dtype, y.shape, y.tolist()) == (each.dtype, each.shape, each.tolist())
                assert y.data_ptr() == each.data_ptr() or not each.numel()
            y = torch.tensor(interface(each, version=version))
            assert y.data_ptr() != each.data_ptr() and y.tolist() == each.tolist()
    y = torch.as_tensor(interface(x), dtype=torch.int64)
    assert y.dtype is torch.int64 and y.is_cuda
    assert torch.as_tensor(interface(x), device="cpu").device.type == "cpu"
    torch.as_tensor(interface(x))[0, 0] = 7
    assert x[0, 0] == 7
    locked = torch.as_tensor(interface(x, data=(x.data_ptr(), True)))
    assert locked.tolist() == x.tolist() and locked.data_ptr() != x.data_ptr()
    optional = interface(x)
    for name in ("strides", "stream"):
        del optional.__cuda_array_interface__[name]
    assert torch.as_tensor(optional).tolist() == x.tolist()


@program
def cuda_arrays_are_refused() -> None:
    x = torch.zeros(3, 4, device="cuda")
    for words, changed in (
        ("without a mask", {"mask": interface(x)}),
        ("versions 2 and 3", {"version": 1}),
        ("versions 2 and 3", {"version": 4}),
        ("elements of a dtype", {"typestr": "<M8"}),
        ("elements of a dtype", {"typestr": ">f4"}),
        ("unsupported stream on CUDA", {"stream": 0}),
        ("unsupported stream on CUDA", {"stream": "1"}),
        ("a stride is negative", {"strides": (-16, 4)}),
        ("not aligned", {"strides": (16, 3)}),
        ("not aligned", {"data": (x.data_ptr() + 2, False)}),
        ("no tensor can have its shape", {"strides": (4,)}),
        ("no tensor can have its shape", {"shape": (-1, 4)}),
        ("there is no memory", {"data": (0, False)}),
        ("TypeError", {"data": None}),
        ("ValueError", {"data": ("a", False)}),
        ("versions 2 and 3", {"shape": None}),
        ("ValueError", {"shape": ("a",)}),
    ):
        refused(words, ExchangeError, lambda changed=changed: torch.as_tensor(interface(x, **changed)))  # type: ignore[misc]
    refused("KeyError", ExchangeError, lambda: torch.as_tensor(Array({})))
    refused("invalid argument", DeviceError, lambda: torch.as_tensor(interface(x, data=(1 << 40, False))))


@program
def what_is_not_for_this_device_is_refused() -> None:
    x = torch.zeros(6, device="cuda")
    for words, fields in (
        ("invalid device ordinal", {"device": (2, 7)}),
        ("not aligned", {"address": x.data_ptr() + 2}),
        ("device is of type 10", {"device": (10, 0)}),
        ("a stride is negative", {"strides": (-1,)}),
    ):
        producer = Producer(**{"address": x.data_ptr(), "shape": (6,), "device": (2, 0), "keeper": x, **fields})  # type: ignore[arg-type]
        refused(words, RuntimeError if "ordinal" in words else ExchangeError, lambda p=producer: torch.from_dlpack(p))  # type: ignore[misc]
    capsules.alive.clear()
    facts = Array({"version": 3, "shape": (1,), "typestr": "<f4", "data": (8, False)})
    with cuda.simulate():
        refused("the device is simulated", ExchangeError, lambda: torch.from_dlpack(Producer(8, (1,), device=(2, 0))))
        refused("the device is simulated", ExchangeError, lambda: torch.as_tensor(facts))
        there = torch.ones(2, device="cuda")
    refused("the device is simulated", ExchangeError, there.__dlpack__)


@program
def read_only_memory_on_a_device_is_copied() -> None:
    x = torch.ones(6, device="cuda")
    locked = Producer(x.data_ptr(), (6,), device=(2, 0), version=(1, 0), flags=1, keeper=x)
    y = torch.from_dlpack(locked)
    y.zero_()
    assert x.tolist() == [1.0] * 6
    refused("must not be written without copying", ExchangeError, lambda: torch.from_dlpack(locked, copy=False))
    gc.collect()
    assert len(locked.deleted) == 2


# ---- streams --------------------------------------------------------------------------------------------------------


@program
def the_consumers_stream_waits() -> None:
    """Work of ours is late; what the other library's stream does next comes after it, and other streams do not wait."""
    for stream, waits in ((None, True), (1, True), (2, True), (-1, False)):
        x = torch.zeros(4, device="cuda")
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with late(), cuda.stream(side):
            x.fill_(5)
            address = read(x.__dlpack__(stream=stream)).tensor.data
            assert (at(address, 4).tolist() == [5.0] * 4) is waits, (stream, at(address, 4))
    x, side, other = torch.zeros(4, device="cuda"), cuda.Stream(), cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with late():
        with cuda.stream(side):
            x.fill_(3)
            x.__dlpack__(stream=side.cuda_stream)  # the same: nothing to wait for
            assert not at(x.data_ptr(), 4).any()
            x.__dlpack__(stream=other.cuda_stream)
        assert not at(x.data_ptr(), 4).any()  # the host has not waited
        other.synchronize()
        assert at(x.data_ptr(), 4).tolist() == [3.0] * 4
    for stream in (0, -2):
        refused("unsupported stream on CUDA", BufferError, lambda stream=stream: x.__dlpack__(stream=stream))  # type: ignore[misc]


@program
def a_producer_is_told_our_stream() -> None:
    x, side = torch.zeros(4, device="cuda"), cuda.Stream()
    producer = Producer(x.data_ptr(), (4,), device=(2, 0), keeper=x)
    torch.from_dlpack(producer)
    with cuda.stream(side):
        torch.from_dlpack(producer)
        torch.from_dlpack(producer, device="cuda", copy=False)
    ours = cuda.current_stream().cuda_stream
    assert [asked["stream"] for asked in producer.asked] == [ours, side.cuda_stream, side.cuda_stream]
    assert torch.from_dlpack(producer, device="cpu").tolist() == [0.0] * 4  # it ignores dl_device: it is copied here
    assert producer.asked[-1] == {"dl_device": (1, 0), "max_version": (1, 0)}


@program
def the_stream_of_a_cuda_array_is_waited_for() -> None:
    x, theirs = torch.zeros(4, device="cuda"), cuda.Stream()
    theirs.wait_stream(cuda.current_stream())
    with late():
        with cuda.stream(theirs):
            x.fill_(5)
            other = interface(x)
        y = torch.as_tensor(other)
        assert not at(x.data_ptr(), 4).any()
        assert (y + 0).tolist() == [5.0] * 4
    for stream in (1, 2):
        assert torch.as_tensor(interface(x, stream=stream)).tolist() == [5.0] * 4


@program
def a_capture_refuses_to_wait() -> None:
    x = torch.zeros(4, device="cuda")
    (x + 1).sum()
    graph = cuda.CUDAGraph()
    refused("operation not permitted when stream is capturing", RuntimeError, lambda: captured(graph, x.__dlpack__))
    y = torch.from_dlpack(x.__dlpack__())
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        z = y + 1
    del y  # the graph uses its memory at each replay
    x.fill_(4)
    graph.replay()
    assert z.tolist() == [5.0] * 4


def captured(graph: Any, call: Callable[[], object]) -> None:
    with cuda.graph(graph):
        call()


# ---- lifetimes ------------------------------------------------------------------------------------------------------


@program
def either_side_may_go_first() -> None:
    x = torch.ones(1 << 16, device="cuda")
    before = cuda.memory_allocated()
    capsule = x.__dlpack__()
    y = torch.from_dlpack(capsule)
    address = x.data_ptr()
    del x, capsule
    gc.collect()
    assert cuda.memory_allocated() == before and y.data_ptr() == address and y.sum() == 1 << 16
    view = y[5:]
    del y
    gc.collect()
    assert cuda.memory_allocated() >= before and view[0] == 1
    del view
    gc.collect()
    assert cuda.memory_allocated() < before

    x = torch.ones(8, device="cuda")
    before, unused = cuda.memory_allocated(), x.__dlpack__(max_version=(1, 0))
    del x
    gc.collect()
    assert cuda.memory_allocated() == before
    del unused
    gc.collect()
    assert cuda.memory_allocated() < before


@program
def owners_stay_until_the_work_is_done() -> None:
    x, out, side = torch.ones(4, device="cuda"), torch.zeros(4, device="cuda"), cuda.Stream()
    (out + x).sum()
    side.wait_stream(cuda.current_stream())
    for stream in (cuda.current_stream(), side):
        owner = interface(x)
        gone = weakref.ref(owner)
        with late():
            with cuda.stream(stream):
                y = torch.as_tensor(owner)
                out.add_(y)
            del owner, y
            gc.collect()
            assert gone() is not None  # the kernel has yet to read its memory
            stream.synchronize()
            drivers.require().pinned.finish_copies()
            gc.collect()
            assert gone() is None
    producer = Producer(x.data_ptr(), (4,), device=(2, 0), keeper=x)
    y = torch.from_dlpack(producer)
    del y
    gc.collect()
    assert len(producer.deleted) == 1


@program
def memory_used_by_another_stream_too() -> None:
    x, side = torch.ones(4, device="cuda"), cuda.Stream()
    owner = interface(x)
    gone = weakref.ref(owner)
    y = torch.as_tensor(owner)
    (y + 1).sum()
    with late():
        with cuda.stream(side):
            side.wait_stream(cuda.default_stream())
            y.record_stream(side)
            y.add_(1)
        del owner, y
        gc.collect()
        cuda.default_stream().synchronize()
        drivers.require().pinned.finish_copies()
        assert gone() is not None
        side.synchronize()
        drivers.require().pinned.finish_copies()
        gc.collect()
        assert gone() is None
    assert x.tolist() == [2.0] * 4


@program
def owners_go_with_a_device_that_is_lost() -> None:
    owner = interface(torch.ones(4, device="cuda"))
    gone, y, driver = weakref.ref(owner), torch.as_tensor(owner), drivers.require()

    def lost(queue: Any) -> None:
        raise DeviceError("the device is lost")

    driver.mark_behind = lost  # type: ignore[method-assign]
    try:
        del owner, y
        gc.collect()
        assert gone() is None
    finally:
        del driver.mark_behind


@program
def many_exchanges_leave_nothing() -> None:
    x = torch.ones(256, device="cuda")

    def rounds(count: int) -> tuple[int, int]:
        for _ in range(count):
            y = torch.from_dlpack(x.__dlpack__(max_version=(1, 0)))
            torch.as_tensor(interface(y))
            x.__dlpack__()
        del y
        gc.collect()
        cuda.synchronize()
        return len(gc.get_objects()), cuda.memory_allocated()

    (objects, allocated), (after, later) = rounds(30), rounds(300)
    assert allocated == later and abs(after - objects) < 20, (objects, after)
    assert not capsules.alive


@program
def facts_are_forgotten_of_what_others_write() -> None:
    """The bounds of indices that came from the host are known, and not any more when another library has the memory."""
    table = torch.arange(3.0, device="cuda")
    for export in (lambda x: x.__dlpack__(), lambda x: x.__cuda_array_interface__):
        positions = torch.tensor([0, 1, 2], device="cuda")
        assert table[positions].tolist() == [0.0, 1.0, 2.0]
        other = export(positions)
        at(positions.data_ptr(), 3, np.int64)[1] = 99
        refused("out of", Exception, lambda x=positions: (table[x], cuda.synchronize()))  # type: ignore[misc]
        del other
    taken = torch.as_tensor(interface(torch.tensor([0, 1, 2], device="cuda")))
    assert table[taken].tolist() == [0.0, 1.0, 2.0]
    at(taken.data_ptr(), 3, np.int64)[2] = -99
    refused("out of", Exception, lambda: (table[taken], cuda.synchronize()))


# ---------------------------------------------------------------------------------------------------------------------

if __name__ == "__main__":
    found = {}
    for name, function in PROGRAMS.items():
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            try:
                found[name] = str(function())
            except BaseException:
                found[name] = traceback.format_exc()
            capsules.alive.clear()
    print(json.dumps(found))
