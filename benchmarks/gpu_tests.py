"""The tests that need a GPU, run with a time limit before the measurements."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import benchmarks

__all__ = ["JOBS", "report", "run", "run_all"]

ROOT = Path(benchmarks.__file__).parent.parent

# What can only fail on a real device, the most informative first; each runs in a new process. The kernels of all
# operators are compiled and compared with their references, in four parts by dtype.
_KERNELS = "tests/declared/test_operators.py::test_kernel_matches_reference"
JOBS: tuple[tuple[str, ...], ...] = (
    (_KERNELS, "-k", "float32"),
    (_KERNELS, "-k", "float16"),
    (_KERNELS, "-k", "float64 or bool"),
    (_KERNELS, "-k", "int"),
    ("tests/declared/test_operators.py", "--deselect", _KERNELS),
    ("tests/functional/matmul", "tests/functional/test_attention_on_devices.py", "tests/linalg/test_solving.py"),
    (
        "tests/functional/test_reductions.py",
        "tests/functional/test_reductions_on_devices.py",
        "tests/functional/test_running.py",
        "tests/functional/test_ordering.py",
        "tests/functional/test_uniqueness.py",
        "tests/functional/test_bins.py",
        "tests/functional/test_rowwise.py",
        "tests/functional/test_complex_on_devices.py",
        "tests/functional/elementwise/test_special_functions.py",
    ),
    ("tests/functional/test_convolution_on_devices.py", "tests/functional/window/test_pools_on_devices.py"),
    (
        "tests/functional/test_channel_norms.py",
        "tests/functional/test_grid_sampling.py",
        "tests/functional/test_resizing.py",
    ),
    (
        "tests/devices/test_cuda.py",
        "tests/devices/test_cuda_driver.py",
        "tests/devices/test_cuda_discovery.py",
        "tests/devices/test_cuda_failures.py",
        "tests/devices/test_transfer.py",
        "tests/devices/test_buffer.py",
    ),
    ("tests/functional/test_losses.py", "tests/functional/indexing"),
    ("tests/functional/test_more_losses.py", "tests/functional/test_ctc.py"),
    (
        "tests/optim/test_optim.py",
        "tests/optim/test_more_optimizers.py",
        "tests/optim/test_optimizer_state.py",
        "tests/amp/test_autocast.py",
        "tests/amp/test_grad_scaler.py",
        "tests/optim/test_swa_utils.py",
        "tests/functional/random",
        "tests/devices/graphs",
    ),
    (
        "tests/nn/test_nn_layers.py",
        "tests/nn/test_recurrent_layers.py",
        "tests/runtime/test_elementwise_kernel.py",
        "tests/functional/test_views.py",
        "tests/autograd/test_inplace.py",
    ),
)
_SIMULATED = (("tests/devices/test_devices.py",), ("tests/devices/test_cuda.py",))
# What NumPy runs in minutes: the driver's own tests, and what one dtype says of operators, graphs and rows. Reductions,
# products, windows and networks of the sizes in tests/ would take an hour.
_EMULATED = (
    (_KERNELS, "-k", "float32"),
    (
        "tests/devices/test_cuda.py",
        "tests/devices/test_cuda_driver.py",
        "tests/devices/test_transfer.py",
        "tests/devices/test_buffer.py",
    ),
    ("tests/devices/graphs",),
    ("tests/functional/test_rowwise.py",),
)
_OUTCOME = re.compile(r"^(tests\S*::.*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b", re.MULTILINE)


def run_all(commands: Sequence[list[str]], seconds: float) -> None:
    """Run commands in parallel, and stop those that still run when the time is up."""
    deadline = time.monotonic() + seconds
    _stop([_quietly(command) for command in commands], deadline)


def _quietly(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)


def _stop(processes: list[subprocess.Popen[bytes]], deadline: float) -> None:
    """Wait for processes, and end those that have not ended by the deadline."""
    for process in processes:
        try:
            process.wait(max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run(
    simulated: bool, seconds: float, log: Path, beside: Sequence[list[str]] = (), emulated: bool = False
) -> dict[str, Any]:
    """Run the tests, several processes at a time, and stop them when the time is up.

    Args:
        simulated: on a simulated device, and few of them.
        seconds: the time limit.
        log: where their output goes.
        beside: commands that run at the same time.
        emulated: few of them too, on what stands for a real device.
    """
    if importlib.util.find_spec("pytest") is None:
        run_all(beside, seconds)
        return {"error": "pytest is not installed here"}
    begin = time.monotonic()
    others = [_quietly(command) for command in beside]
    waiting = list(_SIMULATED if simulated else _EMULATED if emulated else JOBS)
    at_once = 1 if simulated else max(1, (os.cpu_count() or 2) - len(others))  # most of their time is compilation
    running: list[tuple[subprocess.Popen[bytes], Path]] = []
    outputs: list[Path] = []
    unfinished = 0
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            running = [each for each in running if each[0].poll() is None]
            if time.monotonic() > begin + seconds:
                for process, _ in running:
                    process.kill()
                    process.wait()
                unfinished = len(running) + len(waiting)
                break
            while waiting and len(running) < at_once:
                output = Path(folder) / f"{len(outputs)}.log"
                running.append((_start(waiting.pop(0), "sim:1" if simulated else "cuda", output), output))
                outputs.append(output)
            time.sleep(0.1)
        _stop(others, begin + seconds)
        texts = [output.read_text(errors="replace") for output in outputs]
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("\n".join(texts))
    outcomes = [match for text in texts for match in _OUTCOME.findall(text)]
    counts = Counter(outcome for _, outcome in outcomes)
    broken = [text.strip().splitlines()[-1] for text in texts if text.strip() and not _OUTCOME.search(text)]
    return {
        "passed": counts["PASSED"],
        "failed": counts["FAILED"] + counts["ERROR"] + counts["XPASS"],
        "skipped": counts["SKIPPED"] + counts["XFAIL"],
        "failures": sorted({name for name, outcome in outcomes if outcome in ("FAILED", "ERROR", "XPASS")}),
        "not_run": broken,
        "unfinished": unfinished,
        "seconds": round(time.monotonic() - begin, 1),
    }


def _start(job: tuple[str, ...], devices: str, output: Path) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        *job,
        "--devices",
        devices,
        "-v",
        "--tb=short",
        "--color=no",
        "-p",
        "no:cacheprovider",
        "--continue-on-collection-errors",
    ]
    with output.open("wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT)


def report(tests: dict[str, Any], log: Path) -> None:
    """Print the results of the tests."""
    if "error" in tests:
        print(f"tests: {tests['error']}")
        return
    late = f"; {tests['unfinished']} groups did not end in time" if tests["unfinished"] else ""
    print(
        f"tests: {tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped in "
        f"{tests['seconds']:.0f} s{late}; see {log}"
    )
    for name in tests["failures"][:40]:
        print(f"  FAILED {name}")
    for line in tests["not_run"]:
        print(f"  NOT RUN {line}")
