"""What moves through memory in vectors of 16 bytes: the code of memory-bound kernels as their host code launches them.

Compiled for sm_90 without a GPU, and read from the machine code: the width of each global load and store.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tritensor as torch
from tritensor import settings

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("compiling needs Triton", allow_module_level=True)

from tritensor.kernels.indexing import segments as segment_kernels
from tritensor.kernels.indexing.kernel import Walk
from tritensor.operators import registry
from tritensor.runtime import compiler
from tritensor.runtime.binary import usage

from ..devices.compile_only import compile_only
from .test_operators_compile import SPARED, local_bytes

if "nvdisasm" not in compiler._tools():
    pytest.skip("Triton's package has no disassembler here", allow_module_level=True)

BF16 = torch.bfloat16
TARGETS = [("cuda", 90), ("cuda", 80), ("cuda", 100), ("hip", "gfx942")]


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with settings.cache_dir(str(tmp_path_factory.mktemp("triton"))):
        yield


def on_device(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="cuda")


def kernels_of(call: Callable[[], Any], target: Any = ("cuda", 90)) -> list[Any]:
    """What the launches of a call were compiled to; those that make its inputs are copies and fills to leave out."""
    with compile_only(target) as device:
        call()
    return device.made


def widths(compiled: Any, kind: str) -> Counter[str]:
    """How often each width of global load ("LDG") or store ("STG") occurs: "128" bits, "64", "32", "U16", "U8"."""
    found = re.findall(rf"\b{kind}\.E(\S*)", compiled.asm["sass"])
    return Counter(
        next((part for part in each.split(".") if part in ("128", "64", "U16", "U8")), "32")
        for each in found
        if ".CONSTANT" not in each
    )


def slow(*names: str, cases: dict[str, Any]) -> list[Any]:
    """The cases, those but the named ones for the slow run: a kernel takes a second to compile."""
    return [name if name in names else pytest.param(name, marks=pytest.mark.slow) for name in cases]


def mixed() -> Any:
    return torch.where(on_device(64, 1000, dtype=torch.bool), on_device(64, 1000), on_device(1000))


ELEMENTWISE = {
    "row": lambda: on_device(64, 1000, dtype=BF16) + on_device(1000, dtype=BF16),
    "transposed copy": lambda: on_device(512, 256).t().contiguous(),
    "column": lambda: on_device(64, 1000) + on_device(64, 1),
    "planes": lambda: on_device(8, 128, 28, 28) + on_device(128, 1, 1),
    "slice": lambda: on_device(64, 1024)[:, :512] + 1,
    "mixed widths": mixed,
    "transposed copy, bfloat16": lambda: on_device(512, 256, dtype=BF16).t().contiguous(),
    "transposed copy, int8": lambda: on_device(512, 256, dtype=torch.int8).t().contiguous(),
    "transposed copy, float64": lambda: on_device(512, 256, dtype=torch.float64).t().contiguous(),
    "transposed and converted": lambda: on_device(512, 256).t().to(BF16),
    "transposed operand": lambda: on_device(256, 256) + on_device(256, 256).t(),
    "batch of transposed": lambda: on_device(8, 128, 12, 64, dtype=BF16).permute(0, 2, 3, 1).contiguous(),
    "heads": lambda: on_device(8, 128, 12, 64, dtype=BF16).permute(0, 2, 1, 3).contiguous(),
    "both transposed": lambda: on_device(64, 1000).t().add_(on_device(64, 1000).t()),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", slow("row", "transposed copy", cases=ELEMENTWISE))
def test_elementwise_operands_move_in_vectors(case: str) -> None:
    (compiled,) = kernels_of(ELEMENTWISE[case])
    loads, stores = widths(compiled, "LDG"), widths(compiled, "STG")
    assert stores and set(stores) == {"128"}, stores
    # a column is one number a thread; a mask of 8-bit booleans is 64 bits beside 256 of float32
    narrow = 1 if case in ("column", "planes", "mixed widths") else 0
    assert sum(loads.values()) - loads["128"] == narrow, loads
    assert usage(compiled.asm["cubin"]).local == 0


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS[1:], ids=lambda each: str(each[1]))
@pytest.mark.parametrize("case", ELEMENTWISE)
def test_no_form_spills_on_another_target(case: str, target: Any) -> None:
    (compiled,) = kernels_of(ELEMENTWISE[case], target)
    assert local_bytes(compiled, target) <= SPARED


@pytest.mark.thorough
def test_operands_of_many_dimensions_compile() -> None:
    """A constant that a loop over the dimensions assigned twice was refused from three dimensions on."""
    (compiled,) = kernels_of(lambda: on_device(8, 10, 12, 7)[:, ::2, ::2, ::2] + 1)
    assert compiled.metadata.name == "elementwise_add"


REDUCED = {
    "all": lambda: on_device(512, 1024).sum(),
    "all, bfloat16": lambda: on_device(512, 1024, dtype=BF16).sum(),
    "rows": lambda: on_device(64, 4096).sum(1),
    "rows of 1000": lambda: on_device(64, 1000).sum(1),
    "short rows": lambda: on_device(640, 100).sum(1),
    "columns": lambda: on_device(4096, 1000).sum(0),
    "outer and inner": lambda: on_device(64, 128, 196).mean((0, 2)),
    "argmax": lambda: on_device(64, 1024).argmax(1),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", slow("all", "rows of 1000", cases=REDUCED))
def test_reductions_read_in_vectors(case: str) -> None:
    reduced = kernels_of(REDUCED[case])[0]
    assert set(widths(reduced, "LDG")) == {"128"}


ROWWISE = {
    "softmax": lambda: on_device(64, 1024).softmax(1),
    "softmax of 1000": lambda: on_device(64, 1000, dtype=BF16).softmax(1),
    "softmax in a loop": lambda: on_device(4, 50304, dtype=BF16).softmax(1),
    "softmax along columns": lambda: on_device(1000, 1000).softmax(0),
    "layer norm of 1000": lambda: torch.layer_norm(on_device(64, 1000), (1000,), on_device(1000), on_device(1000)),
}


@pytest.mark.parametrize("case", slow("softmax of 1000", cases=ROWWISE))
def test_row_kernels_read_and_write_in_vectors(case: str) -> None:
    (rows,) = kernels_of(ROWWISE[case])
    assert set(widths(rows, "LDG")) == {"128"}
    stores = widths(rows, "STG")
    # layer norm also stores two numbers a row
    assert stores["128"] and sum(stores.values()) - stores["128"] <= (2 if "norm" in case else 0), stores


def sums_at(width: int, dtype: Any) -> None:
    out, values = on_device(1000, width, dtype=dtype)._data, on_device(32768, width, dtype=dtype)._data
    positions = on_device(1, 32768, dtype=torch.int64)._data
    segment_kernels.fold_at(Walk.of_index(out, positions, (0,)), out, values)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda each: str(each[1]))
@pytest.mark.parametrize("dtype", [torch.float32, BF16, torch.float64, torch.int64], ids=str)
@pytest.mark.parametrize("width", [1, 8, 1024])
def test_sums_at_places_hold_a_block_in_registers(width: int, dtype: Any, target: Any) -> None:
    found = kernels_of(lambda: sums_at(width, dtype), target)
    names = [compiled.metadata.name for compiled in found]
    assert names[-2:] == ["segment_sums_add_places", "join_segments_add_places_joined"]
    assert all(local_bytes(compiled, target) <= SPARED for compiled in found)


def backward_of_norm(rows: int, cols: int, dtype: Any) -> Any:
    grad, x = on_device(rows, cols, dtype=dtype), on_device(rows, cols, dtype=dtype)
    kind = torch.float64 if dtype is torch.float64 else torch.float32
    statistics = [on_device(rows, dtype=kind) for _ in range(3)]
    return registry["layer_norm_backward"](grad, x, *statistics, on_device(cols, dtype=dtype))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda each: str(each[1]))
@pytest.mark.parametrize("dtype", [torch.float32, BF16, torch.float64], ids=str)
@pytest.mark.parametrize("cols", [100, 1000, 4096, 8192])
def test_norm_backward_holds_a_row_and_its_sums_in_registers(cols: int, dtype: Any, target: Any) -> None:
    found = kernels_of(lambda: backward_of_norm(4096, cols, dtype), target)
    one_pass = not (cols == 8192 and dtype is torch.float64)  # the one that would spill
    assert found[0].metadata.name == ("norm_backward_layer_norm" if one_pass else "rowwise_layer_norm_backward")
    assert all(local_bytes(compiled, target) <= SPARED for compiled in found)
    if target == ("cuda", 90) and cols == 1000:
        assert widths(found[0], "LDG")["128"] and not set(widths(found[0], "LDG")) - {"128", "32", "64"}
        assert set(widths(found[0], "STG")) == {"128"}


def loss_with_gradient(classes: int, dtype: Any, weighted: bool) -> None:
    weight = on_device(classes, dtype=dtype) if weighted else None
    scores, target = on_device(512, classes, dtype=dtype), on_device(512, dtype=torch.int64)
    registry["cross_entropy_with_gradient"](scores, target, weight, label_smoothing=0.1 if weighted else 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda each: str(each[1]))
@pytest.mark.parametrize("dtype", [torch.float32, BF16, torch.float64], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [10, 16384, 131072])
def test_losses_hold_a_row_in_registers(classes: int, weighted: bool, dtype: Any, target: Any) -> None:
    found = kernels_of(lambda: loss_with_gradient(classes, dtype, weighted), target)
    # for a second block per multiprocessor the assembler gives up 8 bytes of a long row of float32 on sm_100
    allowed = max(SPARED, 8) if (target, dtype) == (("cuda", 100), torch.float32) else SPARED
    assert all(local_bytes(compiled, target) <= allowed for compiled in found)
    (rows,) = [compiled for compiled in found if compiled.metadata.name == "rowwise_cross_entropy"]
    if target == ("cuda", 90) and classes > 10:
        assert widths(rows, "STG")["128"]


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda each: str(each[1]))
@pytest.mark.parametrize("dtype", [torch.float32, BF16, torch.float64], ids=str)
@pytest.mark.parametrize("cols", [1000, 4096, 16384, 262144])
def test_softmax_holds_a_row_in_registers(cols: int, dtype: Any, target: Any) -> None:
    def call() -> None:
        for name, count in (("softmax", 1), ("softmax_backward", 2), ("log_softmax", 1)):
            registry[name](*[on_device(16, cols, dtype=dtype) for _ in range(count)], dim=1)

    for compiled in kernels_of(call, target):
        assert local_bytes(compiled, target) <= SPARED, compiled.metadata.name
