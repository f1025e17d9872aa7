"""Each kind of mistake in compiled code is found, and told with the source line."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tritensor as torch
from tritensor.drivers.ptx.machine import run
from tritensor.drivers.ptx.memory import Memory
from tritensor.drivers.ptx.parse import parse
from tritensor.errors import KernelError, KernelMemoryError

from ..devices.compile_only import compile_only
from ..needs import needs_triton
from .programs import execute

STORE = "    mul.wide.u32 %rd2, %r0, 4;\n    add.s64 %rd2, %rd2, %rd1;\n    st.global.b32 [%rd2], %r2;"
OWN = "    shl.b32 %r5, %r0, 2;\n"  # each thread's own word of shared memory
NEXT = "    xor.b32 %r6, %r5, 128;\n"  # that of a thread of the other warp
NEAR = "    xor.b32 %r6, %r5, 4;\n"  # that of another thread of the warp

WRONG = {
    "a missing barrier before a read": (
        OWN + NEXT + "    st.shared.b32 [%r5], %r0;\n    ld.shared.b32 %r2, [%r6];\n" + STORE,
        "read that another thread wrote, with no barrier between",
    ),
    "a missing barrier before a write": (
        OWN + NEXT + "    st.shared.b32 [%r5], %r0;\n    bar.sync 0;\n    ld.shared.b32 %r2, [%r6];\n"
        "    add.s32 %r2, %r2, 1;\n    st.shared.b32 [%r5], %r2;\n" + STORE,
        "written that another warp has read, with no barrier between",
    ),
    "two writers between barriers": (
        OWN + NEXT + "    st.shared.b32 [%r5], %r0;\n    st.shared.b32 [%r6], %r0;\n" + STORE,
        "written that another thread wrote, with no barrier between",
    ),
    "two writers at once": (
        "    st.shared.b32 [global_smem], %r0;\n    mov.u32 %r2, 0;\n" + STORE,
        "two threads write different values to the same shared address",
    ),
    "a warp that does not meet": (
        OWN + NEAR + "    st.shared.b32 [%r5], %r0;\n    ld.shared.b32 %r2, [%r6];\n" + STORE,
        "read that another thread wrote, with no barrier between",
    ),
    "shared memory that is never written": (
        OWN + "    ld.shared.b32 %r2, [%r5];\n" + STORE,
        "shared memory is read that nothing has written",
    ),
    "a register that is not written yet": (
        "    add.s32 %r2, %r9, 1;\n    mov.u32 %r9, 0;\n" + STORE,
        "reads register %r9, which nothing has written,",
    ),
    "a barrier that half of the threads reach": (
        "    setp.lt.u32 %p1, %r0, 32;\n    mov.u32 %r2, 0;\n    @%p1 bra $L_skip;\n    bar.sync 0;\n"
        "$L_skip:\n    bar.sync 1;\n" + STORE,
        "a barrier that not all threads of the block reach",
    ),
    "a part of a warp": (
        "    setp.lt.u32 %p1, %r0, 5;\n    mov.u32 %r2, 0;\n    @%p1 bra $L_skip;\n"
        "    shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1;\n$L_skip:\n" + STORE,
        "lanes of a warp do not reach it together",
    ),
    "shared memory that ends": (
        OWN + "    st.shared.b32 [%r5+8], %r0;\n    mov.u32 %r2, 0;\n" + STORE,
        "an access of 4 bytes of shared memory is beyond the 256 bytes there are",
    ),
    "shared memory off its alignment": (
        OWN + "    st.shared.b32 [%r5+2], %r0;\n    mov.u32 %r2, 0;\n" + STORE,
        "an access of 4 bytes of shared memory is misaligned",
    ),
    "a trap": ("    setp.eq.u32 %p1, %r0, 40;\n    @%p1 trap;\n    mov.u32 %r2, 0;\n" + STORE, "a trap was reached"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_errors_that_name_the_line(name: str) -> None:
    body, text = WRONG[name]
    out = np.zeros(64, np.uint32)
    with pytest.raises(KernelError, match=re.escape(text) + r" in program\n  at program\.py:7"):
        execute(body, out, threads=64, shared=256)


MET = {
    "a barrier": ("    bar.sync 0;\n", NEXT),
    "a barrier of a warp": ("    bar.warp.sync -1;\n", NEAR),
    "a named barrier": ("    barrier.sync 3, 64;\n", NEXT),
}


@pytest.mark.parametrize("name", MET)
def test_threads_that_meet_may_share(name: str) -> None:
    meet, other = MET[name]
    body = OWN + other + "    st.shared.b32 [%r5], %r0;\n" + meet + "    ld.shared.b32 %r2, [%r6];\n" + STORE
    out = np.zeros(64, np.uint32)
    execute(body, out, threads=64, shared=256)
    assert out.tolist() == [lane ^ (1 if other is NEAR else 32) for lane in range(64)]


def test_threads_may_write_the_same_value_and_return_before_a_barrier() -> None:
    out = np.zeros(64, np.uint32)
    body = """
    st.shared.b32 [global_smem], 7;
    mov.u32 %r2, 1;
    setp.ge.u32 %p1, %r0, 32;
    @%p1 ret;
    bar.sync 0;
    ld.shared.b32 %r2, [global_smem];
