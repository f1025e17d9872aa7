"""Launches through the real cuda-core, over a stub of libcuda that writes down what arrives at the driver's calls."""

from __future__ import annotations

import json
import re
import struct

import pytest

from . import libcuda_stub

pytest.importorskip("triton")

RECORDER = """
#include "libcuda_stub.c"

static FILE *log_file(void) { return fopen(getenv("STUB_LOG"), "a"); }

int cuLibraryLoadData(void **library, const void *code, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
  return *library = (void *)0x77, memcmp(code, "\\177ELF", 4) ? 1 : 0;
}
int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  FILE *out = log_file();
  fprintf(out, "[\\"load\\", \\"%s\\"]\\n", name);
  return *kernel = (void *)0x88, fclose(out);
}
int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) {
  FILE *out = log_file();
  fprintf(out, "[\\"limit\\", %d, %d, %d]\\n", attribute, value, device);
  return kernel == (void *)0x88 ? fclose(out) : 1;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *f, int threads, u64 shared) {
  *blocks = 8;
  return 0;
}
int cuLaunchKernelEx(const unsigned *config, void *function, void **values, void **extra) {
  FILE *out = log_file();
  const unsigned *c = config; /* grid, block, bytes of shared memory */
  fprintf(out, "[\\"launch\\", [%u, %u, %u], [%u, %u, %u], %u, [", c[0], c[1], c[2], c[3], c[4], c[5], c[6]);
  for (int i = 0; i < atoi(getenv("STUB_VALUES")); i++) fprintf(out, "%s%llu", i ? ", " : "", *(u64 *)values[i]);
  const int *first = *(const int **)(c + 10); /* of the attributes, of which there are c[12] */
  fprintf(out, "], %d]\\n", c[12] ? first[0] : 0);
  fclose(out);
  return getenv("STUB_LAUNCH") ? atoi(getenv("STUB_LAUNCH")) : 0;
}
"""

PROGRAM = """
from __future__ import annotations
import numpy as np
from tritensor.types import devices; from tritensor.memory import buffer, copies
from tritensor.runtime.launch import Float64, Int64, kernel, launch

@kernel
def numbers_kernel(outs, scale, precise, long, strides, count, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(outs[0] + index * strides[0], scale + precise, mask=index < count)
    tl.store(outs[1] + index * strides[1], long, mask=index < count)

@kernel
def matmul_kernel(out_ptr, x_ptr, y_ptr, inner, SIZE: tl.constexpr, DEPTH: tl.constexpr):
    row, col, depth = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, DEPTH)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, inner, DEPTH):
        x = tl.load(x_ptr + row * inner + (start + depth)[None, :])
        total = tl.dot(x, tl.load(y_ptr + (start + depth)[:, None] * SIZE + col), total)
    tl.store(out_ptr + row * SIZE + col, total)

device = devices.cuda(0)
outs = buffer.empty((64,), np.dtype(np.float32), device), buffer.empty((64,), np.dtype(np.int64), device)
print(outs[0].data_ptr(), outs[1].data_ptr(), flush=True)
arguments = outs, 0.5, Float64(0.1), Int64(-2), (1, -3), 7
launch(numbers_kernel, (5, 2), arguments, {"BLOCK": 16}, device, name="numbers")
launch(numbers_kernel, (6,), arguments, {"BLOCK": 16}, device, name="numbers")
if MATMUL:
    x = buffer.empty((128, 128), np.dtype(np.float16), device)
    launch(matmul_kernel, (1,), (outs[0], x, x, 128), {"SIZE": 128, "DEPTH": 64}, device)
AFTERWARDS
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorder")
    log = folder / "log"
    ours = {"STUB_LOG": str(log), "STUB_VALUES": "0", "TRITON_CACHE_DIR": str(folder / "cache")}
    source = folder / "recorder.c"
    source.write_text(RECORDER)
    environment = libcuda_stub.environment(folder, source, **ours)

    def program(matmul=False, afterwards="", **variables):
        log.write_text("")
        script = folder / "program.py"
        script.write_text(PROGRAM.replace("MATMUL", str(matmul)).replace("AFTERWARDS", afterwards))
        result = libcuda_stub.run({**environment, **variables}, script)
        return [json.loads(line) for line in log.read_text().splitlines()], result

    return program


@pytest.mark.thorough
def test_values_arrive_at_the_driver_in_order_and_in_full(run):
    entries, result = run(STUB_VALUES="9")
    assert result.returncode == 0, result.stderr
    addresses = [int(word) for word in result.stdout.split()]
    assert entries[0] == ["load", "numbers"]
    (_, grid, block, shared, values, _), (_, again, *_, same_values, _) = entries[1:]
    assert (grid, block, shared, again) == ([5, 2, 1], [128, 1, 1], 0, [6, 1, 1])
    assert values == same_values
    assert values[:2] == addresses
    assert struct.pack("<Q", values[2])[:4] == struct.pack("<f", 0.5)
    assert struct.pack("<Q", values[3]) == struct.pack("<d", 0.1)
    assert values[4] == 2**64 - 2
    assert values[5] & 0xFFFFFFFF == 2**32 - 3  # the stride of 1 before it is compiled in
    assert values[6:] == [7, 0, 0]


@pytest.mark.thorough
def test_programs_that_wait_for_one_another_are_launched_cooperatively(run):
    more = """
