"""Programs that wait for streams and events, and that take and give back memory."""

from __future__ import annotations

import numpy as np

from tritensor import accelerator, cuda
from tritensor.drivers import require
from tritensor.memory import buffer, copies

from ..waits import fails
from .late_device import CUDA0, check, default, first_byte, on_device, program, set_bytes

# ---- streams and events ---------------------------------------------------------------------------------------------


@program
def a_stream_waits_for_a_stream() -> None:
    x, side = on_device(), cuda.Stream()
    set_bytes(side, x, 3)
    default().wait_stream(side)
    assert first_byte(x) == 3


@program
def a_stream_waits_for_an_event() -> None:
    x, side = on_device(), cuda.Stream()
    set_bytes(side, x, 3)
    default().wait_event(side.record_event())
    assert first_byte(x) == 3


@program
def an_event_is_recorded_again_and_waited_for_there() -> None:
    x, side, event = on_device(), cuda.Stream(), cuda.Event(enable_timing=True)
    event.record(side)
    set_bytes(side, x, 3)
    side.record_event(event)
    event.wait(default())
    assert first_byte(x) == 3


@program
def the_host_waits_for_an_event() -> None:
    x, side, event = on_device(), cuda.Stream(), cuda.Event()
    set_bytes(side, x, 3)
    event.record(side)
    event.synchronize()
    assert first_byte(x) == 3


@program
def the_host_waits_for_a_stream() -> None:
    x, side = on_device(), cuda.Stream()
    set_bytes(side, x, 3)
    side.synchronize()
    assert first_byte(x) == 3


@program
def the_host_waits_for_a_device() -> None:
    x, side = on_device(), cuda.Stream()
    set_bytes(side, x, 3)
    accelerator.synchronize()
    assert first_byte(x) == 3


@program
def a_stream_is_asked_until_it_is_done() -> None:
    x, side = on_device(), cuda.Stream()
    set_bytes(side, x, 3)
    while not side.query():
        pass
    assert first_byte(x) == 3


@program
def an_event_is_asked_until_it_is_done() -> None:
    x, side = on_device(), cuda.Stream()
    set_bytes(side, x, 3)
    event = side.record_event()
    while not event.query():
        pass
    assert first_byte(x) == 3


# ---- memory ---------------------------------------------------------------------------------------------------------


@program
def memory_goes_back_to_the_device_after_its_last_use() -> None:
    x = on_device()
    with cuda.stream(cuda.Stream()):
        pending = copies.to_host(x, non_blocking=True)
    del x
    default().arena.release()
    default().synchronize()
    check(pending.wait())


@program
def caches_are_given_back_before_memory_runs_out() -> None:
    int8 = np.dtype(np.int8)
    for size in (5 << 20, 6 << 20, 7 << 20):
        buffer.empty((size,), int8, CUDA0)


@program
def a_failure_that_nobody_waited_for_is_raised_at_the_end_of_a_simulation() -> None:
    if not require().is_simulated:
        return
    for index in range(2):

        def fail(index: int = index) -> None:
            with cuda.simulate(devices=2) as driver:
                driver.submit(cuda.Stream(index), lambda: 1 / 0)

        assert fails(fail)
