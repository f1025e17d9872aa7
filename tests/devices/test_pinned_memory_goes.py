"""Pinned memory goes in whatever thread drops it, and each time a context is current there: libcuda asks for one."""

from __future__ import annotations

import pytest

from . import libcuda_stub

# A context for each thread, none until it is set; what frees without one is refused, and says so on stderr.
RECORDER = """
#define cuCtxSetCurrent set_current_
#define cuCtxGetCurrent get_current_
#define cuMemFreeHost free_host_
#include "libcuda_stub.c"
#undef cuCtxSetCurrent
#undef cuCtxGetCurrent
#undef cuMemFreeHost
static __thread void *here;
int cuCtxSetCurrent(void *context) { return here = context, set_current_(context); }
int cuCtxGetCurrent(void **context) { return *context = here, 0; }
int cuMemFreeHost(void *address) {
  fprintf(stderr, "%s\\n", here ? "freed" : "no context");
  return here ? free_host_(address) : 201;
}
"""

START = """
import atexit, ctypes, gc, os, threading
import numpy as np
from tritensor import cuda, drivers
from tritensor.memory import copies
driver = drivers.require()
held = [driver.allocate_pinned(1000)]
def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""

DROPPED = {
    "here": ("held.clear()", 1),
    "in a thread that never used a device": ("in_a_thread(held.clear)", 1),
    "in a thread, with memory of the pool": ("copies.pin(np.ones(3)); in_a_thread(driver.pinned.empty_cache)", 1),
    "in a thread, by the collector": (
        "held.append(held); gc.disable(); del held; in_a_thread(gc.collect)",
        1,
    ),
    "where the thread uses a device afterwards": (
        "in_a_thread(lambda: (held.clear(), print(copies.to_host(copies.from_host(np.ones(2), cuda0)))))",
        1,
    ),
    "as the thread's own": (
        "own = threading.local()\ndef work(): own.held = driver.allocate_pinned(1000)\nin_a_thread(work)\nheld.clear()",
        2,
    ),
    "by a function called at exit": ("atexit.register(held.clear)", 1),
    "by the end of the interpreter": ("", 0),
    "by a cycle at the end of the interpreter": ("held.append(held)", 0),
}


@pytest.fixture(scope="module")
def recorder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorder")
    source = folder / "recorder.c"
    source.write_text(RECORDER)
    return libcuda_stub.environment(folder, source)


@pytest.mark.parametrize("devices", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", DROPPED)
def test_a_context_is_current_when_pinned_memory_goes(recorder, how, devices):
    code, count = DROPPED[how]
    program = f"{START}\nfrom tritensor import devices; cuda0 = devices.cuda(0)\n{code}"
    result = libcuda_stub.run({**recorder, "STUB_DEVICES": str(devices)}, "-W", "error", "-c", program)
    assert (result.returncode, result.stderr) == (0, "freed\n" * count)


def test_a_forked_child_leaves_the_parents_memory_alone(recorder):
    code = "child = os.fork()\nheld.clear()\nif child: os.waitpid(child, 0)\nelse: os._exit(0)"
    result = libcuda_stub.run(recorder, "-c", START + code)
    assert (result.returncode, result.stderr) == (0, "freed\n")
