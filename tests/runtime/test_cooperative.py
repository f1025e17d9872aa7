"""Kernels whose programs wait for one another, launched with `launch_cooperative_grid=True`, on simulated devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import KernelError, KernelMemoryError

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("running kernels needs Triton", allow_module_level=True)

import triton
import triton.language as tl

BLOCK = 32
MODES: dict[str, dict[str, Any]] = {
    "interpreted": {"engine": "interpreter"},
    "compiled": {"compiled": True},
    "native": {"engine": "native"},
    "interpreted, races": {"engine": "interpreter", "races": True},
    "sm_80, races": {"compiled": True, "capability": (8, 0), "races": True},
}


@triton.jit
def shift(x_ptr, counter, steps, BLOCK: tl.constexpr):
    """In each step each program writes its neighbour's block, plus one where its number is even."""
    pid, n = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, BLOCK)
    for step in range(steps):
        x = tl.load(x_ptr + (step * n + (pid + 1) % n) * BLOCK + i)
        if pid % 2 == 0:
            x += 1
        tl.store(x_ptr + ((step + 1) * n + pid) * BLOCK + i, x)
        tl.debug_barrier()
        tl.atomic_add(counter, 1, sem="release")
        while tl.atomic_add(counter, 0, sem="acquire") < (step + 1) * n:
            pass
        tl.debug_barrier()


@triton.jit
def neighbours(x_ptr, counter, BLOCK: tl.constexpr):
    pid, n = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + pid * BLOCK + i, i + pid)
    tl.debug_barrier()
    tl.atomic_add(counter, 1)
    while tl.load(counter, volatile=True) != n:
        pass
    tl.debug_barrier()
    tl.store(x_ptr + (n + pid) * BLOCK + i, tl.load(x_ptr + ((pid + 1) % n) * BLOCK + i))


@triton.jit
def unordered(x_ptr, counter, BLOCK: tl.constexpr):
    """As `neighbours`, but nothing orders what is written before the arrival of its program."""
    pid, n = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + pid * BLOCK + i, i + pid + 1)
    tl.atomic_add(counter, 1, sem="relaxed")
    while tl.atomic_add(counter, 0, sem="acquire") < n:
        pass
    tl.store(x_ptr + (n + pid) * BLOCK + i, tl.load(x_ptr + ((pid + 1) % n) * BLOCK + i))


@pytest.fixture(params=MODES)
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    with torch.settings.simulate_late(False), torch.cuda.simulate(**MODES[request.param]) as simulation:
        yield simulation


def zeros(*shape: int) -> Any:
    return torch.zeros(shape, dtype=torch.int32, device="cuda")


@pytest.mark.parametrize("order", ["forward", "shuffle"])
def test_programs_wait_for_one_another(device: Any, order: str) -> None:
    programs, steps = 4, 5
    wanted = np.zeros((steps + 1, programs, BLOCK), np.int32)
    wanted[0] = np.arange(programs * BLOCK).reshape(programs, BLOCK)
    for step in range(steps):
        wanted[step + 1] = np.roll(wanted[step], -1, 0) + (np.arange(programs) % 2 == 0)[:, None]
    x = zeros(steps + 1, programs, BLOCK)
    x[0] = torch.from_numpy(wanted[0]).to("cuda")
    with torch.settings.grid_order(order):
        shift[(programs,)](x, zeros(1), steps, BLOCK=BLOCK, launch_cooperative_grid=True)
        y = zeros(2, programs, BLOCK)
        neighbours[(programs,)](y, zeros(1), BLOCK=BLOCK, launch_cooperative_grid=True)
    assert np.array_equal(x.cpu().numpy(), wanted)
    first, second = y.cpu().numpy()
    assert np.array_equal(second, np.roll(first, -1, 0))


@pytest.mark.parametrize("mode", [mode for mode in MODES if "races" in mode])
def test_an_arrival_that_releases_nothing_is_a_race(mode: str) -> None:
    with torch.settings.simulate_late(False), torch.cuda.simulate(**MODES[mode]):
        x, counter = zeros(8, BLOCK), zeros(1)
        with pytest.raises(KernelError, match="a program reads what another one wrote in the same launch"):
            unordered[(4,)](x, counter, BLOCK=BLOCK, launch_cooperative_grid=True)


def test_a_grid_that_does_not_fit_is_refused(device: Any) -> None:
    x = zeros(1)
    with pytest.raises(KernelError, match="too many blocks in cooperative launch"):
        shift[(129,)](x, x, 0, BLOCK=BLOCK, launch_cooperative_grid=True)


def test_a_wait_that_never_ends_is_an_error() -> None:
    with torch.settings.simulate_late(False):
        for mode in ("interpreted", "compiled"):
            with torch.cuda.simulate(**MODES[mode]):
                x, counter = zeros(4, BLOCK), zeros(1) - 1
                with pytest.raises(KernelError, match=r"none goes on|never ends"):
                    neighbours[(2,)](x, counter, BLOCK=BLOCK, launch_cooperative_grid=True)


def test_a_program_that_fails_ends_the_others(device: Any) -> None:
    x = zeros(2, BLOCK)
    with pytest.raises(KernelMemoryError, match="illegal memory access"):
        shift[(2,)](x, zeros(1), 3, BLOCK=BLOCK, launch_cooperative_grid=True)


def test_a_sample_of_the_programs_waits_for_none_of_the_others() -> None:
    programs, steps = 64, 3
    with torch.cuda.simulate(compiled=True), torch.cuda.profile(sample=2) as p:
        x = zeros(steps + 1, programs, BLOCK)
        shift[(programs,)](x, zeros(1), steps, BLOCK=BLOCK, launch_cooperative_grid=True)
    launch = p.launches[-1]
    assert (launch.blocks, launch.ran) == (programs, 2)
    # of a step: the array, the arrival and the look at the counter
    assert launch.waits == 3 * steps
