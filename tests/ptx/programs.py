"""Small programs in PTX, and how they are run on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.drivers.ptx.machine import run
from tritensor.drivers.ptx.memory import Memory
from tritensor.drivers.ptx.parse import parse

HEAD = """
.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 global_smem[];
.visible .entry program({parameters})
.reqntid {threads}
{{
    .reg .pred %p<20>;
    .reg .b16 %rs<20>;
    .reg .b32 %r<40>;
    .reg .b64 %rd<40>;
    .loc 1 7 0
{body}
    ret;
}}
    .file 1 "program.py"
"""


def execute(body: str, *arrays: Any, threads: int = 32, grid: int = 1, shared: int = 0, **options: Any) -> None:
    """Run statements in which %rd1, %rd2, … are the addresses of arrays and %r0 is the thread's number."""
    names = [f"p{number}" for number in range(len(arrays))]
    loads = "".join(f"    ld.param.u64 %rd{n + 1}, [{name}];\n" for n, name in enumerate(names))
    begin = loads + "    mov.u32 %r0, %tid.x;\n"
    parameters = ", ".join(f".param .u64 {name}" for name in names)
    text = HEAD.format(parameters=parameters, threads=threads, body=begin + body)
    spans = sorted((array.ctypes.data, array.nbytes, f"argument {n}") for n, array in enumerate(arrays))
    memory = Memory([(address, nbytes, label) for address, nbytes, label in spans])
    run(parse(text), (grid, 1, 1), [array.ctypes.data for array in arrays], memory, shared, **options)


def compute(statements: str, inputs: list[np.ndarray], out: Any, seed: int = 0) -> np.ndarray:
    """What statements make of inputs, of which each lane has one element in %a0, %a1, …; the result is in %out."""
    count = len(inputs[0])
    lines, kinds = [], {1: "b8", 2: "b16", 4: "b32", 8: "b64"}
    declared = {"b8": "b16"}
    for n, array in enumerate([*inputs, np.empty(0, out)]):
        name = f"%a{n}" if n < len(inputs) else "%out"
        kind = kinds[array.dtype.itemsize]
        lines.append(f"    .reg .{declared.get(kind, kind)} {name};")
    for n, array in enumerate(inputs):
        lines += [f"    mul.wide.u32 %rd20, %r0, {array.dtype.itemsize};", f"    add.s64 %rd20, %rd20, %rd{n + 1};"]
        lines.append(f"    ld.global.{kinds[array.dtype.itemsize]} %a{n}, [%rd20];")
    lines.append(statements)
    size = np.dtype(out).itemsize
    lines += [f"    mul.wide.u32 %rd20, %r0, {size};", f"    add.s64 %rd20, %rd20, %rd{len(inputs) + 1};"]
    lines.append(f"    st.global.{kinds[size]} [%rd20], %out;")
    result = np.zeros(count, out)
    execute("\n".join(lines), *inputs, result, threads=count, seed=seed)
    return result
