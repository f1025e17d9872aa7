"""What the compiler makes of the kernels of recurrent steps, without a GPU: no spilled registers, tiles that fit shared
memory, tensor cores for the products."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest

import tritensor as torch
from tritensor import nn, settings
from tritensor.kernels.matmul import precision

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("compiling needs Triton", allow_module_level=True)

from tritensor.runtime.binary import usage

from ..devices.compile_only import compile_only

SHARED = 232448  # bytes that a program may have on sm_90; 227 KB
SPARED = 32 if version("triton").startswith("3.6.") else 0  # see `test_operators_compile.py`
LAYERS = {"lstm": nn.LSTM, "gru": nn.GRU, "tanh": nn.RNN}
slow = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with settings.cache_dir(str(tmp_path_factory.mktemp("triton"))):
        yield


@pytest.mark.thorough
@pytest.mark.parametrize("target", [("cuda", 90), *(pytest.param(("cuda", n), marks=slow) for n in (80, 100))])
@pytest.mark.parametrize("dtype", ["float32", *(pytest.param(k, marks=slow) for k in ("bfloat16", "tf32", "float64"))])
@pytest.mark.parametrize("kind", ["lstm", *(pytest.param(kind, marks=slow) for kind in ("gru", "tanh"))])
def test_steps_compile_without_spills(kind: str, dtype: str, target: tuple[str, Any]) -> None:
    steps = compiled(kind, dtype, target, 250, 4)  # no multiple of a tile, and more tiles than multiprocessors
    assert len(steps) == 2
    for name, made in steps.items():
        assert usage(made.asm["cubin"]).local <= SPARED, f"{name} spills on {target}"
        assert made.metadata.shared <= SHARED
        assert any(unit in made.asm["ptx"] for unit in ("mma.sync", "wgmma", "tcgen05")) or target[1] == 80


@pytest.mark.thorough
@pytest.mark.parametrize("target", [("cuda", 90), pytest.param(("cuda", 100), marks=slow)])
@pytest.mark.parametrize("dtype", ["bfloat16", *(pytest.param(k, marks=slow) for k in ("tf32", "float32"))])
@pytest.mark.parametrize("size", [1024, *(pytest.param(n, marks=slow) for n in (250, 256, 512))])
@pytest.mark.parametrize("kind", ["lstm", *(pytest.param(kind, marks=slow) for kind in ("gru", "tanh"))])
def test_sequences_compile_without_spills(kind: str, size: int, dtype: str, target: tuple[str, Any]) -> None:
    """All steps in one launch, whose tiles of the weight are the largest that a multiprocessor keeps."""
    steps = compiled(kind, dtype, target, size, 132)
    if (dtype == "float32" and (target[1] == 100 or (size == 1024 and kind != "tanh"))) or (
        size == 250 and target[1] == 100
    ):
        assert not any("sequence" in name for name in steps)
        return
    assert len(steps) == 2
    for name, made in steps.items():
        assert "sequence" in name and made.metadata.launch_cooperative_grid
        assert usage(made.asm["cubin"]).local <= SPARED, f"{name} spills on {target}"
        assert made.metadata.shared <= SHARED
        assert any(unit in made.asm["ptx"] for unit in ("wgmma", "tcgen05"))


def compiled(kind: str, dtype: str, target: tuple[str, Any], size: int, processors: int) -> dict[str, Any]:
    """What Triton makes of the kernels of a layer, by name."""
    before = precision.get_product()
    if dtype == "tf32":
        precision.set_product("tf32")
    try:
        with compile_only(target, processors=processors) as device:
            layer = LAYERS[kind](size, size, device="cuda", dtype=getattr(torch, dtype, torch.float32))
            weight = layer.weight_hh_l0
            x = torch.empty(2, 64, size, dtype=weight.dtype, device="cuda")
            states = torch.empty(1, 64, size, dtype=weight.dtype, device="cuda")
            out, _ = layer(x, (states, states) if kind == "lstm" else states)
            out.backward(torch.empty(out.shape, dtype=out.dtype, device="cuda"))
    finally:
        precision.set_product(before)
    return {made.metadata.name: made for made in device.made if "recurrent" in made.metadata.name}
