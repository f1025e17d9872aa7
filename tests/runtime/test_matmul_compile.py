"""What the compiler makes of the kernels behind matrix products, without a GPU: no spilled registers, tiles that fit
shared memory, tensor cores fed by the copy engine or by wide copies. Every configuration of the tables."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tritensor as torch
from tritensor.drivers import DeviceProperties
from tritensor.functional import gelu, linear
from tritensor.kernels.matmul.blocks import DESCRIBED, LONG, POINTERS, Blocks, Problem, choose
from tritensor.kernels.matmul.descriptors import described_matmul_kernel
from tritensor.kernels.matmul.kernel import finish_kernel, matmul_kernel
from tritensor.kernels.matmul.launch import MULTIPLIED
from tritensor.kernels.matmul.matvec import matvec_kernel
from tritensor.operators import registry
from tritensor.runtime.launch import compile_ahead
from tritensor.types import dtypes

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("compiling needs Triton", allow_module_level=True)

from tritensor.kernels.matmul.family import body_of
from tritensor.runtime import compiler

from ..devices.compile_only import compile_only
from .machine_code import read

HOPPER = ("cuda", 90)
H200 = DeviceProperties("H200", 9, 0, 0, 132)
SHARED = 232448  # bytes that a program may have on sm_90; 227 KB
TRANSPOSES = [(x, y) for x in (False, True) for y in (False, True)]
slow = pytest.mark.slow
bf16, f32 = dtypes.bfloat16, dtypes.float32

KINDS = {
    "half": (bf16, f32, "ieee"),
    "tf32": (f32, f32, "tf32"),
    "tf32x3": (f32, f32, "tf32x3"),
    "ieee": (f32, f32, "ieee"),
    "double": (dtypes.float64, dtypes.float64, "ieee"),
    "sum": (dtypes.int64, dtypes.int64, "sum"),
    "eighth": (dtypes.float8_e4m3fn, f32, "eighth"),
    "fast_eighth": (dtypes.float8_e4m3fn, f32, "ieee"),
}


def of_float8(product: str) -> dict[str, Any]:
    """The constants that products of float8 have beside others."""
    kind = MULTIPLIED[dtypes.float8_e4m3fn]
    types = {"OUT_DTYPE": bf16, "X_TYPE": kind, "Y_TYPE": kind, "SCALES": 2, "BY_LINE": True}
    return types if "eighth" in product else {}


def described(
    product: str,
    blocks: Blocks,
    flips: tuple[bool, bool],
    target: Any = HOPPER,
    *,
    kind: Any = None,
    batched: bool = False,
    epilogue: str = "",
    split: bool = False,
) -> Any:
    """Facts of the kernel on descriptors, for sizes and strides of which nothing but their divisibility is known."""
    stored, _, precision = KINDS[product]
    pointer, steps = f"*{(kind or stored).triton}:16", ("i32:16", "i32:16")
    scales = ("*fp32:16",) * 2 if "eighth" in product else ()
    signature = (
        "*fp32:16" if split else "*bf16:16" if scales else pointer,
        pointer,
        pointer,
        scales or ((pointer,) if epilogue else ()),
        "i32:16",
        "i32:16",
        "i32:16",
        "i32" if batched else "i32:1",
        steps,
        steps,
        steps,
        ("i32", "i32", "i32:1"),
    )
    constants = {
        "EPILOGUE": body_of(registry[epilogue]) if epilogue else None,
        "OUT_DTYPE": f32 if split else kind or stored,
        "SPLIT": split,
        "PRODUCT": precision,
        "X_FLIPPED": flips[0],
        "Y_FLIPPED": flips[1],
        "OUT_BATCHED": batched or split,
        "X_BATCHED": batched,
        "Y_BATCHED": batched,
        "BIAS_ROWS": False,
        "PIECES": blocks.pieces,
        "BLOCK_M": blocks.rows,
        "BLOCK_N": blocks.cols,
        "BLOCK_K": blocks.depth,
        "GROUP": 8,
        **of_float8(product),
    }
    return compile_ahead(described_matmul_kernel, signature, constants, target, blocks.warps, blocks.stages)


def pointed(
    product: str, blocks: Blocks, flips: tuple[bool, bool] = (False, False), target: Any = HOPPER, **changes: Any
) -> Any:
    """Facts of the kernel on pointers."""
    kind, total, precision = KINDS[product]
    pointer = f"*{kind.triton}:16"
    scales = ("*fp32:16",) * 2 if "eighth" in product else ()
    rank = changes.get("RANK", 1)
    steps = [("i32:16", "i32:1", "i32:16") if flipped else ("i32:16", "i32:16", "i32:1") for flipped in flips]
    signature = (
        "*bf16:16" if scales else pointer,
        pointer,
        pointer,
        scales or (pointer,),
        "i32:16",
        "i32:16",
        "i32:16",
        "i32",
        ("i32:1",) * rank,
        *[each[1 - rank :] for each in (("i32:16", "i32:16", "i32:1"), *steps, ("i32", "i32", "i32:1"))],
    )
    constants = {
        "EPILOGUE": None,
        "OUT_DTYPE": kind,
        "TOTAL": total,
        "PRODUCT": precision,
        "RANK": 1,
        "BIAS_ROWS": False,
        "SPLIT": False,
        "EVEN": True,
        "WIDE": False,
        "BLOCK_M": blocks.rows,
        "BLOCK_N": blocks.cols,
        "BLOCK_K": blocks.depth,
        "GROUP": 8,
        **of_float8(product),
        **changes,
    }
    return compile_ahead(matmul_kernel, signature, constants, target, blocks.warps, blocks.stages)


def assert_sound(facts: Any) -> None:
    assert facts.local_bytes == 0
    assert facts.registers is None or facts.registers <= 255
    assert facts.shared <= SHARED


def assert_fed_by_tma(facts: Any) -> None:
    assert_sound(facts)
    ptx = facts.asm["ptx"]
    assert "wgmma.mma_async" in ptx
    loads, stores = (ptx.count(f"cp.async.bulk.tensor.{rank}d.{way}") for rank, way in ((2, "shared"), (2, "global")))
    assert loads and stores, "tiles are not moved by the copy engine"
    assert not re.search(r"cp\.async\.c[ag]\.shared", ptx)


# ---- tensor descriptors, for sm_90 -----------------------------------------------------------------------------------

# operands of bytes are copied so that they lie along the summed dimension
ALONG = (False, True)
EIGHTHS = [(product, blocks) for product in ("eighth", "fast_eighth") for blocks in DESCRIBED[product]]
CONFIGURATIONS = [(name, blocks) for name, table in DESCRIBED.items() if "eighth" not in name for blocks in table]
CONFIGURATIONS += [("half", blocks) for blocks in LONG.values()]
# one of each: the deepest pipeline of halves, and float32 as it is multiplied unless something else is said
QUICK = [("half", LONG[DESCRIBED["half"][0]], (False, True)), ("tf32x3", DESCRIBED["tf32x3"][0], (False, True))]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("product", "blocks", "flips"),
    [
        pytest.param(product, blocks, flips, marks=[] if (product, blocks, flips) in QUICK else slow)
        for product, blocks in CONFIGURATIONS
        for flips in TRANSPOSES
    ],
    ids=str,
)
def test_every_configuration_is_fed_by_the_copy_engine(product: str, blocks: Blocks, flips: tuple[bool, bool]) -> None:
    assert_fed_by_tma(facts := described(product, blocks, flips))
    if product == "tf32x3":
        assert facts.asm["ptx"].count("wgmma.mma_async") % 3 == 0


@pytest.mark.thorough
@pytest.mark.parametrize(("product", "blocks"), EIGHTHS, ids=str)
def test_float8_is_fed_by_the_copy_engine(product: str, blocks: Blocks) -> None:
    assert_fed_by_tma(facts := described(product, blocks, ALONG))
    assert "k32.f32.e4m3.e4m3" in facts.asm["ptx"] and "QGMMA" in facts.asm["sass"]


@slow
@pytest.mark.parametrize(("product", "blocks"), CONFIGURATIONS, ids=str)
@pytest.mark.parametrize("flips", [(False, True), (True, False)], ids=str)
def test_every_configuration_takes_a_bias_and_gelu(product: str, blocks: Blocks, flips: tuple[bool, bool]) -> None:
    if product == "tf32" and blocks.cols == 256:
        pytest.skip("it spills, and is not chosen")
    assert_fed_by_tma(described(product, blocks._replace(pieces=2), flips, epilogue="gelu"))


@slow
@pytest.mark.parametrize(("product", "blocks"), CONFIGURATIONS, ids=str)
def test_every_configuration_takes_batches(product: str, blocks: Blocks) -> None:
    for split in (False, True)[: 1 + (blocks not in LONG.values())]:  # parts of a depth are not that long
        cut = blocks._replace(pieces=max(blocks.pieces, 1 + split))
        assert_sound(facts := described(product, cut, (False, True), batched=True, split=split))
        assert "wgmma.mma_async" in facts.asm["ptx"]
        assert "cp.async.bulk.tensor.3d.shared" in facts.asm["ptx"]


@slow
@pytest.mark.parametrize("blocks", [*DESCRIBED["half"], *LONG.values()], ids=str)
def test_float16_is_multiplied_as_bfloat16_is(blocks: Blocks) -> None:
    assert_fed_by_tma(described("half", blocks, (False, False), kind=dtypes.float16))


@slow
@pytest.mark.parametrize(("product", "blocks"), [*CONFIGURATIONS, *EIGHTHS], ids=str)
def test_every_configuration_compiles_for_blackwell(product: str, blocks: Blocks) -> None:
    if product == "tf32" and blocks.cols == 256:
        pytest.skip("it takes more shared memory than there is, and is not chosen")
    assert_sound(facts := described(product, blocks, (False, True), ("cuda", 100)))
    if "eighth" not in product and blocks not in LONG.values():
        assert_sound(described(product, blocks._replace(pieces=2), (False, True), ("cuda", 100), split=True))
    assert "tcgen05.mma" in facts.asm["ptx"]
    assert "cp.async.bulk.tensor" in facts.asm["ptx"]


def test_descriptors_are_made_in_scratch_memory_aligned_for_them() -> None:
    """What `program.Program` relies on: a size for each program in multiples of 128 bytes, aligned to 128 at most."""
    seen = []
    compile_kernel = compiler.compile_kernel

    def noted(*arguments: Any, **options: Any) -> Any:
        seen.append(compile_kernel(*arguments, **options))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "compile_kernel", noted)
        described(*QUICK[0])
    metadata = seen[0].metadata
    assert metadata.global_scratch_size == 3 * 128
    assert metadata.global_scratch_align <= 128
    assert getattr(metadata, "num_ctas", 1) == 1


# ---- pointers --------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("blocks", "flips", "even"),
    [
        (POINTERS["half"][0], (False, True), True),
        *(
            pytest.param(blocks, flips, even, marks=slow)
            for blocks in POINTERS["half"]
            for flips in TRANSPOSES
            for even in (True, False)
        ),
    ],
    ids=str,
)
def test_half_products_are_wgmma_fed_by_wide_copies(blocks: Blocks, flips: tuple[bool, bool], even: bool) -> None:
    facts = pointed("half", blocks, flips, EVEN=even)
    assert_sound(facts)
    sass = facts.asm["sass"]
    assert "wgmma.mma_async" in facts.asm["ptx"]
    assert "HGMMA" in sass
    assert sass.count("LDGSTS") == sass.count("LDGSTS.E.BYPASS.128") + sass.count("LDGSTS.E.128") > 0


@pytest.mark.thorough
@pytest.mark.parametrize("table", ["tf32x3", "double", "sum"])
def test_other_products_compile_without_spills(table: str) -> None:
    assert_sound(pointed(table, POINTERS[table][-1]))


@pytest.mark.thorough
@pytest.mark.parametrize("product", ["eighth", "fast_eighth"])
def test_float8_on_pointers(product: str) -> None:
    for blocks in POINTERS[product]:
        for even in (True, False):
            facts = pointed(product, blocks, ALONG, EVEN=even)
            assert_sound(facts)
            assert "k32.f32.e4m3.e4m3" in facts.asm["ptx"] and "QGMMA" in facts.asm["sass"]
            # sums are read when they have been waited for; only those that stay in the tensor cores overlap
            waits = re.findall(r"wgmma\.wait_group\.sync\.aligned (\d)", facts.asm["ptx"])
            assert ("1" in waits) is (product == "fast_eighth")


@pytest.mark.thorough
def test_matrices_without_batches_are_read_by_wide_copies() -> None:
    """A linear layer's: the step from matrix to matrix, which there is not, once hid that rows are aligned."""
    ptx = pointed("half", POINTERS["half"][1], (False, True), RANK=0).asm["ptx"]
    assert "1" in re.findall(r"wgmma\.wait_group\.sync\.aligned (\d)", ptx)