"""
    execute(body + STORE, out, threads=64, shared=16)
    assert out.tolist() == [7] * 32 + [0] * 32


def test_threads_may_write_different_nans() -> None:
    """As sums of NaN by several orders are in NumPy; on a card they are one NaN."""
    out = np.zeros(64, np.uint32)
    body = """
    or.b32 %r2, %r0, 0x7fc00000;
    st.shared.b32 [global_smem], %r2;
    mov.u32 %r2, 1;
"""
    execute(body + STORE, out, threads=64, shared=16)
    assert out.tolist() == [1] * 64


def test_an_asynchronous_copy_has_landed_only_after_its_wait() -> None:
    x, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    copy = (
        OWN + "    mul.wide.u32 %rd3, %r0, 4;\n    add.s64 %rd3, %rd3, %rd2;\n"
        "    cp.async.ca.shared.global [%r5], [%rd3], 4;\n"
    )
    store = STORE.replace("%rd2", "%rd9")
    read = "    bar.sync 0;\n    ld.shared.b32 %r2, [%r5];\n" + store
    execute(copy + "    cp.async.commit_group;\n    cp.async.wait_group 0;\n" + read, out, x, threads=64, shared=256)
    assert out.tolist() == x.tolist()
    for waits in ("", "    cp.async.commit_group;\n", "    cp.async.commit_group;\n    cp.async.wait_group 1;\n"):
        with pytest.raises(KernelError, match="shared memory is read that nothing has written"):
            execute(copy + waits + read, out, x, threads=64, shared=256)


@pytest.mark.parametrize(
    ("statement", "error", "text"),
    [
        (
            "    st.global.b32 [%rd2+4], %r0;",
            KernelMemoryError,
            "a write of 4 bytes at .*, 256 bytes into argument 0 of 256",
        ),
        (
            "    ld.global.b32 %r2, [%rd2+-512];",
            KernelMemoryError,
            "illegal memory access was encountered: a read of 4 bytes",
        ),
        ("    ld.global.v2.b32 {%r2, %r3}, [%rd2];", KernelMemoryError, "misaligned address of 8 bytes"),
    ],
)
def test_global_memory_is_checked(statement: str, error: type[Exception], text: str) -> None:
    out = np.zeros(64, np.uint32)
    body = "    mul.wide.u32 %rd2, %r0, 4;\n    add.s64 %rd2, %rd2, %rd1;\n" + statement
    with pytest.raises(error, match=text):
        execute(body, out, threads=64)


# ---- of kernels in Triton -------------------------------------------------------------------------------------------


def compiled(function, capability: int = 90) -> str:
    with compile_only(("cuda", capability)) as device:
        function()
    return device.made[-1].asm["ptx"]


@needs_triton
@pytest.mark.parametrize("capability", [80, 90])
def test_a_kernel_without_its_barrier_races(capability: int) -> None:
    text = compiled(lambda: torch.softmax(torch.empty(4, 2000, device="cuda"), 1), capability)
    kernel = parse(text)
    x, out = np.random.default_rng(0).standard_normal((4, 2000)).astype(np.float32), np.zeros((4, 2000), np.float32)

    def launch(text: str) -> None:
        spans = [(array.ctypes.data, array.nbytes, "x") for array in (x, out)]
        values = [out.ctypes.data, x.ctypes.data, 2000, 2000, 1, 4, 2000, 0, 0]
        assert len(values) == len(kernel.parameters)
        run(parse(text), (4, 1, 1), values, Memory(sorted(spans)), shared=1 << 14)

    launch(text)
    np.testing.assert_allclose(out.sum(1), 1, rtol=1e-5)
    assert "bar.sync" in text
    with pytest.raises(
        KernelError, match=r"(no barrier between|nothing has written) in rowwise_softmax\n  at \w+\.py:\d+"
    ):
        launch(text.replace("\tbar.sync \t0;", ""))


@needs_triton
def test_a_kernel_of_a_user_is_checked_by_what_was_compiled() -> None:
    triton = pytest.importorskip("triton")
    tl = pytest.importorskip("triton.language")

    @torch.cuda.jit
    def ratio(out_ptr, x_ptr, n, EXACT: tl.constexpr, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n)
        tl.store(out_ptr + i, tl.div_rn(x, x) if EXACT else x / x, mask=i < n)

    @torch.cuda.jit
    def shift(out_ptr, x_ptr, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i + 1))

    with torch.cuda.simulate(compiled=True):
        x = torch.arange(1, 1001, device="cuda", dtype=torch.float32)
        out = torch.empty(1000, device="cuda")
        ratio[(triton.cdiv(1000, 256),)](out, x, 1000, EXACT=True, BLOCK=256)
        assert (out == 1).all().item()
        ratio[(triton.cdiv(1000, 256),)](out, x, 1000, EXACT=False, BLOCK=256)
        assert not (out == 1).all().item(), "the card's division is approximate, and the interpreter's is not"
        assert (out.cpu() - 1).abs().max().item() <= 2.0**-22
        with pytest.raises(
            KernelMemoryError, match=r"illegal memory access(?s:.*) in shift\n  at test_mistakes\.py:\d+"
        ):
            shift[(4,)](out, x, BLOCK=256)
