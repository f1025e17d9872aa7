"""What the compiler makes of the convolutions' kernels, without a GPU: no spilled registers, tiles that fit shared
memory, tensor cores for the products. Every tile of the tables, both layouts."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest

import tritensor as torch
from tritensor import settings
from tritensor.nn import functional as F

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("compiling needs Triton", allow_module_level=True)

from tritensor.kernels.matmul import precision
from tritensor.kernels.matmul.blocks import Blocks
from tritensor.kernels.window.convolution import convolution_weight
from tritensor.kernels.window.convolution_launch import LARGE, TILES
from tritensor.runtime.binary import usage

from ..devices.compile_only import compile_only

SHARED = 232448  # bytes that a program may have on sm_90; 227 KB
DTYPES = {"half": torch.bfloat16, "double": torch.float64, "sum": torch.int32}
slow = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with settings.cache_dir(str(tmp_path_factory.mktemp("triton"))):
        yield


def compiled(
    product: str,
    last: bool,
    channels: int,
    groups: int = 1,
    target: Any = ("cuda", 90),
    activation: str | None = None,
    taps: int = 3,
) -> dict[str, Any]:
    """What was compiled for a convolution and its gradients, by the kernel's name."""
    dtype = DTYPES.get(product, torch.float32)
    before = precision.get_product()
    if product in ("tf32", "ieee"):
        precision.set_product(product)
    try:
        with compile_only(target) as device, torch.no_grad():
            x = torch.empty(8, channels, 30, 30, dtype=dtype, device="cuda")
            w = torch.empty(
                128 if groups == 1 else channels, channels // groups, taps, taps, dtype=dtype, device="cuda"
            )
            if last:
                x = x.to(memory_format=torch.channels_last)
            y = F.conv2d(x, w, w[:, 0, 0, 0].contiguous(), padding=taps // 2, groups=groups, activation=activation)
            steps = {"stride": (1, 1), "padding": (taps // 2,) * 2, "dilation": (1, 1), "groups": groups}
            convolution_weight(x, y, **steps, size=(taps, taps))
            return {made.metadata.name: made for made in device.made}
    finally:
        precision.set_product(before)


# Triton 3.6's assembler gives up registers for one more block per multiprocessor, see `test_operators_compile.py`.
SPARED = 32 if version("triton").startswith("3.6.") else 0


def assert_sound(made: Any, target: tuple[str, Any] = ("cuda", 90)) -> None:
    spared = max(SPARED, 16) if target[1] == 100 else SPARED  # a weights' gradient in tf32x3 there
    assert usage(made.asm["cubin"]).local <= spared, f"{made.metadata.name} spills on {target}"
    assert made.metadata.shared <= SHARED


def product_kernels(found: dict[str, Any]) -> dict[str, Any]:
    kernels = {name: made for name, made in found.items() if "convolution" in name and "spread" not in name}
    assert len(kernels) == 2
    return kernels


TABLE = [(product, blocks, last) for product, table in TILES.items() for blocks in table for last in (False, True)]
TABLE += [
    (product, blocks, True)
    for (product, major), table in LARGE.items()
    for blocks in table
    if major == 9 and blocks.rows >= blocks.cols
]
QUICK = [("tf32x3", TILES["tf32x3"][0], False)]


def use(blocks: Blocks, product: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave one tile to choose."""
    monkeypatch.setitem(TILES, product, (blocks,))
    for key in [*LARGE]:
        monkeypatch.delitem(LARGE, key)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("product", "blocks", "last"),
    [
        pytest.param(product, blocks, last, marks=[] if (product, blocks, last) in QUICK else slow)
        for product, blocks, last in TABLE
    ],
    ids=str,
)
def test_every_tile_is_sound(product: str, blocks: Blocks, last: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results and the gradient of the weights, for channels that are a multiple of a step and for others."""
    large = blocks in LARGE.get((product, 9), ())
    use(blocks, product, monkeypatch)
    if large and product == "half":
        for activation in ("gelu", "silu"):
            for made in product_kernels(compiled(product, last, 128, activation=activation)).values():
                assert_sound(made)
    for channels in (128, 120) if product == "half" and not large else (128,):
        for made in product_kernels(compiled(product, last, channels)).values():
            assert_sound(made)
            if product in ("half", "tf32", "tf32x3"):
                assert "wgmma.mma_async" in made.asm["ptx"], made.metadata.name


@slow
def test_a_wide_tile_of_the_weights_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 64 rows, which are not used for results."""
    (wide,) = [blocks for blocks in LARGE["half", 9] if blocks.rows < blocks.cols]
    use(wide, "half", monkeypatch)
    with compile_only(("cuda", 90)) as device:
        x = torch.empty(8, 64, 30, 30, dtype=torch.bfloat16, device="cuda").to(memory_format=torch.channels_last)
        steps = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
        convolution_weight(x, x, **steps, size=(3, 3))
        (made,) = [made for made in device.made if "convolution" in made.metadata.name]
        assert_sound(made)
        assert "m64n128k16" in made.asm["ptx"]


@pytest.mark.thorough
@pytest.mark.parametrize("last", [False, True])
def test_depthwise_kernels_are_sound(last: bool) -> None:
    for taps in (3, 7):
        for made in product_kernels(compiled("half", last, 64, groups=64, taps=taps)).values():
            assert_sound(made)


@slow
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("product", "taps"), [("half", 3), ("half", 7), ("tf32", 7)])
def test_kernels_of_few_channels_are_sound(product: str, taps: int, last: bool) -> None:
    """All taps of a line are read as one step, in copies of 8 bytes or more."""
    for made in product_kernels(compiled(product, last, 3, taps=taps)).values():
        assert_sound(made)
        assert "wgmma.mma_async" in made.asm["ptx"] and "cp.async.c" in made.asm["ptx"], made.metadata.name


@slow
@pytest.mark.parametrize("target", [("cuda", 80), ("cuda", 100)], ids=str)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("product", ["half", "tf32x3"])
def test_other_targets_are_sound(product: str, last: bool, target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    large = [each for each in LARGE.get((product, target[1] // 10), ()) if last and each.rows >= each.cols]
    for blocks in (*large, *TILES[product]):
        use(blocks, product, monkeypatch)
        for made in product_kernels(compiled(product, last, 128, target=target, activation="gelu")).values():
            assert_sound(made, target)