@slow
@pytest.mark.parametrize("flips", TRANSPOSES, ids=str)
@pytest.mark.parametrize("table", [name for name in POINTERS if name != "half" and "eighth" not in name])
def test_every_configuration_on_pointers_is_sound(table: str, flips: tuple[bool, bool]) -> None:
    for blocks in POINTERS[table]:
        facts = pointed(table, blocks, flips, EVEN=False)
        assert_sound(facts)
        if table in ("tf32", "tf32x3"):
            assert "wgmma.mma_async" in facts.asm["ptx"]


OTHERS = [(("cuda", 80), 166912), (("cuda", 89), 101376), (("cuda", 100), SHARED), (("cuda", 120), 101376)]


@slow
@pytest.mark.parametrize(("target", "shared"), OTHERS, ids=str)
@pytest.mark.parametrize("table", list(POINTERS))
def test_every_configuration_fits_other_devices(table: str, target: Any, shared: int) -> None:
    """What `choose` makes of the tables there: fewer stages where shared memory is smaller."""
    device = DeviceProperties("", target[1] // 10, target[1] % 10, 0, 100, shared_memory_per_block_optin=shared)
    kind, _, _ = KINDS[table]
    if "eighth" in table and target[1] < 89:
        pytest.skip("it does not multiply float8")
    chosen = {
        choose(Problem(table, size, size, 1024, batches, kind.itemsize), device)
        for size in (64, 128, 512, 1024, 8192)
        for batches in (1, 100)
    }
    for blocks in chosen:
        facts = pointed(table, blocks, (False, True), target, EVEN=False)
        # 64x64 in float32 as it is: 8 bytes on sm_80 by Triton 3.9, whose limit of registers is 168 there
        assert facts.local_bytes <= (8 if table == "ieee" else 0), blocks
        assert facts.shared <= shared, blocks


@slow
@pytest.mark.parametrize("table", [name for name in POINTERS if not name.startswith("tf32x3")])
def test_products_compile_for_amd(table: str) -> None:
    """tf32x3 is not among what Triton multiplies there; `product_for` has "ieee" for devices without it."""
    assert pointed(table, POINTERS[table][-1], (False, True), ("hip", "gfx942"), EVEN=False).local_bytes == 0


@pytest.mark.parametrize("target", [HOPPER, pytest.param(("hip", "gfx942"), marks=slow)], ids=str)
def test_the_second_step_of_a_split_product_compiles(target: Any) -> None:
    signature = ("*bf16:16", "*fp32:16", ("*bf16:16",), "i32:16", "i32", ("i32", "i32:16"), ("i32", "i32:1"))
    constants = {"EPILOGUE": None, "OUT_DTYPE": bf16, "RANK": 2, "BLOCK": 1024}
    assert compile_ahead(finish_kernel, signature, constants, target).local_bytes == 0


@slow
@pytest.mark.parametrize("target", [HOPPER, ("cuda", 80), ("hip", "gfx942")], ids=str)
def test_split_products_compile(target: Any) -> None:
    assert pointed("half", POINTERS["half"][-1], (False, True), target, SPLIT=True, EVEN=False).local_bytes == 0


# ---- the rows of the GPU table --------------------------------------------------------------------------------------


def on_hopper(*shape: int, dtype: Any = f32) -> Any:
    return torch.empty(*shape, dtype=dtype, device="cuda")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "flips", [flips if flips == (False, False) else pytest.param(flips, marks=slow) for flips in TRANSPOSES]
)
def test_tf32_products_overlap_in_every_layout(flips: tuple[bool, bool]) -> None:
    """The group of products before may be running: `wait_group 1`. Read as they lay, three of four layouts had none."""
    torch.set_float32_matmul_precision("high")
    try:
        with compile_only(memory=1 << 40, processors=132) as device:
            x, y = (on_hopper(8192, 8192).t() if flip else on_hopper(8192, 8192) for flip in flips)
            x @ y
    finally:
        torch.set_float32_matmul_precision("highest")
    names = [name for name, _ in device.launches]
    assert names == ["tile_copy"] * (flips[0] + (not flips[1])) + ["described_matmul_matmul"]
    ptx = device.made[-1].asm["ptx"]
    assert "1" in re.findall(r"wgmma\.wait_group\.sync\.aligned (\d)", ptx)


