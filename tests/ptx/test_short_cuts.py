"""Short cuts of compiled simulation change nothing: random programs, with them and executed word by word."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from tritensor.drivers.ptx.shared import Shared
from tritensor.errors import TritensorError

from .programs import execute

# 16 bytes of shared memory for each of 64 threads: own ones, a neighbour's, those of the other warp, the first
PLACES = (
    "    shl.b32 %r30, %r0, 4;\n    xor.b32 %r31, %r30, 16;\n    xor.b32 %r32, %r30, 512;\n    mov.u32 %r33, 0;\n"
    "    mov.u32 %r34, %ctaid.x;\n    setp.lt.u32 %p1, %r0, 20;\n    setp.eq.u32 %p2, %r34, 1;\n"
    "    mad.lo.s32 %r35, %r34, 64, %r0;\n    mul.wide.u32 %rd20, %r35, 4;\n    add.s64 %rd21, %rd20, %rd1;\n"
)


def _program(draw: random.Random, calm: bool) -> str:
    """Statements on %r10 to %r19; those of a calm program seldom race."""

    def register() -> str:
        return f"%r{draw.randrange(10, 20)}"

    def arithmetic() -> list[str]:
        op = draw.choice(["add.s32", "xor.b32", "mul.lo.s32", "min.s32", "sub.s32"])
        other = draw.choice([register(), str(draw.randrange(1, 40))])
        wide = f"mul.wide.u32 %rd30, {register()}, 3;\n    mov.b64 {{{register()}, {register()}}}, %rd30;"
        ends = f"bfe.s32 {register()}, {register()}, {draw.randrange(32)}, {draw.randrange(33)};"
        return [draw.choice([*[f"{op} {register()}, {register()}, {other};"] * 5, wide, ends])]

    def store() -> list[str]:
        words = f"{{{', '.join(register() for _ in range(4))}}}"
        one = f"st.shared.b32 [{place()}+{draw.choice([0, 4, 8])}], {register()};"
        return [draw.choice([one, one, f"st.shared.v4.b32 [{place()}], {words};"])]

    def load() -> list[str]:
        words = f"{{{', '.join(f'%r{at}' for at in draw.sample(range(10, 20), 4))}}}"
        one = f"ld.shared.b32 {register()}, [{place()}+{draw.choice([0, 4, 8])}];"
        other = [f"ld.shared.v4.b32 {words}, [{place()}];", f"ld.global.b32 {register()}, [%rd21];"]
        return [draw.choice([one, one, *other])]

    def exchange() -> list[str]:
        return [f"shfl.sync.bfly.b32 {register()}, {register()}, {draw.randrange(1, 32)}, 31, -1;"]

    def place() -> str:
        return chosen if calm else draw.choice(["%r30", "%r30", "%r31", "%r32", "%r33"])

    lines = [f"mad.lo.s32 %r{at}, %r0, {draw.randrange(99)}, {at};" for at in range(10, 20)]
    lines += ["st.shared.v4.b32 [%r30], {%r10, %r11, %r12, %r13};", "bar.sync 0;"]
    kinds: list[Callable[[], list[str]]] = [arithmetic, arithmetic, store, load, exchange]
    for number in range(draw.randrange(4, 20)):
        kind, chosen = draw.choice(kinds), draw.choice(["%r30", "%r31", "%r32"])
        guard = "" if kind is exchange else draw.choice([*[""] * 4, "@%p1 ", "@!%p1 ", "@%p2 "])
        lines += ["bar.sync 0;"] * (calm and kind in (store, load))
        made = [line for _ in range(draw.choice([1, 3, 5])) for line in kind()]
        lines += [guard + line for line in made if not guard or "\n" not in line]
        if draw.random() < 0.15:
            lines += ["bar.sync 0;", f"@%p2 bra $L_{number};", *arithmetic(), *store(), f"$L_{number}:", "bar.sync 0;"]
        lines += ["bar.sync 0;"] * (draw.random() < 0.3)
    lines += [f"st.global.b32 [%rd21+{1024 * at}], %r{10 + at};" for at in range(10)]
    return PLACES + "\n".join(f"    .loc 1 {10 + n} 0\n    {line}" for n, line in enumerate(lines)) + "\n"


def _outcome(body: str) -> tuple[str, bytes]:
    out = np.arange(3072, dtype=np.uint32)
    try:
        execute(body, out, threads=64, grid=3, shared=1024)
    except TritensorError as error:
        return str(error), out.tobytes()
    return "", out.tobytes()


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(n, marks=pytest.mark.thorough) for n in range(12, 60))])
def test_short_cuts_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [_program(random.Random(f"{seed} {at}"), at % 3 > 0) for at in range(6)]
    found = [_outcome(body) for body in bodies]
    again = [_outcome(body) for body in bodies]  # with what is known of their accesses
    with monkeypatch.context() as patch:
        patch.setattr(Shared, "row", lambda self, value: None)
        for body, *ours in zip(bodies, found, again, strict=True):
            assert [_outcome(body)] * 2 == ours, body
    assert any(not error for error, _ in found), "no program runs to its end"


def test_of_a_pair_one_half_may_be_undefined() -> None:
    pairs = [f"cvt.rn.bf16x2.f32 %r{20 + n}, %r{30 + n}, %r{10 + n};" for n in range(3)]
    lines = [f"mov.b32 %r{10 + n}, 0f3F800000;" for n in range(3)] + pairs
    lines += ["setp.gt.u32 %p1, %r0, 99;", "mul.wide.u32 %rd20, %r0, 4;", "add.s64 %rd21, %rd20, %rd1;"]
    lines += [f"@%p1 mov.b32 %r{30 + n}, 0;" for n in range(3)]  # written, but behind
    lines += [f"st.global.b32 [%rd21+{128 * n}], %r{20 + n};" for n in range(3)]
    out = np.zeros(96, np.uint32)
    execute("\n".join(lines), out)
    assert (out & 0xFFFF == 0x3F80).all()
