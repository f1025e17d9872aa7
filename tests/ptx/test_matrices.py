"""Products of fragments and copies of tiles, beside plain ones, by the layouts that NVIDIA's manual draws."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tritensor.errors import KernelError

from .programs import execute

BITS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32, "f64": np.float64}
BITS |= {"s8": np.int8, "u8": np.uint8, "s32": np.int32, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def numbers(name: str, *shape: int) -> np.ndarray:
    """Small whole numbers, whose products any type holds exactly."""
    return np.random.default_rng(len(shape)).integers(0 if name == "u8" else -4, 5, shape).astype(BITS[name])


def exact(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def fragment(matrix: np.ndarray, of: str, registers: int) -> np.ndarray:
    """The registers, (registers, lanes), of a matrix, "a", "b" or "c" (and d), by element as the manual says."""
    size = matrix.dtype.itemsize
    packed = max(4 // size, 1)
    out = np.zeros((registers, 32, packed), matrix.dtype)
    tall = matrix.shape[0] == 16
    for register in range(registers):
        for lane in range(32):
            group, member = lane >> 2, lane % 4
            for e in range(packed):
                if of == "a":  # registers go down the halves first, then along k
                    row = group + 8 * (register % 2 if tall else 0)
                    column = 4 * packed * (register // 2 if tall else register) + member * packed + e
                elif of == "b":
                    row, column = member * packed + e + 4 * packed * register, group
                else:
                    index = register * packed + e
                    row, column = group + 8 * (index // 2), member * 2 + index % 2
                out[register, lane, e] = matrix[row, column]
    return out.view(np.uint64 if size == 8 else np.uint32)[:, :, 0]


def load(name: str, array: int, count: int, width: int = 32) -> tuple[str, str]:
    """Statements that load `count` registers of a lane from an array, and the registers in braces."""
    regs = [f"%{name}{n}" for n in range(count)]
    lines = [f".reg .b{width} %{name}<{count}>;", f"mul.wide.u32 %rd30, %r0, {width // 8};"]
    lines.append(f"add.s64 %rd30, %rd30, %rd{array};")
    lines += [f"ld.global.b{width} {reg}, [%rd30+{n * 32 * width // 8}];" for n, reg in enumerate(regs)]
    return "\n".join(lines), "{" + ", ".join(regs) + "}"


def store(regs: str, array: int, width: int = 32, threads: int = 32) -> str:
    lines = [f"mul.wide.u32 %rd30, %r0, {width // 8};", f"add.s64 %rd30, %rd30, %rd{array};"]
    for n, reg in enumerate(regs.strip("{}").split(",")):
        lines.append(f"st.global.b{width} [%rd30+{n * threads * width // 8}], {reg.strip()};")
    return "\n".join(lines)


SHAPES = [
    ("m16n8k16", "f32.f16.f16.f32"),
    ("m16n8k16", "f32.bf16.bf16.f32"),
    ("m16n8k8", "f32.bf16.bf16.f32"),
    ("m16n8k8", "f16.f16.f16.f16"),
    ("m16n8k8", "f32.tf32.tf32.f32"),
    ("m16n8k4", "f32.tf32.tf32.f32"),
    ("m8n8k4", "f64.f64.f64.f64"),
    ("m16n8k8", "f64.f64.f64.f64"),
    ("m16n8k32", "s32.s8.u8.s32"),
    ("m16n8k16", "s32.s8.s8.s32"),
    ("m16n8k32", "f32.e4m3.e5m2.f32"),
]


@pytest.mark.parametrize(("shape", "types"), SHAPES)
def test_products_of_a_warp(shape: str, types: str) -> None:
    to, left, right, total = types.split(".")
    m, n, k = int(shape[1 : shape.index("n")]), 8, int(shape.split("k")[1])
    a, b, c = numbers(left, m, k), numbers(right, k, n), numbers(total, m, n)
    width = {"f64": 64}.get(to, 32)
    count = {name: x.size * x.dtype.itemsize // (32 * width // 8) for name, x in (("a", a), ("b", b), ("c", c))}
    inputs = [fragment(x, name, count[name]) for name, x in (("a", a), ("b", b), ("c", c))]
    expected = fragment((exact(a) @ exact(b) + exact(c)).astype(BITS[to]), "c", count["c"])
    result = np.zeros_like(expected)
    loads = [load(name, at, count[name], width) for at, name in enumerate("abc", 1)]
    braces = [regs for _, regs in loads]
    operation = f"mma.sync.aligned.{shape}.row.col.{types} {braces[2]}, {', '.join(braces)};"
    execute("\n".join([text for text, _ in loads] + [operation, store(braces[2], 4, width)]), *inputs, result)
    np.testing.assert_array_equal(result, expected)


def test_tf32_drops_the_low_bits_and_integers_wrap_or_stop() -> None:
    a, b = np.full((16, 4), np.float32(1 + 2**-10 + 2**-20)), np.ones((4, 8), np.float32)
    out = np.zeros((4, 32), np.float32)
    loads = [load(name, at, count) for at, (name, count) in enumerate((("a", 2), ("b", 1), ("c", 4)), 1)]
    text = "\n".join(text for text, _ in loads)
    (_, x), (_, y), (_, z) = loads
    arrays = fragment(a, "a", 2), fragment(b, "b", 1), np.zeros((4, 32), np.uint32), out
    execute(f"{text}\nmma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {z}, {x}, {y}, {z};\n{store(z, 4)}", *arrays)
    assert (out == 4 * (1 + 2**-10)).all()
    most = np.full((4, 32), 2**31 - 1, np.int32)
    ones = np.full((2, 32), 0x01010101, np.uint32)
    for modifier, wanted in (("", -(2**31) + 15), (".satfinite", 2**31 - 1)):
        result = np.zeros((4, 32), np.int32)
        operation = f"mma.sync.aligned.m16n8k16.row.col{modifier}.s32.s8.s8.s32 {z}, {x}, {y}, {z};"
        execute(f"{text}\n{operation}\n{store(z, 4)}", ones, ones, most, result)
        assert (result == wanted).all()


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("turned", ["", ".trans"])
def test_matrices_from_and_to_shared_memory(count: int, turned: str) -> None:
    """Row r of matrix i begins where lane 8i + r says; lane l gets elements 2 * (l % 4) and the next of row l // 4."""
    matrices = np.arange(4 * 64, dtype=np.uint16).reshape(4, 8, 8)
    regs = ", ".join(f"%r{10 + n}" for n in range(count))
    common = "mov.u32 %r1, global_smem;\nshl.b32 %r2, %r0, 4;\nadd.u32 %r3, %r1, %r2;\n"
    place = "mul.wide.u32 %rd10, %r0, 16;\nadd.s64 %rd10, %rd10, %rd1;\n"
    through = "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd10];\nst.shared.v4.b32 [%r3], {%r4, %r5, %r6, %r7};\n"
    out = np.zeros((count, 32), np.uint32)
    # the addresses of other lanes are not looked at
    wild = f"setp.ge.u32 %p2, %r0, {8 * count};\nselp.b32 %r8, -1, %r3, %p2;\nbar.sync 0;\n"
    loads = f"{wild}ldmatrix.sync.aligned.m8n8.x{count}{turned}.shared.b16 {{{regs}}}, [%r8];\n"
    execute(common + place + through + loads + store(f"{{{regs}}}", 2), matrices, out, shared=512)
    wanted = matrices.swapaxes(1, 2) if turned else matrices
    expected = np.zeros((count, 32, 2), np.uint16)
    for i in range(count):
        for lane in range(32):
            expected[i, lane] = wanted[i, lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2]
    np.testing.assert_array_equal(out.view(np.uint16).reshape(expected.shape), expected)

    back = np.full((4, 8, 8), 7, np.uint16)
    text, braces = load("a", 1, count)
    stores = f"{wild}stmatrix.sync.aligned.m8n8.x{count}{turned}.shared.b16 [%r8], {braces};\nbar.sync 0;\n"
    leave = "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r3];\nmul.wide.u32 %rd10, %r0, 16;\nadd.s64 %rd10, %rd10, %rd2;\n"
    leave += f"setp.lt.u32 %p1, %r0, {8 * count};\n@!%p1 bra $L_end;\n"
    write = "st.global.v4.b32 [%rd10], {%r4, %r5, %r6, %r7};\n$L_end:\n"
    first, rest = leave.split("\n", 1)
    execute(common + text + "\n" + stores + rest + first + "\n" + write, expected, back, shared=512)
    np.testing.assert_array_equal(back[:count], matrices[:count])
    assert (back[count:] == 7).all()


