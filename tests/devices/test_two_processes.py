"""Two processes on one device: they share its memory and the kernels that were compiled for it, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tritensor.drivers import active

from ..needs import needs_triton
from . import libcuda_stub

ROOT = Path(__file__).parents[2]
MEMORY = 1 << 30

HOLDER = """
import sys
import tritensor as torch
x = torch.empty(700 << 20, dtype=torch.uint8, device="cuda")
print("holds it", flush=True)
sys.stdin.readline()
del x
torch.cuda.empty_cache()
print("gave it back", flush=True)
sys.stdin.readline()
"""

ASKER = """
import sys
import tritensor as torch
free, total = torch.cuda.mem_get_info()
print(total - free >= 700 << 20, torch.cuda.memory_reserved(), flush=True)
kept = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
try:
    torch.empty(500 << 20, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    print(str(error).replace("\\n", " "), flush=True)
sys.stdin.readline()
x = torch.empty(500 << 20, dtype=torch.uint8, device="cuda")
print(x.numel() >> 20, kept.numel() >> 20, flush=True)
"""


@contextmanager
def started(program: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None and process.stderr is not None
    return process.stdout.readline().strip() or process.stderr.read()


def told(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_memory_that_another_process_holds_is_named_and_can_be_had_when_it_goes(tmp_path: Path) -> None:
    stub = libcuda_stub.environment(tmp_path, STUB_SHARED=str(tmp_path / "in_use"), STUB_MEMORY=str(MEMORY))
    with started(HOLDER, stub) as holder:
        assert heard(holder) == "holds it"
        with started(ASKER, stub) as asker:
            assert heard(asker) == "True 0"
            text = heard(asker)
            assert text.startswith("CUDA out of memory. Tried to allocate 500.00 MiB.")
            assert "has 1.00 GiB, of which 224.00 MiB is free" in text
            assert "100.00 MiB is in use by 1 live buffers" in text
            assert "700.00 MiB is held by other processes" in text
            told(holder)
            assert heard(holder) == "gave it back"
            told(asker)
            assert heard(asker) == "500 100"


STEPS = """
import sys
import numpy as np
import tritensor as torch
from tritensor import nn
from tritensor.runtime.program import Source
if sys.argv[1:] == ["from the cache"]:
    Source.compile = None
from tritensor.nn import functional as F
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
rng = np.random.default_rng(0)
x = torch.from_numpy(rng.standard_normal((32, 8)).astype(np.float32)).to("cuda", non_blocking=True)
y = torch.from_numpy(rng.integers(0, 4, 32)).cuda()
for _ in range(3):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
"""


@pytest.mark.thorough
@needs_triton
def test_two_processes_make_one_cache_between_them(tmp_path: Path) -> None:
    """Both begin with nothing and compile what they find missing; a third finds everything."""
    cache = tmp_path / "kernels"
    stub = libcuda_stub.environment(
        tmp_path, libcuda_stub.HERE / "libcuda_with_kernels.c", TRITENSOR_CACHE_DIR=str(cache)
    )
    with started(STEPS, stub) as first, started(STEPS, stub) as second:
        for process in (first, second):
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
    assert not [path for path in cache.rglob("*") if ".tmp" in path.name]
    kept = len([path for path in cache.rglob("*") if path.is_file()])
    assert kept > 5
    third = libcuda_stub.run(stub, "-c", STEPS, "from the cache")
    assert third.returncode == 0, third.stderr
    assert len([path for path in cache.rglob("*") if path.is_file()]) == kept


@needs_triton
def test_two_processes_at_once_compute_what_one_does() -> None:
    """On a real device where there is one."""
    driver = active()
    real = driver is not None and not driver.is_simulated
    place = {**os.environ, "PYTHONPATH": str(ROOT), "TRITENSOR_SIMULATE_CUDA": "0" if real else "1"}
    alone = libcuda_stub.run(place, "-c", STEPS.replace('"cuda"', '"cpu"').replace(".cuda()", ""))
    with started(STEPS, place) as first, started(STEPS, place) as second:
        losses = [float(process.communicate(timeout=300)[0]) for process in (first, second)]
    assert losses[0] == losses[1] == pytest.approx(float(alone.stdout), rel=1e-4)


PINNED = """
import tritensor as torch
held = torch.empty(3 << 20, dtype=torch.uint8).pin_memory()
del held
first = torch.empty(2 << 20, dtype=torch.uint8).pin_memory()  # of another size: what is cached has to go for it
print(first.is_pinned())
try:
    torch.empty(4 << 20, dtype=torch.uint8).pin_memory()
except torch.cuda.OutOfMemoryError as error:
    print(error)
device = torch.ones(10).cuda()
on_its_way = [torch.ones(1 << 18).to("cuda", non_blocking=True) for _ in range(8)]
print(device.cpu().sum().item(), sum(x.cpu().sum().item() for x in on_its_way) / (1 << 18))
"""


def test_pinned_memory_that_runs_out_is_taken_from_the_cache_or_said(tmp_path: Path) -> None:
    result = libcuda_stub.run(libcuda_stub.environment(tmp_path, STUB_PINNED=str(5 << 20)), "-c", PINNED)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("True", "10.0 8.0")
    assert lines[1] == "CUDA out of memory. Tried to allocate 4.00 MiB of pinned host memory."
    assert "drop references to pinned tensors" in lines[3]
