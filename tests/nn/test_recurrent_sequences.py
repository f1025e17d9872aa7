"""Recurrent layers whose steps are one cooperative launch: values and gradients on simulated devices, of every tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn, settings
from tritensor.kernels.recurrent import sequence
from tritensor.kernels.recurrent.sequence import Tiles

from ..launched import note_launches
from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("running kernels needs Triton", allow_module_level=True)

LAYERS: dict[str, Any] = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "tanh": nn.RNN,
    "relu": lambda *sizes, **options: nn.RNN(*sizes, nonlinearity="relu", **options),
}
INTERPRETED, COMPILED, NATIVE = {"engine": "interpreter"}, {"compiled": True}, {"engine": "native"}
RACES = {"races": True}
MODES = {"native": NATIVE, "compiled": COMPILED}
MANY = [pytest.param(kind, mode, id=f"{kind}-{name}") for name, mode in MODES.items() for kind in LAYERS]


def results(layer: Any, x: Any, first: Any, cells: bool) -> list[np.ndarray]:
    """States of all steps, and the gradients of everything."""
    x, first = (each.detach().requires_grad_() for each in (x, first))
    lstm = isinstance(layer, nn.LSTM)
    leaves = [x, first, *([first.detach().flip(-1).requires_grad_()] if lstm else [])]
    out, last = layer(x, tuple(leaves[1:]) if lstm else first)
    total = (out.float().sin() * 1.5).sum()
    if lstm and cells:
        total = total + last[1].float().square().sum()
    found = [out, *torch.autograd.grad(total, [*leaves, *layer.parameters()])]
    return [each.detach().float().cpu().numpy() for each in found]


def check(
    kind: str, mode: dict[str, Any], size: int, batch: int, dtype: Any = torch.float32, block: int = 0, **more: Any
) -> None:
    """A device gives what the CPU gives, in both directions."""
    torch.manual_seed(0)
    cells, steps = more.pop("cells", True), more.pop("steps", 3)
    layer = LAYERS[kind](7, size, bidirectional=True, **more).to(dtype)
    x, first = torch.randn(steps, batch, 7).to(dtype), torch.randn(2, batch, size).to(dtype)
    wanted = results(layer, x, first, cells)
    with torch.cuda.simulate(**mode), settings.block(block):
        found = results(layer.to("cuda"), x.to("cuda"), first.to("cuda"), cells)
    # where a device's sigmoid is off by a unit in the last place, a state of half precision may be rounded otherwise
    tolerance = 2e-6 if dtype is torch.float32 else 2e-2
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1, np.abs(other).max()))


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    return note_launches(monkeypatch, lambda kernel, grid: (kernel.__name__, grid[0]))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["tanh", "lstm", "gru", "relu"])
def test_several_programs_of_the_interpreter(kind: str, launches: list[Any]) -> None:
    check(kind, INTERPRETED | RACES, 20, 17, block=64)
    programs = dict(each for each in launches if "sequence" in each[0])
    assert programs["sequence_kernel"] > 1 and programs["sequence_backward_kernel"] > 1, programs
    assert not [name for name, _ in launches if "step" in name]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "mode"), MANY)
def test_odd_sizes_in_half_precision(kind: str, mode: dict[str, Any]) -> None:
    check(kind, mode, 24, 17, torch.bfloat16)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_compiled_programs_race_for_nothing(kind: str) -> None:
    check(kind, COMPILED | RACES, 37, 18)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["lstm", "tanh"])
@pytest.mark.parametrize("mode", [NATIVE, COMPILED], ids=["native", "compiled"])
def test_parts_of_the_inputs(
    kind: str, mode: dict[str, Any], monkeypatch: pytest.MonkeyPatch, launches: list[Any]
) -> None:
    """The sums of four parts come from as many programs, of which each adds up those of some states."""

    def tiles(gates: int, units: int, count: int, forward: bool, *limits: Any) -> Tiles:
        depth = units if forward else gates * units
        lines = gates * units if forward else units
        return Tiles(4, 64, max(16, 1 << (depth // 4 - 1).bit_length()), 16, 4 * -(-lines // 64), True)

    monkeypatch.setattr(sequence, "tiles_for", tiles)
    check(kind, mode, 20, 13, bias=False, cells=False)
    assert ("sequence_kernel", 8 if kind == "lstm" else 4) in launches


@pytest.mark.thorough
def test_more_units_than_fit_take_a_launch_a_step(launches: list[Any]) -> None:
    with torch.cuda.simulate(**NATIVE):
        layer = nn.GRU(2, 1100).to("cuda")
        layer(torch.ones(2, 1, 2, device="cuda"))
    assert [name for name, _ in launches].count("step_kernel") == 2


@pytest.mark.parametrize(("lines", "fits"), [((4, 1024, 64, True), True), ((4, 2048, 64, True), False)])
def test_a_tile_is_no_larger_than_what_a_multiprocessor_keeps(lines: Any, fits: bool) -> None:
    for nbytes in (2, 4):
        tiles = sequence.tiles_for(*lines, nbytes, (1 << 17, 1 << 17), 132, 232448)
        assert (tiles is not None) is fits
        if tiles is not None:
            assert tiles.programs <= 132 and (tiles.lines + tiles.rows) * tiles.depth * nbytes <= 216 << 10
