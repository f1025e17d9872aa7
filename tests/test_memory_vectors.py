"""What moves through memory in vectors of 16 bytes: the code of memory-bound kernels as their host code launches them.

Compiled for sm_90 without a GPU, and read from the machine code: the width of each global load and store.
"""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tritensor as torch
from tritensor import settings

if importlib.util.find_spec("triton") is None:
    pytest.skip("compiling needs Triton", allow_module_level=True)

from tritensor.kernels import compiler

from .test_operators_compile import compiled_for

if "nvdisasm" not in compiler._tools():
    pytest.skip("Triton's package has no disassembler here", allow_module_level=True)

BF16 = torch.bfloat16


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with settings.cache_dir(str(tmp_path_factory.mktemp("triton"))):
        yield


def on_device(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="cuda")


def kernels_of(call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, target: Any = ("cuda", 90)) -> list[Any]:
    """What the launches of a call were compiled to; those that make its inputs are copies and fills to leave out."""
    with compiled_for(target, monkeypatch) as found:
        call()
    return found


def widths(compiled: Any, kind: str) -> Counter[str]:
    """How often each width of global load ("LDG") or store ("STG") occurs: "128" bits, "64", "32", "U16", "U8"."""
    found = re.findall(rf"\b{kind}\.E(\S*)", compiled.asm["sass"])
    return Counter(next((part for part in each.split(".") if part in ("128", "64", "U16", "U8")), "32")
                   for each in found if ".CONSTANT" not in each)  # fmt: skip


def slow(*names: str, cases: dict[str, Any]) -> list[Any]:
    """The cases, those but the named ones for the slow run: a kernel takes a second to compile."""
    return [name if name in names else pytest.param(name, marks=pytest.mark.slow) for name in cases]


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


@pytest.mark.parametrize("case", slow("all", "rows of 1000", cases=REDUCED))
def test_reductions_read_in_vectors(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reduced = kernels_of(REDUCED[case], monkeypatch)[0]
    assert set(widths(reduced, "LDG")) == {"128"}


ROWWISE = {
    "softmax": lambda: on_device(64, 1024).softmax(1),
    "softmax of 1000": lambda: on_device(64, 1000, dtype=BF16).softmax(1),
    "softmax in a loop": lambda: on_device(4, 50304, dtype=BF16).softmax(1),
    "softmax along columns": lambda: on_device(1000, 1000).softmax(0),
    "layer norm of 1000": lambda: torch.layer_norm(on_device(64, 1000), (1000,), on_device(1000), on_device(1000)),
}


@pytest.mark.parametrize("case", slow("softmax of 1000", cases=ROWWISE))
def test_row_kernels_read_and_write_in_vectors(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (rows,) = kernels_of(ROWWISE[case], monkeypatch)
    assert set(widths(rows, "LDG")) == {"128"}
    stores = widths(rows, "STG")
    # layer norm also stores two numbers a row
    assert stores["128"] and sum(stores.values()) - stores["128"] <= (2 if "norm" in case else 0), stores
