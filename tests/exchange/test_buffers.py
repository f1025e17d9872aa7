"""Tensors for what reads buffers, arrays and `__array__`, and tensors over buffers."""

from __future__ import annotations

import array
import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import ExchangeError
from tritensor.types import dtypes

DTYPES = [each.name for each in dtypes.ALL if each is not torch.bfloat16]


@pytest.mark.parametrize("name", DTYPES)
def test_a_buffer_is_the_tensors_memory(name: str) -> None:
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
    for each in (x, x.t(), x[:, 1], x[0, 0], x[:0]):
        view = each.__buffer__(0)  # type: ignore[attr-defined]  # as memoryview(x) calls it from Python 3.12 on
        assert (view.shape, view.format) == (tuple(each.shape), memoryview(each.numpy()).format)
        assert view.strides == tuple(step * x.itemsize for step in each.stride()) or not each.numel()
        assert bytes(each) == each.numpy().tobytes() == view.tobytes()
        each.__release_buffer__(view)  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match="released"):
            view.shape  # noqa: B018
    np.asarray(x.__buffer__(0))[1, 2] = 0  # type: ignore[attr-defined]
    assert not x[1, 2]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before Python 3.12 only C code can have buffers")
def test_memoryview() -> None:
    x = torch.arange(4)
    view = memoryview(x)  # type: ignore[arg-type]
    view[1] = 9
    assert x[1] == 9 and bytes(x) == view.tobytes()
    with pytest.raises(TypeError, match="can't convert cuda:0"), torch.cuda.simulate():
        memoryview(x.cuda())  # type: ignore[arg-type]


def test_buffers_are_refused() -> None:
    with pytest.raises(BufferError, match=r"no buffer has elements of tritensor\.bfloat16"):
        torch.ones(2, dtype=torch.bfloat16).__buffer__(0)  # type: ignore[attr-defined]
    for read in (lambda x: x.__buffer__(0), bytes):
        with pytest.raises(RuntimeError, match="requires grad"):
            read(torch.ones(2, requires_grad=True))
        with torch.cuda.simulate(), pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
            read(torch.ones(2, device="cuda"))


def test_a_buffer_keeps_the_memory() -> None:
    x = torch.ones(4)
    memory = weakref.ref(x.numpy())
    view = x.__buffer__(0)  # type: ignore[attr-defined]
    del x
    gc.collect()
    assert view.tolist() == [1.0] * 4
    del view
    gc.collect()
    assert memory() is None
    array_ = np.zeros(2)
    array_.flags.writeable = False
    assert torch.from_numpy(array_).__buffer__(0).readonly  # type: ignore[attr-defined]


def test_array_copies_as_numpy_2_asks() -> None:
    x = torch.arange(3)
    for copy in (None, False):
        assert np.shares_memory(x.__array__(copy=copy), x.numpy()) and np.shares_memory(np.asarray(x), x.numpy())
        assert np.shares_memory(x.__array__(np.int64, copy=copy), x.numpy())
    assert not np.shares_memory(x.__array__(copy=True), x.numpy())
    assert not np.shares_memory(np.array(x), x.numpy())
    assert np.shares_memory(np.array(x, copy=False), x.numpy())
    for copy in (None, True):
        assert x.__array__(np.float32, copy=copy).dtype == np.float32
    for call in (lambda: x.__array__(np.float32, copy=False), lambda: np.array(x, np.float32, copy=False)):
        with pytest.raises(ValueError, match="Unable to avoid copy while creating an array as requested"):
            call()
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(torch.ones(2, requires_grad=True))
    with torch.cuda.simulate():
        y = x.cuda()
        for made in (np.asarray, np.array, lambda x: np.add(x, 1), lambda x: np.asarray(x, np.float32)):
            with pytest.raises(
                TypeError, match=r"can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu\(\)"
            ):
                made(y)


@pytest.mark.parametrize(
    "make", [bytearray, lambda data: array.array("b", data), lambda data: np.frombuffer(bytearray(data), np.uint8)]
)
def test_frombuffer_shares_memory(make: Any) -> None:
    owner = make(bytes(range(8)))
    x = torch.frombuffer(owner, dtype=torch.int16, offset=2, count=2)
    assert x.tolist() == [2 + 256 * 3, 4 + 256 * 5]
    x[0] = 1
    assert bytes(owner)[2:4] == b"\1\0" and x.data_ptr() == np.frombuffer(owner, np.uint8).ctypes.data + 2
    owner[4] = 7
    assert x[1] == 7 + 256 * 5
    assert torch.frombuffer(memoryview(owner)[4:], dtype=torch.uint8)[0] == 7


def test_frombuffer_of_read_only_memory() -> None:
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        x = torch.frombuffer(b"abcd", dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="memory is read-only"):
        x.add_(1)
    with pytest.raises(ExchangeError, match="clone"):
        x.__dlpack__()
    with pytest.raises(ValueError, match="does not implement Python buffer protocol"):
        torch.frombuffer([1], dtype=torch.uint8)
