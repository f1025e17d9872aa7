"""Programs that copy between host and device, and between devices."""

from __future__ import annotations

import weakref

import numpy as np

import tritensor as torch
from tritensor import cuda
from tritensor.drivers import require
from tritensor.memory import copies, foreign
from tritensor.tensors import Tensor

from .late_device import CUDA0, CUDA1, LARGE, A, B, check, default, on_device, program, set_bytes

# ---- copies between host and device ---------------------------------------------------------------------------------


@program
def what_was_copied_there_comes_back() -> None:
    check(copies.from_host(A, CUDA0))


@program
def a_tensor_that_is_still_on_its_way_is_waited_for_by_its_reader() -> None:
    x = torch.from_numpy(A.copy()).cuda()
    check((x.to("cpu", non_blocking=True) + 1).numpy(), A + 1)


@program
def a_copy_is_done_when_its_bytes_are_there() -> None:
    pending = copies.to_host(on_device(), non_blocking=True)
    while not pending.done():
        pass
    check(pending.raw)


@program
def a_copy_that_nobody_reads_keeps_its_place() -> None:
    x = on_device()
    copies.to_host(x, non_blocking=True)
    check(copies.from_host(B, CUDA0), B)


@program
def a_copy_into_pinned_memory_is_there_when_the_call_returns() -> None:
    target = torch.zeros(64).pin_memory()
    target.copy_(torch.from_numpy(A.copy()).cuda())
    check(target.numpy())


@program
def memory_that_is_copied_from_is_not_given_out_before_that() -> None:
    x, side = on_device(), cuda.Stream()
    with cuda.stream(side):
        pending = copies.to_host(x, non_blocking=True)
    del x
    y = copies.from_host(B, CUDA0)
    default().synchronize()
    check(pending.wait())
    check(y, B)


@program
def the_host_reads_what_every_stream_wrote() -> None:
    x, side = on_device(B), cuda.Stream()
    set_bytes(side, x, 0)
    x.buffer.record_stream(side)
    check(x, np.zeros_like(B))


@program
def what_one_stream_copies_another_overwrites_later() -> None:
    x, side = on_device(B), cuda.Stream()
    with cuda.stream(side):
        copies.copy_into(x, B + 1)
    copies.copy_into(x, A)
    default().synchronize()
    side.synchronize()
    check(x)


@program
def a_large_pinned_source_may_be_overwritten_after_a_blocking_copy() -> None:
    host = copies.pin(np.ones(copies.CHUNK // 8, np.float32))
    x = copies.from_host(host, CUDA0)
    host[:] = 2
    check(x, np.ones_like(host))


def sent() -> tuple[Tensor, Tensor]:
    """Ones in pinned memory, on their way to a device from there."""
    x = torch.from_numpy(np.ones(LARGE, np.float32)).pin_memory()
    return x, x.to("cuda", non_blocking=True)


@program
def a_source_that_is_read_in_place_may_be_overwritten() -> None:
    x, moved = sent()
    x.fill_(2)
    check(moved._data, np.ones(LARGE, np.float32))


@program
def a_source_that_is_read_in_place_may_be_overwritten_after_its_second_copy() -> None:
    x, moved = sent()
    require().synchronize(0)
    with cuda.stream(cuda.Stream()):
        again = x.to("cuda", non_blocking=True)
        x.fill_(2)
        check(again._data, np.ones(LARGE, np.float32))
    check(moved._data, np.ones(LARGE, np.float32))


@program
def a_source_that_is_read_in_place_keeps_its_memory() -> None:
    x, moved = sent()
    del x
    torch.from_numpy(np.zeros(LARGE, np.float32)).pin_memory()
    check(moved._data, np.ones(LARGE, np.float32))


@program
def memory_that_is_written_from_the_source_is_not_given_out_before() -> None:
    target = torch.from_numpy(np.zeros(LARGE, np.float32)).cuda()
    x = torch.from_numpy(np.ones(LARGE, np.float32)).pin_memory()
    require().synchronize(0)
    with cuda.stream(cuda.Stream()):
        target.copy_(x, non_blocking=True)
    del target
    other = torch.from_numpy(np.zeros(LARGE, np.float32)).cuda()
    default().synchronize()  # before the other stream has got to it
    require().synchronize(0)
    check(other._data, np.zeros(LARGE, np.float32))


@program
def a_pinned_target_is_written_when_the_copy_returns() -> None:
    host = copies.pin(B)
    check(copies.to_host(on_device(), into=host))
    check(host)


@program
def sources_that_are_staged_do_not_share_their_place() -> None:
    first, second = copies.from_host(A, CUDA0), copies.from_host(B, CUDA0)
    check(first)
    check(second, B)


@program
def staging_has_a_limit_and_waits_at_it() -> None:
    pool = require().pinned
    pool.limit = 2 * 4096
    made = [copies.from_host(A + step, CUDA0) for step in range(6)]
    for step, x in enumerate(made):
        check(x, A + step)


# ---- between devices ------------------------------------------------------------------------------------------------


@program
def a_copy_to_another_device_arrives_before_it_is_read() -> None:
    check(copies.copy_across(on_device(), CUDA1))


@program
def a_copy_to_another_device_waits_for_what_reads_its_target() -> None:
    x, y = on_device(), on_device(B, CUDA1)
    pending = copies.to_host(y, non_blocking=True)
    copies.copy_into(y, x)
    default().synchronize()
    check(pending.wait(), B)
    check(y)


@program
def the_source_of_a_copy_to_another_device_is_kept_until_it_is_done() -> None:
    side = cuda.Stream()
    with cuda.stream(side):
        x = on_device()
    y = copies.copy_across(x, CUDA1)
    del x
    with cuda.stream(side):
        z = copies.from_host(B, CUDA0)
    side.synchronize()
    check(y)
    check(z, B)


@program
def the_target_of_a_copy_from_another_device_is_kept_until_it_is_done() -> None:
    x, side = on_device(), cuda.Stream(1)
    with cuda.stream(side):
        y = on_device(B, CUDA1)
    copies.copy_into(y, x)
    del y
    with cuda.stream(side):
        z = copies.from_host(B, CUDA1)
        side.synchronize()
        default().synchronize()
        check(z, B)


@program
def memory_that_was_told_of_a_stream_is_kept_for_it() -> None:
    x, y, side = torch.from_numpy(A.copy()).cuda(), on_device(B), cuda.Stream()
    cuda.synchronize()
    require().copy_d2d(y.data_ptr(), x.data_ptr(), A.nbytes, side.handle, (0, 0))
    x.record_stream(side)
    del x
    z = copies.from_host(B, CUDA0)
    default().synchronize()
    side.synchronize()
    check(y)
    check(z, B)


@program
def memory_of_another_owner_is_kept_until_the_work_on_it_is_done() -> None:
    x, owner = on_device(), {"an owner"}
    gone = weakref.ref(owner)
    y = foreign.array_over("", x.data_ptr(), x.shape, None, x.dtype, 0, False, owner)
    for _ in range(3):
        set_bytes(default(), y, 0)
    del owner, y
    assert gone() is not None
    require().synchronize(0)
    require().pinned.finish_copies()
    assert gone() is None
    check(x, np.zeros(64, np.float32))
