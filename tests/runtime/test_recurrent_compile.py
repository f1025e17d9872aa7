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
    before, size = precision.get_product(), 250  # no multiple of a tile
    if dtype == "tf32":
        precision.set_product("tf32")
    try:
        with compile_only(target) as device:
            layer = LAYERS[kind](size, size, device="cuda", dtype=getattr(torch, dtype, torch.float32))
            weight = layer.weight_hh_l0
            x = torch.empty(2, 64, size, dtype=weight.dtype, device="cuda")
            states = torch.empty(1, 64, size, dtype=weight.dtype, device="cuda")
            out, _ = layer(x, (states, states) if kind == "lstm" else states)
            out.backward(torch.empty(out.shape, dtype=out.dtype, device="cuda"))
    finally:
        precision.set_product(before)
    steps = {made.metadata.name: made for made in device.made if "recurrent" in made.metadata.name}
    assert len(steps) == 2
    for name, made in steps.items():
        assert usage(made.asm["cubin"]).local <= SPARED, f"{name} spills on {target}"
        assert made.metadata.shared <= SHARED
        assert any(unit in made.asm["ptx"] for unit in ("mma.sync", "wgmma", "tcgen05")) or target[1] == 80
