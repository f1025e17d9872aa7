"""Pinned memory goes in whatever thread drops it, and each time a context is current there: libcuda asks for one."""

from __future__ import annotations

import pytest

from . import libcuda_stub

# Writes to stderr whether memory was freed with a context in the thread.
RECORDER = """
#define cuGetProcAddress_v2 get_address_
#include "libcuda_stub.c"
#undef cuGetProcAddress_v2
static int recorded(void *address) {
  fprintf(stderr, "%s\\n", ready() ? "no context" : "freed");
  return checked_cuMemFreeHost((long)address, 0, 0, 0, 0, 0);
}
int cuGetProcAddress_v2(const char *symbol, void **function, int version, u64 flags, int *status) {
  int found = get_address_(symbol, function, version, flags, status);
  if (!strcmp(symbol, "cuMemFreeHost")) *function = (void *)recorded;
  return found;
}
"""

START = """
import atexit, gc, os, threading
import numpy as np
from tritensor import drivers
from tritensor.types import devices
from tritensor.memory import copies
driver = drivers.require()
held = [driver.allocate_pinned(1000)]
def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""

# One program does all that may go wrong in a thread; each of the others ends in its own way.
IN_THREADS = """
in_a_thread(held.clear)
copies.pin(np.ones(3)); in_a_thread(driver.pinned.empty_cache)
cycle = [driver.allocate_pinned(1000)]; cycle.append(cycle); gc.disable(); del cycle; in_a_thread(gc.collect)
held.append(driver.allocate_pinned(1000))
use = lambda: copies.to_host(copies.from_host(np.ones(2), devices.cuda(0)))
in_a_thread(lambda: (held.clear(), use(), driver.pinned.empty_cache()))
"""
ENDS = {
    "in threads that never used a device": (IN_THREADS, 5),
    "by a function called at exit": ("atexit.register(held.clear)", 1),
    "by the end of the interpreter": ("held.append(held)", 0),
    "in a forked child": ("child = os.fork()\nheld.clear()\nif child: os.waitpid(child, 0)\nelse: os._exit(0)", 1),
}


@pytest.fixture(scope="module")
def recorder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorder")
    source = folder / "recorder.c"
    source.write_text(RECORDER)
    return libcuda_stub.environment(folder, source)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("devices", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", ENDS)
def test_a_context_is_current_when_pinned_memory_goes(recorder, how, devices):
    code, count = ENDS[how]
    result = libcuda_stub.run({**recorder, "STUB_DEVICES": str(devices)}, "-c", START + code)
    lines = [line for line in result.stderr.splitlines() if "fork" not in line]
    assert (result.returncode, lines) == (0, ["freed"] * count)
