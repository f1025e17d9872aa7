"""Objects that LLVM makes, in memory: what is loaded runs, and what cannot be is refused."""

from __future__ import annotations

import mmap
import struct
from array import array
from pathlib import Path

import numpy as np
import pytest

from tritensor.drivers import selection
from tritensor.drivers.loading import Compiled
from tritensor.drivers.native import loader
from tritensor.errors import DeviceError

if selection.lacks_native():
    pytest.skip(selection.lacks_native(), allow_module_level=True)

from tritensor.drivers.native import objects

HEAD = "define i32 @work(ptr %args, ptr %ctx, i64 %begin, i64 %end, i32 %gx, i32 %gy, i32 %gz) {\nentry:\n"
# out[i] = table[i % 4] * exp(in[i]) with a constant that the code refers to and a function of the C library
SCALED = f"""
declare double @exp(double)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
@table = private unnamed_addr constant [4 x double] [double 1.0, double 2.0, double 4.0, double 8.0]
{HEAD}
  %out = load ptr, ptr %args
  %second = getelementptr i64, ptr %args, i64 1
  %in = load ptr, ptr %second
  %all = mul i64 %end, 8
  call void @llvm.memset.p0.i64(ptr %out, i8 0, i64 %all, i1 false)
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %from = getelementptr double, ptr %in, i64 %i
  %x = load double, ptr %from
  %y = call double @exp(double %x)
  %k = and i64 %i, 3
  %of = getelementptr [4 x double], ptr @table, i64 0, i64 %k
  %factor = load double, ptr %of
  %z = fmul double %y, %factor
  %to = getelementptr double, ptr %out, i64 %i
  store double %z, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  %sizes = add i32 %gx, %gz
  ret i32 %sizes
}}
"""


def compiled(text: str, name: str = "work", target: str = "host") -> Compiled:
    return Compiled(objects.compiled(text, target), name, 0, 0, 64, 0)


@pytest.mark.parametrize("target", ["host", "avx2", "no-fma"])
def test_code_with_constants_and_functions_of_the_c_library(target):
    code = loader.load(compiled(SCALED, target=target))
    x, out = np.linspace(-3, 3, 1001), np.full(1001, 7.0)
    words = array("q", (out.ctypes.data, x.ctypes.data))
    assert code.call(words.buffer_info()[0], 0, 0, 1001, 5, 1, 2) == 7 and code.scratch == 64
    assert np.allclose(out, np.exp(x) * np.array([1.0, 2.0, 4.0, 8.0])[np.arange(1001) % 4], 1e-14, 0)


def test_code_cannot_be_written_to():
    code = loader.load(compiled(SCALED))
    address = struct.unpack("<Q", memoryview(code.call).cast("B")[:8])[0]
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high = (int(number, 16) for number in line.split()[0].split("-"))
        found += [line.split()[1]] * (low <= address < high)
    assert found == ["r-xp"] and isinstance(code.memory, mmap.mmap)


def test_what_is_refused():
    good = compiled(SCALED)
    arm = good.binary[:18] + b"\xb7\x00" + good.binary[20:]
    for binary, fact in [
        (b"", "no relocatable object"),
        (b"MZ" + bytes(200), "no relocatable object"),
        (arm, "no relocatable object"),
        (good.binary[:-300], ""),
        (objects.compiled(SCALED.replace("@exp(", "@exponential("), "host"), "no function exponential"),
        (
            objects.compiled(
                "@count = internal global i64 0\n" + HEAD + "%n = atomicrmw add ptr @count, i64 1 seq_cst\n"
                "%m = trunc i64 %n to i32\nret i32 %m }",
                "host",
            ),
            "variables",
        ),
    ]:
        with pytest.raises(DeviceError, match=rf"(?s)work: native code cannot be loaded.*{fact}.*interpreter"):
            loader.load(good._replace(binary=binary))
    with pytest.raises(DeviceError, match="another: native code cannot be loaded"):
        loader.load(good._replace(name="another"))


def test_text_that_llvm_refuses():
    with pytest.raises(RuntimeError, match="expected"):
        objects.compiled("define nonsense", "host")


def test_targets():
    assert objects.machine("avx2")[1:] == (True, 256) and objects.machine("no-fma")[1:] == (False, 256)
    assert objects.machine("host")[2] in (256, 512)
