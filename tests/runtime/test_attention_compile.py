"""What the compiler makes of the kernels of attention, without a GPU: registers, shared memory, tensor cores."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest

import tritensor as torch
from tritensor import settings

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("compiling needs Triton", allow_module_level=True)

from tritensor.kernels.attention import launch
from tritensor.kernels.attention.family import attention, attention_backward
from tritensor.kernels.attention.launch import TILES
from tritensor.kernels.matmul import precision
from tritensor.nn.attention.flex_attention import BlockMask, flex_attention
from tritensor.runtime.binary import usage

from ..devices.compile_only import compile_only

SHARED = 232448  # bytes that a program may have on sm_90; 227 KB
DTYPES = dict.fromkeys(("described half", "half", "mma"), torch.bfloat16) | {"double": torch.float64}
# Bytes of spilled registers a thread, by product and width: three products keep two parts of each operand.
SPILLED = {("tf32x3", 256): 304, ("ieee", 256): 304}


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with settings.cache_dir(str(tmp_path_factory.mktemp("triton"))):
        yield


def compiled(
    product: str, width: int, masked: bool = False, target: Any = ("cuda", 90), **options: Any
) -> dict[str, Any]:
    """What was compiled for attention and its gradients, by the kernel's name."""
    dtype = DTYPES.get(product, torch.float32)
    target = ("cuda", 80) if product == "mma" else target
    before, least = precision.get_product(), launch._DESCRIBED_PRODUCTS
    precision.set_product("none" if product in DTYPES else product.removeprefix("described "))
    launch._DESCRIBED_PRODUCTS = 0 if product.startswith("described") else 1 << 60
    try:
        with compile_only(target) as device, torch.no_grad():
            x = torch.empty(2, 4, 1024, width, dtype=dtype, device="cuda")
            mask = torch.empty(1, 1, 1024, dtype=torch.bool, device="cuda") if masked else None
            options = {"scale": 0.1, "diagonal": 0, **options}
            out, sums = attention(x, x, x, mask, **options)
            attention_backward(x, x, x, x, out, sums, mask, **options)
            return {made.metadata.name: made for made in device.made if "attention" in made.metadata.name}
    finally:
        precision.set_product(before)
        launch._DESCRIBED_PRODUCTS = least


def assert_sound(found: dict[str, Any], allowed: int = 0) -> None:
    # Triton 3.6's assembler gives up registers for one more block per multiprocessor, see `test_operators_compile.py`
    allowed = max(allowed, 32 if version("triton").startswith("3.6.") else 0)
    assert sorted(found) == ["attention", "attention_keys", "attention_queries"]
    for name, made in found.items():
        registers, spilled, *_ = usage(made.asm["cubin"])
        assert spilled <= allowed, f"{name} spills {spilled} bytes with {registers} registers"
        assert made.metadata.shared <= SHARED


@pytest.mark.slow
def test_halves_use_wgmma_without_spills() -> None:
    found = compiled("half", 64)
    assert_sound(found)
    for name, made in found.items():
        assert "wgmma.mma_async" in made.asm["ptx"] and "cp.async" in made.asm["ptx"], name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("product", "width"),
    [(product, width) for product in TILES for width in (16, 64, 80, 128, 256) if width <= max(TILES[product])],
)
def test_every_tile_is_sound(product: str, width: int) -> None:
    table = TILES[product]
    assert_sound(compiled(product, width), SPILLED.get((product, min(each for each in table if each >= width)), 0))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"masked": True}, {"p": 0.5}, {"diagonal": None}, {"diagonal": -1}], ids=str)
@pytest.mark.parametrize("width", [64, 128, 256])
@pytest.mark.parametrize("product", ["described half", "half", "mma"])
def test_options_are_sound(product: str, width: int, options: dict[str, Any]) -> None:
    found = compiled(product, width, **options)
    assert_sound(found)
    tiles = "cp.async.bulk.tensor" in "".join(made.asm["ptx"] for made in found.values())
    assert tiles == (product == "described half" and not (width == 256 and "p" in options))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"masked": True}, {"p": 0.5}], ids=str)
@pytest.mark.parametrize("width", [64, 128, 256])
def test_options_are_sound_for_blackwell(width: int, options: dict[str, Any]) -> None:
    # of the gradient of queries of 128 with dropout 8 bytes are spilled, at the 128 registers that ptxas gives it
    assert_sound(
        compiled("described half", width, target=("cuda", 100), **options), 8 * (width == 128 and "p" in options)
    )


FUNCTIONS: dict[str, Any] = {
    "window": (None, lambda b, h, q, k: (q >= k) & (q - k < 1024)),
    "capped": (lambda score, b, h, q, k: torch.tanh(score / 20) * 20, lambda b, h, q, k: q >= k),
    "alibi": (lambda score, b, h, q, k: score + (k - q) * torch.exp2(-(h + 1) * 0.5), None),
}


@pytest.mark.slow
@pytest.mark.parametrize("width", [64, 128, 256])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_scores_are_sound(name: str, width: int) -> None:
    with compile_only() as device:
        x = torch.empty(1, 16, 4096, width, dtype=torch.bfloat16, device="cuda").requires_grad_()
        lists = [torch.ones(shape, dtype=torch.int32, device="cuda") for shape in ((1, 1, 32), (1, 1, 32, 32))] * 4
        score_mod, kept = FUNCTIONS[name]
        mask = kept and BlockMask((4096, 4096), *lists, mask_mod=kept)
        out = flex_attention(x, x, x, score_mod, mask)
        out.backward(torch.empty_like(out))
        assert_sound({made.metadata.name: made for made in device.made if "attention" in made.metadata.name})


@pytest.mark.slow
def test_amd_compiles() -> None:
    assert sorted(compiled("half", 64, target=("hip", "gfx942"))) == [
        "attention",
        "attention_keys",
        "attention_queries",
    ]
