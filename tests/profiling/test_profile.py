"""`cuda.profile` and `python -m tritensor profile`: what is counted of kernels whose work is known."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tritensor as torch
from tritensor import settings
from tritensor.cuda.profiling.recorder import sampled
from tritensor.errors import ArgumentError, DeviceError
from tritensor.runtime import replay

from ..needs import needs_triton

pytestmark = needs_triton


@pytest.fixture(autouse=True)
def on_a_compiled_device(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    with torch.cuda.simulate(compiled=True, memory="2GB"):
        yield
    replay.stop()


def test_an_addition() -> None:
    x = torch.ones(100_000, device="cuda")
    y = torch.ones(100_000, device="cuda")
    with torch.cuda.profile() as p:
        z = x + y
    assert z.sum().item() == 200_000
    (launch,) = p.launches
    assert launch.name == "elementwise_add" and launch.ran == launch.blocks == 98
    assert launch.needed == launch.dram == launch.l2 == 1_200_000
    assert launch.coalescing == 1.0 and launch.unique == launch.sectors == 37_500
    assert launch.local == 0 and 8 <= launch.registers <= 64
    assert launch.occupancy == 1.0 and launch.waits == 1
    assert launch.divergent == 0 and launch.wavefronts == 0
    assert launch.classes["global"] == 98 * 4 * 6  # two loads of two times four elements, and the stores


def test_steps_of_lanes() -> None:
    """The first cache has what a lane's neighbours asked for; memory is asked for every sector once."""
    x = torch.ones(1 << 16, device="cuda")
    with torch.cuda.profile() as p:
        x[1:] + x[:-1]
    (launch,) = p.launches
    assert launch.coalescing < 0.7 and launch.dram < 2.1 * (1 << 18)


def test_a_sample_stands_for_the_grid() -> None:
    x = torch.ones(1 << 18, device="cuda").reshape(512, 512)
    with torch.cuda.profile() as whole:
        torch.softmax(x, 1)
    with torch.cuda.profile(sample=4) as some:
        torch.softmax(x, 1)
    (all_of_it,), (part,) = whole.launches, some.launches
    assert part.ran == 4 and all_of_it.ran == all_of_it.blocks
    assert part.warps == all_of_it.warps and part.dram == all_of_it.dram and part.least == all_of_it.least
    assert part.predicted == all_of_it.predicted
    assert "scaled from samples of their blocks" in str(some) and "scaled" not in str(whole)


@pytest.mark.parametrize("grid", [(5, 1, 1), (64, 8, 1), (3, 5, 7), (1, 1, 100), (1 << 20, 1, 1)])
def test_samples_are_different_blocks_of_the_grid(grid: tuple[int, int, int]) -> None:
    numbers = sampled(grid, 16)
    assert numbers.min() >= 0 and numbers.max() < grid[0] * grid[1] * grid[2]
    assert len(numbers) >= min(5, grid[0] * grid[1] * grid[2])
    if grid[1:] == (8, 1):
        assert len(set(numbers % 32)) == 16 and len(set(numbers // 64)) == 8


def test_grids_are_those_of_the_card() -> None:
    before = torch.cuda.get_device_properties(0).multi_processor_count
    with torch.cuda.profile("h200"):
        assert torch.cuda.get_device_properties(0).multi_processor_count == 132
    assert torch.cuda.get_device_properties(0).multi_processor_count == before


def test_report(tmp_path: Path) -> None:
    x = torch.ones(1000, 100, device="cuda")
    other = torch.cuda.Stream()
    with torch.cuda.profile() as p:
        x * 2.0
        with torch.cuda.stream(other):
            torch.softmax(x, 1)
    lines = str(p).splitlines()
    assert lines[0].split()[:5] == ["kernel", "launches", "bytes", "flops", "coalescing"]
    assert re.search(r"^2 launches, predicted to take [\d.]+ us on an h100$", str(p), re.MULTILINE)
    assert "nothing was measured" in lines[-1]
    p.trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    timed = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in timed] == [launch.name for launch in p.launches]
    assert [event["tid"] for event in timed] == [0, 1] and all(event["cat"] == "predicted" for event in timed)
    assert timed[0]["dur"] == pytest.approx(p.launches[0].predicted.seconds * 1e6)
    assert any("not measured" in str(event.get("args")) for event in events)
    pytest.importorskip("matplotlib")
    p.roofline(tmp_path / "roofline.png")
    assert (tmp_path / "roofline.png").read_bytes()[:4] == b"\x89PNG"


def test_what_cannot_be_profiled() -> None:
    with pytest.raises(ArgumentError, match="sample must be at least 0"):
        torch.cuda.profile(sample=-1)
    with pytest.raises(DeviceError, match=r"capability 8\.0[\s\S]*\(8, 0\)"), torch.cuda.profile("a100"):
        pass
    with (
        torch.cuda.simulate(compiled=False),
        pytest.raises(DeviceError, match=r"only a simulated device that runs compiled kernels[\s\S]*compiled=True"),
        torch.cuda.profile(),
    ):
        pass


def test_launches_of_a_late_device_are_counted() -> None:
    with torch.cuda.simulate(compiled=True), settings.simulate_late(True):
        x = torch.ones(100, device="cuda")
        with torch.cuda.profile() as p:
            x + x
    assert [launch.name for launch in p.launches][-1] == "elementwise_add"


def test_the_command(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, tritensor as torch\n"
        "x = torch.ones(3000, device='cuda')\n"
        "print(sys.argv[1:], (x + x).sum().item())\n"
        "sys.exit(3)\n"
    )
    trace = tmp_path / "trace.json"

    def run(*words: object) -> subprocess.CompletedProcess[str]:  # a program that is run may import torch for good
        command = [sys.executable, "-m", "tritensor", "profile", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    ended = run("--card", "a100", "--trace", trace, program, "--card")
    assert ended.returncode == 3 and "['--card'] 6000.0" in ended.stdout, ended.stderr
    assert "elementwise_add" in ended.stdout and "on an a100" in ended.stdout and str(trace) in ended.stdout
    assert json.loads(trace.read_text())["traceEvents"]
    assert "there is no file 'nowhere.py'" in run("nowhere.py").stderr
