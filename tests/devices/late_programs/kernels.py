"""Programs that launch kernels."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import tritensor as torch
from tritensor import cuda, settings
from tritensor.memory import buffer, copies
from tritensor.runtime.launch import kernel, launch

from ...needs import HAS_TRITON
from .late_device import CUDA0, ON_STUB, A, B, check, default, on_device, program

if TYPE_CHECKING:
    import triton.language as tl


def with_kernels(function: Callable[[], None]) -> Callable[[], None]:
    """A program that launches kernels, where something can run them."""
    return program(function) if HAS_TRITON and not ON_STUB else function


@kernel
def copy_kernel(out_ptr, in_ptr, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(out_ptr + index, tl.load(in_ptr + index))


def in_another_stream(work: Callable[[Any], Any], make: Callable[[], Any] = on_device) -> Any:
    """Work on memory of the default stream, which gives it to somebody else before the work is done."""
    x, side = make(), cuda.Stream()
    with cuda.stream(side):
        out = work(x)
    del x
    copies.from_host(B, CUDA0)
    default().synchronize()
    return out


@with_kernels
def a_launch_keeps_memory_of_another_stream() -> None:
    def work(x: Any) -> Any:
        out = buffer.empty((64,), A.dtype, CUDA0)
        launch(copy_kernel, (1,), (out, x), {"BLOCK": 64}, CUDA0)
        return out

    check(in_another_stream(work))


@kernel
def reaching_kernel(out_ptr, table_ptr, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    found_ptr = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + index, tl.load(found_ptr + index))


@with_kernels
def a_launch_keeps_what_it_reaches_by_a_table() -> None:
    def work(x: Any) -> Any:
        out = buffer.empty((64,), A.dtype, CUDA0)
        table = copies.from_host(np.array([x.data_ptr()]), CUDA0)
        launch(reaching_kernel, (1,), (out, table), {"BLOCK": 64}, CUDA0, reaches=(("x",), [(x,)]))
        return out

    check(in_another_stream(work))


def tensor() -> Any:
    x = torch.from_numpy(A.copy()).cuda()
    cuda.synchronize()
    return x


def replayed(work: Callable[[Any], Any], expected: np.ndarray) -> None:
    """Work that real devices repeat without going the long way."""
    for _ in range(2):
        work(tensor())
    check(in_another_stream(work, tensor).cpu().numpy(), expected)


@with_kernels
def an_operator_of_one_array_keeps_memory_of_another_stream() -> None:
    replayed(lambda x: -x, -A)


@with_kernels
def an_operator_of_an_array_and_a_number_keeps_memory_of_another_stream() -> None:
    replayed(lambda x: x * 2, A * 2)


@with_kernels
def an_operator_of_two_arrays_keeps_the_first_ones_memory() -> None:
    replayed(lambda x: x + tensor(), A + A)


@with_kernels
def an_operator_of_two_arrays_keeps_the_second_ones_memory() -> None:
    replayed(lambda x: tensor() + x, A + A)


@with_kernels
def a_change_in_place_keeps_the_memory_that_it_changes() -> None:
    for _ in range(2):
        tensor().add_(tensor())
    x, side = tensor(), cuda.Stream()
    with cuda.stream(side):
        x.add_(tensor())
    del x
    z = copies.from_host(B, CUDA0)
    default().synchronize()
    side.synchronize()
    check(z, B)


@with_kernels
def a_change_in_place_keeps_the_memory_that_it_reads() -> None:
    replayed(lambda x: tensor().add_(x), A + A)


@with_kernels
def an_operator_of_three_arrays_keeps_memory_of_another_stream() -> None:
    replayed(lambda x: torch.lerp(x, x, x), A)


@with_kernels
def an_operator_whose_first_call_is_recorded_keeps_memory_of_another_stream() -> None:
    check(in_another_stream(lambda x: x * 3, tensor).cpu().numpy(), A * 3)


@with_kernels
def the_line_about_a_launch_gives_the_time_that_it_took() -> None:
    x, written = tensor(), []
    before, sys.stderr = sys.stderr, type("Notes", (), {"write": lambda self, text: written.append(text)})()  # type: ignore[assignment]
    try:
        with settings.debug(2):
            x.exp()
    finally:
        sys.stderr = before
    (found,) = re.findall(r": ([0-9.]+) (us|ms|s),", "".join(written))
    assert 2e-6 < float(found[0]) * {"us": 1e-6, "ms": 1e-3, "s": 1}[found[1]] < 20
