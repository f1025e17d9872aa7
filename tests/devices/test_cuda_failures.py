"""A device that fails, a context that is lost, and the end of a program, on a stub of the CUDA driver."""

from __future__ import annotations

FAULT = """
import os
from tritensor import cuda
stream, event = cuda.Stream(), cuda.Event()
event.record(stream)
for status in ("700", "719"):
    os.environ["STUB_STATUS"] = status
    for use in (stream.synchronize, event.synchronize, cuda.synchronize, stream.query):
        try:
            use()
        except RuntimeError as error:
            print(type(error).__name__, error)
os.environ["STUB_STATUS"] = "600"
print(stream.query(), event.query())
"""


def test_a_failed_device_is_reported_where_it_is_waited_for(stub):
    text = stub("-c", FAULT).stdout
    assert text.count("DeviceError CUDA error: an illegal memory access was encountered\n") == 2, text
    assert text.count("DeviceError CUDA error: an illegal memory access was encountered (CUDA_ERROR") == 2, text
    assert text.count("DeviceError CUDA error: work that was waited for has failed\n") == 2, text
    assert text.count("DeviceError CUDA error: unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED)") == 2, text
    assert text.count("CUDA_LAUNCH_BLOCKING=1") == 8
    assert text.endswith("False False\n")


LOST = """
import gc, os
import numpy as np
import tritensor as torch
from tritensor import cuda
x = torch.from_numpy(np.ones(1000, np.float32)).cuda()
side, event = cuda.Stream(), cuda.Event()
with cuda.stream(side):
    y = x.to("cpu", non_blocking=True)
    z = torch.from_numpy(np.ones(1000, np.float32)).cuda()
sources = [torch.from_numpy(np.ones(300000, np.float32)).pin_memory() for _ in range(2)]
copies = [source.to("cuda", non_blocking=True) for source in sources]
os.environ["STUB_LOST"] = "700"
for use in (x.cpu, lambda: torch.empty(1 << 20, device="cuda"), lambda: torch.ones(3).cuda(), cuda.synchronize,
            event.record, side.synchronize, lambda: side.wait_stream(cuda.current_stream()), y.numpy, cuda.empty_cache):
    try:
        use()
    except RuntimeError as error:
        text = str(error)
        print(text.startswith("CUDA error: an illegal memory access was encountered"), "context is lost" in text)
assert sources[0].sum().item() == 300000  # what was to be copied is the host's
del x, y, z, side, sources, copies
gc.collect()
"""


def test_a_lost_context_is_said_by_every_later_call_and_tensors_may_still_go(stub):
    result = stub("-W", "error", "-c", LOST)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "True True\n" * 9


def test_tensors_may_live_to_the_end_of_the_program(stub):
    code = """
import atexit, numpy as np
from tritensor import cuda
from tritensor.types import devices
from tritensor.memory import copies
array = copies.from_host(np.ones(3, "f4"), devices.cuda(0))
array.buffer.record_stream(cuda.Stream())
pending = copies.to_host(array, non_blocking=True)
pinned = copies.pin(np.ones(3))
cycle = [array]
cycle.append(cycle)
atexit.register(lambda: print(copies.to_host(array)))
"""
    for variables in ({}, {"STUB_DEVICES": "0", "TRITENSOR_SIMULATE_CUDA": "1"}):
        result = stub("-W", "error", "-c", code, **variables)
        assert (result.returncode, result.stdout, result.stderr) == (0, "[1. 1. 1.]\n", "")


def test_a_driver_without_a_device_is_no_driver(stub):
    code = "from tritensor import cuda; print(cuda.is_available(), cuda.device_count()); cuda.synchronize()"
    result = stub("-c", code, STUB_DEVICES="0")
    assert result.stdout == "False 0\n"
    assert "DeviceError: No CUDA GPUs are available" in result.stderr
    assert "TRITENSOR_SIMULATE_CUDA=1" in result.stderr