# ---- products of warpgroups -----------------------------------------------------------------------------------------


def arranged(matrix: np.ndarray, width: int, turned: bool) -> tuple[np.ndarray, int, int, int]:
    """The bytes of an operand (lines, depth) in shared memory, and width code, leading and stride distance.

    By the manual's "canonical layouts": atoms of 8 lines, or of 8 places of the depth, of `width` bytes.
    """
    lines, depth = matrix.shape
    size = matrix.dtype.itemsize
    atom = 8 * width
    wide = width // size  # elements that lie side by side
    outer = -(-(lines if turned else depth) // wide)
    inner = (depth if turned else lines) // 8
    leading, stride = inner * atom, atom
    out = np.zeros(outer * inner * atom, np.uint8)
    for line in range(lines):
        for k in range(depth):
            along, across = (line, k) if turned else (k, line)
            at = along // wide * leading + across // 8 * stride + across % 8 * width + along % wide * size
            if width > 16:  # bits 4 to 6 are exchanged by bits 7 to 9; of 64 and 32 bytes only the lower ones
                at ^= (at >> 7 & (width // 16 - 1)) << 4
            out[at : at + size] = matrix[line, k : k + 1].view(np.uint8)
    if width == 16 and turned:  # without a swizzle the two distances change places
        leading, stride = stride, leading
    return out, {16: 0, 128: 1, 64: 2, 32: 3}[width], leading, stride


def descriptor(code: int, leading: int, stride: int) -> int:
    return code << 62 | (stride // 16) << 32 | (leading // 16) << 16


def product(a: np.ndarray, b: np.ndarray, name: str, width: int, turned: tuple[bool, bool], **how: Any) -> np.ndarray:
    """`a @ b.T`, 64 rows, by one warpgroup with both operands in shared memory, in the order of registers."""
    held, tail, late = how.get("held"), how.get("tail", "wgmma.wait_group.sync.aligned 0;"), how.get("late", False)
    (x, *from_x), (y, *from_y) = arranged(a, width, turned[0]), arranged(b, width, turned[1])
    start = -(-len(x) // 1024) * 1024
    shared = np.concatenate([x, np.zeros(start - len(x), np.uint8), y])
    shared = np.concatenate([shared, np.zeros(-len(shared) % 2048, np.uint8)])
    columns, depth = b.shape[0], a.shape[1]
    count = columns // 2
    regs = "{" + ", ".join(f"%d{n}" for n in range(count)) + "}"
    copy = ["mov.u32 %r1, global_smem;", "mul.wide.u32 %rd10, %r0, 16;", "add.s64 %rd10, %rd10, %rd1;"]
    copy += ["cvt.u32.u64 %r2, %rd10;", "shl.b32 %r3, %r0, 4;", "add.u32 %r3, %r3, %r1;"]
    for step in range(0, len(shared), 2048):
        copy += [f"ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd10+{step}];"]
        copy += [f"st.shared.v4.b32 [%r3+{step}], {{%r4, %r5, %r6, %r7}};"]
    left, text = "%rd11", ""
    out = np.zeros((count, 128), np.float32)
    arrays: list[np.ndarray] = [shared, out]
    if held:
        warps = [fragment(a[16 * w : 16 * w + 16], "a", 4) for w in range(4)]
        arrays.append(np.ascontiguousarray(np.concatenate(warps, 1)))
        text = ".reg .b32 %a<4>;\nmul.wide.u32 %rd30, %r0, 4;\nadd.s64 %rd30, %rd30, %rd3;\n"
        text += "\n".join(f"ld.global.b32 %a{n}, [%rd30+{512 * n}];" for n in range(4))
        left = "{%a0, %a1, %a2, %a3}"
    flags = "" if name == "tf32" else f", {turned[1]:d}" if held else f", {turned[0]:d}, {turned[1]:d}"
    flags = f", 0, {how.get('sign', 1)}, 1{flags}"
    body = [
        f".reg .b32 %d<{count}>;",
        *copy,
        text,
        "fence.proxy.async.shared::cta;",
        "bar.sync 0;",
        f"mov.b64 %rd11, {descriptor(*from_x)};",
        f"mov.b64 %rd12, {descriptor(*from_y) + start // 16};",
        "wgmma.fence.sync.aligned;",
        f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.f32.{name}.{name} {regs}, {left}, %rd12{flags};",
        "wgmma.commit_group.sync.aligned;",
        tail,
        store(regs, 2, threads=128),
    ]
    execute("\n".join(body), *arrays, threads=128, shared=len(shared), late=late)
    return out


def spread(matrix: np.ndarray) -> np.ndarray:
    """The registers of a float32 result of 64 rows, (registers, threads)."""
    out = np.zeros((matrix.shape[1] // 2, 128), np.float32)
    for register in range(len(out)):
        for thread in range(128):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (register // 2 % 2)
            out[register, thread] = matrix[row, 8 * (register // 4) + thread % 4 * 2 + register % 2]
    return out


@pytest.mark.sampled(6)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("width", [128, 64, 32, 16])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_a_warpgroup(width: int, turned: tuple[bool, bool], late: bool) -> None:
    a, b = numbers("f16", 64, 16), numbers("f16", 128, 16)
    expected = spread(exact(a) @ exact(b).T)
    np.testing.assert_array_equal(product(a, b, "f16", width, turned, late=late), expected)
    np.testing.assert_array_equal(product(a, b, "f16", width, turned, held=True, sign=-1, late=late), -expected)


@pytest.mark.parametrize(("name", "depth"), [("tf32", 8), ("bf16", 16), ("e4m3", 32)])
def test_types_of_products_of_a_warpgroup(name: str, depth: int) -> None:
    a, b = numbers(name, 64, depth), numbers(name, 8, depth)
    flags = (False, False)
    np.testing.assert_array_equal(product(a, b, name, 32, flags), spread(exact(a) @ exact(b).T))


@pytest.mark.parametrize("tail", ["", "wgmma.wait_group.sync.aligned 1;"])
def test_late_sums_have_no_value_before_they_are_waited_for(tail: str) -> None:
    a, b = numbers("f16", 64, 16), numbers("f16", 8, 16)
    assert np.isnan(product(a, b, "f16", 32, (False, False), tail=tail, late=True)).all()
    assert not np.isnan(product(a, b, "f16", 32, (False, False), tail=tail)).any()


# ---- copies of tiles ------------------------------------------------------------------------------------------------

WAIT = """
{ .reg .pred done;
again: mbarrier.try_wait.parity.shared::cta.b64 done, [%r10], 0;
@!done bra again; }
"""


def replaced(field: str, value: str, width: int = 32) -> str:
    return f"tensormap.replace.tile.{field}.shared::cta.b1024.b{width} [%r11], {value};\n"


def copied(source: np.ndarray, box: tuple[int, int], first: tuple[int, int], **how: Any) -> np.ndarray:
    """A tile (rows, columns) of float32, swizzled by 128 bytes, through shared memory at 1024 into zeros elsewhere."""
    rows, columns = source.shape
    target = np.zeros_like(source)
    scratch = np.zeros(256 + 128, np.uint8)
    scratch = scratch[-scratch.ctypes.data % 128 :][:256]
    nbytes = 4 * box[0] * box[1]

    def describe(address: str, at: int) -> str:
        text = "@%p2 st.shared.b32 [%r12], 0;\nbar.warp.sync -1;\n@!%p1 bra $L_skip{at};\n"
        text += replaced("global_address", address, 64) + replaced("rank", "1")
        for axis, (extent, size) in enumerate(((columns, box[1]), (rows, box[0]))):
            text += replaced("box_dim", f"{axis}, {size}") + replaced("global_dim", f"{axis}, {extent}")
            text += replaced("element_stride", f"{axis}, 1")
        text += replaced("global_stride", f"0, {4 * columns}", 64).replace(f"{4 * columns};", "%rd20;")
        text += replaced("elemtype", "7") + replaced("swizzle_mode", "3") + "$L_skip{at}:\nbar.warp.sync -1;\n"
        text += "@%p2 tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
        text += f"[%rd3+{128 * at}], [%r11], 128;\n"
        if how.get("acquired", True):
            text += f"@%p2 fence.proxy.tensormap::generic.acquire.gpu [%rd3+{128 * at}], 128;\n"
        return text.replace("{at}", str(at)) + "bar.sync 0;\n"

    body = f"""
    mov.u32 %r11, global_smem;
    add.u32 %r10, %r11, 256;
    add.u32 %r13, %r11, 1024;
    shl.b32 %r12, %r0, 2;
    add.u32 %r12, %r12, %r11;
    setp.lt.u32 %p2, %r0, 32;
    setp.eq.u32 %p1, %r0, 0;
    mov.b64 %rd20, {4 * columns};
    {describe("%rd1", 0)}
    {describe("%rd2", 1)}
    @%p1 mbarrier.init.shared::cta.b64 [%r10], 1;
    bar.sync 0;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], {how.get("expected", nbytes)};
    elect.sync _|%p3, -1;
    and.pred %p3, %p3, %p2;
    @%p3 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes
        [%r13], [%rd3, {{{first[1]}, {first[0]}}}], [%r10];
    {how.get("wait", WAIT)}
    bar.sync 0;
    {how.get("use", "")}
    @%p3 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3+128, {{{first[1]}, {first[0]}}}], [%r13];
    cp.async.bulk.commit_group;
    {how.get("end", "cp.async.bulk.wait_group.read 0;")}
    """
    arrays = source, target, scratch, *how.get("arrays", ())
    execute(body, *arrays, threads=64, shared=1024 + nbytes, late=how.get("late", False))
    return target


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("first", [(0, 0), (8, 32), (-3, 28), (30, -7), (100, 0)])
def test_tiles_are_copied_and_cut_at_the_edges(first: tuple[int, int], late: bool) -> None:
    source = np.arange(36.0 * 52, dtype=np.float32).reshape(36, 52) + 1
    expected = np.zeros_like(source)
    rows, columns = slice(max(first[0], 0), first[0] + 16), slice(max(first[1], 0), first[1] + 32)
    expected[rows, columns] = source[rows, columns]
    np.testing.assert_array_equal(copied(source, (16, 32), first, late=late), expected)


def test_tiles_lie_swizzled_in_shared_memory_with_zeros_beyond_the_edges() -> None:
    source = np.arange(36.0 * 52, dtype=np.float32).reshape(36, 52) + 1
    seen = np.full((16, 32), 9, np.float32)
    use = "mul.wide.u32 %rd10, %r0, 32;\nadd.s64 %rd10, %rd10, %rd4;\nshl.b32 %r5, %r0, 5;\nadd.u32 %r5, %r5, %r13;\n"
    for step in (0, 16):
        use += f"ld.shared.v4.b32 {{%r6, %r7, %r8, %r9}}, [%r5+{step}];\n"
        use += f"st.global.v4.b32 [%rd10+{step}], {{%r6, %r7, %r8, %r9}};\n"
    copied(source, (16, 32), (28, 40), arrays=(seen,), use=use)
    expected = np.zeros((16, 32), np.float32)
    for row in range(8):
        for column in range(12):
            expected[row, column // 4 % 8 * 4 + column % 4] = source[28 + row, 40 + column]
    chunks = expected.reshape(16, 8, 4)
    swizzled = np.stack([chunks[row][np.arange(8) ^ row % 8] for row in range(16)])
    np.testing.assert_array_equal(seen.reshape(16, 8, 4), swizzled)


SOURCE = np.ones((36, 52), np.float32)


def test_late_tiles_are_not_read_or_written_before_they_are_waited_for() -> None:
    with pytest.raises(KernelError, match="that nothing has written"):
        copied(SOURCE, (16, 32), (0, 0), wait="", late=True)
    assert not copied(SOURCE, (16, 32), (0, 0), end="", late=True).any()
    assert copied(SOURCE, (16, 32), (0, 0), wait="", end="").any()  # what a program that is not late hides


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"expected": 4096}, "a wait that never ends"),
        ({"acquired": False}, "fence.proxy.tensormap has not acquired"),
        ({"wait": WAIT.replace("%r10", "%r13")}, "was not initialised"),
    ],
)
def test_mistakes_with_tiles_are_told(how: dict[str, Any], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        copied(SOURCE, (16, 32), (0, 0), **how)


def test_a_tile_beyond_its_swizzle_is_refused() -> None:
    with pytest.raises(KernelError, match="boxes wider than their swizzle"):
        copied(SOURCE, (8, 36), (0, 0))
