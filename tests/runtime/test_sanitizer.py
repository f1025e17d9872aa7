"""What the sanitizer of simulated kernels keeps them from touching."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tritensor import drivers, settings
from tritensor.errors import KernelMemoryError
from tritensor.memory import copies
from tritensor.runtime.launch import kernel, launch
from tritensor.types import devices

if TYPE_CHECKING:
    import triton.language as tl

pytest.importorskip("triton")

X = np.linspace(-3, 5, 37, dtype=np.float32)


@pytest.fixture(autouse=True)
def device():
    with drivers.simulate(devices=1):
        yield devices.cuda(0)


def on_device(array, dtype=None):
    return copies.from_host(np.ascontiguousarray(array, dtype), devices.cuda(0))


def zeros(shape, dtype=np.float32):
    return on_device(np.zeros(shape, dtype))


def run(function, grid, arguments, **constants):
    launch(function, grid, arguments, constants, devices.cuda(0))
    drivers.require().synchronize(0)  # where streams run late, a kernel fails when it is waited for


@kernel
def shift_kernel(out_ptr, in_ptr, count, shift, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(out_ptr + index, tl.load(in_ptr + (index + shift), mask=index < count), mask=index < count)


def test_reads_and_writes_out_of_bounds_are_refused():
    x, out = on_device(X[:8]), zeros(8)
    with pytest.raises(KernelMemoryError, match=r"reads element 8 of argument 1 \(in_ptr\), float32 of shape \(8,\)"):
        run(shift_kernel, (1,), (out, x, 8, 1), BLOCK=16)
    with pytest.raises(KernelMemoryError, match=r"reads element -3 of argument 1 \(in_ptr\)"):
        run(shift_kernel, (1,), (out, x, 8, -3), BLOCK=16)
    with pytest.raises(
        KernelMemoryError, match=r"shift: program \(0, 0, 0\) writes element 7 of argument 0 \(out_ptr\)"
    ):
        run(shift_kernel, (1,), (out[:7], x, 8, 0), BLOCK=16)


def test_masked_lanes_may_point_anywhere():
    x, out = on_device(X[:8]), zeros(8)
    run(shift_kernel, (1,), (out, x, 7, 1), BLOCK=1024)
    assert np.array_equal(copies.to_host(out)[:7], X[1:8])
    run(shift_kernel, (1,), (out[:0], x[:0], 0, 0), BLOCK=1024)


def test_an_argument_does_not_reach_into_its_neighbour_in_the_same_memory():
    whole = on_device(np.arange(16, dtype=np.float32))
    first, second = whole[:8], whole[8:]
    with pytest.raises(KernelMemoryError, match=r"reads element 8 of argument 1 \(in_ptr\)"):
        run(shift_kernel, (1,), (second, first, 8, 1), BLOCK=8)
    with settings.sanitize(False):
        run(shift_kernel, (1,), (second, first, 8, 1), BLOCK=8)
    assert copies.to_host(whole)[8:].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_views_with_negative_strides_stay_inside_their_memory():
    x, out = on_device(X[:8]), zeros(8)

    run(reverse_kernel, (1,), (out, x[::-1], -1), BLOCK=8)
    assert np.array_equal(copies.to_host(out), X[:8][::-1])
    with pytest.raises(KernelMemoryError, match=r"argument 1 \(in_ptr\)"):
        run(reverse_kernel, (1,), (out, x[::-1], 1), BLOCK=8)


@kernel
def reverse_kernel(out_ptr, in_ptr, stride, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(out_ptr + index, tl.load(in_ptr + index * stride))


@kernel
def table_kernel(out_ptr, table_ptr, shift, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    address = tl.load(table_ptr + tl.program_id(0))
    pointer = address.to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + tl.program_id(0) * BLOCK + index, tl.load(pointer + shift + index))


def test_a_pointer_from_a_table_may_go_to_any_live_memory_and_nowhere_else():
    arrays = [on_device(X[:8]), on_device(X[8:16])]
    table = on_device([array.data_ptr() for array in arrays], np.int64)
    out = zeros(16)
    run(table_kernel, (2,), (out, table, 0), BLOCK=8)
    assert np.array_equal(copies.to_host(out), X[:16])
    with pytest.raises(KernelMemoryError, match="reads element"):
        run(table_kernel, (2,), (out, table, 1 << 30), BLOCK=8)


@kernel
def claim_kernel(slot_ptr, value):
    tl.atomic_cas(slot_ptr, 0, value)


def test_compare_and_swap_is_guarded_too():
    slot = zeros(2, np.int32)
    run(claim_kernel, (3,), (slot, 7))
    assert copies.to_host(slot).tolist() == [7, 0]
    with pytest.raises(KernelMemoryError, match=r"updates element 0 of argument 0 \(slot_ptr\)"):
        run(claim_kernel, (1,), (slot[:0], 7))


@kernel
def count_kernel(count_ptr, index_ptr, BLOCK: tl.constexpr):
    tl.atomic_add(count_ptr + tl.load(index_ptr + tl.arange(0, BLOCK)), 1)


def test_atomics_are_guarded_too():
    count = zeros(4, np.int32)
    run(count_kernel, (1,), (count, on_device([0, 3, 3, 1], np.int64)), BLOCK=4)
    assert copies.to_host(count).tolist() == [1, 1, 0, 2]
    with pytest.raises(KernelMemoryError, match=r"updates element 4 of argument 0 \(count_ptr\)"):
        run(count_kernel, (1,), (count, on_device([0, 4, 3, 1], np.int64)), BLOCK=4)
