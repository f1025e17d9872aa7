"""Debug mode: a line for every launch, and the lines that made the tensors that fill a device."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tritensor as torch
from tritensor import settings
from tritensor.drivers import DeviceProperties

from ..needs import HAS_TRITON
from .interpreted_device import interpreted_device

if not HAS_TRITON:
    pytest.skip("running kernels needs Triton", allow_module_level=True)

TIME, SPEED = r"[0-9.e+]+ (us|ms|s)", r"[0-9.e+]+ [TGMk]?(B|FLOP)/s"


@pytest.fixture
def lines(capfd: pytest.CaptureFixture[str]) -> Any:
    """The lines written since the last call."""
    capfd.readouterr()
    return lambda: capfd.readouterr().err.splitlines()


def test_a_line_per_launch_says_operator_operands_device_time_and_speed(lines: Any) -> None:
    with torch.cuda.simulate(devices=2), settings.debug(2):
        x = torch.ones(4, 6, device="cuda:1")
        lines()
        y = x.t() + 2.5
        (line,) = lines()
        assert re.fullmatch(
            rf"tritensor: add float32\[6, 4\] \(strides 1, 6\), 2.5 -> float32\[6, 4\] on cuda:1: {TIME}, {SPEED}", line
        )
        x.sum(dim=1, keepdim=True)
        (line,) = lines()
        assert re.match(
            r"tritensor: sum float32\[4, 6\], dim=\(1,\), keepdim=True, dtype=None -> float32\[4, 1\]", line
        )
        x @ y
        (line,) = lines()
        assert re.fullmatch(rf"tritensor: matmul .* -> float32\[4, 4\] on cuda:1: {TIME}, {SPEED}", line)
        assert " of the device's " not in line


def test_launches_beside_the_call_of_an_operator_have_lines_too(lines: Any) -> None:
    with torch.cuda.simulate(), settings.debug(2):
        parameter = torch.nn.Parameter(torch.ones(3, device="cuda"))
        parameter.grad = torch.ones(3, device="cuda")
        optimizer = torch.optim.SGD([parameter], lr=0.5)
        lines()
        optimizer.step()
        parameter.detach().add_(1.0)
        torch.full((2,), 7, device="cuda")
        parameter.detach()[::2].contiguous()
        torch.empty(0, device="cuda").add_(1.0)
        torch.empty(0, device="cuda").exp()
        assert [line.split()[1] for line in lines()] == ["sgd", "add", "copy", "copy"]


def test_without_debug_mode_nothing_is_written(lines: Any) -> None:
    with torch.cuda.simulate():
        for level in (0, 1):
            with settings.debug(level):
                torch.ones(3, device="cuda").exp()
        assert lines() == []


def test_a_late_stream_is_waited_for(lines: Any) -> None:
    with torch.cuda.simulate(), settings.simulate_late(True), settings.debug(2):
        x = torch.ones(3, device="cuda") + 1
        assert len(lines()) == 2
        assert x.tolist() == [2, 2, 2]


PROPERTIES = {"clock_rate": 1_830_000, "memory_clock_rate": 2_619_000, "memory_bus_width": 5120}


@pytest.mark.parametrize(
    ("known", "capability", "call", "share"),
    [
        (True, (9, 0), lambda x: x + x, r"of the device's 3.35 TB/s"),
        (True, (9, 0), lambda x: x.half() @ x.half(), r"of the device's 989 TFLOP/s"),
        (True, (9, 0), lambda x: x @ x, r"of the device's 61.8 TFLOP/s"),
        (True, (5, 0), lambda x: x @ x, None),
        (True, (9, 0), lambda x: x.double() @ x.double(), None),
        (False, (9, 0), lambda x: x + x, None),
        (False, (9, 0), lambda x: x @ x, None),
    ],
)
def test_a_real_device_is_held_against_its_limit(
    lines: Any, monkeypatch: pytest.MonkeyPatch, known: bool, capability: Any, call: Any, share: str | None
) -> None:
    with interpreted_device() as driver, settings.debug(2):
        driver._properties = DeviceProperties("", *capability, 1 << 30, 132, **(PROPERTIES if known else {}))
        x = torch.ones(128, 128, device="cuda")
        lines()
        call(x)
        line = lines()[-1]
    if share is None:
        assert "of the device's" not in line
    else:
        assert re.search(rf"{SPEED}, [0-9]+% {share}$", line)


@pytest.mark.thorough
def test_compiling_is_not_counted(lines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from tritensor.runtime import program

    # a context of its own: what was there before is the device's, and must not outlive it
    with interpreted_device() as driver, settings.debug(2), monkeypatch.context() as patch:

        def slowly(*arguments: Any) -> Any:
            time.sleep(1.5)
            return build(*arguments)

        x, build = torch.ones(3, device="cuda"), driver.build
        patch.setattr(driver, "build", slowly)
        lines()
        x.exp()
        (line,) = lines()
    assert " s, " not in line
    assert program.observer is None


def test_a_limit_that_is_passed_is_not_named(lines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with interpreted_device() as driver, settings.debug(2):
        driver._properties = DeviceProperties("", 9, 0, 1 << 30, 1, memory_clock_rate=1, memory_bus_width=1)
        torch.ones(5000, device="cuda")
    assert "of the device's" not in lines()[-1]


def test_out_of_memory_names_the_lines_that_made_the_largest_tensors() -> None:
    with torch.cuda.simulate(memory="1MiB"), settings.debug(1):
        big = torch.zeros(100_000, device="cuda")
        line = test_out_of_memory_names_the_lines_that_made_the_largest_tensors.__code__.co_firstlineno + 2
        view, small = big[:5], big[:10_000] + 1
        with pytest.raises(torch.cuda.OutOfMemoryError) as caught:
            torch.ones(1 << 20, device="cuda")
        report = str(caught.value).splitlines()
        assert f"  live: 390.62 KiB, float32[100000] made at {__file__}:{line}" in report
        assert f"  live: 39.06 KiB, float32[10000] made at {__file__}:{line + 2}" in report
        assert f"float32[100000] made at {__file__}:{line}" in torch.cuda.memory_summary()
        del view, small


def test_the_environment_turns_it_on(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import tritensor\nx = tritensor.ones(3, device='cuda')\n(x + 1).tolist()\n")
    variables = {
        "TRITENSOR_SIMULATE_CUDA": "1",
        "TRITENSOR_DEBUG": "2",
        "PYTHONPATH": str(Path(torch.__file__).parents[1]),
    }
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=variables, check=True)
    assert [line.split()[:2] for line in found.stderr.splitlines()] == [["tritensor:", "copy"], ["tritensor:", "add"]]