numbers_kernel.cooperative = True
launch(numbers_kernel, (3,), (outs, 0.5, Float64(0.1), Int64(-2), (1, -3), 6), {"BLOCK": 32}, device, name="numbers")
"""
    entries, result = run(afterwards=more)
    assert result.returncode == 0, result.stderr
    assert [entry[-1] for entry in entries if entry[0] == "launch"] == [0, 0, 2]  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE


@pytest.mark.thorough
def test_a_limit_of_shared_memory_is_raised_before_it_is_used(run):
    entries, result = run(matmul=True)
    assert result.returncode == 0, result.stderr
    load, limit, launch = entries[-3:]
    assert load == ["load", "matmul"]
    assert limit[0::2] == ["limit", launch[3]]
    assert limit[1] == 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    assert launch[3] > 48 << 10


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("700", "CUDA error: an illegal memory access was encountered\n  reported at the launch of numbers"),
        ("1", "CUDA error: launch failure\n  at the launch of numbers"),
    ],
)
def test_a_refusal_of_the_driver_names_the_operator(run, status, text):
    _, result = run(STUB_LAUNCH=status)
    assert result.returncode == 1
    assert f"DeviceError: {text}" in result.stderr
    assert ("context is lost" in result.stderr) is (status == "700")


@pytest.mark.thorough
@pytest.mark.parametrize("wait", ["cuda.synchronize()", "cuda.current_stream().synchronize()", "copies.to_host(x)"])
@pytest.mark.parametrize("debug", ["", "1"])
def test_a_failure_that_shows_at_a_wait_names_what_was_launched(run, wait, debug):
    afterwards = f"import os; from tritensor import cuda\nos.environ['STUB_STATUS'] = '700'\n{wait}"
    _, result = run(matmul=True, afterwards=afterwards, TRITENSOR_DEBUG=debug)
    (line,) = [line for line in result.stderr.splitlines() if "launched last" in line]
    if debug:
        expected = r"matmul at \S*program.py:30, numbers at \S*program.py:27, numbers at \S*program.py:26"
    else:
        expected = "matmul, numbers"
    assert re.fullmatch(f"  launched last, newest first: {expected}", line), line
    assert "the device's context is lost" in result.stderr


def test_what_has_run_is_not_suspected(run):
    afterwards = "import os; from tritensor import cuda\ncuda.synchronize()\n"
    _, result = run(afterwards=f"{afterwards}os.environ['STUB_STATUS'] = '700'\ncuda.synchronize()")
    assert "an illegal memory access" in result.stderr
    assert "launched last" not in result.stderr
