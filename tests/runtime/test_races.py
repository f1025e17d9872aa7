"""What checked simulation lets pass: programs that are ordered, equal writes, copies; and what it does when off."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.drivers.lines import place_of
from tritensor.drivers.shadow import Shadow
from tritensor.errors import KernelError, KernelMemoryError

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("running kernels needs Triton", allow_module_level=True)

import triton
import triton.language as tl

MODES: dict[str, dict[str, Any]] = {
    "interpreted": {"compiled": False},
    "sm_80": {"compiled": True, "capability": (8, 0)},
}
MODES["sm_90"] = {"compiled": True}


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    """Where streams run late, a kernel fails when it is waited for."""
    with settings.simulate_late(False):
        yield


@pytest.fixture(params=MODES)
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    with torch.cuda.simulate(races=True, **MODES[request.param]) as simulation, warnings.catch_warnings():
        warnings.simplefilter("error")
        yield simulation


def vector(n: int, dtype: Any = torch.float32) -> Any:
    return torch.zeros(n, dtype=dtype, device="cuda")


@triton.jit
def last_adds(out_ptr, parts_ptr, count_ptr, BLOCK: tl.constexpr):
    tl.store(parts_ptr + tl.program_id(0), tl.program_id(0) * 1.0)
    if tl.atomic_add(count_ptr, 1) == BLOCK - 1:
        tl.store(out_ptr, tl.sum(tl.load(parts_ptr + tl.arange(0, BLOCK)), 0))


@triton.jit
def one_at_a_time(out_ptr, lock_ptr, BLOCK: tl.constexpr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(out_ptr + i) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def waits_for_the_one_before(out_ptr, flags_ptr, BLOCK: tl.constexpr):
    p, i = tl.program_id(0), tl.arange(0, BLOCK)
    if p > 0:
        while tl.load(flags_ptr + p - 1, volatile=True) == 0:
            pass
        x = tl.load(out_ptr + (p - 1) * BLOCK + i)
        tl.store(out_ptr + p * BLOCK + i, x + 1)
    else:
        tl.store(out_ptr + i, i * 0.0)
    tl.debug_barrier()
    tl.atomic_xchg(flags_ptr + p, 1)


@triton.jit
def adds(out_ptr, x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(out_ptr, tl.sum(x, 0))


@triton.jit
def adds_by_comparing(out_ptr):
    before = tl.load(out_ptr)
    now = tl.atomic_cas(out_ptr, before, before + 1)
    while now != before:
        before = now
        now = tl.atomic_cas(out_ptr, before, before + 1)


@triton.jit
def all_write_the_same(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), 7.0)


@triton.jit
def in_place(x_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i))


def test_programs_that_meet_at_an_atomic_operation_are_ordered(device: Any) -> None:
    out = torch.empty(1, device="cuda")
    last_adds[(64,)](out, torch.empty(64, device="cuda"), vector(1, torch.int32), BLOCK=64)
    assert out.item() == 2016
    out = vector(128)
    one_at_a_time[(5,)](out, vector(1, torch.int32), BLOCK=128)
    assert out.tolist() == [5] * 128
    out = torch.empty(4 * 128, device="cuda")
    waits_for_the_one_before[(4,)](out, vector(4, torch.int32), BLOCK=128)
    assert out.reshape(4, 128)[:, 0].tolist() == [0, 1, 2, 3]


def test_what_does_not_depend_on_the_order_is_no_race(device: Any) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        out = vector(2, dtype)
        adds[(4,)](out, torch.ones(512, device="cuda", dtype=dtype), BLOCK=128)
        assert out[0].item() == 512
    count = vector(1, torch.int32)
    adds_by_comparing[(4,)](count)
    assert count.item() == 4
    out = torch.empty(128, device="cuda")
    all_write_the_same[(4,)](out, BLOCK=128)
    x = torch.arange(512.0, device="cuda")
    in_place[(4,)](x, BLOCK=128)
    in_place[(4,)](x, BLOCK=128)  # each launch is a new start
    assert x[:3].tolist() == [0, 4, 8]


def test_copies_carry_what_is_known_of_memory(device: Any) -> None:
    x = torch.arange(64.0, device="cuda")
    part = torch.empty(64, device="cuda")
    part[:32] = x[:32]
    copy = torch.empty(64, device="cuda")
    copy.copy_(x)
    assert (part[:32] + copy[:32]).sum().item() == 2 * 496
    with pytest.raises(KernelError, match="memory is read that nothing has written"):
        part * 2
    x = torch.empty(3, 5, dtype=torch.uint8, device="cuda")
    x[1] = torch.tensor([1, 2, 3, 4, 5], dtype=torch.uint8)
    assert (x[1, 1:4] + 1).tolist() == [3, 4, 5]
    with pytest.raises(KernelError, match="memory is read that nothing has written"):
        x[1:] + 1


def test_tiles_are_compared_too() -> None:
    @triton.jit
    def tiles(out_ptr, x_ptr, n, step, BLOCK: tl.constexpr):
        x = tl.make_tensor_descriptor(x_ptr, [n, n], [n, 1], [BLOCK, BLOCK])
        out = tl.make_tensor_descriptor(out_ptr, [n, n], [n, 1], [BLOCK, BLOCK])
        p = tl.program_id(0)
        out.store([p * step, 0], x.load([p * BLOCK, 0]) + 1)

    with torch.cuda.simulate(compiled=True, races=True):
        x, out = torch.arange(64.0 * 64, device="cuda").reshape(64, 64), torch.empty(64, 64, device="cuda")
        tiles[(2,)](out, x, 64, 32, BLOCK=32)
        assert (out[:, :32] == x[:, :32] + 1).all().item()
        with pytest.raises(KernelError, match=r"two programs write different values(?s:.*)at test_races\.py:\d+"):
            tiles[(2,)](out, x, 64, 16, BLOCK=32)
        with pytest.raises(KernelError, match=r"read that nothing has written(?s:.*)at test_races\.py:\d+"):
            tiles[(2,)](out, torch.empty(64, 64, device="cuda"), 64, 32, BLOCK=32)


@triton.jit
def order(out_ptr, count_ptr):
    tl.store(out_ptr + tl.program_id(0) + 2 * tl.program_id(1), tl.atomic_add(count_ptr, 1))


@pytest.mark.parametrize("mode", MODES)
def test_the_order_of_programs_can_be_chosen(mode: str) -> None:
    def run(name: str) -> list[int]:
        with torch.cuda.simulate(**MODES[mode]), settings.grid_order(name):
            out, count = vector(512, torch.int32), vector(1, torch.int32)
            order[(2, 256)](out, count)
            return out.tolist()

    forward, reverse, shuffled = map(run, ("forward", "reverse", "shuffle"))
    assert sorted(forward) == sorted(shuffled) == [*range(512)]
    assert reverse == [511 - number for number in forward] and forward != shuffled != reverse
    assert run("shuffle") == shuffled


def test_without_it_nothing_is_noted() -> None:
    for options in MODES.values():
        with settings.simulate_races(False), torch.cuda.simulate(**options) as simulation:
            assert simulation.shadow is None
            assert (torch.empty(8, device="cuda") * 2).shape == (8,)
    code = "import tritensor as t\nwith t.cuda.simulate() as s: print(s.shadow is not None)"
    environment = {"TRITENSOR_SIMULATE_RACES": "1", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_an_access_outside_of_a_view_is_an_error_where_that_is_strict() -> None:
    with torch.cuda.simulate(races=True, compiled=False) as simulation:
        simulation.shadow.strict = True
        x = torch.zeros(8, 8, device="cuda")
        with pytest.raises(KernelError, match="outside of the view that was passed"):
            in_place[(1,)](x[:, :4], BLOCK=32)
        with pytest.raises(KernelMemoryError, match=r"illegal memory access(?s:.*)at test_races\.py:\d+"):
            in_place[(1,)](x[:, :4], BLOCK=64)


@triton.jit
def asserts(x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.device_assert(x > 0, "too small")


@triton.jit
def refused(x_ptr):
    tl.store(x_ptr + tl.arange(0, 4), tl.arange(0, 4) + tl.arange(0, 8))


@pytest.mark.parametrize(("kernel", "constants", "line"), [(asserts, {"BLOCK": 4}, 3), (refused, {}, 2)])
def test_what_fails_in_the_interpreter_names_its_line(kernel: Any, constants: dict[str, Any], line: int) -> None:
    with torch.cuda.simulate(compiled=False), pytest.raises(RuntimeError) as caught:
        kernel[(1,)](vector(4), **constants)
    assert re.search(rf"at test_races\.py:{kernel.starting_line_number + line}\b", str(caught.value))


def test_memory_that_is_not_known_is_left_alone() -> None:
    shadow = Shadow()
    shadow.allocated(4096, 64)
    shadow.mark(0, 8)
    shadow.mark(4096, 64)
    shadow.copied(8192, 4096, 8)
    each = SimpleNamespace(programs=np.zeros(3, np.int32), line="", fail=pytest.fail)
    each.addresses = np.array([16, 4096, 9000], np.int64)
    shadow.launching(1)(lambda: shadow.read(each, 4))()
    shadow.freed(4096)
    shadow.freed(4096)


def test_lines_are_those_of_the_user() -> None:
    library = "site-packages/triton/language/standard.py"
    assert place_of([(library, 3), (library, 9)]) == "standard.py:9 (calls standard.py:3)"