def in_the_loop_over_tiles(activation: str | None, kind: Any) -> int:
    """Instructions that a thread runs for a tile of 128x256 (and a step along the depth)."""
    with compile_only(memory=1 << 40, processors=132) as device, torch.no_grad():
        x, weight = on_hopper(8192, 4096, dtype=kind), on_hopper(4096, 4096, dtype=kind)
        linear(x, weight, on_hopper(4096, dtype=kind), activation=activation)
    code = read(device.made[-1])
    assert code.spilled == 0 and code.registers <= 192
    return max(code.loops)


@slow
@pytest.mark.parametrize("kind", [bf16, dtypes.float16], ids=str)
def test_gelu_of_halves_is_a_short_epilogue(kind: Any) -> None:
    """12 instructions an element, 128 elements a thread; 50 with erfc, and 227 registers."""
    assert in_the_loop_over_tiles("gelu", kind) - in_the_loop_over_tiles(None, kind) <= 13 * 128


@pytest.mark.thorough
def test_gelu_of_halves_alone_is_short() -> None:
    """16 instructions an element with load and store; 56 with erfc. By published rates memory takes as long as 24."""
    for kind in (bf16, dtypes.float16):
        with compile_only(memory=1 << 40) as device:
            gelu(on_hopper(1 << 28, dtype=kind))
        code = read(device.made[-1])
        assert code.spilled == 0 and code.resident == 16 and code.instructions <= 17 * 16


