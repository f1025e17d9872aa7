"""Instructions, constants and layouts of blocks that kernels of libraries have and ours have not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from .programs import compute, execute
from .test_instructions import U32, values


@pytest.mark.parametrize(
    ("test", "accepts"),
    [
        ("finite", math.isfinite),
        ("infinite", math.isinf),
        ("number", lambda x: not math.isnan(x)),
        ("notanumber", math.isnan),
        ("normal", lambda x: math.isfinite(x) and abs(x) >= 2**-126),
        ("subnormal", lambda x: 0 < abs(x) < 2**-126),
    ],
)
def test_properties_of_a_float(test: str, accepts: Callable[[float], bool]) -> None:
    x = values(np.float32)
    found = compute(f"testp.{test}.f32 %p1, %a0; selp.u32 %out, 1, 0, %p1;", [x], U32)
    assert found.tolist() == [int(accepts(float(each))) for each in x]


@pytest.mark.parametrize("text", ["20.", "0.125", "1.5e3", "-2e-1"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_a_float_in_decimals_is_rounded_to_the_type_that_reads_it(text: str, kind: str) -> None:
    dtype = np.float32 if kind == "f32" else np.float64
    x = np.ones(4, dtype)
    assert compute(f"mul.{kind} %out, %a0, {text};", [x], dtype).tolist() == [dtype(text)] * 4


def test_a_register_of_which_one_half_is_undefined() -> None:
    x = np.arange(4, dtype=U32)
    packed = "mov.b32 {%rs1, %rs2}, %a0; mov.b32 %r5, {%rs1, %rs9}; mov.b32 {%rs3, %rs4}, %r5; cvt.u32.u16 %out, %rs3;"
    assert compute(packed, [x], U32).tolist() == x.tolist()
    whole = "mov.b32 %r5, {%rs8, %rs9}; mov.b32 %out, %a0;"
    assert compute(whole, [x], U32).tolist() == x.tolist()


def test_lanes_meet_where_branches_join_wherever_the_blocks_lie() -> None:
    out = np.zeros(32, np.uint32)
    body = """
    mov.u32 %r9, 3;
    setp.lt.u32 %p1, %r0, 16;
$AGAIN:
    @%p1 bra $LOW;
    bra.uni $HIGH;
$LOW:
    add.u32 %r1, %r0, 100;
$JOIN:
    shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;
    sub.u32 %r9, %r9, 1;
    setp.ne.u32 %p2, %r9, 0;
    @%p2 bra $AGAIN;
    bra.uni $END;
$HIGH:
    add.u32 %r1, %r0, 200;
    bra.uni $JOIN;
$END:
    mul.wide.u32 %rd5, %r0, 4;
    add.s64 %rd5, %rd1, %rd5;
    st.global.b32 [%rd5], %r2;
"""
    execute(body, out)
    assert out.tolist() == [216 + n for n in range(16)] + [100 + n for n in range(16)]


@pytest.mark.parametrize("returns", [False, True])
def test_atomics_of_vectors_and_of_packed_pairs(returns: bool) -> None:
    sums, old = np.zeros(4, np.float32), np.zeros((32, 2), np.float32)
    halves = np.zeros(4, np.float16)
    x = np.array([1.5, -0.25], np.float32)
    add = "atom.global.gpu.acq_rel.add.v2.f32 {%r4, %r5}, [%rd1+8]" if returns else "red.global.add.v2.f32 [%rd1+8]"
    body = f"""
    ld.global.v2.b32 {{%r1, %r2}}, [%rd4];
    {add}, {{%r1, %r2}};
    mov.b32 %r7, 0x3C004000;
    {"atom.global.add.noftz.f16x2 %r8, [%rd3+4], %r7;" if returns else "red.global.add.noftz.f16x2 [%rd3+4], %r7;"}
    mul.wide.u32 %rd5, %r0, 8;
    add.s64 %rd5, %rd2, %rd5;
    {"st.global.v2.b32 [%rd5], {%r4, %r5};" if returns else ""}
"""
    execute(body, sums, old, halves, x)
    assert sums.tolist() == [0, 0, 48, -8]
    assert halves.tolist() == [0, 0, 64, 32]
    assert not returns or old.tolist() == [[1.5 * n, -0.25 * n] for n in range(32)]


def test_relu_of_packed_integers() -> None:
    a, b = np.array([[5, -3]] * 4, np.int16), np.array([[-7, 2]] * 4, np.int16)
    found = compute("max.relu.s16x2 %out, %a0, %a1;", [a.view(U32)[:, 0], b.view(U32)[:, 0]], U32)
    assert found.view(np.int16).reshape(4, 2).tolist() == [[5, 2]] * 4
    found = compute("min.relu.s16x2 %out, %a0, %a1;", [a.view(U32)[:, 0], b.view(U32)[:, 0]], U32)
    assert found.view(np.int16).reshape(4, 2).tolist() == [[0, 0]] * 4


def test_comparisons_of_packed_floats_are_numbers() -> None:
    a, b = np.array([[1, np.nan]] * 4, np.float16), np.array([[2, 1]] * 4, np.float16)
    found = compute("set.ltu.f16x2.f16x2 %out, %a0, %a1;", [a.view(U32)[:, 0], b.view(U32)[:, 0]], U32)
    assert found.view(np.float16).reshape(4, 2).tolist() == [[1, 1]] * 4
    found = compute("set.gt.f16x2.f16x2 %out, %a1, %a0;", [a.view(U32)[:, 0], b.view(U32)[:, 0]], U32)
    assert found.view(np.float16).reshape(4, 2).tolist() == [[1, 0]] * 4
