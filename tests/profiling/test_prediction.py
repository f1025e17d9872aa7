"""Predicted times of demands that are written down here, and what cards, instructions and binaries are read as."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import tritensor as torch
from tritensor.cuda.profiling.cards import CARDS, card
from tritensor.cuda.profiling.instructions import class_of, matrix_work, operations
from tritensor.cuda.profiling.launches import Prediction, occupancy, predict
from tritensor.errors import ArgumentError
from tritensor.runtime.binary import usage

from ..devices.compile_only import compile_only
from ..needs import needs_triton

H100 = card("h100")


@pytest.mark.parametrize(
    ("name", "registers", "shared", "threads", "expected"),
    [
        # by the rules of NVIDIA's cuda_occupancy.h
        ("h100", 32, 0, 128, (16, "warps")),
        ("h100", 33, 0, 128, (12, "registers")),
        ("h100", 168, 0, 128, (3, "registers")),
        ("h100", 255, 0, 256, (1, "registers")),
        ("h100", 40, 0, 32, (32, "blocks")),
        ("h100", 32, 113 << 10, 128, (2, "shared memory")),
        ("h100", 32, 227 << 10, 128, (1, "shared memory")),
        ("a100", 32, 113 << 10, 128, (1, "shared memory")),
        ("a100", 64, 0, 1024, (1, "registers")),
    ],
)
def test_occupancy(name: str, registers: int, shared: int, threads: int, expected: tuple[int, str]) -> None:
    assert occupancy(card(name).generation, registers, shared, threads) == expected


def predicted(blocks: int = 132 * 64, **asked: object) -> Prediction:
    usual = {"threads": 128, "resident": 8, "warps": {}, "dram": 0.0, "l2": 0.0, "wavefronts": 0, "waits": 0}
    usual["together"] = False
    return predict(H100, SimpleNamespace(blocks=blocks, **{**usual, **asked}))


def test_bounds() -> None:
    def bound(**asked: object) -> tuple[str, float]:
        found = predicted(**asked)  # type: ignore[arg-type]
        return found.bound, found.seconds * 1e6

    product = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"
    assert bound() == ("launch", pytest.approx(0.9))
    assert bound(dram=3.35e9, l2=3.35e9) == ("DRAM", pytest.approx(1000.9))
    assert bound(l2=8.986e9) == ("L2", pytest.approx(1000.9))
    assert bound(warps={"fma.rn.f32": 4 * 132 * 1.83e6}) == ("issue", pytest.approx(1000.9))
    assert bound(warps={"ex2.approx.f32": 0.5 * 132 * 1.83e6}) == ("special units", pytest.approx(1000.9))
    assert bound(warps={product: 989.4e9 / (2 * 16 * 256 * 16)}) == ("tensor cores", pytest.approx(1000.9))
    assert bound(wavefronts=132 * 1.83e6) == ("shared memory", pytest.approx(1000.9))
    assert bound(waits=1.83e6 / 479 / 8) == ("latency", pytest.approx(1000.9))  # in eight waves


def test_waves_and_what_does_not_overlap() -> None:
    busy = {"add.f32": 4 * 132 * 1.83e6}

    def seconds(blocks: int = 132 * 64, **asked: object) -> float:
        return predicted(blocks, **{"warps": busy, **asked}).seconds * 1e6

    assert seconds(132) == pytest.approx(1000.9)
    assert seconds(133) == pytest.approx(1000 * 2 * 132 / 133 + 0.9)  # one multiprocessor has two blocks
    assert seconds(dram=3.35e9) == pytest.approx(1000 + 1000 / 8 + 0.9)
    assert seconds(dram=3.35e9, resident=1) == pytest.approx(2000.9)
    assert seconds(dram=3.35e9, resident=1, warps={**busy, "cp.async.commit_group": 0}) == pytest.approx(1000.9)
    assert predicted(resident=1, warps=busy, dram=6.7e9).bound == "DRAM, occupancy"


def test_cards() -> None:
    assert {entry.generation.warps for entry in CARDS.values()} == {64}
    for entry in CARDS.values():  # a clock of the tensor cores is the published rate
        rate = {(8, 0): 2048, (9, 0): 4096, (10, 0): 8192}[entry.capability]
        assert entry.tensor["bf16"] == pytest.approx(rate * entry.multiprocessors * entry.clock, rel=0.001)
    with pytest.raises(ArgumentError, match=r"no card is called 'abacus'[\s\S]*a100, h100, h200"):
        card("abacus")


def test_instructions() -> None:
    names = {
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32": "matrix",
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16": "matrix",
        "wgmma.wait_group.sync.aligned": "barrier",
        "bar.sync": "barrier",
        "cp.async.wait_group": "barrier",
        "cp.async.cg.shared.global": "global",
        "mbarrier.try_wait.parity.shared.b64": "barrier",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16": "shared",
        "st.shared::cta.b32": "shared",
        "atom.global.gpu.add.f32": "global",
        "ld.local.b32": "local",
        "shfl.sync.bfly.b32": "shuffle",
        "cvt.rn.bf16x2.f32": "conversion",
        "div.full.f32": "special",
        "rsqrt.approx.f32": "special",
        "add.f64": "float64",
        "fma.rn.bf16x2": "float16",
        "setp.lt.f32": "float32",
        "mad.lo.s32": "integer",
        "bra.uni": "control",
        "mov.b32": "move",
        "ld.param.b64": "move",
    }
    assert {name: class_of(name) for name in names} == names
    assert matrix_work("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16") == ("fp16", 64 * 128 * 16 * 2 // 4)
    assert matrix_work("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64") == ("fp64", 512)
    assert matrix_work("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32") == ("s8", 8192)
    assert matrix_work("ldmatrix.sync.aligned.m8n8.x4.shared.b16") == ("", 0)
    counts = {"fma.rn.f32": 64, "add.f32": 32, "fma.rn.bf16x2": 32, "add.s32": 32, "setp.lt.f32": 32}
    assert operations(counts, counts) == {"cores": 128 + 32 + 128}


@pytest.mark.thorough
@needs_triton
@pytest.mark.parametrize("arch", [80, 90])
def test_registers_and_spills_are_those_that_cuobjdump_reads(arch: int) -> None:
    from tritensor.runtime import compiler

    tool = compiler._tools().get("cuobjdump")
    if tool is None:
        pytest.skip("Triton brings no cuobjdump here")
    with compile_only(("cuda", arch)) as device:
        x = torch.empty(64, 1000, device="cuda")
        torch.softmax(x, 1)
        q = torch.empty(1, 1, 256, 256, device="cuda")
        torch.nn.functional.scaled_dot_product_attention(q, q, q)  # which spills
        made = list(device.made)
    spilled = []
    for each in made:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.cubin"
            path.write_bytes(each.asm["cubin"])
            text = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
        said = {key: int(value) for key, value in re.findall(r"(REG|STACK|LOCAL|SHARED):(\d+)", text)}
        found = usage(each.asm["cubin"])
        assert (found.registers, found.local, found.shared) == (
            said["REG"],
            said["STACK"] + said["LOCAL"],
            said["SHARED"],
        )
        spilled.append(found.local)
    assert spilled[0] == 0 < spilled[-1]


def test_what_is_no_cubin() -> None:
    with pytest.raises(ValueError, match="an ELF file"):
        usage(b"\x7fELF\x01")