# ---- few rows --------------------------------------------------------------------------------------------------------


def streamed_blocks(kind: Any, rows: int, along: bool, sizes: tuple[int, int] = (4096, 4096)) -> Any:
    return choose(Problem("half", rows, *sizes, itemsize=kind.itemsize, along=along), H200)


def streamed(
    kind: Any, rows: int, along: bool, target: Any = HOPPER, sizes: tuple[int, int] = (4096, 4096), **changes: Any
) -> Any:
    blocks = streamed_blocks(kind, rows, along, sizes)
    total = kind if kind.itemsize == 8 else f32 if kind.is_floating_point else dtypes.int32
    pointer, steps = f"*{kind.triton}:16", ("i32:16", "i32:16", "i32:1")
    signature = (
        pointer,
        pointer,
        pointer,
        (pointer,),
        "i32",
        "i32:16",
        "i32:16",
        "i32",
        ("i32:1",),
        steps,
        steps,
        ("i32:16", "i32:1", "i32:16") if along else steps,
        ("i32", "i32", "i32:1"),
    )
    constants = {
        "EPILOGUE": None,
        "OUT_DTYPE": kind,
        "TOTAL": total,
        "RANK": 1,
        "BIAS_ROWS": False,
        "SPLIT": False,
        "EVEN": True,
        "WIDE": False,
        "ALONG": along,
        "ROWS": blocks.rows,
        "BLOCK_N": blocks.cols,
        "BLOCK_K": blocks.depth,
        **changes,
    }
    return compile_ahead(matvec_kernel, signature, constants, target, blocks.warps, blocks.stages)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "rows", "along"),
    [
        (bf16, 1, True),
        *(
            pytest.param(kind, rows, along, marks=slow)
            for kind in (bf16, f32, dtypes.float64, dtypes.int8, dtypes.int64)
            for rows in (1, 2, 4)
            for along in (True, False)
        ),
    ],
    ids=str,
)
def test_the_large_operand_is_read_in_wide_loads(kind: Any, rows: int, along: bool) -> None:
    for changes in ({}, {"EVEN": False, "SPLIT": True, "OUT_DTYPE": f32}):
        facts = streamed(kind, rows, along, **changes)
        assert_sound(facts)
        loads = re.findall(r"\bLDG\.E\S*", facts.asm["sass"])
        # a thread's share of the large operand, in every stage, by loads of 16 bytes; the rest is read in small ones
        blocks = streamed_blocks(kind, rows, along)
        vectors = blocks.cols * blocks.depth * kind.itemsize // (32 * blocks.warps * 16)
        assert sum(".128" in load for load in loads) >= vectors * blocks.stages


@slow
@pytest.mark.parametrize("kind", [bf16, f32], ids=str)
@pytest.mark.parametrize(("sizes", "along"), [((10**6, 2), True), ((1, 4096), True), ((8, 10**6), False)], ids=str)
def test_narrow_operands_are_read_in_wide_loads(sizes: tuple[int, int], along: bool, kind: Any) -> None:
    facts = streamed(kind, 2, along, sizes=sizes)
    assert_sound(facts)
    assert len(re.findall(r"\bLDG\.E\.128", facts.asm["sass"])) >= 4


@slow
@pytest.mark.parametrize("target", [("cuda", 80), ("cuda", 100), ("hip", "gfx942")], ids=str)
@pytest.mark.parametrize("along", [True, False])
def test_few_rows_compile_for_every_target(along: bool, target: Any) -> None:
    for kind in (bf16, f32):
        assert streamed(kind, 2, along, target).local_bytes == 0
